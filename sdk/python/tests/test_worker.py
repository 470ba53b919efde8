"""The worker against a scripted engine: parking, replay, streams, threads, forks, cancelling."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import ciel
from ciel import Future, _worker, _worker_process, _native
from ciel._native import Answer, Cancel, Drop, Failed, Observed, Resume, Value
from ciel._strand import STEPS_FROM, current
from ciel._streams import Captured, StrandText
from scripted_engine import Engine, Nothing, Task, run_in_worker

if TYPE_CHECKING:
    from ciel._native import Message

RAN: list[int] = []
LEFT: list[threading.Event] = []


@ciel.task
def double(n: int) -> int:
    """A small task."""
    RAN.append(n)
    return 2 * n


@ciel.task
def deep(n: int) -> int:
    """Waits at every level."""
    return 0 if n == 0 else 1 + deep.spawn(n - 1).result()


@ciel.task
def count(n: int, total: int = 0) -> int:
    """A loop of tails."""
    return total if n == 0 else count.tail(n - 1, total + 1)


@ciel.task
def fail(text: str) -> None:
    """Fails."""
    raise ValueError(text)


@ciel.task
def large(n: int) -> bytes:
    """A result that goes through a file."""
    return bytes(n)


@ciel.task
def folder_now() -> str:
    """Where this task is."""
    return os.getcwd()


@ciel.task
def kept(futures: list[Future[int]]) -> int:
    """Gets references."""
    return sum(future.result() for future in futures)


@ciel.task
def leaves_a_thread() -> None:
    """Starts a thread that outlives it."""
    event = threading.Event()
    LEFT.append(event)
    threading.Thread(target=event.wait, name="left-behind").start()


def task_json(**wanted: Any) -> bytes:
    """A payload from another language."""
    return json.dumps(wanted).encode()


@contextmanager
def served(payload: bytes, **options: Any) -> Iterator[Engine]:
    """An engine whose root has that payload, after it has ended."""
    engine = Engine(payload)
    process = _worker_process.WorkerProcess(engine, Nothing(), **options)  # type: ignore[arg-type]
    process.serve()
    yield engine


def test_result_is_waited_for_by_parking_at_any_depth() -> None:
    assert run_in_worker(lambda: deep.spawn(3_000).result())[0] == 3_000


def test_parked_strand_takes_at_most_twelve_kilobytes() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def main() -> int:
        before = resident()
        levels = 4_000
        found = measured.spawn(levels).result()
        return (found - before) // levels

    assert run_in_worker(main)[0] < 12_000


@ciel.task
def measured(n: int) -> int:
    """Parks at every level and measures at the last."""
    if n == 0:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    return measured.spawn(n - 1).result()


def test_tails_run_in_place_and_are_said_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tail looks at the clock, which is an eighth of a millisecond later then: the engine
    hears of every eightieth."""
    ticks = itertools.count()
    monkeypatch.setattr(_worker, "_clock", lambda: next(ticks) / 8000)
    value, engine = run_in_worker(lambda: count.spawn(30_000).result())
    assert value == 30_000
    assert len(engine.tasks) == 30_000 // 80


def test_failure_reaches_whoever_asks() -> None:
    def main() -> str:
        with pytest.raises(ValueError, match="no tea") as found:
            fail.spawn("no tea").result()
        return found.value.__notes__[0]

    assert "fail('no tea')" in run_in_worker(main)[0]


def test_failed_argument_is_the_failure_of_the_task_as_it_was() -> None:
    def main() -> None:
        double.spawn(cast(int, fail.spawn("first"))).result()

    with pytest.raises(ValueError, match="first") as found:
        run_in_worker(main)
    assert not any("double" in note for note in found.value.__notes__)


def test_large_values_go_through_files_and_equal_buffers_are_stored_once() -> None:
    numpy = pytest.importorskip("numpy")

    def main() -> Any:
        array = numpy.arange(100_000)
        totals = ciel.gather([total.spawn(array) for _ in range(3)])
        stored = ciel.put({"x": array})
        return totals, len(large.spawn(100_000).result()), bool(
            (stored.result()["x"] == array).all()
        )

    value, engine = run_in_worker(main)
    assert value == ([4999950000] * 3, 100_000, True)
    stored = [fact for fact in engine.root.facts if fact[0][0] == "commit"]
    assert len(stored) == 2


