"""An array made by one task and read by ten others: the seconds from made to read by all.

Prints those of the first large array, which goes into fresh pages, and the median of some further
ones: the memory of earlier ones can be used again for them.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy

import ciel

READERS = 10
FURTHER = 4


@ciel.task(keep=False, retries=1)
def made(count: int) -> dict[str, Any]:
    """An array of so many numbers, and when it was there."""
    array = numpy.arange(count, dtype=numpy.int64)
    return {"array": array, "at": time.perf_counter()}


@ciel.task(keep=False, retries=1)
def read(value: dict[str, Any], place: int) -> tuple[int, float, float]:
    """A number of the array, when the array was there, and when the number was read."""
    return int(value["array"][place]), value["at"], time.perf_counter()


def measured(count: int) -> float:
    """Makes an array and has it read."""
    array = made.spawn(count)
    places = [count // READERS * reader for reader in range(READERS)]
    found = ciel.gather([read.spawn(array.later, place) for place in places])
    if [number for number, _, _ in found] != places:
        raise ValueError(f"the readers found other numbers: {found}")
    return max(end for _, _, end in found) - found[0][1]


def main(count: str) -> None:
    """Once with a small array, so that all processes have begun, and then with large ones."""
    measured(1 << 20)
    first = measured(int(count))
    print(first, statistics.median(measured(int(count)) for _ in range(FURTHER)))
