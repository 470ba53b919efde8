"""Kept results of Python tasks that spawn others, by the command: what runs, why, what is printed.

Each task tells on standard error that it ran, which no result depends on.
"""

import os
from pathlib import Path

import pytest

from test_kept import edit, run

JOB = '''
import sys

import ciel

from parts import helper


@ciel.task
def leaf(n: int) -> int:
    print("ran leaf", n, file=sys.stderr)
    print("leaf", n)
    return helper(n)


@ciel.task
def quiet(n: int) -> int:
    print("ran quiet", n, file=sys.stderr)
    return n + 1


@ciel.task
def counted(name: str) -> bytes:
    print("ran counted", name, file=sys.stderr)
    return ciel.sh("echo command; wc -c < {name} > {out}", name=name).result()


@ciel.task
def middle(n: int) -> int:
    print("ran middle", n, file=sys.stderr)
    print("begin middle", n)
    leaves = [leaf.spawn(n + k) for k in range(2)]
    with ciel.open("log", "serial-append") as log:
        print("middle", n, file=log)
    total = sum(each.result() for each in leaves) + quiet.spawn(n).result()
    print("end middle", n)
    return total


@ciel.task
def top(n: int) -> int:
    print("ran top", n, file=sys.stderr)
    print("begin top", n)
    with ciel.open("log", "serial-append") as log:
        print("begin", n, file=log)
    first, second = middle.spawn(n), middle.spawn(n + 10)
    print("between", n)
    total = first.result() + second.result()
    print("end top", n)
    return total


@ciel.task
def other() -> str:
    print("ran other", file=sys.stderr)
    return counted.spawn("data.txt").result().decode().strip()


def main() -> list[object]:
    return [top.spawn(0).result(), top.spawn(100).result(), other.spawn().result()]
'''

PARTS = "def helper(n):\n    return n + 1\n"


def project(folder: Path) -> None:
    (folder / "job.py").write_text(JOB)
    (folder / "parts.py").write_text(PARTS)
    (folder / "data.txt").write_text("data")


def functions(ran: list[str]) -> set[str]:
    """The functions of tasks that ran."""
    return {name.partition(" ")[0] for name in ran}


def again(folder: Path, *options: str) -> tuple[list[str], str, str, str]:
    """As `run`, with the ordered file of that run."""
    (folder / "log").unlink(missing_ok=True)
    ran, printed, told = run(folder, *options)
    return ran, printed, told, (folder / "log").read_text()


@pytest.mark.parametrize("cores", ["-j1", "-j2"])
def test_parent_is_taken_and_prints_what_all_beneath_it_print(tmp_path: Path, cores: str) -> None:
    project(tmp_path)
    ran, printed, _, log = again(tmp_path, cores)
    assert len(ran) == 20
    for _ in range(2):
        assert again(tmp_path, cores, "--kept")[:2] == ([], printed)
        assert (tmp_path / "log").read_text() == log


def test_edit_beneath_a_parent_reruns_what_reaches_it_and_says_why(tmp_path: Path) -> None:
    project(tmp_path)
    again(tmp_path)
    job, parts, data = tmp_path / "job.py", tmp_path / "parts.py", tmp_path / "data.txt"
    tree = {"top", "middle", "leaf", "quiet"}  # which runs inside its parent
    for path, before, after, expected, reason in [
        (job, "import sys", "# A comment.\nimport sys", set(), ""),
        (parts, "n + 1", "1 + n", tree, "code changed: parts.py:1"),
        (job, "return n + 1", "return 1 + n", {"top", "middle", "quiet"}, "code changed: job.py"),
        (job, "end top", "END top", {"top"}, "code changed: job.py"),
        (data, "data", "other", {"other", "counted"}, "input changed: "),
        (job, "echo command", "echo COMMAND", {"other", "counted"}, "code changed: job.py"),
    ]:
        edit(path, before, after)
        ran, printed, told, log = again(tmp_path, "--kept")
        assert functions(ran) == expected, (after, told)
        assert reason in told
        assert (printed, log) == again(tmp_path, "--new")[1::2], after


MARKED = '''
import sys

import ciel


@ciel.task
def leaf(n: int) -> int:
    print("ran leaf", n, file=sys.stderr)
    with open(f"written.{n}", "w") as file:
        file.write("x")
    return n


@ciel.task(keep=False)
def never(n: int) -> int:
    print("ran never", n, file=sys.stderr)
    return n


@ciel.task(keep=True)
def marked(n: int) -> int:
    print("ran marked", n, file=sys.stderr)
    return leaf.spawn(n).result()


@ciel.task
def unmarked(n: int) -> int:
    print("ran unmarked", n, file=sys.stderr)
    return leaf.spawn(n).result()


@ciel.task
def above(n: int) -> int:
    print("ran above", n, file=sys.stderr)
    return never.spawn(n).result()


@ciel.task
def broken(n: int) -> int:
    print("ran broken", n, file=sys.stderr)
    raise ValueError("broken")


@ciel.task
def catches(n: int) -> int:
    print("ran catches", n, file=sys.stderr)
    try:
        return broken.spawn(n).result()
    except ValueError:
        return n


def main() -> list[int]:
    tasks = [marked.spawn(1), unmarked.spawn(2), above.spawn(3), catches.spawn(4)]
    return [task.result() for task in tasks]
'''


