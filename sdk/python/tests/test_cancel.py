"""Cancelling tasks with a real engine: what ends, what continues, and what waiters receive."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

import ciel
import jobs
from conditions import until

STARTED = """
import os
import time
import ciel

def mark(name):
    open(name, "a").close()

def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.005)

@ciel.task
def slow(n=0):
    print("slow begins")
    mark(f"slow{n}")
    try:
        while True:
            pass
    finally:
        mark(f"cleaned{n}")

@ciel.task
def started(n=0):
    wait_for(f"slow{n}")

@ciel.task
def value(n):
    return n
"""

CANCELLED = """
def main():
    running = slow.spawn()
    started.spawn().result()
    ended = value.spawn(1)
    assert ended.result() == 1
    answers = [running.cancel(), ended.cancel(), running.cancel()]
    try:
        running.result()
    except Exception:
        answers.append("an Exception")
    except ciel.Cancelled as error:
        answers.append(str(error))
    print("after")
    wait_for("cleaned0")
    return answers
"""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers whose tasks are cancelled have all the time that they need: on a busy machine one was
    killed after its second, before it had cleaned up.
    """
    monkeypatch.setenv("CIEL_KILL_GRACE_MS", "3600000")


@pytest.mark.usefixtures("patient")
def test_running_task_is_interrupted_and_waiters_get_cancelled(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, STARTED + CANCELLED)
    assert ended.value == [True, False, True, "it was cancelled"]
    assert ended.lines[:2] == ["slow begins", "after"]

PARKED = """
@ciel.task
def parent():
    try:
        return slow.spawn().result()
    except ciel.Cancelled as error:
        mark("caught")
        try:
            value.spawn(1)
        except ciel.Cancelled:
            mark("refused")
        print("never shown")
        raise
    finally:
        mark("left")

def main():
    # Both slots are taken: `slow` begins when its parent has parked.
    waiting = parent.spawn()
    wait_for("slow0")
    answer = waiting.cancel()
    for name in ["cleaned0", "caught", "refused", "left"]:
        wait_for(name)
    return answer, value.spawn(2).result()
"""


@pytest.mark.usefixtures("patient")
def test_parked_task_that_is_cancelled_cleans_up_and_acts_no_more(tmp_path: Path) -> None:
    # It was dropped where it waited: no `except`, no `finally`, no `with` of it ever ended.
    ended = jobs.run(tmp_path, STARTED + PARKED)
    assert ended.value == [True, 2]
    assert ended.lines == ["slow begins", "[true,2]"]


PARKED_IN_MAP = """
@ciel.task
def parent():
    def given():
        try:
            yield 1
            yield slow.spawn().result()
        except ciel.Cancelled:
            mark("caught")
            raise
        finally:
            mark("left")
    return sum(ciel.map(value, given()))

def main():
    waiting = parent.spawn()
    wait_for("slow0")
    answer = waiting.cancel()
    for name in ["cleaned0", "caught", "left"]:
        wait_for(name)
    return answer, value.spawn(2).result()
"""


@pytest.mark.usefixtures("patient")
def test_task_that_is_cancelled_in_the_iterable_of_a_map_cleans_up(tmp_path: Path) -> None:
    """Native code asks for the next argument there, and the strand waits in it."""
    ended = jobs.run(tmp_path, STARTED + PARKED_IN_MAP)
    assert ended.value == [True, 2], ended.talk


ENDLESS = """
@ciel.task
def endless():
    try:
        return slow.spawn().result()
    finally:
        with open("ending.new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("ending.new", "ending")
        while True:
            pass

def main():
    waiting = endless.spawn()
    wait_for("slow0")
    waiting.cancel()
    wait_for("ending")
    with open("ending") as file:
        process = f"/proc/{file.read()}"
    while os.path.exists(process):
        time.sleep(0.005)
    return value.spawn(2).result()
"""


def test_clean_up_that_does_not_end_costs_its_process_after_a_second(tmp_path: Path) -> None:
    """The program once ended before that, so its run killed the process a second later: as a rule
    some milliseconds after the process had shown its stack and ended by itself.
    """
    ended = jobs.run(tmp_path, STARTED + ENDLESS)
    assert ended.value == 2
    assert "Timeout (0:00:01)!" in ended.talk
    assert "in endless" in ended.talk


SERIAL = """
def main():
    one = value.spawn(1)
    lost = value.spawn(2)
    with ciel.scope() as scope:
        value.spawn(3)
        count = scope.cancel()
    found = ciel.first([lost, value.spawn(4)])
    return [one.cancel(), one.result(), found, lost.result(), count]
"""


def test_nothing_is_cancelled_in_a_serial_run(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, STARTED + SERIAL, options=("--serial",))
    assert ended.value == [False, 1, 2, 2, 0]


FIRST = """
@ciel.task
def failing():
    raise ValueError("no value")

def main():
    spin = slow.spawn()
    bad = failing.spawn()
    started.spawn().result()
    bad.exception()
    found = ciel.first([spin, bad, value.spawn(7)])
    wait_for("cleaned0")
    try:
        spin.result()
    except ciel.Cancelled:
        print("cancelled")
    try:
        ciel.first([bad, spin])
    except ValueError as error:
        print(error)
    with ciel.scope() as scope:
        slow.spawn(1)
        started.spawn(1).result()
        count = scope.cancel()
    return [found, count]
"""


