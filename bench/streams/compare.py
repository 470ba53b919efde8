"""What streams cost: modes of Ciel beside pipes, a ring in shared memory, the page cache and Ray.

Usage: python3 compare.py [--bytes N] [--rounds N] [--json FILE] CIEL ENDS [PYTHON_WITH_RAY]

CIEL is the command, ENDS the program of `ends.c`. Whatever is measured takes its turn in each
round, beginning with another one each time; every answer is checked, and so is the mode in which
the reader was served. Processor time is that of all processes, less that of the same with a single
piece, so without the starts of programs. Prints tables in Markdown: times, then each goal as the
median of the ratios of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent

PROGRAM_S_MAX = 600.0
"""A program that takes longer has failed."""

TIMES = 200
"""Times that are written into an idle stream; the last half of them counts."""

JOBS_MAX = 5
"""How often a job is measured until its reader is served in the mode that is measured."""

PIECE_OF_COMMANDS = 256 << 10
PIECE_OF_TASKS = 16 << 20

LATE_US_MAX = 100.0
"""The goal for the first byte through an idle stream."""

PIPE = "pipe of the shell"
RING = "ring in shared memory, C"
OS_PIPE = "pipe between two Python processes"
CACHE = "into a file, then out of the page cache"
RAY = "streaming generator of Ray"
JOINED = "direct, tasks, bytes by a file"
ARRAYS = "direct, tasks, arrays"
BYTES = "direct, tasks, values of bytes"
COMMANDS = "direct, commands"

JITTER = [
    (f"jitter, direct, {kind}", f"jitter, no_stream, {kind}") for kind in ("commands", "tasks")
]

READERS = {"jitter_commands": "wc", "jitter_tasks": "count"}
"""The names of the readers, where they are not `read`."""

Measure = Callable[[], float]
Rows = dict[str, list[float]]

GOALS: list[tuple[str, str, float]] = [
    (COMMANDS, PIPE, 0.9),
    (JOINED, RING, 0.7),
    (ARRAYS, RING, 0.7),
    (BYTES, RING, 0.7),
    (JOINED, OS_PIPE, 0.0),
    (JOINED, RAY, 5.0),
    (ARRAYS, RAY, 5.0),
    (BYTES, RAY, 5.0),
    ("indirect_file, commands", CACHE, 0.5),
    ("indirect_pipe, commands", CACHE, 0.5),
    ("indirect_tcp, commands", CACHE, 0.5),
    *((direct, whole, 2.0) for direct, whole in JITTER),
]
"""How many times as fast the first shall be as the second; 0 where there is no goal."""


def sum_of(length: int, piece_bytes: int) -> int:
    """The sum of the words of so many bytes, in pieces of the words 0, 1, 2 and so on."""
    words = piece_bytes // 8
    return length // piece_bytes * (words * (words - 1) // 2) % (1 << 64)


class Bench:
    """What can be measured."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        """All programs work in the folder."""
        self.options, self.folder = options, folder
        self.length: int = options.bytes
        self.again = 0
        jitter = HERE.parents[1] / "examples" / "jitter"
        paths = [str(jitter), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    def output(self, words: list[str]) -> str:
        """What a program prints; it must end well."""
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PROGRAM_S_MAX,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"{words} failed: {done.stderr}")
        return done.stdout

    def check(self, found: list[int], piece_bytes: int) -> None:
        """The bytes and their sum must be right."""
        expected = [self.length, sum_of(self.length, piece_bytes)]
        if found != expected:
            sys.exit(f"the reader has found {found} in place of {expected}")

    def shell(self, script: str) -> float:
        """Seconds of a script that prints what `drain` has found."""
        begun = time.perf_counter()
        found = self.output(["sh", "-c", script])
        seconds = time.perf_counter() - begun
        self.check([int(word) for word in found.split()], PIECE_OF_COMMANDS)
        return seconds

    def ring(self) -> float:
        """Seconds of the ring."""
        seconds, *found = self.output([self.options.ends, "ring", str(self.length)]).split()
        self.check([int(word) for word in found], PIECE_OF_COMMANDS)
        return float(seconds)

    def python(self, program: str) -> float:
        """Seconds that a Python program of ours has measured."""
        words = [self.options.ray or sys.executable, str(HERE / program), str(self.length)]
        told = json.loads(self.output(words))
        self.check(told["found"], PIECE_OF_TASKS)
        return float(told["seconds"])

    def job(self, kind: str, mode: str, number: int) -> tuple[float, list[int]]:
        """Seconds of a job, and what its reader has found.

        On a busy machine a reader may start when its stream had to be stored already; then the job
        is measured again.
        """
        for _ in range(JOBS_MAX):
            seconds, found, why = self._job(kind, mode, number)
            served = "indirect_pipe" if mode == "indirect_file" else mode
            if mode == "no_stream" or f"in the mode {served}" in why:
                return seconds, found
            self.again += 1
        sys.exit(f"{kind} was not served in the mode {mode}: {why}")

    def _job(self, kind: str, mode: str, number: int) -> tuple[float, list[int], str]:
        """A job with a state of its own, and what `ciel why` says of its reader."""
        state = self.folder / "state"
        words = [self.options.ciel, "run", "-q", "-j2", f"--state={state}"]
        words += [str(HERE / "with_ciel.py"), kind, mode, str(number), self.options.ends]
        told = json.loads(self.output(words))
        reader = READERS.get(kind, "read")
        why = self.output([self.options.ciel, "why", f"--state={state}", reader])
        shutil.rmtree(state)
        return float(told["seconds"]), told["found"], why

    def stream(self, kind: str, mode: str) -> float:
        """Seconds of a stream of Ciel."""
        seconds, found = self.job(kind, mode, self.length)
        self.check(found, PIECE_OF_COMMANDS if kind == "commands" else PIECE_OF_TASKS)
        return seconds

    def jitter(self, kind: str, mode: str) -> float:
        """Seconds of the example `jitter`, whose reader counts the bytes."""
        seconds, found = self.job(f"jitter_{kind}", mode, self.length)
        if found != [self.length]:
            sys.exit(f"the reader has counted {found} in place of {self.length}")
        return seconds

    def times(self) -> dict[str, Measure]:
        """What is measured in seconds, by name."""
        ends = self.options.ends
        found: dict[str, Measure] = {
            PIPE: lambda: self.shell(f"{ends} fill {self.length} | {ends} drain"),
            CACHE: lambda: self.shell(
                f"{ends} fill {self.length} | cat > file; {ends} drain < file; rm file"
            ),
            RING: self.ring,
            OS_PIPE: lambda: self.python("with_pipe.py"),
            COMMANDS: lambda: self.stream("commands", "direct"),
            JOINED: lambda: self.stream("joined", "direct"),
            ARRAYS: lambda: self.stream("arrays", "direct"),
            BYTES: lambda: self.stream("bytes", "direct"),
        }
        for mode in ("indirect_file", "indirect_pipe", "indirect_tcp"):
            found[f"{mode}, commands"] = partial(self.stream, "commands", mode)
        for name in (name for pair in JITTER for name in pair):
            _, mode, kind = name.split(", ")
            found[name] = partial(self.jitter, kind, mode)
        if self.options.ray:
            found[RAY] = lambda: self.python("with_ray.py")
        return found

    def delays(self) -> dict[str, Measure]:
        """What is measured in microseconds, by name: the median of one round."""
        ends = self.options.ends

        def median(found: list[int]) -> float:
            if len(found) != TIMES:
                sys.exit(f"{len(found)} of {TIMES} times arrived")
            return statistics.median(found[TIMES // 2 :]) / 1000

        def shell() -> float:
            script = f"{ends} stamp {TIMES} | {ends} stamps"
            return median([int(word) for word in self.output(["sh", "-c", script]).split()])

        def python() -> float:
            words = [sys.executable, str(HERE / "with_pipe.py"), str(TIMES), "times"]
            return median(json.loads(self.output(words))["found"])

        return {
            "pipe of the shell": shell,
            "pipe between two Python processes": python,
            "direct, commands": lambda: median(self.job("times", "direct", TIMES)[1]),
            "direct, tasks, a file": lambda: median(self.job("times_joined", "direct", TIMES)[1]),
            "direct, tasks, values": lambda: median(self.job("times_values", "direct", TIMES)[1]),
        }


def spread(numbers: list[float]) -> str:
    """Median, least and most, as cells of a table."""
    return f"{statistics.median(numbers):.3g} | {min(numbers):.3g} | {max(numbers):.3g}"


def ratios(rows: Rows, ours: str, peer: str) -> list[float]:
    """How many times as fast the first was in each round."""
    return [b / a for a, b in zip(rows[ours], rows[peer], strict=True)]


def seconds_of(rows: Rows, used: Rows) -> list[str]:
    """The table of times."""
    lines = ["| what | median, s | from | to | processor, s |", f"|---{'|---:' * 4}|"]
    for name, numbers in rows.items():
        processor = f"{statistics.median(used[name]):.3g}" if name in used else "–"
        lines.append(f"| {name} | {spread(numbers)} | {processor} |")
    return lines


def goals_of(rows: Rows, used: Rows) -> list[str]:
    """The table of the goals."""
    head = "| what | beside | times as fast | from | to | by processor time | goal | |"
    lines = [head, f"|---|---{'|---:' * 5}|---|"]
    for ours, peer, goal in GOALS:
        if ours not in rows or peer not in rows:
            continue
        found, processor = ratios(rows, ours, peer), "–"
        if ours in used and peer in used:
            processor = f"{statistics.median(ratios(used, ours, peer)):.3g}"
        met = "met" if statistics.median(found) >= goal else "**missed**"
        told = f"≥ {goal} | {met}" if goal else "– | "
        lines.append(f"| {ours} | {peer} | {spread(found)} | {processor} | {told} |")
    return lines


def delays_of(rows: Rows) -> list[str]:
    """The table of first bytes."""
    lines = ["| first byte through | median, µs | from | to | goal | |", f"|---{'|---:' * 4}|---|"]
    for name, numbers in rows.items():
        is_ours, middle = name.startswith("direct"), statistics.median(numbers)
        met = "met" if middle <= LATE_US_MAX else "**missed**"
        told = f"≤ {LATE_US_MAX:.0f} | {met}" if is_ours else "– | "
        lines.append(f"| {name} | {spread(numbers)} | {told} |")
    return lines


def in_turns(measures: dict[str, Measure], round_: int, rows: Rows) -> Iterator[str]:
    """Each once, beginning with another one each round; gives the name of each one measured."""
    names = list(measures)
    at = round_ % len(names)
    for name in names[at:] + names[:at]:
        rows.setdefault(name, []).append(measures[name]())
        yield name


def processor_s() -> float:
    """Processor time of all processes that have ended, and for which somebody has waited."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def round_of_times(bench: Bench, round_: int, rows: Rows, used: Rows) -> None:
    """Seconds, and processor time where all processes are children of ours."""
    measures, before = bench.times(), processor_s()
    for name in in_turns(measures, round_, rows):
        whole = processor_s() - before
        bench.length, before = PIECE_OF_TASKS, processor_s()
        if name != RAY:
            measures[name]()
            more = max(whole - (processor_s() - before), 1e-6)
            used.setdefault(name, []).append(more)
        bench.length, before = bench.options.bytes, processor_s()