def test_parent_is_kept_if_it_is_marked_or_all_beneath_it_may_be(tmp_path: Path) -> None:
    """A marked parent with children was reported as never finished at each run."""
    (tmp_path / "job.py").write_text(MARKED)
    assert "marked 1" in run(tmp_path)[0]
    ran, _, told = run(tmp_path)
    assert "marked 1" not in ran
    assert "never finished" not in told
    rest = {"unmarked", "leaf", "above", "never", "catches", "broken"}
    assert functions(run(tmp_path, "--kept")[0]) == rest


GIVEN = '''
import sys
import time

import ciel

import parts


@ciel.task
def given(n: int) -> int:
    print("ran given", n, file=sys.stderr)
    print("given", n)
    return parts.helper(n)


@ciel.task
def apply(n: int, function: object) -> int:
    print("ran apply", n, file=sys.stderr)
    return function.spawn(n).result()


@ciel.task
def waits(n: int) -> int:
    print("ran waits", n, file=sys.stderr)
    first = next(iter(ciel.as_completed([given.spawn(n), given.spawn(n + 1)])))
    return first.result()


def main() -> list[int]:
    return [apply.spawn(1, given).result(), waits.spawn(2).result()]
'''


def test_code_that_a_parent_was_given_counts(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(GIVEN)
    (tmp_path / "parts.py").write_text(PARTS)
    run(tmp_path)
    assert functions(run(tmp_path, "--kept")[0]) <= {"waits"}
    edit(tmp_path / "parts.py", "n + 1", "n + 2")
    ran, printed, told = run(tmp_path, "--kept")
    assert {"apply", "given"} <= functions(ran)
    assert "code changed: parts.py" in told
    assert "[3," in printed


def test_parent_that_waits_for_the_first_of_several_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(GIVEN)
    (tmp_path / "parts.py").write_text(PARTS)
    run(tmp_path)
    assert "waits" in functions(run(tmp_path, "--kept")[0])


TOOLS = """
import sys

import ciel


@ciel.task
def parent() -> str:
    print("ran parent", file=sys.stderr)
    command = "echo ran command >&2; tool"
    return ciel.sh(command, tools=True).result().decode()


def main() -> str:
    return parent.spawn().result()
"""


def test_tool_of_a_command_beneath_a_parent_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.py").write_text(TOOLS)
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder, word in zip(folders, ("one", "two"), strict=True):
        folder.mkdir()
        (folder / "tool").write_text(f"#!/bin/sh\necho {word}\n")
    (folders[1] / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    assert sorted(run(tmp_path)[0]) == ["command", "parent"]
    assert run(tmp_path, "--kept")[0] == []
    (folders[1] / "tool").write_text("#!/bin/sh\necho three\n")
    ran, printed, told = run(tmp_path, "--kept")
    assert (sorted(ran), "three" in printed) == (["command", "parent"], True)
    assert "tool changed: tool" in told
    (folders[0] / "tool").chmod(0o755)  # It is the first of the path now.
    ran, printed, told = run(tmp_path, "--kept")
    assert (sorted(ran), "one" in printed) == (["command", "parent"], True)


UNSETTLED = """
import sys

import ciel


@ciel.task
def leaf(n):
    print("ran leaf", n, file=sys.stderr)
    return ciel.sh("echo {n}", n=n).result()


@ciel.task
def holding(n):
    print("ran holding", n, file=sys.stderr)
    return [leaf.spawn(n), leaf.spawn(n + 1)]


def main():
    return [future.result() for future in holding.spawn(1).result()]
"""


def test_result_that_contains_futures_is_not_kept_and_says_so(tmp_path: Path) -> None:
    """It was reported as never finished; what the futures stand for is kept."""
    (tmp_path / "job.py").write_text(UNSETTLED)
    printed = run(tmp_path)[1]
    for _ in range(2):
        ran, again, told = run(tmp_path, "--kept")
        assert (ran, again) == (["holding 1"], printed)
        assert "2 of 3 kept; holding: not kept" in told


ASKING = """
import sys

import ciel


@ciel.task(keep=True)
def asking(n):
    print("ran asking", n, file=sys.stderr)
    return n, QUESTION is None


def main():
    return asking.spawn(1).result()
"""


@pytest.mark.parametrize("question", ['ciel.environ("PATH")', "ciel.now()", "ciel.entropy(4)"])
def test_task_that_asks_its_environment_is_not_kept_and_says_so(
    question: str, tmp_path: Path
) -> None:
    """It was reported as never finished in each run, although it ended well in each."""
    (tmp_path / "job.py").write_text(ASKING.replace("QUESTION", question))
    printed = run(tmp_path)[1]
    for _ in range(2):
        ran, again, told = run(tmp_path, "--kept")
        assert (ran, again) == (["asking 1"], printed)
        assert "0 of 1 kept; asking: not kept" in told
