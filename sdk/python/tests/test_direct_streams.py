"""Direct streams with a Python task at one end or both: nothing is stored, and the rules hold."""

from __future__ import annotations

from pathlib import Path

import jobs
import pytest

PARTS = """
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import ciel

once = ciel.stream(single_consumer=True)


def meet(name: str) -> None:
    # Both ends run: the producer continues when its reader has begun.
    Path(name).read_text()


def begin(name: str) -> None:
    Path(name).write_text("begun")


@ciel.task(joined=True, stream=once)
def lines(count: int, pipe: str) -> Iterator[bytes]:
    meet(pipe)
    for n in range(count):
        yield b"%d\\n" % n
    Path("written").touch()


@ciel.task(stream=once)
def values(count: int, pipe: str) -> Iterator[int]:
    meet(pipe)
    yield from range(count)


@ciel.task
def total(given: Iterable[object], pipe: str) -> int:
    begin(pipe)
    return sum(map(int, given))
"""


def run(folder: Path, main: str, jobs_option: str = "-j2") -> list[str]:
    """Runs a job of these parts; what it has printed."""
    ended = jobs.run(folder, PARTS + main, options=(jobs_option,))
    assert ended.status == 0, ended.talk
    return ended.lines


def way_of(folder: Path, task: str) -> list[str]:
    """How a task has read its streams, as `ciel why` says."""
    told = jobs.command(folder, "why", task)
    assert told.status == 0, told.talk
    return [line.strip() for line in told.printed.decode().splitlines() if "in the mode" in line]


DIRECT = "reads input 0 in the mode direct"

PAIRS = """
def main() -> None:
    for name in ("first", "second", "third", "fourth"):
        os.mkfifo(name)
    made = values.spawn(30_000, "first")
    print(total.options(name="task_task").spawn(made.stream(), "first").result())
    made = lines.spawn(30_000, "second")
    read = ciel.sh("echo begun > second; tail -n 1", stdin=made, name="task_command")
    print(read.result().decode(), end="")
    made = ciel.sh("read line < third; seq 30000", stdout=once)
    print(total.options(name="command_task").spawn(made.stream(), "third").result())
    made = lines.spawn(30_000, "fourth")
    print(total.options(name="lines_task").spawn(made.stream(), "fourth").result())
"""


def test_stream_between_a_task_and_a_task_or_command_is_direct(tmp_path: Path) -> None:
    whole = sum(range(30_000))
    printed = run(tmp_path, PAIRS)
    assert printed == [str(whole), "29999", str(whole + 30_000), str(whole)]
    for task in ("task_task", "task_command", "command_task", "lines_task"):
        assert way_of(tmp_path, task) == [DIRECT], task


def test_program_of_direct_streams_is_the_same_on_one_slot(tmp_path: Path) -> None:
    main = """
def main() -> None:
    os.mkfifo("pipe")
    made = ciel.task(stream=once)(numbers).spawn(100_000)
    print(sum_of.spawn(made.stream()).result())


def numbers(count: int) -> Iterator[int]:
    yield from range(count)


@ciel.task
def sum_of(given: Iterable[int]) -> int:
    return sum(given)
"""
    assert run(tmp_path, main, "-j1") == [str(sum(range(100_000)))]


HELD = """
@ciel.task
def looks(given: ciel.Reading[bytes], pipe: str) -> bool:
    begin(pipe)
    with given.open() as file:
        found = file.read(1)
        was_whole = Path("written").exists()
        return found == b"0" and not was_whole and len(file.read()) > 1_000_000


def main() -> None:
    os.mkfifo("pipe")
    print(looks.spawn(lines.spawn(500_000, "pipe").stream(), "pipe").result())
"""


def test_direct_producer_is_held_while_its_reader_does_not_read(tmp_path: Path) -> None:
    assert run(tmp_path, HELD) == ["True"]


WAITS = """
@ciel.task
def waits(given: Iterable[int], pipe: str) -> int:
    if not Path("again").exists():
        Path("again").touch()
        begin(pipe)
    found = 0
    for value in given:
        if value in (0, 50_000):
            found += int(ciel.sh(f"echo {2 * value}").result())
    return found


@ciel.task(stream=once)
def waiting(count: int, pipe: str) -> Iterator[int]:
    if not Path("met").exists():
        meet(pipe)
        Path("met").touch()
    for n in range(count):
        yield int(ciel.sh(f"echo {2 * n}").result()) if n % 5000 == 0 else 2 * n


@ciel.task(stream=once)
def plain(count: int, pipe: str) -> Iterator[int]:
    if not Path("met").exists():
        meet(pipe)
        Path("met").touch()
    yield from range(count)


def main(which: str) -> None:
    os.mkfifo("pipe")
    if which == "reader":
        made = plain.spawn(100_000, "pipe")
        print(waits.options(name="end").spawn(made.stream(), "pipe").result())
    else:
        made = waiting.spawn(10_000, "pipe")
        print(ends.options(name="end").spawn(made.stream(), "pipe").result())


@ciel.task
def ends(given: Iterable[int], pipe: str) -> int:
    if not Path("again").exists():
        Path("again").touch()
        begin(pipe)
    return sum(given)
"""


@pytest.mark.parametrize("which", ["reader", "producer"])
def test_end_of_a_direct_stream_that_waits_for_tasks_begins_again_with_a_stored_one(
    tmp_path: Path, which: str
) -> None:
    ended = jobs.run(tmp_path, PARTS + WAITS, which)
    expected = 2 * 50_000 if which == "reader" else 2 * sum(range(10_000))
    assert ended.lines == [str(expected)], ended.talk
    assert DIRECT not in way_of(tmp_path, "end")


