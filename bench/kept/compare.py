"""Measures kept results: hits beside joblib.Memory, hashing, a large index, keeping, edits, audit.

Usage: python3 compare.py [--rounds N] [--quick] CIEL PYTHON

CIEL is the command, PYTHON one that has joblib. In each round the variants of a row take turns, and
another one begins. Prints a table in Markdown: of each row the median, the spread from the least to
the largest, and the goal; then versions, machine and load. `--quick` does a tenth of the work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
RUN_S_MAX = 600.0
"""A run that takes longer has failed."""

T = TypeVar("T")

WITHOUT_AUDIT = "import sys\nsys.addaudithook = lambda hook: None\n"
"""A module that Python imports first: the worker's hook is not installed."""


@dataclass(frozen=True)
class Ran:
    """What a run told, with the seconds and the seconds of processors of all its processes."""

    told: dict[str, Any]
    whole_s: float
    processor_s: float


@dataclass
class Row:
    """A row of the table: its figures, one for each round."""

    what: str
    unit: str
    goal: str
    figures: list[float] = field(default_factory=list)


class Measures:
    """All rows, measured round by round."""

    def __init__(self, ciel: str, python: str, scale: int) -> None:
        """`scale` divides the work."""
        self.ciel, self.python, self.scale = ciel, python, scale
        self.rows: dict[str, Row] = {}
        self.versions = {"Python": platform.python_version()}

    def add(self, what: str, figure: float, unit: str, goal: str) -> None:
        """A figure of this round."""
        self.rows.setdefault(what, Row(what, unit, goal)).figures.append(figure)

    def run(self, folder: Path, *words: str, audit: bool = True) -> Ran:
        """Runs the job in a folder; options first. Raises SystemExit if it fails."""
        job = folder / "jobs.py"
        if not job.exists():
            shutil.copy(HERE / "jobs.py", job)
        options = [word for word in words if word.startswith("-")]
        rest = [word for word in words if not word.startswith("-")]
        environment = dict(os.environ)
        if not audit:
            (folder / "first").mkdir(exist_ok=True)
            (folder / "first" / "sitecustomize.py").write_text(WITHOUT_AUDIT)
            paths = [str(folder / "first"), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        command = [self.ciel, "run", "--quiet", *options, "jobs.py", *rest]
        return ended(command, folder, environment)

    def hits(self, round_: int) -> None:
        """Hits of each, with the same calls; then an edit of what is above them all."""
        count = 10_000 // self.scale
        with tempfile.TemporaryDirectory() as place:
            # A run lists the folder of its script, so the other one's files are not below that.
            folder = Path(place, "ciel")
            folder.mkdir()
            words = [self.python, str(HERE / "with_joblib.py"), str(Path(place, "joblib"))]

            def joblib(count: int) -> Ran:
                return ended([*words, str(count)], folder, dict(os.environ))

            def ciel(count: int) -> Ran:
                return self.run(folder, "squared", str(count))

            for kept in (1, count):
                self.versions["joblib"] = joblib(kept).told["version"]
                ciel(kept)
            least = turns(round_, lambda: ciel(1), lambda: joblib(1))
            both = turns(round_, lambda: ciel(count), lambda: joblib(count))
            seconds = [ran.told["seconds"] for ran in both]
            self.add("a hit", seconds[0] / count * 1e6, "µs", "≤ 60")
            self.add("a hit of joblib.Memory", seconds[1] / count * 1e6, "µs", "–")
            self.add("the same beside a hit of ours", seconds[1] / seconds[0], "times", "≥ 10")
            pairs = zip(both, least, strict=True)
            used = [ran.processor_s - start.processor_s for ran, start in pairs]
            unit = "µs of processor time"
            self.add("a hit, all processes", used[0] / count * 1e6, unit, "–")
            self.add("a hit of joblib.Memory, likewise", used[1] / count * 1e6, unit, "–")
            before = both[0].told["total"]
            job = folder / "jobs.py"
            job.write_text(job.read_text().replace("LAST = 0", "LAST = 1"))
            edited = self.run(folder, "squared", str(count))
            if edited.told["total"] != before + 1:
                raise SystemExit("the edit did not change the result")
            self.add(f"an edited root over {count:,} tasks", edited.whole_s, "s", "< 1.5")

    def hashing(self, round_: int) -> None:
        """A command that names a file, beside one that names an empty one; then both unchanged."""
        size = (1 << 30) // self.scale
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            (folder / "large").write_bytes(os.urandom(1 << 20) * (size >> 20))
            (folder / "small").write_bytes(b"x")

            def of(name: str) -> Callable[[], Ran]:
                return lambda: self.run(folder, "read", "1", name)

            large, small = turns(round_, of("large"), of("small"))
            more_s = max(large.told["seconds"] - small.told["seconds"], 1e-6)
            self.add("hashing of an input", size / more_s / 1e9, "GB/s", "≥ 2")
            more_s = max(large.processor_s - small.processor_s, 1e-6)
            unit = "GB/s of processor time"
            self.add("hashing of an input, by processor time", size / more_s / 1e9, unit, "≥ 2")
            large, small = turns(round_, of("large"), of("small"))
            more_s = large.told["seconds"] - small.told["seconds"]
            self.add("the same, unchanged", more_s * 1e3, "ms more", "≈ 0")

    def large_index(self, round_: int) -> None:
        """The start of a run with a million entries, beside one with none."""
        entries = 1_000_000 // self.scale
        with tempfile.TemporaryDirectory() as place:
            full, empty = Path(place, "full"), Path(place, "empty")
            for folder in (full, empty):
                folder.mkdir()
                self.run(folder, "squared", "1")
            fill(next(full.glob(".ciel/kept/*index*")), entries)

            def start_s(folder: Path) -> Callable[[], float]:
                return lambda: self.run(folder, "--kept", "squared", "1").whole_s

            pairs = several(round_, start_s(full), start_s(empty))
            more = statistics.median(first - second for first, second in pairs)
            self.add(f"a start with {entries:,} entries", more, "s more", "< 0.1")

    def keeping(self, round_: int) -> None:
        """Tasks of a millisecond whose results are kept, beside the same that are not."""
        count = 10_000 // self.scale
        with tempfile.TemporaryDirectory() as place:

            def of(name: str) -> Callable[[], float]:
                folder = Path(place, name)
                folder.mkdir()
                return lambda: self.run(folder, "--new", name, str(count)).processor_s

            pairs = several(round_, of("kept"), of("not-kept"))
            more = statistics.median(kept - not_kept for kept, not_kept in pairs) / count * 1e6
            self.add("keeping a task of 1 ms", more, "µs of processor time", "≤ 30")

    def audit(self, round_: int) -> None:
        """No-op tasks with the interpreter's hook, beside the same without it."""
        count = 30_000 // self.scale
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)

            def of(audit: bool) -> Callable[[], float]:
                words = ("-j1", "--new", "--durable=never", "nothing", str(count))
                return lambda: self.run(folder, *words, audit=audit).processor_s

            pairs = several(round_, of(audit=True), of(audit=False))
            more = 100 * (statistics.median(with_it / without for with_it, without in pairs) - 1)
            self.add("the audit of no-op tasks", more, "% more processor time", "≤ 3")


