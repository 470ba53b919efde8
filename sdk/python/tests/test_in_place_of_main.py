"""Calls that run in place of `main`: a loop of it that asks for one result after the other."""

from __future__ import annotations

import functools
import json
import math
import os
import random
import threading
from collections.abc import Callable
from heapq import nsmallest
from pathlib import Path
from typing import Any

import pytest

import jobs
from ciel import _leaves
from ciel._leaves import leaves_nothing
from ciel._trials import PAUSE, Trials

PATIENT = """
import ciel._keeping_strand, ciel._short_calls

ciel._keeping_strand.SHORT_S = ciel._short_calls.SHORT_S = 600
"""
"""Before a job: calls are short on the slowest machine, so that which of them run in place does not
depend on its speed, but for calls that run when a heartbeat comes."""

LOOP = """
import ciel

@ciel.task
def step(x):
    return x * 31 % 1000003

def main(count):
    x = 1
    for _ in range(int(count)):
        x = step.spawn(x).result()
    return x
"""

ROUNDS = 400


def _run(job: Path, *args: str, options: tuple[str, ...]) -> jobs.Ended:
    return jobs.end_of(jobs.start(job, *args, options=options))


def _counts(folder: Path, function: str) -> tuple[int, int]:
    """How many calls of a function ran, of all runs of the folder, and how many in place."""
    talk = jobs.command(folder, "ps", "--all").printed.decode()
    lines = [line.split() for line in talk.splitlines() if "of them in place" in line]
    found = [(int(words[1]), int(words[-5])) for words in lines if words[0] == function]
    return sum(count for count, _ in found), sum(in_place for _, in_place in found)


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_rounds_of_a_loop_of_main_run_in_place(slots: str, tmp_path: Path) -> None:
    """Each round of one spawn and one wait was a task, and cost a hundred times a call in place."""
    job = jobs.write(tmp_path, PATIENT + LOOP)
    assert _run(job, str(ROUNDS), options=(slots,)).value == pow(31, ROUNDS, 1000003)
    count, in_place = _counts(tmp_path, "step")
    assert count == ROUNDS
    assert in_place > ROUNDS // 2


KINDS = """
import math
import random
import ciel

SCALE = 3

def halved(x):
    return x // 2 if x % 2 == 0 else 3 * x + 1

@ciel.task
def plain(x):
    return halved(x) * SCALE % 1009

@ciel.task
def fails(x):
    if x % 5 == 2:
        raise ValueError(f"bad {x}")
    return x + 1

@ciel.task
def large(x):
    return str(x) * (3000 if x % 4 == 0 else 1)

@ciel.task
def long(x):
    end = x
    for number in range(400000 if x % 7 == 3 else 10):
        end = (end * 31 + number) % 1009
    return end

@ciel.task
def says(x):
    print("says", x)
    return x

@ciel.task
def spawns(x):
    return plain.spawn(x).result() + fails.spawn(0).result()

def made(x, count):
    for number in range(x, x + count):
        if number % 3 == 0:
            print("made", number)
        yield number

def main(seed, count):
    chance, waiting, x = random.Random(seed), [], 1
    for number in range(int(count)):
        if chance.random() < 0.2:
            task = chance.choice([plain, plain, fails, large, long, says])
            try:
                for value in ciel.map(task, made(x, 9), window=chance.choice([1, 2, 5])):
                    x = (x * 7 + len(str(value))) % 1009
                print("mapped", x)
            except ValueError as error:
                print("caught in a map", error)
        task = chance.choice([plain, plain, plain, fails, fails, large, long, says, spawns])
        futures = [task.spawn(x + part) for part in range(chance.choice([1, 1, 1, 2, 3]))]
        if chance.random() < 0.1:
            waiting.append(futures.pop())
        for future in futures:
            try:
                x = (x * 7 + len(str(future.result()))) % 1009
            except ValueError as error:
                print("caught", error)
        if chance.random() < 0.1:
            print("at", number, x)
        if number == int(count) // 2:
            stop()
    return [x, [len(str(future.exception() or future.result())) for future in waiting]]

def stop():
    pass
"""


def _rounds(folder: Path, stop: str = "pass") -> Path:
    text = KINDS.replace("def stop():\n    pass", f"def stop():\n    {stop}")
    return jobs.write(folder, PATIENT + text)


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_random_loops_of_main_show_what_the_serial_program_shows(
    slots: str, tmp_path: Path
) -> None:
    job = _rounds(tmp_path)
    for seed in ("1", "2"):
        serial = _run(job, seed, "150", options=("--serial",))
        ended = _run(job, seed, "150", options=(slots,))
        assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
        assert serial.status == 0, serial.talk
    assert _counts(tmp_path, "plain")[1] > 0


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_main_that_dies_after_calls_in_place_goes_on_where_it_was(
    slots: str, tmp_path: Path
) -> None:
    serial = _run(_rounds(tmp_path), "4", "150", options=("--serial",))
    ended = _run(_rounds(tmp_path, jobs.DIES_ONCE), "4", "150", options=(slots,))
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
    assert (tmp_path / "killed").exists()


