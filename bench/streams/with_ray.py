"""The same pieces from a streaming generator of Ray: `with_ray.py BYTES`.

Its values are arrays, which Ray maps without a copy; the program reads them, as the consumer of
such a generator does. Prints a line of JSON as `with_ciel.py` does.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import numpy
import ray

PIECE_BYTES = 16 << 20


@ray.remote(num_cpus=1, num_returns="streaming")
def pieces(length: int) -> Iterator[numpy.ndarray]:
    """The words 0, 1, 2 and so on, in each piece."""
    whole = numpy.arange(PIECE_BYTES // 8, dtype=numpy.uint64)
    for _ in range(length // PIECE_BYTES):
        yield whole


def read(length: int) -> list[int]:
    """Bytes, and the sum of the words."""
    found, total = 0, 0
    for reference in pieces.remote(length):
        words = ray.get(reference)
        found += words.nbytes
        total += int(words.sum())
    return [found, total]


def main() -> None:
    """Once with little, so that the worker has begun, and once in earnest."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    read(PIECE_BYTES)
    begun = time.perf_counter()
    found = read(int(sys.argv[1]))
    print(json.dumps({"seconds": time.perf_counter() - begun, "found": found}))


if __name__ == "__main__":
    main()
