"""What a task may do besides computing, by every interface that people use: each is an effect, an
input with its content, or nothing, as docs/reference/python.md says under "What counts as the code
of a task".
"""

from __future__ import annotations

from pathlib import Path

import pytest

from test_audit import audits

EFFECTS = '''
import ctypes, logging, logging.handlers, mmap, multiprocessing, os, pathlib, pickle, runpy, secrets
import shelve, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading, time, uuid
import asyncio, datetime, dbm.dumb, fileinput, gzip, random, urllib.request, zipfile
from concurrent.futures import ThreadPoolExecutor
from os import environ as variables
from time import time as clock

C = ctypes.CDLL(None)
absolute = C.abs

def path_text(folder): pathlib.Path(folder, "x").write_text("x")
def path_touch(folder): pathlib.Path(folder, "x").touch()
def path_unlink(folder): pathlib.Path(folder, "table.csv").unlink()
def path_replace(folder): pathlib.Path(folder, "table.csv").replace(f"{folder}/y")
def path_mkdir(folder): pathlib.Path(folder, "d").mkdir(parents=True)
def path_chmod(folder): pathlib.Path(folder, "table.csv").chmod(0o600)
def path_glob(folder): list(pathlib.Path(folder).glob("*"))
def path_iterate(folder): list(pathlib.Path(folder).iterdir())
def update(folder): open(f"{folder}/table.csv", "r+").close()
def exclusive(folder): open(f"{folder}/x", "x").close()
def by_opener(folder): open("x", "w", opener=lambda p, f: os.open(f"{folder}/{p}", f)).close()
def zipped(folder): zipfile.ZipFile(f"{folder}/x.zip", "w").close()
def compressed(folder): gzip.open(f"{folder}/x.gz", "wb").close()
def shelf(folder): shelve.Shelf(dbm.dumb.open(f"{folder}/x")).close()
def in_place(folder):
    with fileinput.input(f"{folder}/table.csv", inplace=True) as lines:
        for line in lines:
            pass
def copied(folder): shutil.copy(f"{folder}/table.csv", f"{folder}/y")
def copied_tree(folder): shutil.copytree(folder, f"{folder}/../tree")
def moved(folder): shutil.move(f"{folder}/table.csv", f"{folder}/y")
def tree_removed(folder): shutil.rmtree(folder)
def linked(folder): os.link(f"{folder}/table.csv", f"{folder}/y")
def linked_softly(folder): os.symlink("table.csv", f"{folder}/y")
def cut(folder): os.truncate(f"{folder}/table.csv", 0)
def dated(folder): os.utime(f"{folder}/table.csv")
def logged(folder):
    handler = logging.FileHandler(f"{folder}/x.log")
    handler.close()
def logged_in_rotation(folder): logging.handlers.RotatingFileHandler(f"{folder}/x.log").close()
def mapped(folder):
    with open(f"{folder}/table.csv", "r+b") as file, mmap.mmap(file.fileno(), 0) as inside:
        inside[0] = 65
def database(folder): sqlite3.connect(pathlib.Path(folder, "base")).close()
def made_in_temporary(folder): tempfile.mkdtemp(prefix="stays-")
def walked(folder): list(os.walk(folder))
def scanned(folder): list(os.scandir(folder))
def datagram(folder):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"", ("127.0.0.1", 9))
def listened(folder):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
def fetched(folder):
    try:
        urllib.request.urlopen("http://127.0.0.1:9", timeout=1)
    except OSError:
        pass
def fetched_later(folder):
    async def fetch():
        try:
            await asyncio.open_connection("127.0.0.1", 9)
        except OSError:
            pass
    asyncio.run(fetch())
def named(folder): socket.gethostbyname("localhost")
def ran(folder): subprocess.check_output(["true"])
def ran_by_shell(folder): os.system("true")
def ran_by_pipe(folder): os.popen("true").close()
def spawned(folder): os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
def forked(folder):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
def signalled(folder): os.kill(os.getpid(), 0)
def pool(folder):
    with ThreadPoolExecutor(1) as threads:
        threads.submit(path_text, folder).result()
def variable_set(folder): os.environ.update(SEEN="1")
def variable_put(folder): os.putenv("SEEN", "1")
def library(folder): return ctypes.CDLL(None).abs(-1)
def library_of_import(folder): return absolute(-1)
def variable_by_other_name(folder): return variables.get("HOME")
def clock_by_other_name(folder): return clock()
def day(folder): return datetime.date.today()
def number(folder): return uuid.uuid4()
def secret(folder): return secrets.token_hex()
def random_bytes(folder): return os.urandom(3)
def random_of_system(folder): return random.SystemRandom().random()
def asked_inside(folder):
    from helpers import stamp
    return stamp()
def asked_in_class(folder): return Clock().now
def machine(folder): return open("/proc/self/stat").read()[:0]
def ran_path(folder): runpy.run_path(f"{folder}/../writes.py", {"folder": folder})

class Clock:
    @property
    def now(self):
        return time.time()
'''

