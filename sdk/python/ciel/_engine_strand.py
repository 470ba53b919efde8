"""The part of a strand that sends requests to the engine: shared by worker strands and sessions.

An `EngineStrand` numbers its actions and handles, packs calls, and stores values, large ones
through files. It knows the requests of the connection, but not how to wait: that is `answer` and
the abstract rest of `Strand`. Read next: `_payload.py`, `_worker.py`, protocol/PROTOCOL.md.
"""

from __future__ import annotations

import io
import json
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from ciel import _native
from ciel._blocks import Blocks
from ciel._call import YIELDS, Call
from ciel._code import Identity, reached_by
from ciel._errors import NonDeterministic, WaitError, error_of
from ciel._faults import explained, not_utf8
from ciel._frames import FORM
from ciel._freeze import object_of, value_of, value_of_file, values_from, values_from_pipe
from ciel._future import Future, Known
from ciel._json_call import with_references
from ciel._locality import weights_of
from ciel._native import Definition, Failed, File, Incoming, Observed, Opened, Pending, Value
from ciel._options import Options
from ciel._payload import OBJECT_BYTES_MIN, Packed, pack
from ciel._reading import STREAMED, Source
from ciel._strand import Strand

if TYPE_CHECKING:
    from ciel._native import Audit, Reference, Result

EXECUTOR = "python"
REQUESTS_FROM = 1 << 16
"""Requests that store objects count from here; those of outputs are their numbers."""

ARGUMENTS_FROM = 1 << 31
"""Parts of an action that hold its arguments count from here; those before are observations."""

DEFINITIONS_MAX = 1024
"""Definitions of tasks of other executors that are kept."""

JOINED_BYTES_MAX = 1 << 14
"""Bytes in pieces that are copied into one: below it a copy costs less than a second call."""

BLOCK_BYTES = 1 << 16
"""Bytes of a stream that are taken at once, if they are there."""

_definitions: dict[tuple[str, str, int, Options], Definition] = {}


def _source(form: str, file: BinaryIO) -> Source:
    return Source(form, file, None, values_from if form == FORM else None)


