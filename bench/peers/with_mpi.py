"""The work of the comparison written for MPI: a process for each core, started together.

Usage: mpiexec -n CORES python with_mpi.py PROGRAM [NUMBER...]

There are no tasks: each process knows beforehand what it does. So this is the limit of what the
processes of one machine can do, and what has no such form is left out.
"""

from __future__ import annotations

import time
from typing import Any

import work
from mpi4py import MPI

WORLD = MPI.COMM_WORLD


def report(answer: object, seconds: float, tasks: int) -> None:
    """As `work.report`, by one process."""
    if WORLD.rank == 0:
        work.report(answer, seconds, tasks)


def first(cores: int) -> None:
    """The processes meet once."""
    report(WORLD.allreduce(1) - cores + 1, 0.0, 1)


def chain(cores: int, count: int) -> None:
    """The two last numbers travel from process to process."""
    WORLD.Barrier()
    began = time.perf_counter()
    pair = (0, 1)
    for number in range(count):
        owner = number % cores
        if WORLD.rank == owner:
            if number:
                pair = WORLD.recv(source=(owner - 1) % cores) if cores > 1 else pair
            pair = (pair[1], work.add(*pair))
            if cores > 1 and number + 1 < count:
                WORLD.send(pair, dest=(owner + 1) % cores)
    answer = WORLD.bcast(pair[1], root=(count - 1) % cores)
    report(answer, time.perf_counter() - began, count)


def rounds(cores: int, count: int, seconds: float) -> None:
    """Every process keeps busy, then one adds."""
    WORLD.Barrier()
    began = time.perf_counter()
    answer = 0
    for _ in range(count):
        answer = WORLD.allreduce(work.spin(seconds))
    report(answer, time.perf_counter() - began, count)


def kmeans(cores: int) -> None:
    """Every process has its parts of the points."""
    mine = [work.points(part) for part in range(WORLD.rank, work.PARTS, cores)]

    def assign_all(centres: Any) -> list[Any]:
        found = [work.assign(part, centres) for part in mine]
        return [part for parts in WORLD.allgather(found) for part in parts]

    WORLD.Barrier()
    began = time.perf_counter()
    answer = work.iterate(assign_all)
    report(answer, time.perf_counter() - began, work.ITERATIONS)


PROGRAMS: work.Programs = {"first": first, "chain": chain, "rounds": rounds, "kmeans": kmeans}

if __name__ == "__main__":
    work.main(PROGRAMS)
