"""`ciel replay TASK`: a failed task once more, with what it was given, in the foreground."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jobs
from ciel._engine import find_command

SHOP = """
def share(total, count):
    return total // (count - 4)
"""

JOB = """
import os
import ciel
import shop
from ciel import Future

@ciel.task
def split(total, count, *, label="plain"):
    print("splitting", label)
    return shop.share(total, count)

@ciel.task
def fine(n):
    return n

@ciel.task
def looks(data, kept: Future[int], text):
    raise ValueError(len(data), kept.result(), len(text))

@ciel.task
def asks(n):
    return fine.spawn(n).result() // 0

@ciel.task
def leaves():
    os._exit(3)

class Scale:
    def __init__(self, by):
        self.by = by

    @ciel.task
    def scale(self, n):
        raise ValueError(self.by * n)

def main():
    level = 5

    @ciel.task
    def inner(n):
        raise ValueError(level + n)

    futures = [
        split.spawn(12, 4, label="dear"),
        looks.spawn(bytes(200_000), fine.spawn(3), fine.spawn("t" * 100_000).later),
        inner.spawn(1),
        asks.spawn(7),
        leaves.spawn(),
        Scale(3).scale.spawn(2),
    ]
    for future in futures:
        try:
            future.result()
        except Exception as error:
            print(type(error).__name__)
"""

PRINTED = ["splitting dear", "ZeroDivisionError", "ValueError", "ValueError", "ZeroDivisionError"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run in which tasks have failed."""
    made = tmp_path_factory.mktemp("failed")
    jobs.write(made, SHOP, "shop.py")
    ended = jobs.run(made, JOB)
    assert ended.status == 0, ended.talk
    assert ended.lines == [*PRINTED, "WorkerLost", "ValueError"]
    return made


def test_failed_task_fails_again_with_its_arguments_and_its_traceback(folder: Path) -> None:
    ended = jobs.command(folder, "replay", "split")
    assert ended.status == 1
    assert ended.printed == b"splitting dear\n"
    told = ended.talk.splitlines()
    assert told[0].startswith("again: split@")
    assert told[1] == "Traceback (most recent call last):"
    assert told[2].strip() == f'File "{folder}/job.py", line 10, in split'
    assert f'File "{folder}/shop.py", line 3, in share' in ended.talk
    assert told[-1].startswith("ZeroDivisionError")


def test_large_arguments_and_futures_are_there_again(folder: Path) -> None:
    ended = jobs.command(folder, "replay", "looks")
    assert ended.status == 1
    assert "ValueError: (200000, 3, 100000)" in ended.talk


def test_task_by_value_has_what_it_captured(folder: Path) -> None:
    ended = jobs.command(folder, "replay", "inner")
    assert (ended.status, ended.talk.splitlines()[-1]) == (1, "ValueError: 6")


def test_method_has_its_object(folder: Path) -> None:
    ended = jobs.command(folder, "replay", "scale")
    assert (ended.status, ended.talk.splitlines()[-1]) == (1, "ValueError: 6")


def test_tasks_of_the_task_run_at_their_spawns(folder: Path) -> None:
    ended = jobs.command(folder, "replay", "asks")
    assert ended.status == 1 and "in asks" in ended.talk and "ZeroDivisionError" in ended.talk


