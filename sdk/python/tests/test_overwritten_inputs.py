"""A task that overwrites the file of its input in place, where nothing prevents that."""

from __future__ import annotations

from pathlib import Path

import jobs
import pytest

JOB = """
import os
from pathlib import Path
import ciel

def engine():
    \"\"\"The process that sees the run without the mounts that protect it from tasks.\"\"\"
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:"))

@ciel.task
def make():
    return b"made" * 1000

@ciel.task(keep=False)
def bad(data):
    folder = Path(f"/proc/{engine()}/root{os.getcwd()}/state/runs")
    for file in folder.glob("*/objects/*"):
        if file.stat().st_size >= len(data):
            file.chmod(0o600)
            with open(file, "r+b") as opened:
                opened.write(b"lost")
    return len(data)

@ciel.task(keep=False)
def read(data):
    return bytes(data[:8]).decode()

def raises():
    return bad.spawn(make.spawn()).result()

def goes_on():
    made = make.spawn()
    try:
        bad.spawn(made).result()
    except Exception as error:
        return read.spawn(made).result()

def main(what):
    return globals()[what]()
"""


def test_task_that_overwrites_its_input_in_place_fails_by_name(tmp_path: Path) -> None:
    """It had ended well, and the next task that used the input was told that it was damaged."""
    ended = jobs.run(tmp_path, JOB, "raises", options=("--durable", "process"))
    assert ended.status == 1
    for part in [
        "error: bad@",
        "its input 1 was overwritten while it ran, by it or by another task that reads it",
        "hint: the file of a result must stay as it is",
    ]:
        assert part in ended.talk, ended.talk


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_next_reader_of_an_overwritten_input_gets_what_was_made(slots: str, tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, JOB, "goes_on", options=("--durable", "process", slots))
    assert ended.value == "mademade", ended.talk