@ciel.task
def total(array: Any) -> int:
    """Sums a read-only array."""
    assert not array.flags.writeable
    return int(array.sum())


def test_function_by_value_is_stored_once_by_each_strand() -> None:
    bonus = 5

    @ciel.task
    def local(n: int) -> int:
        return n + bonus if n == 0 else local.spawn(n - 1).result()

    value, engine = run_in_worker(lambda: ciel.gather([local.spawn(2) for _ in range(3)]))
    assert value == [5, 5, 5]
    for task in engine.tasks.values():
        assert len([fact for fact in task.facts if fact[0][0] == "construct"]) <= 1


def test_dropped_strand_is_run_again_and_its_children_are_not() -> None:
    RAN.clear()

    def main() -> int:
        futures = [double.spawn(n) for n in range(5)]
        return sum(ciel.gather(futures)) + sum(future.result() for future in futures)

    value, engine = run_in_worker(main, random.Random(1))
    assert value == 40
    assert engine.drops and sorted(RAN) == [0, 1, 2, 3, 4]


def test_recorded_answers_are_given_again_and_not_asked_again() -> None:
    taken: list[int] = []

    def take() -> bytes:
        taken.append(1)
        return b"%d" % len(taken)

    def main() -> Any:
        seen = current().input("clock", take)
        futures = [double.spawn(n) for n in range(3)]
        before = futures[2].done()
        order = [future.result() for future in ciel.as_completed(futures)]
        late = kept.spawn([double.spawn(9)])
        timed_out = ciel.wait([late], timeout=0.0)[0]
        return seen, before, order, len(timed_out), late.result()

    drops = 0
    for seed in range(12):
        taken.clear()
        value, engine = run_in_worker(main, random.Random(seed))
        drops += engine.drops
        assert value == (b"1", False, [0, 2, 4], 0, 18)
    assert drops > 3


def test_lists_that_are_taken_in_turns_are_taken_whole_after_any_replay() -> None:
    """The engine follows one list; another one, or a replay, makes the strand list again."""

    def main() -> Any:
        rows = [
            ciel.as_completed([double.spawn(n) for n in range(first, first + 5)])
            for first in (0, 10)
        ]
        taken = [[future.result() for future in row] for row in ([], *zip(*rows, strict=True))]
        return sorted(sum(taken, []))

    drops = 0
    for seed in range(12):
        value, engine = run_in_worker(main, random.Random(seed))
        drops += engine.drops
        assert value == [*range(0, 10, 2), *range(20, 30, 2)]
    assert drops > 3


def test_another_question_in_a_replay_is_told_as_nondeterminism() -> None:
    asked: list[str] = []

    def main() -> None:
        asked.append("clock" if not asked else "dice")
        current().input(asked[-1], lambda: b"")
        double.spawn(1).result()

    chance = random.Random()
    chance.random = lambda: 0.0 if len(asked) == 1 else 1.0  # type: ignore[method-assign]
    with pytest.raises(ciel.NonDeterministic, match="requested dice at .* had requested clock"):
        run_in_worker(main, chance)


def test_output_keeps_its_place_between_spawns_also_bytes_and_unfinished_lines() -> None:
    def main() -> None:
        print("one", end="")
        talk.spawn("a")
        sys.stdout.buffer.write(b"two")
        talk.spawn("b").result()
        print("three", file=sys.stderr)
        sys.stdout.writelines(["four", "\n"])

    engine = run_in_worker(main)[1]
    assert engine.output() == b"onea\ntwob\nfour\n"


@ciel.task
def talk(text: str) -> None:
    """Prints."""
    print(text)


