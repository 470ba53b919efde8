"""Exceptions across processes: what the task raised arrives as it was, and reads as one program.

Each test has a job whose tasks fail in other processes than the one that asks. Exceptions inside
one process are the business of `test_errors.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jobs

SHOP = """
import ciel

class Empty(Exception):
    def __init__(self, what, left):
        super().__init__(what, left)
        self.what, self.left = what, left

class Holds(Exception):
    def __init__(self, lock):
        super().__init__("holds a lock")
        self.lock = lock

def take(what):
    raise Empty(what, 0)

@ciel.task
def sell(what, cash=1):
    return take(what)

@ciel.task
def order(what):
    return sell.spawn(what, cash=5).result()
"""

JOB = """
import threading
import traceback
import ciel
import shop

class Own(ValueError):
    pass

@ciel.task
def own(n):
    raise Own(n, "of the job")

@ciel.task
def chained():
    try:
        {}["milk"]
    except KeyError as error:
        raise shop.Empty("milk", 3) from error

@ciel.task
def during():
    try:
        {}["milk"]
    except KeyError:
        raise Own("while handling")

@ciel.task
def held():
    raise shop.Holds(threading.Lock())

@ciel.task
def held_inside():
    try:
        held.function()
    except shop.Holds as error:
        raise Own("outer") from error

@ciel.task
def noted():
    error = Own("noted")
    error.add_note("a note of the user's")
    raise error

@ciel.task
def group():
    raise ExceptionGroup("several", [Own(1), shop.Empty("a", 2)])

@ciel.task
def takes(cfg):
    return cfg

class Config:
    def __init__(self):
        self.lock = threading.Lock()

def main():
    %s
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module that jobs import."""
    jobs.write(tmp_path, SHOP, "shop.py")
    return tmp_path


def caught(folder: Path, call: str, look: str, kind: str = "Exception") -> object:
    """What `look` gives of the exception `error` that asking for `call` raises."""
    body = f"""
    try:
        {call}.result()
    except {kind} as error:
        return {look}
"""
    return jobs.run(folder, JOB % body.strip()).value


def test_exception_of_another_module_keeps_its_type_and_parts(folder: Path) -> None:
    look = "[error.what, error.left, type(error) is shop.Empty]"
    assert caught(folder, "shop.sell.spawn('tea')", look, "shop.Empty") == ["tea", 0, True]


def test_exception_of_the_job_itself_keeps_its_type(folder: Path) -> None:
    assert caught(folder, "own.spawn(7)", "list(error.args)", "Own") == [7, "of the job"]


def test_cause_arrives_with_the_exception(folder: Path) -> None:
    look = "[error.left, repr(error.__cause__), error.__suppress_context__]"
    assert caught(folder, "chained.spawn()", look, "shop.Empty") == [3, "KeyError('milk')", True]


def test_exception_that_was_being_handled_arrives_as_context(folder: Path) -> None:
    look = "[repr(error.__context__), error.__cause__]"
    assert caught(folder, "during.spawn()", look, "Own") == ["KeyError('milk')", None]


def test_group_of_exceptions_arrives_whole(folder: Path) -> None:
    look = "[type(part).__name__ for part in error.exceptions]"
    assert caught(folder, "group.spawn()", look, "ExceptionGroup") == ["Own", "Empty"]


def test_notes_name_each_task_with_its_arguments(folder: Path) -> None:
    notes = caught(folder, "shop.order.spawn('tea')", "error.__notes__", "shop.Empty")
    assert isinstance(notes, list)
    assert re.fullmatch(r"in task order@\w{8}, order\('tea'\)", notes[0])
    assert re.fullmatch(r"in task sell@\w{8}, sell\('tea', cash=5\)", notes[1])


def test_notes_of_the_user_stay_first(folder: Path) -> None:
    notes = caught(folder, "noted.spawn()", "error.__notes__", "Own")
    assert isinstance(notes, list)
    assert notes[0] == "a note of the user's" and notes[1].startswith("in task noted@")


def test_traceback_leads_through_all_tasks(folder: Path) -> None:
    frames = caught(
        folder,
        "shop.order.spawn('tea')",
        "[[f.filename, f.lineno, f.name, f.line] for f in traceback.extract_tb(error.__traceback__)"
        " if 'ciel/' not in f.filename]",
        "shop.Empty",
    )
    shop = (folder / "shop.py").read_text(encoding="utf-8").splitlines()
    job = (folder / "job.py").read_text(encoding="utf-8").splitlines()

    def frame(name: str, lines: list[str], function: str, line: str) -> list[object]:
        number = next(n for n, text in enumerate(lines, 1) if text.strip() == line)
        return [str(folder / name), number, function, line]

    assert frames == [
        frame("job.py", job, "main", "shop.order.spawn('tea').result()"),
        frame("shop.py", shop, "order", "return sell.spawn(what, cash=5).result()"),
        frame("shop.py", shop, "sell", "return take(what)"),
        frame("shop.py", shop, "take", "raise Empty(what, 0)"),
    ]


def test_exception_that_cannot_be_pickled_arrives_without_what_it_holds(folder: Path) -> None:
    look = "[str(error), hasattr(error, 'lock'), error.__notes__[1]]"
    found = caught(folder, "held.spawn()", look, "shop.Holds")
    note = "attribute 'lock' stayed in the task: lock cannot be copied"
    assert found == ["holds a lock", False, note]


def test_cause_that_cannot_be_pickled_does_not_hide_the_exception(folder: Path) -> None:
    found = caught(folder, "held_inside.spawn()", "[type(error).__name__, str(error)]")
    assert isinstance(found, list)
    assert "outer" in found[1]


def test_failed_argument_fails_the_task_without_a_run(folder: Path) -> None:
    look = "[error.left, error.__notes__]"
    found = caught(folder, "takes.spawn(shop.sell.spawn('tea'))", look, "shop.Empty")
    assert isinstance(found, list)
    assert found[0] == 0 and not any("takes" in note for note in found[1])


def test_argument_that_cannot_be_pickled_is_named_with_its_path(folder: Path) -> None:
    found = caught(folder, "takes.spawn(Config())", "str(error)", "ciel.NotSerializable")
    assert isinstance(found, str)
    assert found.startswith("argument 'cfg' → .lock: _thread.lock cannot be copied")
    inside = caught(folder, "takes.spawn(cfg={'a': [Config()]})", "str(error)")
    assert isinstance(inside, str)
    assert inside.startswith("argument 'cfg' → ['a'][0].lock: _thread.lock")


def test_failure_that_leaves_main_is_shown_as_one_traceback(folder: Path) -> None:
    ended = jobs.run(folder, JOB % "shop.order.spawn('tea').result()")
    assert ended.status == 1 and ended.printed == b""
    for part in ("shop.Empty", "in order", "in sell", "in take", "sell@", "job.py", "shop.py"):
        assert part.rpartition(".")[2] in ended.talk


LARGE = """
import ciel