@pytest.mark.usefixtures("patient")
def test_first_value_is_returned_and_the_others_are_cancelled(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, STARTED + FIRST, options=("-j3",))
    assert ended.value == [7, 1]
    assert ended.lines[1:3] == ["cancelled", "no value"], ended.lines


HELD = """
@ciel.task
def keeps(futures: list[ciel.Future[int]]):
    mark("keeps")
    wait_for("go")
    return futures[0].result()

@ciel.task
def late():
    wait_for("go")
    return 5

def main():
    held = late.spawn()
    other = keeps.spawn([held])
    wait_for("keeps")
    answer = held.cancel()
    mark("go")
    return [answer, other.result(), held.result()]
"""


def test_future_that_another_task_holds_is_not_cancelled(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, STARTED + HELD, options=("-j3",)).value == [False, 5, 5]


REPLAYED = """
@ciel.task
def canceller():
    spin = slow.spawn()
    wait_for("slow0")
    answer = spin.cancel()
    with open("answers", "a") as file:
        file.write(f"{answer} {os.getpid()}\\n")
    wait_for("go")
    return answer

def main():
    return canceller.spawn().result()
"""


def test_replayed_canceller_receives_the_recorded_answer(tmp_path: Path) -> None:
    """Its worker is killed after it has cancelled: the replay cancels nothing again."""
    process = jobs.start(jobs.write(tmp_path, STARTED + REPLAYED), options=("-j3",))
    answers = tmp_path / "answers"
    until(lambda: answers.exists() and answers.read_text("utf-8").count("\n") == 1)
    os.kill(int(answers.read_text("utf-8").split()[1]), signal.SIGKILL)
    until(lambda: answers.read_text("utf-8").count("\n") == 2)
    (tmp_path / "go").touch()
    ended = jobs.end_of(process)
    assert ended.value is True
    lines = [line.split()[0] for line in answers.read_text("utf-8").splitlines()]
    assert lines == ["True", "True"]


STUCK = """
import ctypes

@ciel.task
def stuck():
    mark("slow0")
    ctypes.PyDLL(None).sleep(1000)

def main():
    hanging = stuck.spawn()
    started.spawn().result()
    return hanging.cancel()
"""


def test_call_that_does_not_return_is_ended_with_its_process(tmp_path: Path) -> None:
    """It holds the interpreter, so no bytecode comes; the process is killed after one second."""
    assert jobs.run(tmp_path, STARTED + STUCK).value is True


def spin(folder: str) -> None:
    (Path(folder) / "spins").touch()
    while True:
        pass


def test_futures_of_a_session_can_be_cancelled(tmp_path: Path) -> None:
    with ciel.Session(jobs=2, state=tmp_path / "state") as session:
        running = session.submit(spin, str(tmp_path))
        until((tmp_path / "spins").exists)
        assert running.cancel() and running.cancel()
        with pytest.raises(ciel.Cancelled):
            running.result()
        assert ciel.first([session.submit(len, "abc")]) == 3


def test_futures_of_a_cancelled_session_are_cancelled(tmp_path: Path) -> None:
    """They once raised `WorkerLost: the engine of the session has ended`."""
    session = ciel.Session(jobs=2, state=tmp_path / "state")
    waited, unseen = session.submit(spin, str(tmp_path)), session.submit(spin, str(tmp_path))
    assert not waited.done()
    with pytest.raises(TimeoutError):
        waited.result(timeout=0)
    session.cancel()
    for future in (waited, unseen):
        with pytest.raises(ciel.Cancelled, match="session was cancelled"):
            future.result()


def test_first_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="one future at least"):
        ciel.first([])


class Notebook:
    """Stands for the module IPython in a notebook, and for its shell and its events."""

    def __init__(self) -> None:
        self.events = self
        self.callbacks: dict[str, Callable[[Any], None]] = {}
        self.error_in_exec: BaseException | None = None

    def get_ipython(self) -> Notebook:
        return self

    def register(self, event: str, callback: Callable[[Any], None]) -> None:
        self.callbacks[event] = callback

    def unregister(self, event: str, callback: Callable[[Any], None]) -> None:
        assert self.callbacks.pop(event) == callback

    def end_cell(self, error: BaseException | None) -> None:
        self.error_in_exec = error
        self.callbacks["post_run_cell"](self)
        self.callbacks["pre_run_cell"](self)


def test_interrupted_cell_of_a_notebook_cancels_what_it_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", cast(ModuleType, notebook))
    with ciel.Session(jobs=2, state=tmp_path / "state") as session:
        before = session.submit(spin, str(tmp_path))
        notebook.end_cell(ValueError("no interrupt"))
        interrupted = session.submit(spin, str(tmp_path))
        notebook.end_cell(KeyboardInterrupt())
        with pytest.raises(ciel.Cancelled):
            interrupted.result()
        assert not before.done() and before.cancel()
    assert not notebook.callbacks
