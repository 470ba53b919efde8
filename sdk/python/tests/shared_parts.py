"""Frames of long values in a pipe whose two ends are in this process, and share memory.

It knows no tasks. Used by the tests of shared values and of memory that is kept.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from ciel._frames import head_of, parts_from, passed
from ciel._native import SharedReader, SharedValue, SharedWriter

LONG = 1 << 20
MEMORY = 66 << 20
WORD_BYTES = 64 << 10
"""Bytes before the values in the memory that both ends share."""

_granted: list[int] = []


def granted(length: int, memory: int = MEMORY) -> str | None:
    """The path of new memory, as the engine makes it; it stays until more is asked for."""
    forget_granted()
    file = os.memfd_create("ciel-values", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, WORD_BYTES + memory)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    _granted.append(file)
    return f"/proc/self/fd/{file}"


def forget_granted() -> None:
    """The engine of the last grant is gone."""
    while _granted:
        os.close(_granted.pop())


def writer_at(pipe: int) -> SharedWriter:
    """The producer of a pipe, with as much memory as a stream gets at most."""
    return SharedWriter(pipe, granted)


def part_of(number: int, length: int) -> bytes:
    """Bytes that are those of no other number."""
    return number.to_bytes(4, "big") * (length // 4) + b"!" * (length % 4)


def write_all(pipe: FileIO, shared: SharedWriter, frames: Iterable[list[Any]]) -> None:
    """Writes frames into a pipe as a task does, and closes it; a frame of one piece is raw."""
    with pipe:
        for frame in frames:
            for piece in passed(frame, shared) if len(frame) > 1 else frame:
                rest = memoryview(piece)
                while rest:
                    rest = rest[pipe.write(rest) :]


@contextmanager
def pipe_of(folder: Path, frames: Iterable[list[Any]]) -> Iterator[BinaryIO]:
    """The end of a pipe that is read; another thread writes frames at the other one."""
    path = folder / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    pipe = open(path, "wb", buffering=0)  # noqa: SIM115
    os.set_blocking(reading, True)
    writer = threading.Thread(target=write_all, args=(pipe, writer_at(pipe.fileno()), frames))
    writer.start()
    yield open(reading, "rb")  # noqa: SIM115
    writer.join()


@contextmanager
def parts_of(folder: Path, frames: Iterable[list[Any]]) -> Iterator[Iterator[bytes | memoryview]]:
    """What a reader that is there from the beginning finds of frames."""
    go = threading.Event()

    def begun() -> Iterator[list[Any]]:
        go.wait()
        yield from frames

    with pipe_of(folder, begun()) as file:
        parts = parts_from(file, SharedReader(file.fileno()))
        go.set()
        yield parts


def frames_of(lengths: Iterable[int]) -> Iterator[list[Any]]:
    """A frame of each length, in two pieces."""
    for number, length in enumerate(lengths):
        part = part_of(number, length)
        yield [head_of(length), part[: length // 3], memoryview(part)[length // 3 :]]


def is_shared(part: bytes | memoryview) -> bool:
    """Whether it is not copied."""
    return isinstance(part, memoryview) and isinstance(part.obj, SharedValue)
