"""Calls in place of `main` of functions that use those of other modules of the program."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import jobs
from ciel._leaves import leaves_nothing
from test_in_place_of_main import PATIENT, ROUNDS, _counts

WORK = """
import os, sys

FACTOR = 31
itself = sys.modules[__name__]
seen = []
started = os.getpid()
changed = 1
again = 2
again = 3

def __getattr__(name):
    return print

def following(x):
    return _bounded(x * FACTOR)

def _bounded(x):
    return x % 1000003

def printing(x):
    print(x)
    return x

def noting(x):
    seen.append(x)
    return x

def changing():
    global changed
    changed += 1
"""


def _is_found(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, expression: str) -> bool:
    """Whether a look at a function of that expression, in a module of that name, shows that it
    leaves nothing.
    """
    work = f"work_of_{name}"
    jobs.write(folder, WORK, f"{work}.py")
    head = f"import {work} as work\nfrom {work} import following, printing\n"
    jobs.write(folder, f"{head}def used(x):\n    return {expression}\n", f"{name}.py")
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    return leaves_nothing(importlib.import_module(name).used)


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("function", "work.following(x)"),
        ("constant", "x + work.FACTOR"),
        ("imported", "following(x)"),
        ("passed", "sum(map(work.following, x))"),
    ],
)
def test_functions_and_constants_of_other_modules_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expression: str
) -> None:
    assert _is_found(tmp_path, monkeypatch, f"good_{name}", expression)


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("prints", "work.printing(x)"),
        ("prints_imported", "printing(x)"),
        ("notes", "work.noting(x)"),
        ("list", "len(work.seen)"),
        ("process", "x + work.started"),
        ("changed", "x + work.changed"),
        ("assigned_twice", "x + work.again"),
        ("given", "work.whatever(x)"),
        ("module", "repr(work)"),
        ("inside", "work.os.getpid()"),
        ("itself", "work.itself.printing(x)"),
    ],
)
def test_what_other_modules_may_change_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expression: str
) -> None:
    assert not _is_found(tmp_path, monkeypatch, f"bad_{name}", expression)


LOOP = """
import ciel, work

@ciel.task
def step(x):
    return work.following(x)

def main(count):
    x = 1
    for _ in range(int(count)):
        x = step.spawn(x).result()
    return x
"""


def test_calls_that_use_another_module_run_in_place_of_main(tmp_path: Path) -> None:
    """Each was a task of its own, as if a function of another module could do anything."""
    jobs.write(tmp_path, WORK, "work.py")
    ended = jobs.run(tmp_path, PATIENT + LOOP, str(ROUNDS))
    assert ended.value == pow(31, ROUNDS, 1000003)
    count, in_place = _counts(tmp_path, "step")
    assert count == ROUNDS
    assert in_place > ROUNDS // 2
