"""What modules set at their import holds in all tasks, and what a task sets in none but itself.

The first task of each worker saw the precision of `decimal`, the print options of numpy and the
working folder that a module had set when it was imported; the tasks behind it saw the defaults, so
results depended on who ran where.
"""

from __future__ import annotations

from decimal import Decimal, getcontext, localcontext
from pathlib import Path

import pytest

import ciel
import jobs
from ciel.testing import run

MODES = ("--serial", "-j1", "-j2")

DECIMAL = """
import contextvars
import decimal

import ciel

decimal.getcontext().prec = 5
COLOUR = contextvars.ContextVar("COLOUR", default="none")
COLOUR.set("red")


def seen():
    return [str(decimal.Decimal(1) / 3), COLOUR.get()]


@ciel.task
def sees():
    return seen()


@ciel.task
def sets():
    before = seen()
    decimal.getcontext().prec = 7
    COLOUR.set("blue")
    inner = sees.spawn().result()
    return [before, inner, seen()]


def main():
    imported, own = ["0.33333", "red"], ["0.3333333", "blue"]
    assert seen() == imported
    for _ in range(3):
        assert sees.spawn().result() == imported
        assert sets.spawn().result() == [imported, imported, own]
        assert ciel.gather([sees.spawn() for _ in range(4)]) == [imported] * 4
    decimal.getcontext().prec = 9
    assert sees.spawn().result() == imported
    return seen()
"""

FOLDER = """
import os

import ciel

os.chdir("inside")


@ciel.task
def sees():
    return os.path.basename(os.getcwd())


@ciel.task
def leaves():
    before = os.path.basename(os.getcwd())
    os.chdir("/")
    return before


def main():
    pairs = [[leaves.spawn().result(), sees.spawn().result()] for _ in range(3)]
    together = ciel.gather([sees.spawn() for _ in range(4)])
    return {*sum(pairs, []), *together, os.path.basename(os.getcwd())} == {"inside"}
"""


@pytest.mark.parametrize("mode", MODES)
def test_context_variables_that_a_module_sets_hold_in_all_tasks(mode: str, tmp_path: Path) -> None:
    assert jobs.run(tmp_path, DECIMAL, options=(mode,)).value == ["0.333333333", "red"]


@pytest.mark.parametrize("mode", MODES)
def test_folder_that_a_module_changes_to_is_that_of_all_tasks(mode: str, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    assert jobs.run(tmp_path, FOLDER, options=(mode,)).value is True


@ciel.task(pure=False)
def third(places: int | None) -> str:
    """A third, with as many places as are asked for, or as many as a task begins with."""
    if places is not None:
        getcontext().prec = places
    return str(Decimal(1) / 3)


def thirds() -> list[str]:
    """What three tasks see, the second of which changes its context."""
    return [third.spawn(places).result() for places in (None, 6, None)]


def test_tasks_of_a_test_begin_with_the_context_of_the_test() -> None:
    with localcontext() as mine:
        mine.prec = 4
        assert run(thirds) == ["0.3333", "0.333333", "0.3333"]
        assert mine.prec == 4
