"""A strand of a worker: one task, from its start to its last word.

The strand decodes its payload, runs the function, and says what comes of it. It waits by parking:
the hub runs others meanwhile. When the task is run again, what was recorded is answered from the
recording and everything is said once more. How strands take turns is not known here. Read next:
`_hub.py`, `_speaking.py`, "Replay" in protocol/PROTOCOL.md.
"""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ciel import _native
from ciel._advice import advise
from ciel._code import code_hash, find, function_of, identify, identity_of, load_file
from ciel._elision import ArgumentFailed, Elision, outputs_of
from ciel._errors import (
    Cancelled,
    Refused,
    WaitError,
    call_text,
    error_of,
    failure_of,
)
from ciel._freeze import ATOMS, freezing, object_of
from ciel._future import Future, Known
from ciel._inputs import answer_in_words, changed, question_in_words
from ciel._native import Answer, Cancel, Failed, File, Observation, Observed, Pending, Value
from ciel._payload import BY_VALUE, MANY, OBJECT_BYTES_MIN, Unpacked, arguments_now, filled
from ciel._random import tell_seed
from ciel._speaking import Speaker, joined, size_of, write_file
from ciel._strand import Call, check_may_wait, here
from ciel._task import Tail

if TYPE_CHECKING:
    from greenlet import greenlet

    from ciel._hub import Hub
    from ciel._native import Failure, Output, Reference, Result, Start
    from ciel._surroundings import Changed

IN_PLACE_S = 0.010
"""A tail runs in place while its task is younger than this; then it is said, so that little is
lost with a worker."""

KEEP_AS_SAID, KEEP_END = 0, 3

_clock = time.monotonic


