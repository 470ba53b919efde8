"""The work of the comparison with Dask distributed, one process of one thread for each core.

Usage: python with_dask.py PROGRAM [NUMBER...]
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import work
from distributed import Client, LocalCluster, get_client, secede, wait


@contextmanager
def client(cores: int) -> Iterator[Any]:
    """A client of a cluster of its own."""
    dask.config.set({"distributed.worker.daemon": False})
    with (
        LocalCluster(
            n_workers=cores, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as made,
    ):
        yield made


def warm(made: Any) -> None:
    """Has every worker run something."""
    made.gather(made.map(work.nothing, range(200), pure=False))


def first(cores: int) -> None:
    """One task."""
    with client(cores) as made:
        work.report(made.submit(work.nothing, 1).result(), 0.0)


def wide(cores: int, count: int) -> None:
    """Every task submitted, then every result."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        answer = sum(made.gather(made.map(work.nothing, range(count), pure=False)))
        work.report(answer, time.perf_counter() - began, count)


def chain(cores: int, count: int) -> None:
    """The tasks name the ones they need; the driver waits for the last."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        before: Any = 0
        last: Any = 1
        for _ in range(count):
            before, last = last, made.submit(work.add, before, last, pure=False)
        work.report(last.result(), time.perf_counter() - began, count)


def _fib(number: int) -> int:
    if number < 2:
        return number
    mine = get_client()
    below = [mine.submit(_fib, number - less, pure=False) for less in (1, 2)]
    secede()
    return sum(mine.gather(below))


def tree(cores: int, number: int) -> None:
    """Tasks that spawn tasks and wait."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        answer = made.submit(_fib, number, pure=False).result()
        work.report(answer, time.perf_counter() - began, work.fib_tasks(number))


def mapped(cores: int, function: Any, given: list[Any]) -> None:
    """Every task submitted, then every result."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        answer = sum(made.gather(made.map(function, given, pure=False)))
        work.report(answer, time.perf_counter() - began, len(given))


def flat(cores: int, count: int, seconds: float) -> None:
    """Tasks that look at the clock."""
    mapped(cores, work.spin, [seconds] * count)


def computed(cores: int, count: int, seconds: float) -> None:
    """Tasks that only compute."""
    mapped(cores, work.compute, [work.rounds_of(seconds)] * count)


def _halves(count: int, seconds: float) -> int:
    if count == 1:
        return work.spin(seconds)
    mine = get_client()
    parts = (count // 2, count - count // 2)
    below = [mine.submit(_halves, part, seconds, pure=False) for part in parts]
    secede()
    return sum(mine.gather(below))


def halves(cores: int, count: int, seconds: float) -> None:
    """Tasks that spawn tasks and wait."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        answer = made.submit(_halves, count, seconds, pure=False).result()
        work.report(answer, time.perf_counter() - began, count)


def rounds(cores: int, count: int, seconds: float) -> None:
    """One task for each core, then one that needs them all."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        for _ in range(count):
            ones = [made.submit(work.spin, seconds, pure=False) for _ in range(cores)]
            answer = made.submit(work.spun, *ones, pure=False).result()
        work.report(answer, time.perf_counter() - began, count)


def shell(cores: int, count: int) -> None:
    """Processes, started by tasks."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        calls = made.map(subprocess.call, [["true"]] * count, pure=False)
        work.report(sum(made.gather(calls)), time.perf_counter() - began, count)


def kmeans(cores: int) -> None:
    """The points are results that the workers keep."""
    with client(cores) as made:
        mine = made.map(work.points, range(work.PARTS))
        wait(mine)

        def assign_all(centres: Any) -> list[Any]:
            given = made.scatter(centres, broadcast=True)
            return list(
                made.gather([made.submit(work.assign, part, given, pure=False) for part in mine])
            )

        began = time.perf_counter()
        answer = work.iterate(assign_all)
        work.report(answer, time.perf_counter() - began, work.ITERATIONS)


def options(cores: int) -> None:
    """All tasks submitted at once; each names the blocks that it needs."""
    with client(cores) as made:
        warm(made)
        began = time.perf_counter()
        found = work.priced(
            lambda block: made.submit(work.begin_block, block, pure=False),
            lambda this, after: made.submit(work.step_block, this, after, pure=False),
        ).result()
        work.report(round(float(found[0][0]), 6), time.perf_counter() - began)


PROGRAMS: work.Programs = {
    "first": first,
    "wide": wide,
    "chain": chain,
    "tree": tree,
    "flat": flat,
    "computed": computed,
    "halves": halves,
    "rounds": rounds,
    "shell": shell,
    "kmeans": kmeans,
    "options": options,
}

if __name__ == "__main__":
    work.main(PROGRAMS)
