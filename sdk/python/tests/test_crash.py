"""A worker that dies leaves what its task printed, its Python stack, and who ended it."""

from __future__ import annotations

import re
from pathlib import Path

import jobs
import pytest

JOB = """
import ctypes
import os
import sys
import threading
import ciel

def decode(how):
    if how == "segfault":
        ctypes.string_at(0)
    elif how == "abort":
        os.abort()
    elif how == "in a thread":
        thread = threading.Thread(target=os._exit, args=(4,))
        thread.start()
        thread.join()
    elif how == "exit":
        os._exit(3)

@ciel.task
def resize(how):
    print("a line")
    print("on standard error", file=sys.stderr)
    print("no line", end="")
    decode(how)

@ciel.task
def forks():
    child = os.fork()
    if child == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def main(how):
    if how == "forks":
        return forks.spawn().result()
    try:
        resize.spawn(how).result()
    except ciel.WorkerLost as error:
        print(flush=True)
        return [str(error), error.excerpt, error.__notes__[0]]
"""


@pytest.mark.parametrize(
    ("how", "end", "cause"),
    [
        ("segfault", "was killed by SIGSEGV", "Segmentation fault"),
        ("abort", "was killed by SIGABRT", "Aborted"),
        ("exit", "ended with exit status 3", "os._exit(3) was called in resize@"),
    ],
)
def test_crash_leaves_its_stack_in_the_error_and_in_the_log(
    how: str, end: str, cause: str, tmp_path: Path
) -> None:
    """A segmentation fault ran four times and left neither a stack nor what was printed last."""
    ended = jobs.run(tmp_path, JOB, how)
    log = jobs.command(tmp_path, "logs", "resize").printed.decode()
    message, excerpt, note = ended.value
    assert message == f"its worker {end}" and note == excerpt
    for text in (excerpt, ended.talk, log):
        assert cause in text
        assert 'job.py", line ' in text and " in decode" in text and " in resize" in text
    assert "on standard error" in log
    assert ended.lines[0] == "a line"


def test_exit_of_the_process_keeps_a_line_that_has_not_ended(tmp_path: Path) -> None:
    """Only lines that had ended were sent before the process was gone."""
    assert jobs.run(tmp_path, JOB, "exit").lines[:2] == ["a line", "no line"]


def test_thread_that_ends_the_process_is_named_by_its_task(tmp_path: Path) -> None:
    message, excerpt, _ = jobs.run(tmp_path, JOB, "in a thread").value
    assert message == "its worker ended with exit status 4"
    assert "os._exit(4) was called in resize@" in excerpt


def test_forked_child_that_ends_by_exit_leaves_nothing(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, JOB, "forks")
    assert ended.value == 7 and "os._exit" not in ended.talk


BESIDE = """
import os
import signal
import ciel

@ciel.task
def die(mark):
    print("which makes it a task")
    if not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return 1

@ciel.task
def outer(mark):
    return die.spawn(mark).result()

def main(mark):
    return outer.spawn(mark).result()
"""


def test_tasks_that_waited_in_a_killed_worker_are_named(tmp_path: Path) -> None:
    """They ran a second time without a word."""
    ended = jobs.run(tmp_path, BESIDE, str(tmp_path / "mark"), options=("-j1",))
    assert ended.value == 1
    told = [line for line in ended.talk.splitlines() if "while it waited there" in line]
    assert len(told) == 1, ended.talk
    assert "was killed by SIGKILL" in told[0] and "outer@" in told[0]
    assert "replayed from its start" in told[0]


LIMITED = """
import os
import time
import ciel

@ciel.task(memory="64 MiB")
def greedy():
    held = [b"x" * (1 << 20) for _ in range(300)]
    time.sleep(600)
    return len(held)

@ciel.task(timeout=0.3)
def slow():
    time.sleep(600)

def main(name):
    with open(name, "a") as file:
        file.write("x")
    for task in (greedy, slow):
        try:
            task.spawn().result()
        except (ciel.OutOfMemory, ciel.Timeout):
            pass
    return os.path.getsize(name)
"""


def test_task_over_its_limit_takes_no_strand_along(tmp_path: Path) -> None:
    """With one slot it ran above the root, which was replayed: its lines were written twice."""
    ended = jobs.run(tmp_path, LIMITED, str(tmp_path / "runs"), options=("-j1",))
    assert ended.value == 1
    assert "replayed" not in ended.talk


CHAIN = """
import os
import ciel

@ciel.task
def dies():
    os._exit(3)

@ciel.task
def middle(explains):
    try:
        return dies.spawn().result()
    except ciel.WorkerLost as lost:
        if explains:
            raise ValueError("no") from lost
        raise

def main(explains):
    return middle.spawn(explains == "yes").result()
"""


def test_chain_of_a_lost_task_has_each_step_once(tmp_path: Path) -> None:
    """Each task on the way repeated the step of the lost one."""
    ended = jobs.run(tmp_path, CHAIN, "no")
    steps = re.findall(r"^ *(?:└ )?(\w+)@\w{8} +\S+:(\d+)", ended.talk, re.MULTILINE)
    assert steps == [("job", "19"), ("middle", "12"), ("dies", "12")], ended.talk


def test_lost_task_is_shown_as_the_cause_of_another_failure(tmp_path: Path) -> None:
    """`raise X from lost` was shown without a word of the lost task."""
    ended = jobs.run(tmp_path, CHAIN, "yes")
    assert re.search(
        r"│ raise ValueError\(\"no\"\) from lost\n"
        r" *│ caused by dies@\w{8}: WorkerLost: its worker ended with exit status 3\n",
        ended.talk,
    ), ended.talk


DEEP = """
import os
import time
import ciel

@ciel.task
def deep(levels, how):
    if levels == 0:
        with open("starts", "a") as file:
            file.write("x")
        if how == "prints":
            print("it is a task by then")
        os._exit(9)
    return deep.spawn(levels - 1, how).result()

def main(how):
    try:
        deep.spawn(40, how).result()
    except ciel.WorkerLost as error:
        print(str(error).partition("ended ")[2], os.path.getsize("starts"))
"""


@pytest.mark.parametrize("how", ["plain", "prints"])
@pytest.mark.parametrize("option", ["-j1", "-j2"])
def test_worker_that_dies_beneath_many_levels_is_replaced_three_times(
    tmp_path: Path, how: str, option: str
) -> None:
    """All levels ran in place. Each loss made a task of the next one only, which was lost with all
    beneath it again: as many workers died as there were levels.
    """
    ended = jobs.run(tmp_path, DEEP, how, options=(option,))
    assert ended.status == 0, ended.talk
    *status, starts = ended.lines[-1].split()
    assert status == ["with", "exit", "status", "9"] and 4 <= int(starts) < 20
