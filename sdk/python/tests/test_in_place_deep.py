"""Recursion in place: as deep as memory allows, and what becomes of it when it must be tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from beats import stop_hearts

DEEP = '''
import ciel

@ciel.task
def down(n, how):
    if n > 0:
        return down.spawn(n - 1, how).result() + 1
    if how == "prints":
        print("at the bottom")
    elif how == "raises":
        raise ValueError("at the bottom")
    return 0

@ciel.task
def tree(n):
    side = tree.spawn(n % 2) if n > 2 else None
    under = tree.spawn(n - 1).result() if n > 0 else 0
    return under + 1 + (side.result() if side is not None else 0)

@ciel.task
def begin(n, how):
    if how == "catches":
        try:
            return down.spawn(n, "raises").result()
        except ValueError as error:
            return str(error)
    return down.spawn(n, how).result() if how else tree.spawn(n).result()

def main(n, how=""):
    return begin.spawn(int(n), how).result()
'''


def test_recursion_of_many_levels_stays_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the two hundredth level on, each level became a task, at four times the cost."""
    stop_hearts(tmp_path, monkeypatch)
    ended = jobs.run(tmp_path, DEEP, "5000", "plain", options=("-j1",))
    assert ended.value == 5000
    shown = jobs.command(tmp_path, "ps", "--all").printed.decode()
    (line,) = [line for line in shown.splitlines() if "of them in place" in line]
    function, count, *_ = line.split()
    assert (function, count) == ("down", "5001")
    assert int(line.split()[-5]) == 5001


def test_deep_recursion_that_prints_is_the_one_of_the_serial_program(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, DEEP, "400", "prints", options=("-j2",))
    assert ended.status == 0, ended.talk
    assert ended.lines == ["at the bottom", "400"]


def test_failure_below_many_levels_comes_up_through_all_of_them(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, DEEP, "300", "catches", options=("-j2",)).value == "at the bottom"


def test_deep_recursion_with_children_beside_it_gives_what_the_serial_program_gives(
    tmp_path: Path,
) -> None:
    serial = jobs.run(tmp_path, DEEP, "600", options=("--serial",))
    for slots in ("-j1", "-j2"):
        assert jobs.run(tmp_path, DEEP, "600", options=(slots,)).value == serial.value
