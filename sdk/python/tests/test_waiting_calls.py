"""Calls with futures that `main` keeps until it asks for them, and then runs in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from beats import stop_hearts
from test_in_place_of_main import PATIENT, _counts, _run

ROUNDS = """
import ciel

@ciel.task
def part(x):
    print(end="")
    return x + 1

@ciel.task
def total(*parts):
    return sum(parts) % 1000003

def main(count):
    x = 1
    for _ in range(int(count)):
        x = total.spawn(*[part.spawn(x * 7 + number) for number in range(2)]).result()
    return x
"""
"""`part` may print, so each of its calls is a task."""


def _rounds(count: int) -> int:
    x = 1
    for _ in range(count):
        x = sum(x * 7 + number + 1 for number in range(2)) % 1000003
    return x


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_call_that_needs_tasks_runs_in_place_of_main_that_asks_for_it(
    slots: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was a task, that a worker began after the last of its inputs, for `main` to wait for."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + ROUNDS)
    ended = _run(job, "100", options=(slots,))
    assert ended.value == _rounds(100), ended.talk
    count, in_place = _counts(tmp_path, "total")
    assert count == 100
    assert in_place > 50


KINDS = """
import random
import ciel

@ciel.task
def part(x):
    print("part", x)
    return x + 1

@ciel.task
def fails(x):
    print(end="")
    if x % 3 == 0:
        raise ValueError(f"bad {x}")
    return x

@ciel.task
def large(x):
    print(end="")
    return str(x) * (2000 if x % 2 else 1)

@ciel.task
def listed(x):
    print(end="")
    return [x, (x, "text")]

@ciel.task
def joined(*parts):
    return sum(len(str(one)) for one in parts)

@ciel.task
def picky(*parts):
    if sum(len(str(one)) for one in parts) % 4 == 1:
        raise KeyError("picky")
    return len(parts)

@ciel.task
def lists(*parts):
    return [len(str(one)) for one in parts]

@ciel.task
def changes(first, *parts):
    if isinstance(first, list):
        first.append(1)
    return len(str(first)) * 3 + len(parts)

@ciel.task
def says(*parts):
    print("says", len(parts))
    return len(parts)

def shown(future):
    try:
        return str(future.result())
    except (ValueError, KeyError) as error:
        return f"{type(error).__name__} {error}"

def main(seed, count):
    chance, later, x = random.Random(seed), [], 1
    for number in range(int(count)):
        parts = []
        for _ in range(chance.choice([1, 2, 2, 3])):
            parts.append(chance.choice([part, part, fails, large, listed]).spawn(x + len(parts)))
        if chance.random() < 0.2:
            x = (x * 7 + len(shown(parts[0]))) % 1009
        given = [*parts, *chance.choice([[], [], [number], ["text", 1.5]])]
        task = chance.choice([joined, joined, joined, picky, lists, changes, says])
        future = task.spawn(*given)
        what = chance.randrange(20)
        if what == 0:
            later.append(future)
            continue
        if what == 1:
            print("before", number)
        elif what == 2:
            part.spawn(number)
        elif what == 3:
            future = joined.spawn(future, *parts)
        elif what == 4:
            parts, future = [], joined.spawn(future)
        elif what == 5:
            ciel.wait([future, parts[0]])
        elif what == 6:
            print("done" if future.done() in (True, False) else "never")
        x = (x * 7 + len(shown(future))) % 1009
        if what == 7:
            print("in all", sum(len(shown(one)) for one in ciel.as_completed(parts)))
        elif what == 8:
            x += len(shown(joined.spawn(future, future)))
        elif what < 12:
            print("at", number, x)
        if number == int(count) // 2:
            stop()
    return [x, [shown(future) for future in later]]

def stop():
    pass
"""


def _kinds(folder: Path, stop: str = "pass") -> Path:
    text = KINDS.replace("def stop():\n    pass", f"def stop():\n    {stop}")
    return jobs.write(folder, PATIENT + text)


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_random_rounds_of_main_show_what_the_serial_program_shows(
    slots: str, tmp_path: Path
) -> None:
    job = _kinds(tmp_path)
    for seed in ("1", "2", "3"):
        serial = _run(job, seed, "150", options=("--serial",))
        ended = _run(job, seed, "150", options=(slots,))
        assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
        assert serial.status == 0, serial.talk
    assert _counts(tmp_path, "joined")[1] > 0


PROMOTING = """
import random
from ciel import _keeping_strand

_keep = _keeping_strand.KeepingStrand._keep_placed
_chance = random.Random(CHOICE)

def _keep_then_promote(strand, child):
    _keep(strand, child)
    if _chance.random() < PART:
        strand.promote()

_keeping_strand.KeepingStrand._keep_placed = _keep_then_promote
"""
"""Behind a job: of the calls that are kept some become tasks at once, before or after the wait."""


@pytest.mark.parametrize("part", [0.4, 1.0])
def test_calls_that_become_tasks_at_any_time_show_the_same(part: float, tmp_path: Path) -> None:
    promoting = PROMOTING.replace("CHOICE", "5").replace("PART", str(part))
    job = jobs.write(tmp_path, PATIENT + KINDS + promoting)
    for seed in ("4", "5"):
        serial = _run(job, seed, "150", options=("--serial",))
        ended = _run(job, seed, "150", options=("-j2",))
        assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_main_that_dies_after_such_calls_goes_on_where_it_was(slots: str, tmp_path: Path) -> None:
    serial = _run(_kinds(tmp_path), "6", "150", options=("--serial",))
    ended = _run(_kinds(tmp_path, jobs.DIES_ONCE), "6", "150", options=(slots,))
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
    assert (tmp_path / "killed").exists()


def test_killed_runs_of_such_rounds_resume_to_the_same_end(tmp_path: Path) -> None:
    job = _kinds(tmp_path)
    serial = _run(job, "7", "300", options=("--serial",))
    ended = jobs.resumed(job, "7", "300", seed=7, kills=5, lines=200)
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk


FAILING = """
import ciel

@ciel.task
def part(x):
    print(end="")
    return x

@ciel.task
def divided(x, y):
    return x // y

def main():
    for y in range(20, -1, -1):
        divided.spawn(part.spawn(100), part.spawn(y)).result()
"""


def test_failure_of_such_a_call_is_that_of_its_task(tmp_path: Path) -> None:
    job = jobs.write(tmp_path, PATIENT + FAILING)
    ended = _run(job, options=("-j2",))
    assert ended.status != 0
    assert "ZeroDivisionError" in ended.talk
    assert "return x // y" in ended.talk
    assert "divided@" in ended.talk


CHAIN = """
import ciel

@ciel.task
def add(x, y):
    return (x + y) % 1000003

def main(count):
    x = add.spawn(add.spawn(0, 1), 0).result()
    before, last = 0, 1
    for _ in range(int(count)):
        before, last = last, add.spawn(before, last)
    return last.result()
"""


def test_chain_for_whose_last_call_main_asks_is_sent_as_it_is_spawned(tmp_path: Path) -> None:
    """A call is kept only where `main` asks for it next; here it would begin too late."""
    job = jobs.write(tmp_path, PATIENT + CHAIN)
    before, last = 0, 1
    for _ in range(300):
        before, last = last, (before + last) % 1000003
    assert _run(job, "300", options=("-j2",)).value == last
