"""Jobs that spawn very much need little memory: the most of any of their processes.

The usual run is a small one; `make soak` sets `CIEL_SPAWNS`, and then an optimised build runs the
jobs.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import pytest

import jobs

SPAWNS = int(os.environ.get("CIEL_SPAWNS", "4000"))
"""Spawns of one task; levels of a recursion, and commands in the small run, are a tenth of it."""

BASE_KIB_MAX = 48 << 10
"""Memory of the largest process of a job that spawns little, at most."""

PROGRAM = """
import itertools

import ciel

@ciel.task
def add(a, b):
    return a + b

@ciel.task
def unfold(depth):
    if depth == 0:
        return 1
    first, second = unfold.spawn(depth - 1), unfold.spawn(depth - 1)
    return first.result() + second.result()

@ciel.task
def down(n):
    return down.spawn(n - 1).result() + 1 if n > 0 else 0

@ciel.task
def pending(count):
    futures = [add.spawn(n, 1) for n in range(count)]
    return sum(future.result() for future in futures)

@ciel.task
def forgetting(count):
    for n in range(count):
        last = add.spawn(n, 1)
    return last.result()

@ciel.task
def mapping(count):
    for value in ciel.map(add, itertools.count(), itertools.repeat(1)):
        if value == count:
            return value

@ciel.task
def commands(count):
    for n in range(count):
        ciel.sh("true", pure=False)
    return count

def main(what, count):
    tasks = {one.__name__: one for one in (unfold, down, pending, forgetting, mapping, commands)}
    return tasks[what].spawn(int(count)).result()
"""


def ended(folder: Path, what: str, count: int, kib_max: float) -> object:
    """The value of a job, whose processes must need no more than that beside the base."""
    job = jobs.write(folder, PROGRAM)
    begun = time.monotonic()
    end, peak_kib = jobs.run_measured(job, what, str(count), options=("-j2",))
    took_s = time.monotonic() - begun
    print(f"{count} of {what}: {took_s:.1f} s, peak {peak_kib >> 10} MiB")
    assert peak_kib < BASE_KIB_MAX + kib_max
    return end.value


def test_pending_spawns_of_one_task_take_a_kibibyte_each_at_most(tmp_path: Path) -> None:
    """With the future, which the program keeps, and the result; most have become tasks."""
    assert ended(tmp_path, "pending", SPAWNS, SPAWNS) == SPAWNS * (SPAWNS + 1) // 2


def test_spawns_whose_futures_are_gone_take_less(tmp_path: Path) -> None:
    """What is left of them is for a replay of the task, which knows them by their names."""
    assert ended(tmp_path, "forgetting", SPAWNS, SPAWNS * 0.4) == SPAWNS


def test_map_over_an_endless_iterator_stops_with_its_reader(tmp_path: Path) -> None:
    """Each of its tasks kept 1.3 KiB until the one that maps had ended."""
    assert ended(tmp_path, "mapping", SPAWNS, SPAWNS * 0.5) == SPAWNS


def test_recursion_that_would_unfold_into_very_many_tasks_stays_small(tmp_path: Path) -> None:
    """Ten times the spawns; two calls wait at each of its levels, and no others."""
    depth = math.ceil(math.log2(SPAWNS * 10)) - 1
    assert ended(tmp_path, "unfold", depth, 0) == 2**depth


def test_levels_in_place_take_ten_kibibytes_each_at_most(tmp_path: Path) -> None:
    """Until they have ended."""
    levels = SPAWNS // 10
    assert ended(tmp_path, "down", levels, levels * 10) == levels


def test_commands_of_one_task_take_little_when_they_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that spawns them pauses at the bound."""
    count = SPAWNS if SPAWNS > 100_000 else SPAWNS // 10
    monkeypatch.setenv("CIEL_CHILDREN_MAX", str(count // 100))
    assert ended(tmp_path, "commands", count, count * 0.5) == count
