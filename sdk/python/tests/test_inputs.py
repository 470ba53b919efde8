"""Inputs of tasks from the environment: recorded, replayed, refused where they would do harm.

The serial program and the scripted engine stand for most of it; the last part kills workers of the
real engine.
"""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ciel
import jobs
from ciel import testing
from scripted_engine import Engine, run_in_worker

VARIABLE = "OF_A_TEST"


@ciel.task
def double(n: int) -> int:
    """A small task to wait for."""
    return 2 * n


@ciel.task
def three_answers() -> tuple[float, str | None, bytes]:
    """All that can be asked."""
    return ciel.now(), ciel.environ(VARIABLE), ciel.entropy(8)


@ciel.task(pure=True)
def pure_that_asks(what: str) -> Any:
    """Asks although it is pure."""
    if what == "now":
        return ciel.now()
    return ciel.environ(VARIABLE) if what == "environ" else ciel.entropy(1)


@ciel.task
def asks_by_tail(left: int, seen: list[float]) -> list[float]:
    """A loop of tails, each of which asks."""
    seen = [*seen, ciel.now()]
    return seen if left == 0 else asks_by_tail.tail(left - 1, seen)


SEEN: dict[int, set[float]] = {}


@ciel.task
def asks_and_waits(left: int) -> int:
    """A loop of tails, each of which asks and then waits."""
    SEEN.setdefault(left, set()).add(ciel.now())
    double.spawn(left).result()
    return left if left == 0 else asks_and_waits.tail(left - 1)


@ciel.task
def asks_beneath(left: int) -> int:
    """Asks before and after a task of its own that asks."""
    SEEN.setdefault(-1, set()).add(ciel.now())
    found = asks_and_waits.spawn(left).result()
    SEEN.setdefault(-2, set()).add(ciel.now())
    double.spawn(1).result()
    return found


@ciel.task(pure=True)
def pure_before_a_tail() -> list[float]:
    """Hands over to a task that may ask."""
    return asks_by_tail.tail(0, [])


def test_outside_of_tasks_questions_are_just_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "tea")
    assert abs(ciel.now() - time.time()) < 60
    assert ciel.environ(VARIABLE) == ciel.environ(VARIABLE, "coffee") == "tea"
    monkeypatch.delenv(VARIABLE)
    assert (ciel.environ(VARIABLE), ciel.environ(VARIABLE, "coffee")) == (None, "coffee")
    assert len(ciel.entropy(16)) == 16 and ciel.entropy(16) != ciel.entropy(16)
    assert ciel.entropy(0) == b""
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(ciel.now()))
    thread.start()
    thread.join()
    assert len(found) == 1


@pytest.mark.parametrize("count", [-1, 4097])
def test_count_of_bytes_out_of_bounds_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 4096"):
        ciel.entropy(count)


@pytest.mark.parametrize("value", [True, 1.0, "8", None])
def test_arguments_of_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="an integer"):
        ciel.entropy(value)
    if not isinstance(value, str):
        with pytest.raises(TypeError, match="name of a variable must be text"):
            ciel.environ(value)


def test_serial_program_just_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "tea")
    clock, variable, chance = testing.run(lambda: three_answers.spawn().result())
    assert abs(clock - time.time()) < 60 and variable == "tea" and len(chance) == 8
    assert len(testing.run(lambda: asks_by_tail.spawn(3, []).result())) == 4


def value_in_worker(body: Any) -> Any:
    """The value of a root that a worker runs."""
    return run_in_worker(body)[0]


@pytest.mark.parametrize("what", ["now", "environ", "entropy"])
@pytest.mark.parametrize("start", [testing.run, value_in_worker])
def test_pure_task_that_asks_is_refused_by_name(what: str, start: Any) -> None:
    with pytest.raises(ciel.Refused, match=rf"pure_that_asks@\w+ is declared pure.*ciel\.{what}"):
        start(lambda: pure_that_asks.spawn(what).result())


@pytest.mark.parametrize("start", [testing.run, value_in_worker])
def test_successor_of_a_pure_task_may_ask(start: Any) -> None:
    assert len(start(lambda: pure_before_a_tail.spawn().result())) == 1


def test_dropped_strand_gets_every_answer_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def main() -> Any:
        monkeypatch.setenv(VARIABLE, f"of run {len(seen)}")
        first = ciel.now(), ciel.environ(VARIABLE), ciel.entropy(4)
        seen.append(first)
        double.spawn(1).result()
        second = ciel.now(), ciel.environ(VARIABLE + "_MISSING", "none"), ciel.entropy(2)
        double.spawn(2).result()
        return first, second

    drops = 0
    for seed in range(8):
        seen.clear()
        value, engine = run_in_worker(main, random.Random(seed))
        drops += engine.drops
        assert len(seen) == engine.drops + 1 and set(seen) == {value[0]}
        assert value[0][1] == "of run 0" and value[1][1] == "none"
    assert drops > 3


def test_dropped_strand_of_tails_and_nested_tasks_gets_every_answer_again() -> None:
    drops = 0
    for seed in range(8):
        SEEN.clear()
        value, engine = run_in_worker(
            lambda: asks_beneath.spawn(5).result(), random.Random(seed)
        )
        drops += engine.drops
        assert value == 0 and sorted(SEEN) == [-2, -1, 0, 1, 2, 3, 4, 5]
        assert all(len(answers) == 1 for answers in SEEN.values())
    assert drops > 8


def dropped_once(body: Any, runs: list[int]) -> tuple[Any, Engine]:
    """Runs a body whose strand is dropped at its first wait."""
    chance = random.Random()
    chance.random = lambda: 0.0 if len(runs) == 1 else 1.0  # type: ignore[method-assign]
    return run_in_worker(body, chance)


