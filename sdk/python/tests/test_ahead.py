"""Prefetched starts, over a socket pair: which follows which, and which are returned.

It writes the few messages that it needs by hand, as `protocol/executor.proto` numbers their fields.
Read next: "Prefetched starts" in PROTOCOL.md. """

import socket
from collections.abc import Iterator

import pytest
from test_native import DEADLINE_S, heard, read_frame, vector

from ciel._native import Connection, Failure, Resume, Shutdown, Start, Value

KEEP_AS_SAID, KEEP_END = 0, 2
POSITION = bytes(16)

# Longer than any test: a limit that is never reached, however busy the machine is.
NEVER_S = 3600.0
LONG_TURN_S = 0.001

Awaited = tuple[int, int, int]


def number(value: int) -> bytes:
    """A variable-length number, which fields of up to 14 bits need."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])


def field(place: int, data: bytes) -> bytes:
    return number(place << 3 | 2) + number(len(data)) + data


def plain(place: int, value: int) -> bytes:
    return number(place << 3) + number(value) if value else b""


def message(tag: int, place: int, body: bytes) -> bytes:
    whole = plain(1, tag) + field(place, body)
    return len(whole).to_bytes(4, "big") + whole


def start(tag: int, before: int | None = None, awaited: tuple[Awaited, ...] = ()) -> bytes:
    """A start; `awaited` are input, tag of the task that makes it, number of its output."""
    inputs = [plain(1, at) + field(2, b"") for at in range(2)]
    body = plain(1, 3) + field(2, b"work") + b"".join(field(3, one) for one in inputs)
    body += field(4, POSITION)
    if before is not None:
        each = [plain(1, at) + plain(2, maker) + plain(3, out) for at, maker, out in awaited]
        body += field(11, plain(1, before) + b"".join(field(2, one) for one in each))
    return message(tag, 4, body)


class Worker:
    """A connection, the engine's end of it, and the task that has its turn."""

    def __init__(self, long_turn_s: float = NEVER_S, alone_s: float = NEVER_S) -> None:
        """Nothing was said yet. No limit of time is ever reached unless it is given."""
        self.engine, worker = socket.socketpair()
        self.engine.settimeout(DEADLINE_S)
        self.connection = Connection(
            worker.detach(), long_turn_s=long_turn_s, alone_s=alone_s
        )
        self.tag: int
        self.inputs: list[bytes | None] = []
        self.tell(vector("engine-define"))

    def tell(self, *messages: bytes) -> None:
        """The engine says something."""
        self.engine.sendall(b"".join(messages))

    def begin(self) -> None:
        """The next task begins."""
        found = heard(self.connection)
        assert isinstance(found, Start)
        self.tag = found.tag
        self.inputs = [one.data if isinstance(one, Value) else None for one in found.inputs]

    def exit(self, text: bytes = b"done", output: int = 0, keep: int = KEEP_AS_SAID) -> int | None:
        """The task ends; gives the tag of the start that follows, if one does."""
        return self.exit_with([(output, text, "text", [])], keep)

    def exit_with(self, outputs: list[tuple[int, bytes, str, list[int]]], keep: int) -> int | None:
        """As `exit`, with any outputs."""
        self.connection.exit(self.tag, outputs, keep)
        self.connection.flush()
        return next_of(read_frame(self.engine))


def next_of(frame: bytes) -> int | None:
    """The number in field 3 of an exit, which is its last."""
    whole = frame.endswith(b"text")
    return None if whole or frame[-2] != 3 << 3 else frame[-1]


@pytest.fixture
def worker() -> Iterator[Worker]:
    """No turn is long, and it may continue without the engine for ever."""
    made = Worker()
    with made.engine:
        yield made


@pytest.fixture
def watched() -> Iterator[Worker]:
    """Each turn is found long, sooner or later."""
    made = Worker(long_turn_s=LONG_TURN_S)
    with made.engine:
        yield made


@pytest.fixture
def obedient() -> Iterator[Worker]:
    """It may not continue without the engine at all."""
    made = Worker(alone_s=0.0)
    with made.engine:
        yield made


def quiet(worker: Worker) -> bool:
    """Whether there is nothing to begin; a word that is on its way has come by then."""
    worker.tell(vector("engine-shutdown"))
    return heard(worker.connection) == Shutdown([])