def test_descriptor_one_is_captured_in_place() -> None:
    before = os.dup(1)
    try:
        captured = Captured()
        assert captured.take() == b""
        os.write(1, b"from a command")
        assert (captured.take(), captured.take()) == (b"from a command", b"")
    finally:
        os.dup2(before, 1)
        os.close(before)


def test_no_file_with_a_name_is_created_for_what_is_captured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`tempfile` tries its default folder by a file with a name; a kill there left that file."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = os.dup(1)
    try:
        Captured()
        assert os.readlink("/proc/self/fd/1").startswith(str(tmp_path))
    finally:
        os.dup2(before, 1)
        os.close(before)
    assert tempfile.tempdir is None, "the default folder was looked for"
    assert not list(tmp_path.iterdir())


def test_text_stream_refuses_bytes_and_names_its_descriptor() -> None:
    said: list[tuple[int, bytes]] = []
    stream = StrandText(1, lambda sink, data: said.append((sink, data)))
    stream.write("ä")
    with pytest.raises(TypeError, match="must be str"):
        stream.write(b"x")  # type: ignore[arg-type]
    assert (said, stream.fileno(), stream.isatty()) == ([(1, b"\xc3\xa4")], 2, False)


def test_folder_and_signal_handlers_are_put_back_around_a_wait(tmp_path: Path) -> None:
    home = os.getcwd()

    def main() -> Any:
        os.chdir(tmp_path)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        seen = folder_now.spawn().result()
        return seen, os.getcwd(), signal.getsignal(signal.SIGUSR1)

    engine = Engine()
    process = _worker_process.WorkerProcess(engine, Nothing())  # type: ignore[arg-type]
    process.state.install()
    found: list[Any] = []
    process._functions[b"main"] = lambda: found.append(main())
    engine.root.payload = b"\x01\x00\x04" + bytes(12) + b"main"
    try:
        process.serve()
    finally:
        process.state.uninstall()
    assert found == [(home, os.path.realpath(tmp_path), signal.SIG_IGN)]
    assert (os.getcwd(), signal.getsignal(signal.SIGUSR1)) == (home, signal.SIG_DFL)


def test_thread_that_outlives_its_task_is_named_and_uses_the_worker_up() -> None:
    try:
        engine = run_in_worker(lambda: leaves_a_thread.spawn().result())[1]
        assert any("left-behind" in text for text in engine.logged)
        assert set(engine.keeps) == {2}
    finally:
        for event in LEFT:
            event.set()
        for thread in threading.enumerate():
            if thread.name == "left-behind":
                thread.join()


def test_waiting_on_a_thread_is_refused_unless_the_result_is_there() -> None:
    def main() -> list[Any]:
        known, unknown = double.spawn(1), double.spawn(2)
        known.result()
        found: list[Any] = []

        def body() -> None:
            found.append(known.result())
            try:
                unknown.result()
            except ciel.WaitError as error:
                found.append(str(error))

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        return found

    found = run_in_worker(main)[0]
    assert found[0] == 2 and "a thread of its own" in found[1]


def test_forked_child_that_leaves_its_task_says_so_and_says_nothing_else() -> None:
    read, write = os.pipe()

    def main() -> int:
        child = os.fork()
        if child == 0:
            os.dup2(write, 2)
            processes[0].on_forked()
            return 0
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    processes: list[_worker_process.WorkerProcess] = []
    engine = Engine()
    processes.append(_worker_process.WorkerProcess(engine, Nothing()))  # type: ignore[arg-type]
    found: list[int] = []
    processes[0]._functions[b"main"] = main
    engine.root.payload = b"\x01\x00\x04" + bytes(12) + b"main"
    processes[0].serve()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert b"a process forked in main@" in pipe.read()
    assert engine.root.outputs[0].state == Value(0, _pickled(0), "pickle", ())
    assert not found


def _pickled(value: Any) -> bytes:
    import pickle

    return pickle.dumps(value, 5)


