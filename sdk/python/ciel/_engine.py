"""The engine as a child process of a Python program.

It finds the command `ciel`, starts it with one end of a socket pair, and copies its output to the
output of this program. `_session.py` knows the messages on the socket.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ciel import _native
from ciel._errors import CielError, WorkerLost
from ciel._options import RETRIES_MAX, check_choice, check_count, check_number

COMMAND = "CIEL_COMMAND"
PIECE_BYTES = 1 << 16
DISK_BYTES_MAX = 2**63 - 1
RESOURCE_MAX = (2**32 - 1) // 1000
"""Of a resource of the machine; the engine counts in thousandths."""


@dataclass(frozen=True)
class KeepingOptions:
    """The options of `Session` about kept results; see there."""

    kept: bool = False
    kept_dir: str | os.PathLike[str] | None = None
    trust_owner: Sequence[str] = ()
    trust: str = "content"
    check: bool = False
    keep: int | None = None

    def __post_init__(self) -> None:
        """Checks options that the command line could only refuse later."""
        for name in ("kept", "check"):
            check_choice(name, getattr(self, name))
        owners = self.trust_owner
        if isinstance(owners, str) or not all(isinstance(owner, str) and owner for owner in owners):
            raise TypeError(f"trust_owner is a list of names of users, not {owners!r}")
        if owners and self.kept_dir is None:
            raise ValueError("trust_owner is about results in a shared folder: give kept_dir, too")
        if self.trust not in ("content", "mtime"):
            raise ValueError(f"trust is 'content' or 'mtime', not {self.trust!r}")
        if self.check and self.takes:
            raise ValueError("check runs all tasks twice: leave kept and kept_dir out")
        check_count("keep", self.keep, 0, DISK_BYTES_MAX)

    @property
    def takes(self) -> bool:
        """Whether tasks that do not say it themselves take kept results."""
        return self.kept or self.kept_dir is not None

    def words(self) -> list[str]:
        """The options as arguments of the command."""
        words = ["--kept"] if self.kept else []
        words += [] if self.kept_dir is None else [f"--kept-dir={os.fspath(self.kept_dir)}"]
        words += [f"--trust-owner={owner}" for owner in self.trust_owner]
        words += ["--check"] if self.check else []
        words += [] if self.keep is None else [f"--keep={self.keep}"]
        return words if self.trust == "content" else [*words, f"--trust={self.trust}"]


@dataclass(frozen=True)
class EngineOptions:
    """The options of `Session`; see there."""

    jobs: int | None
    serial: bool
    keep_going: bool
    retries: int
    timeout: float | None
    state: str | os.PathLike[str] | None
    stderr: str
    progress: bool
    resources: Mapping[str, int] | None
    shell: str
    held_bytes: int | None = None
    store_memory: int | None = None
    store_bytes: int | None = None
    keeping: KeepingOptions = KeepingOptions()

    def __post_init__(self) -> None:
        """Checks options that the command line could only refuse later."""
        for name in ("serial", "keep_going", "progress"):
            check_choice(name, getattr(self, name))
        if not isinstance(self.resources, (Mapping, type(None))):
            raise TypeError(f"resources are amounts by name, not {self.resources!r}")
        is_count = isinstance(self.jobs, int) and not isinstance(self.jobs, bool)
        if self.jobs is not None and (not is_count or self.jobs < 1):
            raise ValueError(f"jobs is the number of cores to use, at least 1, not {self.jobs!r}")
        check_count("retries", self.retries, 0, RETRIES_MAX)
        check_number("timeout", self.timeout, above=0)
        for name, count in (self.resources or {}).items():
            if not isinstance(name, str) or name in ("", "cores", "memory") or "=" in name:
                raise ValueError(f"{name!r} is no name of a further resource, such as 'gpu'")
            check_count(f"resource {name!r}", count, 0, RESOURCE_MAX)
        if self.stderr not in ("live", "ordered"):
            raise ValueError(f"stderr is 'live' or 'ordered', not {self.stderr!r}")
        if self.shell not in ("sh", "strict"):
            raise ValueError(f"shell is 'sh' or 'strict', not {self.shell!r}")
        for name in ("held_bytes", "store_memory", "store_bytes"):
            amount = getattr(self, name)
            if amount is not None and (not isinstance(amount, int) or amount < 0):
                raise ValueError(f"{name} is a number of bytes, not {amount!r}")
        if self.serial and self.jobs is not None:
            raise ValueError("a serial run has one task at a time: leave jobs out")
        if self.serial and self.keeping.takes:
            raise ValueError("a serial run takes no kept results: leave kept and kept_dir out")

    def words(self) -> list[str]:
        """The options as arguments of the command."""
        words = [] if self.progress else ["--quiet"]
        words += [] if self.jobs is None else [f"-j{self.jobs}"]
        words += ["--serial"] if self.serial else []
        words += ["--keep-going"] if self.keep_going else []
        words += [f"--retries={self.retries}"] if self.retries else []
        if self.timeout is not None:
            words.append(f"--timeout={max(1, round(self.timeout * 1000))}ms")
        words += [] if self.state is None else [f"--state={os.fspath(self.state)}"]
        words += [] if self.held_bytes is None else [f"--held-bytes={self.held_bytes}"]
        words += [] if self.store_memory is None else [f"--store-memory={self.store_memory}"]
        words += [] if self.store_bytes is None else [f"--store-bytes={self.store_bytes}"]
        words += [f"--resource={name}={count}" for name, count in (self.resources or {}).items()]
        words += self.keeping.words()
        return [*words, f"--stderr={self.stderr}", f"--shell={self.shell}"]


class Engine:
    """The child process, its socket, and its output."""

    def __init__(self, options: EngineOptions) -> None:
        """Starts the command; raises CielError if it is missing, OSError if it does not start."""
        self._pumps: list[threading.Thread] = []
        self.flush_own_output()
        own, theirs = socket.socketpair()
        with own, theirs:
            self._process = _started(options, theirs.fileno())
            self.connection = _native.Connection(own.detach())
        self._pump(self._process.stdout, "stdout")
        self._pump(self._process.stderr, "stderr")

    def _pump(self, source: IO[bytes] | None, stream: str) -> None:
        if source is not None:
            thread = threading.Thread(target=_copy, args=(source, stream), daemon=True)
            self._pumps.append(thread)
            thread.start()

    def flush_own_output(self) -> None:
        """Output of this program so far precedes the engine's output from now on."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()

    def end(self) -> int:
        """Waits until the process has ended and all of its output was copied; its exit status."""
        status = self._process.wait()
        for pump in self._pumps:
            pump.join()
        return status

    def failed(self) -> CielError:
        """The exception for an engine that ended before it was ready."""
        status = self.end()
        return WorkerLost(
            f"the engine ended with status {status} before the session began",
            hint="its standard error shows the reason; try `ciel doctor`",
        )


