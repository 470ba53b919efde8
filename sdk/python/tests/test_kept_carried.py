"""Kept results of Python tasks that are packed in one folder and unpacked in another one.

Each task tells on standard error that it ran, which no result depends on.
"""

import getpass
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conditions import DEADLINE_S
from test_kept import run

JOB = '''
import sys
from dataclasses import dataclass

import ciel

from parts import helper


@dataclass
class Point:
    x: int


@ciel.task
def leaf(n: int) -> bytes:
    print("ran leaf", n, file=sys.stderr)
    print("leaf", n)
    return str(helper(n)).encode() * 500


@ciel.task
def counted(name: str) -> bytes:
    print("ran counted", name, file=sys.stderr)
    with open(name) as file:
        lines = len(file.readlines())
    words = ciel.sh("echo command; wc -w < {name} > {out}", name=name).result()
    return words + str(lines).encode()


@ciel.task
def point(data: bytes) -> Point:
    print("ran point", len(data), file=sys.stderr)
    return Point(len(data))


def main() -> list[object]:
    return [point.spawn(leaf.spawn(10)).result().x, counted.spawn("data.txt").result().decode()]
'''

ALL = ["counted data.txt", "leaf 10", "point 1000"]


def project(folder: Path) -> None:
    folder.mkdir()
    (folder / "job.py").write_text(JOB)
    (folder / "parts.py").write_text("def helper(n):\n    return n + 1\n")
    (folder / "data.txt").write_text("some\ndata\n")


def told(folder: Path, *words: str) -> str:
    """What a command prints that does not run anything."""
    command = os.environ.get("CIEL_COMMAND") or shutil.which("ciel")
    if command is None:
        pytest.skip("the command ciel is not installed")
    done = subprocess.run(
        [command, *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def carried(tmp_path: Path, *options: str) -> tuple[Path, str, str]:
    """A folder with the results of another one, what unpacking says, and what the job prints."""
    here, there = tmp_path / "here", tmp_path / "there"
    project(here)
    ran, printed, _ = run(here)
    assert ran == ALL
    archive = str(tmp_path / "carried.tar")
    told(here, "pack", "-o", archive)
    project(there)
    return there, told(there, "unpack", *options, archive), printed


def test_results_of_a_trusted_owner_are_taken_in_any_form(tmp_path: Path) -> None:
    there, unpacked, printed = carried(tmp_path, "--trust-owner", getpass.getuser())
    assert unpacked == f"took 4 of 4 results that {getpass.getuser()} packed\n"
    ran, again, said = run(there, "--kept")
    assert (ran, again) == ([], printed)
    assert "3 of 3 kept" in said
    (there / "data.txt").write_text("other\n")
    ran, _, said = run(there, "--kept")
    assert ran == ["counted data.txt"]
    assert "counted: input changed: data.txt" in said


def test_pickles_are_left_out_even_if_the_file_says_that_it_is_ours(tmp_path: Path) -> None:
    there, unpacked, printed = carried(tmp_path)
    expected = f"took 3 of 4 results that {getpass.getuser()} packed\n1 left out: "
    assert unpacked.startswith(expected)
    ran, again, _ = run(there, "--kept")
    assert (ran, again) == (["point 1000"], printed)


def test_naming_another_owner_trusts_nobody(tmp_path: Path) -> None:
    _, unpacked, _ = carried(tmp_path, "--trust-owner", "somebody-else")
    assert unpacked.startswith("took 3 of 4 results ")


LOGGING = """
import ciel


@ciel.task
def plain(n: int) -> bytes:
    return b"x" * n


@ciel.task
def logging(n: int) -> bytes:
    with ciel.open("log", "serial-append") as log:
        print("a line", file=log)
    return b"y" * n


def main() -> int:
    return len(plain.spawn(3).result()) + len(logging.spawn(4).result())
"""


def test_results_of_tasks_that_write_to_ordered_files_stay_at_home(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(LOGGING)
    run(tmp_path)
    packed = json.loads(told(tmp_path, "pack", "--json", "-o", "carried.tar"))
    assert (packed["results"], packed["left_out"]) == (1, 1)
    said = told(tmp_path, "pack", "-o", "carried.tar")
    assert said.endswith("1 task of the run left out: no result is kept that can travel\n")
