"""The output of a failed job is the beginning of what the serial program prints, without holes.

What a task had printed in the last moment before it killed itself was lost, or not, depending on
time: `blob 0, blob 1, blob 3` where another run of the same job showed `blob 2`.

The same property is asserted elsewhere, of

| programs | that end by | in |
|---|---|---|
| the simulator's | failures, kills, interruption, `--fail-fast` | `crates/ciel-sim/src/judge.rs` |
| random trees in Skywriting | failures, Ctrl-C | `crates/ciel-cli/tests/order.rs` |
| jobs of all kinds | `kill -9` of each process | `crates/ciel-cli/tests/kills` |
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import jobs
import programs

JOB = """
import os
import signal
import sys
import ciel

def end():
    HOW

@ciel.task
def blob(i):
    print("blob", i)
    if i == 2:
        sys.stdout.write("part of a line")
        sys.stdout.flush()
        end()
    return i

def main():
    futures = [blob.spawn(i) for i in range(6)]
    WAITS
    print("end")
"""

ENDS = {
    "exception": "raise ValueError('two')",
    "exit of the process": "os._exit(3)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "os.kill(os.getpid(), signal.SIGSEGV)",
}
WAITS = {"waited for": "ciel.gather(futures)", "not waited for": "pass"}


def printed(folder: Path, text: str, mode: str) -> str:
    """What a failed job has printed."""
    folder.mkdir()
    ended = jobs.run(folder, text, options=(mode,))
    assert ended.status == 1 and "error: blob@" in ended.talk
    return ended.printed.decode()


@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize("how", ENDS)
def test_failed_jobs_output_is_the_beginning_of_the_serial_one(
    how: str, waits: str, tmp_path: Path
) -> None:
    text = JOB.replace("HOW", ENDS[how]).replace("WAITS", WAITS[waits])
    whole = "blob 0\nblob 1\nblob 2\npart of a lineblob 3\nblob 4\nblob 5\n"
    if waits == "not waited for":
        whole += "end\n"
    for mode in ("--serial", "-j1", "-j2", "-j4"):
        found = printed(tmp_path / mode, text, mode)
        assert whole.startswith(found), mode
        assert found.startswith("blob 0\nblob 1\nblob 2\npart of a line"), mode
        assert mode != "--serial" or found == whole


COUNT = 4
"""Programs in one job: about fifty tasks, of which up to four die four times each."""

ROUNDS = 4

OPTIONS = [("-j1",), ("-j2",), ("-j2", "-k"), ("-j4", "-k")]


def start(folder: Path, seed: int, how: str, *options: str) -> subprocess.Popen[bytes]:
    """Starts the random programs of a seed, in which processes die if `how` says so."""
    text = Path(programs.__file__).read_text(encoding="utf-8")
    job = jobs.write(folder, text, "programs.py")
    return jobs.start(job, str(seed), str(COUNT), how, options=options)


@pytest.mark.parametrize("how", programs.DEATHS)
def test_random_programs_whose_processes_die_print_a_prefix(how: str, tmp_path: Path) -> None:
    """All of the serial output if all work is asked for, and its beginning otherwise."""
    first = random.randrange(1 << 32)
    for seed, options in enumerate(OPTIONS, first):
        whole = programs.expected(seed, COUNT, how)[1]
        ended = jobs.end_of(start(tmp_path, seed, how, *options))
        about = f"{options}, programs from {seed}:\n{ended.talk}"
        printed = ended.printed.decode()
        if ended.status == 0:
            # The value has a line of its own, even after a line that has not ended.
            printed = printed.removesuffix(ended.lines[-1] + "\n")
            assert printed.removesuffix("\n") == whole.removesuffix("\n"), about
        else:
            assert ended.status == 1 and whole.startswith(printed), about
            assert "-k" not in options or printed == whole, about


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_random_programs_that_are_ended_print_a_prefix(name: str, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    whole = programs.expected(seed, COUNT)[1]
    began = time.monotonic()
    assert jobs.end_of(start(tmp_path, seed, "", "-j2")).printed.decode().startswith(whole)
    lasts = time.monotonic() - began
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = start(folder, seed, "", "-j2")
        moment = chance.uniform(0, lasts)
        threading.Event().wait(moment)
        process.send_signal(signal.Signals[name])
        ended = jobs.end_of(process)
        about = f"{moment:.3f} s, programs from {seed}:\n{ended.talk}"
        printed = ended.printed.decode()
        assert printed.startswith(whole) if ended.status == 0 else whole.startswith(printed), about