def machine(options: argparse.Namespace, before: float) -> str:
    """Versions, machine and load."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return (
        f"{options.bytes} bytes, {options.rounds} rounds; {os.cpu_count()} cores ({model}), "
        f"Linux {platform.release()}, Python {platform.python_version()}; "
        f"load {before:.1f} before and {os.getloadavg()[0]:.1f} after"
    )


def main() -> None:
    """Runs the rounds and prints the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, default=1 << 30, help="a multiple of 16 MiB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=os.path.abspath)
    parser.add_argument("ciel", type=os.path.abspath)
    parser.add_argument("ends", type=os.path.abspath)
    parser.add_argument("ray", nargs="?", type=os.path.abspath)
    options = parser.parse_args()
    if options.bytes % PIECE_OF_TASKS:
        parser.error(f"{options.bytes} bytes are no multiple of {PIECE_OF_TASKS}")
    before, folder = os.getloadavg()[0], tempfile.mkdtemp(prefix="streams-", dir=".")
    times: Rows = {}
    used: Rows = {}
    delays: Rows = {}
    try:
        bench = Bench(options, Path(folder).absolute())
        for round_ in range(options.rounds):
            round_of_times(bench, round_, times, used)
            for _ in in_turns(bench.delays(), round_, delays):
                pass
            told = {"seconds": times, "processor": used, "microseconds": delays}
            if options.json:
                text = json.dumps({**told, "machine": machine(options, before)}, indent=1)
                Path(options.json).write_text(text + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(folder)
    print(*seconds_of(times, used), "", *goals_of(times, used), "", *delays_of(delays), sep="\n")
    print(f"\n{machine(options, before)}")
    if bench.again:
        print(f"{bench.again} jobs were measured again, since their streams had been stored")


if __name__ == "__main__":
    main()
