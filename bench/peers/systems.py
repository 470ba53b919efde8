"""What is compared: the workloads, the systems, and how much of the work each one gets.

A system that needs a millisecond for a task gets fewer tasks than one that needs a microsecond, so
that every run takes about a second; figures are per task, so they can be compared. Read next:
`compare.py`, which runs them.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import work

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

Numbers = tuple[float, ...]
"""What a program gets after the number of cores: counts, and seconds with a decimal point."""


@dataclass(frozen=True)
class Report:
    """What a program printed, and the seconds of its whole process."""

    answer: float
    seconds: float
    tasks: int
    whole: float


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    `answer` computes from numbers and cores what every system must find; `figure` is what is
    compared; with `more_is_better` it is a rate.
    """

    name: str
    program: str
    title: str
    unit: str
    answer: Callable[[Numbers, int], float]
    figure: Callable[[Report, Numbers], float]
    more_is_better: bool = False


def _rate(report: Report, numbers: Numbers) -> float:
    return report.tasks / report.seconds


def _microseconds(report: Report, numbers: Numbers) -> float:
    return report.seconds / report.tasks * 1e6


def _to_ideal(report: Report, numbers: Numbers) -> float:
    return report.seconds / (numbers[0] * numbers[1])


def _each(report: Report, numbers: Numbers) -> float:
    return report.seconds / report.tasks


def _efficiency(report: Report, numbers: Numbers) -> float:
    return numbers[0] * numbers[1] / (os.cpu_count() or 1) / report.seconds


@functools.cache
def _serial_kmeans(numbers: Numbers, cores: int) -> float:
    mine = [work.points(part) for part in range(work.PARTS)]
    return work.iterate(lambda centres: [work.assign(part, centres) for part in mine])


@functools.cache
def _serial_price(numbers: Numbers, cores: int) -> float:
    return round(float(work.priced(work.begin_block, work.step_block)[0][0]), 6)


WORKLOADS = [
    Workload(
        "first",
        "first",
        "first result from the start of the process",
        "s",
        lambda numbers, cores: 1,
        lambda report, numbers: report.whole,
    ),
    Workload(
        "chain",
        "chain",
        "chain, each task needs the two before it",
        "µs/task",
        lambda numbers, cores: work.chain_answer(int(numbers[0])),
        _microseconds,
    ),
    Workload(
        "wide",
        "wide",
        "no-op tasks, spawned one by one",
        "tasks/s",
        lambda numbers, cores: numbers[0] * (numbers[0] - 1) / 2,
        _rate,
        True,
    ),
    Workload(
        "batched",
        "batched",
        "no-op tasks, in the best batches the system offers",
        "tasks/s",
        lambda numbers, cores: numbers[0] * (numbers[0] - 1) / 2,
        _rate,
        True,
    ),
    Workload(
        "tree",
        "tree",
        "tree of tasks that spawn two and wait",
        "tasks/s",
        lambda numbers, cores: work.fib(int(numbers[0])),
        _rate,
        True,
    ),
    Workload(
        "rounds10",
        "rounds",
        "one task of 10 ms per core, then one: to the ideal",
        "ratio",
        lambda numbers, cores: cores,
        _to_ideal,
    ),
    Workload(
        "rounds1",
        "rounds",
        "the same with tasks of 1 ms",
        "ratio",
        lambda numbers, cores: cores,
        _to_ideal,
    ),
    Workload(
        "rounds01",
        "rounds",
        "the same with tasks of 100 µs",
        "ratio",
        lambda numbers, cores: cores,
        _to_ideal,
    ),
    Workload(
        "actors",
        "tree",
        "such a tree of the same size for each, fib(18)",
        "tasks/s",
        lambda numbers, cores: work.fib(int(numbers[0])),
        _rate,
        True,
    ),
    Workload(
        "shell",
        "shell",
        "commands: `true`",
        "tasks/s",
        lambda numbers, cores: 0,
        _rate,
        True,
    ),
    Workload(
        "kmeans",
        "kmeans",
        f"k-means, {work.POINTS:,} × {work.DIMENSIONS}, {work.CLUSTERS} clusters: an iteration",
        "s",
        _serial_kmeans,
        _each,
    ),
    Workload(
        "options",
        "options",
        f"binomial option pricing, {work.STEPS:,} steps in blocks of {work.BLOCK:,}",
        "s",
        _serial_price,
        lambda report, numbers: report.seconds,
    ),
]

GRAINS = {"10us": 10e-6, "100us": 100e-6, "1ms": 1e-3, "10ms": 10e-3, "100ms": 100e-3}
"""Seconds of work in a task, by what a workload of that grain is called."""

BUSY_S = 2.0
"""Work in all tasks of a run together, unless they are too many."""

SHAPES = {
    "flat": "tasks spawned by one",
    "computed": "tasks that only compute, spawned by one",
    "halves": "tasks that halve the work",
}

for _shape, _title in SHAPES.items():
    for _grain in GRAINS:
        WORKLOADS.append(
            Workload(
                f"{_shape}-{_grain}",
                _shape,
                f"{_title}, {_grain.replace('us', ' µs').replace('ms', ' ms')} each",
                "efficiency",
                lambda numbers, cores: numbers[0],
                _efficiency,
                True,
            )
        )


