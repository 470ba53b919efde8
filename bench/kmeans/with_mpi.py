"""The k-means of `examples/kmeans` as a program of MPI: every process has decoded its parts.

Usage: mpiexec -n CORES python with_mpi.py READINGS ROUNDS [KERNEL_IN_C]

Prints what the job of Ciel prints, but for the sizes of the clusters.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kmeans"
sys.path.insert(0, str(EXAMPLE))

import kernels  # noqa: E402

PARTS = 8
WORLD = MPI.COMM_WORLD


def assigned(points: list[Any], centres: Any, kernel: Any) -> Any:
    """What all parts, those of the other processes among them, add to a round."""
    mine = [
        kernels.by_numpy(part, centres) if kernel is None else kernels.by_c(part, centres, kernel)
        for part in points
    ]
    sums = np.sum([part.sums for part in mine], axis=0)
    counts = np.sum([part.counts for part in mine], axis=0)
    distance = [sum(part.distance for part in mine)]
    flat = np.concatenate([sums.ravel(), counts, distance])
    WORLD.Allreduce(MPI.IN_PLACE, flat)
    sums = flat[: centres.size].reshape(centres.shape)
    return kernels.Moments(sums, flat[centres.size : -1], float(flat[-1]))


def main(readings: int, rounds: int, kernel: Any) -> None:
    """A line for each round on standard output, and its seconds on standard error."""
    each = readings // PARTS
    mine = range(WORLD.rank, PARTS, WORLD.size)
    points = [kernels.decode(kernels.readings_of(part, each)) for part in mine]
    centres = kernels.decode(kernels.readings_of(0, each)[: kernels.CLUSTERS])
    for number in range(1, rounds + 1):
        WORLD.Barrier()
        began = MPI.Wtime()
        found = assigned(points, centres, kernel)
        seconds = MPI.Wtime() - began
        if WORLD.rank == 0:
            print(f"round {number}: distance {found.distance:.6g}")
            print(f"{seconds:.6f} s", file=sys.stderr)
        centres = kernels.moved(centres, [found])


if __name__ == "__main__":
    in_c = kernels.load(Path(sys.argv[3]).read_bytes()) if len(sys.argv) > 3 else None
    main(int(sys.argv[1]), int(sys.argv[2]), in_c)
