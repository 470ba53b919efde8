"""`--held-bytes`: tasks pause while too much output waits, and show the same in the end."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import ciel
import jobs

JOB = """
import ciel

@ciel.task
def first(gate: str) -> int:
    with open(gate) as waits:
        waits.read()
    print("first")
    return 1

@ciel.task
def writer(number: int, lines: int) -> int:
    with ciel.open("log", "serial-append") as log:
        for line in range(lines):
            log.write(f"{number} {line} {'x' * 1000}\\n")
    print("writer", number)
    return lines

def main() -> int:
    begins = first.spawn("gate")
    writers = [writer.spawn(number, LINES) for number in range(6)]
    return sum(one.result() for one in writers) + begins.result()
"""

LINES = 2000
BOUND = 1 << 20


def live_run(folder: Path) -> dict[str, Any] | None:
    """What `ciel ps` says of the live run, once it holds tasks."""
    shown = jobs.command(folder, "ps", "--json").lines
    runs: list[dict[str, Any]] = [json.loads(line) for line in shown]
    held = [run for run in runs if run["held"] and run["held"]["tasks"]]
    return held[0] if held else None


def test_tasks_that_write_much_pause_until_it_is_their_turn(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    text = JOB.replace("LINES", str(LINES))
    job = jobs.write(tmp_path, text)
    live = jobs.start(job, options=("-j3", f"--held-bytes={BOUND}"))
    deadline = time.monotonic() + jobs.DEADLINE_S
    while (run := live_run(tmp_path)) is None:
        assert time.monotonic() < deadline and live.poll() is None
    # Each of two slots adds 64 KiB and a line before it pauses.
    assert sum(run["waiting_bytes"].values()) <= BOUND + 8 * ((1 << 16) + 2000)
    assert run["held"]["gave_way"] == 0
    held = [task for task in run["tasks"] if any("held" in why for why in task["reasons"])]
    assert held and all("writer" in task["what"] for task in held), run["tasks"]
    (tmp_path / "gate").write_text("go")
    ended = jobs.end_of(live)
    assert ended.value == 6 * LINES + 1
    assert ended.lines[:-1] == ["first", *(f"writer {number}" for number in range(6))]
    lines = (tmp_path / "log").read_text().splitlines()
    expected = [(number, line) for number in range(6) for line in range(LINES)]
    assert [tuple(map(int, line.split()[:2])) for line in lines] == expected


TREE = """
import ciel

@ciel.task
def leaf(number: int) -> int:
    print("leaf", number, "x" * 70000)
    return number

@ciel.task
def tree(depth: int, number: int) -> int:
    if depth == 0:
        return leaf.spawn(number).result()
    left = tree.spawn(depth - 1, 2 * number)
    print("between", number, "y" * 70000)
    right = tree.spawn(depth - 1, 2 * number + 1)
    print("behind", number)
    return right.result() + left.result()

def main() -> int:
    trees = [tree.spawn(3, 1), tree.spawn(2, 1), tree.spawn(2, 1)]
    print("spawned", "z" * 70000)
    return sum(one.result() for one in reversed(trees))
"""


@pytest.mark.parametrize("bound", [0, 1, 100_000])
def test_any_bound_changes_no_output_and_ends(tmp_path: Path, bound: int) -> None:
    expected = jobs.run(tmp_path, TREE, options=("--serial",))
    shown = jobs.run(tmp_path, TREE, options=("-j4", "--new", f"--held-bytes={bound}"))
    assert shown.status == 0, shown.talk
    assert shown.printed == expected.printed


def test_session_takes_the_bound(tmp_path: Path) -> None:
    assert ciel.run(sum, [1, 2], held_bytes=0, state=tmp_path / "state") == 3
    with pytest.raises(ValueError, match="held_bytes is a number of bytes, not -1"):
        ciel.run(sum, [1, 2], held_bytes=-1, state=tmp_path / "state")
