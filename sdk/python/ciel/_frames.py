"""The bytes of a stream of values: one frame for each value that a generator task has yielded.

A frame is the length of what follows, in eight bytes with the lowest first, and the value as the
file of a pickled result: a pickle of protocol 5, and behind it the memory of its arrays if it has
any. The end of the bytes is the end of the stream. This module knows neither tasks nor values. Read
next: `_freeze.py` for one value, `_reading.py` for who reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

from ciel._errors import ObjectLost

FORM = "frames"
"""The form of an object that consists of frames."""

_LENGTH = struct.Struct("<Q")


def head_of(length: int) -> bytes:
    """What precedes so many bytes of a value."""
    return _LENGTH.pack(length)


def parts_from(file: BinaryIO) -> Iterator[bytes]:
    """What is in the frames of a file, each as soon as its frame is there; closes the file.

    Raises ObjectLost if the file ends within a frame.
    """
    with file:
        while head := file.read(_LENGTH.size):
            (length,) = _LENGTH.unpack(_whole(head, _LENGTH.size))
            yield _whole(file.read(length), length)


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
