"""A large array made by one Python task and read by ten: Ciel, Ray, and what one copy costs.

Usage: python3 compare.py [--bytes N] [--rounds N] CIEL [PYTHON_WITH_RAY]

CIEL is the command. Systems take turns, beginning with another one each round. The limit is one
copy of the array into fresh shared memory; beside it stand a copy into memory that was used before
and `write` into a new file, in the folder of the run and in /dev/shm. Each program makes a first
array, and further ones, for which it may use the memory of earlier ones. Prints a table in
Markdown: the median of the seconds, the best, and the median of each round's ratio to that limit.
"""

from __future__ import annotations

import argparse
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy

HERE = Path(__file__).resolve().parent

PROGRAM_S_MAX = 600.0
"""A program that takes longer has failed."""

IN_MEMORY = ["--store-memory=8G"]

LIMIT = "copy into fresh shared memory"

FURTHER = ", further arrays"


def seconds(act: Callable[[], object]) -> float:
    """How long something takes."""
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def copy(array: numpy.ndarray) -> float:
    """One copy into shared memory that nobody has used."""
    return seconds(lambda: _copy_into(mmap.mmap(-1, array.nbytes), array))


def copy_again(array: numpy.ndarray) -> float:
    """One copy into shared memory that was written to before."""
    used = mmap.mmap(-1, array.nbytes)
    _copy_into(used, array)
    return seconds(lambda: _copy_into(used, array))


def _copy_into(memory: mmap.mmap, array: numpy.ndarray) -> None:
    numpy.frombuffer(memory, dtype=array.dtype)[:] = array


def write(array: numpy.ndarray, folder: str) -> float:
    """One copy by `write` into a new file, which is removed."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return seconds(lambda: _write(file.fileno(), array.data.cast("B")))


def _write(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]


def program(words: list[str], folder: str) -> list[float]:
    """What a program prints: the seconds of its first array, and those of further ones."""
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=PROGRAM_S_MAX, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{words} failed: {done.stderr}")
    return [float(word) for word in done.stdout.split()]


def systems(options: argparse.Namespace, folder: str) -> dict[str, Callable[[], list[float]]]:
    """What is measured, by name; the array is made before. A program gives two figures."""
    array = numpy.arange(options.bytes // 8, dtype=numpy.int64)
    count = str(len(array))
    ciel = [options.ciel, "run", "-q", "--new", "-j2", f"--state={folder}/state"]
    job = [str(HERE / "with_ciel.py"), count]
    found = {
        LIMIT: lambda: [copy(array)],
        "copy into used shared memory": lambda: [copy_again(array)],
        "write into a new file of the run's folder": lambda: [write(array, folder)],
        "Ciel": lambda: program([*ciel, *job], folder),
        "Ciel, in memory": lambda: program([*ciel, *IN_MEMORY, *job], folder),
    }
    if os.path.isdir("/dev/shm"):
        found["write into a new file of /dev/shm"] = lambda: [write(array, "/dev/shm")]
    if options.ray:
        ray = [options.ray, str(HERE / "with_ray.py"), count]
        found["Ray: put and ten gets"] = lambda: program(ray, folder)
    return found


def table(rows: dict[str, list[float]]) -> str:
    """The rows in Markdown."""
    lines = ["| what | seconds | best | times the limit |", "|---|---|---|---|"]
    for name, all_ in rows.items():
        ratio = statistics.median(a / b for a, b in zip(all_, rows[LIMIT], strict=True))
        middle = statistics.median(all_)
        lines.append(f"| {name} | {middle:.2f} | {min(all_):.2f} | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Runs the rounds and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("ciel", type=os.path.abspath)
    parser.add_argument("ray", nargs="?", type=os.path.abspath)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="arrays-", dir=".")
    try:
        measured = systems(options, os.path.abspath(folder))
        rows: dict[str, list[float]] = {}
        names = list(measured)
        for number in range(options.rounds):
            at = number % len(names)
            for name in names[at:] + names[:at]:
                for row, figure in zip((name, name + FURTHER), measured[name](), strict=False):
                    rows.setdefault(row, []).append(figure)
        print(table(rows))
        print(f"\n{options.bytes} bytes, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
