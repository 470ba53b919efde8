"""The root as a program: exit statuses, coroutine functions, futures and floats in its result.

Each job is run by the command, in parallel and serially, and must end in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ciel
import jobs
import pytest
from ciel import testing

MODES = [("-j2",), ("--serial",)]

EXITS = """
import argparse
import sys
import ciel

@ciel.task
def leave(status):
    sys.exit(status)

def main(how, *args):
    if how == "number":
        sys.exit(int(args[0]))
    if how == "text":
        sys.exit("no such thing")
    if how == "help":
        argparse.ArgumentParser(prog="job").parse_args(["--help"])
    if how == "task":
        return leave.spawn(3).result()
"""

AWAITS = """
import asyncio
import ciel

@ciel.task
def double(number):
    return 2 * number

async def main():
    await asyncio.sleep(0)
    one, two = await asyncio.gather(double.spawn(1), double.spawn(2))
    return [one, two, await double.spawn(3)]
"""

RETURNS = """
import ciel

@ciel.task
def double(number):
    return 2 * number

def main(how):
    if how == "future":
        return double.spawn(4)
    return {"first": [double.spawn(1), float("nan")], "second": double.spawn(2), "third": 1e999}
"""


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize("status", [0, 4, 255])
def test_a_root_that_exits_ends_the_job_with_its_status(
    tmp_path: Path, options: tuple[str, ...], status: int
) -> None:
    """`sys.exit(4)` and `sys.exit(0)` in `main` ended with a traceback and status 1."""
    ended = jobs.run(tmp_path, EXITS, "number", str(status), options=options)
    assert (ended.status, ended.printed, ended.talk) == (status, b"", "")


@pytest.mark.parametrize("options", MODES)
def test_a_root_that_exits_with_a_text_prints_it(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """The text goes to standard error, and the status is 1, as with the interpreter."""
    ended = jobs.run(tmp_path, EXITS, "text", options=options)
    assert (ended.status, ended.printed) == (1, b"")
    assert ended.talk.endswith("no such thing\n") and len(ended.talk.splitlines()) == 1


def test_the_help_of_argparse_is_all_that_is_shown(tmp_path: Path) -> None:
    """A job may parse its arguments as any program does."""
    ended = jobs.run(tmp_path, EXITS, "help")
    assert (ended.status, ended.talk) == (0, "")
    assert ended.printed.startswith(b"usage: job")


@pytest.mark.parametrize("options", MODES)
def test_a_task_that_exits_has_failed(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Only the root is the program; the failure names the task."""
    ended = jobs.run(tmp_path, EXITS, "task", options=options)
    assert ended.status == 1
    assert "failed: SystemExit: 3" in ended.talk


@pytest.mark.parametrize("options", MODES)
def test_an_exit_is_not_retried(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The program has said how it ends."""
    ended = jobs.run(tmp_path, EXITS, "number", "4", options=(*options, "--retries=2"))
    assert (ended.status, ended.talk) == (4, "")


@pytest.mark.parametrize("options", MODES)
def test_a_main_that_is_a_coroutine_function_is_awaited(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Its result was the text of a coroutine object, with status 0."""
    assert jobs.run(tmp_path, AWAITS, options=options).value == [2, 4, 6]


@pytest.mark.parametrize("options", MODES)
def test_futures_in_the_result_are_their_values(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """`return f.spawn()` printed the text of a future; a `nan` hid the whole result."""
    assert jobs.run(tmp_path, RETURNS, "future", options=options).value == 8
    assert jobs.run(tmp_path, RETURNS, "many", options=options).value == {
        "first": [2, "nan"], "second": 4, "third": "inf",
    }  # fmt: skip


@ciel.task
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


def main_with_future() -> object:
    """Returns a future."""
    return double.spawn(4)


async def awaiting() -> int:
    """Awaits one."""
    return await double.spawn(5)


main_with_await: Callable[[], object] = awaiting


def test_run_waits_for_a_future_and_awaits_a_coroutine_function(tmp_path: Path) -> None:
    """`ciel.run` and `ciel.testing.run` treat a `main` as the command does."""
    assert ciel.run(main_with_future, jobs=1, state=tmp_path / "state") == 8
    assert testing.run(main_with_future) == 8
    assert ciel.run(main_with_await, jobs=1, state=tmp_path / "state") == 10
    assert testing.run(main_with_await) == 10


SHOWN = """
import ciel

@ciel.task
def two():
    return 2

def main():
    print(two.spawn(), ciel.put(3))
"""


def test_a_future_is_shown_alike_in_every_mode(tmp_path: Path) -> None:
    """It was shown with a number that differed between `--serial` and the other modes."""
    shown = [jobs.run(tmp_path, SHOWN, options=options).printed for options in MODES]
    for line in shown:
        first, second = line.decode().split("> <")
        assert first.startswith("<Future of job@") and second.rstrip(">\n") == first[1:]
