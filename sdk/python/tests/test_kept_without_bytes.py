"""Python tasks whose kept results have dropped their bytes, by the command.

What is known of such a result suffices until somebody needs the bytes. Each task tells on standard
error that it ran, which no result depends on.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conditions import DEADLINE_S
from test_kept import edit, run

ROW = '''
import sys

import ciel


@ciel.task
def made(n: int) -> bytes:
    print("ran made", file=sys.stderr)
    print("making", n)
    return b"x" * n


@ciel.task
def doubled(text: bytes) -> bytes:
    print("ran doubled", file=sys.stderr)
    return text + text


@ciel.task
def length(text: bytes) -> int:
    print("ran length", file=sys.stderr)
    return len(text)


def main() -> int:
    return length.spawn(doubled.spawn(made.spawn(5000))).result()
'''

OUTPUT = "making 5000\n10000\n"


def clean(folder: Path, *options: str) -> str:
    command = os.environ.get("CIEL_COMMAND") or shutil.which("ciel")
    if command is None:
        pytest.skip("the command ciel is not installed")
    words = [command, "clean", "--bytes-only", *options]
    ended = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )
    return ended.stdout


@pytest.fixture
def row(tmp_path: Path) -> Path:
    """The row after a run that ended well, of which the bytes were removed."""
    (tmp_path / "job.py").write_text(ROW)
    ran, printed, _ = run(tmp_path)
    assert (ran, printed) == (["doubled", "length", "made"], OUTPUT)
    assert clean(tmp_path).startswith("removed the bytes of 2 kept results, ")
    return tmp_path


def test_nothing_runs_whose_bytes_nobody_needs(row: Path) -> None:
    ran, printed, told = run(row, "--kept")
    assert (ran, printed) == ([], OUTPUT)
    assert "3 of 3 kept, 2 known by digest" in told


def test_edit_at_the_end_runs_those_whose_bytes_are_needed(row: Path) -> None:
    edit(row / "job.py", "return len(text)", "return int(len(text))")
    ran, printed, told = run(row, "--kept")
    assert (ran, printed) == (["doubled", "length", "made"], OUTPUT)
    assert "bytes removed" in told and "length: code changed: job.py:" in told
    edit(row / "job.py", "return int(len(text))", "return len(text) + 0")
    assert run(row, "--kept")[0] == ["length"]


def test_edit_in_the_middle_whose_result_stays_the_same_leaves_the_end_taken(row: Path) -> None:
    edit(row / "job.py", "return text + text", "return 2 * text")
    ran, printed, _ = run(row, "--kept")
    assert (ran, printed) == (["doubled", "made"], OUTPUT)


def test_program_that_waits_for_a_result_without_bytes_gets_it(row: Path) -> None:
    edit(
        row / "job.py",
        "return length.spawn(doubled.spawn(made.spawn(5000))).result()",
        "return len(made.spawn(5000).result()) * 2",
    )
    ran, printed, _ = run(row, "--kept")
    assert (ran, printed) == (["made"], OUTPUT)


TREE = '''
import sys

import ciel


@ciel.task
def part(n: int) -> bytes:
    print("ran part", n, file=sys.stderr)
    print("part", n)
    return bytes([n]) * 3000


@ciel.task
def whole(n: int) -> bytes:
    print("ran whole", file=sys.stderr)
    print("begin")
    parts = [part.spawn(n + k) for k in range(2)]
    return b"".join(each.result() for each in parts)


@ciel.task
def size(text: bytes) -> int:
    print("ran size", file=sys.stderr)
    return len(text)


def main() -> int:
    return size.spawn(whole.spawn(0)).result()
'''

TREE_OUTPUT = "begin\npart 0\npart 1\n6000\n"


@pytest.mark.parametrize("cores", ["-j1", "-j2"])
def test_parent_without_bytes_is_known_and_recomputed_of_its_children(
    tmp_path: Path, cores: str
) -> None:
    (tmp_path / "job.py").write_text(TREE)
    ran, printed, _ = run(tmp_path, cores)
    assert (len(ran), printed) == (4, TREE_OUTPUT)
    clean(tmp_path, "--task", "whole")
    assert run(tmp_path, cores, "--kept")[:2] == ([], TREE_OUTPUT)
    edit(tmp_path / "job.py", "return len(text)", "return int(len(text))")
    ran, printed, told = run(tmp_path, cores, "--kept")
    # A part that ran as a call inside of its parent is kept with that only.
    assert {"size", "whole"} <= set(ran) <= {"part 0", "part 1", "size", "whole"}
    assert printed == TREE_OUTPUT
    assert "whole: bytes removed" in told
    clean(tmp_path)
    edit(tmp_path / "job.py", "return int(len(text))", "return len(text) + 0")
    ran, printed, _ = run(tmp_path, cores, "--kept")
    assert (ran, printed) == (["part 0", "part 1", "size", "whole"], TREE_OUTPUT)


SALTED = '''
import os
import sys

import ciel


@ciel.task(pure=True)
def made() -> bytes:
    print("ran made", file=sys.stderr)
    return os.environ["SALT"].encode() * 3000


@ciel.task
def length(text: bytes) -> int:
    print("ran length", file=sys.stderr)
    return len(text)


@ciel.task
def first(text: bytes) -> str:
    print("ran first", file=sys.stderr)
    return text[:1].decode()


def main() -> list[object]:
    text = made.spawn()
    return [length.spawn(text).result(), first.spawn(text).result()]
'''


def test_recomputed_result_that_differs_fails_and_the_next_run_continues_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `length` was taken for cannot be withdrawn, and must not stand beside another result."""
    (tmp_path / "job.py").write_text(SALTED)
    monkeypatch.setenv("SALT", "a")
    assert run(tmp_path)[:2] == (["first", "length", "made"], '[3000,"a"]\n')
    clean(tmp_path)
    edit(tmp_path / "job.py", "return text[:1]", "return text[:2][:1]")
    monkeypatch.setenv("SALT", "b")
    with pytest.raises(AssertionError) as failed:
        run(tmp_path, "--kept")
    told = " ".join(str(failed.value).split())
    assert "it gave another result than before when it was recomputed" in told
    assert run(tmp_path)[:2] == (["first", "length"], '[3000,"b"]\n')


def test_parent_that_writes_ordered_files_is_known_and_what_it_wrote_is_written_once(
    tmp_path: Path,
) -> None:
    job = ROW.replace("    print(\"making\", n)\n", LOGGED)
    (tmp_path / "job.py").write_text(job)
    run(tmp_path)
    clean(tmp_path)
    for before, after in [("len(text)", "len(text)"), ("len(text)", "int(len(text))")]:
        edit(tmp_path / "job.py", before, after)
        (tmp_path / "log").unlink()
        assert run(tmp_path, "--kept")[1] == OUTPUT
        assert (tmp_path / "log").read_text() == "making 5000\n"


LOGGED = """\
    print("making", n)
    with ciel.open("log", "serial-append") as log:
        print("making", n, file=log)
"""
