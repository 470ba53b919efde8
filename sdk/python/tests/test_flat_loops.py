"""`ciel.map` over short calls: what it shows is what the serial program shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from beats import stop_hearts
from jobs import Ended
from short_tasks import SHORT_TASKS
from test_in_place_of_main import PATIENT

MAPS = """
import random
import sys
import ciel
""" + SHORT_TASKS + """
@ciel.task
def falls(x):
    return falls.function(x + 1) if x % 70 > 60 else x

@ciel.task
def adds(a, b):
    return a + b

ALL = [plain, plain, plain, fails, leaves, large, lists, long, falls, dives, says, spawns]

def made(chance, x, count):
    for number in range(x, x + count):
        if chance.random() < 0.02:
            print("made", number)
        if chance.random() < 0.01:
            number += plain.spawn(number).result()
        yield number

def loop(seed, count):
    chance, x = random.Random(seed), 1
    for number in range(count):
        task, length = chance.choice(ALL), chance.choice([3, 30, 150])
        window, last = chance.choice([1, 2, 7, 40, 256]), chance.choice([20, 1000, 1000])
        items = made(chance, x, length)
        if chance.random() < 0.2:
            values = ciel.map(adds, items, range(length), window=window)
        else:
            values = ciel.map(task, items, window=window)
        try:
            for place, value in enumerate(values):
                x = (x * 7 + len(str(value))) % 1009
                if chance.random() < 0.02:
                    print("between", place, x)
                if chance.random() < 0.01:
                    x += plain.spawn(x).result()
                if place == last:
                    break
        except (Exception, SystemExit) as error:
            print("caught", type(error).__name__, x)
        print("mapped", number, x)
    return x

@ciel.task
def inner(seed, count):
    stop()
    return loop(seed, count)

def main(where, seed, count):
    if where == "main":
        stop()
        return loop(int(seed), int(count))
    return inner.spawn(int(seed), int(count)).result()

def stop():
    pass
"""


def _run(job: Path, *words: str, options: tuple[str, ...] = ()) -> Ended:
    return jobs.end_of(jobs.start(job, *words, options=options))


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_random_maps_show_what_the_serial_program_shows(
    slots: str, where: str, tmp_path: Path
) -> None:
    job = jobs.write(tmp_path, PATIENT + MAPS)
    for seed in ("1", "2"):
        serial = _run(job, where, seed, "15", options=("--serial",))
        ended = _run(job, where, seed, "15", options=(slots,))
        assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
        assert serial.status == 0, serial.talk


@pytest.mark.parametrize("where", ["main", "task"])
def test_killed_runs_of_maps_resume_to_the_same_end(where: str, tmp_path: Path) -> None:
    job = jobs.write(tmp_path, PATIENT + MAPS)
    serial = _run(job, where, "3", "20", options=("--serial",))
    ended = jobs.resumed(job, where, "3", "20", seed=3, kills=3, lines=40)
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk


AHEAD = """
import ciel
from ciel import _flat_loop

class Counted:
    asked = 0

@ciel.task
def short(x):
    return x * 31 % 1000003

@ciel.task
def add(a, b):
    return a + b

@ciel.task
def pair(x):
    return [x, x]

@ciel.task
def bad(x):
    if x == 900:
        raise ValueError("nine hundred")
    return x

def counting(ask):
    def counted(self):
        Counted.asked += 1
        return ask(self)
    return counted

def loop(name):
    _flat_loop.FlatLoop._ask = counting(_flat_loop.FlatLoop._ask)
    items, others = range(1000), [range(1000)] if name == "add" else []
    task = {"short": short, "add": add, "pair": pair, "bad": bad}[name]
    found = list(ciel.map(task, items, *others, window=100))
    return [str(found[-1]), Counted.asked]

@ciel.task
def inner(name):
    return loop(name)

def main(where, name):
    return loop(name) if where == "main" else inner.spawn(name).result()
