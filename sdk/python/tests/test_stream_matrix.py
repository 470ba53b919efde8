"""Every kind of producer with every kind of reader, in the awkward cases of a stream.

A producer makes lines, in a command or in a generator; a reader gives the digest of what it read.
What each case gives is the same on any number of slots. Those whose pieces are values are in
`test_streams.py`.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ciel
import jobs
import pytest
import sessions

Bytes = ciel.Future[bytes]

FIRST = "0123456789abcde\n"
"""A line of sixteen bytes."""

LENGTHS = [0, 1, 16, 3 << 20]


@ciel.task(joined=True)
def pieces(length: int) -> Iterator[bytes]:
    """Yields so many bytes in bursts of several sizes."""
    text = FIRST.encode() * 4096
    made, size = 0, 1
    while made < length:
        piece = text[: min(size, length - made)]
        yield piece
        made += len(piece)
        size = size * 3 % 65_521 + 1


@ciel.task
def digest_by_lines(lines: ciel.Reading[bytes]) -> str:
    """Reads lines."""
    found = hashlib.md5()
    for line in lines:
        found.update(line)
    return found.hexdigest()


@ciel.task
def digest_of_file(lines: ciel.Reading[bytes]) -> str:
    """Reads a file."""
    with lines.open() as file:
        return hashlib.md5(file.read()).hexdigest()


@ciel.task
def first_bytes(lines: ciel.Reading[bytes]) -> bytes:
    """Leaves early."""
    with lines.open() as file:
        return file.read(16)


def by_generator(session: ciel.Session, length: int) -> Bytes:
    """Bytes of a Python task."""
    return session.submit(pieces, length)


def by_command(session: ciel.Session, length: int) -> Bytes:
    """The same bytes of a command, also in bursts."""
    script = "yes 0123456789abcde | head -c {length} | dd bs=1021 status=none"
    return session.sh(script, length=length, stdout=ciel.stream)


def to_lines(session: ciel.Session, made: Bytes) -> ciel.Future[str]:
    """Reads in a Python task, by lines."""
    return session.submit(digest_by_lines, made.stream())


def to_file(session: ciel.Session, made: Bytes) -> ciel.Future[str]:
    """Reads in a Python task, as a file."""
    return session.submit(digest_of_file, made.stream())


def to_command(session: ciel.Session, made: Bytes) -> Bytes:
    """Reads in a command."""
    return session.sh("md5sum | cut -c 1-32 | tr -d '\\n'", stdin=made)


def to_slow_command(session: ciel.Session, made: Bytes) -> Bytes:
    """Reads in a command, in small blocks."""
    return session.sh("dd bs=509 status=none | md5sum | cut -c 1-32 | tr -d '\\n'", stdin=made)


Producer = Callable[[ciel.Session, int], Bytes]
Reader = Callable[[ciel.Session, Bytes], ciel.Future[Any]]
PRODUCERS = [by_generator, by_command]
READERS: list[Reader] = [to_lines, to_file, to_command, to_slow_command]


session = sessions.with_slots(1, 3)


def bytes_of(length: int) -> bytes:
    """What each producer makes, whole."""
    text = FIRST.encode() * (length // 16 + 1)
    return text[:length]


def expected(producer: Producer, length: int) -> str:
    """The digest of what a producer makes."""
    if producer is by_command:
        return hashlib.md5(bytes_of(length)).hexdigest()
    return hashlib.md5(b"".join(pieces.function(length))).hexdigest()


def text_of(found: str | bytes) -> str:
    """A digest as text."""
    return found.decode() if isinstance(found, bytes) else found


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_reader_has_all_bytes(
    session: ciel.Session, producer: Producer, reader: Reader, length: int
) -> None:
    found = reader(session, producer(session, length)).result()
    assert text_of(found) == expected(producer, length)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_several_readers_and_the_program_have_all_bytes(
    session: ciel.Session, producer: Producer
) -> None:
    made = producer(session, 1 << 20)
    found = [reader(session, made) for reader in READERS]
    assert {text_of(one.result()) for one in found} == {expected(producer, 1 << 20)}
    assert len(made.result()) == 1 << 20


@pytest.mark.parametrize("producer", PRODUCERS)
def test_reader_that_comes_late_or_reads_again_has_all_bytes(
    session: ciel.Session, producer: Producer
) -> None:
    made = producer(session, 100_000)
    with made.open() as file:
        assert hashlib.md5(file.read()).hexdigest() == expected(producer, 100_000)
    for reader in READERS:
        assert text_of(reader(session, made).result()) == expected(producer, 100_000)
    again = [hashlib.md5(b"".join(made.stream())).hexdigest() for _ in range(2)]
    assert again == [expected(producer, 100_000)] * 2


@pytest.mark.parametrize("producer", PRODUCERS)
def test_readers_that_leave_early_do_not_fail_the_producer(
    session: ciel.Session, producer: Producer
) -> None:
    made = producer(session, 3 << 20)
    left = session.submit(first_bytes, made.stream()), session.sh("head -c 16", stdin=made)
    assert [one.result() for one in left] == [made.result()[:16]] * 2
    assert len(made.result()) == 3 << 20


@ciel.task(joined=True, retries=3)
def dies_once(mark: str) -> Iterator[bytes]:
    """Its worker is killed in the middle of its first attempt."""
    yield FIRST.encode() * 5000
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield b"end\n"


DIES_ONCE = "yes | head -n 40000; test -e {mark} || { touch {mark}; kill -9 $$; }; echo end"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("producer", ["generator", "command"])
def test_producer_that_dies_is_no_end_of_its_stream(
    session: ciel.Session, reader: Reader, producer: str, tmp_path: Path
) -> None:
    mark = str(tmp_path / "mark")
    if producer == "generator":
        made, whole = session.submit(dies_once, mark), FIRST.encode() * 5000 + b"end\n"
    else:
        script = DIES_ONCE.replace("{ ", "{{ ").replace("; }", "; }}")
        made = session.sh(script, mark=mark, stdout=ciel.stream, retries=3)
        whole = b"y\n" * 40_000 + b"end\n"
    assert text_of(reader(session, made).result()) == hashlib.md5(whole).hexdigest()


@ciel.task(retries=3)
def reader_that_dies_once(lines: ciel.Reading[bytes], mark: str) -> int:
    """Its worker is killed when it has read something."""
    count = 0
    for _ in lines:
        count += 1
        if not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return count


@pytest.mark.parametrize("producer", PRODUCERS)
def test_reader_that_dies_has_the_whole_stream_again(
    session: ciel.Session, producer: Producer, tmp_path: Path
) -> None:
    made = producer(session, 1 << 20)
    found = session.submit(reader_that_dies_once, made.stream(), str(tmp_path / "mark"))
    assert found.result() == len(made.result().splitlines())


RESUMED = """
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import ciel


@ciel.task
def numbers(count: int) -> Iterator[int]:
    for n in range(count):
        if n == count // 2 and not Path("mark").exists():
            Path("mark").touch()
            os.kill(int(Path("engine").read_text()), signal.SIGKILL)
        yield n


@ciel.task
def total(values: Iterable[int]) -> int:
    found = 0
    for value in values:
        found += value
    print("read all")
    return found


def main() -> int:
    print("begun")
    return total.spawn(numbers.spawn(20_000).stream()).result()
"""


def test_run_that_was_killed_within_a_stream_is_resumed(tmp_path: Path) -> None:
    job = jobs.write(tmp_path, RESUMED)
    process = jobs.start(job, beneath=jobs.noting("engine"))
    assert jobs.end_of(process).status == -signal.SIGKILL
    ended = jobs.end_of(jobs.start(job))
    assert ended.lines == ["begun", "read all", str(sum(range(20_000)))], ended.talk