def test_interrupt_raises_cancelled_in_the_running_strand_only() -> None:
    engine = Engine()
    process = _worker_process.WorkerProcess(engine, Nothing())  # type: ignore[arg-type]
    before = signal.signal(signal.SIGUSR2, process.on_interrupt)

    def main() -> None:
        engine.messages.append(Cancel(99, 1000))
        os.kill(os.getpid(), signal.SIGUSR2)
        engine.messages.append(Cancel(engine.root.tag, 1000))
        os.kill(os.getpid(), signal.SIGUSR2)
        raise AssertionError("it went on")

    process._functions[b"main"] = main
    engine.root.payload = b"\x01\x00\x04" + bytes(12) + b"main"
    try:
        process.serve()
        os.kill(os.getpid(), signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, before)
    state = engine.root.outputs[0].state
    assert isinstance(state, Failed) and state.failure.kind == "CANCELLED"


def test_too_many_dropped_strands_use_the_worker_up() -> None:
    engine = Engine()
    process = _worker_process.WorkerProcess(engine, Nothing())  # type: ignore[arg-type]
    for number in range(_worker_process.DROPPED_MAX + 2):
        dropped = number
        process._parked[dropped] = type("Strand", (), {"ended": False})()
        process.handle(Drop(dropped))
    assert process.used_up and len(process._dropped) == _worker_process.DROPPED_MAX + 2


def test_words_about_tasks_that_are_not_held_are_dropped() -> None:
    process = _worker_process.WorkerProcess(Engine(), Nothing())  # type: ignore[arg-type]
    tag = 7
    messages: list[Message] = [
        Resume(tag, [], False), Drop(tag), Cancel(tag, 1), Answer(tag, 1, Observed(b"")),
    ]  # fmt: skip
    for message in messages:
        process.handle(message)
    assert process.running is None


def test_root_of_a_file_gives_its_value_as_json(tmp_path: Path) -> None:
    path = tmp_path / "root_job_file.py"
    path.write_text("def main(*args):\n    return {'args': args, 'other': 1j}\n")
    with served(task_json(main=str(path), args=["a", "b"])) as engine:
        state = engine.root.outputs[0].state
    assert state == Value(0, b'{"args": ["a", "b"], "other": "1j"}', "json", ())


