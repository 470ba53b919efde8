"""Results that no program can name are removed with their files; runs give what they gave before.

A task once kept the file of every result of which it had ever had a future: a loop of fifteen
rounds with 100 MB each left 1.7 GB on the disk until it ended. The tasks of these jobs look into
the folder of their own run, and wait until no more files are there than should be.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from conditions import until

import ciel

LOOKING = """
import glob
import os
import time
import ciel

MIB = 1 << 20

def on_disk():
    total = 0
    for path in glob.glob("state/runs/*/objects/**", recursive=True):
        try:
            total += os.path.getsize(path) if os.path.isfile(path) else 0
        except FileNotFoundError:
            pass
    return total

def wait_for(most):
    deadline = time.monotonic() + 600
    while on_disk() > most:
        assert time.monotonic() < deadline, f"{on_disk()} bytes, {most} at most"
        time.sleep(0.001)
"""

LOOP = (
    LOOKING
    + """
@ciel.task
def step(before):
    wait_for(4 * MIB)
    return bytes([before[0] + 1]) * MIB

def main():
    result = step.spawn(b"0")
    for _ in range(39):
        result = step.spawn(result)
        WAITS
    return result.result()[0]
"""
)


@pytest.mark.parametrize("waits", ["pass", "ciel.wait([other.spawn()])"])
@pytest.mark.parametrize("options", [("-j2",), ("-j2", "--durable=never")])
def test_loop_keeps_the_files_of_its_last_rounds_only(
    waits: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    other = "\n@ciel.task\ndef other():\n    pass\n"
    ended = jobs.run(tmp_path, LOOP.replace("WAITS", waits) + other, options=options)
    assert ended.value == ord("0") + 40


WIDE = (
    LOOKING
    + """
@ciel.task
def part(n):
    return n.to_bytes(2) * 2048

@ciel.task
def look():
    wait_for(0)

def main():
    parts = [part.spawn(n) for n in range(1000)]
    del parts
    look.spawn().result()
"""
)


def test_results_of_a_deleted_list_are_removed(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, WIDE)
    assert ended.status == 0, ended.talk


KEPT = (
    LOOKING
    + """
@ciel.task
def part(n):
    return bytes([n]) * MIB

@ciel.task
def joined(parts):
    return b"".join(part[:1] for part in parts)

@ciel.task
def last_of(parts: list[ciel.Future[bytes]]):
    return parts[-1].result()[:1]

def main():
    parts = [part.spawn(n) for n in range(4)]
    first = parts[0].result()
    del parts[0]
    all_there = joined.spawn(parts)
    last = last_of.spawn(parts)
    del parts
    return [*first[:1], *all_there.result(), *last.result()]
"""
)


def test_results_that_tasks_still_need_stay(tmp_path: Path) -> None:

    ended = jobs.run(tmp_path, KEPT)
    assert ended.value == [0, 1, 2, 3, 3]


@ciel.task
def grown(before: bytes) -> bytes:
    """A megabyte; its first byte counts."""
    return bytes([before[0] + 1]) * (1 << 20)


def test_loop_of_a_session_keeps_the_files_of_its_last_rounds_only(tmp_path: Path) -> None:
    def files() -> int:
        folders = [*jobs.in_memory_of(tmp_path), *tmp_path.glob("runs/*")]
        found = [path for folder in folders for path in folder.glob("objects/**/*")]
        return len([path for path in found if path.is_file()])

    with ciel.Session(jobs=2, state=tmp_path) as session:
        result = session.submit(grown, b"0")
        for _ in range(39):
            result = session.submit(grown, result.later)
        assert result.result()[0] == ord("0") + 40
        until(lambda: 1 <= files() <= 3)
        put = session.put(bytes(1 << 20))
        del put, result
        session.submit(grown, b"0").result()
        until(lambda: 1 <= files() <= 4)


KILLED = """
import os
import time
import ciel

MIB = 1 << 20

@ciel.task
def step(before, n):
    with open("begun", "a") as file:
        file.write(f"{n}\\n")
    while n == 20 and not os.path.exists("go"):
        time.sleep(0.001)
    return bytes([before[0] + 1]) * MIB

def main():
    result = step.spawn(b"0", 0)
    for n in range(1, 40):
        result = step.spawn(result, n)
    return result.result()[0]
"""


def _started(tmp_path: Path) -> int:
    begun = tmp_path / "begun"
    return len(begun.read_text("utf-8").splitlines()) if begun.exists() else 0


@pytest.mark.parametrize("victim", ["workers", "engine"])
def test_loop_that_is_killed_in_its_midst_gives_the_same_result(
    victim: str, tmp_path: Path
) -> None:
    job = jobs.write(tmp_path, KILLED)
    process = jobs.start(job)
    until(lambda: _started(tmp_path) > 20)
    if victim == "workers":
        jobs.kill_at_once(jobs.serving_of(process.pid))
    else:
        process.kill()
        process.communicate()
    (tmp_path / "go").touch()
    ended = jobs.end_of(process if victim == "workers" else jobs.start(job))
    assert ended.value == ord("0") + 40
    again = [int(n) for n in (tmp_path / "begun").read_text("utf-8").split()]
    assert sorted(set(again)) == list(range(40))
    assert again.count(20) == 2
