"""The audit of a worker: what tasks are seen to do beside computing results from arguments.

The interpreter reports writes, connections, processes and the like to a hook. What it reports
during a turn counts to the strand that has the turn; what other threads do, to all strands that may
have started them. A later run that takes a kept result would not repeat such *effects*. Files that
are opened for reading are reported with their content. What modules do at their import, and what
this package does itself, does not count, nor do files of the run. This module does not know what
follows from a report. Read next: `_questions.py`; docs/reference/python.md, "What counts as the
code of a task".
"""

from __future__ import annotations

import dis
import os
import re
import stat
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ciel import _native
from ciel._failed_task import FOLDER
from ciel._freeze import note_modules
from ciel._lasting import READ, lasting_for, note_read
from ciel._project import is_package_file, is_project_file
from ciel._questions import questions_of
from ciel._reached import computes
from ciel._seen import EFFECTS_MAX, READ_MAX, Seen, Stamp
from ciel._sources import files_of
from ciel._strand import Strand, here

if TYPE_CHECKING:
    from ciel._native import Audit

DIGESTS_MAX = 10_000
"""Files of which a process keeps the digest."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGING_FOLDERS = ("/proc/", "/sys/", "/dev/")
_HARMLESS = frozenset({"/dev/null", "/dev/zero", "/dev/full"})
_CORES = re.compile(
    r"/sys/fs/cgroup/(.+/)?cpu\.(max|cfs_quota_us|cfs_period_us)"
    r"|/sys/devices/system/cpu/(online|possible|present)|/proc/cpuinfo"
)
"""Files that say how many cores there are: packages ask for it, as they do by `os.cpu_count`."""

NOTHING: Audit = ([], [])
"""The report of a task that was watched and seen to do nothing."""


class Watched(Protocol):
    """The interface of a worker process that the audit uses."""

    running: Any
    forked: bool
    captured: Any


class _Inside(threading.local):
    """Whether this thread runs the hook: what that does itself is not looked at."""

    is_busy: bool = False


LATE: dict[str, bool] = {}
"""Modules that this process has imported by computed names, and whether a task did so."""

_IMPORT = dis.opmap["IMPORT_NAME"]
_inside = _Inside()
_process: Watched | None = None
_threaded: set[Strand] = set()
_digests: OrderedDict[tuple[str, Stamp], tuple[int, bytes]] = OrderedDict()
_run_folder = ""
_temporary = ""
"""The folder of temporary files."""


def install(process: Watched) -> None:
    """Watches this process, for ever: the interpreter removes no hook."""
    global _process, _run_folder, _temporary
    is_project_file(__file__)  # which finds the folders of Python, once
    if _process is None:
        sys.addaudithook(_hook)
        note_modules(_on_named)
        sys.meta_path.insert(0, _Finder())
    _process = process
    _temporary = os.path.abspath(os.environ.get("TMPDIR") or "/tmp") + os.sep
    failed = os.environ.get(FOLDER, "")
    _run_folder = os.path.dirname(os.path.abspath(failed)) + os.sep if failed else ""


def report(seen: Seen | None, function: Callable[..., Any] | None) -> Audit:
    """The report of a task that ran `function`, for its last message."""
    asked = () if function is None else questions_of(function)
    if LATE and function is not None:
        seen = _with_late(seen, function)
    if READ and function is not None:
        seen = _with_lasting(seen, function)
    if seen is None:
        return ([*asked[:EFFECTS_MAX]], []) if asked else NOTHING
    read = []
    for path, stamp in sorted(seen.read.items()):
        found = _content(path, stamp)
        if found is None:
            seen.note(f"read {path}, which is not there or changed meanwhile")
        else:
            read.append((path, *found))
    for text in seen.temporary.values():
        seen.note(text)
    return [*dict.fromkeys((*seen.effects, *asked))][:EFFECTS_MAX], read


def _with_late(seen: Seen | None, function: Callable[..., Any]) -> Seen | None:
    """What was seen, with the files of modules that were imported by computed names: by any task of
    this process, or at an import, if the task computes names itself.
    """
    for name in [name for name in LATE if not files_of(name)]:
        del LATE[name]  # it is not of the program
    names = [name for name, in_task in LATE.items() if in_task or computes(function)]
    for path in {path for name in names for path in files_of(name)}:
        seen = Seen() if seen is None else seen
        seen.read.setdefault(path, _stamp(path))
    return seen


def _with_lasting(seen: Seen | None, function: Callable[..., Any]) -> Seen | None:
    """What was seen, with the files that earlier tasks have read and left in the process."""
    for path, stamp in lasting_for(function, seen):
        seen = Seen() if seen is None else seen
        seen.read.setdefault(path, stamp)
        if len(seen.read) > READ_MAX:
            seen.note(f"read more than {READ_MAX} files")
            break
    return seen


def _content(path: str, stamp: Stamp | None) -> tuple[int, bytes] | None:
    """Length and digest of a file that was read; `None` if it is not as it was then."""
    if stamp is None or _stamp(path) != stamp:
        return None
    found = _digests.get((path, stamp))
    if found is None:
        try:
            found = _native.digest_of_file(path)
        except OSError:
            return None
        if _stamp(path) != stamp:
            return None
        _digests[path, stamp] = found
        if len(_digests) > DIGESTS_MAX:
            _digests.popitem(last=False)
    return found


def _stamp(path: str) -> Stamp | None:
    """What tells whether a file has changed; `None` if it is not there, or no plain file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def _hook(event: str, args: tuple[Any, ...]) -> None:
    note = _NOTES.get(event)
    if note is None or _inside.is_busy:
        return
    if note is _on_process and _process is not None:
        _process.captured.note_process()
    strands = _strands()
    if not strands and not (here.making and note is _on_open):
        return
    _inside.is_busy = True
    try:
        note(strands, event, args)
    except Exception as error:  # one that left the hook would fail what the program does
        for strand in strands:
            _seen(strand).note(f"did what the audit cannot read: {event}: {error!r}")
    finally:
        _inside.is_busy = False