def test_array_is_there_again(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    job = """
import ciel
import numpy

@ciel.task
def total(cfg):
    raise ValueError(int(cfg["array"].sum()), cfg["array"].flags.writeable)

def main():
    total.spawn({"array": numpy.arange(50_000)}).result()
"""
    assert jobs.run(tmp_path, job).status == 1
    ended = jobs.command(tmp_path, "replay", "total")
    assert ended.status == 1 and "ValueError: (1249975000, False)" in ended.talk


def test_task_ends_well_after_its_module_was_mended(tmp_path: Path) -> None:
    jobs.write(tmp_path, SHOP, "shop.py")
    assert jobs.run(tmp_path, JOB).status == 0
    jobs.write(tmp_path, SHOP.replace("- 4", "+ 0"), "shop.py")
    ended = jobs.command(tmp_path, "replay", "split")
    assert ended.status == 0
    assert "ended well this time and gave 3" in ended.talk


def test_task_ends_well_after_its_own_function_was_mended(tmp_path: Path) -> None:
    """It was refused, as another code than the one that was spawned."""
    jobs.write(tmp_path, SHOP, "shop.py")
    assert jobs.run(tmp_path, JOB).status == 0
    jobs.write(tmp_path, JOB.replace("share(total, count)", "share(total, count - 1)"))
    ended = jobs.command(tmp_path, "replay", "split")
    assert ended.status == 0, ended.talk
    assert "ended well this time and gave -12" in ended.talk


def test_root_that_failed_runs_again(tmp_path: Path) -> None:
    job = "def main(word):\n    raise ValueError(word)\n"
    assert jobs.run(tmp_path, job, "tea").status == 1
    ended = jobs.command(tmp_path, "replay", "job")
    assert (ended.status, ended.talk.splitlines()[-1]) == (1, "ValueError: tea")


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("nobody", "no run has a task nobody"),
        ("leaves", "cannot be replayed: its state is failed"),
        ("job", "cannot be replayed: its state is finished"),
    ],
)
def test_task_that_cannot_be_run_again_is_told(folder: Path, task: str, words: str) -> None:
    ended = jobs.command(folder, "replay", task)
    assert ended.status == 2
    assert words in ended.talk and "hint:" in ended.talk


ROBBED = """
import ciel

@ciel.task
def robbed(gate):
    print("ready")
    if gate:
        open(gate).close()
    raise ValueError("gone")

def main(gate=""):
    try:
        robbed.spawn(gate).result()
    except ValueError as error:
        print(error)
"""


def test_state_folder_that_is_gone_is_not_half_made_for_a_failed_task(tmp_path: Path) -> None:
    """The worker made the folder for failed tasks with all above it, in a state folder that had
    been removed: the next run refused that as no state folder, until it was removed once more."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    job = jobs.write(tmp_path, ROBBED)
    live = jobs.start(job, str(gate))
    assert live.stdout is not None and live.stdout.readline() == b"ready\n"
    os.rename(tmp_path / "state", tmp_path / "removed")
    opened = os.open(gate, os.O_RDWR)
    try:
        jobs.end_of(live)
    finally:
        os.close(opened)
    ended = jobs.end_of(jobs.start(job))
    assert ended.status == 0, ended.talk
    assert ended.lines == ["ready", "gone"]


def test_file_that_keeps_no_task_is_told(tmp_path: Path) -> None:
    wrong = jobs.write(tmp_path, "no pickle", "wrong")
    for file in (wrong, tmp_path / "nowhere"):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ciel.replay", str(file)], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.startswith("cannot read what was kept of the task")


def read_until(terminal: int, words: bytes) -> bytes:
    """What a terminal shows, up to words that must come."""
    shown = b""
    deadline = time.monotonic() + jobs.DEADLINE_S
    while words not in shown:
        ready, _, _ = select.select([terminal], [], [], deadline - time.monotonic())
        assert ready, shown
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            piece = b""
        assert piece, shown
        shown += piece
    return shown


def test_on_a_terminal_the_debugger_looks_at_the_frame_that_failed(folder: Path) -> None:
    own, theirs = pty.openpty()
    words = [find_command(), "replay", f"--state={folder / 'state'}", "split"]
    process = subprocess.Popen(words, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        shown = read_until(own, b"(Pdb) ")
        assert b"return total // (count - 4)" in shown
        os.write(own, b"p total, count\n")
        assert b"(12, 4)" in read_until(own, b"(Pdb) ")
        os.write(own, b"up\n")
        assert b"job.py" in read_until(own, b"(Pdb) ")
        os.write(own, b"q\n")
        assert process.wait(jobs.DEADLINE_S) == 1
    finally:
        process.kill()
        process.wait()
        os.close(own)