def test_other_question_when_run_again_names_both_lines() -> None:
    runs: list[int] = []

    def main() -> None:
        runs.append(1)
        if len(runs) == 1:
            ciel.environ("FIRST")
        else:
            ciel.environ("SECOND")
        double.spawn(1).result()

    with pytest.raises(ciel.NonDeterministic) as found:
        dropped_once(main, runs)
    line = main.__code__.co_firstlineno + 3
    file = main.__code__.co_filename
    text = str(found.value)
    assert f"ciel.environ('SECOND') at {file}:{line + 2}" in text
    assert f"had requested ciel.environ('FIRST') at {file}:{line}" in text
    assert "ciel.now()" in found.value.hint


def test_question_of_another_kind_when_run_again_names_both_lines() -> None:
    runs: list[int] = []

    def main() -> None:
        runs.append(1)
        if len(runs) == 1:
            ciel.now()
        else:
            ciel.wait([double.spawn(1)], timeout=0.0)
        double.spawn(1).result()

    with pytest.raises(ciel.NonDeterministic) as found:
        dropped_once(main, runs)
    line = main.__code__.co_firstlineno + 3
    file = main.__code__.co_filename
    assert f"which of several futures came first at {file}:{line + 2}" in str(found.value)
    assert f"had requested ciel.now() at {file}:{line}" in str(found.value)


def test_question_that_is_not_asked_again_is_told_at_the_end() -> None:
    runs: list[int] = []

    def main() -> None:
        runs.append(1)
        if len(runs) == 1:
            ciel.entropy(3)
        double.spawn(1).result()

    with pytest.raises(ciel.NonDeterministic, match=r"nothing more where.*ciel\.entropy\(3\) at"):
        dropped_once(main, runs)


KILLED = """
import os
import signal
import threading
import ciel

@ciel.task
def small(n):
    return n

@ciel.task
def asks(n):
    found = [ciel.now(), ciel.environ("HOME"), ciel.entropy(8).hex(), ciel.environ("NO", "-")]
    with open("seen", "a") as file:
        file.write(repr(found) + "\\n")
    print("the engine has heard of it")
    small.spawn(1).result()
    found.append(ciel.now())
    small.spawn(found[-1]).result()
    die_once("killed")
    return found

def die_once(name):
    if not os.path.exists(name):
        open(name, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)

@ciel.task
def nested(n):
    before = ciel.now()
    return [before, *asks.spawn(n).result(), ciel.now()]

@ciel.task(pure=False)
def careless(n):
    with open("careless", "a") as file:
        file.write("x")
    return n

@ciel.task
def in_a_thread():
    caught = []
    def ask():
        try:
            ciel.now()
        except ciel.NoRun as error:
            caught.append(str(error))
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return caught

def main(what):
    return {"nested": nested, "careless": careless}[what].spawn(1).result() if what != "thread" \\
        else in_a_thread.spawn().result()
"""


def test_task_of_a_killed_worker_gets_every_answer_again(tmp_path: Path) -> None:
    value = jobs.run(tmp_path, KILLED, "nested").value
    seen = (tmp_path / "seen").read_text(encoding="utf-8").splitlines()
    assert len(seen) == 2 and seen[0] == seen[1]
    assert value[0] <= value[1] <= value[5] <= value[6]
    assert value[2] == os.environ.get("HOME") and len(value[3]) == 16 and value[4] == "-"


def test_serial_run_answers_too(tmp_path: Path) -> None:
    (tmp_path / "killed").touch()
    value = jobs.run(tmp_path, KILLED, "nested", options=("--serial",)).value
    assert value[2] == os.environ.get("HOME") and value[0] <= value[1] <= value[5]


def test_task_declared_impure_runs_once(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, KILLED, "careless").value == 1
    assert (tmp_path / "careless").read_text(encoding="utf-8") == "x"


def test_thread_of_a_task_that_asks_is_refused(tmp_path: Path) -> None:
    assert "this thread runs no task" in jobs.run(tmp_path, KILLED, "thread").value[0]


def test_question_while_a_module_is_imported_is_refused(tmp_path: Path) -> None:
    job = "import ciel\nBEGAN = ciel.now()\ndef main():\n    return BEGAN\n"
    ended = jobs.run(tmp_path, job)
    assert ended.status == 1
    assert "ciel.now() is called while a module is imported" in ended.talk
    assert "call it in a task" in ended.talk


def test_submit_of_a_session_gets_answers(tmp_path: Path) -> None:
    with ciel.Session(jobs=1, state=tmp_path) as session:
        clock, _, chance = session.submit(three_answers).result()
        assert abs(clock - ciel.now()) < 60 and len(chance) == 8


UNSURE = """
import os
import signal
import ciel

@ciel.task
def small(n):
    print("which makes it a task")
    return n

@ciel.task
def other(n):
    return n

@ciel.task
def unsure():
    if not os.path.exists("killed"):
        small.spawn(1).result()
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return other.spawn(1).result()

def main():
    return unsure.spawn().result()
"""


def test_other_spawn_when_run_again_names_both_lines(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, UNSURE)
    assert ended.status == 1
    lines = UNSURE.splitlines()
    first, second = (
        f"{tmp_path}/job.py:{next(n for n, line in enumerate(lines, 1) if what in line)}"
        for what in ("small.spawn", "other.spawn")
    )
    message = next(line for line in ended.talk.splitlines() if "NonDeterministic" in line)
    assert "unsure@" in message and "other at" in message
    assert message.index(second) < message.index(first)
