"""Record batches of Arrow between tasks: a generator that is joined may yield them.

Their bytes are the IPC stream of Arrow, which libraries of other languages read, too. `pyarrow` is
imported only where a batch is met or asked for. This module knows no tasks. Read next:
`_reading.py`, for who reads.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Protocol, cast

from ciel._errors import CielError


class Batch(Protocol):
    """What is used here of `pyarrow.RecordBatch`."""

    @property
    def num_rows(self) -> int:
        """Its rows."""
        ...


def is_batch(value: Any) -> bool:
    """Whether a value is a record batch; `pyarrow` is not imported for that."""
    kind = type(value)
    return kind.__name__ == "RecordBatch" and kind.__module__.partition(".")[0] == "pyarrow"


class BatchWriter:
    """Makes one IPC stream of batches that come one after the other."""

    def __init__(self, first: Any) -> None:
        """For batches with the schema of this one, which is not written."""
        self._pieces: list[Any] = []
        self._writer = _pyarrow().ipc.new_stream(self, first.schema)

    def write(self, data: Any) -> int:
        """Takes bytes; called by the writer of Arrow."""
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Called by the writer of Arrow."""

    @property
    def closed(self) -> bool:
        """Asked by the writer of Arrow."""
        return False

    def close(self) -> None:
        """Called by the writer of Arrow."""

    def pieces_of(self, batch: Any) -> list[Any]:
        """The bytes of the next batch, with what comes before it.

        Raises TypeError for anything else, ValueError for a batch of another schema.
        """
        if not is_batch(batch):
            raise TypeError(f"after a record batch come only others, not {type(batch).__name__}")
        self._writer.write_batch(batch)
        return self._taken()

    def end(self) -> list[Any]:
        """The bytes behind the last batch."""
        self._writer.close()
        return self._taken()

    def _taken(self) -> list[Any]:
        pieces, self._pieces = self._pieces, []
        return pieces


def batches_from(file: BinaryIO) -> Iterator[Any]:
    """The batches of a file, each as soon as it is there; closes the file.

    The file may be empty, or have several streams one after the other. The memory of one on the
    disk is not copied. Raises CielError without `pyarrow`, and what that raises for other bytes.
    """
    arrow = _pyarrow()
    return _batches(arrow, file)


def _batches(arrow: Any, file: BinaryIO) -> Iterator[Any]:
    with file:
        source, has_more = _opened(arrow, file)
        while has_more():
            yield from arrow.ipc.open_stream(source)


def _opened(arrow: Any, file: BinaryIO) -> tuple[Any, Callable[[], bool]]:
    """What Arrow reads from, and whether there is more."""
    if not file.seekable():
        pipe = cast(io.BufferedReader, file)
        return pipe, lambda: bool(pipe.peek(1))
    size = file.seek(0, io.SEEK_END)
    if isinstance(file, io.BytesIO) or size == 0:
        source = arrow.BufferReader(file.getvalue() if isinstance(file, io.BytesIO) else b"")
    else:
        source = arrow.memory_map(f"/proc/self/fd/{file.fileno()}")
    return source, lambda: source.tell() < size


def _pyarrow() -> Any:
    try:
        importlib.import_module("pyarrow.ipc")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise CielError(
            f"record batches need pyarrow: {error}",
            hint="pip install pyarrow; without it, open() gives the bytes as a file",
        ) from None
