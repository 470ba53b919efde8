"""The work of the comparison with joblib and its own processes, which batch by themselves.

Usage: python with_joblib.py PROGRAM [NUMBER...]

A task cannot need another, so the chain is a call for each task and pricing goes in waves.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import joblib
import work
from with_futures import in_waves


def first(cores: int) -> None:
    """One task."""
    work.report(joblib.Parallel(cores)([joblib.delayed(work.nothing)(1)])[0], 0.0)


def wide(cores: int, count: int) -> None:
    """One loop, one task at a time."""
    _wide(cores, count, 1)


def batched(cores: int, count: int) -> None:
    """One loop, in batches whose size joblib chooses."""
    _wide(cores, count, "auto")


def _wide(cores: int, count: int, size: Any) -> None:
    with joblib.Parallel(cores, batch_size=size) as run:
        run(joblib.delayed(work.nothing)(number) for number in range(200))
        began = time.perf_counter()
        answer = sum(run(joblib.delayed(work.nothing)(number) for number in range(count)))
        work.report(answer, time.perf_counter() - began, count)


def chain(cores: int, count: int) -> None:
    """A call for each task."""
    with joblib.Parallel(cores) as run:
        run(joblib.delayed(work.nothing)(number) for number in range(200))
        began = time.perf_counter()
        before, last = 0, 1
        for _ in range(count):
            before, last = last, run([joblib.delayed(work.add)(before, last)])[0]
        work.report(last, time.perf_counter() - began, count)


def mapped(cores: int, function: Any, given: list[Any]) -> None:
    """One loop, in batches whose size joblib chooses."""
    with joblib.Parallel(cores) as run:
        run(joblib.delayed(work.nothing)(number) for number in range(200))
        began = time.perf_counter()
        answer = sum(run(joblib.delayed(function)(one) for one in given))
        work.report(answer, time.perf_counter() - began, len(given))


def flat(cores: int, count: int, seconds: float) -> None:
    """Tasks that look at the clock."""
    mapped(cores, work.spin, [seconds] * count)


def computed(cores: int, count: int, seconds: float) -> None:
    """Tasks that only compute."""
    mapped(cores, work.compute, [work.rounds_of(seconds)] * count)


def rounds(cores: int, count: int, seconds: float) -> None:
    """One task for each core, then one that needs them all."""
    with joblib.Parallel(cores, batch_size=1) as run:
        run(joblib.delayed(work.nothing)(number) for number in range(200))
        began = time.perf_counter()
        for _ in range(count):
            ones = run(joblib.delayed(work.spin)(seconds) for _ in range(cores))
            answer = run([joblib.delayed(work.spun)(*ones)])[0]
        work.report(answer, time.perf_counter() - began, count)


def shell(cores: int, count: int) -> None:
    """Processes, started by tasks."""
    with joblib.Parallel(cores) as run:
        run(joblib.delayed(work.nothing)(number) for number in range(200))
        began = time.perf_counter()
        answer = sum(run(joblib.delayed(subprocess.call)(["true"]) for _ in range(count)))
        work.report(answer, time.perf_counter() - began, count)


def kmeans(cores: int) -> None:
    """Large arrays are mapped by all processes."""
    mine = [work.points(part) for part in range(work.PARTS)]
    with joblib.Parallel(cores) as run:

        def assign_all(centres: Any) -> list[Any]:
            return list(run(joblib.delayed(work.assign)(part, centres) for part in mine))

        assign_all(work.first_centres())
        began = time.perf_counter()
        answer = work.iterate(assign_all)
        work.report(answer, time.perf_counter() - began, work.ITERATIONS)


def options(cores: int) -> None:
    """In waves."""
    with joblib.Parallel(cores) as run:
        run(joblib.delayed(work.nothing)(number) for number in range(200))
        began = time.perf_counter()
        answer = in_waves(
            lambda pairs: list(run(joblib.delayed(work.step_block)(*pair) for pair in pairs))
        )[0][0]
        work.report(round(float(answer), 6), time.perf_counter() - began)


PROGRAMS: work.Programs = {
    "first": first,
    "wide": wide,
    "batched": batched,
    "chain": chain,
    "flat": flat,
    "computed": computed,
    "rounds": rounds,
    "shell": shell,
    "kmeans": kmeans,
    "options": options,
}

if __name__ == "__main__":
    work.main(PROGRAMS)
