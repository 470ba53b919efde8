"""`ciel.Executor` and the callables that it takes, as the standard library's executors are used.

CPython's own tests of executors are in `test_executor_cpython.py`; joblib's in `test_joblib.py`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import ciel
import pytest
from conditions import DEADLINE_S, until


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[ciel.Executor]:
    """An executor over a session with two cores."""
    with ciel.Session(jobs=2, state=tmp_path / "state") as session:
        with ciel.Executor(session=session) as made:
            yield made


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@ciel.task
def triple(number: int) -> int:
    """A task, thrice the number."""
    return 3 * number


class Adder:
    """An object that can be called, and has a method."""

    def __init__(self, number: int) -> None:
        """Adds `number`."""
        self.number = number

    def __call__(self, number: int) -> int:
        """The sum."""
        return self.number + number

    def method(self, number: int) -> int:
        """The sum."""
        return self.number + number


def wait_for(path: str) -> str:
    """Waits until a file is there."""
    until(lambda: os.path.exists(path))
    return path


def run(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own to its end."""
    file = tmp_path / "program.py"
    file.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True,
        timeout=DEADLINE_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "work",
    [
        double,
        lambda number: 2 * number,
        functools.partial(pow, 8, mod=None),
        Adder(7),
        Adder(7).method,
        triple.options(name="thrice"),
        str,
        abs,
    ],
    ids=["function", "lambda", "partial", "callable", "bound", "task", "class", "built-in"],
)
def test_anything_callable_is_submitted_and_mapped(executor: ciel.Executor, work: object) -> None:
    """`submit` and `map` take what can be called, as other executors do."""
    assert callable(work)
    assert executor.submit(work, 7).result() == work(7)
    assert list(executor.map(work, [1, 2], chunksize=2)) == [work(1), work(2)]


def test_what_cannot_be_called_is_a_type_error(executor: ciel.Executor) -> None:
    """The error comes at the submit and shows the value."""
    with pytest.raises(TypeError, match="expected a task or a callable, not 3"):
        executor.submit(3)  # type: ignore[arg-type]


def test_asyncio_runs_calls_in_it(executor: ciel.Executor) -> None:
    """`run_in_executor` takes it like any other."""

    async def program() -> list[int]:
        loop = asyncio.get_running_loop()
        calls = [loop.run_in_executor(executor, double, number) for number in range(20)]
        return await asyncio.gather(*calls)

    assert asyncio.run(program()) == [2 * number for number in range(20)]


def test_arguments_are_copied_at_the_submit(executor: ciel.Executor, tmp_path: Path) -> None:
    """A list that changes after its submit is not changed in the call, which waited for a core."""
    gate = tmp_path / "gate"
    held = [executor.submit(wait_for, str(gate)) for _ in range(50)]
    numbers = [1, 2]
    total = executor.submit(sum, numbers)
    numbers.append(3)
    gate.touch()
    assert total.result() == 3
    assert all(future.result() == str(gate) for future in held)


def test_what_cannot_be_pickled_is_the_exception_of_the_future(executor: ciel.Executor) -> None:
    """As with processes of the standard library; the message names the argument."""
    future = executor.submit(len, threading.Lock())  # type: ignore[arg-type]
    assert isinstance(future.exception(), ciel.NotSerializable)


def test_calls_that_the_engine_was_not_given_can_be_cancelled(
    executor: ciel.Executor, tmp_path: Path
) -> None:
    """`cancel` and `shutdown(cancel_futures=True)` end what waits; what runs continues."""
    gate = tmp_path / "gate"
    futures = [executor.submit(wait_for, str(gate)) for _ in range(50)]
    assert futures[-1].cancel() and not futures[0].cancel()
    executor.shutdown(wait=False, cancel_futures=True)
    gate.touch()
    executor.shutdown()
    done = [future for future in futures if not future.cancelled()]
    assert 0 < len(done) < 50
    assert {future.result() for future in done} == {str(gate)}


def test_the_session_that_was_given_stays_open(tmp_path: Path) -> None:
    """`shutdown` ends the executor's own session only."""
    with ciel.Session(jobs=1, state=tmp_path / "state") as session:
        with ciel.Executor(session=session) as executor:
            assert executor.submit(double, 2).result() == 4
        assert session.submit(double, 3).result() == 6


def test_the_arguments_of_an_executor_are_checked(tmp_path: Path) -> None:
    """A number of workers below one, or beside a session, is a ValueError."""
    with pytest.raises(ValueError, match="greater than 0"):
        ciel.Executor(max_workers=0)
    with ciel.Session(jobs=1, state=tmp_path / "state") as session:
        with pytest.raises(ValueError, match="number of cores"):
            ciel.Executor(max_workers=2, session=session)


def test_callbacks_may_submit_and_wait(executor: ciel.Executor) -> None:
    """They run in one thread of the session, which hears nothing of the engine itself."""
    found: concurrent.futures.Future[int] = concurrent.futures.Future()

    def go_on(future: concurrent.futures.Future[int]) -> None:
        executor.submit(double, future.result()).add_done_callback(
            lambda later: found.set_result(later.result())
        )

    executor.submit(double, 1).add_done_callback(go_on)
    assert found.result(DEADLINE_S) == 4


def test_what_was_submitted_is_done_before_the_program_ends(tmp_path: Path) -> None:
    """An executor that is not shut down, or dropped, is waited for at the end of the program."""
    done = run(
        tmp_path,
        """
import ciel, time

def say(words):
    time.sleep(0.2)
    print(words, flush=True)

if __name__ == "__main__":
    ciel.Executor(2).submit(say, "dropped")
    kept = ciel.Executor(2)
    kept.submit(say, "kept")
""",
    )
    assert (done.returncode, sorted(done.stdout.split()), done.stderr) == (
        0, ["dropped", "kept"], "",
    )  # fmt: skip


def test_a_submit_after_the_end_of_the_program_is_refused(tmp_path: Path) -> None:
    """A function that runs at exit gets the RuntimeError of the standard library."""
    done = run(
        tmp_path,
        """
import atexit

@atexit.register
def run_last():
    executor.submit(id, None)

import ciel
executor = ciel.Executor(1)
executor.submit(id, None).result()
""",
    )
    assert "RuntimeError: cannot schedule new futures after interpreter shutdown" in done.stderr


def test_a_lost_engine_breaks_the_executor(tmp_path: Path) -> None:
    """When the engine is killed, futures and later submits raise BrokenExecutor."""
    executor = ciel.Executor(1)
    engine = executor._dispatcher._session._process._engine._process
    future = executor.submit(time.sleep, DEADLINE_S)
    engine.kill()
    assert isinstance(future.exception(DEADLINE_S), concurrent.futures.BrokenExecutor)
    with pytest.raises(concurrent.futures.BrokenExecutor):
        executor.submit(double, 1)
    executor.shutdown()
