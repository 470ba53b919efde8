"""Waiting with a real engine: depth, parked strands whose worker dies, and questions about time."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from conditions import until

DEPTH = 8_000
TAILS = 200_000
PARKED = 20

DEEP = """
import ciel

@ciel.task
def deep(n):
    return 0 if n == 0 else 1 + deep.spawn(n - 1).result()

@ciel.task
def count(n, total=0):
    return total if n == 0 else count.tail(n - 1, total + 1)

def main(what, n):
    return {"deep": deep, "count": count}[what].spawn(int(n)).result()
"""


def test_depth_is_not_bounded_by_the_recursion_limit(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, DEEP, "deep", str(DEPTH), options=("-j1",))
    assert ended.value == DEPTH


@pytest.mark.parametrize("options", [("-j1",), ("--serial",)])
def test_long_loop_of_tails_ends(options: tuple[str, ...], tmp_path: Path) -> None:
    assert jobs.run(tmp_path, DEEP, "count", str(TAILS), options=options).value == TAILS


HELD = """
import os
import time
import ciel
from ciel import Future

def note(name, words):
    with open(name, "a") as file:
        file.write(f"{words}\\n")

@ciel.task
def small(n):
    note("small", n)
    return n

@ciel.task
def held(n, gate: Future[bytes]):
    note("begun", f"{n} {os.getpid()}")
    print("held", n)
    before = small.spawn(n).result()
    note("waits", n)
    gate.result()
    after = small.spawn(n * 100).result()
    print("free", n)
    return [before, after]

def main(count):
    gate = ciel.sh("until [ -e {go} ]; do sleep 0.01; done", go=os.path.abspath("go"))
    tasks = [held.spawn(n, gate) for n in range(int(count))]
    return ciel.gather(tasks)
"""


def test_parked_strands_of_a_killed_worker_go_on_elsewhere(tmp_path: Path) -> None:
    process = jobs.start(jobs.write(tmp_path, HELD), str(PARKED))
    waits = tmp_path / "waits"
    until(lambda: waits.exists() and len(waits.read_text("utf-8").split()) == PARKED)
    killed = jobs.serving_of(process.pid)
    assert killed
    jobs.kill_at_once(killed)
    (tmp_path / "go").touch()
    ended = jobs.end_of(process)
    assert ended.value == [[n, n * 100] for n in range(PARKED)]
    words = [f"{word} {n}" for n in range(PARKED) for word in ("held", "free")]
    assert ended.lines[:-1] == words
    begun = [line.split() for line in (tmp_path / "begun").read_text("utf-8").splitlines()]
    again = {int(n) for n, worker in begun if int(worker) not in killed}
    assert again == set(range(PARKED)), "every one of them was replayed"
    small = (tmp_path / "small").read_text("utf-8").split()
    assert {int(n) for n in small} == {n * k for n in range(PARKED) for k in (1, 100)}


MIXED = """
import os
import ciel
from ciel import Future

@ciel.task
def word(n):
    return n

@ciel.task
def takes(value, reference: Future[bytes]):
    with open("begun", "a") as file:
        file.write(f"{value}\\n")
    return [value, len(reference.result())]

@ciel.task
def fails():
    raise ValueError("no")

def main(path):
    gate = ciel.sh("until [ -s {begun} ]; do sleep 0.01; done", begun=os.path.abspath("begun"))
    taken = takes.spawn(word.spawn(7), gate)
    never = takes.spawn(fails.spawn(), gate)
    try:
        never.result()
    except ValueError as error:
        return [taken.result(), str(error)]
"""


def test_task_waits_for_its_values_and_begins_without_its_references(tmp_path: Path) -> None:
    """Once a task with a parameter ``Future[...]`` began before any of its inputs was ready."""
    ended = jobs.run(tmp_path, MIXED, "x", options=("-j2",))
    assert ended.value == [[7, 0], "no"]
    assert (tmp_path / "begun").read_text("utf-8") == "7\n", "who lacks a value does not begin"


QUESTIONS = """
import os
import time
import ciel

@ciel.task
def hold(name):
    while not os.path.exists(name):
        time.sleep(0.002)
    return name

@ciel.task
def note(n):
    with open("noted", "a") as file:
        file.write("x")
    return n

