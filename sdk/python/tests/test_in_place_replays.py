"""Children that ran in place, in a task whose process has died: what is recorded and repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs


REPLAYED = """
import os
import signal
import ciel
from ciel import _worker

@ciel.task
def small(n):
    return n

@ciel.task
def says(n):
    print("says", n)
    return n

@ciel.task
def hops(n):
    return small.tail(n)

# Until the worker is killed, no task is too old for a tail in place; then each of them is.
_worker.IN_PLACE_S = -1 if os.path.exists("killed") else 1e9

def die_once():
    if not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)

@ciel.task
def writes():
    found = small.spawn(1).result()
    print("written", found)
    die_once()
    return found

@ciel.task
def spawns_later():
    first, second = small.spawn(1), says.spawn(2)
    found = first.result() + second.result()
    die_once()
    return found

@ciel.task
def tails():
    found = hops.spawn(1).result()
    says.spawn(2).result()
    die_once()
    return found

def main(name):
    return {"writes": writes, "spawns_later": spawns_later, "tails": tails}[name].spawn().result()
"""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("writes", ["written 1", "1"]),
        ("spawns_later", ["says 2", "3"]),
        ("tails", ["says 2", "1"]),
    ],
)
def test_what_ended_in_place_does_so_again_in_a_replay(
    name: str, shown: list[str], tmp_path: Path
) -> None:
    """It was spawned in the replay, behind output that had come after it; or the spawns behind it
    failed, as it had not ended yet; or it was no longer young enough for a tail in place.
    """
    ended = jobs.run(tmp_path, REPLAYED, name, options=("-j1",))
    assert (ended.status, ended.lines) == (0, shown), ended.talk


def test_child_that_has_run_for_long_is_recorded(tmp_path: Path) -> None:
    """Whatever had ended in place was lost with the worker, however long it had taken.

    Long is more than ten heartbeats. The child takes half a second of a core, not of the clock: as
    long as it is delayed, so is the heart.
    """
    job = jobs.write(
        tmp_path,
        """
import os
import signal
import time
import ciel

@ciel.task
def long(n):
    with open("begun", "a") as file:
        file.write("x")
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        sum(range(1000))
    return n

@ciel.task
def parent():
    found = long.spawn(1).result()
    if not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return found

def main():
    return parent.spawn().result()
""",
    )
    assert jobs.end_of(jobs.start(job, options=("-j1",))).value == 1
    assert (tmp_path / "begun").read_text() == "x"


def test_segmentation_fault_of_a_child_is_caught_by_its_parent(tmp_path: Path) -> None:
    """The parent dies with a child that runs in place; in its replay the child is a task."""
    job = jobs.write(
        tmp_path,
        """
import os
import signal
import ciel

@ciel.task
def crashes(n):
    os.kill(os.getpid(), signal.SIGSEGV)

@ciel.task
def parent():
    try:
        return crashes.spawn(7).result()
    except ciel.WorkerLost as error:
        return str(error)

def main():
    return parent.spawn().result()
""",
    )
    ended = jobs.end_of(jobs.start(job, options=("-j1",)))
    assert "SIGSEGV" in ended.value, ended
    assert "crashes@" in ended.talk or "in crashes" in ended.talk


ASKED = """
import os
import signal
import ciel

@ciel.task
def small(n):
    return n

@ciel.task
def asks():
    futures = [small.spawn(n) for n in range(3)]
    found = [future.result() for future in futures[:2]]
    found += [futures[0].done(), futures[1].cancel(), futures[0].done()]
    found += [small.spawn(futures[0]).result(), ciel.task_rng().randrange(1 << 30)]
    if not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return found

def main():
    return asks.spawn().result()
"""


def test_futures_whose_calls_ran_in_place_can_be_asked_about(tmp_path: Path) -> None:
    """`done()` and `cancel()` stored the value as an argument of the next action, behind what is
    observed before that: the task failed as one whose replay differs.
    """
    (tmp_path / "killed").touch()
    serial = jobs.run(tmp_path, ASKED, options=("--serial",))
    (tmp_path / "killed").unlink()
    ended = jobs.run(tmp_path, ASKED, options=("-j1",))
    assert ended.value == [0, 1, True, False, True, 0, serial.value[-1]], ended.talk