def several(round_: int, first: Callable[[], T], second: Callable[[], T]) -> list[tuple[T, T]]:
    """What both give in five turns."""
    return [turns(round_ + number, first, second) for number in range(5)]


def turns(round_: int, first: Callable[[], T], second: Callable[[], T]) -> tuple[T, T]:
    """What both give; in every other round the second begins."""
    if round_ % 2:
        found = second()
        return first(), found
    return first(), second()


def ended(command: list[str], folder: Path, environment: dict[str, str]) -> Ran:
    """Runs a command there to its end; its last line is JSON. Raises SystemExit if it fails."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    whole_s = time.perf_counter() - began
    return Ran(json.loads(told.splitlines()[-1]), whole_s, usage.ru_utime + usage.ru_stime)


def fill(index: Path, entries: int) -> None:
    """Copies the one entry of an index N times, under other keys and at other places."""
    with sqlite3.connect(index) as base:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
        columns = [row[1] for row in base.execute("PRAGMA table_info(entry)")][1:]
        taken = ["randomblob(32)" if name == "key" else f"e.{name}" for name in columns]
        base.execute(
            f"INSERT INTO entry ({', '.join(columns)}) {numbers} SELECT {', '.join(taken)} "
            "FROM n, (SELECT * FROM entry WHERE body IS NOT NULL LIMIT 1) AS e",
            (entries,),
        )
        base.execute("INSERT INTO place SELECT randomblob(32), key FROM entry")
        base.execute("UPDATE total SET entries = (SELECT count(*) FROM entry)")
    base.close()


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| what | median | from | to | unit | goal |", "|---|---:|---:|---:|---|---|"]
    for row in rows:
        middle = statistics.median(row.figures)
        least, most = min(row.figures), max(row.figures)
        figures = " | ".join(f"{figure:.3g}" for figure in (middle, least, most))
        lines.append(f"| {row.what} | {figures} | {row.unit} | {row.goal} |")
    return "\n".join(lines)


def machine() -> str:
    """The processor, its cores and the kernel."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, Linux " + (
        platform.release()
    )


def main(words: list[str]) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="do a tenth of the work")
    parser.add_argument("ciel")
    parser.add_argument("python")
    given = parser.parse_args(words)
    ciel, python = (str(Path(path).absolute()) for path in (given.ciel, given.python))
    measures = Measures(ciel, python, 10 if given.quick else 1)
    told = subprocess.run([ciel, "--version"], capture_output=True, text=True, check=True)
    load = os.getloadavg()[0]
    for number in range(given.rounds):
        for measure in (
            measures.hits,
            measures.hashing,
            measures.large_index,
            measures.keeping,
            measures.audit,
        ):
            measure(number)
        print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
    print(table([*measures.rows.values()]))
    versions = ", ".join(f"{name} {version}" for name, version in measures.versions.items())
    measured = f"{machine()}; {given.rounds} rounds; load {load:.1f}"
    print(f"\n{told.stdout.strip()}, {versions}; {measured}.")


if __name__ == "__main__":
    main(sys.argv[1:])
