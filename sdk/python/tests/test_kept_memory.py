"""Memory of a direct stream that is kept for the next one: no value ever changes by that."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jobs
import pytest
from ciel._native import SharedReader
from conditions import until
from shared_parts import LONG, frames_of, is_shared, part_of, parts_of, writer_at


def new_folder(tmp_path: Path) -> Path:
    """For the pipe of one more stream."""
    folder = tmp_path / str(len(os.listdir(tmp_path)))
    folder.mkdir()
    return folder


def memory_of(part: Any) -> str:
    """What the system calls the memory that has the part."""
    numpy = pytest.importorskip("numpy")
    address = numpy.frombuffer(part, dtype=numpy.uint8).ctypes.data
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(word, 16) for word in line.split()[0].split("-"))
        if begin <= address < end:
            return line.split()[4]
    raise AssertionError("the part is nowhere")


def memory_of_stream(tmp_path: Path, count: int) -> str:
    """The memory of one more stream, which is read to its end."""
    found = ""
    with parts_of(new_folder(tmp_path), frames_of([LONG] * count)) as parts:
        for number, part in enumerate(parts):
            assert is_shared(part) and part == part_of(number, LONG)
            found = memory_of(part)
    return found


def test_next_stream_has_the_memory_of_the_last_one(tmp_path: Path) -> None:
    """It is kept for two seconds only, which may pass between two of them."""
    before = [""]

    def is_same() -> bool:
        before.append(memory_of_stream(tmp_path, 4))
        return before[-2] == before[-1]

    until(is_same)


@pytest.mark.parametrize("seed", range(8))
def test_value_that_is_kept_does_not_change_in_later_streams(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    rate = chosen.choice([0.0, 0.02, 0.2])
    kept: list[tuple[bytes, bytes | memoryview]] = []
    for _ in range(12):
        lengths = [chosen.choice([LONG, 3 * LONG + 5, 16 * LONG]) for _ in range(8)]
        with parts_of(new_folder(tmp_path), frames_of(lengths)) as parts:
            for number, part in enumerate(parts):
                assert part == part_of(number, lengths[number])
                if chosen.random() < rate:
                    kept.append((part_of(number, lengths[number])[:4000], part[:4000]))
                del part
        if kept and chosen.random() < 0.3:
            kept.pop(chosen.randrange(len(kept)))
        assert all(one == was for was, one in kept)


class Ends:
    """Both ends of a pipe in this process, which share memory."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        os.mkfifo(folder / "pipe")
        self.descriptor = os.open(folder / "pipe", os.O_RDWR)
        self.writer = writer_at(self.descriptor)
        self.reader = SharedReader(self.descriptor)

    def passed(self, data: bytes) -> memoryview:
        """A value as the reader has it."""
        placed = self.writer.place([data])
        assert placed is not None
        return memoryview(self.reader.value(placed[0]))


@pytest.mark.parametrize("is_held", [True, False])
def test_memory_of_a_stream_that_did_not_end_is_not_used_for_the_next(
    tmp_path: Path, is_held: bool
) -> None:
    """Its producer does not stop when its reader has left, and still writes there."""
    left = Ends(tmp_path / "left")
    first = left.passed(part_of(0, LONG))
    if not is_held:
        first.release()
    del left.reader
    last = Ends(tmp_path / "next")
    kept = last.passed(part_of(1, LONG))
    for number in range(2, 6):
        left.writer.place([part_of(number, LONG)])
    assert kept == part_of(1, LONG)
    assert not is_held or first == part_of(0, LONG)
    for ends in (left, last):
        os.close(ends.descriptor)


def test_memory_with_a_value_that_is_held_is_not_used_for_the_next(tmp_path: Path) -> None:
    ended, last = Ends(tmp_path / "ended"), Ends(tmp_path / "next")
    held = ended.passed(part_of(0, LONG))
    ended.reader.end()
    further = Ends(tmp_path / "further")
    kept = [ends.passed(part_of(number, LONG)) for number, ends in enumerate((last, further), 1)]
    assert [held, *kept] == [part_of(number, LONG) for number in range(3)]
    for ends in (ended, last, further):
        os.close(ends.descriptor)


def test_only_one_stream_has_the_memory_of_an_ended_one(tmp_path: Path) -> None:
    """Both ends of the ended one have it, and each may be the reader of a further one."""
    for turn in range(3):
        ended = Ends(tmp_path / f"{turn}-ended")
        assert ended.passed(part_of(0, LONG)) == part_of(0, LONG)
        ended.reader.end()
        del ended.writer
        both = [Ends(tmp_path / f"{turn}-{number}") for number in (1, 2)]
        kept = [ends.passed(part_of(number, LONG)) for number, ends in enumerate(both)]
        assert kept == [part_of(0, LONG), part_of(1, LONG)]
        assert memory_of(kept[0]) != memory_of(kept[1])
        for ends in (ended, *both):
            os.close(ends.descriptor)


def child_of(look: Callable[[], bool]) -> Callable[[], int]:
    """Forks; what is returned lets the child look, and returns its status."""
    wait, go = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which do nothing here
        child = os.fork()
    if not child:
        os.read(wait, 1)
        os._exit(0 if look() else 1)

    def ended() -> int:
        os.write(go, b"!")
        os.close(go)
        os.close(wait)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    return ended


def test_value_of_an_ended_stream_does_not_change_for_a_child(tmp_path: Path) -> None:
    with parts_of(new_folder(tmp_path), frames_of([LONG] * 4)) as parts:
        *_, last = parts
    ended = child_of(lambda: is_shared(last) and last == part_of(3, LONG))
    del last
    for _ in range(3):
        memory_of_stream(tmp_path, 6)
    assert ended() == 0


def test_child_that_drops_a_stream_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    """A child that let go of the reader gave the pages of values back to the system that its parent
    was still told of, which found zeros in place of them."""
    with parts_of(new_folder(tmp_path), frames_of([LONG] * 12)) as parts:
        first = next(parts)

        def drops() -> bool:
            parts.close()  # type: ignore[attr-defined]
            until(lambda: len(os.listdir("/proc/self/task")) == 1)
            return True

        assert child_of(drops)() == 0
        for number, part in enumerate(parts, 1):
            assert part == part_of(number, LONG)
    assert first == part_of(0, LONG)


STREAMS = """
from collections.abc import Iterable, Iterator

import ciel
import numpy

@ciel.task(stream=ciel.stream(single_consumer=True), keep=False)
def made(count: int, seed: int) -> Iterator[numpy.ndarray]:
    for number in range(count):
        yield numpy.full(1 << 20, 1000 * seed + number)

@ciel.task(keep=False)
def total(given: Iterable[numpy.ndarray]) -> int:
    kept = []
    for number, array in enumerate(given):
        assert (array == array[0]).all()
        if number % 5 == 0:
            kept.append((int(array[0]), array))
    assert all((array == was).all() for was, array in kept)
    return sum(was for was, _ in kept)

def main():
    return [total.spawn(made.spawn(9, seed).stream()).result() for seed in range(6)]
"""


def test_tasks_pass_one_stream_after_another(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    ended = jobs.run(tmp_path, STREAMS, options=("-j2", "--json"))
    assert ended.value == [2000 * seed + 5 for seed in range(6)]
