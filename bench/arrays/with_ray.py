"""The same with `ray.put` and ten tasks that get the array: the first, and the median of others."""

from __future__ import annotations

import statistics
import sys
import time

import numpy
import ray

READERS = 10
FURTHER = 4


@ray.remote(num_cpus=1)
def read(array: numpy.ndarray, place: int) -> int:
    """A number of the array."""
    return int(array[place])


def measured(count: int) -> float:
    """Makes an array and has it read."""
    array = numpy.arange(count, dtype=numpy.int64)
    places = [count // READERS * reader for reader in range(READERS)]
    begun = time.perf_counter()
    kept = ray.put(array)
    found = ray.get([read.remote(kept, place) for place in places])
    ended = time.perf_counter()
    if found != places:
        raise ValueError(f"the readers found other numbers: {found}")
    return ended - begun


def main() -> None:
    """Once with a small array, so that all processes have begun, and then with large ones."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    measured(1 << 20)
    count = int(sys.argv[1])
    first = measured(count)
    print(first, statistics.median(measured(count) for _ in range(FURTHER)))


if __name__ == "__main__":
    main()
