"""Results of Python tasks that are kept across runs, by the command.

Each task tells on standard error that it ran, which no result depends on.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conditions import DEADLINE_S

JOB = '''
import sys

import ciel

from parts import helper

FACTOR = 2


@ciel.task
def scaled(n: int) -> int:
    print("ran scaled", n, file=sys.stderr)
    print("scaling", n)
    return helper(n) * FACTOR


@ciel.task
def long(n: int) -> bytes:
    print("ran long", n, file=sys.stderr)
    return b"x" * 5000 + str(n).encode()


@ciel.task
def read() -> str:
    print("ran read", file=sys.stderr)
    with open("data.txt") as file:
        return file.read()


@ciel.task
def written() -> int:
    print("ran written", file=sys.stderr)
    with open("log.txt", "w") as file:
        return file.write("one")


def main() -> list[object]:
    numbers = [scaled.spawn(n) for n in range(3)]
    longs = [long.spawn(n) for n in range(2)]
    others = [read.spawn(), written.spawn()]
    return [future.result() for future in [*numbers, *longs, *others]][:3]
'''

PARTS = '''
def helper(n: int) -> int:
    """Helps."""
    return n + 1
'''

ALL = [
    "long 0",
    "long 1",
    "read",
    "scaled 0",
    "scaled 1",
    "scaled 2",
    "written",
]


def project(folder: Path) -> None:
    (folder / "job.py").write_text(JOB)
    (folder / "parts.py").write_text(PARTS)
    (folder / "data.txt").write_text("data")


def run(folder: Path, *options: str) -> tuple[list[str], str, str]:
    """What ran, standard output, and standard error."""
    command = os.environ.get("CIEL_COMMAND") or shutil.which("ciel")
    if command is None:
        pytest.skip("the command ciel is not installed")
    words = [command, "run", "--python", sys.executable, *options, "job.py"]
    ended = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert ended.returncode == 0, ended.stderr
    lines = ended.stderr.splitlines()
    ran = sorted(line.split("] ran ")[1] for line in lines if "] ran " in line)
    return ran, ended.stdout, ended.stderr


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_edit_of_one_thing_reruns_what_reaches_it_and_says_why(tmp_path: Path) -> None:
    project(tmp_path)
    ran, printed, _ = run(tmp_path)
    assert ran == ALL
    job, parts, data = tmp_path / "job.py", tmp_path / "parts.py", tmp_path / "data.txt"
    scaled = ["scaled 0", "scaled 1", "scaled 2", "written"]
    for path, before, after, expected, reason in [
        (data, "data", "data", ["written"], ""),
        (job, "FACTOR = 2", "# Twice.\n\nFACTOR = 2", ["written"], ""),
        (parts, "Helps.", "It helps.", ["written"], ""),
        (parts, "n + 1", "1 + n + 0", scaled, "parts.py:2"),
        (job, "FACTOR = 2", "FACTOR = 3", scaled, "job.py"),
        (job, 'x" * 5000', 'x" * 6000', ["long 0", "long 1", "written"], "job.py"),
        (data, "data", "other", ["read", "written"], "input changed"),
    ]:
        edit(path, before, after)
        ran, now, told = run(tmp_path, "--kept")
        assert ran == expected, (after, told)
        assert reason in told
        assert now.splitlines()[:3] == printed.splitlines()[:3]


def test_task_that_was_seen_to_write_runs_in_each_run(tmp_path: Path) -> None:
    project(tmp_path)
    run(tmp_path)
    for _ in range(2):
        (tmp_path / "log.txt").unlink()
        ran, _, told = run(tmp_path, "--kept")
        assert ran == ["written"]
        assert (tmp_path / "log.txt").read_text() == "one"
        assert "6 of 7 kept; written: impure" in told


def test_marked_task_is_taken_after_a_run_that_ended_well(tmp_path: Path) -> None:
    project(tmp_path)
    edit(tmp_path / "job.py", "@ciel.task\ndef long", "@ciel.task(keep=True)\ndef long")
    edit(tmp_path / "job.py", "@ciel.task\ndef read", "@ciel.task(keep=False)\ndef read")
    assert run(tmp_path)[0] == ALL
    assert run(tmp_path)[0] == [name for name in ALL if not name.startswith("long")]
    assert run(tmp_path, "--kept")[0] == ["read", "written"]


CHAIN = '''
import sys

import ciel


@ciel.task
def first(n: int) -> bytes:
    print("ran first", n, file=sys.stderr)
    return b"%d" % n


@ciel.task
def second(given: bytes) -> int:
    print("ran second", given.decode(), file=sys.stderr)
    return int(given) * 2


def main() -> list[int]:
    firsts = [first.spawn(n) for n in range(3)]
    return [second.spawn(one).result() for one in firsts]
'''


def test_task_that_was_given_a_future_is_taken_in_the_next_run(tmp_path: Path) -> None:
    """Results of such tasks were kept without their inputs in the key, and never found again."""
    (tmp_path / "job.py").write_text(CHAIN)
    assert len(run(tmp_path)[0]) == 6
    assert run(tmp_path, "--kept")[0] == []
    edit(tmp_path / "job.py", "for n in range(3)]", "for n in (0, 1, 5)]")
    assert run(tmp_path, "--kept")[0] == ["first 5", "second 5"]


def foretold(folder: Path, *options: str) -> dict[str, list[str]]:
    """What `ciel run -n` tells of each function: fates and reasons of its tasks."""
    command = os.environ.get("CIEL_COMMAND") or shutil.which("ciel")
    if command is None:
        pytest.skip("the command ciel is not installed")
    words = [command, "run", "-n", "--json", "--python", sys.executable, *options, "job.py"]
    ended = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    fates: dict[str, list[str]] = {}
    for task in told["tasks"]:
        name = task["task"].split("@")[0]
        fates.setdefault(name, []).append(f"{task['fate']} {task['reason']}".strip())
    return fates


def test_dry_run_imports_the_program_and_names_the_line_that_changed(tmp_path: Path) -> None:
    project(tmp_path)
    run(tmp_path)
    fates = foretold(tmp_path, "--kept")
    assert fates["scaled"] == ["taken"] * 3
    assert fates["long"] == ["taken"] * 2
    assert "written" not in fates
    edit(tmp_path / "parts.py", "n + 1", "n + 2")
    (tmp_path / "data.txt").write_text("other")
    fates = foretold(tmp_path, "--kept")
    assert {fate.split(" (")[0] for fate in fates["scaled"]} == {"runs code changed: parts.py:2"}
    assert fates["long"] == ["taken"] * 2
    assert fates["read"][0].startswith("runs input changed")
    ran, _, told = run(tmp_path, "--kept")
    assert ran == ["read", "scaled 0", "scaled 1", "scaled 2", "written"], told


def test_dry_run_of_a_program_that_cannot_be_imported_says_so(tmp_path: Path) -> None:
    project(tmp_path)
    run(tmp_path)
    (tmp_path / "parts.py").write_text("helper = 1 / 0")
    assert foretold(tmp_path, "--kept")["scaled"] == ["unknown its code cannot be looked at"] * 3


TREE = '''
import sys

import ciel


@ciel.task
def leaf(n: int) -> int:
    print("leaf", n)
    print("ran leaf", n, file=sys.stderr)
    return n


@ciel.task(keep=True)
def parent(n: int) -> int:
    print("begin", n)
    leaves = [leaf.spawn(n + k) for k in range(3)]
    total = sum(leaf.result() for leaf in leaves)
    print("end", n)
    return total


def main() -> list[int]:
    return [parent.spawn(10).result(), *(f.result() for f in [parent.spawn(20), parent.spawn(30)])]
'''


@pytest.mark.parametrize("cores", ["-j1", "-j2"])
def test_output_of_children_is_printed_although_their_parent_is_marked(
    tmp_path: Path, cores: str
) -> None:
    """A parent whose children had begun inside it was kept once without what they print."""
    (tmp_path / "job.py").write_text(TREE)
    _, first, _ = run(tmp_path, cores)
    assert first.count("leaf") == 9
    for _ in range(2):
        assert run(tmp_path, cores, "--kept")[1] == first


LOGGED = '''
import sys

import ciel


@ciel.task(keep=True)
def logged(n: int) -> int:
    print("ran logged", n, file=sys.stderr)
    with ciel.open("log", "serial-append") as log:
        print("line", n, file=log)
    return n


@ciel.task(keep=True)
def silent(n: int) -> int:
    print("ran silent", n, file=sys.stderr)
    return n


def main() -> list[int]:
    return [each.spawn(n).result() for n in range(2) for each in (logged, silent)]
'''


def test_lines_in_ordered_files_are_kept_with_the_result_and_written_at_their_place(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.py").write_text(LOGGED)
    run(tmp_path)
    (tmp_path / "log").unlink()
    ran, _, _ = run(tmp_path)
    assert ran == []
    assert (tmp_path / "log").read_text() == "line 0\nline 1\n"
    edit(tmp_path / "job.py", "for n in range(2)", "for n in (1, 2, 0)")
    (tmp_path / "log").unlink()
    ran, _, _ = run(tmp_path)
    assert ran == ["logged 2", "silent 2"]
    assert (tmp_path / "log").read_text() == "line 1\nline 2\nline 0\n"