WORDS = {
    **dict.fromkeys(["path_text", "path_touch", "update", "exclusive", "by_opener"], "opened"),
    **dict.fromkeys(["zipped", "compressed", "shelf", "copied", "mapped", "pool"], "opened"),
    **dict.fromkeys(["logged", "logged_in_rotation", "ran_path"], "opened"),
    **dict.fromkeys(["path_unlink", "tree_removed"], "removed"),
    **dict.fromkeys(["path_replace", "moved", "in_place"], "renamed"),
    **dict.fromkeys(["path_mkdir", "made_in_temporary"], "made the folder"),
    **dict.fromkeys(["path_chmod", "cut", "dated"], "changed"),
    **dict.fromkeys(["path_glob", "path_iterate", "walked", "scanned", "copied_tree"], "listed"),
    **dict.fromkeys(["linked", "linked_softly"], "linked"),
    **dict.fromkeys(["datagram", "listened"], "used a socket"),
    **dict.fromkeys(["fetched", "fetched_later"], "used a socket|asked for an address"),
    "named": "asked for an address",
    "database": "opened the database",
    **dict.fromkeys("ran ran_by_shell ran_by_pipe spawned forked".split(), "started a process"),
    "signalled": "sent a signal",
    **dict.fromkeys(["variable_set", "variable_put"], "changed the variable SEEN"),
    "library": "used a library",
    "library_of_import": "used absolute, a library",
    "variable_by_other_name": "asked os.environ",
    **dict.fromkeys(["clock_by_other_name", "asked_inside", "asked_in_class"], "asked time.time"),
    "day": "asked datetime.date.today",
    "number": "asked uuid.uuid4",
    "secret": "asked secrets.token_hex",
    "random_bytes": "asked os.urandom",
    "random_of_system": "asked random.SystemRandom",
    "machine": "read /proc/self/stat",
}
"""The first effect of each function, or several that may be."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program and a file; beside it one for temporary files."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table.csv").write_text("1,2")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "acts.py").write_text(EFFECTS)
    (tmp_path / "helpers.py").write_text("import time\n\n\ndef stamp():\n    return time.time()\n")
    (tmp_path / "writes.py").write_text("open(folder + '/x', 'w').close()\n")
    return tmp_path


@pytest.mark.parametrize("name", WORDS)
def test_act_by_any_interface_is_an_effect(name: str, folder: Path) -> None:
    effects, _ = audits(folder, name)[name]
    assert any(word in " | ".join(effects) for word in WORDS[name].split("|")), effects


NOTHING = """
import hashlib, io, json, os, pathlib, pickle, shutil, sqlite3, subprocess, sys, tempfile, threading
from concurrent.futures import ThreadPoolExecutor

def in_memory(folder):
    with sqlite3.connect(":memory:") as base:
        return base.execute("select 1").fetchone()

def in_threads(folder):
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(hashlib.md5, [b"a", b"b"]))[0].hexdigest()

def in_buffer(folder):
    with io.BytesIO() as file:
        file.write(b"x")
        return file.getvalue()

def in_temporary(folder):
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("x")
        file.flush()
        return pathlib.Path(file.name).read_text()

def printed(folder):
    print(json.dumps({"a": os.path.join("a", "b")}))
    sys.stderr.write("x")

def pickled(folder):
    return pickle.loads(pickle.dumps([1, {"a": 2.5}]))
"""


def test_what_leaves_nothing_behind_is_no_effect(folder: Path) -> None:
    (folder / "acts.py").write_text(NOTHING)
    names = "in_memory in_threads in_buffer in_temporary printed pickled".split()
    assert audits(folder, *names) == {name: [[], []] for name in names} | {
        name: found for name, found in audits(folder).items() if name not in names
    }


CORES = """
import pathlib
import cores_of_stranger as stranger

def counted(folder): return stranger.count("/proc/cpuinfo")
def counted_by_path(folder): return stranger.count_by_path("/proc/cpuinfo")
def quota(folder):
    try:
        return stranger.count("/sys/fs/cgroup/cpu.max")
    except OSError:
        return 0
