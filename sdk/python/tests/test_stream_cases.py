"""Awkward consumers in every mode: late ones, several, one that reads again, and large streams.

Pipelines here are longer than the slots. Further cases of every mode are in `test_stream_modes.py`,
those of broken connections in `test_tcp_streams.py`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ciel
import pytest
from ciel._task_streams import MODES
from sessions import with_slots

session = with_slots(3)

few_slots = with_slots(1, 2, name="few_slots")

LINE = b"0123456789abcde\n"

LARGE = int(os.environ.get("CIEL_STREAM_BYTES", str(16 << 20)))
"""Bytes of large streams; `make soak` sets 5 GB."""


def made_by(length: int) -> str:
    """A command that makes so many bytes."""
    return f"yes 0123456789abcde | head -c {length}"


def digest_of(length: int) -> bytes:
    """The line that `md5sum` writes of them."""
    found, block = hashlib.md5(), LINE * 65_536
    for begin in range(0, length, len(block)):
        found.update(block[: length - begin])
    return f"{found.hexdigest()}  -\n".encode()


def whole_of(length: int) -> bytes:
    """The same bytes, in memory."""
    return (LINE * (length // len(LINE) + 1))[:length]


@ciel.task
def digests(given: ciel.Reading[bytes], again: ciel.Reading[bytes]) -> list[bytes]:
    """Reads twice, from the beginning each time."""
    found = []
    for reading in (given, again):
        with reading.open() as file:
            found.append(f"{hashlib.md5(file.read()).hexdigest()}  -\n".encode())
    return found


@pytest.mark.parametrize("length", [1 << 16, 3 << 20])
@pytest.mark.parametrize("mode", MODES)
def test_consumer_that_comes_late_has_every_byte_in_any_mode(
    session: ciel.Session, mode: str, length: int, tmp_path: Path
) -> None:
    """It starts when all is written, and before the producer has ended where that is possible."""
    for name in ("written", "rest"):
        os.mkfifo(tmp_path / name)
    script = f"{{{{ {made_by(length)}; echo x > {tmp_path}/written; read x < {tmp_path}/rest; }}}}"
    made = session.sh(script, stdout=ciel.stream(mode=mode))
    written = session.sh(f"read x < {tmp_path}/written")
    begins = "" if mode == "no_stream" else f"echo x > {tmp_path}/rest; "
    read = session.sh(f": {{written}}; {begins}md5sum", stdin=made, written=written)
    if mode == "no_stream":
        session.sh(f"echo x > {tmp_path}/rest").result()
    assert read.result() == digest_of(length)


@pytest.mark.parametrize("mode", MODES)
def test_several_consumers_of_one_mode_have_every_byte(session: ciel.Session, mode: str) -> None:
    length = 1_000_003
    made = session.sh(made_by(length), stdout=ciel.stream)
    readers = [session.sh("md5sum", stdin=made.stream(mode=mode)) for _ in range(4)]
    tasks = [session.submit(digests, made.stream(mode=mode), made.stream()) for _ in range(2)]
    assert [reader.result() for reader in readers] == [digest_of(length)] * 4
    assert [task.result() for task in tasks] == [[digest_of(length)] * 2] * 2


@pytest.mark.parametrize("mode", MODES)
def test_consumer_that_reads_again_has_every_byte_again_in_any_mode(
    session: ciel.Session, mode: str
) -> None:
    """Twice in one task, once more in a later one, and in the program."""
    length = 700_001
    made = session.sh(made_by(length), stdout=ciel.stream)
    wish: dict[str, Any] = {"mode": mode}
    twice = session.submit(digests, made.stream(**wish), made.stream(**wish)).result()
    later = session.sh("md5sum", stdin=made.stream(**wish)).result()
    assert [*twice, later] == [digest_of(length)] * 3
    assert made.result() == whole_of(length)


@pytest.mark.parametrize("mode", MODES)
def test_program_that_reads_has_every_byte_in_any_mode(session: ciel.Session, mode: str) -> None:
    for length in (0, 1, 3 << 20):
        made = session.sh(made_by(length), stdout=ciel.stream)
        with made.stream(mode=mode).open() as file:
            assert file.read() == whole_of(length)


def passed_on(given: ciel.Reading[bytes]) -> Iterator[bytes]:
    """What it reads, in small blocks of lines."""
    block = []
    for line in given:
        block.append(line)
        if len(block) == 99:
            yield b"".join(block)
            block.clear()
    yield b"".join(block)


PASSED_ON = {
    mode: ciel.task(joined=True, stream=ciel.stream(mode=mode))(passed_on) for mode in MODES
}


@pytest.mark.parametrize("length", [0, 1, 1_000_001])
@pytest.mark.parametrize("mode", MODES)
def test_pipeline_longer_than_the_slots_gives_every_byte_in_any_mode(
    few_slots: ciel.Session, mode: str, length: int
) -> None:
    """Each stage is read by one task only, so direct ones fall back where a slot is missing."""
    made = few_slots.sh(made_by(length), stdout=ciel.stream(mode=mode))
    for stage in range(6):
        if stage % 3 == 1:
            made = few_slots.submit(PASSED_ON[mode], made.stream())
        else:
            made = few_slots.sh("cat", stdin=made, stdout=ciel.stream(mode=mode))
    assert few_slots.sh("md5sum", stdin=made).result() == digest_of(length)


def values(count: int) -> Iterator[int | bytes]:
    """Numbers, and long values, which ends of a direct stream share."""
    for number in range(count):
        yield number if number % 3 else bytes([number % 256]) * 100_000


VALUES = {mode: ciel.task(stream=ciel.stream(mode=mode))(values) for mode in MODES}


@ciel.task
def digest_of_values(given: Iterable[int | bytes]) -> str:
    """Of their representations, in order."""
    found = hashlib.md5()
    for value in given:
        found.update(repr(value).encode())
    return found.hexdigest()


@pytest.mark.parametrize("count", [0, 1, 100])
@pytest.mark.parametrize("mode", MODES)
def test_reader_has_every_value_in_any_mode(
    few_slots: ciel.Session, mode: str, count: int
) -> None:
    made = few_slots.submit(VALUES[mode], count)
    found = few_slots.submit(digest_of_values, made.stream()).result()
    assert found == digest_of_values(values(count))


def lines_of(length: int) -> Iterator[bytes]:
    """The same bytes, in pieces of a mebibyte."""
    piece = LINE * 65_536
    for begin in range(0, length, len(piece)):
        yield piece[: length - begin]


LINES_OF = {
    mode: ciel.task(joined=True, stream=ciel.stream(mode=mode))(lines_of) for mode in MODES
}


@ciel.task
def digest_in_pieces(given: ciel.Reading[bytes]) -> bytes:
    """Reads once, and keeps nothing of it."""
    found = hashlib.md5()
    with given.open() as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return f"{found.hexdigest()}  -\n".encode()


@pytest.mark.parametrize("mode", MODES)
def test_large_stream_arrives_whole_in_any_mode(session: ciel.Session, mode: str) -> None:
    made = session.sh(made_by(LARGE), stdout=ciel.stream(mode=mode))
    assert session.sh("md5sum", stdin=made).result() == digest_of(LARGE)


@pytest.mark.parametrize("mode", MODES)
def test_large_stream_of_tasks_arrives_whole_in_any_mode(session: ciel.Session, mode: str) -> None:
    made = session.submit(LINES_OF[mode], LARGE)
    assert session.submit(digest_in_pieces, made.stream()).result() == digest_of(LARGE)
