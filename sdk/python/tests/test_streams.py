"""Python tasks that write streams by `yield`, and read those of others while they are written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import ciel
import pytest
import sessions
from ciel import testing
from ciel._engine_strand import JOINED_BYTES_MAX, write_pieces
from ciel._freeze import frame_of
from conditions import DEADLINE_S


@ciel.task
def squares(count: int) -> Iterator[int]:
    """Yields values."""
    for n in range(count):
        yield n * n


@ciel.task
def mixed() -> Iterator[object]:
    """Yields values of several types."""
    yield b"\x00bytes"
    yield "text"
    yield None
    yield {"a": [1, 2]}


@ciel.task(joined=True)
def lines(count: int) -> Iterator[bytes]:
    """Yields bytes, not cut at the ends of lines."""
    for n in range(count):
        yield f"{n}".encode()
        yield b"\n"


@ciel.task
def total(values: Iterable[int]) -> int:
    """Reads values."""
    return sum(values)


@ciel.task
def listed(values: Iterable[object]) -> list[object]:
    """Reads values of any type."""
    return list(values)


@ciel.task
def doubled(values: Iterable[int]) -> Iterator[int]:
    """Reads values and yields others."""
    for value in values:
        yield 2 * value


@ciel.task
def length(stream: ciel.Reading[bytes]) -> int:
    """Reads bytes as a file."""
    with stream.open() as file:
        return sum(len(block) for block in iter(lambda: file.read(1000), b""))


session = sessions.with_slots(1, 2, 4)


@pytest.mark.parametrize("count", [0, 1, 5, 20_000])
def test_reader_has_the_values_of_a_generator(session: ciel.Session, count: int) -> None:
    made = session.submit(squares, count)
    assert session.submit(total, made.stream()).result() == sum(n * n for n in range(count))
    assert list(made.stream()) == [n * n for n in range(count)]
    assert list(made.result()) == [n * n for n in range(count)]


def test_values_come_back_as_they_were_yielded(session: ciel.Session) -> None:
    expected = [b"\x00bytes", "text", None, {"a": [1, 2]}]
    assert session.submit(listed, session.submit(mixed).stream()).result() == expected
    assert session.submit(listed, session.submit(mixed).later).result() == expected


def test_pipeline_of_generators_longer_than_the_slots_ends(session: ciel.Session) -> None:
    made = session.submit(squares, 1000)
    for _ in range(6):
        made = session.submit(doubled, made.stream())
    assert session.submit(total, made.stream()).result() == 64 * sum(n * n for n in range(1000))


def test_chain_of_a_hundred_generators_ends(session: ciel.Session) -> None:
    made = session.submit(squares, 10)
    for _ in range(99):
        made = session.submit(doubled, made.stream())
    found = session.submit(listed, made.stream()).result()
    assert found == [n * n * 2**99 for n in range(10)]


def test_command_reads_the_bytes_of_a_generator(session: ciel.Session) -> None:
    made = session.submit(lines, 10_000)
    assert session.sh("wc -l", stdin=made).result() == b"10000\n"
    assert session.sh("tail -n 1", stdin=made).result() == b"9999\n"
    assert made.result() == b"".join(b"%d\n" % n for n in range(10_000))


def test_task_reads_the_lines_of_a_command(session: ciel.Session) -> None:
    made = session.sh("seq 1000", stdout=ciel.stream)
    assert session.submit(listed, made.stream()).result() == [b"%d\n" % n for n in range(1, 1001)]
    assert session.submit(length, made.stream()).result() == 3893
    with made.open() as file:
        assert file.read(4) == b"1\n2\n"


def test_small_value_is_written_by_one_call() -> None:
    """Each took two, the length and the value, and woke up its reader twice.

    A pipe of packets gives what one call has written by one read.
    """
    reading, writing = os.pipe2(os.O_DIRECT)
    with open(reading, "rb", buffering=0) as reader, open(writing, "wb", buffering=0) as writer:
        small, large = frame_of(7), [b"head", bytes(JOINED_BYTES_MAX)]
        for pieces in (small, large):
            write_pieces(writer, pieces)
        assert reader.read(100) == b"".join(small)
        assert reader.read(100) == b"head"


def test_results_that_are_no_streams_can_be_iterated(session: ciel.Session) -> None:
    assert list(session.sh("seq 3").stream()) == [b"1\n", b"2\n", b"3\n"]
    assert session.submit(listed, session.submit(listed, [1, 2, 3]).stream()).result() == [1, 2, 3]


def test_reading_is_iterated_once_and_the_next_one_has_everything(session: ciel.Session) -> None:
    """'A reading is iterated once; each call of `stream()` returns a new one, from the
    beginning.'"""
    made = session.submit(squares, 3)
    reading = made.stream()
    assert next(reading) == 0
    assert list(made.stream()) == [0, 1, 4]
    assert list(reading) == [1, 4]
    assert list(reading) == []


def test_plain_call_and_serial_program_give_the_same() -> None:
    def main() -> tuple[object, ...]:
        made = squares.spawn(4)
        seen = total.spawn(made.stream()).result(), list(made.stream()), list(made.result())
        return (*seen, lines.spawn(2).result(), length.spawn(lines.spawn(2).stream()).result())

    assert testing.run(main) == (14, [0, 1, 4, 9], [0, 1, 4, 9], b"0\n1\n", 4)
    assert total(squares(4)) == 14
    assert lines(2) == b"0\n1\n"


@ciel.task
def fails_late(count: int) -> Iterator[int]:
    """Yields and fails."""
    yield from range(count)
    raise ValueError("no more")


