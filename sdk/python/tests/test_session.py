"""Sessions and `ciel.run`: work submitted by ordinary Python programs to a real engine.

Each test has a session of its own, with its state in a folder that goes away. Programs that end in
a way a test cannot (signals, a session left open) run as processes of their own.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import ciel
import pytest
from ciel._client_strand import ClientStrand
from ciel._engine_strand import EngineStrand
from conditions import DEADLINE_S, heeded_interrupts, until


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ciel.Session]:
    """An open session with two cores; it is cancelled if the test has not closed it."""
    made = ciel.Session(jobs=2, state=tmp_path / "state")
    yield made
    made.cancel()


@ciel.task
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@ciel.task
def refuse(what: str) -> None:
    """Fails."""
    raise KeyError(what)


@ciel.task
def say(words: str) -> int:
    """Prints."""
    print(words)
    return len(words)


@ciel.task
def say_all(words: list[str]) -> int:
    """Tasks that print, beneath one that prints."""
    print("begin")
    lengths = [say.spawn(word) for word in words]
    print("spawned")
    return sum(ciel.gather(*lengths))


@ciel.task
def forget(what: str) -> str:
    """Spawns a task that fails, and asks for nothing."""
    refuse.spawn(what)
    return "well"


@ciel.task
def wait_for(path: str) -> str:
    """Waits until a file exists."""
    until(lambda: os.path.exists(path))
    return path


def program(tmp_path: Path, text: str) -> subprocess.Popen[str]:
    """Starts a program of its own."""
    file = tmp_path / "program.py"
    file.write_text(text, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(file)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_submitted_task_gives_its_value(session: ciel.Session) -> None:
    assert session.submit(double, 21).result() == 42


def test_future_of_one_submit_is_an_argument_of_another(session: ciel.Session) -> None:
    first = session.submit(double, 3)
    assert session.submit(double, first.later).result() == 12


def test_plain_function_and_method_can_be_submitted(session: ciel.Session) -> None:
    class Scale:
        def __init__(self, by: int) -> None:
            self.by = by

        @ciel.task
        def of(self, number: int) -> int:
            return self.by * number

    assert session.submit(lambda number: number + 1, 4).result() == 5
    assert session.submit(Scale(7).of, 6).result() == 42


def test_failure_of_one_submit_hurts_no_other(session: ciel.Session) -> None:
    bad, good = session.submit(refuse, "tea"), session.submit(double, 1)
    with pytest.raises(KeyError, match="tea"):
        bad.result()
    assert good.result() == 2


def test_failure_nobody_asked_for_is_raised_by_close(session: ciel.Session) -> None:
    assert session.submit(forget, "milk").result() == "well"
    with pytest.raises(KeyError, match="milk"):
        session.close()


def test_output_comes_in_order_of_submission(
    session: ciel.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    futures = [session.submit(say_all, [f"{n}a", f"{n}b"]) for n in range(5)]
    assert [future.result() for future in futures] == [4] * 5
    session.close()
    wanted = [f"begin\n{n}a\n{n}b\nspawned\n" for n in range(5)]
    assert capsys.readouterr().out == "".join(wanted)


def test_several_threads_submit_and_wait(session: ciel.Session) -> None:
    found: dict[int, int] = {}

    def work(number: int) -> None:
        found[number] = sum(session.submit(double, number * 10 + n).result() for n in range(10))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: sum(2 * (n * 10 + k) for k in range(10)) for n in range(8)}


def test_futures_can_be_awaited(session: ciel.Session) -> None:
    async def work() -> list[int]:
        return await asyncio.gather(*[one(number) for number in range(5)])

    async def one(number: int) -> int:
        return await session.submit(double, number)

    assert asyncio.run(work()) == [0, 2, 4, 6, 8]


def test_awaited_future_raises_the_exception_of_its_task(session: ciel.Session) -> None:
    async def work() -> None:
        await session.submit(refuse, "sugar")

    with pytest.raises(KeyError, match="sugar"):
        asyncio.run(work())


def test_wait_and_done_tell_what_is_there(session: ciel.Session, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    quick, slow = session.submit(double, 1), session.submit(wait_for, str(gate))
    assert quick.result() == 2
    assert [quick.done(), slow.done()] == [True, False]
    there, missing = ciel.wait([slow, quick], count="first")
    assert (there, missing) == ([quick], [slow])
    assert ciel.wait([slow], timeout=0.01) == ([], [slow])
    gate.touch()
    assert ciel.gather(quick, slow) == [2, str(gate)]


def test_large_value_goes_through_a_file_and_back(session: ciel.Session) -> None:
    data = session.put(bytes(300_000))
    assert session.submit(len, data.later).result() == 300_000
    assert session.submit(lambda: b"x" * 200_000).result() == b"x" * 200_000


def test_array_arrives_read_only_and_equal(session: ciel.Session) -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(100_000)

    def writable(given: object) -> tuple[bool, int]:
        return given.flags.writeable, int(given.sum())  # type: ignore[attr-defined]

    assert session.submit(writable, array).result() == (False, int(array.sum()))
    back = session.submit(lambda given: given, array).result()
    assert (back == array).all() and not back.flags.writeable and array.flags.writeable


def test_cancelled_session_ends_what_runs(session: ciel.Session, tmp_path: Path) -> None:
    running = session.submit(wait_for, str(tmp_path / "never"))
    assert not running.done()
    session.cancel()
    with pytest.raises(ciel.Cancelled):
        running.result()
    with pytest.raises(ciel.NoRun, match="closed"):
        session.submit(double, 1)


def test_session_inside_a_task_is_refused(session: ciel.Session) -> None:
    def nested() -> None:
        ciel.Session()

    with pytest.raises(ciel.NoRun, match="already belongs to a run"):
        session.submit(nested).result()


@pytest.mark.parametrize("serial", [False, True])
def test_run_gives_value_and_output_of_the_serial_program(
    serial: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ciel.run(say_all, ["one", "two"], serial=serial, state=tmp_path / "state") == 6
    assert capsys.readouterr().out == "begin\none\ntwo\nspawned\n"


def test_run_raises_what_leaves_main(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="bread"):
        ciel.run(refuse, "bread", state=tmp_path / "state")


def test_run_raises_the_failure_nobody_asked_for(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="salt"):
        ciel.run(forget, "salt", state=tmp_path / "state")


def test_wrong_options_are_refused_before_anything_starts() -> None:
    wrong: list[dict[str, Any]] = [{"jobs": 0}, {"stderr": "loud"}, {"serial": True, "jobs": 2}]
    for options in wrong:
        with pytest.raises(ValueError, match="jobs|stderr|serial"):
            ciel.Session(**options)


def test_functions_of_main_work_without_a_guard(tmp_path: Path) -> None:
    text = """
