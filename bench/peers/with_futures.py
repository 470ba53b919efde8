"""The work of the comparison with the standard library's process pool.

Usage: python with_futures.py PROGRAM [NUMBER...]

A task of the pool cannot wait for tasks of its own, so the tree is left out; and the driver waits
for what a task needs before it submits it.
"""

from __future__ import annotations

import functools
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import work


def pool(cores: int) -> ProcessPoolExecutor:
    """A pool whose processes have started."""
    made = ProcessPoolExecutor(cores)
    list(made.map(work.nothing, range(200)))
    return made


def first(cores: int) -> None:
    """One task."""
    with ProcessPoolExecutor(cores) as made:
        work.report(made.submit(work.nothing, 1).result(), 0.0)


def wide(cores: int, count: int) -> None:
    """Every task submitted, then every result."""
    with pool(cores) as made:
        began = time.perf_counter()
        futures = [made.submit(work.nothing, number) for number in range(count)]
        answer = sum(future.result() for future in futures)
        work.report(answer, time.perf_counter() - began, count)


def batched(cores: int, count: int) -> None:
    """The same by `map`, with the best of four sizes of batches."""
    with pool(cores) as made:
        seconds = []
        for size in (10, 100, 1_000, 10_000):
            began = time.perf_counter()
            answer = sum(made.map(work.nothing, range(count), chunksize=size))
            seconds.append(time.perf_counter() - began)
        work.report(answer, min(seconds), count)


def chain(cores: int, count: int) -> None:
    """The driver waits before each submit."""
    with pool(cores) as made:
        began = time.perf_counter()
        before, last = 0, 1
        for _ in range(count):
            before, last = last, made.submit(work.add, before, last).result()
        work.report(last, time.perf_counter() - began, count)


def mapped(cores: int, function: Any, given: list[Any]) -> None:
    """One loop, in batches of one as `map` has them."""
    with pool(cores) as made:
        began = time.perf_counter()
        answer = sum(made.map(function, given))
        work.report(answer, time.perf_counter() - began, len(given))


def flat(cores: int, count: int, seconds: float) -> None:
    """Tasks that look at the clock."""
    mapped(cores, work.spin, [seconds] * count)


def computed(cores: int, count: int, seconds: float) -> None:
    """Tasks that only compute."""
    mapped(cores, work.compute, [work.rounds_of(seconds)] * count)


def rounds(cores: int, count: int, seconds: float) -> None:
    """One task for each core, then one that needs them all."""
    with pool(cores) as made:
        began = time.perf_counter()
        for _ in range(count):
            ones = [made.submit(work.spin, seconds) for _ in range(cores)]
            answer = made.submit(work.spun, *[one.result() for one in ones]).result()
        work.report(answer, time.perf_counter() - began, count)


def shell(cores: int, count: int) -> None:
    """Processes, started by tasks."""
    with pool(cores) as made:
        began = time.perf_counter()
        futures = [made.submit(subprocess.call, ["true"]) for _ in range(count)]
        answer = sum(future.result() for future in futures)
        work.report(answer, time.perf_counter() - began, count)


def kmeans(cores: int) -> None:
    """The points are made once in each process and found again by their part."""
    with pool(cores) as made:
        list(made.map(_assigned, range(work.PARTS), [work.first_centres()] * work.PARTS))

        def assign_all(centres: Any) -> list[Any]:
            return list(made.map(_assigned, range(work.PARTS), [centres] * work.PARTS))

        began = time.perf_counter()
        answer = work.iterate(assign_all)
        work.report(answer, time.perf_counter() - began, work.ITERATIONS)


_points = functools.cache(work.points)


def _assigned(part: int, centres: Any) -> Any:
    return work.assign(_points(part), centres)


def options(cores: int) -> None:
    """In waves: the blocks that need nothing of each other, wave after wave."""
    with pool(cores) as made:
        began = time.perf_counter()
        answer = float(in_waves(lambda pairs: list(made.map(_step, pairs)))[0][0])
        work.report(round(answer, 6), time.perf_counter() - began)


def _step(pair: tuple[Any, Any]) -> Any:
    return work.step_block(*pair)


class Waves:
    """`work.priced` where a task cannot need another: the calls, and the results found so far."""

    def __init__(self) -> None:
        """Nothing is called yet."""
        self.calls: list[tuple[int, int | None]] = []
        self.results: dict[int, Any] = {}

    def at(self, block: int) -> int:
        """A block to begin with; its number."""
        self.calls.append((-1, None))
        self.results[len(self.calls) - 1] = work.begin_block(block)
        return len(self.calls) - 1

    def step(self, this: int, following: int | None) -> int:
        """A call that needs the results of one or two others; its number."""
        self.calls.append((this, following))
        return len(self.calls) - 1

    def ready(self) -> list[int]:
        """Calls that have all they need and no result yet."""
        return [
            number
            for number, (this, following) in enumerate(self.calls)
            if number not in self.results
            and this in self.results
            and (following is None or following in self.results)
        ]


def in_waves(run: Callable[[list[Any]], list[Any]]) -> Any:
    """The result of `work.priced`, computed wave after wave of calls that are ready."""
    waves = Waves()
    wanted = work.priced(waves.at, waves.step)
    while ready := waves.ready():
        results = waves.results
        pairs = [waves.calls[number] for number in ready]
        given = [
            (results[this], None if following is None else results[following])
            for this, following in pairs
        ]
        results.update(zip(ready, run(given), strict=True))
    return waves.results[wanted]


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