class WorkerStrand(Speaker):
    """The task that a `start` tells of."""

    replaying: bool = False
    where: greenlet | None = None
    aside: Changed | None = None
    ended: bool = False
    _many: bool = False
    _observations: deque[Observation] | None = None
    _call: tuple[str, tuple[Any, ...], dict[str, Any]] = ("", (), {})
    _given: dict[int, Future[Any]] | None = None

    def __init__(self, hub: Hub, start: Start) -> None:
        """Nothing of the task has run yet."""
        self._payload = start.payload
        self._inputs = inputs = start.inputs
        self._outputs = start.outputs
        self.label = start.label
        super().__init__(hub.connection, start.tag, len(inputs))
        self.hub = hub
        self.position = start.position
        self.cores = start.cores
        self.pure = start.options.pure is True
        self.pieces: list[bytes] = []
        self.errors: list[bytes] = []
        self._begun = _clock()
        replay = start.replay
        if replay is not None:
            self.replaying = True
            self.recorded = {one.handle: one for one in replay.references if one.is_resolved}
            self._observations = deque(replay.observations)

    def run(self) -> None:
        """Runs the task and says how it ended; never raises."""
        try:
            if self._payload[:1] == b"{":
                self._run_json(json.loads(self._payload))
            else:
                self._run_python(Unpacked(self._payload))
        except ArgumentFailed as error:
            self._say_error(error.failure)
        except BaseException as error:  # what leaves a task is its failure, whatever it is
            self._fail(error)
        self.ended = True

    def _run_python(self, payload: Unpacked) -> None:
        self.step = payload.step
        self._many = payload.flags & MANY != 0
        function = self._function(payload)
        args, kwargs = payload.arguments(self, len(self._inputs))
        self._call = (function.__name__, args, kwargs)
        value = function(*args, **kwargs)
        if type(value) is Tail:
            self._go_on(value)
        else:
            self._finish(value)

    def _function(self, payload: Unpacked) -> Callable[..., Any]:
        if not payload.flags & BY_VALUE:
            return self.hub.function(payload.header)
        known = self._input(0)
        key = known.path if type(known) is File else self.raw(0)
        function = self.hub.function_by_value(key, lambda: bytes(self.raw(0)))
        self._functions = {identity_of(function, self.label): 0}
        return function

    def _go_on(self, tail: Tail) -> None:
        """Runs tails in place while that is allowed, then says tailSpawn or the end."""
        value: Any = tail
        while type(value) is Tail:
            call = value.take()
            self.step += 1
            if not self._may_run_here(call):
                self.hub.check_forked(None)
                self._check_asked()
                self.tail_spawn(call, self.step)
                return
            self.new_step()
            task = call.task
            identity = task.identity or identify(task)
            if identity.globals or identity.cells:
                identity.check()
            args, kwargs = arguments_now(call, self._argument)
            self._call = (task.label, args, kwargs)
            self._many = task.options_now.outputs is not None
            value = task.function(*args, **kwargs)
        self._finish(value)

    def new_step(self) -> None:
        """The seed is another one now."""
        self.generator = None
        tell_seed(self.seed)

    def _may_run_here(self, call: Call) -> bool:
        options = call.task.options_now
        if options.wire is not None or options.count != self._outputs:
            return False
        if self.pure or not self.replaying and _clock() - self._begun > IN_PLACE_S:
            return False  # what follows a pure task is pure only if it says so itself
        for part in call.args:
            if type(part) is Future and part._known is None:
                return False
        for part in call.kwargs.values():
            if type(part) is Future and part._known is None:
                return False
        return True

    def _argument(self, future: Future[Any]) -> Any:
        known = future._known or self._wait_one(future)
        if type(known) is Failed:
            raise ArgumentFailed(known.failure)
        return self.read(known)

    def _finish(self, value: Any) -> None:
        """Says the outputs: small ones with the exit, large ones through files."""
        hub = self.hub
        if hub.forked:
            hub.check_forked(None)
        if type(value) in ATOMS and not self._many:
            form, pieces, _ = object_of(value)
            data = pieces[0]
            if len(data) < OBJECT_BYTES_MIN:
                self._exit([(0, data, form, ())])
                return
        outputs = outputs_of(value, self._outputs) if self._many else [("result", value)]
        said: list[Output] = []
        for number, (what, part) in enumerate(outputs):
            form, pieces, references = self.frozen(what, part)
            handles = [self.handle_of(future) for future in references] if references else ()
            if size_of(pieces) < OBJECT_BYTES_MIN:
                said.append((number, joined(pieces), form, handles))
            else:
                self._write_output(number, form, pieces, handles)
        self._exit(said)

    def _write_output(
        self, number: int, form: str, pieces: list[Any], handles: Sequence[int]
    ) -> None:
        self.connection.open_output(self.tag, number, number)
        write_file(self.path(number), pieces)
        self.connection.commit(self.tag, number, form, handles)

    def _exit(self, said: list[Output]) -> None:
        if self._observations:
            self._check_asked()
        self.tidy()
        self.hub.note_end(self)
        self.connection.exit(self.tag, said, KEEP_END if self.hub.used_up else KEEP_AS_SAID)

    def _fail(self, error: BaseException) -> None:
        self.hub.check_forked(error)
        if not isinstance(error, Cancelled):
            self._keep_evidence()
        name, args, kwargs = self._call
        text = call_text(name, args, kwargs) if name else ""
        self._say_error(failure_of(error, self.label, text))

    def _keep_evidence(self) -> None:
        from ciel._evidence import keep

        found: list[Known] = list(self._inputs)
        for number, future in (self._given or {}).items():
            found[number] = future._known or found[number]
        keep(self.label, self._payload, found, self.position, self.cores)

    def _say_error(self, failure: Failure) -> None:
        self.tidy()
        self.hub.note_end(self)
        self.connection.error(self.tag, failure)

    def _run_json(self, wanted: dict[str, Any]) -> None:
        """A root, `{"main": path, "args": [...]}`, or a call from another language."""
        if "main" in wanted:
            value = self._run_root(wanted["main"], wanted.get("args", []))
            return self._exit([(0, json_of(value), "json", ())])
        module, _, name = wanted["function"].rpartition(":")
        function = function_of(find(module, name))
        args = filled(wanted.get("args", []), self.value)
        kwargs = filled(wanted.get("kwargs", {}), self.value)
        self._call = (name, tuple(args), kwargs)
        value = function(*args, **kwargs)
        while type(value) is Tail:
            call = value.take()
            args_now, kwargs = arguments_now(call, self._argument)
            value = call.task.function(*args_now, **kwargs)
        self._finish_json(value)

    def _run_root(self, path: str, args: list[str]) -> Any:
        sys.argv = [path, *args]
        main = getattr(load_file(path), "main", None)
        if main is None:
            raise Refused(f"{path} has no function main", hint="the root task is main(*ARGS)")
        root = function_of(main)
        advise(root, code_hash(root))
        self._call = ("main", tuple(args), {})
        if self.hub.serial:
            return Elision(outer=self).run(root, *args)
        value = root(*args)
        while type(value) is Tail:
            call = value.take()
            self.step += 1
            self.new_step()
            args_now, kwargs = arguments_now(call, self._argument)
            value = call.task.function(*args_now, **kwargs)
        return value

    def _finish_json(self, value: Any) -> None:
        """Other languages read JSON, bytes and text; what is none of these stays a pickle."""
        parts = [value] if self._outputs == 1 else [v for _, v in outputs_of(value, self._outputs)]
        said: list[Output] = []
        for number, part in enumerate(parts):
            form, pieces, references = self.frozen("result", part)
            data = joined(pieces) if form != "pickle" else None
            if data is None and not references:
                try:
                    data, form = json.dumps(part).encode(), "json"
                except (TypeError, ValueError):
                    data = joined(pieces)
            handles = [self.handle_of(future) for future in references]
            if data is not None and len(data) < OBJECT_BYTES_MIN:
                said.append((number, data, form, handles))
            else:
                self._write_output(number, form, pieces if data is None else [data], handles)
        self._exit(said)

    def value(self, number: int) -> Any:
        """The value of an input; raises ArgumentFailed if its task failed."""
        return self.read(self._input(number))

    def future(self, number: int) -> Future[Any]:
        """The future of an input."""
        known = self._inputs[number]
        made: Future[Any] = Future(
            self, number, known if known.is_resolved else self.recorded.get(number)
        )
        if self._given is None:
            self._given = {}
        self._given[number] = made
        return made

    def raw(self, number: int) -> Any:
        """The bytes of an input, read-only."""
        known = self._input(number)
        if type(known) is Value:
            return known.data
        assert type(known) is File, f"input {number} of {self.label} is {known!r}"
        with open(known.path, "rb", buffering=0) as file:
            return memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))

    def _input(self, number: int) -> Known:
        known: Known = self._inputs[number]
        if type(known) is Pending:
            known = self._wait_one(self.future(number))
        if type(known) is Failed:
            raise ArgumentFailed(known.failure)
        return known

    def result(self, future: Future[Any]) -> Any:
        """Waits by parking; also on other threads, if the result is there."""
        running = here.strand
        if running is not self and running is not None:
            future._check_here()
        known = future._known
        if known is None:
            known = self._wait_one(future)
        future._waited = True
        return self.read(known)

    def _wait_one(self, future: Future[Any]) -> Known:
        known = future._known
        if known is None:
            handle = future._handle
            for answer in self._block([handle], False, None):
                if answer.handle == handle:
                    known = answer
            if known is None:
                raise WaitError(f"the engine resumed {self.label} without what it waited for")
            future._known = known
        return known

    def _block(
        self, handles: list[int], first: bool, timeout_ms: int | None
    ) -> list[Reference]:
        """Parks this strand until the engine resumes it; gives what it waited for."""
        if here.strand is not self:
            where = here.strand.label if here.strand is not None else "a thread of its own"
            raise WaitError(f"{self.label} cannot wait in {where}: wait in the task itself")
        if freezing.number is not None:
            raise WaitError("a task cannot wait while a value is being pickled")
        check_may_wait()
        if self.hub.forked:
            raise WaitError(f"a process forked in {self.label} must not use ciel: wait in the task")
        self.tidy()
        self.connection.block(self.tag, handles, first, timeout_ms)
        self.replaying = False
        return self.hub.park(self).references

    def wait(
        self, futures: Sequence[Future[Any]], count_first: bool, timeout_s: float | None
    ) -> list[Future[Any]]:
        """As `Strand.wait`; a timeout is asked of the engine, so that it can be replayed."""
        for future in futures:
            self.handle_of(future)
        if not count_first and timeout_s is None:
            return self._wait_all(futures)
        there = [future for future in futures if future._waited]
        missing = [future for future in futures if not future._waited]
        deadline = None if timeout_s is None else _clock() + timeout_s
        while missing and not (count_first and there):
            left = None if deadline is None else max(0, round((deadline - _clock()) * 1000))
            arrived = self._wait_first(missing, left)
            if not arrived:
                break
            for future in arrived:
                future._waited = True
            there += arrived
            missing = [future for future in missing if not future._waited]
        return [future for future in futures if future._waited]

    def _wait_all(self, futures: Sequence[Future[Any]]) -> list[Future[Any]]:
        missing = {future._handle: None for future in futures if future._known is None}
        if missing:
            answers = {answer.handle: answer for answer in self._block([*missing], False, None)}
            for future in futures:
                if future._known is None:
                    future._known = answers.get(future._handle)
        for future in futures:
            future._waited = True
        return list(futures)

    def _wait_first(
        self, futures: list[Future[Any]], timeout_ms: int | None
    ) -> list[Future[Any]]:
        """Those that came first, as recorded or as the engine says; none after a timeout."""
        if self._observations:
            observed = self._next_observation("first", "timeout")
            if observed.kind == "timeout":
                return []
            return [futures[index] for index in json.loads(observed.value)]
        answers = self._block([future._handle for future in futures], True, timeout_ms)
        found = {answer.handle: answer for answer in answers if answer.is_resolved}
        arrived = [future for future in futures if future._handle in found]
        for future in arrived:
            future._known = found[future._handle]
        return arrived

    def done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Asks the engine, which records the answer."""
        handles = [self.handle_of(future) for future in futures]
        if self._observations:
            return [bool(part) for part in json.loads(self._next_observation("done").value)]
        self.tidy()
        request = self.next_request()
        self.connection.ask(self.tag, request, "done", handles)
        answer = self.answer(request)
        assert type(answer) is Observed, f"a question was answered by {answer!r}"
        return [bool(part) for part in json.loads(answer.value)]

    def input(self, kind: str, take: Callable[[], bytes]) -> bytes:
        """What was recorded, or what is taken now."""
        if self._observations:
            return self._next_observation(kind).value
        if self.hub.forked:
            raise WaitError(f"a process forked in {self.label} must not use ciel: ask in the task")
        taken = take()
        self.tidy()
        self.connection.observe(self.tag, kind, taken)
        return taken

    def _next_observation(self, kind: str, *others: str) -> Observation:
        assert self._observations, "the caller has looked"
        found = self._observations.popleft()
        if found.kind != kind and found.kind not in others:
            before = answer_in_words(found.kind, found.value)
            raise changed(self.label, question_in_words(kind), before)
        return found

    def _check_asked(self) -> None:
        """A replay that ends must have asked all that was asked before."""
        if self._observations:
            first = self._observations[0]
            before = answer_in_words(first.kind, first.value)
            raise changed(self.label, "nothing more", before)

    def answer(self, request: int) -> Result:
        """Waits for the answer, with this strand still at its turn."""
        while True:
            message = self.hub.receive()
            if type(message) is Answer and message.tag == self.tag and message.request == request:
                result = message.result
                if isinstance(result, _native.Failure):
                    raise error_of(result)
                return result
            if type(message) is Cancel and message.tag == self.tag:
                raise Cancelled("the task was cancelled")
            self.hub.put_off(message)

    def tidy(self) -> None:
        """Sends what was printed, and what commands have written to descriptor 1."""
        captured = self.hub.captured.take()
        if captured:
            self.pieces.append(captured)
        if self.pieces or self.errors:
            self.hub.send(self)


def json_of(value: Any) -> bytes:
    """JSON of the job's value; what JSON cannot say stands as its repr."""
    try:
        return json.dumps(value, default=repr).encode()
    except (TypeError, ValueError):  # keys that are no text, or a circle
        return json.dumps(repr(value)).encode()
