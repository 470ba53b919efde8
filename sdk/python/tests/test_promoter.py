"""Spawns that are kept: when they are sent, by whom, and as which messages."""

from __future__ import annotations

import ctypes
import mmap
import platform
import select
import socket
import struct
from pathlib import Path

import pytest
from conditions import until

from ciel._native import Connection, Definition, Promoter, Start
from test_native import POSITION, Wire, heard, read_frame, tag_from, vector, wire

__all__ = ["wire"]

SHARED = struct.Struct("=QII 8x")
"""The number of idle cores, the bell, the count of those who listen; what wakes idle workers."""

def _cores(idle: int, cores: int) -> bytes:
    """The file of the engine: so many idle cores that nobody has claimed, of so many."""
    return SHARED.pack(idle << 48 | idle << 32 | cores << 16, 0, 0)


IDLE, BUSY = (_cores(idle, 0xFFFF) for idle in (1, 0))
"""One idle core, and none. Of so many cores no child runs for long in place, whoever is delayed."""

BELL_AT = 8
FUTEX_WAKE = 1
FUTEX_OF = {"x86_64": 202, "aarch64": 98}
FUTEX = FUTEX_OF.get(platform.machine(), 0)
"""The number of the system call."""

THREE_TASKS = b"\x0a\x00" b"\x0a\x02\x08\x01" b"\x0a\x02\x08\x02"
"""The tasks of one spawn, of definitions 0, 1 and 2, each without bytes."""

TWO_TASKS = b"\x0a\x00" b"\x0a\x00"

INSIDE, DEEPER = POSITION, b"\1" * len(POSITION)


def _promoter(
    connection: Connection, folder: Path, idle: bytes, beat_s: float = 0.0005
) -> tuple[Promoter, Path]:
    path = folder / "idle"
    path.write_bytes(idle)
    return Promoter(connection, str(path), beat_s=beat_s), path