class EngineStrand(_native.Counted, Strand):
    """A strand that has a connection and a tag.

    `next_action` is the index of its next action, `next_handle` the next handle that it chooses;
    `recorded` are references that were resolved in an earlier attempt. Spawns and `put` are
    actions. Observations are parts of the next action: their number may depend on time, and names
    of tasks must not. `_made_from` is the first handle of what the strand makes. Fields that most
    strands never change are attributes of the class: a start costs less.
    """

    connection: _native.Connection
    recorded: Mapping[int, Reference] = MappingProxyType({})
    _request: int = REQUESTS_FROM
    _functions: dict[Identity, int] | None = None
    _stored: dict[bytes, int] | None = None

    @abstractmethod
    def answer(self, request: int) -> Result:
        """Waits for the answer to a request; raises the failure if it was refused."""

    def path(self, request: int) -> str:
        """Waits for the file that a request opens; returns its path."""
        answer = self.answer(request)
        assert type(answer) is Opened, f"a request for a file was answered by {answer!r}"
        return answer.path

    def tidy(self) -> None:
        """Sends the output of the strand so far, so that it precedes the next message."""

    def act(self) -> int:
        """The index of an action that is sent now."""
        action = self.next_action
        self.next_action = action + 1
        self._observed = self._arguments = 0
        return action

    def observe(self) -> int:
        """The part number of an observation at the next action."""
        part = self._observed
        self._observed = part + 1
        return part

    def spawn(self, call: Call, options: Options) -> tuple[Future[Any], ...]:
        """Spawns a task of Python."""
        return self.spawn_packed(call, options, pack(call, self))

    def spawn_packed(
        self, call: Call, options: Options, packed: Packed
    ) -> tuple[Future[Any], ...]:
        """Spawns a task of Python, of which the payload and the inputs are made."""
        payload, inputs, modes = packed
        self.tidy()
        self.connection.spawn(
            self.tag,
            definition_of(call),
            payload,
            inputs,
            action=self.act(),
            handle=self.next_handle,
            line=call.line,
            modes=modes,
            weights=weights_of(call, inputs, self.handle_of),
            released=self.take_released(),
        )
        count = options.outputs
        if count is None and not self.recorded:
            futures: tuple[Future[Any], ...] = (Future(self, self.take_handle()),)
        else:
            futures = self.futures(1 if count is None else count)
        self.note_spawned()
        return futures

    def note_spawned(self) -> None:
        """A task was spawned, whose futures are made."""

    def tail_spawn(self, call: Call, step: int) -> None:
        """Ends the task: the strand continues as a task of its own, `step` tails from its start."""
        payload, inputs, modes = pack(call, self, step)
        self.tidy()
        self.connection.tail_spawn(
            self.tag,
            definition_of(call),
            payload,
            inputs,
            after=self.next_action,
            line=call.line,
            modes=modes,
            weights=weights_of(call, inputs, self.handle_of),
            audit=self.audit(),
        )

    def audit(self) -> Audit | None:
        """What this strand was seen to do; `None` where nobody watches."""
        return None

    def spawn_executor(
        self, executor: str, arguments: dict[str, Any], outputs: int, options: Options, label: str
    ) -> tuple[Future[Any], ...]:
        """Spawns a task of another executor: JSON in which a future is `{"$ref": i}`."""
        inputs: list[int] = []

        def move(future: Future[Any]) -> dict[str, int]:
            inputs.append(self.handle_of(future))
            return {"$ref": len(inputs) - 1}

        moved = with_references(arguments, move)
        try:
            payload = json.dumps(moved, ensure_ascii=False, allow_nan=False).encode()
        except UnicodeEncodeError as error:
            raise not_utf8(f"arguments of {executor}", error) from None
        except (TypeError, ValueError) as error:
            raise explained(f"arguments of {executor}", arguments, error) from None
        self.tidy()
        self.connection.spawn(
            self.tag,
            _definition_of_executor(executor, label or executor, outputs, options),
            payload,
            inputs,
            action=self.act(),
            handle=self.next_handle,
            line=0,
            released=self.take_released(),
        )
        futures = self.futures(outputs)
        self.note_spawned()
        return futures

    def futures(self, count: int) -> tuple[Future[Any], ...]:
        """The next `count` handles."""
        first = self.next_handle
        self.next_handle = first + count
        known = self.recorded.get
        return tuple([Future(self, h, known(h)) for h in range(first, first + count)])

    def handle_of(self, future: Future[Any]) -> int:
        """The handle of a future of this strand; WaitError for another's."""
        self._check_mine(future)
        return future._handle

    def _check_mine(self, future: Future[Any]) -> None:
        if future._strand is not self:
            raise WaitError(
                f"this future belongs to {future._strand.label} and is used in {self.label}: "
                "pass it as an argument"
            )

    def function_handle(self, identity: Identity) -> int:
        """The object with a function by value; each strand stores it once."""
        if self._functions is None:
            self._functions = {}
        found = self._functions.get(identity)
        if found is None:
            assert identity.data is not None
            found = self._functions[identity] = self._store_argument("pickle", [identity.data])
        return found

    def buffer_handle(self, buffer: Any) -> int:
        """The object with these bytes; each strand stores equal ones once."""
        if self._stored is None:
            self._stored = {}
        name = _native.hash_of(buffer)
        found = self._stored.get(name)
        if found is None:
            found = self._stored[name] = self._store_argument("bytes", [buffer])
        return found

    def _store_argument(self, form: str, pieces: list[Any]) -> int:
        return self.store(form, pieces, (), self.argument_part())

    def argument_part(self) -> int:
        """The part number of an argument of the next action."""
        part = ARGUMENTS_FROM + self._arguments
        self._arguments += 1
        return part

    def put(self, value: Any) -> Future[Any]:
        """Stores a copy of `value`."""
        form, pieces, references = self.frozen("value", value)
        handle = self.store(form, pieces, [self.handle_of(future) for future in references])
        return Future(self, handle, self.recorded.get(handle))

    def store(
        self, form: str, pieces: list[Any], references: Sequence[int], part: int | None = None
    ) -> int:
        """The handle of a new object of `pieces`, which is an action or a part of the next one."""
        request = None
        length = size_of(pieces)
        if length >= OBJECT_BYTES_MIN:
            request = self.next_request()
            self.connection.open_construct(self.tag, request, length)
            write_file(self.path(request), pieces)
        else:
            self.tidy()
        action = self.next_action if part is not None else self.act()
        handle = self.take_handle()
        if request is None:
            self.connection.construct(
                self.tag, joined(pieces), form, references,
                action=action, handle=handle, part=part,
            )  # fmt: skip
        else:
            self.connection.commit(
                self.tag, request, form, references, action=action, handle=handle, part=part
            )
        return handle

    def take_handle(self) -> int:
        """A handle for an object that the strand creates."""
        handle = self.next_handle
        self.next_handle = handle + 1
        return handle

    def next_request(self) -> int:
        """A number that this task has not used."""
        self._request += 1
        return self._request

    @staticmethod
    def frozen(what: str, value: Any) -> tuple[str, list[Any], list[Future[Any]]]:
        """As `object_of`; raises NotSerializable with the path from `what`."""
        try:
            return object_of(value)
        except Exception as error:  # classes of values may raise anything
            raise explained(what, value, error) from None

    def read(self, known: Known) -> Any:
        """The value behind a resolved reference; raises the failure of one that failed."""
        if type(known) is Value:
            return value_of(known.data, known.form, self._inside(known.references))
        if type(known) is File:
            return value_of_file(known.path, known.form, self._inside(known.references))
        assert type(known) is Failed, f"{known!r} is read before it is resolved"
        raise error_of(known.failure)

    def source(self, future: Future[Any]) -> Source:
        """As `result`, but what is in a file stays there; a root reads while it is written.

        What a failed task has written is read before its failure is raised.
        """
        answer = self._opened(future)
        if type(answer) is not Incoming:
            assert not isinstance(answer, (Opened, Observed, Pending)), f"{future!r} is {answer!r}"
            return self.source_of(answer)
        blocks = Blocks(answer.path, self.say_all, lambda given: self._rest_of(future, given))
        form = blocks.form()
        if form in STREAMED:
            return _source(form, io.BufferedReader(blocks, BLOCK_BYTES))
        blocks.close()
        return self.source_of(self.settled(future))

    def _opened(self, future: Future[Any]) -> Result | Known:
        """The stream of a future, or what is known of it when it is resolved."""
        answer = self.open_stream(future) if self.looks_on(future) else None
        if answer is not None and type(answer) is not Pending:
            return answer
        known = self.settled(future)  # this strand may have the slot of who would write
        if type(known) is Failed and self.may_open(future):
            return self.open_stream(future)
        return known

    def looks_on(self, future: Future[Any]) -> bool:
        """Whether this strand reads what is written of a future meanwhile: it has no slot."""
        return False

    def may_open(self, future: Future[Any]) -> bool:
        """Whether the engine can be asked for the stream of a future here."""
        return True

    def open_stream(self, future: Future[Any]) -> Result:
        """Requests what is there of a future, or comes of it."""
        request = self.next_request()
        self.tidy()
        self.connection.open_reference(self.tag, request, self.handle_of(future), False, True)
        return self.answer(request)

    def say_all(self) -> None:
        """Sends all that was said and printed, before a read that may wait."""
        self.tidy()
        self.connection.flush()

    @abstractmethod
    def settled(self, future: Future[Any]) -> Known:
        """Waits for a future; returns what is known of it then."""

    def _rest_of(self, future: Future[Any], given: int) -> BinaryIO:
        """What is left of a stream that has ended, of which so many bytes were read."""
        file = self.source_of(self.settled(future)).file
        length = 0 if file is None else file.seek(0, io.SEEK_END)
        if file is None or length < given:
            raise NonDeterministic(
                f"{given} bytes of a stream were read, and its task was repeated and wrote {length}"
            )
        file.seek(given)
        return file

    def source_of(self, known: Known) -> Source:
        """Where a resolved reference can be read, or one that is being written.

        Raises the failure of one that failed.
        """
        if type(known) is Incoming:
            values = values_from_pipe if known.form == FORM else None
            return Source(known.form, opened_pipe(known.path), None, values)
        if type(known) is File and known.form in STREAMED:
            return _source(known.form, open(known.path, "rb"))
        if type(known) is Value and known.form in STREAMED:
            return _source(known.form, io.BytesIO(known.data))
        return Source.of_value(self.read(known))

    def _inside(self, handles: Sequence[int]) -> Callable[[int], Future[Any]]:
        return lambda number: Future(self, handles[number], self.recorded.get(handles[number]))


