"""Clusters readings by k-means, until a round moves no centre.

Usage: ciel run kmeans.py [READINGS] [--c] [--no-cache] [--rounds N]

The readings, 20,000 by default, have 100 dimensions of 16 bits each and are made by tasks, in eight
parts. Each round assigns the parts to the centres in parallel. What a worker process has decoded it
keeps for the next round, unless --no-cache is given. --c takes a kernel in C instead of numpy;
--rounds ends after so many rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import ciel
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIMENSIONS = 100
CLUSTERS = 20
PARTS = 8
ROUNDS_MAX = 50
STEP = 1 / 256
"""What one unit of a reading is worth."""

SPREAD = 600.0
"""The standard deviation of readings around the middle of their group, in units of a reading."""

COMPILE = "cc -O3 -march=native -shared -fPIC -o {out} {source}"

BLOCK = 1024
"""Points that the numpy kernel compares with all centres at once; what it needs fits a cache."""


class Moments(NamedTuple):
    """What a part adds to a round."""

    sums: Array
    """The sums of the points of each cluster, shape (CLUSTERS, DIMENSIONS)."""

    counts: Array
    """The number of points of each cluster, shape (CLUSTERS,)."""

    distance: float
    """The sum of the squared distances of the points from their centres."""


@ciel.task
def read(part: int, count: int) -> NDArray[np.int16]:
    """Readings number `part` of PARTS, shape (count, DIMENSIONS); always the same."""
    middles = np.random.default_rng(0).uniform(-20000.0, 20000.0, (CLUSTERS, DIMENSIONS))
    random = np.random.default_rng([1, part])
    group = random.integers(0, CLUSTERS, count)
    readings = middles[group] + random.normal(0.0, SPREAD, (count, DIMENSIONS))
    return np.rint(readings).astype(np.int16)


def decode(readings: NDArray[np.int16]) -> Array:
    """The readings as numbers, shape (count, DIMENSIONS)."""
    return readings.astype(np.float64) * STEP


def by_numpy(points: Array, centres: Array) -> Moments:
    """Assigns points, shape (count, DIMENSIONS), to their nearest centres."""
    sums = np.zeros_like(centres)
    counts = np.zeros(len(centres))
    distance = 0.0
    squares = np.einsum("ij,ij->i", centres, centres)
    rows = np.arange(BLOCK)
    for first in range(0, len(points), BLOCK):
        block = points[first : first + BLOCK]
        apart = squares - 2.0 * (block @ centres.T)
        nearest = apart.argmin(axis=1)
        of_cluster = np.zeros((len(block), len(centres)))
        of_cluster[rows[: len(block)], nearest] = 1.0
        sums += of_cluster.T @ block
        counts += of_cluster.sum(axis=0)
        distance += float(apart.min(axis=1).sum() + np.vdot(block, block))
    return Moments(sums, counts, distance)


def load(kernel: bytes) -> Any:
    """The kernel in C. A library is loaded from a file, which may be removed at once."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(kernel)
        file.flush()
        assign = ctypes.CDLL(file.name).assign
    assign.restype = ctypes.c_double
    return assign


def by_c(points: Array, centres: Array, assign: Any) -> Moments:
    """As `by_numpy`, by the kernel in C."""
    sums = np.zeros_like(centres)
    counts = np.zeros(len(centres))
    points, centres = np.ascontiguousarray(points), np.ascontiguousarray(centres)
    distance = assign(
        ctypes.c_void_p(points.ctypes.data),
        ctypes.c_size_t(len(points)),
        ctypes.c_void_p(centres.ctypes.data),
        ctypes.c_size_t(len(centres)),
        ctypes.c_size_t(DIMENSIONS),
        ctypes.c_void_p(sums.ctypes.data),
        ctypes.c_void_p(counts.ctypes.data),
    )
    return Moments(sums, counts, distance)


@ciel.task
def assign(
    part: ciel.Future[NDArray[np.int16]],
    centres: Array,
    kernel: ciel.Future[bytes] | None,
    cached: bool,
) -> Moments:
    """Assigns a part to the centres; decodes it once in each process if `cached`."""
    points = ciel.once(decode, part) if cached else decode(part.result())
    if kernel is None:
        return by_numpy(points, centres)
    return by_c(points, centres, ciel.once(load, kernel))


def moved(centres: Array, parts: list[Moments]) -> Array:
    """The centres after a round; one without points stays where it is."""
    sums = np.sum([part.sums for part in parts], axis=0)
    counts = np.sum([part.counts for part in parts], axis=0)[:, None]
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), centres)


def options(words: tuple[str, ...]) -> argparse.Namespace:
    """What the program was told."""
    parser = argparse.ArgumentParser(prog="kmeans.py", allow_abbrev=False)
    parser.add_argument("readings", nargs="?", type=int, default=20000)
    parser.add_argument("--c", action="store_true")
    parser.add_argument("--no-cache", dest="cached", action="store_false")
    parser.add_argument("--rounds", type=int, default=ROUNDS_MAX)
    told = parser.parse_args(words)
    if told.rounds < 1 or told.readings < CLUSTERS * PARTS:
        parser.error(f"it takes a round, and {CLUSTERS * PARTS} readings")
    return told


def main(*words: str) -> None:
    """Prints a line for each round, and how many readings each cluster has in the end."""
    told = options(words)
    kernel = None
    if told.c:
        source = Path(__file__).with_name("kernel.c")
        kernel = ciel.sh(COMPILE, source=source)
    parts = [read.spawn(part, told.readings // PARTS) for part in range(PARTS)]
    centres = decode(parts[0].result()[:CLUSTERS])
    found: list[Moments] = []
    for number in range(1, told.rounds + 1):
        began = ciel.now()
        shared = ciel.put(centres)
        found = ciel.gather(
            [assign.spawn(part, shared.later, kernel, told.cached) for part in parts]
        )
        print(f"round {number}: distance {sum(part.distance for part in found):.6g}")
        print(f"{ciel.now() - began:.3f} s", file=sys.stderr)
        before, centres = centres, moved(centres, found)
        if np.allclose(before, centres, rtol=0.0, atol=1e-9):
            break
    print(*np.sum([part.counts for part in found], axis=0).astype(int))
