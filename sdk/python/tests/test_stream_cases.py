"""Awkward consumers in every mode: late ones, several, one that reads again, and large streams.

Further cases of every mode are in `test_stream_modes.py`, those of broken connections in
`test_tcp_streams.py`.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import ciel
import pytest
from ciel._task_streams import MODES
from sessions import with_slots

session = with_slots(3)

LINE = b"0123456789abcde\n"

LARGE = int(os.environ.get("CIEL_STREAM_BYTES", "0"))
"""Bytes of large streams; 5 GB, for example. Without it they are left out."""


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
    assert [reader.result() for reader in readers] == [digest_of(length)] * 4


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


@pytest.mark.skipif(not LARGE, reason="CIEL_STREAM_BYTES says how large a large stream is")
@pytest.mark.parametrize("mode", MODES)
def test_large_stream_arrives_whole_in_any_mode(session: ciel.Session, mode: str) -> None:
    made = session.sh(made_by(LARGE), stdout=ciel.stream(mode=mode))
    assert session.sh("md5sum", stdin=made).result() == digest_of(LARGE)
