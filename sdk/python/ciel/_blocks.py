"""The pipe of blocks in which the engine gives what is written of an object meanwhile.

The first block says how the bytes are read. Each further one has its length in front, four bytes
with the lowest first; in place of a length stands that the stream has ended, or that its task was
repeated and has written something else. So the end of the pipe is no end of the stream. This module
knows neither strands nor values. Read next: `_engine_strand.py`; "Streams" in protocol/PROTOCOL.md.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

from ciel._errors import NonDeterministic

GREETING_BYTES = 4096
"""Bytes of the first block: the form, filled up with zeros."""

END, DIFFERS = 0, (1 << 32) - 1
"""What stands in place of a length."""

_LENGTH = struct.Struct("<I")


class Blocks(io.RawIOBase):
    """The bytes of a stream, as they are written."""

    def __init__(
        self, path: str, before: Callable[[], None], rest: Callable[[int], BinaryIO]
    ) -> None:
        """`path` is that of the pipe; `before` is called before each read that may wait.

        `rest` is called when the stream has ended, or the pipe: with how many bytes were read. It
        waits for the object and returns what is left of it, or raises the failure.
        """
        super().__init__()
        self._pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(self._pipe, True)
        self._before = before
        self._rest = rest
        self._last: BinaryIO | None = None
        self._left = self._given = 0

    def form(self) -> str:
        """How the bytes are read, once there are any; empty if the object is no stream."""
        self._before()
        return self._exactly(GREETING_BYTES).rstrip(b"\0").decode()

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Waits for bytes; those of one block at most.

        Raises NonDeterministic if the bytes that were read have not come again, and the failure of
        the task that writes them behind all that it has written.
        """
        if self._last is None and not self._left:
            self._before()
            self._begin_block()
        if self._last is not None:
            return self._last.readinto(buffer)  # type: ignore[attr-defined, no-any-return]
        with memoryview(buffer) as view, view.cast("B")[: self._left] as part:
            count = os.readv(self._pipe, [part])
        if not count:  # the engine is gone, or this task is to end
            self._last = self._rest(self._given)
            return self.readinto(buffer)
        self._left -= count
        self._given += count
        return count

    def _begin_block(self) -> None:
        head = self._exactly(_LENGTH.size)
        length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else END
        if length == DIFFERS:
            self._rest = _differs  # there is no rest of what was read, whoever asks again
        if length in (END, DIFFERS):
            self._last = self._rest(self._given)
        self._left = length

    def _exactly(self, count: int) -> bytes:
        """So many bytes of the pipe, fewer if it ends."""
        found = b""
        while len(found) < count and (piece := os.read(self._pipe, count - len(found))):
            found += piece
        return found

    def close(self) -> None:
        """Reads nothing more."""
        if not self.closed:
            os.close(self._pipe)
            if self._last is not None:
                self._last.close()
        super().close()


def _differs(given: int) -> BinaryIO:
    raise NonDeterministic(
        f"the task that writes this stream was repeated, and wrote something else than the {given} "
        "bytes that were read of it",
        hint="wait for its result() before you read it, or make it write the same again",
    )
