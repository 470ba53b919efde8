"""The native half over a socket pair: golden vectors, waiting, ends, bad input.

What is said is compared with the bytes of `protocol/vectors`, so it knows no other codec.
"""

import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ciel._native import (
    Answer,
    Cancel,
    Connection,
    Definition,
    Drop,
    Failed,
    Failure,
    File,
    Frame,
    Hello,
    Incoming,
    Observation,
    Observed,
    Opened,
    Pending,
    Recording,
    Refusal,
    Resume,
    Shutdown,
    Start,
    TaskOptions,
    Value,
    open_shared,
    tell_caches,
    tell_shared,
)

if TYPE_CHECKING:
    from ciel._native import Message

VECTORS = Path(__file__).resolve().parents[3] / "protocol" / "vectors"
AHEAD = {"engine-start-ahead", "worker-exit-next", "worker-give-back"}  # see test_ahead.py
# Longest wait for what must come, in seconds.
DEADLINE_S = 20.0

Wire = tuple[Connection, socket.socket]


def vector(name: str) -> bytes:
    text = (VECTORS / f"{name}.json").read_text(encoding="utf-8")
    return bytes.fromhex(json.loads(text)["bytes"])


def names_of(sender: str) -> set[str]:
    return {path.stem for path in VECTORS.glob(f"{sender}-*.json")} - AHEAD


@pytest.fixture
def wire() -> Iterator[Wire]:
    engine, worker = socket.socketpair()
    engine.settimeout(DEADLINE_S)
    connection = Connection(worker.detach())
    with engine:
        yield connection, engine


def heard(connection: Connection) -> "Message":
    message = connection.receive()
    assert message is not None
    return message


def tag_from(wire: Wire) -> int:
    connection, engine = wire
    engine.sendall(vector("engine-cancel"))
    message = heard(connection)
    assert isinstance(message, Cancel) and isinstance(message.tag, int)
    return message.tag


