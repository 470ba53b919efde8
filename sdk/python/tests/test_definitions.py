"""Definitions of tasks over a socket pair: when they are sent, and with which bytes."""

from __future__ import annotations

import pytest
from test_native import Wire, read_frame, tag_from, vector, wire

from ciel._native import Definition, TaskOptions

__all__ = ["wire"]


def test_definition_is_sent_once_and_before_its_first_spawn(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    lazy = Definition("wordfreq", "", options=TaskOptions(lazy=True))
    for action in range(2):
        connection.spawn(tag, lazy, b"", [], action=action, handle=action, line=0)
    connection.tail_spawn(tag, lazy, b'{"do":"collatz"}', [], after=3, line=0)
    connection.flush()
    assert read_frame(engine) == vector("worker-define-lazy")
    assert [len(read_frame(engine)) for _ in range(2)] == [10, 14]
    assert read_frame(engine) == vector("worker-tail-spawn")


def test_many_definitions_use_their_ids_again(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    for number in range(4097):
        definition = Definition("python", "f")
        connection.spawn(tag, definition, b"", [], action=number, handle=0, line=0)
        connection.flush()
        frames = [read_frame(engine) for _ in range(2)]
        if number == 0:
            first = frames[0]
    assert frames[0] == first, "an id of 0 is left out"


def test_spawn_has_the_bytes_of_its_tasks(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    for number in range(3):
        definition = Definition("python", str(number))
        connection.spawn(tag, definition, b"", [], action=number, handle=number, line=0)
    third, fourth = Definition("python", "fib"), Definition("wordfreq", "piece")
    connection.spawn(tag, third, b"\x80\x05", [1], action=4, handle=7, line=12)
    payload = b'{"do":"piece"}'
    connection.spawn(tag, fourth, payload, [1 << 31], action=5, handle=8, line=0, modes=[1])
    connection.flush()
    frames = [read_frame(engine) for _ in range(10)]
    golden = vector("worker-spawn")
    for frame, action in ((frames[7], 4), (frames[9], 5)):
        # The tag, the kind with its length, and then the task; action and handle come last.
        task = frame[8:-4]
        assert task in golden
        assert frame[-4:] == bytes([0x10, action, 0x18, action + 3])


def test_spawn_has_the_handles_that_are_used_no_more(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    for number in range(4):
        definition = Definition("python", str(number))
        released = [7, 8] if number == 3 else []
        connection.spawn(
            tag, definition, b"\x80\x05", [9], action=6, handle=10, line=12, released=released
        )
    connection.flush()
    assert [read_frame(engine) for _ in range(8)][-1] == vector("worker-spawn-released")


def test_options_of_a_definition_are_all_sent(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    options = TaskOptions(1500, 1 << 30, {"gpu": 1000}, 0, 5000, False, False, True)
    definition = Definition(
        "python",
        "fib",
        code=[("fib", "job.py", 3, b"\x01"), ("helper", "", 0, b"\x02")],
        file="job.py",
        outputs=2,
        options=options,
    )
    connection.spawn(tag, definition, b"p", [1], action=0, handle=1, line=12)
    connection.flush()
    golden = vector("worker-define")
    # As in the vector, but for its id.
    assert golden[golden.index(b"*\x06job.py") :] in read_frame(engine)


@pytest.mark.parametrize(
    ("name", "mode", "single"),
    [("worker-define-streams", 0, False), ("worker-define-stream-mode", 6, True)],
)
def test_outputs_that_are_streams_are_sent(
    wire: Wire, name: str, mode: int, single: bool
) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    definition = Definition(
        "python", "numbers", outputs=2, streams=[1], stream_mode=mode, single_consumer=single
    )
    for number in range(5):
        one = definition if number == 4 else Definition("python", f"other{number}", outputs=2)
        connection.spawn(tag, one, b"", [], action=number, handle=2 * number, line=0)
    connection.flush()
    assert vector(name) in [read_frame(engine) for _ in range(10)]


@pytest.mark.parametrize(("keep", "name"), [(True, "keep"), (False, "keep-never")])
def test_whether_results_are_kept_is_sent(wire: Wire, keep: bool, name: str) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    options = TaskOptions(keep=keep)
    assert options.keep is keep
    for number in range(6):
        label = "roll" if number == 5 else "fib"
        definition = Definition("python", label, options=options)
        connection.spawn(tag, definition, b"", [], action=number, handle=number, line=0)
    connection.flush()
    assert vector(f"worker-define-{name}") in [read_frame(engine) for _ in range(12)]


def test_what_a_task_was_seen_to_do_is_sent_with_its_successor(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    seen: tuple[list[str], list[tuple[str, int, bytes]]]
    seen = ([], [("/srv/table.csv", 4096, bytes(range(32)))])
    again = Definition("wordfreq", "")
    connection.tail_spawn(tag, again, b'{"do":"collatz"}', [], after=3, line=0, audit=seen)
    connection.flush()
    assert [read_frame(engine), read_frame(engine)][-1] == vector("worker-tail-spawn-audit")
