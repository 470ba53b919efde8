#!/usr/bin/env python3
"""Print the flat view of a `.cio` file: `python3 read_cio.py FILE`.

A reader that follows the page `cio.md` beside it and shares no code with Ciel. It reads the log and
not the index, so it reads files that were never closed. Exit codes: 0 the file is complete, 3 it
ends at the frontier, 1 something in it is damaged, 2 it is no `.cio` file.
"""

import struct
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO

MAGIC = b"\x8fcielcio"
FORMAT = 1
HEADER = struct.Struct("<8sII")
RECORD = struct.Struct("<IBBHQ")
ITEM = struct.Struct("<QII")
FIRST_BLOCK_END = 4096
COMMIT, LINK = 1, 2
ITEMS_MAX = 128
EXTENT_BYTES_MAX = 1 << 20
BLOCK_BYTES_MAX = 16 << 20
ROOT = 0

Item = tuple[int, int, int]
"""Offset, length in bytes and CRC-32 of data; or segment, 0, 0 of a child."""


class NoCio(Exception):
    """The file has no header of this format."""


class Damaged(Exception):
    """Data do not have their checksum."""


class Partial(Exception):
    """What follows is not committed."""


def read_at(file: BinaryIO, offset: int, length: int) -> bytes:
    """The bytes of the file from an offset on, `length` of them unless it ends before."""
    try:
        file.seek(offset)
    except (OverflowError, OSError):  # Further away than any file reaches.
        return b""
    return file.read(length)


def check_header(file: BinaryIO) -> None:
    """Raise `NoCio` unless the file begins with a header of this format."""
    header = read_at(file, 0, HEADER.size)
    if len(header) < HEADER.size:
        raise NoCio("it is too short for a header")
    magic, number, checksum = HEADER.unpack(header)
    if magic != MAGIC or zlib.crc32(header[:12]) != checksum:
        raise NoCio("it has no header of a .cio file")
    if number != FORMAT:
        raise NoCio(f"it is of format {number}")


def is_sound(item: Item) -> bool:
    """Whether an item can be one of this format."""
    offset, length, _checksum = item
    return length <= EXTENT_BYTES_MAX and offset + length < 1 << 64


def read_record(block: bytes, at: int) -> tuple[int, int, int, list[Item]] | None:
    """Kind, flags, segment and items of the record at this place of a block, if it is intact."""
    if at + RECORD.size > len(block):
        return None
    checksum, kind, flags, count, segment = RECORD.unpack_from(block, at)
    end = at + RECORD.size + count * ITEM.size
    if count > ITEMS_MAX or end > len(block) or zlib.crc32(block[at + 4 : end]) != checksum:
        return None
    items = list(ITEM.iter_unpack(block[at + RECORD.size : end]))
    is_commit = kind == COMMIT and flags <= 1 and all(map(is_sound, items))
    is_link = kind == LINK and flags == 0 and count == 1 and items[0][1] <= BLOCK_BYTES_MAX
    return (kind, flags, segment, items) if is_commit or is_link else None


def read_log(file: BinaryIO) -> tuple[dict[int, list[Item]], set[int]]:
    """The items of every segment, and the segments that have ended."""
    segments: dict[int, list[Item]] = {}
    ended: set[int] = set()
    start, end = HEADER.size, FIRST_BLOCK_END
    while True:
        block = read_at(file, start, end - start)
        at = 0
        while (record := read_record(block, at)) is not None:
            kind, flags, segment, items = record
            if kind == LINK or segment in ended:
                break
            segments.setdefault(segment, []).extend(items)
            if flags == 1:
                ended.add(segment)
            at += RECORD.size + len(items) * ITEM.size
        if record is None or record[0] != LINK or record[3][0][0] < end:
            return segments, ended
        start, end = record[3][0][0], record[3][0][0] + record[3][0][1]


def flat_view(file: BinaryIO) -> Iterator[bytes]:
    """The bytes of the flat view, then `Partial` or `Damaged` if it is not the whole."""
    check_header(file)
    segments, ended = read_log(file)
    stack = [(ROOT, 0)]
    reached = {ROOT}
    while stack:
        segment, place = stack.pop()
        items = segments.get(segment, [])
        if place == len(items):
            if segment not in ended:
                raise Partial(f"segment {segment} has not ended")
            continue
        stack.append((segment, place + 1))
        offset, length, checksum = items[place]
        if length > 0:
            data = read_at(file, offset, length)
            if len(data) < length or zlib.crc32(data) != checksum:
                raise Damaged(f"{length} bytes at offset {offset} are damaged")
            yield data
        elif offset in reached:
            raise Damaged(f"segment {offset} stands at two places")
        else:
            reached.add(offset)
            stack.append((offset, 0))


def main(path: str) -> int:
    """Print the flat view of a file; give the exit code."""
    try:
        with open(path, "rb") as file:
            for data in flat_view(file):
                sys.stdout.buffer.write(data)
    except (NoCio, Partial, Damaged) as error:
        sys.stdout.buffer.flush()
        print(f"{path}: {error}", file=sys.stderr)
        return {NoCio: 2, Partial: 3, Damaged: 1}[type(error)]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