def release(name):
    open(name, "w").close()

def main():
    %s
"""


def answers(folder: Path, body: str, *options: str) -> object:
    """The value of a job with this body of main."""
    return jobs.run(folder, QUESTIONS % body, options=options or ("-j2",)).value


def test_wait_for_the_first_gives_what_is_there(tmp_path: Path) -> None:
    body = """
    slow, quick = hold.spawn("slow"), note.spawn(1)
    there, missing = ciel.wait([slow, quick], count="first")
    found = [there == [quick], missing == [slow], quick.done(), slow.done()]
    release("slow")
    return [*found, slow.result()]
"""
    assert answers(tmp_path, body.strip(), "-j3") == [True, True, True, False, "slow"]


def test_wait_gives_up_after_its_time(tmp_path: Path) -> None:
    body = """
    slow = hold.spawn("slow")
    there, missing = ciel.wait([slow], timeout=0.05)
    release("slow")
    return [there == [], missing == [slow], ciel.wait([slow])[0] == [slow]]
"""
    assert answers(tmp_path, body.strip()) == [True, True, True]


def test_as_completed_gives_futures_as_they_get_there(tmp_path: Path) -> None:
    body = """
    futures = [hold.spawn(name) for name in ("a", "b")]
    found = []
    release("b")
    for future in ciel.as_completed(futures):
        found.append(future.result())
        release("a")
    return found
"""
    assert answers(tmp_path, body.strip(), "-j3") == ["b", "a"]


def test_map_spawns_few_calls_ahead_of_endless_input(tmp_path: Path) -> None:
    body = """
    import itertools
    found = list(itertools.islice(ciel.map(note, itertools.count(), window=8), 30))
    return [found, os.path.getsize("noted") < 50]
"""
    assert answers(tmp_path, body.strip()) == [list(range(30)), True]


def test_scope_waits_for_what_was_spawned_inside(tmp_path: Path) -> None:
    body = """
    with ciel.scope():
        for n in range(5):
            note.spawn(n)
    return os.path.getsize("noted")
"""
    assert answers(tmp_path, body.strip()) == 5


def test_working_folder_and_context_are_those_of_the_task(tmp_path: Path) -> None:
    job = """
import contextvars
import os
import ciel

level = contextvars.ContextVar("level", default=0)

@ciel.task
def small(n):
    return [os.path.basename(os.getcwd()), level.get()]

@ciel.task
def moves(n):
    os.makedirs(f"at{n}", exist_ok=True)
    os.chdir(f"at{n}")
    level.set(n)
    inside = small.spawn(n).result()
    return [inside, os.path.basename(os.getcwd()), level.get()]

def main():
    here = os.path.basename(os.getcwd())
    found = ciel.gather([moves.spawn(n) for n in range(1, 4)])
    return [here, found, os.path.basename(os.getcwd()), level.get()]
"""
    here, found, after, level = jobs.run(tmp_path, job, options=("-j1",)).value
    assert here == after == tmp_path.name and level == 0
    assert found == [[[here, 0], f"at{n}", n] for n in range(1, 4)]


def test_arguments_and_results_are_copies(tmp_path: Path) -> None:
    job = """
import ciel

@ciel.task
def grow(values):
    values.append(4)
    return values

def main():
    values = [1, 2, 3]
    first = grow.spawn(values)
    values.append(9)
    one, two = first.result(), first.result()
    one.append(5)
    return [values, two, first.result()]
"""
    for options in (("-j2",), ("-j1",), ("--serial",)):
        value = jobs.run(tmp_path, job, options=options).value
        assert value == [[1, 2, 3, 9], [1, 2, 3, 4], [1, 2, 3, 4]]


def test_seed_of_a_task_is_the_same_on_any_number_of_cores(tmp_path: Path) -> None:
    job = """
import os
import ciel

@ciel.task
def chance(n):
    return [ciel.task_rng().random(), os.environ["CIEL_TASK_SEED"]]

@ciel.task
def both(n):
    return [*chance.spawn(n).result(), ciel.task_rng().random()]

def main():
    return [both.spawn(n).result() for n in range(3)]