DIES = """
@ciel.task(joined=True, stream=once, retries=3)
def dies(pipe: str) -> Iterator[bytes]:
    first = not Path("died").exists()
    if first:
        meet(pipe)
    for n in range(100_000):
        if first and n == 60_000:
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield b"%d\\n" % n


@ciel.task(retries=3)
def reads(given: Iterable[bytes], pipe: str, mark: str) -> int:
    if not Path("begun").exists():
        Path("begun").touch()
        begin(pipe)
    found = 0
    for line in given:
        found += int(line)
        if mark == "reader" and found > 1_000_000 and not Path("read").exists():
            Path("read").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return found


@ciel.task(joined=True, stream=once)
def whole(pipe: str) -> Iterator[bytes]:
    if not Path("whole").exists():
        meet(pipe)
        Path("whole").touch()
    for n in range(100_000):
        yield b"%d\\n" % n


def main(which: str) -> None:
    os.mkfifo("pipe")
    made = (whole if which == "reader" else dies).spawn("pipe")
    print(reads.spawn(made.stream(), "pipe", which).result())
"""


@pytest.mark.parametrize("which", ["reader", "producer"])
def test_direct_stream_whose_end_dies_is_made_again(tmp_path: Path, which: str) -> None:
    ended = jobs.run(tmp_path, PARTS + DIES, which)
    assert ended.lines == [str(sum(range(100_000)))], ended.talk



# Producers are lazy: they begin when their reader is spawned, however long that takes.
AT_ONCE = """
@ciel.task(joined=True, stream=once, lazy=True)
def much(length: int) -> Iterator[bytes]:
    for _ in range(length >> 16):
        yield bytes(1 << 16)


@ciel.task
def length_of(given: ciel.Reading[bytes]) -> int:
    with given.open() as file:
        return len(file.read())


LENGTH = 3 << 20


def main(rounds: int) -> None:
    def by_command() -> ciel.Future[bytes]:
        return ciel.sh(f"head -c {LENGTH} /dev/zero", stdout=once, lazy=True)

    def to_task(made: ciel.Future[bytes], name: str) -> ciel.Future[int]:
        return length_of.options(name=name).spawn(made.stream())

    for n in range(rounds):
        for kind, made, read in [
            ("task_task", lambda: much.spawn(LENGTH), to_task),
            ("task_command", lambda: much.spawn(LENGTH), to_command),
            ("command_task", by_command, to_task),
            ("command_command", by_command, to_command),
        ]:
            assert int(read(made(), f"{kind}{n}").result()) == LENGTH
    print("read")


def to_command(made: ciel.Future[bytes], name: str) -> ciel.Future[bytes]:
    return ciel.sh("wc -c", stdin=made, name=name)
"""


@pytest.mark.parametrize("run_number", range(3))
def test_reader_with_a_free_slot_has_its_stream_directly_each_time(
    tmp_path: Path, run_number: int
) -> None:
    """A reader whose worker had to be started came when its producer had waited 50 ms for it.

    The stream was stored then, in the first round of each run, although its slot was free.
    """
    assert run(tmp_path, AT_ONCE.replace("rounds: int", "rounds: int = 4")) == ["read"]
    kinds = ("task_task", "task_command", "command_task", "command_command")
    ways = {f"{kind}{n}": way_of(tmp_path, f"{kind}{n}") for kind in kinds for n in range(4)}
    assert ways == {name: [DIRECT] for name in ways}, run_number


def test_reader_without_a_slot_does_not_hold_its_producer(tmp_path: Path) -> None:
    main = AT_ONCE.replace("rounds: int", "rounds: int = 1")
    assert run(tmp_path, main, "-j1") == ["read"]
    for kind in ("task_task", "task_command", "command_task", "command_command"):
        assert DIRECT not in way_of(tmp_path, f"{kind}0"), kind


TWICE = """
@ciel.task(stream=once)
def numbers(count: int) -> Iterator[int]:
    yield from range(count)


@ciel.task
def both(given: Iterable[int], again: Iterable[int]) -> int:
    return sum(given) + sum(again)


def main() -> None:
    made = numbers.spawn(100_000)
    print(both.spawn(made.stream(), made.stream()).result())
    lines = ciel.sh("seq 100000", stdout=once)
    print(int(ciel.sh("cat {a} - | wc -l", a=lines.stream(), stdin=lines, name="ends").result()))
    lines = ciel.sh("seq 1 100000", stdout=once)
    print(int(ciel.sh("cat {a} {b} | wc -l", a=lines.stream(), b=lines.stream()).result()))
    lines = ciel.sh("seq 1 1 100000", stdout=once)
    print(int(ciel.sh("wc -l", stdin=[lines, lines]).result()))
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_reader_that_has_its_stream_twice_reads_it_twice(tmp_path: Path, slots: str) -> None:
    """A task that was passed one `single_consumer` stream in two places waited for ever.

    The bytes went to the first place, so the second one, which reads from the beginning, too, had
    no writer; with one slot the stream was stored before, and the same program ended.
    """
    printed = ["9999900000", "200000", "200000", "200000"]
    assert run(tmp_path, TWICE, slots) == printed
    assert DIRECT not in way_of(tmp_path, "both")
    assert DIRECT not in way_of(tmp_path, "ends")
