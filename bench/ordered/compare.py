"""Measures what ordered output costs, beside what people use instead, in one run.

Each row of `rows` has a program and its peer, which take turns; a further program is a line there.
Prints a table in Markdown with medians, the middle half of what is judged, machine, versions, load
and the verdict, and writes the same to a file. What is missing on this machine is named and left
out. Read next: `measures`, how one figure is taken; README.md of `bench`.
"""

import argparse
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from measures import (
    Measure,
    Missing,
    added,
    example,
    followed,
    instructions,
    processor_time,
    program,
    timed,
    two_processes,
    whole,
    writes,
)

# Bytes of the text that is compressed; a peer gets halves of it.
INPUT_BYTES = 16 << 20


@dataclass(frozen=True)
class Goal:
    """What is at most so large: the ratio to the peer, our figure itself, or what it is more."""

    of: Literal["ratio", "ours", "more"]
    bound: float
    unit: str = ""

    def judged(self, ours: float, peer: float) -> float:
        """The figure that the bound is for."""
        if self.of == "ratio":
            return ours / peer
        return ours if self.of == "ours" else ours - peer

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"≤ {self.bound:g}{unit}{' more' if self.of == 'more' else ''}"


@dataclass(frozen=True)
class Row:
    """A program and its peer, if it has one, and what has to hold."""

    name: str
    ours: Measure
    peer: Measure | None
    goal: Goal
    # The thesis' figure for the same, if it has one.
    thesis: str = "–"
    pairs_max: int = 1000


LEAVES = ("dag_write", "--output", "FOLDER/leaves")
LEAVES_COUNTED = (*LEAVES, "--depth", "14", "--threads", "1")
QUEENS = ("queens", "--output", "FOLDER/queens")
QUEENS_COUNTED = (*QUEENS, "--threads", "1", "--size", "11")
QUEENS_TIMED = (*QUEENS, "--threads", "2", "--size", "13")
JOINS = ("joins", "--threads", "1")
JOINS_COUNTED = (*JOINS, "--depth", "15", "--rounds", "5")
COMPRESS = ["compress", "--input", "FOLDER/text", "--output", "FOLDER/text.gz", "--threads", "2"]
JOBS = ["jobs", "--output", "FOLDER/jobs", "--threads", "2", "--count", "200"]
LOOP = "i=0; while [ $i -lt 200 ]; do i=$((i + 1)); /bin/echo $i & done; wait"
PLAIN = processor_time("sh", "-c", LOOP)
PARALLEL = ("sh", "-c", "command -v parallel && seq 200 | parallel -j2 -k /bin/echo")

# Instructions hardly differ from run to run.
COUNTED_PAIRS = 3
FOLLOWED_PAIRS = 10


def rows(ciel: str) -> list[Row]:
    """All rows, in the order of the table; `ciel` is the command."""
    return [
        Row("a join that nobody takes, ns, beside rayon's",
            program(*JOINS, "--rounds", "51"),
            program(*JOINS, "--rounds", "51", "--kind", "rayon"), Goal("ratio", 1.5)),
        Row("the same, instructions of 5 × 32,767 joins",
            instructions(*JOINS_COUNTED),
            instructions(*JOINS_COUNTED, "--kind", "rayon"), Goal("ratio", 1.5),
            pairs_max=COUNTED_PAIRS),
        Row("dag-write, instructions at one thread, beside buffered writes",
            instructions(*LEAVES_COUNTED),
            instructions(*LEAVES_COUNTED, "--kind", "unordered"), Goal("ratio", 1.02), "1.020",
            COUNTED_PAIRS),
        Row("dag-write, s at two threads, beside unordered buffered writes",
            program(*LEAVES, "--threads", "2"),
            program(*LEAVES, "--threads", "2", "--kind", "unordered"), Goal("ratio", 1.05),
            "1.091"),
        Row("queens with its log, s at two threads, beside none",
            program(*QUEENS_TIMED), program(*QUEENS_TIMED, "--kind", "none"), Goal("ratio", 1.03)),
        Row("the same, instructions at one thread",
            instructions(*QUEENS_COUNTED), instructions(*QUEENS_COUNTED, "--kind", "none"),
            Goal("ratio", 1.03), pairs_max=COUNTED_PAIRS),
        Row("compressor at two threads, s, beside two processes that compress half each",
            whole(COMPRESS), two_processes, Goal("ratio", 1 / 0.93)),
        Row("compressor at two threads, s, beside pigz",
            whole(COMPRESS), timed("pigz", "-6", "-p2", "-kfc", "FOLDER/text"), Goal("ratio", 1)),
        Row("200 `/bin/echo &` in `ciel ordered`, s, beside `parallel -k`",
            timed(ciel, "ordered", "--", "sh", "-c", LOOP), timed(*PARALLEL), Goal("ratio", 0.1)),
        Row("the same, s of processor time",
            processor_time(ciel, "ordered", "--", "sh", "-c", LOOP), processor_time(*PARALLEL),
            Goal("ratio", 0.1)),
        Row("the least for that: `sh` alone, s of processor time, beside `parallel -k`",
            PLAIN, processor_time(*PARALLEL), Goal("ratio", 1)),
        Row("what `ciel ordered` adds to `sh` alone, s of processor time, beside what "
            "`parallel -k` adds",
            added(processor_time(ciel, "ordered", "--", "sh", "-c", LOOP), PLAIN),
            added(processor_time(*PARALLEL), PLAIN), Goal("ratio", 0.1)),
        Row("200 tiny jobs of a Rust program, s, beside `parallel -k`",
            whole(JOBS), timed(*PARALLEL), Goal("ratio", 0.1)),
        Row("the same, s of processor time",
            processor_time(*example(JOBS)), processor_time(*PARALLEL), Goal("ratio", 0.1)),
        Row("what the Rust program adds to `sh` alone, s of processor time, beside what "
            "`parallel -k` adds", added(processor_time(*example(JOBS)), PLAIN),
            added(processor_time(*PARALLEL), PLAIN), Goal("ratio", 0.1)),
        Row("a random read of a `.cio` of 10⁶ extents, µs, beside the flat file",
            program("reads", "--file", "FOLDER/reads"),
            program("reads", "--file", "FOLDER/reads", "--kind", "flat"), Goal("ours", 5, "µs")),
        Row("a write of a task to a named ordered file, µs, beside standard output",
            writes(ciel, "named"), writes(ciel, "output"), Goal("more", 1, "µs")),
        Row("a follower sees a final byte, µs, median",
            followed(ciel, 0.5), None, Goal("ours", 1000, "µs"), pairs_max=FOLLOWED_PAIRS),
        Row("the same, µs, 99 % of the bytes",
            followed(ciel, 0.99), None, Goal("ours", 1000, "µs"), pairs_max=FOLLOWED_PAIRS),
    ]  # fmt: skip


