"""What is appended to a file is seen without a system call, whoever appends it, and however.

A worker looks so at descriptor 1 before a child begins or ends in place.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jobs
import pytest

from ciel._native import Tail
from ciel._streams import Captured

PAGE_BYTES = os.sysconf("SC_PAGESIZE")


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Two descriptors of a new file: one writes where it is told to, the other at its end."""
    path = tmp_path / "file"
    pair = os.open(path, os.O_RDWR | os.O_CREAT, 0o600), os.open(path, os.O_WRONLY | os.O_APPEND)
    yield pair
    for descriptor in pair:
        os.close(descriptor)


@pytest.mark.parametrize("maps", [True, False])
def test_all_that_is_appended_is_seen_and_read_once(files: tuple[int, int], maps: bool) -> None:
    file, end_of_file = files
    chance = random.Random(7)
    tail = Tail(file)
    if not maps:
        tail.look_by_calls()
    written = read = b""
    for _ in range(2000):
        assert not tail.has_grown()
        if chance.random() < 0.5:
            sizes = [1, 2, 7, 8, 9, chance.randrange(1, 300), PAGE_BYTES - 5, PAGE_BYTES]
            piece = b"\0" * chance.choice([0, 0, 0, 3]) + b"x" * chance.choice(sizes)
            written += piece
            assert os.write(end_of_file, piece) == len(piece)
            assert tail.has_grown()
            start, end = tail.unread()
            read += os.pread(file, end - start, start)
            tail.note_read(end)
        assert read == written


def test_zeros_alone_are_seen_by_system_calls(files: tuple[int, int]) -> None:
    tail = Tail(files[0])
    tail.look_by_calls()
    os.write(files[1], b"\0")
    assert tail.has_grown()


CUT = """
import os, sys
from ciel._native import Tail

file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
tail = Tail(file)
end_of_file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(end_of_file, b"x" * int(sys.argv[2]))
tail.note_read(tail.unread()[1])
os.ftruncate(file, 0)
assert tail.has_grown()
for text in (b"again", b"and again"):
    os.ftruncate(file, 0)
    os.write(end_of_file, text)
    assert tail.has_grown()
    assert tail.unread() == (0, len(text))
    tail.note_read(len(text))
    assert not tail.has_grown()
"""


@pytest.mark.parametrize("count", [1, PAGE_BYTES - 5, PAGE_BYTES, 3 * PAGE_BYTES])
def test_file_that_is_cut_is_read_from_its_start(tmp_path: Path, count: int) -> None:
    """To look at a mapped page whose file has become shorter kills a process."""
    command = [sys.executable, "-c", CUT, str(tmp_path / "file"), str(count)]
    subprocess.run(command, check=True)


OTHER = """
import mmap, os, sys
from ciel._native import Tail

file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
tail = Tail(file)
other = os.open(sys.argv[1] + ".other", os.O_RDWR | os.O_CREAT, 0o600)
os.write(other, b"x")
page = mmap.mmap(other, 1)
os.ftruncate(other, 0)
print(page[0])
"""


def test_other_faults_kill_as_ever(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OTHER, str(tmp_path / "file")]
    ended = subprocess.run(command, capture_output=True)
    assert (ended.returncode, ended.stdout) == (-signal.SIGBUS, b"")


def test_command_that_empties_descriptor_one_loses_nothing_of_its_own() -> None:
    """What `> /dev/stdout` wrote was not read before the file had its former length again."""
    before = os.dup(1)
    try:
        captured = Captured()
        os.write(1, b"first")
        assert captured.take() == b"first"
        for text in ("two", "and three"):
            subprocess.run(f"printf '{text}' > /dev/stdout", shell=True, check=True)
            assert captured.take() == text.encode()
    finally:
        os.dup2(before, 1)
        os.close(before)


ORDERED = r"""
import os
import subprocess
import sys
import ciel

@ciel.task
def says(n):
    if n % 3 == 0:
        os.write(1, b"child %d\n" % n)
    elif n % 3 == 1:
        print("child", n)
    return n

def parent_says(how, n):
    if how == "natively":
        os.write(1, b"parent %d\n" % n)
    elif how == "by zeros":
        subprocess.run([sys.executable, "-c", "import os; os.write(1, bytes(3))"], check=True)
    elif how == "by a cut":
        with open("/dev/stdout", "w") as out:
            out.write("parent %d\n" % n)

@ciel.task
def parent(how):
    for n in range(9):
        says.spawn(1).result()
        parent_says(how, n)
        future = says.spawn(n)
        parent_says(how, 10 + n)
        future.result()

def main(how):
    parent.spawn(how).result()
"""


@pytest.mark.parametrize("how", ["natively", "by zeros", "by a cut"])
def test_output_beside_native_children_is_in_the_order_of_the_program(
    how: str, tmp_path: Path
) -> None:
    job = jobs.write(tmp_path, ORDERED)
    serial = jobs.end_of(jobs.start(job, how, options=("--serial",)))
    ended = jobs.end_of(jobs.start(job, how, options=("-j1",)))
    assert (ended.printed, ended.status) == (serial.printed, 0), ended.talk
