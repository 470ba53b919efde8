"""The bytes of a stream of values: one frame for each value that a generator task has yielded.

A frame is the length of what follows, in eight bytes with the lowest first, and the value as the
file of a pickled result: a pickle of protocol 5, and behind it the memory of its arrays if it has
any. The end of the bytes is the end of the stream.

Where one Python task reads what another one writes, and nobody else does, both share memory for
long values: in place of one stands its region there, with the highest bit of the length set. Where
the reader is far behind, zeros follow: they hold the producer, for the pipe has no room for them.

This module knows neither tasks nor values. Read next: `_freeze.py` for one value, `_reading.py` for
who reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, BinaryIO

from ciel._errors import ObjectLost
from ciel._native import SharedReader, SharedWriter

FORM = "frames"
"""The form of an object that consists of frames."""

_LENGTH = struct.Struct("<Q")

RECYCLED_BYTES_MIN = 1 << 20
"""Shorter frames are read into fresh memory, which costs little then."""

SHARED_BYTES_MIN = 64 << 10
"""Shorter values go through the pipe."""

_SHARED = 1 << 63
_REGION_BYTES = 24

_FILL_BYTES = 320 << 10
"""Zeros that hold the producer: more than a pipe and the buffer of its reader have room for."""


@cache
def _fill() -> memoryview:
    """These zeros, to be written and overwritten: nobody looks at them."""
    return memoryview(bytearray(_FILL_BYTES))


def head_of(length: int) -> bytes:
    """What precedes so many bytes of a value."""
    return _LENGTH.pack(length)


class _Memory:
    """Memory of long frames, used again for a later one once nothing points into it.

    Fresh pages cost more than the bytes that are read into them. Who iterates has one value while
    the next one is read, so two pieces of memory are enough.
    """

    def __init__(self) -> None:
        self._older = self._newer = bytearray()

    def of(self, length: int) -> memoryview:
        """So many bytes, which nobody reads any more, to be written."""
        buffer = self._older
        if len(buffer) < length or not _is_free(buffer):
            buffer = bytearray(length)
        self._older, self._newer = self._newer, buffer
        return memoryview(buffer)[:length]


def _is_free(buffer: bytearray) -> bool:
    try:
        buffer.append(0)
    except BufferError:  # something points into it
        return False
    del buffer[-1]
    return True


def passed(frame: list[Any], shared: SharedWriter) -> list[Any]:
    """What goes through the pipe of a frame, whose first piece is its head."""
    (length,) = _LENGTH.unpack(frame[0])
    placed = shared.place(frame[1:]) if length >= SHARED_BYTES_MIN else None
    if placed is None:
        return frame
    region, is_far_ahead = placed
    fill = _FILL_BYTES if is_far_ahead else 0
    head = head_of(_SHARED | len(region) + fill) + region
    return [head, _fill()] if is_far_ahead else [head]


def parts_from(
    file: BinaryIO, shared: SharedReader | None = None
) -> Iterator[bytes | memoryview]:
    """What is in the frames of a file, each as soon as its frame is there; closes the file.

    The memory of a part is used again when nothing points into it, so what is kept of a part has
    to be a slice of it. Raises ObjectLost if the file ends within a frame, or a frame has no
    memory.
    """
    memory = _Memory()
    with file:
        while head := file.read(_LENGTH.size):
            (length,) = _LENGTH.unpack(_whole(head, _LENGTH.size))
            if shared is not None and length & _SHARED:
                yield _shared_part(file, length ^ _SHARED, shared, memory)
                continue
            if shared is not None and length >= SHARED_BYTES_MIN:
                shared.offer()
            if length < RECYCLED_BYTES_MIN:
                yield _whole(file.read(length), length)
            else:
                yield _filled(memory.of(length), file)
        if shared is not None:
            shared.end()


def _shared_part(
    file: BinaryIO, length: int, shared: SharedReader, memory: _Memory
) -> memoryview:
    """A value in shared memory; a copy of it if this process holds too much there."""
    region = _whole(file.read(min(length, _REGION_BYTES)), _REGION_BYTES)
    try:
        part = memoryview(shared.value(region))
    except ValueError as error:
        raise ObjectLost(f"a frame of a stream has no memory: {error}") from None
    if length not in {_REGION_BYTES, _REGION_BYTES + _FILL_BYTES}:
        raise ObjectLost(f"a frame of a stream has {length} bytes for a region")
    if length > _REGION_BYTES:
        _filled(_fill(), file)
    if not shared.is_full:
        return part
    room = memory.of(len(part))
    room[:] = part
    return room.toreadonly()


def _filled(room: memoryview, file: BinaryIO) -> memoryview:
    """The room with bytes of the file in it, for readers."""
    count = file.readinto(room)  # type: ignore[attr-defined]
    _whole(room[:count], len(room))
    return room.toreadonly()


def parts_in(data: Any) -> Iterator[memoryview]:
    """What is in the frames of these bytes, not copied.

    Raises ObjectLost if the bytes end within a frame.
    """
    view, begin = memoryview(data), 0
    while begin < len(view):
        body = begin + _LENGTH.size
        (length,) = _LENGTH.unpack(_whole(view[begin:body], _LENGTH.size))
        begin = body + length
        yield _whole(view[body:begin], length)


def _whole(part: Any, length: int) -> Any:
    if len(part) != length:
        raise ObjectLost(f"a stream of values ends within a frame: {len(part)} of {length} bytes")
    return part