def test_vectors_of_what_follows_are_heard_and_said(worker: Worker) -> None:
    worker.tell(start(7), vector("engine-start-ahead"))
    worker.begin()
    worker.connection.exit(worker.tag, [(0, b"2", "json", [])], KEEP_AS_SAID)
    worker.connection.flush()
    assert read_frame(worker.engine) == vector("worker-exit-next")
    worker.begin()
    assert worker.inputs == [b"1", b"2"]


def test_vector_of_what_is_given_back_is_said_while_a_task_takes_long(watched: Worker) -> None:
    watched.tell(start(7), vector("engine-start-ahead"), start(9, 8))
    watched.begin()
    assert read_frame(watched.engine) == vector("worker-give-back")
    assert watched.exit() is None
    assert quiet(watched)


def test_start_that_comes_while_a_task_takes_long_is_given_back_too(watched: Worker) -> None:
    watched.tell(start(7), vector("engine-start-ahead"))
    watched.begin()
    read_frame(watched.engine)
    for _ in range(3):
        watched.tell(vector("engine-start-ahead"), start(9, 8))
        found = read_frame(watched.engine)
        if found != vector("worker-give-back"):  # the second came a moment later
            assert found[-1] == 8 and read_frame(watched.engine)[-1] == 9
    assert watched.exit() is None


def test_chain_goes_on_with_the_outputs_of_all_before(worker: Worker) -> None:
    worker.tell(
        start(1), start(2, 1, ((0, 1, 0),)), start(3, 2, ((0, 1, 0), (1, 2, 0))), start(4, 3)
    )
    worker.begin()
    assert worker.inputs == [None, None]
    assert worker.exit(b"one") == 2
    worker.begin()
    assert worker.inputs == [b"one", None]
    assert worker.exit(b"two") == 3
    worker.begin()
    assert worker.inputs == [b"one", b"two"]
    assert worker.exit(b"three") == 4
    worker.begin()
    assert worker.exit(b"four") is None
    assert quiet(worker)


@pytest.mark.parametrize(
    "outputs",
    [[], [(1, b"other", "text", [])], [(0, b"held", "text", [5])]],
    ids=["none", "another", "with a reference inside"],
)
def test_task_without_the_awaited_value_is_not_followed(
    worker: Worker, outputs: list[tuple[int, bytes, str, list[int]]]
) -> None:
    worker.tell(start(1), start(2, 1, ((0, 1, 0),)))
    worker.begin()
    worker.connection.exit(worker.tag, outputs, KEEP_AS_SAID)
    assert quiet(worker)


def test_task_that_has_blocked_is_not_followed(worker: Worker) -> None:
    worker.tell(start(1), start(2, 1))
    worker.begin()
    worker.connection.block(worker.tag, [0], 0, None, after=0)
    resume = message(1, 5, b"")
    worker.tell(start(3, 1), resume)
    assert isinstance(heard(worker.connection), Resume)
    read_frame(worker.engine)
    assert worker.exit() is None
    assert quiet(worker)


def test_worker_that_is_used_up_goes_on_with_nothing(worker: Worker) -> None:
    worker.tell(start(1), start(2, 1))
    worker.begin()
    worker.connection.exit(worker.tag, [], KEEP_END)
    assert quiet(worker)


def test_task_that_fails_is_not_followed(worker: Worker) -> None:
    worker.tell(start(1), start(2, 1))
    worker.begin()
    failure = Failure("TASK_ERROR", "python", "KeyError", "'tea'", [], "", None, None, "", "")
    worker.connection.error(worker.tag, failure)
    assert quiet(worker)


def test_start_is_not_begun_behind_another_task(worker: Worker) -> None:
    worker.tell(start(1), start(2, 5))
    worker.begin()
    assert worker.exit() is None
    assert quiet(worker)


def test_oldest_of_very_many_starts_are_dropped(worker: Worker) -> None:
    worker.tell(start(1), *[start(place + 1, place) for place in range(1, 1001)])
    worker.begin()
    assert worker.exit() is None
    assert quiet(worker)


def test_engine_has_its_say_after_some_time(obedient: Worker) -> None:
    """Once a clock of the machine decided here, and a busy machine failed the tests of chains."""
    obedient.tell(start(1), start(2, 1))
    obedient.begin()
    assert obedient.exit() is None
    assert quiet(obedient)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_limit_that_is_no_time_is_refused(seconds: float) -> None:
    engine, worker = socket.socketpair()
    with engine, worker:
        for limit in ("long_turn_s", "alone_s"):
            with pytest.raises(ValueError, match="s: "):
                Connection(worker.fileno(), **{limit: seconds})