def by_itself(folder): return len(pathlib.Path("/proc/cpuinfo").read_text())
def memory(folder): return stranger.count("/proc/meminfo")
"""


def test_package_that_counts_the_cores_has_no_effect(folder: Path, tmp_path: Path) -> None:
    """`pandas.read_csv` asks the control group how many cores there are, so no task that read a
    table was ever kept. A task that reads `/proc` itself, or a package that asks for anything else
    there, has an effect as before.
    """
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "cores_of_stranger.py").write_text(
        "import pathlib\n"
        "def count(path): return len(open(path).read())\n"
        "def count_by_path(path): return len(pathlib.Path(path).read_text())\n"
    )
    lines = f"import sys; sys.path.append({str(installed)!r})\n"
    (folder / "acts.py").write_text(lines + CORES)
    seen = audits(folder, "counted", "counted_by_path", "quota", "by_itself", "memory")
    assert seen["counted"] == seen["counted_by_path"] == seen["quota"] == [[], []]
    assert seen["by_itself"][0][0].startswith("read /proc/cpuinfo at ")
    assert seen["memory"][0][0].startswith("read /proc/meminfo at ")


def test_program_whose_folder_is_named_like_one_of_packages_has_the_effect(tmp_path: Path) -> None:
    """A program in `my-packages` was taken for an installed package, and kept with the cores that
    it had counted.
    """
    folder = tmp_path / "my-packages"
    folder.mkdir()
    (folder / "acts.py").write_text(
        "def by_itself(folder): return len(open('/proc/cpuinfo').read())\n"
    )
    seen = audits(folder, "by_itself")
    assert seen["by_itself"][0][0].startswith("read /proc/cpuinfo at ")


READING = """
import importlib, json, mmap, os, pathlib, pickle, pkgutil, runpy

def by_text(folder): return pathlib.Path(folder, "table.csv").read_text()
def by_number(folder): os.close(os.open(f"{folder}/table.csv", os.O_RDONLY))
def by_map(folder):
    with open(f"{folder}/table.csv", "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:]
def by_link(folder): return open(f"{folder}/link").read()
def in_folder(folder):
    os.chdir(folder)
    return open("table.csv").read()
"""


def test_file_counts_with_its_content_however_it_is_read(folder: Path) -> None:
    (folder / "acts.py").write_text(READING)
    (folder / "data" / "link").symlink_to("table.csv")
    names = "by_text by_number by_map by_link in_folder".split()
    seen = audits(folder, *names)
    for name in names:
        effects, [[path, length, _]] = seen[name]
        assert effects == [] and length == 3, name
        assert path == str(folder / "data" / ("link" if name == "by_link" else "table.csv"))


COMPUTED = """
import importlib, pickle, pkgutil, runpy

def imported(folder): return importlib.import_module("pl" + "ug").run()
def resolved(folder): return pkgutil.resolve_name("pl" + "ug:run")()
def executed(folder):
    found = {}
    exec("import plug; x = plug.run()", found)
    return found["x"]
def ran(folder): return runpy.run_path(f"{folder}/../plug.py")["x"]
def unpickled(folder): return pickle.loads(b"cplug\\nrun\\n.")()
def by_statement(folder):
    import plug
    return plug.run()
"""


@pytest.mark.parametrize("name", "imported resolved executed ran unpickled".split())
def test_module_that_is_imported_by_a_computed_name_counts_like_a_file(
    name: str, folder: Path
) -> None:
    """An edit of such a module was not seen, nor of what it imports."""
    (folder / "acts.py").write_text(COMPUTED)
    (folder / "plug.py").write_text("import part\nx = part.y\n\n\ndef run():\n    return x\n")
    (folder / "part.py").write_text("y = 1\n")
    effects, read = audits(folder, name)[name]
    assert effects == []
    assert str(folder / "plug.py") in [path for path, _, _ in read]
    if name != "ran":
        assert str(folder / "part.py") in [path for path, _, _ in read]


def test_module_that_was_imported_by_a_computed_name_counts_for_later_tasks(
    folder: Path,
) -> None:
    """The interpreter reports the first import of a process only."""
    (folder / "acts.py").write_text(COMPUTED.replace("unpickled(", "again("))
    (folder / "plug.py").write_text("x = 1\n\n\ndef run():\n    return x\n")
    seen = audits(folder, "imported", "resolved")
    for name in ("imported", "resolved"):
        assert [path for path, _, _ in seen[name][1]] == [str(folder / "plug.py")]


def test_module_that_a_statement_imports_counts_by_its_code(folder: Path) -> None:
    (folder / "acts.py").write_text(COMPUTED)
    (folder / "plug.py").write_text("x = 1\n\n\ndef run():\n    return x\n")
    assert audits(folder, "by_statement")["by_statement"] == [[], []]
