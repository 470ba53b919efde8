"""Streams between two tasks of Ciel: `ciel run with_ciel.py KIND MODE BYTES ENDS`.

Prints a line of JSON with seconds and what the reader has found. `KIND` says what the tasks are;
`ENDS` is the program of `ends.c`. Bytes of Python tasks come in pieces of 16 MiB.
"""

from __future__ import annotations

import importlib
import json
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy

import ciel

PIECE_BYTES = 16 << 20

IDLE_S = 0.002
"""How long a stream is idle before a time is written into it."""

NUMBER = struct.Struct("<q")

Found = list[int]


def piece() -> numpy.ndarray:
    """The words 0, 1, 2 and so on."""
    return numpy.arange(PIECE_BYTES // 8, dtype=numpy.uint64)


def sum_of(words: numpy.ndarray) -> int:
    """The sum of the words, which takes a look at each."""
    return int(words.sum())


def of_bytes(length: int) -> Iterator[bytes]:
    """Pieces of bytes."""
    whole = piece().tobytes()
    for _ in range(length // PIECE_BYTES):
        yield whole


def of_arrays(length: int) -> Iterator[numpy.ndarray]:
    """Pieces that are arrays."""
    whole = piece()
    for _ in range(length // PIECE_BYTES):
        yield whole


def of_times(count: int) -> Iterator[bytes]:
    """The time, each when the stream has been idle."""
    for _ in range(count):
        time.sleep(IDLE_S)
        yield NUMBER.pack(time.perf_counter_ns())


def of_numbers(count: int) -> Iterator[int]:
    """The same as values."""
    for _ in range(count):
        time.sleep(IDLE_S)
        yield time.perf_counter_ns()


@ciel.task(keep=False)
def read_file(given: ciel.Reading[bytes]) -> Found:
    """Bytes and sum of what a file has."""
    room, length, total = bytearray(PIECE_BYTES), 0, 0
    words = numpy.frombuffer(room, dtype=numpy.uint64)
    with given.open() as file:
        while count := _fill(file.readinto, room):  # type: ignore[attr-defined]
            length += count
            total += sum_of(words[: count // 8])
    return [length, total]


def _fill(readinto: Callable[[memoryview], int], room: bytearray) -> int:
    done, whole = 0, memoryview(room)
    while done < len(whole) and (count := readinto(whole[done:])):
        done += count
    return done


@ciel.task(keep=False)
def read_values(given: Iterable[bytes | numpy.ndarray]) -> Found:
    """The same of values."""
    length, total = 0, 0
    for value in given:
        words = numpy.frombuffer(value, dtype=numpy.uint64)
        length += words.nbytes
        total += sum_of(words)
    return [length, total]


@ciel.task(keep=False)
def delays_of_file(given: ciel.Reading[bytes]) -> Found:
    """By how many nanoseconds each time was late."""
    found = []
    with given.open() as file:
        while written := file.read(NUMBER.size):
            found.append(time.perf_counter_ns() - NUMBER.unpack(written)[0])
    return found


@ciel.task(keep=False)
def delays_of_values(given: Iterable[int]) -> Found:
    """The same of values."""
    return [time.perf_counter_ns() - written for written in given]


MAKERS: dict[str, tuple[Any, Any]] = {
    "joined": (of_bytes, read_file),
    "bytes": (of_bytes, read_values),
    "arrays": (of_arrays, read_values),
    "times_joined": (of_times, delays_of_file),
    "times_values": (of_numbers, delays_of_values),
}


def by_tasks(kind: str, mode: str, number: int, name: str) -> Found:
    """Python tasks at both ends."""
    make, reader = MAKERS[kind]
    way = ciel.stream(mode=mode)
    if kind.endswith("joined"):
        made = ciel.task(joined=True, stream=way, keep=False)(make).spawn(number)
    else:
        made = ciel.task(stream=way, keep=False)(make).spawn(number)
    found: Found = reader.options(name=name).spawn(made.stream()).result()
    return found


def by_commands(kind: str, mode: str, number: int, ends: str) -> Found:
    """Commands at both ends."""
    write, read = ("stamp", "stamps") if kind == "times" else ("fill", "drain")
    way = ciel.stream(mode=mode)
    made = ciel.sh(f"{ends} {write} {number}", stdout=way, keep=False)
    found = ciel.sh(f"{ends} {read}", stdin=made, name="read", keep=False)
    return [int(word) for word in found.result().split()]


def by_jitter(kind: str, mode: str, number: int) -> Found:
    """The pairs of the example, whose folder is in `PYTHONPATH`."""
    return [importlib.import_module("jitter").PAIRS[kind.removeprefix("jitter_")](mode, number)]


def main(kind: str, mode: str, number: str, ends: str) -> None:
    """Once in earnest, when two workers have begun and had a short stream of the kind."""
    by_tasks("times_joined", "indirect_pipe", 100, "first")
    if kind in ("arrays", "bytes"):
        by_tasks(kind, mode, 4 * PIECE_BYTES, "short")
    begun = time.perf_counter()
    if kind in MAKERS:
        found = by_tasks(kind, mode, int(number), "read")
    elif kind.startswith("jitter"):
        found = by_jitter(kind, mode, int(number))
    else:
        found = by_commands(kind, mode, int(number), ends)
    print(json.dumps({"seconds": time.perf_counter() - begun, "found": found}))
