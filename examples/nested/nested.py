"""Five hundred tasks that each wait for four tasks of their own.

Usage: ciel run nested.py [outer] [inner] [milliseconds]

Where every waiting task keeps a process, this needs five hundred processes, or hangs. Here a task
that waits holds neither a core nor a process: as many workers as cores do all the work.
"""

import time

import ciel


@ciel.task
def inner(number: int, milliseconds: float) -> int:
    """Keeps one core busy, as real work would."""
    until = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < until:
        pass
    return number


@ciel.task
def outer(number: int, count: int, milliseconds: float) -> int:
    """Spawns tasks and waits for them in straight-line code."""
    parts = [inner.spawn(number * count + part, milliseconds) for part in range(count)]
    return sum(ciel.gather(*parts))


def main(outers: str = "500", inners: str = "4", milliseconds: str = "10") -> dict[str, int]:
    """Adds up the numbers from 0 to outer × inner."""
    count = int(inners)
    sums = [outer.spawn(number, count, float(milliseconds)) for number in range(int(outers))]
    return {"tasks": int(outers) * (count + 1), "sum": sum(ciel.gather(*sums))}
