"""A replay that prints less than before it was interrupted: it fails, and says so."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import jobs

SHORTER = """
import os

import ciel


def main():
    ciel.sh("true").result()
    print("begun")
    if not os.path.exists("resumed"):
        print("once")
        open("never", "rb").read()
    return 1
"""


def test_main_that_prints_less_when_it_is_replayed_fails(tmp_path: Path) -> None:
    """The resumed run ended well, without the line of its end."""
    os.mkfifo(tmp_path / "never")
    process = jobs.start(jobs.write(tmp_path, SHORTER))
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"begun\n", b"once\n"]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (tmp_path / "resumed").touch()
    ended = jobs.end_of(jobs.start(tmp_path / "job.py"))
    assert ended.status == 1, ended.talk
    assert ended.lines == ["begun", "once"]
    assert "NonDeterministic" in ended.talk
    assert "before it had written all that it wrote" in ended.talk
