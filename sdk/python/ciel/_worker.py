"""A strand of a worker: one task, from its start to its last message.

The strand decodes its payload, runs the function, and sends its outputs; a call from another
language is JSON, and so are its outputs. `_waiting_strand.py` knows how a strand waits,
`_scheduler.py` how strands take turns. Read next: `_worker_process.py`, `_payload.py`.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ciel._atoms import ATOMS
from ciel._call import JOINED, MANY, YIELDS, Call, is_written
from ciel._code import code_hash, find, function_of, identity_of, load_job
from ciel._contexts import leave_context
from ciel._engine_strand import joined, size_of, write_file, write_pieces
from ciel._errors import ORIGIN, Cancelled, Refused, failure_of
from ciel._frames import FORM as FRAMES
from ciel._frames import passed
from ciel._freeze import FrozenObject, mapping_of, object_of
from ciel._future import Future, Known
from ciel._json_call import json_of, with_values
from ciel._native import (
    Failed,
    File,
    Incoming,
    Pending,
    SharedWriter,
    Value,
    open_shared,
    plain_call,
    tell_shared,
)
from ciel._once import relieve
from ciel._output import BUFFER_BYTES, PIPED_BYTES_MAX, Counted, check_written, writing_to
from ciel._payload import BY_VALUE, OBJECT_BYTES_MIN, Unpacked
from ciel._reading import Reading
from ciel._raised import Raised
from ciel._root import as_plain, exit_failure, status_of
from ciel._task import AnyTask, last_value
from ciel._task_strand import HANDED_ON, ArgumentFailed, check_outputs, encoded, outputs_of
from ciel._keeping_strand import KeepingProcess, KeepingStrand
from ciel._warnings import advise

if TYPE_CHECKING:
    from greenlet import greenlet

    from ciel._native import Failure, Output, Start

IN_PLACE_S = 0.010
"""A tail runs in place while its task is younger than this; later it becomes a task of its own, so
that a lost worker loses little."""

KEEP_AS_SAID, KEEP_END = 0, 2

Begun = tuple[Callable[..., Any], tuple[Any, ...], "dict[str, Any]"]
"""A call that has begun natively: its function, its arguments, and those that have names."""

_clock = time.monotonic


class WorkerStrand(KeepingStrand):
    """The task of a `Start`."""

    _given: dict[int, Future[Any]] | None = None
    _answers_json: bool = False
    _takes_streams: bool = False

    def __init__(self, process: KeepingProcess, start: Start) -> None:
        """Runs nothing of the task yet."""
        super().__init__(process, start)
        self._payload = start.payload
        self._inputs = start.inputs
        self._outputs = start.outputs
        self._memory_bytes = start.options.memory_bytes
        self._begun = _clock()

    def run(self) -> greenlet | None:
        """Runs the task and sends how it ended; never raises. Home continues then."""
        relieve(self._memory_bytes)
        try:
            plain = plain_call(self._payload, self._inputs)
            if plain is not None:
                self._run_plain(*plain)
            elif self._payload[:1] == b"{":
                self._run_json(json.loads(self._payload))
            else:
                self._run_python(Unpacked(self._payload))
        except BaseException as error:  # any exception of a task is its failure
            self._fail(error)
        self.ended = True
        return None

    def note_task(self, begun: Begun, elapsed_s: float) -> None:
        """The task has begun natively, that long ago."""
        self.function, args, kwargs = begun
        self._call = (self.function.__name__, args, kwargs)
        self._begun -= elapsed_s

    def end_begun(self, value: Any) -> None:
        """Ends a task that has begun natively with what its function gave or `Raised`; as `run`."""
        if type(value) is Raised:
            self._fail(value.error)
            value.forget()
        else:
            self._end_with(value)
        self.ended = True

    def _end_with(self, value: Any) -> None:
        try:
            value = last_value(value, self._run_step)
            if value is not HANDED_ON:
                self._finish(value)
        except BaseException as error:  # any exception of a task is its failure
            self._fail(error)

    def _run_plain(
        self, header: bytes, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        function = self.process.function(header)
        value = self.run_call(function.__name__, function, args, kwargs)
        if value is not HANDED_ON:
            self._finish(value)

    def _run_python(self, payload: Unpacked) -> None:
        self.step = payload.step
        self.gives = payload.flags & (MANY | YIELDS | JOINED)
        self.many = self.gives & MANY != 0
        function = self._function(payload)
        args, kwargs = payload.arguments(self, len(self._inputs))
        if is_written(function, self.gives):
            return self._write_output_of(function, args, kwargs)
        value = self.run_call(function.__name__, function, args, kwargs)
        if self.gives & YIELDS:
            self._write_stream(value, joined=self.gives & JOINED != 0)
        elif value is not HANDED_ON:
            self._finish(value)

    def _write_output_of(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Runs a function that writes its output, to those who read it."""
        self.connection.open_output(self.tag, 0, 0, "bytes")
        # Opened by number: what has a name writes that, such as gzip.
        pipe = Counted(os.open(self.path(0), os.O_WRONLY | os.O_CLOEXEC), "wb")
        with pipe, writing_to(io.BufferedWriter(pipe, BUFFER_BYTES)):
            value = self.run_call(function.__name__, function, args, kwargs)
            check_written(value, function.__qualname__)
        self.process.check_forked(None)
        self._exit([])

    def _write_stream(self, pieces: Generator[Any, Any, Any], joined: bool) -> None:
        """Runs a generator and writes what it yields, at once, to those who read it."""
        self.connection.open_output(self.tag, 0, 0, "bytes" if joined else FRAMES)
        with open(self.path(0), "wb", buffering=0) as pipe:
            shared = None if joined else SharedWriter(pipe.fileno(), self._memory)
            for part in encoded(pieces, joined):
                self.process.check_forked(None)
                part = part if shared is None else passed(part, shared)
                write_pieces(pipe, part, PIPED_BYTES_MAX)
        if shared is not None and shared.shared_bytes > 0:
            tell_shared(self.connection, self.tag, 0, shared.shared_bytes)
        self._exit([])

    def _memory(self, length: int) -> str | None:
        """The path of memory in which four values of so many bytes have room, if there is any."""
        request = self.next_request()
        open_shared(self.connection, self.tag, request, length)
        return self.path(request) or None

    def _function(self, payload: Unpacked) -> Callable[..., Any]:
        if not payload.flags & BY_VALUE:
            return self.process.function(payload.header)
        known = self._input(0)
        key = known.path if type(known) is File else self.raw(0)
        function = self.process.function_by_value(key, lambda: bytes(self.raw(0)))
        self._functions = {identity_of(function, self.label): 0}
        return function

    def hands_on(self, call: Call) -> bool:
        """A tail runs in place while that is allowed; else it becomes a task of its own."""
        if (self._answers_json or self._takes_streams) and self.is_task:
            check_outputs(call, self._outputs)
        if self._may_run_here(call):
            return False
        self.process.check_forked(None)
        self._check_asked()
        self.tail_spawn(call, self.step)
        return True

    def _may_run_here(self, call: Call) -> bool:
        if self._answers_json or self._takes_streams:
            return True
        options = call.task.options_now
        if options.wire is not None or options.locality or options.count != self._outputs:
            return False
        if call.task.gives & YIELDS:
            return False
        if self.pure or not self.replaying and _clock() - self._begun > IN_PLACE_S:
            return False  # the successor of a pure task is pure only if it is declared so itself
        for part in call.args:
            if type(part) is Future and self.known_of(part) is None:
                return False
        for part in call.kwargs.values():
            if type(part) is Future and self.known_of(part) is None:
                return False
        return True

    def argument(self, future: Future[Any]) -> Any:
        known = future._known or self._wait_one(future)
        if type(known) is Failed:
            raise ArgumentFailed(known.failure)
        return self.read(known)

    def _finish(self, value: Any) -> None:
        """Sends the outputs: small ones with the exit, large ones through files."""
        process = self.process
        if process.forked:
            process.check_forked(None)
        if type(value) in ATOMS and not self.many:
            form, pieces, _ = object_of(value)
            data = pieces[0]
            if len(data) < OBJECT_BYTES_MIN:
                self._exit([(0, data, form, ())])
                return
        outputs = outputs_of(value, self._outputs) if self.many else [("result", value)]
        self._finish_frozen(self.frozen(what, part) for what, part in outputs)

    def _finish_frozen(self, outputs: Iterable[FrozenObject]) -> None:
        said: list[Output] = []
        for number, (form, pieces, references) in enumerate(outputs):
            handles = [self.handle_of(future) for future in references] if references else ()
            if size_of(pieces) < OBJECT_BYTES_MIN:
                said.append((number, joined(pieces), form, handles))
            else:
                self._write_output(number, form, pieces, handles)
        self._exit(said)

    def _write_output(
        self, number: int, form: str, pieces: list[Any], handles: Sequence[int]
    ) -> None:
        length = size_of(pieces)
        self.connection.open_output(self.tag, number, number, length=length)
        write_file(self.path(number), pieces)
        self.connection.commit(
            self.tag, number, form, handles, action=self.act(), handle=self.take_handle()
        )

    def _exit(self, said: list[Output]) -> None:
        leave_context()
        if self._observations:
            self._check_asked()
        self.tidy()
        self.process.note_end(self)
        keep = KEEP_END if self.process.used_up else KEEP_AS_SAID
        self.connection.exit(self.tag, said, keep, self.audit())

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, ArgumentFailed):
            return self._say_error(error.failure)
        self.process.check_forked(error)
        if not isinstance(error, Cancelled):
            self._keep_failed()
        self._say_error(failure_of(error, self.label, self.call_text))

    def _keep_failed(self) -> None:
        from ciel._failed_task import keep

        found: list[Known] = list(self._inputs)
        for number, future in (self._given or {}).items():
            found[number] = future._known or found[number]
        keep(self.label, self._payload, found, self.position, self.cores)

    def _say_error(self, failure: Failure) -> None:
        self.tidy()
        self.process.note_end(self)
        self.connection.error(self.tag, failure)

    def _run_json(self, wanted: dict[str, Any]) -> None:
        """A root, `{"main": path, "args": [...]}` and `module` if it is one, or a call by JSON."""
        self._answers_json = True
        if "main" in wanted:
            self.is_task, self.is_root = False, True
            return self._finish_root(wanted)
        module, _, name = wanted["function"].rpartition(":")
        found = find(module, name)
        function = function_of(found)
        self.process.note_imported()
        args = tuple(with_values(wanted.get("args", []), self.value))
        kwargs = with_values(wanted.get("kwargs", {}), self.value)
        if isinstance(found, AnyTask) and found.copied is not None:
            args, kwargs = found.copied.given(args, kwargs)
        self._finish_json(self.run_call(name, function, args, kwargs))

    def _finish_root(self, wanted: dict[str, Any]) -> None:
        """Runs the root and says its value, or the status that it has exited with."""
        try:
            text = self._run_root(wanted)
        except SystemExit as left:
            if ORIGIN in left.__dict__:  # it left another task: a failure like any other
                raise
            self.process.check_forked(left)
            status = status_of(left)
            if status:
                return self._say_error(exit_failure(status))
            text = b"null"
        self._exit([(0, text, "json", ())])

    def _run_root(self, wanted: dict[str, Any]) -> bytes:
        path, args = wanted["main"], wanted.get("args", [])
        sys.argv = [path, *args]
        main = getattr(load_job(wanted), "main", None)
        self.process.note_imported()
        if not callable(main):
            hint = "the program begins at its function main: def main(*words)"
            found = "" if main is None else f": main is {main!r}"
            raise Refused(f"{path} has no function main{found}", hint=hint)
        root = function_of(main)
        if inspect.isgeneratorfunction(root):
            hint = "return the result, or print it; a task that it spawns may yield"
            raise Refused("main has a `yield`, so a call of it runs nothing", hint=hint)
        _check_arguments(root, path, args)
        advise(root, code_hash(root))
        plain = as_plain(root)
        return json_of(self.run_call("main", plain, tuple(args), {}))

    def _finish_json(self, value: Any) -> None:
        """Other languages read JSON, bytes and text; any other value stays a pickle."""
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

    def stream(self, number: int) -> Reading[Any]:
        """The stream of an input; raises ArgumentFailed if its task failed before it was open."""
        self._takes_streams = True
        given = self._inputs[number]
        known: Known = given if type(given) is Incoming else self._input(number)
        return Reading(lambda: self.source_of(known))

    def raw(self, number: int) -> Any:
        """The bytes of an input, read-only."""
        known = self._input(number)
        if type(known) is Value:
            return known.data
        assert type(known) is File, f"input {number} of {self.label} is {known!r}"
        with open(known.path, "rb", buffering=0) as file:
            return mapping_of(file.fileno())

    def _input(self, number: int) -> Known:
        known: Known = self._inputs[number]
        if type(known) is Pending:
            known = self._wait_one(self.future(number))
        if type(known) is Failed:
            raise ArgumentFailed(known.failure)
        return known


def _check_arguments(main: Callable[..., Any], path: str, args: list[str]) -> None:
    """Raises Refused if the words of the command line do not fit the parameters of `main`."""
    signature = inspect.signature(main)
    try:
        signature.bind(*args)
    except TypeError as error:
        hint = f"write its arguments after the file: ciel run {os.path.basename(path)} ARGUMENTS"
        if len(args) > len(signature.parameters):
            hint = "main is called with the words after the file, as text: def main(*words)"
            if any(word.startswith("-") for word in args):
                hint = f"options of ciel come before the file; {hint}"
        raise Refused(
            f"main{signature} cannot be called with {len(args)} arguments: {error}", hint=hint
        ) from None