def test_killed_runs_of_such_loops_resume_to_the_same_end(tmp_path: Path) -> None:
    job = _rounds(tmp_path)
    serial = _run(job, "6", "300", options=("--serial",))
    ended = jobs.resumed(job, "6", "300", seed=6, kills=4, lines=60)
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk


UNEVEN = """
import ciel

@ciel.task
def step(x):
    for number in range(1000000 if x == 100 else 10):
        x = (x * 31 + number) % 1000003
    return x

def main(count):
    return [step.spawn(number).result() for number in range(int(count))]
"""

MAPS = """
import ciel

@ciel.task
def short(x):
    if x == 900:
        raise ValueError("nine hundred")
    return x * 31 % 1000003

@ciel.task
def long(x):
    for number in range(20000):
        x = (x * 31 + number) % 1000003
    return x

def main(name, count):
    total, task = 0, {"short": short, "long": long}[name]
    for value in ciel.map(task, range(int(count)), window=50):
        total += value
    return total
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_short_calls_of_a_map_of_main_run_in_place(slots: str, tmp_path: Path) -> None:
    """Each was a task, which took ten times as long as the work, and more on a busy machine."""
    job = jobs.write(tmp_path, PATIENT + MAPS)
    ended = _run(job, "short", "800", options=(slots,))
    assert ended.value == sum(x * 31 % 1000003 for x in range(800)), ended.talk
    count, in_place = _counts(tmp_path, "short")
    assert count == 800
    assert in_place > 400


def test_long_calls_of_a_map_of_main_are_tasks_but_for_a_few_tries(tmp_path: Path) -> None:
    """They would keep one core busy, and the others idle."""
    job = jobs.write(tmp_path, MAPS)
    assert _run(job, "long", "150", options=("-j2",)).status == 0
    count, in_place = _counts(tmp_path, "long")
    assert count in (0, 150), "the line is there if some ran in place"
    assert in_place <= 5, "three tries, one after 32 further calls, the next one after 64 more"


def test_function_whose_tries_were_long_has_another_try_later() -> None:
    """Three tries on a busy machine made tasks of all further calls, however short they were."""
    trials = Trials()
    tried = []
    for number in range(300):
        if trials.next():
            tried.append(number)
            trials.ended(is_short=number >= 100)
    once = 2 + PAUSE + 1
    assert tried == [0, 1, 2, once, *range(once + 2 * PAUSE + 1, 300)]


def test_call_of_a_loop_of_main_that_became_a_task_is_measured_again(tmp_path: Path) -> None:
    """One call that was stopped for a heartbeat made tasks of all calls for the rest of the run."""
    job = jobs.write(tmp_path, PATIENT + UNEVEN)
    assert _run(job, "300", options=("-j2",)).status == 0
    count, in_place = _counts(tmp_path, "step")
    assert count == 300
    assert in_place > 150, "those after the long one, which is the hundredth"


def test_failure_of_a_short_call_of_a_map_is_raised_when_its_value_is_due(tmp_path: Path) -> None:
    job = jobs.write(tmp_path, MAPS)
    ended = _run(job, "short", "1000", options=("-j2",))
    assert ended.status == 1
    assert "ValueError: nine hundred" in ended.talk and "short@" in ended.talk
    assert "in short" in ended.talk and "in main" in ended.talk
    ended = _run(job, "short", "1000", options=("--serial",))
    assert "ValueError: nine hundred" in ended.talk


def test_function_that_changes_its_module_does_not_change_that_of_main(tmp_path: Path) -> None:
    job = jobs.write(
        tmp_path,
        """
import ciel

calls = 0

@ciel.task
def counts(x):
    global calls
    calls += 1
    return x

def main():
    for number in range(100):
        counts.spawn(number).result()
    return calls
""",
    )
    assert _run(job, options=("-j2",)).value == 0


def test_failure_of_a_call_in_place_of_main_has_its_own_frames(tmp_path: Path) -> None:
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def step(x):
    if x == 200:
        raise ValueError("at the end")
    return x + 1

def main():
    x = 0
    while True:
        x = step.spawn(x).result()
""",
    )
    ended = _run(job, options=("-j2",))
    assert ended.status == 1
    assert "step@" in ended.talk and "ValueError: at the end" in ended.talk
    assert "in main" in ended.talk and "in step" in ended.talk


