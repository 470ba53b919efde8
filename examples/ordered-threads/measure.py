"""Measures the three ways of `scan.py` beside each other, on logs that it makes.

    python3 examples/ordered-threads/measure.py [files] [rounds]

Prints the median seconds of each way on two threads, and those of one thread.
"""

from __future__ import annotations

import gzip
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import scan

LINES = 20_000


def make_logs(folder: Path, files: int) -> list[Path]:
    """Logs of unequal length, of which every eighth line is an error."""
    chance = random.Random(files)
    paths = [folder / f"{number:04}.gz" for number in range(files)]
    for path in paths:
        words = (chance.choice(["error", *["notice"] * 7]) for _ in range(chance.randrange(LINES)))
        text = "".join(f"{word} {chance.random()}\n" for word in words)
        path.write_bytes(gzip.compress(text.encode()))
    return paths


def main() -> None:
    """Alternates the ways, so that a busy machine slows all of them."""
    files, rounds = (int(word) for word in [*sys.argv[1:], *["40", "7"][len(sys.argv) - 1 :]])
    kinds = [("serial", "strands", 1), *((way, way, 2) for way in scan.WAYS)]
    times: dict[str, list[float]] = {name: [] for name, _, _ in kinds}
    with tempfile.TemporaryDirectory() as folder:
        paths = make_logs(Path(folder), files)
        for _ in range(rounds):
            for name, way, threads in kinds:
                began = time.perf_counter()
                scan.WAYS[way](paths, b"error", Path(folder) / "report", threads)
                times[name].append(time.perf_counter() - began)
    for name, seconds in times.items():
        print(f"{name:8} {statistics.median(seconds):.3f} s")


if __name__ == "__main__":
    main()