def truths(places: bytes, count: int) -> list[bool]:
    """Of `count` places, which are in a JSON list."""
    found = set(json.loads(places))
    return [place in found for place in range(count)]


def definition_of(call: Call) -> Definition:
    """The definition that the spawns of a task in one file share."""
    task = call.task
    found: Definition | None = task.definitions.get(call.file)
    if found is None:
        options = task.options_now
        found = task.definitions[call.file] = Definition(
            EXECUTOR,
            task.label,
            code=reached_by(task),
            file=call.file,
            outputs=options.count,
            options=options.wire,
            streams=[0] if task.gives & YIELDS and options.stream.may_stream else (),
            stream_mode=options.stream.number,
            single_consumer=options.stream.single_consumer,
        )
    return found


def _definition_of_executor(
    executor: str, label: str, outputs: int, options: Options
) -> Definition:
    key = (executor, label, outputs, options)
    found = _definitions.get(key)
    if found is None:
        if len(_definitions) >= DEFINITIONS_MAX:
            _definitions.clear()
        found = _definitions[key] = Definition(
            executor, label, outputs=outputs, options=options.wire
        )
    return found


def size_of(pieces: list[Any]) -> int:
    """Bytes of all pieces together."""
    return sum(piece.nbytes if type(piece) is memoryview else len(piece) for piece in pieces)


def joined(pieces: list[Any]) -> bytes:
    """The pieces, joined."""
    if len(pieces) == 1 and type(pieces[0]) is bytes:
        return pieces[0]
    return b"".join(pieces)


def opened_pipe(path: str) -> BinaryIO:
    """The reading end of a pipe, of which the engine has both: nobody waits for the other side."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return open(descriptor, "rb")


def write_pieces(file: FileIO, pieces: list[Any], at_once: int = sys.maxsize) -> None:
    """Writes all of the pieces, small ones by one call, and no more than that many bytes by one."""
    if len(pieces) > 1 and size_of(pieces) <= JOINED_BYTES_MAX:
        pieces = [joined(pieces)]
    for piece in pieces:
        view = memoryview(piece).cast("B") if not isinstance(piece, memoryview) else piece
        while view:
            view = view[file.write(view[:at_once]) :]


def write_file(path: str, pieces: list[Any]) -> None:
    """Writes the pieces over whatever is in the file that the engine has opened.

    To empty it first would give back its pages, which are the cost of a long value.
    """
    with open(path, "r+b", buffering=0) as file:
        write_pieces(file, pieces)
        file.truncate()
