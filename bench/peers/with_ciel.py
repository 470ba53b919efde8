"""The work of the comparison as a job of Ciel.

Usage: ciel run with_ciel.py PROGRAM [NUMBER...]
"""

from __future__ import annotations

import time
from typing import Any

import ciel
import work

nothing = ciel.task(work.nothing)
add = ciel.task(work.add)
spin = ciel.task(work.spin)
compute = ciel.task(work.compute)
begin_block = ciel.task(work.begin_block)
step_block = ciel.task(work.step_block)
spun = ciel.task(work.spun)


@ciel.task
def fib(number: int) -> int:
    """Each call a task that waits for two."""
    if number < 2:
        return number
    first, second = fib.spawn(number - 1), fib.spawn(number - 2)
    return first.result() + second.result()


@ciel.task
def halved(count: int, seconds: float) -> int:
    """Half of the tasks each in two tasks, down to one."""
    if count == 1:
        return work.spin(seconds)
    one = halved.spawn(count // 2, seconds)
    two = halved.spawn(count - count // 2, seconds)
    return one.result() + two.result()


@ciel.task
def assigned(mine: Any, centres: Any) -> Any:
    """One part of the points."""
    return work.assign(mine, centres)


points = ciel.task(work.points)


WARM_S = 0.2
"""Seconds for which each core is busy at once before the clock starts."""


def warm(cores: int) -> None:
    """Has a worker started for each core, and the functions imported there, also those here."""
    ciel.gather([halved.spawn(1, WARM_S) for _ in range(cores)])
    ciel.gather([nothing.spawn(number) for number in range(200)])


def first(cores: int) -> None:
    """One task."""
    work.report(nothing.spawn(1).result(), 0.0)


def wide(cores: int, count: int) -> None:
    """Every task spawned, then every result."""
    warm(cores)
    began = time.perf_counter()
    futures = [nothing.spawn(number) for number in range(count)]
    answer = sum(future.result() for future in futures)
    work.report(answer, time.perf_counter() - began, count)


def chain(cores: int, count: int) -> None:
    """The tasks name the ones they need; the driver waits for the last."""
    warm(cores)
    began = time.perf_counter()
    before: Any = 0
    last: Any = 1
    for _ in range(count):
        before, last = last, add.spawn(before, last)
    work.report(last.result(), time.perf_counter() - began, count)


def tree(cores: int, number: int) -> None:
    """Tasks that spawn tasks and wait."""
    warm(cores)
    # The actors of Ray have their methods, too, before the clock starts.
    fib.spawn(1).result()
    began = time.perf_counter()
    answer = fib.spawn(number).result()
    work.report(answer, time.perf_counter() - began, work.fib_tasks(number))


def mapped(cores: int, task: Any, given: list[Any]) -> None:
    """A plain loop over the results of tasks."""
    warm(cores)
    began = time.perf_counter()
    answer = sum(ciel.map(task, given))
    work.report(answer, time.perf_counter() - began, len(given))


def flat(cores: int, count: int, seconds: float) -> None:
    """Tasks that look at the clock."""
    mapped(cores, spin, [seconds] * count)


def computed(cores: int, count: int, seconds: float) -> None:
    """Tasks that only compute."""
    mapped(cores, compute, [work.rounds_of(seconds)] * count)


def batched(cores: int, count: int) -> None:
    """Tasks without work."""
    mapped(cores, nothing, list(range(count)))


def halves(cores: int, count: int, seconds: float) -> None:
    """Tasks that spawn tasks and wait."""
    warm(cores)
    began = time.perf_counter()
    answer = halved.spawn(count, seconds).result()
    work.report(answer, time.perf_counter() - began, count)


def rounds(cores: int, count: int, seconds: float) -> None:
    """One task for each core, then one that needs them all."""
    warm(cores)
    began = time.perf_counter()
    answer: Any = None
    for _ in range(count):
        answer = spun.spawn(*[spin.spawn(seconds).later for _ in range(cores)]).result()
    work.report(answer, time.perf_counter() - began, count)


def shell(cores: int, count: int) -> None:
    """Processes."""
    began = time.perf_counter()
    # Each is run: equal commands would share one result.
    futures = [ciel.sh("true", pure=False) for _ in range(count)]
    answer = sum(len(future.result()) for future in futures)
    work.report(answer, time.perf_counter() - began, count)


def kmeans(cores: int) -> None:
    """The points are results of tasks, which the tasks of each iteration map."""
    mine = [points.spawn(part) for part in range(work.PARTS)]
    ciel.wait(mine)

    def assign_all(centres: Any) -> list[Any]:
        return ciel.gather([assigned.spawn(part, centres) for part in mine])

    began = time.perf_counter()
    answer = work.iterate(assign_all)
    work.report(answer, time.perf_counter() - began, work.ITERATIONS)


def options(cores: int) -> None:
    """All tasks spawned at once; each names the blocks that it needs."""
    warm(cores)
    began = time.perf_counter()
    answer = work.priced(begin_block.spawn, step_block.spawn).result()[0][0]
    work.report(round(float(answer), 6), time.perf_counter() - began)


PROGRAMS: work.Programs = {
    "first": first,
    "wide": wide,
    "batched": batched,
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


def main(*words: str) -> None:
    """Runs one of them."""
    work.main(PROGRAMS)
