"""The arithmetic of k-means: readings, kernels in numpy and C, new centres.

It knows no tasks. Read next: `kmeans.py`.
"""

from __future__ import annotations

import ctypes
import tempfile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIMENSIONS = 100
CLUSTERS = 20
STEP = 1 / 256
"""What one unit of a reading is worth."""

SPREAD = 600.0
"""The standard deviation of readings around the middle of their group, in units of a reading."""

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


def readings_of(part: int, count: int) -> NDArray[np.int16]:
    """The readings of a part, shape (count, DIMENSIONS); always the same."""
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


def moved(centres: Array, parts: list[Moments]) -> Array:
    """The centres after a round; one without points stays where it is."""
    sums = np.sum([part.sums for part in parts], axis=0)
    counts = np.sum([part.counts for part in parts], axis=0)[:, None]
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), centres)
