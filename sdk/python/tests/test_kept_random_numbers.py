"""Results of tasks that drew random numbers, in later runs of the same program."""

from __future__ import annotations

from pathlib import Path

import jobs

DRAWING = """
import os

import ciel

@ciel.task
def drawn(n):
    return ciel.task_rng().randrange(10**6)

@ciel.task
def beneath(n):
    return drawn.spawn(n).result()

@ciel.task
def last():
    if not os.path.exists("repaired"):
        raise ValueError("not repaired")
    return 0

def main():
    lists = [[task.spawn(n) for n in range(3)] for task in (drawn, drawn, beneath, beneath)]
    print([[one.result() for one in drawings] for drawings in lists])
    return last.spawn().result()
"""


def test_repeated_run_draws_the_numbers_of_each_place_again(tmp_path: Path) -> None:
    """Results were kept by code and arguments alone: after a run that failed, each call had the
    numbers of another one with the same argument.
    """
    failed = jobs.run(tmp_path, DRAWING)
    assert failed.status == 1 and "not repaired" in failed.talk
    (tmp_path / "repaired").touch()
    repeated = jobs.run(tmp_path, DRAWING)
    assert repeated.status == 0, repeated.talk
    assert repeated.printed.splitlines()[0] == failed.printed.splitlines()[0]
