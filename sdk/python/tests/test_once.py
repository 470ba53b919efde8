"""`ciel.once`: one value in each process, what becomes of its prints, and when it is dropped."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ciel
import jobs
import pytest
from ciel import _once, testing

MADE: list[int] = []


@ciel.once
def value() -> list[int]:
    """Notes each time that it is made."""
    MADE.append(1)
    print("made")
    return [len(MADE)]


@ciel.once
def circular() -> int:
    """Needs itself."""
    return circular() + 1


@ciel.once
def spawning() -> Any:
    """Does what only a task may do."""
    return read.spawn().result()


@ciel.task
def read() -> int:
    """Uses the value."""
    return value()[0]


@ciel.task
def read_spawning() -> Any:
    """Uses a value that cannot be made."""
    return spawning()


@pytest.fixture(autouse=True)
def fresh() -> None:
    """No value of an earlier test is left."""
    MADE.clear()
    value.drop()


def test_value_is_made_once_and_again_after_drop() -> None:
    assert value() is value() and MADE == [1]
    value.drop()
    assert value() == [2]


def test_threads_that_need_the_value_at_once_share_one() -> None:
    begin = threading.Barrier(8)
    found: list[Any] = []

    def use() -> None:
        begin.wait()
        found.append(value())

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert MADE == [1] and len(found) == 8 and all(one is found[0] for one in found)


def test_failure_is_raised_and_the_next_call_tries_again() -> None:
    tries: list[int] = []

    @ciel.once
    def unsure() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no such host")
        return "connected"

    with pytest.raises(OSError, match="no such host"):
        unsure()
    assert unsure() == unsure() == "connected" and len(tries) == 2


def test_value_that_needs_itself_raises() -> None:
    with pytest.raises(RuntimeError, match="circular needs its own value to make it"):
        circular()


def test_serial_program_shows_prints_of_the_maker_as_talk(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert testing.run(lambda: [read.spawn().result() for _ in range(3)]) == [1, 1, 1]
    assert capsys.readouterr() == ("", "made\n")


def test_maker_that_spawns_is_refused() -> None:
    with pytest.raises(ciel.NoRun, match=r"value of ciel\.once is made outside of any task"):
        testing.run(lambda: read_spawning.spawn().result())


@pytest.mark.parametrize(
    ("make", "message"),
    [(3, "not 3"), (lambda path: path, "has required arguments")],
    ids=["number", "argument"],
)
def test_what_cannot_be_called_without_arguments_is_refused(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ciel.once(make)


def test_value_goes_by_reference() -> None:
    assert pickle.loads(pickle.dumps(value)) is value
    assert MADE == []


def test_values_above_the_bound_are_dropped_least_recently_used_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_once, "VALUES_MAX", 2)
    _once.MADE.clear()
    first, second = ciel.once(object), ciel.once(object)
    kept, dropped = first(), second()
    first()
    value()
    assert first() is kept and second() is not dropped


@pytest.mark.parametrize(
    ("available", "declared", "made"),
    [(50.0, None, 1), (5.0, None, 2), (50.0, 1, 2), (50.0, sys.maxsize, 1)],
    ids=["enough", "machine is short", "task declares less", "task declares more"],
)
def test_values_are_dropped_before_a_task_when_memory_is_short(
    available: float, declared: int | None, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_once, "available_percent", lambda: available)
    monkeypatch.setattr(_once._Looked, "at_s", -_once.LOOK_EVERY_S)
    value()
    _once.relieve(declared)
    value()
    assert len(MADE) == made


def test_machine_says_how_much_memory_is_available() -> None:
    assert 0 < _once.available_percent() <= 100


JOB = """
import os
import subprocess
import ciel
from ciel import _once

# How much memory others have left of the machine is not what these jobs are about.
_once.available_percent = lambda: 100.0