def _started(options: EngineOptions, number: int) -> subprocess.Popen[bytes]:
    """Starts the command with the socket of that number, in a group of processes of its own."""
    path = [folder or os.getcwd() for folder in sys.path]
    environment = {**os.environ, "CIEL_FD": str(number), "CIEL_PYTHON_PATH": json.dumps(path)}
    words = [find_command(), "__session", *options.words(), f"--python={sys.executable}"]
    script = sys.argv[0] if sys.argv and not sys.argv[0].startswith("-") else ""
    return subprocess.Popen(
        [*words, "--", script or "session", *sys.argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=None if _is_descriptor(sys.stdout, 1) else subprocess.PIPE,
        stderr=None if _is_descriptor(sys.stderr, 2) else subprocess.PIPE,
        env=environment,
        pass_fds=[number],
        process_group=0,
    )


def find_command() -> str:
    """The command `ciel` of this package; raises CielError if it is missing.

    It is the one that `CIEL_COMMAND` names, else the one installed with this interpreter, else the
    first on `PATH`.
    """
    named = os.environ.get(COMMAND)
    if named:
        return named
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    for folder in folders:
        file = Path(folder) / "ciel"
        if os.access(file, os.X_OK):
            return str(file)
    found = shutil.which("ciel")
    if found is None:
        raise CielError(
            "the command ciel, which is part of this package, is missing",
            hint=f"reinstall the package with pip, or set {COMMAND} to the path of the command",
        )
    return found


def _is_descriptor(stream: Any, number: int) -> bool:
    """Whether a stream of this program writes to that descriptor only."""
    try:
        return bool(stream.fileno() == number)
    except (AttributeError, OSError, ValueError):  # notebooks and tests replace the streams
        return False


def _copy(source: IO[bytes], stream: str) -> None:
    """Copies the engine's output as text, split only between characters.

    It goes to whatever `sys.stdout` or `sys.stderr` is at the time, as a print would.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with source:
        while piece := os.read(source.fileno(), PIECE_BYTES):
            _show(stream, decoder.decode(piece))
    _show(stream, decoder.decode(b"", final=True))


def _show(stream: str, text: str) -> None:
    sink = getattr(sys, stream)
    if sink is not None and text:
        sink.write(text)
        sink.flush()