"""
    found = [
        jobs.run(tmp_path, job, options=options).value
        for options in (("--serial",), ("-j1",), ("-j4",))
    ]
    assert found[0] == found[1] == found[2]
    assert len({seed for _, seed, _ in found[0]}) == 3


def test_time_limits_of_futures_hold_in_tasks(tmp_path: Path) -> None:
    """`result`, `exception` and `as_completed` raise TimeoutError in a task; callbacks are refused,
    and the message names what to use instead."""
    ended = jobs.run(
        tmp_path,
        """
import os
import ciel

@ciel.task
def slow():
    with open("gate") as gate:
        gate.read()
    return 5

def main():
    os.mkfifo("gate")
    future = slow.spawn()
    found = []
    for ask in (
        lambda: future.result(timeout=0.01),
        lambda: future.exception(timeout=0.01),
        lambda: list(ciel.as_completed([future], timeout=0.01)),
        lambda: future.add_done_callback(print),
    ):
        try:
            ask()
        except (TimeoutError, ciel.WaitError) as error:
            found.append(str(error))
    with open("gate", "w"):
        pass
    return [*found[2:], future.result(timeout=600), future.exception()]
""",
    )
    assert ended.value == [
        "1 (of 1) futures unfinished",
        "tasks have no callbacks: iterate over ciel.as_completed(futures)",
        5,
        None,
    ]


def test_map_takes_anything_that_can_be_called(tmp_path: Path) -> None:
    """`ciel.map` with a lambda, a partial, a built-in function and an object gives their values."""
    ended = jobs.run(
        tmp_path,
        """
import functools
import ciel

class Adder:
    def __init__(self, number):
        self.number = number

    def __call__(self, number):
        return self.number + number

def main():
    works = [lambda n: n * n, functools.partial(pow, 2), abs, Adder(3)]
    return [list(ciel.map(work, [1, 2])) for work in works]
""",
    )
    assert ended.value == [[1, 4], [2, 4], [1, 2], [4, 5]]


POLLS = """
import os
import ciel

@ciel.task
def look(n):
    print(end="")
    return n * n

@ciel.task
def asks(n, dies):
    future, is_done = look.spawn(n), False
    for _ in range(200):
        is_done = is_done or future.done()
    if dies and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
    while not future.done():
        pass
    return future.result()

def main(dies):
    futures = [look.spawn(n) for n in (2, 3)]
    while not all([future.done() for future in futures]):
        pass
    return [asks.spawn(5, dies == "yes").result(), *(future.result() for future in futures)]
"""


@pytest.mark.parametrize("dies", ["no", "yes"])
@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_loop_that_asks_until_a_future_is_resolved_ends(
    slots: str, dies: str, tmp_path: Path
) -> None:
    """With one core it never ended: nobody ran what `main`, or a task, asked for."""
    ended = jobs.run(tmp_path, POLLS, dies, options=(slots,))
    assert ended.value == [25, 4, 9]
    assert (tmp_path / "died").exists() == (dies == "yes")


def test_question_is_answered_where_a_task_cannot_wait(tmp_path: Path) -> None:
    """A key of `sorted` runs below native code, in which no task may park."""
    ended = jobs.run(
        tmp_path,
        """
import os
import ciel

@ciel.task
def held(n):
    with open("gate") as gate:
        return n + len(gate.read())

@ciel.task
def sorts():
    os.mkfifo("gate")
    future = held.spawn(3)
    keys = sorted(range(200), key=lambda _: future.done())
    with open("gate", "w"):
        pass
    return [len(keys), future.result()]

def main():
    return sorts.spawn().result()
""",
    )
    assert ended.value == [200, 3]


TOLD = """
import asyncio
import ciel

@ciel.task(timeout=600)
def given(n):
    return n

def main():
    first, second = given.spawn(1), given.spawn(2)
    third = given.spawn(second)
    while not third.done():
        pass
    first.result()

    async def asks():
        return second.result()

    try:
        asyncio.run(asks())
    except ciel.WaitError as error:
        return [str(error), second.result()]
"""


def test_result_cannot_be_had_where_a_task_cannot_wait_although_it_has_come_with_another(
    tmp_path: Path,
) -> None:
    """Inside an event loop `result()` gave the value if the task had ended when another one was
    asked for, and raised if it had not.
    """
    message, value = jobs.run(tmp_path, TOLD).value
    assert "cannot wait inside a running event loop" in message
    assert value == 2