def prepare(folder: Path) -> None:
    """Writes the text that is compressed: numbers, which shrink to about a third."""
    state = 1
    words: list[str] = []
    while len(words) * 9 < INPUT_BYTES:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        words.append(f"{state >> 40:08d}")
    text = " ".join(words).encode()
    (folder / "text").write_bytes(text)
    (folder / "half0").write_bytes(text[: len(text) // 2])
    (folder / "half1").write_bytes(text[len(text) // 2 :])


def figures_of(row: Row, pairs: int, folder: Path) -> tuple[list[float], list[float]]:
    """The figures of both, which alternate and begin in turn."""
    ours: list[float] = []
    peer: list[float] = []
    for number in range(pairs):
        turns = [(ours, row.ours)]
        if row.peer is not None:
            turns.append((peer, row.peer))
        for figures, measure in turns if number % 2 == 0 else reversed(turns):
            figures.append(measure(folder))
    return ours, peer


def line_of(row: Row, pairs: int, folder: Path) -> str:
    """A line of the table."""
    pairs = min(pairs, row.pairs_max)
    ours, peer = figures_of(row, pairs, folder)
    both = zip(ours, peer or ours, strict=True)
    judged = sorted(row.goal.judged(one, other) for one, other in both)
    middle = statistics.median(judged)
    low, high = judged[len(judged) // 4], judged[len(judged) * 3 // 4]
    peers = f"{statistics.median(peer):.4g}" if peer else "–"
    verdict = "met" if middle <= row.goal.bound else "**missed**"
    return (
        f"| {row.name} | {statistics.median(ours):.4g} | {peers} | {middle:.4g} "
        f"| {low:.4g} to {high:.4g} | {row.goal} | {row.thesis} | {pairs} | {verdict} |"
    )


def counted() -> str:
    """The line of what un-stolen spawns add, which tests count."""
    tests = ("--test", "unstolen", "--test", "costs")
    command = ["cargo", "test", "--release", "--locked", "-p", "ciel-files", *tests]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    passed = ended.stdout.count("... ok")
    verdict = "met" if ended.returncode == 0 and passed else "**missed**"
    return (
        "| allocations and atomic operations of un-stolen spawns beside rayon's own, and nodes "
        f"beyond those of closures that migrated and wrote | 0 | – | {passed} tests passed | – "
        f"| 0 | – | – | {verdict} |"
    )


def version_of(name: str) -> str:
    """The first line of what a program says of itself."""
    if shutil.which(name) is None:
        return f"no {name}"
    ended = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
    return (ended.stdout or ended.stderr).strip().splitlines()[0]


def processor() -> str:
    """The name of the machine's processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def load() -> str:
    """The load of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def tell(out: TextIO, line: str) -> None:
    """Prints a line, and writes it to the file."""
    print(line, flush=True)
    print(line, file=out, flush=True)


def table(out: TextIO, options: argparse.Namespace) -> None:
    """All lines, each when it is measured."""
    now = datetime.datetime.now(datetime.UTC).date()
    system = f"{platform.system()} {platform.release()}"
    tell(out, f"{os.cpu_count()} cores ({processor()}), {system}, {now}, load {load()} before;")
    names = ("rustc", "valgrind", "pigz", "parallel", "python3")
    tell(out, "; ".join(version_of(name) for name in names) + "\n")
    tell(out, "| what | ours | peer | judged | middle half | goal | thesis | pairs | |")
    tell(out, "|---|---:|---:|---:|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for row in rows(options.ciel):
            if options.only not in row.name:
                continue
            try:
                tell(out, line_of(row, options.pairs, folder))
            except (Missing, subprocess.CalledProcessError) as reason:
                print(f"skipped: {row.name}: {reason}", file=sys.stderr)
    if not options.only:
        tell(out, counted())
    tell(out, f"\nLoad after: {load()}.")


def main() -> None:
    """Prints the table and writes it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30, help="how often both sides run")
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--ciel", default="ciel", help="the command")
    parser.add_argument("--write", default="target/ordered.md", help="the file of the table")
    options = parser.parse_args()
    # Runs have folders of their own.
    options.ciel = str(Path(shutil.which(options.ciel) or options.ciel).absolute())
    path = Path(options.write)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as out:
        table(out, options)


if __name__ == "__main__":
    main()