def main():
    table = {"rows": list(range(600_000)), "name": "small"}

    @ciel.task
    def look(n):
        return table["rows"][n]

    return sum(look.spawn(n).result() for n in range(3))
"""


def test_large_capture_warns_once_with_its_path(folder: Path) -> None:
    """The warning named a line of this package in place of that of the spawn."""
    ended = jobs.run(folder, LARGE)
    assert ended.value == 3
    assert ended.talk.count(" MiB: captured") == 1
    told = r"job\.py:11: CielWarning: task \S*look captures \d+ MiB: captured 'table'\['rows'\]"
    assert re.search(told, ended.talk)
    assert "ciel.put it once" in ended.talk


def test_mistake_at_the_import_of_a_job_is_shown_without_frames_of_importlib(
    tmp_path: Path,
) -> None:
    """Two frames of importlib stood above the line with the mistake."""
    jobs.write(tmp_path, "import ciel\n\n@ciel.task(joined=True)\ndef f():\n    pass\n", "inner.py")
    ended = jobs.run(tmp_path, "import inner\n\ndef main():\n    pass\n")
    assert ended.status == 1
    assert "inner.py:3, in <module>" in ended.talk and "job.py:1, in <module>" in ended.talk
    assert "importlib" not in ended.talk


MANY = """
import ciel

@ciel.task(timeout=600)
def fails(number):
    raise ValueError(number, "x" * 200_000)

def main():
    futures = [fails.spawn(number) for number in range(180)]
    try:
        ciel.gather(futures)
    except ValueError as error:
        first = error.args[0]
    return first, sum(future.exception().args[0] for future in futures)
"""


def test_failures_that_are_more_than_a_message_arrive_all(tmp_path: Path) -> None:
    """The worker of a `main` that gathered 200,000 failures was ended for the engine's message."""
    assert jobs.run(tmp_path, MANY).value == [0, 179 * 90]


ASKED = """
import os, pathlib, signal
import ciel

@ciel.task(timeout=600)
def fails(number):
    raise ValueError(number, "x" * 200_000)

def main():
    futures = [fails.spawn(number) for number in range(180)]
    try:
        ciel.gather(futures)
    except ValueError:
        pass
    asked = list(ciel.as_completed(futures))
    marker = pathlib.Path("killed")
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return sum(future.exception().args[0] for future in asked)
"""


def test_failures_that_are_more_than_a_message_arrive_after_a_wait_for_the_first_and_a_replay(
    tmp_path: Path,
) -> None:
    """Only answers of a wait for all were divided: a wait for the first, and a replay, ended the
    worker for the engine's message.
    """
    assert jobs.run(tmp_path, ASKED).value == 179 * 90
