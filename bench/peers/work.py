"""The work of the comparison: the functions that every system runs, and the answers they must give.

No system is imported here; each program `with_*.py` runs the same functions in its own way. Read
next: `compare.py`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
"""A numpy array; its shape stands where it is used."""

MODULUS = 1_000_003
"""Bounds the numbers of the chain, and of what only computes; a prime."""

POINTS, DIMENSIONS, CLUSTERS, PARTS, ITERATIONS = 100_000, 50, 50, 8, 5
"""k-means: points, coordinates of each, clusters, parts of the points, iterations."""

STEPS, BLOCK = 100_000, 5_000
"""Binomial pricing: time steps of the lattice, and prices in one block."""

SPOT, STRIKE, RATE, VOLATILITY, YEARS = 100.0, 105.0, 0.03, 0.2, 1.0
"""Binomial pricing: the option, a European call."""


def nothing(number: int) -> int:
    """A task without work."""
    return number


def add(first: int, second: int) -> int:
    """A task that needs the two before it."""
    return (first + second) % MODULUS


def chain_answer(count: int) -> int:
    """The last number of a chain of `count` additions that begins with 0 and 1."""
    before, last = 0, 1
    for _ in range(count):
        before, last = last, add(before, last)
    return last


def fib(number: int) -> int:
    """The Fibonacci number, by plain calls."""
    return number if number < 2 else fib(number - 1) + fib(number - 2)


def fib_tasks(number: int) -> int:
    """The number of calls that `fib(number)` makes, itself included."""
    return 2 * fib(number + 1) - 1


def spin(seconds: float) -> int:
    """Keeps a core busy for that long by the clock; 1."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass
    return 1


def compute(rounds: int) -> int:
    """Keeps a core busy by arithmetic alone; 1."""
    number = 1
    for _ in range(rounds):
        number = number * 31 % MODULUS
    return min(number, 1)


def rounds_of(seconds: float) -> int:
    """Rounds of `compute` that take so long on a core; the fastest of five looks."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        compute(20_000)
        best = min(best, time.perf_counter() - began)
    return max(1, round(20_000 * seconds / best))


def spun(*ones: int) -> int:
    """The task that needs all of a round."""
    return sum(ones)


def points(part: int) -> Array:
    """Points of a part, shape (POINTS / PARTS, DIMENSIONS); the same in every process."""
    return np.random.default_rng(part).random((POINTS // PARTS, DIMENSIONS))


def first_centres() -> Array:
    """The centres to begin with, shape (CLUSTERS, DIMENSIONS)."""
    return points(0)[:CLUSTERS].copy()


def assign(mine: Array, centres: Array) -> tuple[Array, Array]:
    """Sums of the points nearest to each centre, shape (CLUSTERS, DIMENSIONS), and counts."""
    distances = (centres * centres).sum(axis=1) - 2.0 * (mine @ centres.T)
    nearest = distances.argmin(axis=1)
    sums = np.zeros_like(centres)
    np.add.at(sums, nearest, mine)
    return sums, np.bincount(nearest, minlength=CLUSTERS)


def new_centres(found: list[tuple[Array, Array]], centres: Array) -> Array:
    """The means of the clusters; a cluster without points keeps its centre."""
    sums = np.sum([part[0] for part in found], axis=0)
    counts = np.sum([part[1] for part in found], axis=0)[:, None]
    return np.where(counts > 0, sums / np.maximum(counts, 1), centres)


def checksum(values: Array) -> float:
    """A number that two equal results share, rounded to 6 digits."""
    return round(float(values.sum()), 6)


def iterate(assign_all: Callable[[Array], list[tuple[Array, Array]]]) -> float:
    """Runs the iterations of k-means; `assign_all` has the parts of the points assigned."""
    centres = first_centres()
    for _ in range(ITERATIONS):
        centres = new_centres(assign_all(centres), centres)
    return checksum(centres)


def lattice() -> tuple[float, float, float]:
    """The factor of a price that goes up, and the discounted probabilities of up and down."""
    step = YEARS / STEPS
    up = float(np.exp(VOLATILITY * np.sqrt(step)))
    rise = (np.exp(RATE * step) - 1.0 / up) / (up - 1.0 / up)
    discount = float(np.exp(-RATE * step))
    return up, discount * float(rise), discount * (1.0 - float(rise))


def last_prices(block: int) -> Array:
    """Values of the option at the end, of the prices of a block, shape (BLOCK,)."""
    up, _, _ = lattice()
    rises = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.float64)
    return np.maximum(SPOT * up ** (2.0 * rises - STEPS) - STRIKE, 0.0)


def earlier(values: Array, edges: Array | None) -> tuple[Array, Array]:
    """A block of values BLOCK time steps earlier, and its first value at each of these steps.

    `edges` has the first values of the next block, shape (BLOCK,); the last block has none, and
    its values beyond the lattice are not used by anybody.
    """
    _, rise, fall = lattice()
    values = values.copy()
    mine = np.empty(BLOCK)
    for step in range(BLOCK):
        mine[step] = values[0]
        beyond = 0.0 if edges is None else edges[step]
        last = fall * values[-1] + rise * beyond
        values[:-1] = fall * values[:-1] + rise * values[1:]
        values[-1] = last
    return values, mine


def step_block(this: tuple[Array, Array], following: tuple[Array, Array] | None) -> Any:
    """`earlier` on the results of two blocks, as the task of the comparison."""
    return earlier(this[0], None if following is None else following[1])


def priced(at: Callable[[int], Any], step: Callable[[Any, Any], Any]) -> Any:
    """The first block at time 0, from tasks that `at` and `step` make.

    Strip by strip, from the last block to the first: a block needs its own values and the edges of
    the one after it, which the same strip has made.
    """
    blocks = STEPS // BLOCK + 1
    row = [at(block) for block in range(blocks)]
    for strip in range(STEPS // BLOCK):
        after = None
        for block in range(blocks - strip - 1, -1, -1):
            row[block] = after = step(row[block], after)
        row.pop()
    return row[0]


def begin_block(block: int) -> tuple[Array, Array]:
    """The values of a block at the end of time; it has no edges yet."""
    return last_prices(block), np.zeros(BLOCK)


def report(answer: object, seconds: float, tasks: int = 1) -> None:
    """Prints what `compare.py` reads: the answer, and the seconds that the work took."""
    print(json.dumps({"answer": answer, "seconds": seconds, "tasks": tasks}), flush=True)


Programs = dict[str, Callable[..., None]]
"""The programs of a system by name; they take the number of cores, then counts and seconds."""


def main(programs: Programs) -> None:
    """Runs the program that the first word of the command line names, with numbers after it."""
    name, *numbers = sys.argv[1:]
    if name not in programs:
        sys.exit(2)
    programs[name](*(float(word) if "." in word else int(word) for word in numbers))