def _grains(tasks_max: int) -> dict[str, Numbers]:
    return {
        f"{shape}-{grain}": (min(tasks_max, round(BUSY_S / seconds)), seconds)
        for shape in SHAPES
        for grain, seconds in GRAINS.items()
    }


SLOW: dict[str, Numbers] = {
    **_grains(2_000),
    "first": (),
    "chain": (500,),
    "wide": (2_000,),
    "batched": (100_000,),
    "tree": (12,),
    "rounds10": (50, 0.010),
    "rounds1": (200, 0.001),
    "rounds01": (500, 0.0001),
    "actors": (18,),
    "shell": (500,),
    "kmeans": (),
    "options": (),
}
"""For systems that need about a millisecond for a task."""

QUICK: dict[str, Numbers] = {
    **SLOW,
    **_grains(50_000),
    "chain": (5_000,),
    "wide": (20_000,),
    "tree": (18,),
    "rounds10": (100, 0.010),
    "rounds1": (500, 0.001),
    "rounds01": (2_000, 0.0001),
    "shell": (2_000,),
}
"""For systems that need some ten microseconds."""

LIMIT: dict[str, Numbers] = {
    **QUICK,
    "chain": (100_000,),
    "wide": (1_000_000,),
    "tree": (27,),
}
"""For threads of one process."""


@dataclass(frozen=True)
class System:
    """One column: how its programs are started, and what it gets to do.

    `missing` is the reason why it cannot run here, or empty. `packages` are the distributions
    whose versions are told. `left_out` has workloads that it has no form for.
    """

    name: str
    command: Callable[[str, int], list[str]]
    sizes: dict[str, Numbers]
    packages: tuple[str, ...] = ()
    left_out: frozenset[str] = field(default_factory=frozenset)
    missing: str = ""
    is_limit: bool = False


def _python(place: Path, file: str) -> Callable[[str, int], list[str]]:
    return lambda program, cores: [str(place / "bin" / "python"), str(HERE / file), program]


def _commands(place: Path, tool: str) -> Callable[[str, int], list[str]]:
    file = str(HERE / "with_commands.py")
    return lambda program, cores: [str(place / "bin" / "python"), file, tool, program]


def _ciel(program: str, cores: int) -> list[str]:
    command = str(Path(sys.executable).with_name("ciel"))
    job = str(HERE / "with_ciel.py")
    return [command, "run", "--new", "--quiet", f"-j{cores}", job, program]


def _mpi(place: Path) -> Callable[[str, int], list[str]]:
    launcher = [str(place / "bin" / "mpiexec"), "--allow-run-as-root", "--oversubscribe"]
    program = [str(place / "bin" / "python"), str(HERE / "with_mpi.py")]
    return lambda name, cores: [*launcher, "-n", str(cores), *program, name]


def _only(*names: str) -> frozenset[str]:
    return frozenset(workload.name for workload in WORKLOADS) - frozenset(names)


def systems(place: Path) -> list[System]:
    """All of them; peers are installed at `place`."""
    rayon = ROOT / "target" / "release" / "examples" / "limits"
    openmp = place / "limits"
    in_process = _only("chain", "wide", "tree", "rounds10", "rounds1", "rounds01")
    no_parallel = "" if shutil.which("parallel") else "GNU parallel is not installed"
    shell = _only("shell")
    no_trees = {"tree", "actors", *(f"halves-{grain}" for grain in GRAINS)}
    return [
        System("Ciel", _ciel, QUICK),
        System(
            "concurrent.futures", _python(place, "with_futures.py"), QUICK, (), frozenset(no_trees)
        ),
        System(
            "joblib",
            _python(place, "with_joblib.py"),
            {**SLOW, **_grains(50_000)},
            ("joblib",),
            frozenset(no_trees),
        ),
        System("Ray", _python(place, "with_ray.py"), SLOW, ("ray",), frozenset({"batched"})),
        System(
            "Dask",
            _python(place, "with_dask.py"),
            SLOW,
            ("distributed",),
            frozenset({"batched", "actors"}),
        ),
        System(
            "HyperQueue", _commands(place, "hyperqueue"), SLOW, ("hyperqueue",), shell
        ),
        System("GNU parallel", _commands(place, "parallel"), SLOW, (), shell, no_parallel),
        System("xargs -P", _commands(place, "xargs"), QUICK, (), shell),
        System(
            "MPI",
            _mpi(place),
            LIMIT,
            ("mpi4py", "openmpi"),
            _only("first", "chain", "rounds10", "rounds1", "rounds01", "kmeans"),
            is_limit=True,
        ),
        System(
            "rayon", lambda program, cores: [str(rayon), program], LIMIT, (), in_process,
            "" if rayon.exists() else f"{rayon} was not built", True,
        ),
        System(
            "OpenMP", lambda program, cores: [str(openmp), program], LIMIT, (), in_process,
            "" if openmp.exists() else f"{openmp} was not built", True,
        ),
        System("posix_spawn", _commands(place, "posix_spawn"), QUICK, (), shell, is_limit=True),
    ]