def _set(path: Path, idle: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(idle[:BELL_AT])


def _fib() -> Definition:
    return Definition("python", "fib")


def _is_silent(engine: socket.socket) -> bool:
    return not select.select([engine], [], [], 0.02)[0]


def test_kept_spawn_is_sent_when_its_task_settles(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, _ = _promoter(connection, tmp_path, BUSY)
    for action in range(3):
        promoter.keep(tag, _fib(), b"", action, action, 0)
    for _ in range(3):
        read_frame(engine)  # the definitions
    assert _is_silent(engine)
    promoter.settle(tag)
    connection.spawn(tag, _fib(), b"", [], action=3, handle=3, line=0)
    connection.flush()
    assert THREE_TASKS in read_frame(engine)
    read_frame(engine)  # a definition
    assert _action(read_frame(engine)) == 3
    promoter.settle(tag)
    connection.flush()
    assert _is_silent(engine)


def test_spawn_that_is_taken_back_is_not_sent_until_it_is_kept_again(
    wire: Wire, tmp_path: Path
) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, BUSY)
    fib = _fib()
    promoter.keep(tag, fib, b"", 1, 1, 0, [3, 4])
    read_frame(engine)  # the definition
    assert not promoter.withdraw(tag, 2), "another child"
    assert promoter.withdraw(tag, 1)
    assert not promoter.withdraw(tag, 1), "it is not kept"
    _set(path, IDLE)
    promoter.settle(tag)
    connection.flush()
    assert _is_silent(engine), "nothing is kept"
    promoter.keep(tag, fib, b"", 1, 1, 0, [3, 4])
    frame = read_frame(engine)
    assert _action(frame) == 1
    assert b"\x08\x03" in frame and b"\x08\x04" in frame, "handles of its inputs"
    assert not promoter.withdraw(tag, 1), "it is a task"


def test_child_that_became_a_task_while_it_was_called_has_not_ended_in_place(
    wire: Wire, tmp_path: Path
) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, _ = _promoter(connection, tmp_path, BUSY, beat_s=60)
    for number in range(3):
        promoter.keep(tag, _fib(), b"", number, number, 0)
        promoter.begin_call(tag, number)
        if number == 1:
            promoter.settle(tag)
        assert promoter.end_call(number != 2) is (number == 0)
    assert not promoter.withdraw(tag, 1), "it is a task"
    assert promoter.withdraw(tag, 2), "it has not ended"


def test_spawn_whose_call_has_begun_is_not_taken_back(wire: Wire, tmp_path: Path) -> None:
    tag = tag_from(wire)
    promoter, _ = _promoter(wire[0], tmp_path, BUSY, beat_s=60)
    promoter.keep(tag, _fib(), b"", 0, 0, 0)
    promoter.begin_call(tag, 0)
    assert not promoter.withdraw(tag, 0)
    assert promoter.end_call(True)


def test_child_that_keeps_children_has_not_ended_in_place(wire: Wire, tmp_path: Path) -> None:
    """Its own children would be lost."""
    tag = tag_from(wire)
    promoter, _ = _promoter(wire[0], tmp_path, BUSY, beat_s=60)
    promoter.keep(tag, _fib(), b"", 0, 0, 0)
    assert promoter.enter(tag, 0, 1, INSIDE)
    promoter.keep(0, _fib(), b"", 1, 0, 0)
    assert not promoter.leave(INSIDE)
    assert promoter.enter(0, 0, 2, DEEPER)
    assert promoter.leave(DEEPER)
    assert promoter.leave(INSIDE)


def _action(frame: bytes) -> int:
    """The action of a spawn whose last fields are action and handle, below 128 and not 0."""
    body = frame[frame.index(b"\x2a") :]
    return body[body.index(b"\x10", 4) + 1] if b"\x10" in body[4:] else 0


def test_spawn_of_what_runs_in_place_has_its_bytes(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, _ = _promoter(connection, tmp_path, BUSY, beat_s=60)
    for number in range(3):
        promoter.keep(tag, Definition("python", str(number)), b"", number, number, 0)
    for number in range(3):
        assert promoter.enter(tag, number, 3, INSIDE)
        assert promoter.leave(INSIDE)
    promoter.keep(tag, _fib(), b"\x80\x05", 6, 10, 12)
    assert promoter.enter(tag, 10, 7, INSIDE)
    promoter.give_slot(INSIDE)
    promoter.give_slot(INSIDE)
    connection.flush()
    frames = [read_frame(engine) for _ in range(6)]
    assert frames[4] == vector("worker-spawn-begun")
    assert b"\x0a" in frames[5], "its parent waits for it"
    assert _is_silent(engine)
    assert not promoter.leave(INSIDE), "it is a task"


def test_children_become_tasks_while_a_core_is_idle(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, BUSY)
    promoter.keep(tag, _fib(), b"", 1, 1, 0)
    read_frame(engine)
    assert _is_silent(engine)
    _set(path, IDLE)
    assert _action(read_frame(engine)) == 1
    assert not promoter.enter(tag, 1, 2, INSIDE), "it is a task"


def _await_listener(path: Path) -> None:
    """It listens as soon as the children are two beats old."""
    until(lambda: SHARED.unpack(path.read_bytes())[2] == 1)


def _await_claim(path: Path) -> None:
    until(lambda: SHARED.unpack(path.read_bytes())[0] >> 32 == 1 << 16)


def _ring(path: Path) -> None:
    """As the engine does: the bell changes, and who waits for that wakes up."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), SHARED.size) as shared:
        number, bell, listeners = SHARED.unpack(shared[:])
        assert listeners == 1
        shared[: SHARED.size] = SHARED.pack(number, bell + 1, listeners)
        at = ctypes.addressof(ctypes.c_char.from_buffer(shared, BELL_AT))
        ctypes.CDLL(None).syscall(FUTEX, ctypes.c_void_p(at), FUTEX_WAKE, 1)


@pytest.mark.skipif(platform.machine() not in FUTEX_OF, reason="the number of futex is not known")
def test_children_become_tasks_at_once_when_the_bell_rings(wire: Wire, tmp_path: Path) -> None:
    """An idle core waited for half a heartbeat, and for as long again until its task began."""
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, BUSY, beat_s=0.5)
    for number in range(1, 20):
        promoter.keep(tag, _fib(), b"", 1, number, 0)
        if number == 1:
            read_frame(engine)  # the definition
        _await_listener(path)
        before = promoter.beats()
        _set(path, IDLE)
        _ring(path)
        read_frame(engine)
        if promoter.beats() == before:
            return
        _set(path, BUSY)
    pytest.fail("it became a task at a heartbeat each time")


@pytest.mark.skipif(platform.machine() not in FUTEX_OF, reason="the number of futex is not known")
def test_siblings_become_tasks_when_a_short_one_ends_in_place(wire: Wire, tmp_path: Path) -> None:
    """It became a task, too, and its strand waited for it, and sent all that it kept."""
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, BUSY, beat_s=0.5)
    fib = _fib()
    for handle in range(1, 60, 3):
        for number in range(3):
            promoter.keep(tag, fib, b"", handle + number, handle + number, 0)
        if handle == 1:
            read_frame(engine)  # the definition
        _await_listener(path)
        before = promoter.beats()
        assert promoter.enter(tag, handle, handle + 3, INSIDE)
        _set(path, IDLE)
        _ring(path)
        _await_claim(path)
        is_left = promoter.leave(INSIDE)
        if promoter.beats() == before:
            assert is_left, "it is no task"
            assert TWO_TASKS in read_frame(engine)
            read_frame(engine)  # one has ended in place
            assert _is_silent(engine), "nobody waits"
            return
        promoter.forget()
        connection.write(tag, 0, b"a line\n", 3)
        while read_frame(engine) != vector("worker-write"):
            pass
        _set(path, BUSY)
    pytest.fail("a heartbeat came between each time")


def test_one_that_runs_in_place_alone_is_sent_once_it_has_run_for_long(
    wire: Wire, tmp_path: Path
) -> None:
    """An idle core has no use for it; but its result is to be recorded."""
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, _cores(0, 1), beat_s=0.01)
    promoter.keep(tag, _fib(), b"", 1, 1, 0)
    before = promoter.beats()
    assert promoter.enter(tag, 1, 2, INSIDE)
    _set(path, _cores(1, 1))
    read_frame(engine)  # the definition
    assert _action(read_frame(engine)) == 1
    assert promoter.beats() - before > 10
    read_frame(engine)  # the task waits
    assert not promoter.leave(INSIDE), "it is a task"


def test_inner_children_become_tasks_after_the_outer_ones(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, BUSY)
    promoter.keep(tag, _fib(), b"", 1, 1, 0)
    assert promoter.enter(tag, 1, 2, INSIDE)
    promoter.keep(0, _fib(), b"", 3, 1, 0)
    promoter.keep(0, _fib(), b"", 4, 2, 0)
    assert promoter.enter(0, 1, 5, DEEPER)
    for _ in range(3):
        read_frame(engine)
    _set(path, IDLE)
    assert _action(read_frame(engine)) == 1
    read_frame(engine)  # the task waits
    assert _is_silent(engine), "the tag of the inner task is not known"
    engine.sendall(vector("engine-define") + vector("engine-start-position"))
    assert [_action(read_frame(engine)) for _ in range(2)] == [3, 4]
    read_frame(engine)
    start = heard(connection)
    assert type(start) is Start and start.position == INSIDE
    promoter.name(INSIDE, start.tag)
    assert not promoter.leave(INSIDE)
    assert not promoter.leave(DEEPER)


def test_cancelled_strand_keeps_nothing(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, BUSY)
    promoter.keep(tag, _fib(), b"", 1, 1, 0)
    promoter.forget()
    _set(path, IDLE)
    read_frame(engine)
    assert _is_silent(engine)
    promoter.settle(tag)
    connection.flush()
    assert _is_silent(engine)


def test_file_that_cannot_be_mapped_is_refused(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"\1")
    for name in ("missing", "short"):
        with pytest.raises(OSError):
            Promoter(wire[0], str(tmp_path / name))
    with pytest.raises(ValueError):
        Promoter(wire[0], beat_s=-1.0)


def test_children_that_ended_in_place_are_counted_once(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, _ = _promoter(connection, tmp_path, BUSY)
    fib = _fib()
    for number in range(3):
        promoter.keep(tag, fib, b"", number, number, 0)
        assert promoter.enter(tag, number, number + 1, INSIDE)
        assert promoter.leave(INSIDE)
    promoter.count_ended()
    promoter.count_ended()
    connection.flush()
    read_frame(engine)  # the definition
    calls = b"\x0a\x02\x10\x03"  # three of definition 0
    assert read_frame(engine).endswith(b"\xa2\x01" + bytes([len(calls)]) + calls)
    assert _is_silent(engine)


def test_children_that_follow_one_another_are_one_message(wire: Wire, tmp_path: Path) -> None:
    """An action between them, as of a child that ended in place, ends a range."""
    connection, engine = wire
    tag = tag_from(wire)
    promoter, _ = _promoter(connection, tmp_path, BUSY, beat_s=60)
    fib = _fib()
    for action in (2, 3, 4, 6, 7):
        promoter.keep(tag, fib, b"", action, action, 0)
    promoter.settle(tag)
    connection.flush()
    read_frame(engine)  # the definition
    first, second = read_frame(engine), read_frame(engine)
    assert first.endswith(3 * b"\x0a\x00" + b"\x10\x02\x18\x02")
    assert second.endswith(2 * b"\x0a\x00" + b"\x10\x06\x18\x06")
    assert _is_silent(engine)


def test_range_of_long_calls_is_several_messages(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, _ = _promoter(connection, tmp_path, BUSY, beat_s=60)
    fib = _fib()
    for action in range(1, 4):
        promoter.keep(tag, fib, bytes(30_000), action, action, 0)
    promoter.settle(tag)
    connection.flush()
    read_frame(engine)  # the definition
    assert len(read_frame(engine)) > 60_000
    assert 30_000 < len(read_frame(engine)) < 60_000
    assert _is_silent(engine)


def test_idle_core_is_claimed_by_one_worker(wire: Wire, tmp_path: Path) -> None:
    """One idle core made children of every worker that kept some into tasks."""
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, IDLE)
    promoter.keep(tag, _fib(), b"", 1, 1, 0)
    read_frame(engine)  # the definition
    assert _action(read_frame(engine)) == 1
    number, _, _ = SHARED.unpack(path.read_bytes())
    assert number >> 32 == 1 << 16, "one core is idle, and claimed"


def test_core_that_was_claimed_in_vain_is_for_others_again(wire: Wire, tmp_path: Path) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    promoter, path = _promoter(connection, tmp_path, BUSY)
    promoter.keep(tag, _fib(), b"", 1, 1, 0)
    assert promoter.enter(tag, 1, 2, INSIDE)
    promoter.keep(0, _fib(), b"", 3, 1, 0)
    _set(path, IDLE)
    for _ in range(2):
        read_frame(engine)  # the definitions
    assert _action(read_frame(engine)) == 1, "it goes before its child"
    read_frame(engine)  # the task waits
    promoter.forget()
    until(lambda: SHARED.unpack(path.read_bytes())[0] >> 32 == 0x10001)
