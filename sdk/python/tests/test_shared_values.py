"""Long values of direct streams: they go through shared memory, and the rules of streams hold."""

from __future__ import annotations

import os
import pickle
import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ciel
import jobs
import pytest
from ciel._frames import SHARED_BYTES_MIN, parts_from
from ciel._freeze import frame_of, values_in
from ciel._native import SharedReader
from conditions import until
from shared_parts import (
    LONG,
    MEMORY,
    forget_granted,
    frames_of,
    is_shared,
    part_of,
    parts_of,
    pipe_of,
)

SHARED = 1 << 63


def test_long_values_are_shared_from_the_first_on(tmp_path: Path) -> None:
    with parts_of(tmp_path, frames_of([LONG] * 12)) as parts:
        for number, part in enumerate(parts):
            assert part == part_of(number, LONG)
            assert is_shared(part)


def test_reader_that_comes_late_shares_further_values(tmp_path: Path) -> None:
    """A value that is in the pipe already goes through it; the one behind that need not."""
    found = []
    with pipe_of(tmp_path, frames_of([LONG] * 6)) as file:
        assert file.peek(1)  # type: ignore[attr-defined]
        for number, part in enumerate(parts_from(file, SharedReader(file.fileno()))):
            assert part == part_of(number, LONG)
            found.append(is_shared(part))
    assert found == [False] + [True] * 5


