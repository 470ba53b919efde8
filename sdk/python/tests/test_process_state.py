"""Environment and working folder of a task: the next one in the process has its own.

A variable that a task set once stayed in its worker, and later tasks saw it or not, depending on
where they ran.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ciel
import jobs
from ciel.testing import serial

MODES = ("--serial", "-j1", "-j2")

JOB = """
import os
import subprocess
import ciel

os.environ["SET_AT_IMPORT"] = "import"

def seen():
    shown = subprocess.run(
        "echo $SET_AT_IMPORT $SET_BY_TASK", shell=True, capture_output=True, text=True
    ).stdout.split()
    at = os.path.basename(os.getcwd())
    return [os.environ.get("SET_AT_IMPORT"), os.environ.get("SET_BY_TASK"), shown, at]

@ciel.task
def plain():
    return seen()

@ciel.task
def sets(n):
    os.environ["SET_BY_TASK"] = str(n)
    os.environ.pop("SET_AT_IMPORT")
    os.chdir("/")
    before = seen()
    inner = plain.spawn().result()
    return [before, inner, seen()]

def main():
    home = os.path.basename(os.getcwd())
    expected = ["import", None, ["import"], home]
    changed = [None, "7", ["7"], ""]
    os.environ["SET_BY_MAIN"] = "main"
    for _ in range(3):
        assert plain.spawn().result() == expected
        assert sets.spawn(7).result() == [changed, expected, changed]
        assert ciel.gather([plain.spawn() for _ in range(4)]) == [expected] * 4
    assert os.environ["SET_BY_MAIN"] == "main"
    return seen() == expected
"""


@pytest.mark.parametrize("mode", MODES)
def test_environment_and_folder_of_a_task_are_its_own(mode: str, tmp_path: Path) -> None:
    assert jobs.run(tmp_path, JOB, options=(mode,)).value is True


@ciel.task(pure=False)
def leaves_traces(folder: str) -> tuple[str | None, str]:
    """Sees the state that a test began with; changes it."""
    seen = os.environ.get("SET_BY_TASK"), os.getcwd()
    os.environ["SET_BY_TASK"] = "task"
    os.chdir(folder)
    return seen


def test_test_keeps_its_own_environment_across_spawns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the code of the test itself changes stays; its tasks begin as the test did."""
    home = os.getcwd()
    with serial():
        monkeypatch.setenv("SET_BY_TASK", "test")
        monkeypatch.chdir(tmp_path)
        assert leaves_traces.spawn("/").result() == (None, home)
        assert leaves_traces.spawn("/").result() == (None, home)
        assert os.environ["SET_BY_TASK"] == "test" and os.getcwd() == str(tmp_path)
