"""Standard error of Python tasks: tagged as it comes, or in serial order on request."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs

PROGRAM = """
import logging, subprocess, sys, threading, warnings
import ciel

@ciel.task
def leaf(n):
    print("leaf", n, "begins", file=sys.stderr)
    logging.warning("leaf %d logs", n)
    warnings.warn(f"leaf {n} warns", stacklevel=1)
    child = beneath.spawn(n)
    taken = subprocess.run(["sh", "-c", f"echo leaf {n} command >&2"], stderr=subprocess.PIPE)
    sys.stderr.buffer.write(taken.stderr)
    sys.stderr.write(f"leaf {n} ")
    sys.stderr.write("ends\\n")
    return child.result()

@ciel.task
def beneath(n):
    print("beneath", n, file=sys.stderr)
    return n

def main():
    leaves = [leaf.spawn(n) for n in range(3)]
    command = ciel.sh("echo a command >&2")
    print("all spawned", file=sys.stderr)
    return sum(leaf.result() for leaf in leaves) + len(command.result())
"""

UNTAKEN = """
import os, subprocess, sys
import ciel

@ciel.task
def leaf():
    os.write(2, b"by the descriptor\\n")
    subprocess.run(["sh", "-c", "echo by a command >&2"])
    print("by the task", file=sys.stderr)

def main():
    leaf.spawn().result()
"""


def serial_errors() -> list[str]:
    """What the serial program writes to standard error."""
    lines = []
    for n in range(3):
        lines += [f"leaf {n} begins", f"WARNING:root:leaf {n} logs", f"UserWarning: leaf {n} warns"]
        lines += [f"beneath {n}", f"leaf {n} command", f"leaf {n} ends"]
    return [*lines, "a command", "all spawned"]


@pytest.mark.parametrize("options", [("--serial",), ("-j1",), ("-j4",)])
def test_ordered_errors_are_those_of_the_serial_program(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    ended = jobs.run(tmp_path, PROGRAM, options=("--stderr=ordered", *options))
    assert (ended.status, ended.printed) == (0, b"3\n"), ended.talk
    # A warning begins with its file and line, and ends with the text of that line.
    lines = [line for line in ended.talk.splitlines() if "warnings.warn(" not in line]
    assert [line[max(line.find("UserWarning"), 0) :] for line in lines] == serial_errors()


def test_errors_are_tagged_with_their_task_unless_they_are_ordered(tmp_path: Path) -> None:
    talk = jobs.run(tmp_path, PROGRAM).talk.splitlines()
    assert any(line.startswith("[leaf@") and line.endswith("] leaf 2 begins") for line in talk)
    assert any(line.startswith("[beneath@") and line.endswith("] beneath 1") for line in talk)


@pytest.mark.parametrize("options", [("--stderr=ordered",), ("--stderr=live",)])
def test_errors_past_python_are_shown_with_the_name_of_the_process(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    talk = jobs.run(tmp_path, UNTAKEN, options=options).talk.splitlines()
    for text in ("by the descriptor", "by a command"):
        (line,) = [line for line in talk if line.endswith(text)]
        assert line.startswith("[python")
    (own,) = [line for line in talk if line.endswith("by the task")]
    assert (own == "by the task") == (options == ("--stderr=ordered",))