@pytest.mark.parametrize(("text", "found"), [("", ""), ("main = 3\n", ": main is 3")])
def test_root_without_main_is_refused_by_name(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / f"job_file_of_{len(text)}.py"
    path.write_text(text)
    with served(task_json(main=str(path))) as engine:
        state = engine.root.outputs[0].state
    assert isinstance(state, Failed)
    assert state.failure.message.endswith(f"has no function main{found}")
    assert state.failure.hint == "the program begins at its function main: def main(*words)"


def test_root_with_too_many_arguments_is_refused_with_the_main_that_takes_them(
    tmp_path: Path,
) -> None:
    """A program whose `main()` used argparse was told to write the arguments that it had, and who
    wrote an option of ciel behind the file was not told where it belongs."""
    path = tmp_path / "options_job_file.py"
    path.write_text("def main():\n    return 1\n")
    with served(task_json(main=str(path), args=["--count", "3"])) as engine:
        state = engine.root.outputs[0].state
    assert isinstance(state, Failed)
    assert state.failure.message.startswith("main() cannot be called with 2 arguments: ")
    assert state.failure.hint.startswith("options of ciel come before the file; ")
    assert state.failure.hint.endswith("as text: def main(*words)")


def test_options_of_a_program_are_read_by_argparse(tmp_path: Path) -> None:
    """As docs/first-program.md says: from the words, or from `sys.argv`."""
    path = tmp_path / "parsing_job_file.py"
    path.write_text(
        "import argparse\n"
        "def main(*words):\n"
        "    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--count', type=int)\n"
        "    return [parser.parse_args(words).count, parser.parse_args().count]\n"
    )
    with served(task_json(main=str(path), args=["--count", "3"])) as engine:
        state = engine.root.outputs[0].state
    assert state == Value(0, b"[3, 3]", "json", ())


def test_root_without_its_arguments_is_refused_with_the_way_to_pass_them(tmp_path: Path) -> None:
    path = tmp_path / "greeting_job_file.py"
    path.write_text("def main(name):\n    return name\n")
    with served(task_json(main=str(path), args=[])) as engine:
        state = engine.root.outputs[0].state
    assert isinstance(state, Failed)
    assert state.failure.message.startswith("main(name) cannot be called with 0 arguments: ")
    assert "ciel run greeting_job_file.py ARGUMENTS" in state.failure.hint


def test_call_from_another_language_gets_values_and_gives_json() -> None:
    with served(task_json(function="test_worker:double", args=[21])) as engine:
        assert engine.root.outputs[0].state == Value(0, b"42", "json", ())
    engine = Engine(task_json(function="test_worker:double", kwargs={"n": {"$ref": 0}}))
    engine.root.inputs.append(_object(b"[1]"))
    engine.root.begin()
    _worker_process.WorkerProcess(engine, Nothing()).serve()  # type: ignore[arg-type]
    assert engine.root.outputs[0].state == Value(0, b"[1, 1]", "json", ())


@ciel.task
def steps(before: list[list[int]]) -> list[list[int]]:
    """Takes one tail; gives seed, inherited seed and a random number of both calls."""
    inherited = int(os.environ["CIEL_TASK_SEED"])
    seen = [*before, [current().seed, inherited, ciel.task_rng().getrandbits(32)]]
    return seen if before else steps.tail(seen)


@ciel.task(outputs=2)
def pair() -> tuple[int, int]:
    """Has two outputs."""
    return 1, 2


@ciel.task
def ends_as_a_pair() -> Any:
    """Has one output, and hands it to a call with two."""
    return pair.tail()


def test_tail_of_a_call_from_another_language_is_a_step_of_its_own() -> None:
    """Such calls ran their tails in a loop that forgot what a step changes.

    A tail kept the seed, the generator and the inherited CIEL_TASK_SEED of the call before it, so
    it drew other numbers than the same function that Python had spawned; and a tail with another
    number of outputs was not noticed. All strands run tails in one loop now.
    """
    with served(task_json(function="test_worker:steps", args=[[]])) as engine:
        state = engine.root.outputs[0].state
    assert isinstance(state, Value)
    first, second = json.loads(state.data)
    by_python, python_engine = run_in_worker(lambda: steps.spawn([]).result())
    child = python_engine.tasks[1]
    assert first[0] == first[1] == _native.seed_of(engine.root.position)
    assert second[0] == second[1] == _seed_of_first_step(engine.root.position)
    assert by_python[1][0] == _seed_of_first_step(child.position)
    for seed, _, number in (first, second, *by_python):
        assert random.Random(seed).getrandbits(32) == number
    with served(task_json(function="test_worker:ends_as_a_pair")) as engine:
        state = engine.root.outputs[0].state
    assert isinstance(state, Failed) and "has 2 outputs instead of 1" in state.failure.message


def _seed_of_first_step(position: bytes) -> int:
    return _native.seed_of(_native.position_of_spawn(position, STEPS_FROM + 1))


def _object(data: bytes) -> Any:
    entry = type(Engine().root.outputs[0])()
    entry.state = Value(0, data, "json", ())
    return entry


def test_futures_of_other_strands_are_refused_in_arguments() -> None:
    leaked: list[Any] = []

    def main() -> None:
        leaked.append(double.spawn(1))

    run_in_worker(main)
    with pytest.raises(ciel.WaitError, match="pass it as an argument"):
        run_in_worker(lambda: double.spawn(leaked[0]))


def test_seed_is_the_engines_seed_of_the_place() -> None:
    def main() -> Any:
        return [seed_now.spawn().result() for _ in range(2)], os.environ["CIEL_TASK_SEED"]

    (children, own), engine = run_in_worker(main)
    tasks: list[Task] = [entry for entry in engine.root.log if isinstance(entry, Task)]
    assert children == [_native.seed_of(task.position) for task in tasks]
    assert own == str(_native.seed_of(engine.root.position))


@ciel.task
def seed_now() -> int:
    """The seed of this task."""
    assert os.environ["CIEL_TASK_SEED"] == str(current().seed)
    return current().seed