import ciel
RATE = 3
def helper(n): return RATE * n
@ciel.task
def price(n): return helper(n)
@ciel.task
def total(count): return sum(ciel.gather([price.spawn(n) for n in range(count)]))
print("before")
print(ciel.run(total, 5))
print("after")
"""
    out, errors = program(tmp_path, text).communicate(timeout=DEADLINE_S)
    assert out == "before\n30\nafter\n", errors


def test_session_never_closed_is_ended_and_told(tmp_path: Path) -> None:
    text = """
import ciel, time
session = ciel.Session()
session.submit(time.sleep, 600)
print(session.submit(abs, -4).result())
"""
    process = program(tmp_path, text)
    out, errors = process.communicate(timeout=DEADLINE_S)
    assert (out, process.returncode) == ("4\n", 0)
    assert "never closed" in errors and "hint:" in errors


def test_interrupt_cancels_the_run(tmp_path: Path) -> None:
    text = """
import ciel, os, time
def main():
    open("began", "w").close()
    time.sleep(600)
ciel.run(main)
"""
    with heeded_interrupts():
        process = program(tmp_path, text)
    until((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert "KeyboardInterrupt" in errors


def test_killed_program_leaves_no_process(tmp_path: Path) -> None:
    text = """
import ciel, os, time
def main():
    with open("began", "w") as file: file.write(str(os.getpid()))
    os.replace("began", "pid")
    time.sleep(600)
ciel.run(main)
"""
    process = program(tmp_path, text)
    until((tmp_path / "pid").exists)
    worker = int((tmp_path / "pid").read_text())
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    until(lambda: not Path(f"/proc/{worker}").exists())


def test_command_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIEL_COMMAND", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ciel.Session()


def test_a_result_is_waited_for_within_a_time_limit(
    session: ciel.Session, tmp_path: Path
) -> None:
    """`result` and `exception` raise TimeoutError, and the future is as good as before."""
    gate = tmp_path / "gate"
    future = session.submit(wait_for, str(gate))
    for ask in (future.result, future.exception):
        with pytest.raises(TimeoutError):
            ask(timeout=0.01)
    gate.touch()
    assert future.result(timeout=DEADLINE_S) == str(gate)
    assert future.exception() is None


def test_the_exception_of_a_future_is_given_instead_of_raised(session: ciel.Session) -> None:
    """`exception` waits and gives the task's own; an exception in a task is none to the caller."""
    error = session.submit(refuse, "sand").exception()
    assert isinstance(error, KeyError) and error.args == ("sand",)