def _on_named(module: str) -> None:
    """An argument or a result names a function or class of that module: its code counts like a file
    that was read, since the code of the task need not lead there.
    """
    strand = here.strand
    if strand is None or _inside.is_busy or module.startswith("ciel."):
        return
    _inside.is_busy = True
    try:
        for path in files_of(module):
            _seen(strand).read.setdefault(path, _stamp(path))
    finally:
        _inside.is_busy = False


class _Finder:
    """Is asked for each module that is imported for the first time, and finds none."""

    def find_spec(self, module: str, *_: Any) -> None:
        """Notes a module that no statement of a file imports, but a computed name."""
        if module.partition(".")[0] in sys.stdlib_module_names:
            return
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            frame = frame.f_back
        if frame is None:
            return
        code = frame.f_code
        asked_by = frame.f_back if code.co_filename == _IMPORTLIB else frame
        if asked_by is None or asked_by.f_code.co_filename.startswith(_OURS):
            return  # for its own purposes, such as to find the function of a task
        is_text = code.co_filename.startswith("<")  # as by `exec`
        if is_text or code.co_code[frame.f_lasti] != _IMPORT:
            LATE[module] = LATE.get(module, False) or here.strand is not None


def _strands() -> list[Strand]:
    """The strands that what happens now counts to."""
    strand = here.strand
    if strand is not None:
        return [strand]
    process = _process
    if process is None or process.forked or here.making:
        return []
    if threading.current_thread() is threading.main_thread():
        return []
    running = process.running
    found = {one for one in _threaded if not getattr(one, "ended", False)}
    if running is not None:
        found.add(running)
    _threaded.intersection_update(found)
    return [*found]


def _seen(strand: Strand) -> Seen:
    found = strand.seen
    if found is None:
        found = strand.seen = Seen()
    return found


def _on_found(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    """A pickle that the program reads names a function or class of a module."""
    module = str(args[0])
    if _is_own():
        return
    for path in files_of(module):
        for strand in strands:
            _seen(strand).read.setdefault(path, _stamp(path))


def _note(strands: list[Strand], what: str) -> None:
    if _is_own():
        return
    text = what + _place()
    for strand in strands:
        _seen(strand).note(text)


def _place() -> str:
    """Where the program acts, in words; empty if that is not known."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(("<", _OURS)) and is_project_file(file):
            return f" at {file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _is_own() -> bool:
    """Whether an import is under way, or this package acts for the strand, or a tree is removed,
    which has an event of its own.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_OURS) or code.co_filename == _SHUTIL and (
            "rmtree" in code.co_name
        ):
            return True
        if code.co_filename.startswith("<frozen importlib") and code.co_name == "get_data":
            frame = frame.f_back  # a loader reads data: for an import, or as `pkgutil.get_data`
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


