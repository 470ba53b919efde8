"""Record batches of Arrow that tasks yield and read as streams; what comes without `pyarrow`."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ciel
import jobs
import pytest
from ciel._arrow import batches_from
from ciel._call import JOINED, Joiner, gathered

@pytest.fixture
def arrow() -> Any:
    """The module, or the test is skipped."""
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def batch_of(arrow: Any, *numbers: int) -> Any:
    """A batch with one column."""
    return arrow.record_batch({"n": arrow.array(numbers, arrow.int64())})


def numbers_in(data: bytes) -> list[list[int]]:
    """The numbers of each batch of a stream."""
    return [batch["n"].to_pylist() for batch in batches_from(io.BytesIO(data))]


def test_batches_become_one_stream_that_arrow_reads(arrow: Any) -> None:
    pieces = [batch_of(arrow, 1, 2), batch_of(arrow), batch_of(arrow, 3)]
    data = gathered(iter(pieces), JOINED)
    assert arrow.ipc.open_stream(data).read_all()["n"].to_pylist() == [1, 2, 3]
    assert numbers_in(data) == [[1, 2], [], [3]]
    assert numbers_in(data + data) == [[1, 2], [], [3]] * 2
    assert gathered(iter([]), JOINED) == b"" and numbers_in(b"") == []


def test_dictionaries_of_batches_are_in_the_stream(arrow: Any) -> None:
    words = arrow.array(["a", "b", "a"]).dictionary_encode()
    data = gathered(iter([arrow.record_batch({"word": words})] * 2), JOINED)
    found = [batch["word"].to_pylist() for batch in batches_from(io.BytesIO(data))]
    assert found == [["a", "b", "a"]] * 2


def test_batch_beside_bytes_or_of_another_schema_is_refused(arrow: Any) -> None:
    joiner = Joiner()
    joiner.pieces_of(b"bytes")
    with pytest.raises(TypeError, match="joined generator yields bytes, not RecordBatch"):
        joiner.pieces_of(batch_of(arrow, 1))
    joiner = Joiner()
    joiner.pieces_of(batch_of(arrow, 1))
    with pytest.raises(TypeError, match="after a record batch come only others, not bytes"):
        joiner.pieces_of(b"bytes")
    with pytest.raises(ValueError, match="[Ss]chema"):
        joiner.pieces_of(arrow.record_batch({"other": ["text"]}))


TASKS = """
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import ciel
import pyarrow as pa

COUNT = "import sys, pyarrow as pa; print(pa.ipc.open_stream(sys.stdin.buffer).read_all().num_rows)"


@ciel.task(joined=True)
def batches(count: int, rows: int, pipe: str = "") -> Iterator[pa.RecordBatch]:
    for n in range(count):
        yield pa.record_batch({"n": list(range(n * rows, (n + 1) * rows))})
        if pipe and n == 0:
            Path(pipe).read_text()


@ciel.task
def total(given: ciel.Reading[bytes], pipe: str = "") -> int:
    found = 0
    for batch in given.batches():
        found += sum(batch["n"].to_pylist())
        if pipe and found == 3:
            Path(pipe).write_text("read")
    return found
"""

MEETING = """
def main() -> None:
    os.mkfifo("pipe")
    print(total.spawn(batches.spawn(2, 3, "pipe").stream(), "pipe").result())
"""

WHOLE = """
def main() -> None:
    made = batches.spawn(4, 20_000)
    print(total.spawn(made.stream()).result())
    for batch in made.stream().batches():
        print(batch.num_rows)
    empty = batches.spawn(0, 1)
    print(total.spawn(empty.stream()).result(), empty.result())
"""

COMMAND = """
    read = ciel.sh("{python} -c {script}", python=sys.executable, script=COUNT, stdin=made)
    print(read.result().decode(), end="")
"""

PRINTED = [str(sum(range(80_000))), *["20000"] * 4, "0 b''"]


def test_batch_is_read_before_the_next_one_is_written(arrow: Any, tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, TASKS + MEETING)
    assert ended.lines == ["15"], ended.talk


@pytest.mark.parametrize("option", ["-j1", "-j2"])
def test_batches_of_a_task_are_read_by_tasks_by_the_program_and_by_commands(
    arrow: Any, tmp_path: Path, option: str
) -> None:
    ended = jobs.run(tmp_path, TASKS + WHOLE + COMMAND, options=(option,))
    assert ended.lines == [*PRINTED, "80000"], ended.talk


def test_serial_program_yields_the_same_batches(arrow: Any, tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, TASKS + WHOLE, options=("--serial",))
    assert ended.lines == PRINTED, ended.talk


def test_batches_without_pyarrow_are_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ciel.CielError, match="record batches need pyarrow") as raised:
        batches_from(io.BytesIO(b""))
    assert "pip install pyarrow" in str(raised.value.hint)


def plain() -> Iterator[int]:
    """No bytes."""
    yield 1


def test_other_values_of_a_joined_generator_are_refused_with_what_may_be() -> None:
    with pytest.raises(TypeError, match="yields bytes or record batches of pyarrow, not int"):
        gathered(plain(), JOINED)