@pytest.mark.parametrize("count", [0, 3, 50_000])
def test_failure_of_a_generator_is_that_of_its_reader(session: ciel.Session, count: int) -> None:
    with pytest.raises(ValueError, match="no more"):
        session.submit(total, session.submit(fails_late, count).stream()).result()
    with pytest.raises(ValueError, match="no more"):
        list(session.submit(fails_late, count).stream())


@ciel.task(retries=2)
def fails_once(mark: str) -> Iterator[int]:
    """Fails after some values at its first attempt."""
    yield from range(1000)
    if not Path(mark).exists():
        Path(mark).touch()
        raise OSError("once")
    yield 1


def test_retried_generator_gives_its_reader_whole_output(
    session: ciel.Session, tmp_path: Path
) -> None:
    made = session.submit(fails_once, str(tmp_path / "mark"))
    assert session.submit(total, made.stream()).result() == 499_501


@ciel.task
def first_of(values: Iterable[int]) -> int:
    """Leaves early."""
    for value in values:
        return value
    return -1


def test_reader_that_leaves_early_does_not_fail_its_generator(session: ciel.Session) -> None:
    made = session.submit(squares, 200_000)
    assert session.submit(first_of, made.stream()).result() == 0
    assert sum(1 for _ in made.stream()) == 200_000


@ciel.task
def waiting(count: int) -> Iterator[int]:
    """Waits for tasks between its values."""
    for n in range(count):
        yield total.spawn([n, n]).result()


def test_generator_that_waits_is_read_whole_by_tasks_and_commands(session: ciel.Session) -> None:
    made = [session.submit(waiting, 5) for _ in range(6)]
    assert [session.submit(total, one.stream()).result() for one in made] == [20] * 6


@ciel.task
def prints(values: Iterable[int]) -> int:
    """Prints what it reads, and waits for others meanwhile."""
    found = 0
    for value in values:
        print("read", value)
        found += total.spawn([value]).result()
    return found


def test_reader_may_print_spawn_and_wait(session: ciel.Session) -> None:
    assert session.submit(prints, session.submit(squares, 5).stream()).result() == 30


def test_future_in_a_yielded_value_is_refused(session: ciel.Session) -> None:
    with pytest.raises(ciel.NotSerializable, match="yielded value holds a future"):
        list(session.submit(yields_future).stream())


@ciel.task
def yields_future() -> Iterator[object]:
    """Yields what cannot be in a stream."""
    yield [total.spawn([1])]


def test_wrong_declarations_are_refused() -> None:
    def plain() -> int:
        return 1

    def pieces() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="joined, but does not yield"):
        ciel.task(joined=True)(plain)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="yields, so it has one output"):
        ciel.task(outputs=2)(pieces)  # type: ignore[arg-type]


def test_joined_generator_yields_bytes_only(session: ciel.Session) -> None:
    with pytest.raises(TypeError, match="joined generator yields bytes or record batches"):
        session.submit(yields_numbers).result()


@ciel.task(joined=True)
def yields_numbers() -> Iterator[bytes]:
    """Yields what cannot be joined."""
    yield 3  # type: ignore[misc]


def test_stream_cannot_be_a_result_or_be_passed_on_half_read(session: ciel.Session) -> None:
    reading = session.submit(squares, 3).stream()
    assert next(reading) == 0
    with pytest.raises(ciel.NotSerializable, match="being read cannot be passed on"):
        session.submit(total, reading)
    with pytest.raises(ciel.NotSerializable, match="cannot be a result"):
        session.put(session.submit(squares, 3).stream())
    with pytest.raises(ciel.CielError, match=r"open\(\) is for bytes"):
        session.submit(squares, 3).stream().open()
    with pytest.raises(ciel.CielError, match=r"batches\(\) is for the bytes"):
        session.submit(squares, 3).stream().batches()


@ciel.task(timeout=DEADLINE_S)
def until_seen(pipe: str) -> Iterator[str]:
    """Ends when somebody has read its first value."""
    yield "first"
    Path(pipe).read_text()
    yield "last"


@ciel.task(joined=True, timeout=DEADLINE_S)
def lines_until_seen(pipe: str) -> Iterator[bytes]:
    """The same in lines."""
    yield b"first\n"
    Path(pipe).read_text()
    yield b"last\n"


@ciel.task(timeout=DEADLINE_S)
def sees(values: Iterable[object], pipe: str) -> list[object]:
    """Tells by a named pipe that it has read its first value."""
    found: list[object] = []
    for value in values:
        if not found:
            Path(pipe).write_text("seen")
        found.append(value)
    return found


def test_reader_has_the_first_piece_before_its_producer_has_ended(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with ciel.Session(jobs=2, state=tmp_path_factory.mktemp("state")) as session:
        pipes = [str(tmp_path / name) for name in ("values", "lines", "command", "shell")]
        for pipe in pipes:
            os.mkfifo(pipe)
        made = session.submit(until_seen, pipes[0])
        assert session.submit(sees, made.stream(), pipes[0]).result() == ["first", "last"]
        joined = session.submit(lines_until_seen, pipes[1])
        assert session.submit(sees, joined.stream(), pipes[1]).result() == [b"first\n", b"last\n"]
        command = session.sh("echo first; cat $PIPE", env={"PIPE": pipes[2]}, stdout=ciel.stream)
        assert session.submit(sees, command.stream(), pipes[2]).result() == [b"first\n", b"seen"]
        joined = session.submit(lines_until_seen, pipes[3])
        script = "read line; echo seen > $PIPE; cat"
        assert session.sh(script, stdin=joined, env={"PIPE": pipes[3]}).result() == b"last\n"
