"""Workers that prefetch, with a real engine: chains and many small tasks.

Prefetched starts affect timing only. Read next: `test_ahead.py` for the messages, "Prefetched
starts" in PROTOCOL.md. """

from __future__ import annotations

import os
from pathlib import Path

import pytest

import jobs
from conditions import until

MODES = [("-j1",), ("-j2",), ("-j4",), ("--serial",)]

GATED = """
import os
import ciel

@ciel.task
def quick(n):
    return n

@ciel.task
def reads(path):
    with open(path) as gate:
        return gate.read()

@ciel.task
def writes(path):
    with open(path, "w") as gate:
        gate.write("through")

def main(count):
    path = os.path.abspath("gate")
    before = [quick.spawn(n) for n in range(int(count))]
    read = reads.spawn(path)
    between = [quick.spawn(n) for n in range(8)]
    writes.spawn(path)
    after = [quick.spawn(n) for n in range(int(count))]
    return [read.result(), sum(ciel.gather(before + between + after))]
"""


def test_task_that_takes_long_keeps_nobody_waiting_behind_it(tmp_path: Path) -> None:
    # The start of the task that opens the gate is prefetched to the worker that waits at it.
    for at in range(5):
        folder = tmp_path / str(at)
        folder.mkdir()
        os.mkfifo(folder / "gate")
        ended = jobs.run(folder, GATED, "400", options=("-j2",))
        assert ended.value == ["through", 400 * 399 + 28]


BROKEN = """
import ciel

@ciel.task
def link(n, before, other):
    if n == 150:
        raise ValueError(f"link {n} is broken")
    if n % 50 == 0:
        print("link", n)
    return (before + other + n) % 1009

def main():
    links = [link.spawn(-1, 0, 0), link.spawn(-2, 1, 1)]
    for n in range(300):
        links.append(link.spawn(n, links[-2].later, links[-1].later))
    told = []
    for future in links:
        try:
            told.append(future.result())
        except ValueError as error:
            told.append(str(error))
    return told
"""


def test_chain_that_breaks_tells_what_the_serial_program_tells(tmp_path: Path) -> None:
    shown = []
    for at, options in enumerate(MODES):
        folder = tmp_path / str(at)
        folder.mkdir()
        ended = jobs.run(folder, BROKEN, options=(*options, "--keep-going"))
        shown.append((ended.value, ended.lines))
    assert shown[0][0][152:] == ["link 150 is broken"] * 150
    assert shown[0][1][:3] == ["link 0", "link 50", "link 100"]
    assert all(each == shown[0] for each in shown)


KILLED = """
import os
import ciel

@ciel.task
def link(n, before):
    with open("ran", "a") as file:
        file.write(f"{n} {os.getpid()}\\n")
    return before + n

def main(count):
    last = link.spawn(0, 0)
    for n in range(1, int(count)):
        last = link.spawn(n, last.later)
    return last.result()
"""


def test_chain_whose_worker_is_killed_goes_on_without_a_gap(tmp_path: Path) -> None:
    count = 3000
    process = jobs.start(jobs.write(tmp_path, KILLED), str(count))
    ran = tmp_path / "ran"
    until(lambda: ran.exists() and len(ran.read_text("utf-8").splitlines()) > count // 4)
    jobs.kill_at_once(jobs.serving_of(process.pid))
    ended = jobs.end_of(process)
    assert ended.value == count * (count - 1) // 2
    numbers = [int(line.split()[0]) for line in ran.read_text("utf-8").splitlines()]
    assert sorted(set(numbers)) == list(range(count))


SCOPES = """
import ciel

@ciel.task
def quick(n, before=0):
    return n + before

def attempt(size, chained):
    with ciel.scope():
        last = quick.spawn(0)
        for n in range(size):
            last = quick.spawn(n, last.later) if chained else quick.spawn(n)
        raise KeyError(size)

def main():
    caught = 0
    for size in range(0, 120, 3):
        try:
            attempt(size, size % 2 == 0)
        except KeyError:
            caught += 1
    return [caught, sum(ciel.gather([quick.spawn(n) for n in range(100)]))]
"""


@pytest.mark.parametrize("options", [("-j1",), ("-j2",)])
def test_tasks_that_are_cancelled_while_told_ahead_do_no_harm(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    assert jobs.run(tmp_path, SCOPES, options=options).value == [40, 4950]


FAILING = """
import ciel

@ciel.task
def quick(n):
    if n == 700:
        raise ValueError("seven hundred")
    return n

def main():
    return sum(ciel.gather([quick.spawn(n) for n in range(2000)]))
"""


def test_failure_among_many_small_tasks_ends_the_job_at_once(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, FAILING, options=("-j2", "--fail-fast"))
    assert ended.status == 1
    assert "seven hundred" in ended.talk