_IMPORTLIB = os.path.join(os.path.dirname(os.__file__), "importlib", "__init__.py")
_SHUTIL = os.path.join(os.path.dirname(os.__file__), "shutil.py")
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _on_open(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    path, _, flags = args
    if isinstance(path, int) or path is None:
        return
    try:
        path = os.path.abspath(os.fsdecode(path))
    except (TypeError, ValueError):
        return
    if path.startswith(_run_folder) and _run_folder or path in _HARMLESS:
        return
    if flags & _WRITING:
        if not os.path.isdir(path):  # a temporary file without a name is opened by its folder
            _on_written(strands, path, f"opened {path} for writing")
    elif not flags & _WRITING:
        _on_read(strands, path)


def _on_read(strands: list[Strand], path: str) -> None:
    if not is_project_file(path):
        return  # of Python or a package, which count by version
    if path.endswith((".py", ".pyc", ".so")) and (_is_own() or not _is_asked_by_program()):
        return
    if path.startswith(_CHANGING_FOLDERS):
        if not (_CORES.fullmatch(path) and _is_asked_by_package()):
            _note(strands, f"read {path}")
        return
    if not (_is_own() or any(one.seen and path in one.seen.temporary for one in strands)):
        note_read(sys._getframe(1), path, _stamp(path), here.making)
    if all(strand.seen is not None and path in strand.seen.read for strand in strands):
        return
    if _is_own():
        return
    for strand in strands:
        seen = _seen(strand)
        if path in seen.temporary:
            continue
        if len(seen.read) >= READ_MAX:
            seen.note(f"read more than {READ_MAX} files")
        else:
            seen.read.setdefault(path, _stamp(path))


def _is_asked_by_program() -> bool:
    """Whether code of the program opens the file itself, rather than to show a line of source."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame is not None and is_project_file(frame.f_code.co_filename)


def _is_asked_by_package() -> bool:
    """Whether an installed package opens the file for itself, also through the standard library."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS):
            if is_package_file(file):
                return True
            if is_project_file(file):
                return False
        frame = frame.f_back
    return False


def _on_written(strands: list[Strand], path: str, what: str) -> None:
    if not path.startswith(_temporary):
        return _note(strands, what)
    if _is_own():
        return
    text = what + _place()
    for strand in strands:
        _seen(strand).temporary[path] = text


def _on_made(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    path = _path(args[0])
    if not _run_folder or not path.startswith(_run_folder):
        _on_written(strands, path, f"made the folder {path}")


def _on_removed(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    """What the strand has made itself, in the folder of temporary files, is as if never made."""
    path = _path(args[0])
    is_tree = event == "shutil.rmtree"
    if not is_tree and _is_own():
        return
    for strand in strands:
        seen = strand.seen
        made = {} if seen is None else seen.temporary
        if path in made:
            inside = [one for one in made if is_tree and one.startswith(path + os.sep)]
            for one in [path, *inside]:
                del made[one]
        else:
            _seen(strand).note(f"removed {path}" + _place())


def _on_renamed(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    source, target = _path(args[0]), _path(args[1])
    if _is_own():
        return
    for strand in strands:
        made = {} if strand.seen is None else strand.seen.temporary
        inside = target.startswith(_temporary)
        if source in made and inside:
            made[target] = made.pop(source)
        else:
            _note([strand], f"renamed {source} to {target}")


def _path(path: Any) -> str:
    return str(path) if isinstance(path, int) else os.path.abspath(os.fsdecode(path))


def _on_database(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    if args[0] not in ("", ":memory:", b"", b":memory:"):
        _on_path(strands, event, args)


def _on_path(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    path = _path(args[0]) if args and args[0] is not None else "."
    if not _run_folder or not path.startswith(_run_folder):
        made = all(s.seen is not None and path in s.seen.temporary for s in strands)
        if not made:
            _note(strands, f"{_WORDS[event]} {path}")


def _on_thread(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    _threaded.update(strands)


def _on_process(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    what = args[0] if args else ""
    if isinstance(what, bytes):
        what = os.fsdecode(what)
    _note(strands, f"started a process {what}".rstrip())


def _on_variable(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    name = os.fsdecode(args[0])
    if not name.startswith("CIEL_"):
        _note(strands, f"changed the variable {name}")


def _on_any(strands: list[Strand], event: str, args: tuple[Any, ...]) -> None:
    _note(strands, f"{_WORDS[event]}")


_Note = Callable[[list[Strand], str, tuple[Any, ...]], None]

_WORDS = {
    **dict.fromkeys(("os.chmod", "os.chown", "os.truncate", "os.utime"), "changed"),
    **dict.fromkeys(("os.setxattr", "os.removexattr", "os.chflags"), "changed"),
    **dict.fromkeys(("os.listdir", "os.scandir", "os.walk", "os.fwalk"), "listed"),
    **dict.fromkeys(("os.link", "os.symlink"), "linked"),
    **dict.fromkeys(("socket.connect", "socket.bind", "socket.sendto"), "used a socket"),
    **dict.fromkeys(("socket.sendmsg", "socket.sethostname"), "used a socket"),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname"), "asked for an address"),
    **dict.fromkeys(("socket.gethostbyaddr", "socket.getnameinfo"), "asked for an address"),
    **dict.fromkeys(("ctypes.dlopen", "ctypes.dlsym"), "used a library by ctypes"),
    **dict.fromkeys(("os.kill", "os.killpg"), "sent a signal"),
    "sqlite3.connect": "opened the database",
    "builtins.input": "read standard input",
    "syslog.syslog": "wrote to the system's log",
}

_NOTES: dict[str, _Note] = {
    **dict.fromkeys(_WORDS, _on_any),
    "open": _on_open,
    "pickle.find_class": _on_found,
    "os.mkdir": _on_made,
    **dict.fromkeys(("os.remove", "os.rmdir", "shutil.rmtree"), _on_removed),
    "os.rename": _on_renamed,
    **{name: _on_path for name, word in _WORDS.items() if word in ("changed", "listed", "linked")},
    "sqlite3.connect": _on_database,
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec"), _on_process),
    **dict.fromkeys(("os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"), _on_process),
    "pty.spawn": _on_process,
    **dict.fromkeys(("os.putenv", "os.unsetenv"), _on_variable),
    "_thread.start_new_thread": _on_thread,
}
"""What is done about an event; all others are of no interest."""
