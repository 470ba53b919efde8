"""Structured files of threads: what `ciel.open(…, structured=True)` makes, read in three ways."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ciel
from ciel import ordered

READER = Path(__file__).resolve().parents[3] / "docs/reference/read_cio.py"
"""The reader of the page, which shares no code with the writer."""


def printed(*words: str | Path, status: int = 0) -> bytes:
    ended = subprocess.run(words, capture_output=True, check=False)
    assert ended.returncode == status, ended.stderr
    return ended.stdout


def test_structured_file_holds_what_the_serial_program_writes(tmp_path: Path) -> None:
    path = tmp_path / "log.cio"

    def write(number: int) -> None:
        for part in range(number % 5):
            log.write(f"{number}.{part}\n")

    with ciel.open(path, structured=True) as log, ThreadPoolExecutor(4) as pool:
        log.write("begin\n")
        list(ordered.executor(pool).map(write, range(200)))
        log.write("end\n")
    lines = [f"{number}.{part}" for number in range(200) for part in range(number % 5)]
    expected = "\n".join(["begin", *lines, "end", ""])
    assert path.read_bytes().startswith(b"\x8fcielcio")
    assert printed(sys.executable, READER, path) == expected.encode()
    command = os.environ.get("CIEL_COMMAND") or shutil.which("ciel")
    assert command is not None and printed(command, "cat", path) == expected.encode()
    with ciel.open(path, "global", exists=True) as flat:
        assert flat.read() == expected


def test_killed_program_leaves_what_was_in_order(tmp_path: Path) -> None:
    program = """
import os, signal, sys, threading
import ciel
from ciel import ordered

log = ciel.open(sys.argv[1], structured=True)
is_written, ends = threading.Event(), threading.Event()

def first():
    log.write("first\\n")
    log.flush()
    is_written.set()
    ends.wait()

def second():
    log.write("second\\n")
    log.flush()
    is_written.wait()
    os.kill(os.getpid(), signal.SIGKILL)

log.write("begin\\n")
ordered.join(first, second)
"""
    path = tmp_path / "log.cio"
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=False)
    assert ended.returncode == -9, ended.stderr
    assert printed(sys.executable, READER, path, status=3) == b"begin\nfirst\n"


@pytest.mark.parametrize("options", [{"mode": "local"}, {"mode": "global"}, {"exists": True}])
def test_structured_file_is_written_from_its_start_by_serial_append(
    options: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("held")
    with pytest.raises(ValueError, match="is written from its start, in the mode 'serial-append'"):
        ciel.open(tmp_path / "log", structured=True, **options)
    assert (tmp_path / "log").read_text() == "held"


def test_file_of_tasks_is_never_structured_and_the_error_says_what_to_do(tmp_path: Path) -> None:
    """It said what is not, and left the reader to find out how such a file is written then."""

    @ciel.task
    def work() -> None:
        ciel.open(tmp_path / "log", structured=True)

    with pytest.raises(ValueError, match="never structured: leave out `structured`; the flat"):
        ciel.run(work, state=tmp_path / "state")
