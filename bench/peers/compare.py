"""Compares Ciel with what people use instead, on the same work, in turn.

Usage: python compare.py [--rounds N] [--only WORKLOAD,...] [--json FILE] PEERS

PEERS is the virtual environment that `make peers` sets up. Every round runs every system once, each
round beginning with another one; every answer is checked. Prints a table in Markdown: the median of
the rounds and, in parentheses, the least and the greatest. Read next: `systems.py`, `plot.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from systems import ROOT, WORKLOADS, Report, System, Workload, systems

RUN_S_MAX = 300.0
"""A run that takes longer has failed."""

VERSIONS = """
import importlib.metadata, json, sys
print(json.dumps({name: importlib.metadata.version(name) for name in sys.argv[1:]}))
"""
"""What a peer's Python runs to name the versions of its packages."""

TOLERANCE = 1e-5
"""Sums of floating-point numbers may differ by so much."""


@dataclass
class Row:
    """The figures of one workload: of each system, one for each round."""

    workload: str
    title: str
    unit: str
    more_is_better: bool
    figures: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def environment() -> dict[str, str]:
    """One thread for each process: what the systems run in parallel shall be their tasks."""
    single = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(single, "1"), "RAY_DEDUP_LOGS": "0"}


class Failed(Exception):
    """A run that gave no answer, or a wrong one."""


def run(system: System, workload: Workload, cores: int) -> float:
    """One run in a folder of its own; the figure. Raises Failed with the end of what it said."""
    numbers = system.sizes[workload.name]
    told = [f"{number:f}" if isinstance(number, float) else str(number) for number in numbers]
    words = [*system.command(workload.program, cores), str(cores), *told]
    variables = environment()
    if system.name == "OpenMP":
        variables.pop("OMP_NUM_THREADS")
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        try:
            ended = subprocess.run(
                words,
                cwd=folder,
                env=variables,
                capture_output=True,
                text=True,
                timeout=RUN_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"no end after {RUN_S_MAX:.0f} s") from None
        whole = time.perf_counter() - began
    last = ended.stdout.strip().rpartition("\n")[2]
    if ended.returncode != 0 or not last.startswith("{"):
        raise Failed(f"status {ended.returncode}: {ended.stderr.strip()[-300:]}")
    report = Report(**json.loads(last), whole=whole)
    wanted = workload.answer(numbers, cores)
    if abs(report.answer - wanted) > TOLERANCE * max(1.0, abs(wanted)):
        raise Failed(f"answered {report.answer} instead of {wanted}")
    return workload.figure(report, numbers)


def in_turn(every: list[System], rounds: int) -> Iterator[System]:
    """Each system once in each round, each round beginning with the next one."""
    for number in range(rounds):
        first = number % len(every)
        yield from every[first:] + every[:first]


def measure(workload: Workload, every: list[System], rounds: int, cores: int) -> Row:
    """All rounds of one workload. A system that fails once runs no more, and is named."""
    row = Row(workload.name, workload.title, workload.unit, workload.more_is_better)
    able = [s for s in every if workload.name not in s.left_out and not s.missing]
    for system in in_turn(able, rounds):
        if system.name in row.failures:
            continue
        print(f"{workload.name}: {system.name}", file=sys.stderr)
        try:
            figure = run(system, workload, cores)
        except Failed as failed:
            row.failures[system.name] = str(failed)
            row.figures.pop(system.name, None)
            print(f"{workload.name}: {system.name} failed: {failed}", file=sys.stderr)
        else:
            row.figures.setdefault(system.name, []).append(figure)
    return row


def shown(figures: list[float]) -> str:
    """The median, the least and the greatest, with three digits."""
    median, least, most = (
        f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
        for value in (statistics.median(figures), min(figures), max(figures))
    )
    return f"{median} ({least}–{most})"


def table(rows: list[Row], names: list[str]) -> Iterator[str]:
    """The lines of a table in Markdown: a row for each system, a column for each workload."""
    yield "| | " + " | ".join(f"{row.title}, {row.unit}" for row in rows) + " |"
    yield "|---" * (len(rows) + 1) + "|"
    for name in names:
        cells = [
            shown(row.figures[name])
            if name in row.figures
            else "failed"
            if name in row.failures
            else "–"
            for row in rows
        ]
        yield f"| {name} | " + " | ".join(cells) + " |"


def versions(python: Path, every: list[System]) -> dict[str, str]:
    """Versions of the peers' packages, as their own Python sees them."""
    names = sorted({package for system in every for package in system.packages})
    found = subprocess.run(
        [str(python), "-c", VERSIONS, *names], capture_output=True, text=True, check=True
    )
    told: dict[str, str] = json.loads(found.stdout)
    return told


def machine() -> dict[str, str]:
    """The machine, the commit and the load before the first run."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "cores": str(os.cpu_count()),
        "processor": model,
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "commit": commit.stdout.strip(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def write(told: dict[str, str], rows: list[Row], target: Path) -> None:
    """Writes the figures so far: a run that is ended loses one workload at most."""
    written = {"machine": told, "rows": [asdict(row) for row in rows]}
    target.write_text(json.dumps(written, indent=1, ensure_ascii=False), encoding="utf-8")


def main() -> int:
    """Measures, and prints the table; 1 if a system failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peers", type=Path, help="the virtual environment with the peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="names of workloads, with commas")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args()
    wanted = set(filter(None, given.only.split(",")))
    unknown = wanted - {workload.name for workload in WORKLOADS}
    if unknown:
        parser.error(f"unknown workloads: {', '.join(sorted(unknown))}")
    every, cores = systems(given.peers.resolve()), os.cpu_count() or 1
    told = {**machine(), **versions(given.peers / "bin" / "python", every)}
    for system in every:
        if system.missing:
            print(f"skipped: {system.name}: {system.missing}", file=sys.stderr)
    chosen = [w for w in WORKLOADS if not wanted or w.name in wanted]
    rows: list[Row] = []
    for workload in chosen:
        rows.append(measure(workload, every, given.rounds, cores))
        told["load at the end"] = f"{os.getloadavg()[0]:.2f}"
        if given.json:
            write(told, rows, given.json)
    print("; ".join(f"{name} {value}" for name, value in told.items()), end="\n\n")
    print("\n".join(table(rows, [system.name for system in every])))
    return 1 if any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
