"""Tasks that misbehave: each fails in clear words, and those beside it are unhurt.

Most run in one session, whose workers have to survive them all. Where the output or the end of a
run is looked at, the task has a run of its own. The tasks are in `bad_tasks.py`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bad_tasks as bad
import ciel
import jobs
from conditions import until


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ciel.Session]:
    """One session for all bad tasks, so that those before must not have hurt those after."""
    made = ciel.Session(jobs=2, keep_going=True, state=tmp_path_factory.mktemp("state"))
    yield made
    made.cancel()


def outcome(session: ciel.Session, task: Any, *args: Any) -> Any:
    """What the future of a bad task gives, after those beside it have given what they should."""
    futures = [session.submit(bad.double, number) for number in range(5)]
    found = session.submit(task, *args)
    futures += [session.submit(bad.double, number) for number in range(5, 10)]
    assert ciel.gather(futures) == [2 * number for number in range(10)]
    return found.result()


FAILING: list[tuple[Any, type[BaseException], list[str], list[str]]] = [
    (
        bad.no_bytes,
        ciel.NotSerializable,
        ["result → ['parts'][1]: _thread.lock cannot be copied", "hint: pass plain data"],
        ["in task no_bytes@", "no_bytes()"],
    ),
    (bad.leave, ciel.WorkerLost, ["ended with exit status 3"], []),
    (bad.crash, ciel.WorkerLost, ["killed by SIGSEGV"], []),
    (bad.recurse, RecursionError, ["maximum recursion depth"], ["in task recurse@"]),
    (bad.say_goodbye, SystemExit, ["goodbye"], ["in task say_goodbye@"]),
    (bad.swallow, ciel.Timeout, ["time limit of 0.3 s", "hint: raise the limit"], []),
    (bad.pickle_future, ciel.NotSerializable, ["by hand", "pass it as an arg"], ["pickle_future"]),
    (bad.ask_for_truth, ciel.CielError, ["call .result() first"], ["in task ask_for_truth@"]),
]


@pytest.mark.parametrize(
    ("task", "kind", "words", "notes"), FAILING, ids=[case[0].label for case in FAILING]
)
def test_bad_task_fails_in_clear_words_and_hurts_no_other(
    session: ciel.Session,
    task: Any,
    kind: type[BaseException],
    words: list[str],
    notes: list[str],
) -> None:
    with pytest.raises(kind) as caught:
        outcome(session, task)
    assert type(caught.value) is kind
    for part in words:
        assert part in str(caught.value)
    for part in notes:
        assert part in "\n".join(getattr(caught.value, "__notes__", ()))
    named = [*getattr(caught.value, "__notes__", ()), getattr(caught.value, "task", "")]
    assert any(f"{task.label}@" in part for part in named)


@pytest.mark.parametrize(
    ("what", "words"),
    [("async", "is async: tasks are plain"), ("joined", "is joined, but does not yield")],
)
def test_async_and_wrongly_joined_tasks_are_refused_with_a_reason(
    session: ciel.Session, what: str, words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        outcome(session, bad.declare, what)


@pytest.mark.parametrize(
    ("task", "given"),
    [
        (bad.fork_and_return, "parent"),
        (bad.fork_and_raise, "status 1"),
        (bad.fork_and_spawn, "status 1"),
    ],
)
def test_child_that_falls_out_of_its_task_ends_alone(
    session: ciel.Session, task: Any, given: str
) -> None:
    assert outcome(session, task) == given


def test_signal_handlers_of_a_task_end_with_it(session: ciel.Session) -> None:
    changed = outcome(session, bad.change_handlers)
    looks: list[tuple[int, bool]] = []

    def seen() -> bool:
        looks.append(outcome(session, bad.look_at_handlers))
        return bool(looks[-1][0] == changed)

    until(seen)
    assert not any(ignored for _, ignored in looks)


def test_thread_that_outlives_its_task_retires_the_worker(session: ciel.Session) -> None:
    process = outcome(session, bad.leave_thread)
    until(lambda: not Path(f"/proc/{process}").exists())
    assert outcome(session, bad.double, 1) == 2


@pytest.mark.parametrize("how", ["result", "done", "argument"])
@pytest.mark.parametrize("which", [0, 1])
def test_future_in_a_global_is_refused_in_another_task(
    session: ciel.Session, which: int, how: str
) -> None:
    """It worked if the value was resolved and both tasks were in one process, and only then."""
    owner = outcome(session, bad.keep_globally)
    found: list[tuple[int, str]] = []

    def used() -> bool:
        found.append(outcome(session, bad.use_global, which, how))
        return bool(found[-1][0] == owner)

    until(used)
    words = found[-1][1]
    assert "belongs to keep_globally@" in words and "used in use_global@" in words
    assert "pass it as an argument" in words


def test_waiting_in_a_thread_needs_the_result_to_be_there(session: ciel.Session) -> None:
    error, value = outcome(session, bad.wait_in_thread)
    assert "wait in the task itself" in error and "wait_in_thread@" in error
    assert value == 16


def test_spawning_in_a_thread_is_refused(session: ciel.Session) -> None:
    assert "spawn and wait in the task itself" in outcome(session, bad.spawn_in_thread)


def test_waiting_in_an_event_loop_needs_the_result_to_be_there(session: ciel.Session) -> None:
    result, awaited, value = outcome(session, bad.wait_in_loop)
    assert "await the future" in result
    assert (awaited, value) == (16, 16)


def test_global_that_is_assigned_again_is_named(session: ciel.Session) -> None:
    value, error = outcome(session, bad.assign_again)
    assert value == 1
    assert "global 'RATE' of task rate was assigned again" in error and "hint:" in error


def test_captured_variable_that_is_assigned_again_is_named(session: ciel.Session) -> None:
    error = outcome(session, bad.assign_captured_again)
    assert "captured variable 'level' of task" in error and "pass it as an argument" in error


def main_of(call: str) -> str:
    """A job that runs one bad task between two good ones that print."""
    return f"""
