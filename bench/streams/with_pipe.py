"""The same pieces from a Python process to another one by a pipe: `with_pipe.py BYTES [times]`.

Prints a line of JSON as `with_ciel.py` does; with `times`, as many delays as the number says.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import sys
import time

import numpy

PIECE_BYTES = 16 << 20
PIPE_BYTES = 1 << 20
IDLE_S = 0.002
NUMBER = struct.Struct("<q")


def write_pieces(descriptor: int, number: int) -> None:
    """The words 0, 1, 2 and so on, in each piece."""
    whole = memoryview(numpy.arange(PIECE_BYTES // 8, dtype=numpy.uint64).tobytes())
    for _ in range(number // PIECE_BYTES):
        left = whole
        while left:
            left = left[os.write(descriptor, left) :]


def read_pieces(descriptor: int) -> list[int]:
    """Bytes, and the sum of the words."""
    room, length, total = bytearray(PIECE_BYTES), 0, 0
    words, whole = numpy.frombuffer(room, dtype=numpy.uint64), memoryview(room)
    while True:
        done = 0
        while done < PIECE_BYTES and (count := os.readv(descriptor, [whole[done:]])):
            done += count
        if not done:
            return [length, total]
        length += done
        total += int(words[: done // 8].sum())


def write_times(descriptor: int, number: int) -> None:
    """The time, each when the pipe has been idle."""
    for _ in range(number):
        time.sleep(IDLE_S)
        os.write(descriptor, NUMBER.pack(time.perf_counter_ns()))


def read_times(descriptor: int) -> list[int]:
    """By how many nanoseconds each time was late."""
    found = []
    while written := os.read(descriptor, NUMBER.size):
        found.append(time.perf_counter_ns() - NUMBER.unpack(written)[0])
    return found


def main() -> None:
    """Forks, and measures from there to the end of the other process."""
    number, is_times = int(sys.argv[1]), sys.argv[2:] == ["times"]
    write, read = (write_times, read_times) if is_times else (write_pieces, read_pieces)
    begun = time.perf_counter()
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    if (child := os.fork()) == 0:
        os.close(read_end)
        write(write_end, number)
        os._exit(0)
    os.close(write_end)
    found = read(read_end)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit(f"the writer has ended with {status}")
    print(json.dumps({"seconds": time.perf_counter() - begun, "found": found}))


if __name__ == "__main__":
    main()
