"""Children that native code keeps, begins and ends: they do what all tasks do."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs


def _run(job: Path, *args: str, options: tuple[str, ...]) -> jobs.Ended:
    return jobs.end_of(jobs.start(job, *args, options=options))


BEHAVES = '''
import contextvars
import os
import subprocess
import sys
import threading
import ciel

KEPT = []
SET = contextvars.ContextVar("SET", default="unset")

@ciel.task
def plain(n, text="", *more):
    return n

@ciel.task
def behaves(how, n):
    if how == "prints":
        print("printed", n)
    elif how == "writes":
        os.write(1, b"written %d\\n" % n)
    elif how == "commands":
        subprocess.run(["echo", "commanded", str(n)], check=True)
    elif how == "raises":
        raise ValueError(f"raised {n}")
    elif how == "lists":
        return [n, {"n": n}]
    elif how == "tails":
        return plain.tail(n)
    elif how == "changes":
        os.environ["CHANGED"] = str(n)
        os.chdir("/")
        sys.stdout.write(f"{SET.get()} ")
        SET.set("set")
    elif how == "threads":
        thread = threading.Thread(target=print, args=("in a thread", n))
        thread.start()
        thread.join()
    elif how == "random":
        return [ciel.task_rng().randrange(1000), os.environ["CIEL_TASK_SEED"]]
    elif how == "leaves":
        plain.spawn(n)
    elif how == "asks":
        return plain.spawn(ciel.now() > 0).result() + sum(ciel.gather(plain.spawn(1)))
    elif how == "passes":
        first = plain.spawn(n)
        first.result()
        return plain.spawn(first).result() + first.result()
    elif how == "hands":
        return plain.spawn(n)
    elif how == "scopes":
        with ciel.scope():
            plain.spawn(n)
    elif how == "large":
        return "x" * 5000
    return (os.environ.get("CHANGED"), os.getcwd() == "/", SET.get(), n)

HOW = ["plain", "prints", "writes", "commands", "raises", "lists", "tails", "changes", "threads",
       "random", "leaves", "asks", "passes", "hands", "scopes", "large"]

@ciel.task
def parent(first):
    shown = []
    for how in HOW:
        for n in range(first, first + 3):
            shown.append(plain.spawn(n).result())
            future = behaves.spawn(how, n)
            later = plain.spawn(n, "text", None, 1.5, b"bytes", True)
            try:
                found = future.result()
                found = found.result() if isinstance(found, ciel.Future) else found
                shown.append(found)
            except ValueError as error:
                shown.append((str(error), error.__context__, len(error.__notes__)))
            shown.append(later.result())
            shown.append(later.result())
    return shown

def main():
    return [parent.spawn(0).result(), parent.spawn(7).result()]
'''


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_child_that_begins_natively_does_what_any_task_does(slots: str, tmp_path: Path) -> None:
    """The first calls of a function are kept by Python, further ones natively."""
    job = jobs.write(tmp_path, BEHAVES)
    serial = _run(job, options=("--serial",))
    ended = _run(job, options=(slots,))
    assert (ended.printed, ended.status) == (serial.printed, 0), ended.talk


def test_future_that_outlives_its_strand_names_it(tmp_path: Path) -> None:
    """A strand that has ended natively has no object that could say its name."""
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def one(n):
    return n

@ciel.task
def leaves(n, kept=set()):
    future = one.spawn(n)
    future.result()
    Left.futures.append(future)
    return n

class Left:
    futures = []

@ciel.task
def parent():
    told = []
    for n in range(4):
        leaves.spawn(n).result()
    for future in Left.futures:
        try:
            future.result()
        except ciel.WaitError as error:
            told.append(str(error))
    return told

def main():
    return parent.spawn().result()
""",
    )
    told = _run(job, options=("-j1",)).value
    assert len(told) == 4
    assert all("belongs to leaves" in words for words in told), told


def test_memory_of_children_that_began_natively_is_given_back(tmp_path: Path) -> None:
    """A child's future led back to its strand through native code, of which the garbage collector
    saw nothing: what referred to such a future, and was referred to by the strand, stayed for ever.
    """
    job = jobs.write(
        tmp_path,
        """
import gc
import weakref
import ciel

@ciel.task
def one(n):
    return n

class Made:
    generators = []

@ciel.task
def child(n):
    generator = ciel.task_rng()
    generator.future = one.spawn(n)
    Made.generators.append(weakref.ref(generator))
    return generator.future.result()

@ciel.task
def parent():
    found = sum(child.spawn(n).result() for n in range(10)) + one.spawn(0).result()
    gc.collect()
    return [found, len(Made.generators), sum(made() is not None for made in Made.generators)]

def main():
    return parent.spawn().result()
""",
    )
    assert _run(job, options=("-j1",)).value == [45, 10, 0]