import ciel
import bad_tasks as bad

@ciel.task
def say(words):
    print(words)

def main():
    say.spawn("first")
    bad.{call}
    say.spawn("last")
"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with the bad tasks, where jobs import them from."""
    text = Path(bad.__file__).read_text(encoding="utf-8")
    jobs.write(tmp_path, text, "bad_tasks.py")
    return tmp_path


@pytest.mark.parametrize("options", [("-j2",), ("--serial",)])
@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("print_without_end.spawn('half')", b"half"),
        ("print_bytes.spawn()", b"text;\xff\x00;command;more\nshell\ndescriptor\nend\n"),
        ("fork_and_print.spawn()", b"before\nfrom the child\nafter\n"),
    ],
)
def test_whatever_is_printed_keeps_its_place(
    call: str, printed: bytes, options: tuple[str, ...], beside: Path
) -> None:
    ended = jobs.run(beside, main_of(call), options=options)
    assert ended.status == 0, ended.talk
    assert ended.printed == b"first\n" + printed + b"last\n"


def test_thread_and_child_left_behind_are_told(beside: Path) -> None:
    ended = jobs.run(beside, main_of("leave_thread.spawn(), bad.fork_and_return.spawn()"))
    assert ended.status == 0, ended.talk
    assert ended.printed == b"first\nlast\n"
    assert "outlive it: left-behind" in ended.talk
    assert "a process forked in fork_and_return@" in ended.talk
    assert "end it with os._exit" in ended.talk


TAX = """
import ciel

@ciel.task
def tax(n):
    return n + {more}
"""


def test_module_edited_between_runs_is_seen_as_it_is(tmp_path: Path) -> None:
    job = "import tax\n\ndef main():\n    return tax.tax.spawn(1).result()\n"
    for more in (1, 2, 3):
        jobs.write(tmp_path, TAX.format(more=more), "tax.py")
        assert jobs.run(tmp_path, job).value == 1 + more


def test_module_edited_during_a_run_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes would run different code: main has imported it before, the other one after."""
    job = """
import os
import time
import ciel

def main():
    import tax
    with open(tax.__file__, "w") as file:
        file.write(os.environ["EDITED"])
    future = tax.tax.spawn(1)
    while not future.done():
        time.sleep(0.002)
    try:
        return future.result()
    except ciel.NonDeterministic as error:
        return str(error)
"""
    jobs.write(tmp_path, TAX.format(more=1), "tax.py")
    monkeypatch.setenv("EDITED", TAX.format(more=10) + "\nEDITED = True\n")
    error = jobs.run(tmp_path, job).value
    assert "tax of module tax is not the code that was spawned" in error
    assert "hint: a file was edited during the run" in error


INTERACTIVE = """
import ciel
RATE = 3
@ciel.task
def price(n):
    return RATE * n

@ciel.task
def total(count):
    return sum(price.spawn(n).result() for n in range(count))

print("total", ciel.run(total, 4))
@ciel.task
def wrong():
    return {}["key"]

try:
    ciel.run(wrong)
except KeyError as error:
    print("caught", error, error.__notes__)

"""


@pytest.mark.parametrize("words", [["-i"], ["-"]])
def test_function_of_an_interactive_session_is_a_task(words: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-q", *words],
        input=INTERACTIVE,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=jobs.DEADLINE_S,
        check=False,
    )
    assert "total 18\n" in done.stdout, done.stderr
    assert "caught 'key' ['in task wrong@" in done.stdout, done.stderr


def test_function_without_source_is_a_task(session: ciel.Session) -> None:
    space: dict[str, Any] = {"__name__": "made_up"}
    text = "import ciel\n@ciel.task\ndef made(n):\n    return {'a': n}[n] if n else RATE\nRATE = 9"
    exec(compile(text, "<made>", "exec"), space)
    assert outcome(session, space["made"], 0) == 9
    with pytest.raises(KeyError) as caught:
        outcome(session, space["made"], 5)
    assert "made(5)" in caught.value.__notes__[0]


def test_task_that_dies_with_a_parked_one_in_its_process_hurts_it_not(beside: Path) -> None:
    """At -j1 both are in the same worker: the parked one is replayed elsewhere."""
    job = """
import ciel
import bad_tasks as bad

@ciel.task
def waits(which):
    before = bad.double.spawn(1).result()
    try:
        getattr(bad, which).spawn().result()
    except ciel.WorkerLost as error:
        return [before, str(error)]

def main():
    return ciel.gather(waits.spawn("leave"), waits.spawn("crash"))
"""
    found = jobs.run(beside, job, options=("-j1",)).value
    assert [before for before, _ in found] == [2, 2]
    assert "exit status 3" in found[0][1] and "SIGSEGV" in found[1][1]


def test_main_that_yields_is_refused(tmp_path: Path) -> None:
    """The job ended well, ran nothing, and its result was the text of a generator."""
    ended = jobs.run(tmp_path, "def main():\n    yield 1\n")
    assert ended.status == 1 and ended.printed == b""
    assert "main has a `yield`, so a call of it runs nothing" in ended.talk
