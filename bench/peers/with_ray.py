"""The work of the comparison with Ray.

Usage: python with_ray.py PROGRAM [NUMBER...]

The tree is of actors' async methods, the quickest form of tasks that wait for tasks; a blocking
`get` in each task starts a process for each level.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

import ray
import work


def begin(cores: int) -> None:
    """Starts Ray for this program only."""
    ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False, logging_level="error")


def warm(nothing: Any) -> None:
    """Has the workers started."""
    ray.get([nothing.remote(number) for number in range(200)])


def first(cores: int) -> None:
    """One task."""
    begin(cores)
    work.report(ray.get(ray.remote(work.nothing).remote(1)), 0.0)


def wide(cores: int, count: int) -> None:
    """Every task submitted, then every result."""
    begin(cores)
    nothing = ray.remote(work.nothing)
    warm(nothing)
    began = time.perf_counter()
    answer = sum(ray.get([nothing.remote(number) for number in range(count)]))
    work.report(answer, time.perf_counter() - began, count)


def chain(cores: int, count: int) -> None:
    """The tasks name the ones they need; the driver waits for the last."""
    begin(cores)
    add = ray.remote(work.add)
    warm(ray.remote(work.nothing))
    began = time.perf_counter()
    before: Any = 0
    last: Any = 1
    for _ in range(count):
        before, last = last, add.remote(before, last)
    work.report(ray.get(last), time.perf_counter() - began, count)


class Tree:
    """An actor for each core, whose methods wait for methods of the others."""

    def __init__(self) -> None:
        """Knows no other yet."""
        self.all: list[Any] = []
        self.next = 0

    def meet(self, everybody: list[Any]) -> None:
        """Learns of the others."""
        self.all = everybody

    def pick(self) -> Any:
        """The actors in turn."""
        self.next = (self.next + 1) % len(self.all)
        return self.all[self.next]

    async def fib(self, number: int) -> int:
        """Each call a method of some actor."""
        if number < 2:
            return number
        one, two = self.pick().fib.remote(number - 1), self.pick().fib.remote(number - 2)
        return int(await one) + int(await two)

    async def halved(self, count: int, seconds: float) -> int:
        """Half of the tasks each in two methods, down to one."""
        if count == 1:
            return work.spin(seconds)
        one = self.pick().halved.remote(count // 2, seconds)
        two = self.pick().halved.remote(count - count // 2, seconds)
        return int(await one) + int(await two)


def trees(cores: int) -> list[Any]:
    """Actors that know one another."""
    begin(cores)
    actor = ray.remote(Tree).options(max_concurrency=100_000)
    actors = [actor.remote() for _ in range(cores)]
    ray.get([one.meet.remote(actors) for one in actors])
    return actors


def tree(cores: int, number: int) -> None:
    """Tasks that spawn tasks and wait."""
    actors = trees(cores)
    began = time.perf_counter()
    answer = ray.get(actors[0].fib.remote(number))
    work.report(answer, time.perf_counter() - began, work.fib_tasks(number))


def mapped(cores: int, function: Any, given: list[Any]) -> None:
    """Every task submitted, then every result."""
    begin(cores)
    task = ray.remote(function)
    warm(ray.remote(work.nothing))
    began = time.perf_counter()
    answer = sum(ray.get([task.remote(one) for one in given]))
    work.report(answer, time.perf_counter() - began, len(given))


def flat(cores: int, count: int, seconds: float) -> None:
    """Tasks that look at the clock."""
    mapped(cores, work.spin, [seconds] * count)


def computed(cores: int, count: int, seconds: float) -> None:
    """Tasks that only compute."""
    mapped(cores, work.compute, [work.rounds_of(seconds)] * count)


def halves(cores: int, count: int, seconds: float) -> None:
    """Tasks that spawn tasks and wait."""
    actors = trees(cores)
    began = time.perf_counter()
    answer = ray.get(actors[0].halved.remote(count, seconds))
    work.report(answer, time.perf_counter() - began, count)


def rounds(cores: int, count: int, seconds: float) -> None:
    """One task for each core, then one that needs them all."""
    begin(cores)
    spin, spun = ray.remote(work.spin), ray.remote(work.spun)
    warm(ray.remote(work.nothing))
    began = time.perf_counter()
    for _ in range(count):
        answer = ray.get(spun.remote(*[spin.remote(seconds) for _ in range(cores)]))
    work.report(answer, time.perf_counter() - began, count)


def shell(cores: int, count: int) -> None:
    """Processes, started by tasks."""
    begin(cores)
    call = ray.remote(subprocess.call)
    warm(ray.remote(work.nothing))
    began = time.perf_counter()
    answer = sum(ray.get([call.remote(["true"]) for _ in range(count)]))
    work.report(answer, time.perf_counter() - began, count)


def kmeans(cores: int) -> None:
    """The points are objects of the store."""
    begin(cores)
    points, assign = ray.remote(work.points), ray.remote(work.assign)
    mine = [points.remote(part) for part in range(work.PARTS)]
    ray.wait(mine, num_returns=len(mine))

    def assign_all(centres: Any) -> list[Any]:
        given = ray.put(centres)
        return list(ray.get([assign.remote(part, given) for part in mine]))

    began = time.perf_counter()
    answer = work.iterate(assign_all)
    work.report(answer, time.perf_counter() - began, work.ITERATIONS)


def options(cores: int) -> None:
    """All tasks submitted at once; each names the blocks that it needs."""
    begin(cores)
    start, step = ray.remote(work.begin_block), ray.remote(work.step_block)
    warm(ray.remote(work.nothing))
    began = time.perf_counter()
    answer = ray.get(work.priced(start.remote, step.remote))[0][0]
    work.report(round(float(answer), 6), time.perf_counter() - began)


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
