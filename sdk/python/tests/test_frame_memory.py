"""The memory into which long values of a stream are read: used again, but not while it is seen."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Iterator

import ciel
import pytest
import sessions
from ciel._frames import RECYCLED_BYTES_MIN, head_of, parts_from

LONG = RECYCLED_BYTES_MIN

session = sessions.with_slots(1, 2)


def file_of(parts: Iterable[bytes]) -> io.BytesIO:
    """A file with a frame for each part."""
    return io.BytesIO(b"".join(head_of(len(part)) + part for part in parts))


def part_of(number: int, length: int) -> bytes:
    """Bytes that are those of no other number."""
    return number.to_bytes(2, "big") * (length // 2) + b"!" * (length % 2)


def test_memory_of_a_part_that_is_gone_is_used_again() -> None:
    numbers = range(12)
    seen = set()
    for number, part in zip(numbers, parts_from(file_of(part_of(n, LONG) for n in numbers))):
        assert isinstance(part, memoryview)
        assert part == part_of(number, LONG)
        seen.add(id(part.obj))
    assert len(seen) == 2


@pytest.mark.parametrize("seed", range(8))
def test_part_of_which_a_slice_is_kept_does_not_change(seed: int) -> None:
    chosen = random.Random(seed)
    lengths = [chosen.choice([0, 7, LONG - 1, LONG, LONG + 9, 3 * LONG]) for _ in range(24)]
    kept: list[tuple[int, int, bytes | memoryview]] = []
    made = (part_of(number, length) for number, length in enumerate(lengths))
    for number, part in enumerate(parts_from(file_of(made))):
        assert part == part_of(number, lengths[number])
        if chosen.random() < 0.5:
            begin = chosen.randrange(lengths[number] // 2 + 1)
            kept.append((number, begin, part[begin : begin + 1000]))
        if kept and chosen.random() < 0.3:
            kept.pop(chosen.randrange(len(kept)))
        for other, begin, piece in kept:
            assert piece == part_of(other, lengths[other])[begin : begin + 1000]


def test_part_can_only_be_read() -> None:
    (part,) = parts_from(file_of([bytes(LONG)]))
    assert isinstance(part, memoryview)
    assert part.readonly


@pytest.mark.parametrize("missing", [1, LONG, LONG + 3])
def test_file_that_ends_within_a_long_part_is_no_end_of_the_stream(missing: int) -> None:
    whole = file_of([b"first", bytes(LONG)]).getvalue()
    parts = parts_from(io.BytesIO(whole[:-missing]))
    assert next(parts) == b"first"
    with pytest.raises(ciel.ObjectLost, match="ends within a frame"):
        next(parts)


class Memory:
    """Bytes outside of the pickle, as those of an array."""

    def __init__(self, data: object) -> None:
        self.data = memoryview(data)  # type: ignore[arg-type]

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        """The memory itself is not copied."""
        import pickle

        return Memory, (pickle.PickleBuffer(self.data),)


@ciel.task
def memories(count: int, length: int) -> Iterator[Memory]:
    """Long values, each unlike the others."""
    for number in range(count):
        yield Memory(part_of(number, length))


@ciel.task
def kept_well(given: Iterable[Memory], length: int) -> list[bool]:
    """Keeps each third one to the end."""
    kept, came = {}, []
    for number, one in enumerate(given):
        if number % 3 == 0:
            kept[number] = one
        came.append(one.data == part_of(number, length))
    return came + [one.data == part_of(number, length) for number, one in kept.items()]


def test_values_that_a_reader_keeps_do_not_change(session: ciel.Session) -> None:
    made = session.submit(memories, 13, LONG + 11)
    found = session.submit(kept_well, made.stream(), LONG + 11)
    assert found.result() == [True] * (13 + 5)
