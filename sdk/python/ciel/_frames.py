"""The bytes of a stream of values: one frame for each value that a generator task has yielded.

A frame is the length of what follows, in eight bytes with the lowest first, and the value as the
file of a pickled result: a pickle of protocol 5, and behind it the memory of its arrays if it has
any. The end of the bytes is the end of the stream. This module knows neither tasks nor pipes. Read
next: `_freeze.py` for one value, `_reading.py` for who reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

from ciel._errors import NotSerializable, ObjectLost
from ciel._freeze import pieces_of, value_of

FORM = "frames"
"""The form of an object that consists of frames."""

_LENGTH = struct.Struct("<Q")


def frame_of(value: Any) -> list[Any]:
    """The pieces of the frame of a value; some of them point into it.

    Raises NotSerializable if a future is in it, and whatever pickle raises.
    """
    pieces, references = pieces_of(value)
    if references:
        raise NotSerializable(
            "a yielded value holds a future", hint="yield its value, or return a list of futures"
        )
    length = sum(len(piece) if type(piece) is bytes else piece.nbytes for piece in pieces)
    return [_LENGTH.pack(length), *pieces]


def values_from(file: BinaryIO) -> Iterator[Any]:
    """The values whose frames a file has, each as soon as its frame is there; closes the file.

    Raises ObjectLost if the file ends within a frame.
    """
    with file:
        while head := file.read(_LENGTH.size):
            (length,) = _LENGTH.unpack(_whole(head, _LENGTH.size))
            yield value_of(_whole(file.read(length), length), "pickle", None)


def values_in(data: Any) -> Iterator[Any]:
    """The values whose frames are these bytes; arrays in them are not copied."""
    view, begin = memoryview(data), 0
    while begin < len(view):
        body = begin + _LENGTH.size
        (length,) = _LENGTH.unpack(_whole(view[begin:body], _LENGTH.size))
        begin = body + length
        yield value_of(_whole(view[body:begin], length), "pickle", None)


def _whole(part: Any, length: int) -> Any:
    if len(part) != length:
        raise ObjectLost(f"a stream of values ends within a frame: {len(part)} of {length} bytes")
    return part
