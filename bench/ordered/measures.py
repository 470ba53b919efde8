"""How one figure of the table is taken: by an example's own clock, from outside, or by a counter.

Each function gives a measure: it takes a folder for files and returns a figure. `FOLDER` in the
words of a program stands for that folder. It does not know the table. Read next: `follow`.
"""

import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from follow import delays_us

EXAMPLES = Path("target/release/examples").absolute()

# Lines that a follower reads, and the seconds between two of them.
FOLLOWED_LINES = 500
FOLLOWED_PAUSE_S = 0.002

# Lines that a task writes.
WRITTEN_LINES = 20_000

WRITES = """
import sys
import time

import ciel

LINE = "a line of a task that writes many\\n"


@ciel.task
def timed(kind: str) -> float:
    if kind == "named":
        with ciel.open("log", "serial-append") as log:
            begin = time.perf_counter()
            for _ in range({lines}):
                log.write(LINE)
            return time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range({lines}):
        sys.stdout.write(LINE)
    return time.perf_counter() - begin


def main() -> float:
    return timed.spawn("{kind}").result()
"""

Measure = Callable[[Path], float]


class Missing(Exception):
    """A program that this machine does not have."""


def needs(name: str) -> None:
    """Raises `Missing` if there is no such command."""
    if shutil.which(name) is None:
        raise Missing(f"{name} is not there")


def example(words: Sequence[str]) -> list[str]:
    """The words of an example of our crates, with its path."""
    return [str(EXAMPLES / words[0]), *words[1:]]


def placed(words: Sequence[str], folder: Path) -> list[str]:
    """The words with the folder in them."""
    return [word.replace("FOLDER", str(folder)) for word in words]


def program(*words: str) -> Measure:
    """The figure that an example prints."""

    def measure(folder: Path) -> float:
        line = placed(example(words), folder)
        ended = subprocess.run(line, capture_output=True, text=True, check=True)
        return float(ended.stdout)

    return measure


def instructions(*words: str) -> Measure:
    """Instructions of an example, counted by valgrind."""

    def measure(folder: Path) -> float:
        needs("valgrind")
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind"]
        line = [*tool, *placed(example(words), folder)]
        ended = subprocess.run(line, capture_output=True, text=True, check=True)
        found = re.search(r"Collected : (\d+)", ended.stderr)
        if found is None:
            raise Missing("valgrind prints no count of instructions")
        return float(found[1])

    return measure


def run_quietly(words: Sequence[str], folder: Path) -> None:
    """Runs a command to its end; its output goes nowhere."""
    needs(words[0])
    line = placed(words, folder)
    quiet = subprocess.DEVNULL
    subprocess.run(line, stdin=quiet, stdout=quiet, stderr=quiet, check=True)


def timed(*words: str) -> Measure:
    """Seconds of a command."""

    def measure(folder: Path) -> float:
        begin = time.perf_counter()
        run_quietly(words, folder)
        return time.perf_counter() - begin

    return measure


def processor_time(*words: str) -> Measure:
    """Seconds of processor time of a command and all that it waits for."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def measure(folder: Path) -> float:
        before = spent()
        run_quietly(words, folder)
        return spent() - before

    return measure


def added(measure: Measure, beneath: Measure) -> Measure:
    """What one figure is more than another, which is taken after it."""

    def measure_both(folder: Path) -> float:
        return measure(folder) - beneath(folder)

    return measure_both


def whole(words: Sequence[str]) -> Measure:
    """Seconds of an example from its start to its end, as a peer's are taken."""
    return timed(*example(words))


def two_processes(folder: Path) -> float:
    """Seconds until two processes have compressed half of the text each."""
    halves = [
        program("compress", "--threads", "1", "--input", f"FOLDER/half{half}",
                "--output", f"FOLDER/half{half}.gz")
        for half in (0, 1)
    ]  # fmt: skip
    begin = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda half: half(folder), halves))
    return time.perf_counter() - begin


def followed(ciel: str, part: float) -> Measure:
    """Microseconds within which so large a part of final bytes is seen by a follower."""

    def measure(_folder: Path) -> float:
        needs(ciel)
        found = sorted(delays_us(ciel, FOLLOWED_LINES, FOLLOWED_PAUSE_S))
        return found[int(len(found) * part)]

    return measure


def writes(ciel: str, kind: str) -> Measure:
    """Microseconds of a write of a Python task: to a `named` file, or else to its `output`."""

    def measure(_folder: Path) -> float:
        needs(ciel)
        with tempfile.TemporaryDirectory() as folder:
            job = WRITES.format(lines=WRITTEN_LINES, kind=kind)
            Path(folder, "job.py").write_text(job)
            line = [ciel, "run", "-q", "job.py"]
            ended = subprocess.run(line, cwd=folder, capture_output=True, check=True)
            return float(ended.stdout.split()[-1]) / WRITTEN_LINES * 1e6

    return measure
