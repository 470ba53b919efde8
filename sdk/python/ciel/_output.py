"""`ciel.output`: the output of a task as a file that it writes.

A task that is declared with `writes` has one; others read it while it is written. This module does
not know where the bytes go. Read next: `_worker.py`, `_call.py`; docs/pipelines.md.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, BinaryIO

from ciel._errors import CielError

BUFFER_BYTES = 1 << 16
"""Bytes that are written at once; a flush writes fewer."""

PIPED_BYTES_MAX = 128 << 10
"""Bytes that are written into a pipe by one call, half of what it holds: the reader copies them out
while the writer copies the next ones in. More by one call take up to twice as long."""

_now: ContextVar[BinaryIO | None] = ContextVar("ciel.output", default=None)


class Counted(io.FileIO):
    """A file whose position is what was written: a pipe has none of its own."""

    _written = 0

    def write(self, data: Any) -> int:
        """Writes some of the bytes; returns how many."""
        view = memoryview(data)
        if view.nbytes > PIPED_BYTES_MAX:
            view = view.cast("B")[:PIPED_BYTES_MAX]
        written = super().write(view)
        self._written += written
        return written

    def tell(self) -> int:
        """How many bytes were written."""
        return self._written


def output() -> BinaryIO:
    """The output of the task that runs here, as a binary file.

    For a task that is declared by `@ciel.task(writes=True)`; what it writes is its result. Each
    call gives the same file. It has no places to go back to: it is written from its beginning to
    its end. Raises CielError in any other code.
    """
    file = _now.get()
    if file is None:
        raise CielError(
            "this code has no output to write",
            hint="declare its task by @ciel.task(writes=True), and pass the file to threads",
        )
    return file


@contextmanager
def writing_to(file: BinaryIO) -> Iterator[None]:
    """Makes a file the output of the code inside; closes it at the end.

    Whoever reads has all that was written before a failure, but not before the task is cancelled:
    nobody may take it any more.
    """
    before = _now.set(file)
    try:
        yield
        file.close()
    except Exception:
        with suppress(OSError, ValueError):
            file.flush()
        raise
    finally:
        _now.reset(before)


def check_written(value: Any, name: str) -> None:
    """Raises TypeError if a function that writes its output returns something, too."""
    if value is not None:
        raise TypeError(
            f"{name} returns {type(value).__name__}: its result is what it writes to ciel.output()"
        )


class _Gathered(io.RawIOBase):
    """What is written, in memory: like the output of a task, it has no places to go back to."""

    mode = "wb"

    def __init__(self) -> None:
        """Nothing is written."""
        super().__init__()
        self.data = bytearray()

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Takes all of the bytes."""
        before = len(self.data)
        self.data += data
        return len(self.data) - before

    def tell(self) -> int:
        """How many bytes were written."""
        return len(self.data)


def written(
    name: str, call: Callable[[], Any], failed: Callable[[bytes], object] | None = None
) -> bytes:
    """What a function of that name writes to its output, in memory.

    `failed` is told what an exception leaves of it.
    """
    gathered = _Gathered()
    try:
        with writing_to(io.BufferedWriter(gathered, BUFFER_BYTES)):
            check_written(call(), name)
    except BaseException:
        if failed is not None:
            failed(bytes(gathered.data))
        raise
    return bytes(gathered.data)
