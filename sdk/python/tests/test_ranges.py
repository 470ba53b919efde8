"""Children of one task that are spawned one after the other, and promoted as ranges."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs

FANNED = """
import os
import signal
import time
import ciel

@ciel.task
def work(number):
    end = time.perf_counter() + 0.0005
    while time.perf_counter() < end:
        pass
    if number > 0:
        open("other", "w").close()
    while os.path.exists("await") and not os.path.exists("other"):
        pass
    if number % 40 == 7:
        print("work", number)
    if number == 123:
        raise ValueError(number)
    if number == 151 and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number

@ciel.task
def fan(count):
    futures = [work.spawn(number) for number in range(count)]
    found = 0
    for number, future in enumerate(futures):
        try:
            found += future.result()
        except ValueError as error:
            print("failed", number, error)
    return found

def main(count):
    fans = [fan.spawn(int(count)) for _ in range(2)]
    for one in fans:
        print(one.result())
"""

COUNT = 400


def _expected() -> bytes:
    """What the serial program prints."""
    said = [f"work {number}" for number in range(COUNT) if number % 40 == 7]
    total = sum(number * number for number in range(COUNT) if number != 123)
    fan = "\n".join([*said, "failed 123 123", ""])
    return f"{fan}{fan}{total}\n{total}\n".encode()


def _job(folder: Path, *, dies: bool) -> Path:
    if not dies:
        (folder / "killed").touch()
    return jobs.write(folder, FANNED)


@pytest.mark.parametrize("slots", ["-j1", "-j2", "-j5"])
def test_flat_loop_shows_what_the_serial_program_shows(slots: str, tmp_path: Path) -> None:
    job = _job(tmp_path, dies=False)
    ended = jobs.end_of(jobs.start(job, str(COUNT), options=(slots,)))
    assert (ended.status, ended.printed) == (0, _expected()), ended.talk


def test_each_child_of_a_range_has_a_name(tmp_path: Path) -> None:
    """The first call of a loop ends when another core has a range of the others."""
    job = _job(tmp_path, dies=False)
    (tmp_path / "await").touch()
    ended = jobs.end_of(jobs.start(job, str(COUNT), options=("-j5",)))
    assert ended.status == 0, ended.talk
    lines = jobs.command(tmp_path, "ps", "--all").printed.decode().splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  work@")]
    assert len(names) == len(set(names)) > 10


@pytest.mark.parametrize("slots", ["-j1", "-j2", "-j5"])
def test_worker_that_dies_within_a_range_changes_nothing(slots: str, tmp_path: Path) -> None:
    job = _job(tmp_path, dies=True)
    ended = jobs.end_of(jobs.start(job, str(COUNT), options=(slots,)))
    assert (ended.status, ended.printed) == (0, _expected()), ended.talk
    assert (tmp_path / "killed").exists()


def test_run_killed_within_a_range_resumes_to_the_same_end(tmp_path: Path) -> None:
    job = _job(tmp_path, dies=False)
    for lines in (1, 4, 12):
        jobs.kill_after(jobs.start(job, str(COUNT), options=("-j5",)), lines)
    ended = jobs.end_of(jobs.start(job, str(COUNT), options=("-j5",)))
    assert (ended.status, ended.printed) == (0, _expected()), ended.talk
