"""Jobs for tests with a real engine: a file, its run, what it gave; and the processes of a run.

A test writes the text of a job and gets back how it ended. It knows nothing of what jobs do. Used
by the tests whose names are about the engine, commands and replays.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ciel._engine import find_command

DEADLINE_S = 600.0
MEASURED_DEADLINE_S = 3600.0
"""How long a job of a test may take; far more than it does, also on a slow machine."""


@dataclass(frozen=True)
class Ended:
    """How a job ended: its exit status, what it printed as bytes, and its talk as text."""

    status: int
    printed: bytes
    talk: str

    @property
    def lines(self) -> list[str]:
        """What was printed, by lines; the last one is the job's value unless it is `None`."""
        return self.printed.decode().splitlines()

    @property
    def value(self) -> Any:
        """The job's value, which is the last line; the job must have ended well."""
        assert self.status == 0, self.talk
        return json.loads(self.lines[-1])


DIES_ONCE = """import os
    if not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), 9)"""
"""Lines of a function whose process is killed the first time that it comes there."""


def write(folder: Path, text: str, name: str = "job.py") -> Path:
    """Writes a file of a job."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


MEASURED = """
import resource, subprocess, sys
ended = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(ended.returncode)
"""


def noting(name: str) -> tuple[str, ...]:
    """A command beneath which a job's process notes its number in a file, before it begins."""
    return ("sh", "-c", f'echo $$ > {name} && exec "$@"', "sh")


def start(
    job: Path,
    *args: str,
    options: tuple[str, ...] = ("-j2",),
    beneath: tuple[str, ...] = (),
) -> subprocess.Popen[bytes]:
    """Starts a job in the folder of its file, with its state beside it; by another command, to
    which its words are given, if there is one `beneath` it."""
    words = [find_command(), "run", "--quiet", f"--state={job.parent / 'state'}", *options]
    return subprocess.Popen(
        [*beneath, *words, str(job), *args],
        cwd=job.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def end_of(process: subprocess.Popen[bytes], deadline_s: float = DEADLINE_S) -> Ended:
    """Waits for a job; it is killed at the deadline, which fails the test."""
    try:
        out, err = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ended(process.returncode, out, err.decode(errors="replace"))


def kill_after(process: subprocess.Popen[bytes], lines: int) -> None:
    """Kills a job once it has printed so many lines, or has ended before."""
    assert process.stdout is not None
    for _ in range(lines):
        if not process.stdout.readline():
            break
    process.kill()
    process.communicate()


def resumed(
    job: Path,
    *args: str,
    seed: int,
    kills: int,
    lines: int,
    options: tuple[str, ...] = ("-j2",),
) -> Ended:
    """Runs a job that is killed `kills` times, each after fewer lines than `lines`, to its end."""
    chance = random.Random(seed)
    for _ in range(kills):
        kill_after(start(job, *args, options=options), chance.randrange(1, lines))
    return end_of(start(job, *args, options=options))


def run_measured(job: Path, *args: str, options: tuple[str, ...]) -> tuple[Ended, int]:
    """Runs a job; also the most memory of a process of it, in KiB.

    What the kernel reports of a process is at least what the process had that started it: the tests
    had 700 MiB. So a small one is between them.
    """
    beneath = (sys.executable, "-S", "-c", MEASURED)
    process = start(job, *args, options=options, beneath=beneath)
    ended = end_of(process, MEASURED_DEADLINE_S)
    *talk, peak = ended.talk.splitlines()
    return Ended(ended.status, ended.printed, "\n".join(talk)), int(peak)


def run(
    folder: Path, text: str, *args: str, options: tuple[str, ...] = ("-j2",), name: str = "job.py"
) -> Ended:
    """Writes and runs a job."""
    return end_of(start(write(folder, text, name), *args, options=options))


def command(folder: Path, *words: str) -> Ended:
    """Runs another command of ciel about the runs of a folder."""
    whole = [find_command(), words[0], f"--state={folder / 'state'}", *words[1:]]
    done = subprocess.run(
        whole, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def workers_of(run: int) -> list[int]:
    """The Python workers that live beneath the process of a run."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            parent = _parent_of(int(entry.name))
            if parent:
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    beneath = [run]
    while beneath:
        for child in children.get(beneath.pop(), ()):
            beneath.append(child)
            if b"ciel.worker" in _words_of(child):
                found.append(child)
    return found


def serving_of(run: int) -> list[int]:
    """Those of them that have begun to serve. One that dies before is one that cannot be started,
    which ends the job.
    """
    return [worker for worker in workers_of(run) if serves(worker)]


def serves(worker: int) -> bool:
    """Whether a worker has begun to serve: it gathers descriptor 1 in a file without a name."""
    try:
        return os.readlink(f"/proc/{worker}/fd/1").endswith("(deleted)")
    except OSError:
        return False


def in_memory_of(folder: Path) -> list[Path]:
    """The folders in memory of the runs whose state is beneath a folder. Those of others may come
    and go meanwhile, also between two looks at one.
    """
    found: list[Path] = []
    for one in Path("/dev/shm").glob(f"ciel-{os.getuid()}-*"):
        with contextlib.suppress(OSError):
            if folder in Path(os.readlink(one / "run")).parents:
                found.append(one)
    return found


def kill_at_once(workers: list[int]) -> None:
    """Kills workers as if at one moment: none of them continues while others die.

    One that still ran when another had died took over its tasks, and they were lost once more.
    """
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, number)


def kill(worker: int) -> bool:
    """Kills a worker; whether it was still there: its run may have ended since it was seen."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
        return True
    return False


def _parent_of(process: int) -> int:
    """The parent of a process; 0 for one that has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    state, parent = stat.rpartition(")")[2].split()[:2]
    return 0 if state == "Z" else int(parent)


def _words_of(process: int) -> list[bytes]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