def test_as_completed_raises_when_its_time_is_over(
    session: ciel.Session, tmp_path: Path
) -> None:
    """The limit is for the whole iteration; what was resolved before has been yielded."""
    gate = tmp_path / "gate"
    futures: list[ciel.Future[Any]] = [
        session.submit(double, 4),
        session.submit(wait_for, str(gate)),
    ]
    assert futures[0].result() == 8
    taken = ciel.as_completed(futures, timeout=0.5)
    assert next(taken) is futures[0]
    with pytest.raises(TimeoutError, match="1 \\(of 2\\) futures unfinished"):
        next(taken)
    gate.touch()


def test_a_callback_is_called_when_the_future_is_resolved(session: ciel.Session) -> None:
    """It gets the future, may wait and submit, and an exception of it is logged only."""
    found: list[int] = []
    called = threading.Event()

    def fail(_: ciel.Future[int]) -> None:
        raise RuntimeError("in a callback")

    def note(future: ciel.Future[int]) -> None:
        found.append(session.submit(double, future.result()).result())
        called.set()

    future = session.submit(double, 4)
    future.add_done_callback(fail)
    future.add_done_callback(note)
    assert called.wait(DEADLINE_S) and found == [16]


FORKS = """
import os
import sys
import ciel

session = ciel.Session(jobs=1)
done, slow = session.submit(abs, -1), session.submit(ord, "a")
done.result()
executor = ciel.Executor(session=session)

def said(work):
    try:
        return work()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"

child = os.fork()
if child == 0:
    uses = [done.result, slow.result, lambda: session.submit(abs, 2), lambda: session.put(1),
            lambda: ciel.wait([slow]), session.close]
    print(*[said(use) for use in uses], sep="\\n", flush=True)
    sys.exit(0)
print("status", os.waitpid(child, 0)[1])
print(session.submit(abs, -3).result(), slow.result(), executor.submit(abs, -4).result())
executor.shutdown()
session.close()
"""


def test_a_session_in_a_forked_child_raises_at_once_and_the_parent_goes_on(tmp_path: Path) -> None:
    """A child that used its parent's session waited for ever, and when it ended, the parent's next
    result raised WorkerLost."""
    process = program(tmp_path, FORKS)
    out, errors = process.communicate(timeout=DEADLINE_S)
    belongs = f"NoRun: this session belongs to process {process.pid}, which forked this one"
    assert (out.splitlines(), errors) == (
        ["1", *[belongs] * 4, "None", "status 0", "3 97 4"], "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("timeout", -1, "timeout must be above 0, not -1"),
        ("timeout", "1s", "timeout is a number, not '1s'"),
        ("retries", -2, "retries must be from 0 to 1000, not -2"),
        ("resources", {"gpu": -1}, "resource 'gpu' must be from 0 to 4294967, not -1"),
        ("resources", {"cores": 2}, "'cores' is no name of a further resource"),
    ],
)
def test_option_that_cannot_be_is_refused_where_it_is_given(
    name: str, value: object, told: str
) -> None:
    """Usage of the command was printed, and then `WorkerLost` raised: it ended with status 2."""
    with pytest.raises((TypeError, ValueError), match=told):
        ciel.Session(**{name: value})  # type: ignore[arg-type]


def test_run_takes_the_options_of_a_session() -> None:
    """Both declare them one by one for those who read signatures, so they could differ."""
    of_run, of_session = (
        {
            name: (one.default, one.annotation)
            for name, one in inspect.signature(function).parameters.items()
            if one.kind is inspect.Parameter.KEYWORD_ONLY
        }
        for function in (ciel.run, ciel.Session)
    )
    assert of_session.pop("keep_going") == (True, "bool")
    assert of_run.pop("keep_going") == (False, "bool")
    assert of_run == of_session


class _Unheard:
    """A connection over which nothing is heard: the engine has closed its end."""

    def ask(self, *_args: object, **_options: object) -> None:
        """Takes the question."""

    def flush(self) -> None:
        """Sends it."""


def test_question_that_meets_the_end_of_the_session_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that asked while another one closed the session had no answer, and waited for ever:
    the end answered what was asked before, and the thread had looked whether it had come.
    """
    strand = ClientStrand(cast(Any, _Unheard()), 1, "root")
    next_request = EngineStrand.next_request

    def meanwhile(self: ClientStrand) -> int:
        self._end(True)
        return next_request(self)

    monkeypatch.setattr(EngineStrand, "next_request", meanwhile)
    with pytest.raises(ciel.NoRun, match="the session is closed"):
        strand.done([])
