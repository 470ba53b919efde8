"""Loops whose rounds make long values: each has the pages of one that is dead, and its own bytes.

It knows nothing of which pages that are; the tests of the store look at that.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import jobs
import pytest
from conditions import until

MIB = 1 << 20

LENT = 48 * MIB
"""What results may have in memory."""


def has_room() -> bool:
    """Whether results can be in memory here."""
    there = os.path.ismount("/dev/shm") and os.access("/dev/shm", os.W_OK)
    return there and os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize > 2 * LENT


pytestmark = pytest.mark.skipif(
    not has_room(), reason="/dev/shm has no room for results in memory"
)

JOB = """
import os
from pathlib import Path

import ciel
import numpy

MIB = 1 << 20

@ciel.task(keep=False, retries=1)
def made(number, length):
    return numpy.full(length, number, dtype=numpy.uint8)

@ciel.task(keep=False, retries=1)
def next_of(array, length):
    return numpy.full(length, array[0] + 1, dtype=numpy.uint8)

@ciel.task(keep=False, retries=1)
def seen(array):
    return [len(array), int(array.min()), int(array.max())]

@ciel.task(keep=False, retries=1)
def wait(number):
    Path("waits").touch()
    Path("gate").read_text()
    return number

def lengths(count):
    return [2 * MIB + 999_983 * number % (3 * MIB) for number in range(count)]

def about(array):
    return [len(array), int(array.min()), int(array.max())]

def rounds(count):
    value, looks = made.spawn(0, 2 * MIB), []
    for length in lengths(count)[1:]:
        value = next_of.spawn(value, length)
        looks.append(seen.spawn(value).result())
        if len(looks) == WAITS:
            wait.spawn(1).result()
    return looks

def keeps(count):
    kept = []
    for number, length in enumerate(lengths(count)):
        array = made.spawn(number, length).result()
        if number % 5 == 0:
            kept.append((array, about(array)))
    return all(about(array) == before for array, before in kept) and len(kept)

def shown():
    for number in range(5):
        seen.spawn(made.spawn(number, 4 * MIB)).result()
    return wait.spawn(1).result()

def main(way, *words):
    return globals()[way](*map(int, words))
"""

OPTIONS = ("-j2", "--json", f"--store-memory={LENT}")


def job(waits: int = -1) -> str:
    """The job; its loop waits after so many rounds."""
    return JOB.replace("WAITS", str(waits))


def expected(count: int) -> list[list[int]]:
    """What the rounds have seen."""
    all_ = [2 * MIB + 999_983 * number % (3 * MIB) for number in range(count)]
    return [[length, number + 1, number + 1] for number, length in enumerate(all_[1:])]


def test_each_round_has_its_own_bytes_whatever_was_there_before(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, job(), "rounds", "40", options=OPTIONS)
    assert ended.value == expected(40)
    assert jobs.in_memory_of(tmp_path) == []


def test_arrays_that_the_program_keeps_do_not_change_while_others_are_made(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, job(), "keeps", "30", options=OPTIONS)
    assert ended.value == 6


def test_loop_that_is_killed_continues_with_the_bytes_it_had(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    path = jobs.write(tmp_path, job(12))
    live = jobs.start(path, "rounds", "24", options=OPTIONS)
    until(lambda: (tmp_path / "waits").exists() or live.poll() is not None)
    live.send_signal(signal.SIGKILL)
    live.communicate(timeout=jobs.DEADLINE_S)
    (tmp_path / "gate").unlink()
    (tmp_path / "gate").touch()
    ended = jobs.end_of(jobs.start(path, "rounds", "24", options=OPTIONS))
    assert ended.value == expected(24)
    assert jobs.in_memory_of(tmp_path) == []


def test_pages_that_wait_are_shown_and_go_by_themselves(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    live = jobs.start(jobs.write(tmp_path, job()), "shown", options=OPTIONS)
    until(lambda: (tmp_path / "waits").exists() or live.poll() is not None)

    def waiting() -> int:
        shown = jobs.command(tmp_path, "ps", "--store", "--json").lines[0]
        store = json.loads(shown)["store"]
        assert store["recycled_bytes"] <= LENT / 2
        return int(store["recycled_bytes"])

    until(lambda: waiting() == 0)
    (tmp_path / "gate").write_text("go")
    assert jobs.end_of(live).value == 1
