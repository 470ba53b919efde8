"""Measures what ordered output costs, beside what people use instead, in one run.

Each row of `ROWS` has a program and its peer, which take turns; a further program is a line there.
Prints a table in Markdown with medians and the middle half of the ratios, the machine and the
versions. What is missing on this machine is named and left out. Read next: README.md of `bench`.
"""

import argparse
import datetime
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path("target/release/examples")
# Bytes of the text that is compressed; a peer gets halves of it.
INPUT_BYTES = 16 << 20

Measure = Callable[[Path], float]


class Missing(Exception):
    """A program that this machine does not have."""


@dataclass(frozen=True)
class Row:
    """A program and its peer. `goal` is what their ratio, or its inverse, has to keep."""

    name: str
    ours: Measure
    peer: Measure
    goal: str
    # The thesis' figure for the same, if it has one.
    thesis: str = "–"


def program(name: str, *options: str) -> Measure:
    """The figure that an example prints: seconds, or nanoseconds for each join."""

    def measure(folder: Path) -> float:
        words = [str(EXAMPLES / name), *options]
        words = [word.replace("FOLDER", str(folder)) for word in words]
        ended = subprocess.run(words, capture_output=True, text=True, check=True)
        return float(ended.stdout)

    return measure


def instructions(name: str, *options: str) -> Measure:
    """Instructions of an example, counted by valgrind."""

    def measure(folder: Path) -> float:
        needs("valgrind")
        words = [str(EXAMPLES / name), *options]
        words = [word.replace("FOLDER", str(folder)) for word in words]
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind"]
        ended = subprocess.run([*tool, *words], capture_output=True, text=True, check=True)
        found = re.search(r"Collected : (\d+)", ended.stderr)
        if found is None:
            raise Missing("valgrind prints no count of instructions")
        return float(found[1])

    return measure


def needs(name: str) -> None:
    """Raises `Missing` if there is no such command."""
    if shutil.which(name) is None:
        raise Missing(f"{name} is not installed")


def timed(*words: str) -> Measure:
    """Seconds of a command of the system, whose output goes nowhere."""

    def measure(folder: Path) -> float:
        needs(words[0])
        line = [word.replace("FOLDER", str(folder)) for word in words]
        begin = time.perf_counter()
        subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begin

    return measure


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


def whole(measure: list[str]) -> Measure:
    """Seconds of an example from its start to its end, as a peer's are taken."""
    return timed(str(EXAMPLES / measure[0]), *measure[1:])


LEAVES = ("dag_write", "--output", "FOLDER/leaves")
LEAVES_COUNTED = (*LEAVES, "--depth", "14", "--threads", "1")
QUEENS = ("queens", "--output", "FOLDER/queens", "--threads", "2", "--size", "13")
COMPRESS = ["compress", "--input", "FOLDER/text", "--output", "FOLDER/text.gz", "--threads", "2"]
JOBS = ["jobs", "--output", "FOLDER/jobs", "--threads", "2", "--count", "200"]
PARALLEL = ("sh", "-c", "command -v parallel && seq 200 | parallel -j2 -k /bin/echo")

ROWS = [
    Row("a join that nobody takes, beside rayon's",
        program("joins", "--threads", "1", "--rounds", "51"),
        program("joins", "--threads", "1", "--rounds", "51", "--kind", "rayon"), "≤ 1.5"),
    Row("dag-write, instructions at one thread, beside buffered writes",
        instructions(*LEAVES_COUNTED),
        instructions(*LEAVES_COUNTED, "--kind", "unordered"), "≤ 1.02", "1.020"),
    Row("dag-write, time at two threads, beside unordered buffered writes",
        program(*LEAVES, "--threads", "2"),
        program(*LEAVES, "--threads", "2", "--kind", "unordered"), "≤ 1.05", "1.091"),
    Row("queens with its log, beside none, two threads",
        program(*QUEENS), program(*QUEENS, "--kind", "none"), "≤ 1.03"),
    Row("compressor at two threads, beside two processes that compress half each",
        whole(COMPRESS), two_processes, "≤ 1.075"),
    Row("compressor at two threads, beside pigz",
        whole(COMPRESS), timed("pigz", "-6", "-p2", "-kfc", "FOLDER/text"), "≤ 1"),
    Row("tiny jobs that start a command, beside `parallel -k`",
        whole(JOBS), timed(*PARALLEL), "≤ 0.1"),
]  # fmt: skip


def prepare(folder: Path) -> None:
    """Writes the text that is compressed: numbers, which shrink to about a third."""
    state, words = 1, []
    while len(words) * 9 < INPUT_BYTES:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        words.append(f"{state >> 40:08d}")
    text = " ".join(words).encode()
    (folder / "text").write_bytes(text)
    (folder / "half0").write_bytes(text[: len(text) // 2])
    (folder / "half1").write_bytes(text[len(text) // 2 :])


def line_of(row: Row, pairs: int, folder: Path) -> str:
    """A line of the table: both alternate, and begin in turn."""
    ours: list[float] = []
    peer: list[float] = []
    # Instructions hardly differ from run to run.
    if "instructions" in row.name:
        pairs = min(pairs, 3)
    for number in range(pairs):
        turns = [(ours, row.ours), (peer, row.peer)]
        for figures, measure in turns if number % 2 == 0 else reversed(turns):
            figures.append(measure(folder))
    ratios = sorted(one / other for one, other in zip(ours, peer, strict=True))
    middle = statistics.median(ratios)
    low, high = ratios[len(ratios) // 4], ratios[len(ratios) * 3 // 4]
    figures = f"{statistics.median(ours):.4g} | {statistics.median(peer):.4g}"
    spread = f"{middle:.3f} | {low:.3f} to {high:.3f}"
    return f"| {row.name} | {figures} | {spread} | {row.goal} | {row.thesis} | {pairs} |"


def version_of(name: str) -> str:
    """The first line of what a program says of itself."""
    if shutil.which(name) is None:
        return f"no {name}"
    ended = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
    return (ended.stdout or ended.stderr).strip().splitlines()[0]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30, help="how often both sides run")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    options = parser.parse_args()
    now = datetime.datetime.now(datetime.UTC).date()
    load = os.getloadavg()[0]
    system = f"{platform.system()} {platform.release()}"
    print(f"{os.cpu_count()} cores, {system}, {now}, load {load:.1f};")
    print("; ".join(version_of(name) for name in ("rustc", "valgrind", "pigz", "parallel")) + "\n")
    print("| what | ours | peer | ratio | middle half | goal | thesis | pairs |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for row in ROWS:
            if options.only not in row.name:
                continue
            try:
                print(line_of(row, options.pairs, folder), flush=True)
            except (Missing, subprocess.CalledProcessError) as reason:
                print(f"skipped: {row.name}: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