"""


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize(("name", "last"), [("short", 999 * 31), ("add", 2 * 999)])
def test_short_calls_run_before_anybody_asks_for_them(
    where: str, name: str, last: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each took a strand, or a task where the machine was busy when the loop began."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + AHEAD)
    ended = _run(job, where, name, options=("-j1",))  # so no core gets idle
    assert ended.status == 0, ended.talk
    assert ended.value[0] == str(last)
    assert ended.value[1] <= 40, "the first ones"


@pytest.mark.parametrize("where", ["main", "task"])
def test_calls_that_give_what_is_not_plain_run_ahead_once_only(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + AHEAD)
    ended = _run(job, where, "pair", options=("-j2",))
    assert ended.value[0] == "[999, 999]", ended.talk
    assert ended.value[1] == 1000, "each value is asked of its future"


@pytest.mark.parametrize("where", ["main", "task"])
def test_failure_of_a_call_that_ran_ahead_has_its_name_and_its_frames(
    where: str, tmp_path: Path
) -> None:
    job = jobs.write(tmp_path, PATIENT + AHEAD)
    ended = _run(job, where, "bad", options=("-j2",))
    assert ended.status == 1
    assert "ValueError: nine hundred" in ended.talk and "bad@" in ended.talk
    assert "in bad" in ended.talk and "in loop" in ended.talk
    assert "in _run" not in ended.talk and "in _ask" not in ended.talk


BROKEN = """
import ciel

@ciel.task
def plain(x):
    return x * x

@ciel.task
def says(x):
    print("x is", x)
    return x

@ciel.task
def fails(x):
    return 1 // (5 - x)

def broken(count):
    yield from range(count)
    raise LookupError("no more")

def main():
    for task in (plain, says, fails):
        for count in (0, 3, 300):
            values = ciel.map(task, broken(count))
            got = []
            try:
                for value in values:
                    got.append(value)
            except (LookupError, ZeroDivisionError) as error:
                kind, rest = type(error).__name__, next(values, "end")
                print(task.__name__, count, len(got), sum(got), kind, rest)
"""


@pytest.mark.parametrize("options", [("--serial",), ("-j1",), ("-j2",)])
def test_values_before_the_exception_of_an_iterable_are_given(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """`ciel.map` raised the exception of an iterable when it came to it, a window ahead of its
    reader: the values of all calls in that window were lost, and the failure of one of them."""
    ended = jobs.run(tmp_path, BROKEN, options=options)
    assert ended.status == 0, ended.talk
    shown = [line for line in ended.lines if not line.startswith("x is")]
    assert shown == [
        "plain 0 0 0 LookupError end",
        "plain 3 3 5 LookupError end",
        "plain 300 300 8955050 LookupError end",
        "says 0 0 0 LookupError end",
        "says 3 3 3 LookupError end",
        "says 300 300 44850 LookupError end",
        "fails 0 0 0 LookupError end",
        "fails 3 3 0 LookupError end",
        "fails 300 5 1 ZeroDivisionError end",
    ]


WAITS = """
import ciel

@ciel.task
def plain(x):
    return x * x

@ciel.task
def told(x):
    print("told", x)
    return x

def asked(start):
    for number in range(start, start + 30):
        yield told.spawn(number).result()

@ciel.task
def total(start):
    return sum(ciel.map(plain, asked(start), window=7))

def main():
    return sum(ciel.gather([total.spawn(100 * start) for start in range(6)]))
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_strands_wait_in_the_iterables_of_their_maps(slots: str, tmp_path: Path) -> None:
    """Native code asks for the arguments of the next call: strands wait in it, several of a worker
    at once, and continue there in another order."""
    job = jobs.write(tmp_path, WAITS)
    serial, ended = _run(job, options=("--serial",)), _run(job, options=(slots,))
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
    assert serial.status == 0, serial.talk
    assert ended.value == sum(x * x for x in range(600) if x % 100 < 30)
