"""Kept results of tasks that are given functions and objects of the program's own classes.

A result was taken although the body of a function that the task had as an argument was edited: a
pickle names functions and classes, and the task's own code does not lead to them.
"""

from pathlib import Path

import pytest

from test_kept import edit, run

JOB = """
import sys

import ciel

from shapes import Square, doubled


@ciel.task
def applied(function, number):
    return function(number)


@ciel.task
def made(side):
    return Square(side)


@ciel.task
def measured(shape):
    return shape.area()


@ciel.task
def both(function, shape):
    return [applied.spawn(function, 3).result(), measured.spawn(shape).result()]


@ciel.task
def plain(number):
    print("ran plain", file=sys.stderr)
    return number + 1


def main():
    square = made.spawn(4)
    print(applied.spawn(doubled, 10).result(), measured.spawn(square).result())
    print(both.spawn(doubled, square).result(), plain.spawn(1).result())
"""

SHAPES = """
from sizes import FACTOR


class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


def doubled(number):
    return FACTOR * number
"""


@pytest.mark.parametrize(
    ("file", "before", "after", "printed"),
    [
        ("shapes.py", "FACTOR * number", "FACTOR * number + 1", "21 16\n[7, 16] 2\n"),
        ("shapes.py", "self.side * self.side", "self.side + 1", "20 5\n[6, 5] 2\n"),
        ("sizes.py", "2", "5", "50 16\n[15, 16] 2\n"),
    ],
)
def test_edit_of_code_that_an_argument_names_reruns_the_task(
    tmp_path: Path, file: str, before: str, after: str, printed: str
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "shapes.py").write_text(SHAPES)
    (tmp_path / "sizes.py").write_text("FACTOR = 2\n")
    ran, first, _ = run(tmp_path, "--kept")
    assert (ran, first) == (["plain"], "20 16\n[6, 16] 2\n")
    ran, again, _ = run(tmp_path, "--kept")
    assert (ran, again) == ([], first)
    edit(tmp_path / file, before, after)
    ran, found, told = run(tmp_path, "--kept")
    assert (ran, found) == ([], printed), told
    assert file in told
