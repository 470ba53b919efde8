"""Children that are called by the code that asks for them find what every task finds.

They share the greenlet of their parent, as long as that has called few functions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from beats import stop_hearts

FINDS = """
import contextvars
import sys
import ciel

SET = contextvars.ContextVar("SET", default="unset")

@ciel.task
def plain(n):
    return n

@ciel.task
def finds(n):
    found = (SET.get(), str(sys.exc_info()[1]))
    SET.set(f"set by {n}")
    if n % 2 == 0:
        found += (SET.get(), finds.spawn(n + 1).result())
    return found

@ciel.task
def raises(n):
    SET.set("set by who raises")
    try:
        raise ValueError(n)
    finally:
        finds.spawn(n).result()

@ciel.task
def inner(n):
    def below(m):
        return 0 if m == 0 else 1 + below(m - 1)
    return below(n)

def above(n, m):
    return inner.spawn(m).result() if n == 0 else above(n - 1, m)

@ciel.task
def parent():
    shown = []
    for n in range(4):
        shown.append(finds.spawn(n).result())
        try:
            raises.spawn(n).result()
        except ValueError as error:
            shown.append((str(error), error.__context__, finds.spawn(n).result()))
        shown.append((SET.get(), str(sys.exc_info()[1])))
        shown.append([above(n, 900) for n in (0, 50, 300, 900)])
    SET.set("set by the parent")
    shown.append([finds.spawn(0).result(), SET.get()])
    return shown

def main():
    return parent.spawn().result()
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_called_child_finds_no_context_no_exception_and_all_of_the_recursion_limit(
    slots: str, tmp_path: Path
) -> None:
    job = jobs.write(tmp_path, FINDS)
    serial = _run(job, "--serial")
    ended = _run(job, slots)
    assert (ended.printed, ended.status) == (serial.printed, 0), ended.talk
    assert serial.value[0][:2] == ["unset", "None"]
    assert serial.value[3] == [900] * 4


def test_calls_in_place_lie_above_one_another_in_few_greenlets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A greenlet for each call took a third of its time. Of a task whose function was imported for
    it, all calls had one, since the look for context variables had made an empty context.
    """
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(
        tmp_path,
        """
import ciel
import greenlet

@ciel.task
def down(n):
    mine = id(greenlet.getcurrent())
    return (mine, *(down.spawn(n - 1).result() if n else ()))

@ciel.task
def parent():
    for _ in range(3):
        down.spawn(8).result()
    return len({id(greenlet.getcurrent()), *down.spawn(8).result()})

def main():
    return parent.spawn().result()
""",
    )
    assert _run(job, "-j1").value <= 3


LOUD = """
import contextvars
import ciel

SET = contextvars.ContextVar("SET")

class Loud:
    def __init__(self, n):
        self.n = n
    def __del__(self):
        print("gone", self.n)

@ciel.task
def plain(n):
    SET.set(Loud(n))
    return n

@ciel.task
def listed(n):
    SET.set(Loud(n))
    return [n]

@ciel.task
def parent():
    for n in range(3):
        print(plain.spawn(n).result(), listed.spawn(n).result())
        try:
            raise KeyError(n)
        except KeyError:
            print(plain.spawn(-n).result(), listed.spawn(-n).result())

def main():
    parent.spawn().result()
"""


@pytest.mark.parametrize("at_import", ["", "SET.set(0)\n"])
@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_values_of_context_variables_that_print_when_they_go_print_for_their_task(
    slots: str, at_import: str, tmp_path: Path
) -> None:
    """What a child had set went when it had ended in place: the job stood still when that printed.
    Of a task that had not run in place the line was lost.
    """
    job = jobs.write(tmp_path, LOUD.replace("class Loud", at_import + "class Loud"))
    serial, ended = _run(job, "--serial"), _run(job, slots)
    assert (ended.printed, ended.status) == (serial.printed, 0), ended.talk
    assert serial.lines[:3] == ["gone 0", "gone 0", "0 [0]"] and len(serial.lines) == 18


WAITS = """
import sys
import ciel

@ciel.task
def plain(n):
    return n

@ciel.task
def child(n):
    try:
        if n:
            ciel.sh("sleep 1000" if n == 2 else "true").result()
            plain.spawn(n).result()
            if n == 3:
                raise ValueError("of the child")
        return n
    finally:
        print("the child ends", n)

@ciel.task
def parent(n):
    child.spawn(0).result()
    child.spawn(0).result()
    try:
        return child.spawn(n).result() + plain.spawn(1).result()
    except ValueError as error:
        return str(error)
    finally:
        print("the parent ends", n)

@ciel.task
def began(n):
    return ciel.sh("true").result() and n

def main():
    cancelled = parent.spawn(2)
    shown = [parent.spawn(1).result(), parent.spawn(3).result()]
    for n in range(5):
        began.spawn(n).result()
    cancelled.cancel()
    try:
        cancelled.result()
    except ciel.Cancelled:
        shown.append("cancelled")
    return [*shown, parent.spawn(1).result()]
"""


@pytest.mark.parametrize("slots", ["-j2", "-j3"])
def test_called_child_that_waits_goes_on_and_then_its_parent(slots: str, tmp_path: Path) -> None:
    """Both wait in the same greenlet: what comes for the parent waits until the child has ended."""
    job = jobs.write(tmp_path, WAITS)
    ended = _run(job, slots)
    assert ended.value == [2, "of the child", "cancelled", 2]


def _run(job: Path, *options: str) -> jobs.Ended:
    return jobs.end_of(jobs.start(job, options=options))
