"""Clusters readings by k-means, until a round moves no centre.

Usage: ciel run kmeans.py [READINGS] [--c] [--no-cache] [--rounds N]

The readings, 20,000 by default, have 100 dimensions of 16 bits each and are made by tasks, in eight
parts. Each round assigns the parts to the centres in parallel. What a worker process has decoded it
keeps for the next round, unless --no-cache is given. --c takes a kernel in C instead of numpy;
--rounds ends after so many rounds. Read next: `kernels.py`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import ciel
import numpy as np
from numpy.typing import NDArray

from kernels import CLUSTERS, Array, Moments, by_c, by_numpy, decode, load, moved, readings_of

PARTS = 8
ROUNDS_MAX = 50
COMPILE = "cc -O3 -march=native -shared -fPIC -o {out} {source}"


@ciel.task
def read(part: int, count: int) -> NDArray[np.int16]:
    """Readings number `part` of PARTS, shape (count, DIMENSIONS); always the same."""
    return readings_of(part, count)


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