def read_exactly(engine: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = engine.recv(count - len(data))
        assert piece, f"the end came after {data!r}"
        data += piece
    return data


def read_frame(engine: socket.socket) -> bytes:
    prefix = read_exactly(engine, 4)
    return prefix + read_exactly(engine, int.from_bytes(prefix, "big"))


EXCEPTION = ("pickle", b"\x80\x05N.")
SAID: dict[str, Callable[[Connection, int], None]] = {
    "worker-block-on-first": lambda c, tag: c.block(tag, [3, 4], 1, 250, after=3, part=1),
    "worker-block-on-later": lambda c, tag: c.block(tag, [2], 3, None, after=3),
    "worker-block-on-parked": lambda c, tag: c.block(tag, (2, 3), 1, 1000, after=3),
    "worker-block-on-released": lambda c, tag: c.block(
        tag, [10], 0, None, after=7, released=[9]
    ),
    "worker-block-on-rest": lambda c, tag: c.block(tag, [], 2, None, after=4),
    "worker-caches": lambda c, _: tell_caches(
        c,
        ["/run/objects/5f1c0a52b5bd4b6f8d1f1f6d2c9e1b07"],
        ["/run/objects/0c9e1b075f1c0a52b5bd4b6f8d1f1f6d"],
    ),
    "worker-commit": lambda c, tag: c.commit(tag, 3, "pickle", [0, 2], action=2, handle=5),
    "worker-construct": lambda c, tag: c.construct(
        tag, b'[{"$ref":0}]', "json", [1 << 31], action=2, handle=5, part=0
    ),
    "worker-construct-own-form": lambda c, tag: c.construct(
        tag, b"\xac\xed", "java", (), action=0, handle=1
    ),
    "worker-construct-text": lambda c, tag: c.construct(
        tag, "té".encode(), "text", (), action=2, handle=5
    ),
    "worker-error-not-retryable": lambda c, tag: c.error(
        tag, Failure("TASK_ERROR", "python", "KeyError", "'tea'", [], "", False, EXCEPTION, "", "")
    ),
    "worker-exit-as-committed": lambda c, tag: c.exit(tag, [], 0),
    "worker-exit-audit": lambda c, tag: c.exit(
        tag,
        [],
        0,
        (
            ["opened /srv/results.txt for writing at job.py:12"],
            [("/srv/table.csv", 4096, bytes(range(32)))],
        ),
    ),
    "worker-exit-audit-empty": lambda c, tag: c.exit(tag, [], 0, ([], [])),
    "worker-exit-used-up": lambda c, tag: c.exit(tag, [(0, b"1", "json", [])], 2),
    "worker-exit": lambda c, tag: c.exit(tag, [(0, b'"done"', "json", [])], 1),
    "worker-log": lambda c, tag: c.log(tag, 2, "slow disk"),
    "worker-observe": lambda c, tag: c.observe(
        tag, "clock", b"1700000000.5", action=3, part=1
    ),
    "worker-observe-question": lambda c, tag: c.ask(
        tag, 4, "done", [1, 2], action=3, part=0
    ),
    "worker-open-construct": lambda c, tag: c.open_construct(tag, 3),
    "worker-open-construct-length": lambda c, tag: c.open_construct(tag, 3, 1 << 20),
    "worker-open-output": lambda c, tag: c.open_output(tag, 2, 0),
    "worker-open-output-form": lambda c, tag: c.open_output(tag, 2, 1, "frames"),
    "worker-open-shared": lambda c, tag: open_shared(c, tag, 4, 1 << 20),
    "worker-open-reference": lambda c, tag: c.open_reference(tag, 1, 1 << 31, False),
    "worker-open-reference-as-stream": lambda c, tag: c.open_reference(tag, 6, 2, False, True),
    "worker-open-reference-must-block": lambda c, tag: c.open_reference(tag, 6, 2, True),
    "worker-stream-shared": lambda c, tag: tell_shared(c, tag, 1, 209_715_200),
    "worker-write": lambda c, tag: c.write(tag, 0, b"a line\n", 3),
    "worker-write-file": lambda c, tag: c.write_file(tag, "/home/you/log", b"a line\n", 3),
    "worker-write-stderr": lambda c, tag: c.write(tag, 1, b"\xff\x00", 3),
}
NOT_SAID = {
    "worker-block-on-no-time": "waits by replay",
    "worker-block-on-replay": "waits by replay",
    "worker-block-on-saved": "waits by a saved strand",
    "worker-construct-typed": "has the type of a value",
    "worker-define": "is sent with a spawn, see test_definitions.py",
    "worker-define-keep": "is sent with a spawn, see test_definitions.py",
    "worker-define-keep-never": "is sent with a spawn, see test_definitions.py",
    "worker-define-lazy": "is sent with a spawn, see below",
    "worker-define-stream-mode": "is sent with a spawn, see test_definitions.py",
    "worker-define-streams": "is sent with a spawn, see test_definitions.py",
    "worker-ended-in-place": "counts what ran in place, see test_promoter.py",
    "worker-error": "has the column of a call",
    "worker-hello": "has the identity of loaded code",
    "worker-hello-length-of-a-brace": "has no pool",
    "worker-hello-slots": "has slots; a Python process runs one task at a time",
    "worker-pong": "is said inside, see below",
    "worker-publish": "is for executors that give outputs early",
    "worker-spawn": "has two tasks, see below",
    "worker-spawn-begun": "is said of what runs in place, see test_promoter.py",
    "worker-spawn-locality": "follows a definition, see test_locality.py",
    "worker-spawn-released": "follows a definition, see below",
    "worker-tail-spawn": "follows a definition, see below",
    "worker-tail-spawn-audit": "follows a definition, see test_definitions.py",
}


def test_vectors_of_workers_are_said_or_have_their_reason() -> None:
    assert SAID.keys() | NOT_SAID.keys() == names_of("worker")
    assert not SAID.keys() & NOT_SAID.keys()


@pytest.mark.parametrize("name", sorted(SAID))
def test_verb_said_gives_the_bytes_of_its_vector(wire: Wire, name: str) -> None:
    connection, engine = wire
    SAID[name](connection, tag_from(wire))
    connection.flush()
    assert read_frame(engine) == vector(name)


def test_hello_said_names_executor_features_and_pool(wire: Wire) -> None:
    connection, engine = wire
    connection.hello("ciel 0.1.0", "cpython-313", "python", ["parked"], True, 1000)
    connection.flush()
    golden = vector("worker-hello")
    # As in the vector, without the identity of code at its end.
    length = len(golden) - 4 - 4
    expected = length.to_bytes(4, "big") + golden[4:5] + bytes([golden[5] - 4]) + golden[6:-4]
    assert read_frame(engine) == expected


REFUSED = Failure("REFUSED", "", "", "there is no handle 9", [], "", None, None, "", "")
FAILED = Failure(
    "TASK_ERROR", "", "ValueError", "négatif", [], "", None, None, "f@3f9c12ab", ""
)
TOLD = Failure(
    "TASK_ERROR",
    "python",
    "ValueError",
    "négatif",
    [Frame("job.py", 7, "root", "x = f(-1)")],
    "",
    True,
    EXCEPTION,
    "root@3f9c12ab",
    "",
)
CANCELLED = Failure("CANCELLED", "", "", "cancelled", [], "", None, None, "fib@3f9c12ab", "")
FILE = File(1, "/run/objects/ab", 4096, "pickle", (1 << 31,))
TEXT = Value(4, "té".encode(), "text", ())
SEVEN = Value(0, b"7", "json", ())
POSITION = bytes.fromhex("3f9c12ab000102030405060708090a0b")
OPTIONS = TaskOptions(cores_milli=1000, retries=2, pure=True)
SEED = int.from_bytes(POSITION[8:])
COUNT = (1, "count@3f9c12ab", SEED)
SAME = 0
"""Stands below for the tag of the message."""
STREAMED: list[Pending | Incoming | Value | File | Failed] = [
    Incoming(0, "/run/scratch/3.input.0", "frames")
]
# What is heard of each vector.
HEARD: dict[str, "Message"] = {
    "engine-answer-error": Answer(SAME, 6, Failed(2, TOLD)),
    "engine-answer-observed": Answer(SAME, 4, Observed(b"[true,false]")),
    "engine-answer-opened": Answer(SAME, 2, Opened("/run/scratch/1/output")),
    "engine-answer-reference": Answer(SAME, 1, Value(1 << 31, b"7", "json", ())),
    "engine-answer-refused": Answer(SAME, 5, REFUSED),
    "engine-cancel": Cancel(SAME, 1000),
    "engine-drop": Drop(SAME),
    "engine-hello": Hello("ciel 0.1.0", ["parked"]),
    "engine-refusal": Refusal(
        "this worker speaks protocol 9", "install the executor that came with this ciel"
    ),
    "engine-resume": Resume(SAME, [FILE], False),
    "engine-resume-first": Resume(SAME, [TEXT], False),
    "engine-resume-timed-out": Resume(SAME, [], True),
    "engine-shutdown": Shutdown([]),
    "engine-shutdown-failures": Shutdown([FAILED]),
    "engine-start": Start(
        SAME, b'{"do":"count"}', [SEVEN, FILE, Pending(2), Failed(3, CANCELLED)], *COUNT,
        POSITION, 0, 4, 1, None, OPTIONS,
    ),  # fmt: skip
    "engine-start-position": Start(
        *(SAME, b"\x01\x02", [], 1, "count@a90f12ab", SEED, POSITION, 4, 0, 1, None, OPTIONS),
    ),
    "engine-start-replay": Start(
        SAME, b'{"do":"count"}', [SEVEN], *COUNT, POSITION, 0, 1, 1,
        Recording(
            [FILE], [Observation("clock", b"1700000000.5"), Observation("first", b"")], [], 0
        ),
        OPTIONS,
    ),  # fmt: skip
    "engine-start-replay-first": Start(
        *(SAME, b"\x01\x02", [], *COUNT, POSITION, 0, 0, 1),
        Recording([], [Observation("first", b"[1]"), Observation("timeout", b"[]")], [], 0),
        OPTIONS,
    ),
    "engine-start-replay-rest": Start(
        *(SAME, b"\x01\x02", [], *COUNT, POSITION, 0, 0, 1),
        Recording([], [Observation("first", b"[1]"), Observation("rest", b"[2]")], [], 0),
        OPTIONS,
    ),
    "engine-start-replay-spawned": Start(
        *(SAME, b"\x80\x05", [], *COUNT, POSITION, 0, 0, 1), Recording([], [], [2, 5, 300], 301),
        OPTIONS,
    ),  # fmt: skip
    "engine-start-stream": Start(
        *(SAME, b"", STREAMED, *COUNT, POSITION, 0, 1, 1),
        *(None, OPTIONS),
    ),
}
NOT_HEARD = {
    "engine-define": "is kept for the starts that name it",
    "engine-ping": "is answered inside, see below",
    "engine-start-saved": "has a saved strand, see below",
    "engine-start-saved-timed-out": "has a saved strand, see below",
}


def test_vectors_of_the_engine_are_heard_or_have_their_reason() -> None:
    assert HEARD.keys() | NOT_HEARD.keys() == names_of("engine")


@pytest.mark.parametrize("name", sorted(HEARD))
def test_vector_of_the_engine_gives_its_message(wire: Wire, name: str) -> None:
    connection, engine = wire
    engine.sendall(vector("engine-define") + vector(name))
    message, expected = heard(connection), HEARD[name]
    assert type(message) is type(expected)
    fields = type(message).__match_args__
    assert ("tag" in fields) == (name.split("-")[1] not in ("hello", "refusal", "shutdown"))
    for field in fields:
        found = getattr(message, field)
        assert found == 3 if field == "tag" else found == getattr(expected, field)


@pytest.mark.parametrize("name", ["engine-start-saved", "engine-start-saved-timed-out"])
def test_saved_strand_is_refused_with_a_reason(wire: Wire, name: str) -> None:
    connection, engine = wire
    engine.sendall(vector(name) + vector("engine-shutdown"))
    with pytest.raises(RuntimeError, match="no worker has saved"):
        connection.receive()
    assert connection.receive() == Shutdown([])


def test_ping_among_messages_is_answered_and_not_heard(wire: Wire) -> None:
    connection, engine = wire
    engine.sendall(vector("engine-ping") + vector("engine-shutdown"))
    assert connection.receive() == Shutdown([])
    connection.flush()
    assert read_frame(engine) == vector("worker-pong")


def test_start_of_an_unknown_definition_is_refused(wire: Wire) -> None:
    connection, engine = wire
    engine.sendall(vector("engine-start") + vector("engine-shutdown"))
    with pytest.raises(RuntimeError, match="definition"):
        connection.receive()
    assert connection.receive() == Shutdown([])


def test_engine_of_another_protocol_is_refused(wire: Wire) -> None:
    """A worker of the old number would read tags as other fields."""
    connection, engine = wire
    engine.sendall(vector("engine-hello").replace(b"\x08\x02", b"\x08\x01", 1))
    with pytest.raises(RuntimeError, match="speaks protocol 1, this module 2"):
        connection.receive()


def test_messages_cut_anywhere_come_whole_and_in_order(wire: Wire) -> None:
    connection, engine = wire
    names = ("define", "start", "cancel", "shutdown")
    stream = b"".join(vector(f"engine-{name}") for name in names)

    def send() -> None:
        for at in range(len(stream)):
            engine.sendall(stream[at : at + 1])

    sender = threading.Thread(target=send)
    sender.start()
    assert [type(heard(connection)) for _ in range(3)] == [Start, Cancel, Shutdown]
    sender.join()


def test_poll_tells_whether_receive_would_wait(wire: Wire) -> None:
    connection, engine = wire
    assert not connection.poll()
    engine.sendall(vector("engine-ping"))
    assert not connection.poll()
    engine.sendall(vector("engine-drop") * 2)
    assert connection.poll()
    assert isinstance(heard(connection), Drop)
    assert connection.poll()
    assert isinstance(heard(connection), Drop)
    assert not connection.poll()
    engine.close()
    assert connection.poll()
    assert connection.receive() is None


def test_message_said_leaves_without_a_flush(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    for _ in range(3):
        connection.write(tag, 0, b"a line\n", 3)
        assert read_frame(engine) == vector("worker-write")


def test_last_word_leaves_before_the_next_message_is_heard(wire: Wire) -> None:
    """No thread sends last words: a message that had come already must not hold them back."""
    connection, engine = wire
    tag = tag_from(wire)
    engine.sendall(vector("engine-cancel") * 2)
    heard(connection)
    connection.exit(tag, [], 0)
    heard(connection)
    assert read_frame(engine) == vector("worker-exit-as-committed")


def test_last_word_leaves_while_another_thread_receives(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    receiver = threading.Thread(target=lambda: heard(connection))
    receiver.start()
    connection.exit(tag, [], 0)
    assert read_frame(engine) == vector("worker-exit-as-committed")
    engine.sendall(vector("engine-cancel"))
    receiver.join(DEADLINE_S)
    assert not receiver.is_alive()


def test_message_after_long_silence_leaves_too(wire: Wire) -> None:
    """The thread that sends goes to sleep when nothing is said; a message must wake it."""
    connection, engine = wire
    tag = tag_from(wire)
    for _ in range(50):
        connection.write(tag, 0, b"a line\n", 3)
        assert read_frame(engine) == vector("worker-write")
        engine.settimeout(0.003)
        with pytest.raises(TimeoutError):
            engine.recv(1)
        engine.settimeout(DEADLINE_S)


def test_more_than_the_socket_holds_comes_whole_and_in_order(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    pieces = [bytes([index % 251]) * 50_000 for index in range(200)]
    frames: list[bytes] = []

    def read() -> None:
        frames.extend(read_frame(engine) for _ in pieces)

    reader = threading.Thread(target=read)
    reader.start()
    for piece in pieces:
        connection.write(tag, 0, piece, 0)
    connection.flush()
    reader.join()
    assert all(frame.endswith(piece) for frame, piece in zip(frames, pieces, strict=True))


def test_verbs_of_many_threads_come_whole(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    count = 500

    def say() -> None:
        for _ in range(count):
            connection.write(tag, 0, b"a line\n", 3)

    threads = [threading.Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    connection.flush()
    assert {read_frame(engine) for _ in range(4 * count)} == {vector("worker-write")}
    for thread in threads:
        thread.join()


def test_engine_that_has_gone_is_no_error(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    engine.close()
    for _ in range(1000):
        connection.write(tag, 0, b"x" * 10_000, 0)
    connection.flush()
    assert connection.receive() is None
    assert connection.receive() is None


def test_end_inside_a_message_is_the_end(wire: Wire) -> None:
    connection, engine = wire
    engine.sendall(vector("engine-drop") + vector("engine-start")[:-1])
    engine.close()
    assert isinstance(heard(connection), Drop)
    assert connection.receive() is None


def test_bytes_that_are_no_message_raise_every_time(wire: Wire) -> None:
    connection, engine = wire
    engine.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="HTTP/1.1"):
            connection.receive()


def test_close_by_another_thread_ends_the_wait(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    results: list[Message | None] = []
    receiver = threading.Thread(target=lambda: results.append(connection.receive()))
    receiver.start()
    connection.write(tag, 0, b"a line\n", 3)
    connection.close()
    receiver.join(DEADLINE_S)
    assert results == [None]
    assert read_frame(engine) == vector("worker-write")
    assert engine.recv(1) == b""
    connection.write(tag, 0, b"lost", 0)
    connection.close()


def test_connection_let_go_sends_what_was_said_and_closes() -> None:
    engine, worker = socket.socketpair()
    engine.settimeout(DEADLINE_S)
    connection = Connection(worker.detach())
    tag = tag_from((connection, engine))
    connection.write(tag, 0, b"a line\n", 3)
    del connection
    with engine:
        assert read_frame(engine) == vector("worker-write")
        assert engine.recv(1) == b""


class Alarm(Exception):
    """Raised by a signal handler."""


def test_signal_during_a_wait_runs_its_handler(wire: Wire) -> None:
    connection, engine = wire
    rings: list[int] = []

    def ring(number: int, _frame: object) -> None:
        rings.append(number)
        if len(rings) == 2:
            raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        with pytest.raises(Alarm):
            connection.receive()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    engine.sendall(vector("engine-drop"))
    assert isinstance(heard(connection), Drop)


PLAIN = Definition("python", "f")
NO_FRAME = Failure(
    "REFUSED", "", "", "", [7], "", None, None, "", ""  # type: ignore[list-item]
)
BAD: list[tuple[type[Exception], Callable[[Connection, Any], None]]] = [
    (TypeError, lambda c, tag: c.write("no tag", 0, b"", 0)),  # type: ignore[arg-type]
    (TypeError, lambda c, tag: c.write(tag, 0, "text", 0)),  # type: ignore[arg-type]
    (ValueError, lambda c, tag: c.write(tag, 2, b"", 0)),
    (ValueError, lambda c, tag: c.log(tag, 9, "")),
    (ValueError, lambda c, tag: c.exit(tag, [], 9)),
    (OverflowError, lambda c, tag: c.block(tag, [-1], 0, None, after=0)),
    (OverflowError, lambda c, tag: c.block(tag, [1 << 32], 0, None, after=0)),
    (TypeError, lambda c, tag: c.block(tag, 7, 0, None, after=0)),  # type: ignore[arg-type]
    (ValueError, lambda c, tag: c.block(tag, [], 4, None, after=0)),
    (
        ValueError,
        lambda c, tag: c.spawn(tag, PLAIN, b"", [1], action=0, handle=0, line=0, modes=[]),
    ),
    (
        TypeError,
        lambda c, tag: c.spawn(
            tag, "f", b"", [], action=0, handle=0, line=0  # type: ignore[arg-type]
        ),
    ),
    (
        OverflowError,
        lambda c, tag: c.construct(tag, b"", "bytes", [], action=-1, handle=0),
    ),
    (
        ValueError,
        lambda c, tag: c.error(tag, Failure("NO_KIND", "", "", "", [], "", None, None, "", "")),
    ),
    (
        TypeError,
        lambda c, tag: c.error(tag, NO_FRAME),
    ),
    (UnicodeEncodeError, lambda c, tag: c.log(tag, 0, "\ud800")),
    (ValueError, lambda c, tag: c.write(tag, 0, bytes(64 << 20), 0)),
]


@pytest.mark.parametrize(("error", "act"), BAD)
def test_bad_argument_raises_and_nothing_is_said(
    wire: Wire, error: type[Exception], act: Callable[[Connection, Any], None]
) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    with pytest.raises(error):
        act(connection, tag)
    connection.write(tag, 0, b"a line\n", 3)
    frames = [read_frame(engine)]
    if b"python" in frames[0]:  # the definition is sent before the spawn is looked at
        frames = [read_frame(engine)]
    assert frames == [vector("worker-write")]