OTHER = """
import ciel

class Box:
    asked = 0

    def ask(self):
        Box.asked += 1

seen = []
FACTOR = 1

def note(x):
    seen.append(x)

@ciel.task
def uses(part, x):
    if callable(part):
        part(x)
    elif part is not None:
        part.ask()
    return x

def counts(x):
    counts.calls.append(x)
    return x

counts.calls = []

@ciel.task
def counts_within(x):
    return counts(x)

def times(x):
    return x * FACTOR

@ciel.task
def scaled(x):
    return times(x)

def main():
    global FACTOR
    for part in (None, note, Box()):
        for number in range(50):
            uses.spawn(part, number).result()
    for number in range(50):
        counts_within.spawn(number).result()
    results = [scaled.spawn(1).result() for _ in range(50)]
    FACTOR = 100
    results += [scaled.spawn(1).result() for _ in range(50)]
    return [len(seen), Box.asked, len(counts.calls), sorted(set(results))]
"""


def test_what_calls_do_to_the_program_does_not_depend_on_where_they_run(tmp_path: Path) -> None:
    """Arguments with code of their own, attributes of functions and a variable that `main` assigns
    again were those of `main` or those of a worker, as the time would have it: a loop gave
    `[1, 100]` where all of its calls gave 1 before, and a list of `main` had 28 of 30 elements.
    """
    ended = _run(jobs.write(tmp_path, OTHER), options=("-j2",))
    assert ended.value == [0, 0, 0, [1]], ended.talk


LIMIT = (1, "text", None)
_lock = threading.Lock()
_seen: list[int] = []


def _adds(x: int, y: int = 1) -> float:
    return math.sqrt(x + y) + len([number for number in range(x) if number in LIMIT])


def _uses(x: int) -> float:
    return _adds(x) + max(map(abs, (x, -x)))


def _raises(x: int) -> int:
    raise ValueError(x)


def _prints(x: int) -> None:
    print(x)


_changed = 1
_started = os.getpid()


def _assigns(x: int) -> None:
    global _changed
    _changed = x


def _reads_what_is_assigned(x: int) -> int:
    return x + _changed


def _reads_what_the_process_has(x: int) -> int:
    return x + _started


def _has_attributes(x: int) -> int:
    return x


_has_attributes.seen = []  # type: ignore[attr-defined]


def _uses_attributes(x: int) -> int:
    return _has_attributes(x)


def _reaches_further() -> Any:
    return _adds.__globals__


def _reaches_through(name: str) -> Any:
    return json.codecs.open(name)  # type: ignore[attr-defined]


def _reduces(x: int) -> int:
    return functools.reduce(max, range(x)) + len(_least(x))


def _least(x: int) -> list[int]:
    return nsmallest(2, range(x))


def _sets(x: Any) -> None:
    x.part = 1


def _imports() -> float:
    import time

    return time.time()


def _uses_printing(x: int) -> None:
    _prints(x)


def _notes(x: int) -> None:
    _seen.append(x)


def _keeps(x: int, seen: list[int] = []) -> int:  # noqa: B006
    seen.append(x)
    return len(seen)


def _draws() -> float:
    return random.random()


def _locks() -> bool:
    return _lock.locked()


def _makes() -> Any:
    class Thing:
        pass

    return Thing()


def _asks() -> str:
    return os.getcwd()


def _within(x: int) -> Callable[[], int]:
    return lambda: x


@pytest.mark.parametrize("function", [_adds, _uses, _raises, _reduces])
def test_functions_that_only_compute_leave_nothing(function: Callable[..., Any]) -> None:
    assert leaves_nothing(function)


@pytest.mark.parametrize(
    "function",
    [
        _prints,
        _assigns,
        _sets,
        _imports,
        _uses_printing,
        _notes,
        _keeps,
        _draws,
        _locks,
        _makes,
        _asks,
        _reads_what_is_assigned,
        _reads_what_the_process_has,
        _uses_attributes,
        _reaches_further,
        _reaches_through,
        _within(1),
        print,
        math.sqrt,
    ],
)
def test_functions_that_may_leave_something_are_found(function: Callable[..., Any]) -> None:
    assert not leaves_nothing(function)


def test_text_of_a_module_is_not_read_for_a_function_that_something_else_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second call of a function of `main` took five milliseconds more: its whole module was
    compiled and disassembled, whatever the function used.
    """

    def read(namespace: dict[str, Any]) -> object:
        raise AssertionError(f"{namespace['__name__']} is read")

    monkeypatch.setattr(_leaves, "_FOUND", {})
    monkeypatch.setattr(_leaves, "_assigned_in", read)
    assert not leaves_nothing(_asks)
    assert not leaves_nothing(_uses_printing)
    assert leaves_nothing(_raises)
    with pytest.raises(AssertionError):
        leaves_nothing(_adds)
