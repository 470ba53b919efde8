"""The audit: what tasks are seen to do, as a worker reports it with their end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ciel import _native

ACTS = '''
import os, shutil, socket, subprocess, sqlite3, sys, tempfile, threading, time, random, uuid
import ctypes

def nothing(folder):
    return sum(range(10))

def write(folder):
    with open(f"{folder}/out.txt", "w") as file:
        file.write("x")

def append(folder):
    os.close(os.open(f"{folder}/out.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT))

def remove(folder):
    os.remove(f"{folder}/table.csv")

def rename(folder):
    os.rename(f"{folder}/table.csv", f"{folder}/other.csv")

def make(folder):
    os.mkdir(f"{folder}/made")

def listing(folder):
    return os.listdir(folder)

def connect(folder):
    with socket.socket() as one:
        one.settimeout(0)
        one.connect_ex(("127.0.0.1", 9))

def process(folder):
    subprocess.run(["true"], check=True)

def variable(folder):
    os.environ["SEEN"] = "1"

def database(folder):
    sqlite3.connect(f"{folder}/base").close()

def library(folder):
    ctypes.CDLL(None)

def read(folder):
    with open(f"{folder}/table.csv") as file:
        return file.read()

def read_twice(folder):
    return read(folder) + read(folder)

def read_missing(folder):
    try:
        return open(f"{folder}/missing").read()
    except FileNotFoundError:
        return ""

def temporary(folder):
    with tempfile.TemporaryDirectory() as inside:
        with open(f"{inside}/one", "w") as file:
            file.write("1")
        os.mkdir(f"{inside}/deep")
        with open(f"{inside}/one") as file:
            return file.read()

def temporary_that_stays(folder):
    number, path = tempfile.mkstemp(prefix="stays-", dir=os.environ["TMPDIR"])
    os.close(number)

def unnamed(folder):
    with tempfile.TemporaryFile() as file:
        file.write(b"x")

def import_inside(folder):
    import wave
    return wave.__name__

def in_thread(folder):
    thread = threading.Thread(target=write, args=(folder,))
    thread.start()
    thread.join()

def clock(folder):
    return time.time()

def asked_by_callee(folder):
    return clock(folder)

def dice(folder):
    return random.random()

def seeded(folder):
    return random.Random(3).random()

def recorded(folder):
    import ciel
    return ciel.now()

def both(folder):
    import ciel
    child = ciel.task(write).spawn(folder)
    ciel.task(read).spawn(folder).result()
    child.result()

def again(folder):
    import ciel
    with open(f"{folder}/table.csv") as file:
        file.read()
    return ciel.task(nothing).tail(folder)
'''

RUN = """
import json, sys
import acts
import ciel
from scripted_engine import run_in_worker

def root():
    for name in sys.argv[2:]:
        try:
            ciel.task(getattr(acts, name)).options(name=name).spawn(sys.argv[1]).result()
        except ciel.TaskError as error:
            print(name, error)

_, engine = run_in_worker(root, watch=True)
print(json.dumps(engine.audits, default=bytes.hex))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program and a file; beside it one for temporary files."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table.csv").write_text("1,2")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "acts.py").write_text(ACTS)
    return tmp_path


def audits(folder: Path, *names: str) -> dict[str, Any]:
    """What each of these functions is seen to do, as tasks of one worker."""
    path = os.pathsep.join([str(folder), os.path.dirname(__file__), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder / "temporary")}
    command = [sys.executable, "-c", RUN, str(folder / "data"), *names]
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    seen: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return seen


EFFECTS = {
    "write": "opened DATA/out.txt for writing",
    "append": "opened DATA/out.txt for writing",
    "make": "made the folder DATA/made",
    "listing": "listed DATA",
    "connect": "used a socket",
    "process": "started a process true",
    "variable": "changed the variable SEEN",
    "database": "opened the database DATA/base",
    "library": "used a library by ctypes",
    "read_missing": "read DATA/missing, which is not there or changed meanwhile",
    "temporary_that_stays": "opened TMP/stays-",
    "in_thread": "opened DATA/out.txt for writing",
    "clock": "asked time.time",
    "asked_by_callee": "asked time.time",
    "dice": "asked random.random",
    "rename": "renamed DATA/table.csv to DATA/other.csv",
}


def test_effect_is_reported_with_what_it_was_and_where(folder: Path) -> None:
    seen = audits(folder, *EFFECTS)
    for name, expected in EFFECTS.items():
        effects, _ = seen[name]
        text = " | ".join(effects)
        text = text.replace(str(folder / "data"), "DATA")
        text = text.replace(str(folder / "temporary"), "TMP")
        assert text.startswith(expected), name
        if name != "read_missing":
            assert f"{folder}/acts.py:" in effects[0], name


def test_task_that_only_computes_is_seen_to_do_nothing(folder: Path) -> None:
    quiet = "nothing temporary unnamed import_inside seeded recorded".split()
    seen = audits(folder, *quiet)
    assert {name: seen[name] for name in quiet} == {name: [[], []] for name in quiet}


def test_file_that_is_read_counts_with_its_content(folder: Path) -> None:
    seen = audits(folder, "read", "read_twice")
    path = folder / "data" / "table.csv"
    length, digest = _native.digest_of_file(str(path))
    assert length == 3
    assert seen["read"] == seen["read_twice"] == [[], [[str(path), 3, digest.hex()]]]


def test_removed_file_of_somebody_else_is_an_effect(folder: Path) -> None:
    effects, _ = audits(folder, "remove")["remove"]
    assert effects[0].startswith(f"removed {folder}/data/table.csv at {folder}/acts.py:")


def test_effects_of_tasks_that_take_turns_count_to_those_that_had_them(folder: Path) -> None:
    seen = audits(folder, "both")
    assert seen["both"] == [[], []]
    assert len(seen["write"][0]) == 1 and seen["write"][1] == []
    assert seen["read"][0] == [] and len(seen["read"][1]) == 1


def test_tail_counts_to_the_task_in_which_it_runs(folder: Path) -> None:
    effects, read = audits(folder, "again")["again"]
    assert effects == [] and [path for path, _, _ in read] == [f"{folder}/data/table.csv"]
