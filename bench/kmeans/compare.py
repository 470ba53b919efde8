"""The example `kmeans`, with and without what its workers keep, beside the same with MPI.

Usage: python3 compare.py [--readings N] [--rounds N] [--runs N] CIEL PYTHON_WITH_MPI

CIEL is the command. Both use the kernels of the example, in numpy and in C, one thread for each
process and a process for each core. Programs take turns; a wrong line ends the measurement. Prints
a table in Markdown: seconds of a round, the median of all rounds but the first of each run, and
the median of each turn's ratio to MPI.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kmeans"
HERE = Path(__file__).resolve().parent
CORES = os.cpu_count() or 1
COMPILE = ["cc", "-O3", "-march=native", "-shared", "-fPIC"]

PROGRAM_S_MAX = 600.0
"""A program that takes longer has failed."""

SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def program(words: list[str], folder: str, rounds: int) -> tuple[list[str], float]:
    """The line of each round, and the median of the seconds of all but the first."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **dict.fromkeys(SINGLE, "1")},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S_MAX,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("round ")]
    took = [line.split() for line in done.stderr.splitlines() if line.endswith(" s")]
    seconds = [float(words[-2]) for words in took if words[-2].replace(".", "").isdigit()]
    if done.returncode != 0 or len(lines) != rounds or len(seconds) != rounds:
        sys.exit(f"{words} failed: {done.stdout}{done.stderr}")
    return lines, statistics.median(seconds[1:])


def programs(options: argparse.Namespace, folder: str, in_c: bool) -> dict[str, list[str]]:
    """How each is started, the program of MPI first."""
    numbers = [str(options.readings), str(options.rounds)]
    python = Path(options.python)
    launch = [str(python.with_name("mpiexec")), "--allow-run-as-root", "--oversubscribe"]
    mpi = [*launch, "-n", str(CORES), str(python), str(HERE / "with_mpi.py"), *numbers]
    ciel = [options.ciel, "run", "--new", "--quiet", f"-j{CORES}", f"--state={folder}/state"]
    job = [*ciel, str(EXAMPLE / "kmeans.py"), numbers[0], "--rounds", numbers[1]]
    if in_c:
        kernel = f"{folder}/kernel.so"
        subprocess.run([*COMPILE, "-o", kernel, str(EXAMPLE / "kernel.c")], check=True)
        mpi, job = [*mpi, kernel], [*job, "--c"]
    return {"MPI": mpi, "Ciel": job, "Ciel, `--no-cache`": [*job, "--no-cache"]}


def measured(options: argparse.Namespace, folder: str, in_c: bool) -> list[str]:
    """The rows of one kernel."""
    started = programs(options, folder, in_c)
    names = list(started)
    figures: dict[str, list[float]] = {name: [] for name in names}
    for number in range(options.runs):
        at = number % len(names)
        told = {}
        for name in names[at:] + names[:at]:
            told[name], seconds = program(started[name], folder, options.rounds)
            figures[name].append(seconds)
        if any(lines != told["MPI"] for lines in told.values()):
            sys.exit(f"they do not agree: {told}")
    kernel = "C" if in_c else "numpy"
    rows = []
    for name, all_ in figures.items():
        ratio = statistics.median(a / b for a, b in zip(all_, figures["MPI"], strict=True))
        rows.append(f"| {kernel} | {name} | {statistics.median(all_):.4f} | {ratio:.2f} |")
    return rows


def main() -> None:
    """Runs all and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--readings", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("ciel", type=os.path.abspath)
    parser.add_argument("python", type=os.path.abspath)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kmeans-") as folder:
        rows = [row for in_c in (False, True) for row in measured(options, folder, in_c)]
    print("| kernel | program | seconds of a round | beside MPI |\n|---|---|---:|---:|")
    print("\n".join(rows))
    print(f"\n{options.readings} readings, {options.runs} runs, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
