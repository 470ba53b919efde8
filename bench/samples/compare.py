"""Runs the example `samples` in Ciel and in Snakemake: a failure, a repair, edits.

Usage: python3 compare.py [--cores N] [--rounds N] CIEL SNAKEMAKE

CIEL and SNAKEMAKE are the commands. Each round begins in two new folders, and the systems take
turns step by step. After each step that ends well both results must be equal. Prints a table in
Markdown: of each step the tasks that ran, and the median of the seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent.parent / "examples" / "samples"

STEP_S_MAX = 600.0
"""A step that takes longer has failed."""

TALK_MAX = 1000
"""Characters that are shown of what a system said whose step ended otherwise than expected."""


@dataclass(frozen=True)
class Step:
    """A change of the folder, and how the run after it ends."""

    title: str
    change: Callable[[Path], object]
    ends_well: bool = True


@dataclass(frozen=True)
class Ran:
    """What a step ran: the tasks that ended well, the seconds, the result if there is one, and the
    last words on standard error.
    """

    tasks: int
    seconds: float
    result: dict[str, int] | None
    talk: str


@dataclass
class Row:
    """A step in all rounds."""

    tasks: set[int] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)


class Failed(Exception):
    """A step that ended otherwise than it should."""


def main(words: list[str]) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("ciel", type=Path)
    parser.add_argument("snakemake", type=Path)
    given = parser.parse_args(words)
    systems = {
        "Ciel": Ciel(given.ciel, given.cores),
        "Snakemake": Snakemake(given.snakemake, given.cores),
    }
    load = os.getloadavg()[0]
    rows = {(name, step.title): Row() for name in systems for step in STEPS}
    for number in range(given.rounds):
        one_round(systems, rows, starts_with=number % 2)
    versions = ", ".join(f"{name} {system.version()}" for name, system in systems.items())
    print(table(list(systems), rows))
    measured = f"{given.cores} cores, {given.rounds} rounds"
    print(f"\n{measured}, {versions}; load at the start {load:.1f}.")


def one_round(
    systems: dict[str, Ciel | Snakemake], rows: dict[tuple[str, str], Row], starts_with: int
) -> None:
    """All steps once, each by both systems."""
    order = list(systems)[starts_with:] + list(systems)[:starts_with]
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place, name) for name in systems}
        for folder in folders.values():
            folder.mkdir()
            for path in (EXAMPLE / "samples.py", EXAMPLE / "make_samples.py", HERE / "Snakefile"):
                shutil.copy(path, folder)
        for step in STEPS:
            results = []
            for name in order:
                step.change(folders[name])
                ran = systems[name].run(folders[name])
                if (ran.result is not None) != step.ends_well:
                    raise Failed(f"{name} ended otherwise than expected: {step.title}\n{ran.talk}")
                row = rows[name, step.title]
                row.tasks.add(ran.tasks)
                row.seconds.append(ran.seconds)
                results.append(ran.result)
            if results[0] != results[1]:
                raise Failed(f"the results differ: {step.title}: {results}")


def ended(command: list[str], folder: Path) -> tuple[subprocess.CompletedProcess[str], float]:
    """Runs a command there; how it ended, and after how many seconds."""
    began = time.perf_counter()
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=STEP_S_MAX, check=False
    )
    return process, time.perf_counter() - began


def version_of(command: str) -> str:
    """What a command says of its version."""
    told = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    return told.stdout.strip()


class Ciel:
    """The command `ciel`, which takes kept results in every run."""

    def __init__(self, command: Path, cores: int) -> None:
        self.command, self.cores = str(command), cores

    def version(self) -> str:
        """Its version."""
        return version_of(self.command).split()[-1]

    def run(self, folder: Path) -> Ran:
        """Runs the pipeline to its end, whatever fails."""
        words = [self.command, "run", f"-j{self.cores}", "--kept", "--keep-going", "--json"]
        words.append("samples.py")
        process, seconds = ended(words, folder)
        last = json.loads(process.stderr.splitlines()[-1])
        # The root is a task, too.
        counts, well = last["tasks"], process.returncode == 0
        tasks = counts["finished"] - counts["kept"] - (1 if well else 0)
        result = json.loads(process.stdout.splitlines()[-1]) if well else None
        return Ran(tasks, seconds, result, process.stderr[-TALK_MAX:])


class Snakemake:
    """The command `snakemake`."""

    def __init__(self, command: Path, cores: int) -> None:
        self.command, self.cores = str(command), cores

    def version(self) -> str:
        """Its version."""
        return version_of(self.command)

    def run(self, folder: Path) -> Ran:
        """Runs the pipeline to its end, whatever fails."""
        words = [self.command, f"--cores={self.cores}", "--keep-going", "--nocolor"]
        process, seconds = ended(words, folder)
        tasks = len(re.findall(r"^Finished jobid", process.stderr + process.stdout, re.MULTILINE))
        joined = folder / "joined.json"
        result = json.loads(joined.read_text()) if process.returncode == 0 else None
        return Ran(tasks, seconds, result, process.stderr[-TALK_MAX:])


def make_samples(*words: str) -> Callable[[Path], object]:
    """A change that makes the samples."""
    command = [sys.executable, "make_samples.py", *words, "data"]
    return lambda folder: subprocess.run(command, cwd=folder, check=True)


def edit(before: str, after: str) -> Callable[[Path], object]:
    """A change of both programs."""

    def change(folder: Path) -> None:
        for name in ("samples.py", "Snakefile"):
            path = folder / name
            text = path.read_text()
            if before not in text:
                raise Failed(f"{name} has no {before!r}")
            path.write_text(text.replace(before, after, 1))

    return change


def touch(folder: Path) -> None:
    """A change of times alone."""
    for sample in sorted((folder / "data").glob("*.txt"))[:10]:
        sample.touch()


STEPS = [
    Step("the last sample is damaged", make_samples(), ends_well=False),
    Step("it is repaired", make_samples("--repair")),
    Step("nothing has changed", lambda folder: None),
    Step("`FREQUENT` is 11", edit("FREQUENT = 12", "FREQUENT = 11")),
    Step("a comment", edit('letters = ""', 'letters = ""  # none yet')),
    Step("ten samples are written again, as they were", touch),
    Step("`FREQUENT` is 12 as before", edit("FREQUENT = 11", "FREQUENT = 12")),
]


def table(systems: list[str], rows: dict[tuple[str, str], Row]) -> str:
    """The rows in Markdown."""
    heads = "".join(f" {name} ran | s |" for name in systems)
    lines = [f"| what was done before the run |{heads}", "|---|" + "---:|---:|" * len(systems)]
    for step in STEPS:
        cells = []
        for name in systems:
            row = rows[name, step.title]
            ran = " or ".join(map(str, sorted(row.tasks)))
            cells.append(f" {ran} | {statistics.median(row.seconds):.2f} |")
        lines.append(f"| {step.title} |{''.join(cells)}")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
