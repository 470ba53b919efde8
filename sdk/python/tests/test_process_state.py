"""Environment and working folder of a task: the next one in the process has its own.

A variable that a task set once stayed in its worker, and later tasks saw it or not, depending on
where they ran.
"""

from __future__ import annotations

import os
import warnings
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


FILTERS_AND_MASK = """
import os
import warnings
import ciel

@ciel.task
def noisy():
    warnings.warn("noisy", stacklevel=1)
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

@ciel.task
def strict(is_task):
    before = os.umask(0o077)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("error")
        mask = (noisy.options(retries=1) if is_task else noisy).spawn().result()
        try:
            noisy()
        except UserWarning as error:
            text = str(error)
    return mask == before, text, len(heard), os.umask(before)

@ciel.task
def leaves():
    warnings.simplefilter("error")
    os.umask(0o077)

@ciel.task
def nested(is_task):
    return strict.spawn(is_task).result()

def main():
    for is_task in (False, True):
        assert strict.spawn(is_task).result() == (True, "noisy", 0, 0o077)
        assert nested.spawn(is_task).result() == (True, "noisy", 0, 0o077)
    ciel.gather([leaves.spawn() for _ in range(4)])
    assert len({noisy.spawn().result() for _ in range(4)}) == 1
    warnings.simplefilter("error")
    return noisy.spawn().result() != 0o077
"""


@pytest.mark.parametrize("mode", MODES)
def test_filters_of_warnings_and_the_mask_of_files_are_its_own(mode: str, tmp_path: Path) -> None:
    """`warnings.simplefilter("error")` of a task made its children fail in place, and not as tasks.

    With `umask` it was the same: it depended on the number of cores what files of children could
    be read. A task that left such changes left them to those that ran later in its process.
    """
    assert jobs.run(tmp_path, FILTERS_AND_MASK, options=(mode,)).value is True


TIMER = """
import signal
import time
import ciel

TIMER_S = 0.01

@ciel.task
def late():
    # It ends after a timer that was set before its spawn.
    end = time.monotonic() + 2 * TIMER_S
    while time.monotonic() < end:
        pass

@ciel.task
def timed(child):
    heard = []
    before = signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
    signal.setitimer(signal.ITIMER_REAL, TIMER_S)
    child.spawn().result()
    signal.signal(signal.SIGALRM, before)
    return heard == [signal.SIGALRM]

@ciel.task
def leaves():
    signal.signal(signal.SIGALRM, lambda number, _: None)
    signal.setitimer(signal.ITIMER_REAL, TIMER_S)

def main():
    assert timed.spawn(late).result()
    assert timed.spawn(late.options(retries=1)).result()
    leaves.spawn().result()
    late.spawn().result()
    return True
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_timer_that_ends_while_its_task_waits_is_heard_then(mode: str, tmp_path: Path) -> None:
    """The signal met the default action, which killed the worker four times over: a task's handler
    is its own, and was not there while a child ran in its place or it waited."""
    ended = jobs.run(tmp_path, TIMER, options=(mode,))
    assert ended.status == 0, ended.talk
    assert ended.value is True and "killed" not in ended.talk


@ciel.task
def warns() -> None:
    """Has something to say."""
    warnings.warn("noisy", stacklevel=1)


def test_test_hears_the_warnings_of_its_tasks() -> None:
    """`pytest.warns` is a filter: were it the test's own, no task could be tested with it."""
    with serial(), pytest.warns(UserWarning, match="noisy"):
        warns.spawn().result()


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