@ciel.once
def model():
    print("loading")
    subprocess.run(["echo", "of a command"], check=True)
    with open("made", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return os.getpid()

@ciel.once
def host():
    if not os.path.exists("tried"):
        open("tried", "w").close()
        raise OSError("no such host")
    return "host"

@ciel.task
def use(i):
    print("before", i, end="")
    found = model() == os.getpid()
    print(" after", i)
    return found

@ciel.task
def connect():
    return host()

@ciel.task(memory="40 MiB")
def small():
    return model() == os.getpid()

@ciel.once
def large():
    with open("made", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return bytearray(30 << 20)

@ciel.task
def fill():
    return len(large())

def uses():
    return all([future.result() for future in [use.spawn(i) for i in range(8)]])

def fails():
    try:
        connect.spawn().result()
    except OSError as error:
        return [str(error), connect.spawn().result()]

def presses():
    return [fill.spawn().result(), small.spawn().result(), fill.spawn().result()]

def main(what):
    return globals()[what]()
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2", "--serial"])
def test_each_worker_makes_its_own_and_the_output_is_the_same(slots: str, tmp_path: Path) -> None:
    """The task that makes the value depends on timing, so prints of the maker are talk."""
    ended = jobs.run(tmp_path, JOB, "uses", options=(slots,))
    assert ended.value is True
    assert ended.lines[:-1] == [f"before {i} after {i}" for i in range(8)]
    made = (tmp_path / "made").read_text("utf-8").split()
    assert len(made) == len(set(made)) <= (2 if slots == "-j2" else 1)
    assert ended.talk.count("] loading") == ended.talk.count("] of a command") == len(made)


def test_task_after_one_whose_maker_failed_tries_again(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, JOB, "fails").value == ["no such host", "host"]


def test_task_that_declares_memory_does_not_pay_for_values_of_others(tmp_path: Path) -> None:
    """30 MiB that another task had left would end a task that declares 40 MiB for itself."""
    ended = jobs.run(tmp_path, JOB, "presses", options=("-j1",))
    assert ended.value == [30 << 20, True, 30 << 20]
    made = (tmp_path / "made").read_text("utf-8").split()
    assert len(made) == 3, "large, model, and large after it was dropped"


NOTEBOOK = """
import os
import ciel

@ciel.once
def model():
    return {"made by": os.getpid(), "uses": []}

@ciel.task
def use(i):
    model()["uses"].append(i)
    return model()["made by"] == os.getpid(), len(model()["uses"])

def other(i):
    return use.function(i)[0]

with ciel.Session(jobs=1, state="state") as session:
    print([session.submit(use, i).result() for i in range(3)], session.submit(other, 1).result())

    @ciel.once
    def model():
        return {"made by": os.getpid(), "uses": [7, 8]}

    print(session.submit(use, 0).result())
"""


def test_value_of_the_program_itself_is_one_in_each_worker(tmp_path: Path) -> None:
    """Two functions that are sent by value share it; a new definition is taken."""
    words = [sys.executable, str(jobs.write(tmp_path, NOTEBOOK, "notebook.py"))]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=jobs.DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[(True, 1), (True, 2), (True, 3)] True",
        "(True, 3)",
    ]


SEEN: list[int] = []


def total(values: list[int]) -> list[int]:
    """Notes each time that it is called."""
    SEEN.append(1)
    return [sum(values), len(SEEN)]


@ciel.task(keep=False)
def add(values: ciel.Future[list[int]], number: int) -> tuple[int, int]:
    """The total with a number, and how often this process has made a total."""
    made = ciel.once(total, values)
    return made[0] + number, made[1]


@ciel.task(keep=False)
def numbers(count: int) -> list[int]:
    """So many numbers."""
    return list(range(count))


def sums(counts: list[int]) -> list[tuple[int, int]]:
    """Three tasks for each of some lists."""
    lists = [numbers.spawn(count) for count in counts]
    found = [add.spawn(one, number) for one in lists for number in range(3)]
    return ciel.gather(found)


@pytest.mark.parametrize("count", [10, 100_000])
def test_value_of_an_input_is_made_once_in_each_process(count: int, tmp_path: Path) -> None:
    with ciel.Session(jobs=1, state=tmp_path) as session:
        found = session.submit(sums, [count, count + 1]).result()
    first, second = (sum(range(length)) for length in (count, count + 1))
    assert [value for value, _ in found] == [
        *(first + number for number in range(3)),
        *(second + number for number in range(3)),
    ]
    assert max(times for _, times in found) <= 2


def test_serial_program_has_the_same_values_of_inputs() -> None:
    SEEN.clear()
    found = testing.run(sums, [10])
    assert [value for value, _ in found] == [45, 46, 47]


@ciel.task(keep=False)
def misuse(values: list[int]) -> Any:
    """Gives the value instead of the reference."""
    return ciel.once(total, values)  # type: ignore[call-overload]


def test_input_that_is_no_future_is_refused() -> None:
    with pytest.raises(TypeError, match=r"ciel\.once takes a Future as its input, not list"):
        testing.run(lambda: misuse.spawn([1]).result())


def no_arguments() -> int:
    """Takes nothing."""
    return 1


@ciel.task(keep=False)
def mistaken(values: ciel.Future[list[int]]) -> Any:
    """A function that does not take the input."""
    return ciel.once(no_arguments, values)  # type: ignore[arg-type]


def test_function_that_does_not_take_the_input_is_refused() -> None:
    with pytest.raises(TypeError, match="no_arguments cannot be called with the value"):
        testing.run(lambda: mistaken.spawn(numbers.spawn(3)).result())


BLOCKS = """
import ciel

def decode(block):
    with open("decoded", "a") as file:
        file.write(f"{block[0]}\\n")
    return list(block)

@ciel.task
def nearest(block: ciel.Future[bytes], number, round, centre):
    # Each end of a pipe waits until the other one is opened, so each worker has one of the two.
    with open(f"{round}", "rw"[number]):
        pass
    return min(abs(number - centre) for number in ciel.once(decode, block))

def main():
    blocks = [ciel.put(bytes([number]) * 200_000) for number in range(2)]
    centre = 0
    for round in range(8):
        found = [nearest.spawn(block, i, round, centre) for i, block in enumerate(blocks)]
        centre += sum(ciel.gather(found))
    return centre
"""


def test_each_block_of_an_iterative_job_is_decoded_about_once(tmp_path: Path) -> None:
    """Each round had given each block to whichever worker was free, until both had decoded it.

    Both workers are free when a round begins, so each block finds the one that has decoded it.
    """
    for number in range(8):
        os.mkfifo(tmp_path / f"{number}")
    assert jobs.run(tmp_path, BLOCKS, options=("-j2",)).value == 1094
    decoded = (tmp_path / "decoded").read_text("utf-8").split()
    assert sorted(decoded) == ["0", "1"]


def test_engine_hears_of_the_first_and_of_the_last_value_of_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[list[str], list[str]]] = []
    monkeypatch.setattr(_once._process, "tell", lambda *files: told.append(files))
    first, second = _once.Once(object, "/a"), _once.Once(object, "/a")
    first(), second(), first(), value()
    assert told == [(["/a"], [])]
    first.drop()
    first.drop()
    assert told == [(["/a"], [])]
    second.drop()
    assert told == [(["/a"], []), ([], ["/a"])]
