"""Tasks that spawn very many others pause, and show the same in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import jobs
from conditions import heeded_interrupts

COMMANDS = """
import ciel

def main() -> list[int]:
    ends = [ciel.sh("cat gate{n}; printf {n}", n=number % 1) for number in range(60)]
    return [int(end.result()) for end in ends]
"""


def reasons(folder: Path) -> list[str]:
    """What `ciel ps` says of all tasks of the live run."""
    shown = jobs.command(folder, "ps", "--json").lines
    runs: list[dict[str, Any]] = [json.loads(line) for line in shown]
    return [reason for run in runs for task in run["tasks"] for reason in task["reasons"]]


def paused(folder: Path) -> list[str]:
    """Those of them that are about pauses."""
    return [reason for reason in reasons(folder) if reason.startswith("paused")]


def test_main_pauses_behind_commands_and_resumes_when_half_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIEL_CHILDREN_MAX", "10")
    os.mkfifo(tmp_path / "gate0")
    live = jobs.start(jobs.write(tmp_path, COMMANDS), options=("-j2",))
    deadline = time.monotonic() + jobs.DEADLINE_S
    while not (found := paused(tmp_path)):
        assert time.monotonic() < deadline and live.poll() is None
    # It asks for the first time with its eleventh spawn.
    assert found == ["paused: 11 children unfinished"]
    assert found[0] in jobs.command(tmp_path, "why", "job").printed.decode()
    opened = os.open(tmp_path / "gate0", os.O_RDWR)
    try:
        os.unlink(tmp_path / "gate0")
        (tmp_path / "gate0").write_text("")
    finally:
        os.close(opened)
    assert jobs.end_of(live).value == [0] * 60


PROGRAM = """
import asyncio

import ciel

@ciel.task
def leaf(number: int) -> int:
    print("leaf", number)
    return number

@ciel.task(retries=1)
def tree(depth: int) -> int:
    if depth == 0:
        return int(ciel.sh("printf 1").result())
    parts = [tree.spawn(depth - 1) for _ in range(3)]
    print("tree", depth)
    return sum(part.result() for part in parts)

def chain(count: int) -> int:
    total = leaf.spawn(0)
    for number in range(1, count):
        total = leaf.spawn(number)
    return total.result()

async def later() -> int:
    parts = [leaf.spawn(100 + number) for number in range(12)]
    return sum([await part for part in parts])

def main() -> list[int]:
    lazy = [ciel.sh("printf 2", lazy=True) for _ in range(8)]
    whole = sum(ciel.map(leaf, range(200, 220)))
    found = [tree.spawn(3).result(), chain(20), whole, int(lazy[3].result())]
    return [*found, asyncio.run(later())]
"""


@pytest.mark.parametrize("bound", [1, 2, 5])
def test_any_bound_of_children_changes_no_output_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    expected = jobs.run(tmp_path, PROGRAM, options=("--serial",))
    assert expected.value == [27, 19, sum(range(200, 220)), 2, sum(range(100, 112))]
    monkeypatch.setenv("CIEL_CHILDREN_MAX", str(bound))
    shown = jobs.run(tmp_path, PROGRAM, options=("-j3", "--new"))
    assert shown.status == 0, shown.talk
    assert shown.printed == expected.printed


def test_wrong_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ["0", "-1", "many", ""]:
        monkeypatch.setenv("CIEL_CHILDREN_MAX", wrong)
        ended = jobs.run(tmp_path, PROGRAM)
        assert ended.status == 2
        assert f'CIEL_CHILDREN_MAX is a number from 1 on, not "{wrong}"' in ended.talk


SESSION = """
import ciel

@ciel.task(pure=False)
def leaf(number: int) -> int:
    print("leaf", number)
    return number

if __name__ == "__main__":
    with ciel.Session(jobs=2, state="state") as session:
        futures = [session.submit(leaf, number) for number in range(60)]
        print(sum(future.result() for future in futures))
"""

HELD = """
import os
import threading

import ciel

def held(session: ciel.Session, submitted: list[object]) -> None:
    for number in range(60):
        submitted.append(session.sh("cat gate; printf {n}", n=number, pure=False))

if __name__ == "__main__":
    with ciel.Session(jobs=2, state="state") as session:
        other = session.sh("printf other")
        submitted: list[object] = []
        thread = threading.Thread(target=held, args=(session, submitted))
        thread.start()
        print(other.result().decode(), flush=True)
        input()
        assert len(submitted) < 20, submitted
        gate = os.open("gate", os.O_RDWR)
        os.unlink("gate")
        open("gate", "w").close()
        os.close(gate)
        thread.join()
        assert len(submitted) == 60
        print(sum(int(future.result()) for future in submitted))
"""


def started(folder: Path, text: str) -> subprocess.Popen[str]:
    """A program with a session that has begun; its folder is the current one."""
    jobs.write(folder, text)
    return subprocess.Popen(
        [sys.executable, "job.py"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def await_pause(folder: Path, program: subprocess.Popen[str]) -> str:
    """The reason that `ciel ps` gives for the session's pause."""
    deadline = time.monotonic() + jobs.DEADLINE_S
    while not (found := paused(folder)):
        assert time.monotonic() < deadline and program.poll() is None
    return found[0]


@pytest.mark.parametrize("bound", [1, 2, 30])
def test_program_that_submits_all_and_then_waits_ends_with_any_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    monkeypatch.setenv("CIEL_CHILDREN_MAX", str(bound))
    out, err = started(tmp_path, SESSION).communicate(timeout=jobs.DEADLINE_S)
    lines = [f"leaf {number}" for number in range(60)]
    assert out.splitlines() == [*lines, str(sum(range(60)))], err


def test_session_pauses_the_thread_that_submits_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIEL_CHILDREN_MAX", "10")
    os.mkfifo(tmp_path / "gate")
    program = started(tmp_path, HELD)
    assert await_pause(tmp_path, program).endswith("children unfinished")
    out, err = program.communicate("go on\n", timeout=jobs.DEADLINE_S)
    assert out.splitlines() == ["other", str(sum(range(60)))], err


def test_interrupt_ends_the_pause_of_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIEL_CHILDREN_MAX", "10")
    os.mkfifo(tmp_path / "gate")
    with heeded_interrupts():
        program = started(tmp_path, HELD.replace("thread.start()", "held(session, submitted)"))
    await_pause(tmp_path, program)
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=jobs.DEADLINE_S)
    assert err.endswith("KeyboardInterrupt\n"), err
    assert program.returncode == -signal.SIGINT