def test_short_and_very_long_values_go_through_the_pipe(tmp_path: Path) -> None:
    lengths = [LONG, 0, SHARED_BYTES_MIN - 1, SHARED_BYTES_MIN, MEMORY // 4 + 1, LONG]
    found = []
    with parts_of(tmp_path, frames_of(lengths)) as parts:
        for number, part in enumerate(parts):
            assert part == part_of(number, lengths[number])
            found.append(is_shared(part))
    assert found == [True, False, False, True, False, True]


def test_producer_is_held_while_its_reader_is_far_behind(tmp_path: Path) -> None:
    """It continues with the value that it has at hand when a quarter of the memory is not taken."""
    made = 0

    def counted() -> Iterator[list[Any]]:
        nonlocal made
        for made, frame in enumerate(frames_of([LONG] * 120), 1):
            yield frame

    ahead = MEMORY // 4 // LONG
    with parts_of(tmp_path, counted()) as parts:
        for taken, part in enumerate(parts, 1):
            assert is_shared(part) and part == part_of(taken - 1, LONG)
            if taken == 1:
                until(lambda: made > ahead)
            assert made <= taken + ahead + 2


@pytest.mark.parametrize("seed", range(12))
def test_value_that_is_kept_does_not_change_whatever_is_let_go_before(
    tmp_path: Path, seed: int
) -> None:
    chosen = random.Random(seed)
    edges = [7, SHARED_BYTES_MIN, SHARED_BYTES_MIN + 1, LONG, 5 * LONG + 3, MEMORY // 4 - 9]
    lengths = [*(chosen.choice(edges) for _ in range(60)), LONG]
    rate = chosen.choice([0.0, 0.3, 0.9])
    kept: list[tuple[bytes, bytes | memoryview]] = []
    shared = 0
    with parts_of(tmp_path, frames_of(lengths)) as parts:
        for number, part in enumerate(parts):
            expected = part_of(number, lengths[number])
            assert part == expected
            shared += is_shared(part)
            if chosen.random() < rate:
                begin = chosen.randrange(len(part))
                kept.append((expected[begin : begin + 4000], part[begin : begin + 4000]))
            del part
            if kept and chosen.random() < 0.4:
                kept.pop(chosen.randrange(len(kept)))
            assert all(one == was for was, one in kept)
    assert shared


def test_reader_that_keeps_all_values_has_copies_of_most_and_waits_for_nothing(
    tmp_path: Path,
) -> None:
    with parts_of(tmp_path, frames_of([4 * LONG] * 40)) as parts:
        kept = list(parts)
    assert all(part == part_of(number, 4 * LONG) for number, part in enumerate(kept))
    held = sum(len(part) for part in kept if is_shared(part))
    assert 4 * LONG < held <= MEMORY // 2


def test_nothing_is_left_of_a_stream_whose_values_are_gone(tmp_path: Path) -> None:
    with parts_of(tmp_path, frames_of([LONG] * 8)) as parts:
        assert is_shared(list(parts)[-1])
    del parts
    forget_granted()
    until(lambda: "ciel-values" not in Path("/proc/self/maps").read_text())
    name = f"ciel-values-{os.stat(tmp_path).st_dev:x}-{os.stat(tmp_path / 'pipe').st_ino:x}"
    assert name not in Path("/proc/net/unix").read_text()
    held = (os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd"))
    assert not any("ciel-values" in one for one in held)


def mapped_bytes() -> int:
    """Bytes of shared memory whose pages are there for this process."""
    mappings = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
    mine = [mapping for mapping in mappings if "ciel-values" in mapping]
    sizes = (re.search(r"(?m)^Rss: +(\d+) kB", mapping) for mapping in mine)
    return sum(1024 * int(size[1]) for size in sizes if size)


def test_value_that_outlives_its_stream_keeps_its_own_pages_only(tmp_path: Path) -> None:
    length = 3 * LONG
    with parts_of(tmp_path, frames_of([length] * 30)) as parts:
        kept = {number: part for number, part in enumerate(parts) if number in (4, 7)}
    assert all(is_shared(part) for part in kept.values())
    del parts
    assert all(part == part_of(number, length) for number, part in kept.items())
    until(lambda: mapped_bytes() <= 2 * length + (1 << 18))
    assert kept.pop(4) == part_of(4, length)
    until(lambda: mapped_bytes() <= length + (1 << 18))
    assert kept[7] == part_of(7, length) and mapped_bytes() >= length
    kept.clear()
    until(lambda: mapped_bytes() == 0)


@pytest.mark.parametrize("length", [0, SHARED_BYTES_MIN - 1, SHARED_BYTES_MIN, 3 * LONG + 1])
def test_frame_of_bytes_is_their_pickle_and_long_ones_are_not_copied(length: int) -> None:
    value = part_of(7, length)
    head, *pieces = frame_of(value)
    assert struct.unpack("<Q", head) == (len(b"".join(pieces)),)
    assert pickle.loads(b"".join(pieces)) == value
    assert any(piece is value for piece in pieces) == (length >= SHARED_BYTES_MIN)
    assert next(values_in(b"".join((head, *pieces)))) == value


def test_value_can_only_be_read(tmp_path: Path) -> None:
    with parts_of(tmp_path, frames_of([LONG] * 3)) as parts:
        *_, last = parts
    assert is_shared(last) and isinstance(last, memoryview)
    assert last.readonly


def told(offset: int, length: int, number: int, fill: int) -> bytes:
    """A frame that tells of a region."""
    head = struct.pack("<QQQQ", SHARED | 24 + fill, offset, length, number)
    return head + bytes(fill)


ODD = {
    "behind the memory": told(MEMORY, LONG, 1, 0),
    "over its end": told(MEMORY - (1 << 16), LONG, 1, 0),
    "far away": told((1 << 64) - (1 << 16), LONG, 1, 0),
    "between units": told(1, LONG, 1, 0),
    "too short": told(0, 7, 1, 0),
    "too long": told(0, MEMORY, 1, 0),
    "without a number": told(0, LONG, 0, 0),
    "wrong fill": told(0, LONG, 1, 3),
    "cut fill": told(0, LONG, 1, 320 << 10)[:-1],
    "cut region": told(0, LONG, 1, 0)[:20],
    "short frame": struct.pack("<Q", SHARED | 3) + b"abc",
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_frame_that_tells_of_no_region_loses_the_stream(tmp_path: Path, odd: bytes) -> None:
    with parts_of(tmp_path, [*frames_of([LONG] * 2), [odd]]) as parts:
        assert is_shared(next(parts)) and is_shared(next(parts))
        with pytest.raises(ciel.ObjectLost, match="frame"):
            next(parts)


def test_frame_that_tells_of_a_region_before_memory_is_shared_loses_the_stream(
    tmp_path: Path,
) -> None:
    path = tmp_path / "frames"
    path.write_bytes(told(0, LONG, 1, 0))
    file = open(path, "rb")  # noqa: SIM115
    with pytest.raises(ciel.ObjectLost, match="no memory is shared"):
        next(parts_from(file, SharedReader(file.fileno())))


# Producers are lazy: they begin when their reader is spawned. One that began before was stored when
# it had waited 50 ms for a program that had no core in between.
PARTS = """
import os
import pickle
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import ciel

LENGTH = 3 << 20

once = ciel.stream(single_consumer=True)


class Memory:
    # Bytes outside of the pickle, as those of an array.
    def __init__(self, data: object) -> None:
        self.data = memoryview(data)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return Memory, (pickle.PickleBuffer(self.data),)

    def is_that_of(self, number: int) -> bool:
        return self.data == bytes_of(number)

    @property
    def is_shared(self) -> bool:
        return type(self.data.obj).__name__ == "SharedValue"


def bytes_of(number: int) -> bytes:
    return number.to_bytes(4, "big") * (LENGTH // 4)


@ciel.task(stream=once, retries=3, lazy=True)
def made(count: int, dies_at: int = -1) -> Iterator[Memory]:
    for number in range(count):
        if number == dies_at and not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield Memory(bytearray(bytes_of(number)))
    Path("written").touch()
"""


def run(folder: Path, program: str, *args: str, slots: int = 2) -> list[str]:
    """What a program of these parts has printed."""
    ended = jobs.run(folder, PARTS + program, *args, options=(f"-j{slots}",))
    assert ended.status == 0, ended.talk
    return ended.lines


READS = """
@ciel.task(retries=3)
def reads(given: Iterable[Memory], dies_at: int = -1) -> tuple[int, bool, int]:
    shared, right = 0, True
    number = -1
    for number, one in enumerate(given):
        if number == dies_at and not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        shared += one.is_shared
        right = right and one.is_that_of(number)
    return number + 1, right, shared


def main(count: str, producer: str = "-1", reader: str = "-1") -> None:
    print(*reads.spawn(made.spawn(int(count), int(producer)).stream(), int(reader)).result())
"""


def test_tasks_share_the_long_values_of_a_direct_stream(tmp_path: Path) -> None:
    """The first one goes through the pipe where it comes before the reader."""
    assert run(tmp_path, READS, "40") in (["40 True 39"], ["40 True 40"])


def test_stream_on_one_slot_is_stored_and_shares_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, READS, "8", slots=1) == ["8 True 0"]


@pytest.mark.parametrize("at", [0, 1, 2, 3, 20, 38])
@pytest.mark.parametrize("who", ["producer", "reader"])
def test_stream_whose_end_is_killed_is_made_again(tmp_path: Path, who: str, at: int) -> None:
    ends = (str(at), "-1") if who == "producer" else ("-1", str(at))
    (found,) = run(tmp_path, READS, "40", *ends)
    assert found.startswith("40 True "), found
    assert (tmp_path / "died").exists()


LEAVES = """
kept = []


@ciel.task
def leaves(given: Iterable[Memory], after: int, keeps: bool) -> bool:
    found = [one for one, _ in zip(given, range(after), strict=False)]
    if keeps:  # also the stream, when its task has ended
        kept.extend((given, found))
    return all(one.is_that_of(number) for number, one in enumerate(found))


def main(after: str, keeps: str) -> None:
    stream = made.spawn(60)
    print(leaves.spawn(stream.stream(), int(after), keeps == "keeps").result())
"""


@pytest.mark.parametrize("after", ["1", "5"])
@pytest.mark.parametrize("keeps", ["keeps", "leaves"])
def test_reader_that_leaves_early_frees_its_producer(
    tmp_path: Path, after: str, keeps: str
) -> None:
    assert run(tmp_path, LEAVES, after, keeps) == ["True"]
    assert (tmp_path / "written").exists()


FORKS = """
@ciel.task
def forks(given: Iterable[Memory]) -> list[int]:
    children = []
    for number, one in enumerate(given):
        if number in (5, 6, 20):
            go, wait = os.pipe()
            child = os.fork()
            if not child:
                os.read(go, 1)  # until the reader has read on
                os._exit(0 if one.is_shared and one.is_that_of(number) else 1)
            children.append((child, wait))
    statuses = []
    for child, wait in children:
        os.write(wait, b"!")
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return statuses


def main() -> None:
    print(forks.spawn(made.spawn(80).stream()).result())
"""


def test_value_does_not_change_for_a_process_that_was_forked(tmp_path: Path) -> None:
    """The memory of a value is the same in a child: what was there at a fork is not used again."""
    assert run(tmp_path, FORKS) == ["[0, 0, 0]"]


COLUMNS = """
def is_shared(address: int) -> bool:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "ciel-values" in line:
            begin, end = (int(word, 16) for word in line.split()[0].split("-"))
            if begin <= address < end:
                return True
    return False


@ciel.task(stream=once, lazy=True)
def arrays(count: int) -> Iterator[object]:
    import numpy
    for number in range(count):
        yield {"number": number, "array": numpy.full((1000, 500), number, "d")}


@ciel.task(stream=once, lazy=True)
def batches(count: int) -> Iterator[object]:
    import pyarrow
    for number in range(count):
        yield pyarrow.record_batch({"n": pyarrow.array([number] * 500_000, pyarrow.int64())})


@ciel.task
def array_sums(given: Iterable[dict[str, object]]) -> tuple[float, int]:
    found = [(one["array"].sum(), is_shared(one["array"].ctypes.data)) for one in given]
    return sum(total for total, _ in found), sum(shared for _, shared in found)


@ciel.task
def batch_sums(given: Iterable[object]) -> tuple[int, int]:
    found = []
    for one in given:
        column = one["n"]
        found.append((column[0].as_py() * len(column), is_shared(column.buffers()[1].address)))
    return sum(total for total, _ in found), sum(shared for _, shared in found)


def main(kind: str) -> None:
    made, sums = (arrays, array_sums) if kind == "numpy" else (batches, batch_sums)
    print(*sums.spawn(made.spawn(12).stream()).result())
"""


@pytest.mark.parametrize(("kind", "total"), [("numpy", "33000000.0"), ("pyarrow", "33000000")])
def test_reader_has_arrays_and_columns_without_a_copy(
    tmp_path: Path, kind: str, total: str
) -> None:
    pytest.importorskip(kind, reason=f"{kind} is not installed")
    assert run(tmp_path, COLUMNS, kind) in ([f"{total} 11"], [f"{total} 12"])
