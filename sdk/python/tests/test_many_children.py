"""Tasks that spawn very many others pause, and show the same in the end."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import jobs

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
