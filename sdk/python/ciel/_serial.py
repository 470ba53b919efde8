"""The serial program: every task runs at its spawn, in this process.

This is the meaning of the language, and the oracle of its tests; `ciel run --serial` uses the
engine instead. Options that an engine enforces (retries, limits, resources) are without effect.
Arguments and results are copied
as they would be between processes, failures are kept until a task reads them, tails run in a loop,
and each task has a greenlet of its own, so depth is bounded by memory only. No engine and no
socket. Read next: `_task_strand.py` for what a strand does, `_scheduler.py`, `testing.py`.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

from greenlet import greenlet

from ciel import _native
from ciel._call import JOINED, MANY, YIELDS, Call, is_written
from ciel._code import current_identity
from ciel._errors import CielError, Refused, WaitError, error_of, failure_of
from ciel._faults import explained
from ciel._frames import FORM
from ciel._freeze import Snapshot, values_from, values_in
from ciel._future import Future
from ciel._native import Failure
from ciel._options import Options
from ciel._output import written
from ciel._payload import Copy
from ciel._process_state import ProcessState
from ciel._random import SEED, tell_seed
from ciel._reading import FailedBytes, Source
from ciel._root import as_plain
from ciel._scheduler import Scheduler
from ciel._strand import check_may_wait, here
from ciel._task_files import SerialFiles
from ciel._task_strand import (
    ArgumentFailed,
    TaskStrand,
    check_outputs,
    encoded,
    no_event_loop,
    outputs_of,
)


class Box:
    """What is behind a future of the serial program: a snapshot or a failure, once it is resolved.

    `asked` is set when it is read; `start` runs a lazy task; `frames` is whether the snapshot is of
    the bytes of a stream of values. `streamed` is what a failed task had written of its stream.
    """

    __slots__ = ("snapshot", "failure", "asked", "start", "frames", "streamed")

    def __init__(self) -> None:
        """Unresolved until the task has run."""
        self.snapshot: Snapshot | None = None
        self.failure: Failure | None = None
        self.asked = False
        self.frames = False
        self.streamed = b""
        self.start: Callable[[], None] | None = None

    def note_streamed(self, data: bytes) -> None:
        """The task has failed when it had written that of its stream."""
        self.streamed = data

    @property
    def is_resolved(self) -> bool:
        """Whether the task has run."""
        return self.snapshot is not None or self.failure is not None


class SerialRun:
    """One serial run: it runs tasks, and collects failures that are never read."""

    def __init__(self, key: bytes = b"serial") -> None:
        """`key` names the run: equal keys give equal random numbers."""
        self.root = SerialStrand(self, _native.position_of_root(key), "main")
        self.root.is_task = False
        self.failed: list[Box] = []
        self.files = SerialFiles()
        self._scheduler = Scheduler(greenlet(self._serve), None)

    def run(self, main: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Runs `main` as the root; its value, or the failure of the run as an exception.

        If the root succeeds, this is the earliest failure that was never read.
        """
        with self:
            value = self.root.run_call("main", as_plain(main), args, kwargs)
            if isinstance(value, Future):
                value = value.result()
        self.raise_unasked()
        return value

    def raise_unasked(self) -> None:
        """Raises the earliest failure that was never read, if there is one."""
        for box in self.failed:
            if box.failure is not None and not box.asked:
                raise error_of(box.failure)

    def __enter__(self) -> SerialRun:
        """The following code is that of the root, in this thread."""
        if here.strand is not None:
            raise WaitError(f"{here.strand.label} runs here already: runs cannot be nested")
        self._before = here.strand
        self._seed = os.environ.get(SEED)
        here.strand = self.root
        tell_seed(self.root.seed)
        self._scheduler.keep_context()
        if threading.current_thread() is threading.main_thread():
            self._scheduler.state = state = ProcessState()
            state.install(filters=False)  # a test hears the warnings of its tasks
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the run."""
        self.files.close()
        here.strand = self._before
        if self._seed is None:
            os.environ.pop(SEED, None)
        else:
            os.environ[SEED] = self._seed
        if self._scheduler.state is not None:
            self._scheduler.state.uninstall()
            self._scheduler.state = None

    def execute(self, strand: SerialStrand, body: Callable[[], None]) -> None:
        """Runs `body` as `strand`; the current strand continues when that has ended."""
        asker = here.strand
        assert isinstance(asker, SerialStrand), "tasks of the serial program begin in one another"
        with no_event_loop():
            self._scheduler.park(asker, _Request(asker, strand, body))

    def _serve(self, request: _Request) -> None:
        """Runs the newest task first; then the strand that waits for it continues."""
        asking: list[SerialStrand] = []
        while True:
            asking.append(request.asker)
            following = self._scheduler.begin(request.strand, request.body)
            while following is None:
                following = self._scheduler.resume(asking.pop())
            request = following


class _Request(NamedTuple):
    """A request of a strand that another one runs before it continues."""

    asker: SerialStrand
    strand: SerialStrand
    body: Callable[[], None]


class SerialStrand(TaskStrand):
    """A task of the serial program."""

    def __init__(self, run: SerialRun, position: bytes, label: str) -> None:
        """`position` names it; `label` is printed."""
        self.run = run
        self.position = position
        self.label = label
        self.actions = 0
        self._outputs: int | None = None

    def spawn(self, call: Call, options: Options) -> tuple[Future[Any], ...]:
        """Runs the call now, unless it is lazy, and keeps its outputs."""
        current_identity(call.task)
        copy = Copy(call)
        boxes = [Box() for _ in range(options.count)]
        futures = self._futures(boxes)
        position = _native.position_of_spawn(self.position, self.actions)
        self.actions += 1
        child = SerialStrand(self.run, position, _native.label_of(call.label, position))
        child.cores = max(1, int(options.cores or 1))
        child.pure = options.pure is True

        def start() -> None:
            self.run.execute(child, lambda: child.perform(call, copy, boxes))

        if options.lazy:
            for box in boxes:
                box.start = start
        else:
            start()
        return futures

    def perform(self, call: Call, copy: Copy, boxes: list[Box]) -> None:
        """Runs the call and its tails, and settles the boxes of its outputs."""
        for box in boxes:
            box.start = None
        self._outputs = len(boxes)
        self._call = (call.label, (), {})
        self.gives = call.task.gives
        self.many = self.gives & MANY != 0
        try:
            args, kwargs = copy.arguments(self.argument, self._mine)
            self._settle(boxes, self._run(call, args, kwargs, boxes[0]))
        except ArgumentFailed as error:
            self._fail(boxes, error.failure)
        except BaseException as error:  # any exception of a task is its failure
            self._fail(boxes, failure_of(error, self.label, self.call_text, self.label))
        self.ended = True

    def _run(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], output: Box
    ) -> Any:
        function = current_identity(call.task).renewed(call.task.function)
        if is_written(function, self.gives):
            return written(
                function.__qualname__,
                lambda: self.run_call(call.label, function, args, kwargs),
                output.note_streamed,
            )
        return self.run_call(call.label, function, args, kwargs)

    def write_file(self, path: str, data: bytes, now: bool) -> None:
        """Writes to an ordered file at once; `now` is without effect."""
        self.run.files.write(path, data, now)

    def hands_on(self, call: Call) -> bool:
        """Never; a tail of a spawned task has as many outputs as the task."""
        if self._outputs is not None:
            check_outputs(call, self._outputs)
        return False

    def _settle(self, boxes: list[Box], value: Any) -> None:
        if self.gives & YIELDS and not isinstance(value, bytes):
            boxes[0].frames = not self.gives & JOINED
            value = _streamed(value, boxes[0])
        outputs = outputs_of(value, len(boxes) if self.many else None)
        snapshots = [_snapshot(what, part) for what, part in outputs]
        for box, snapshot in zip(boxes, snapshots, strict=True):
            box.snapshot = snapshot

    def _fail(self, boxes: list[Box], failure: Failure) -> None:
        for box in boxes:
            box.failure = failure
        self.run.failed.extend(boxes)

    def argument(self, future: Future[Any]) -> Any:
        """The value of a future among the arguments; raises ArgumentFailed."""
        box = self._box(future)
        if box.failure is not None:
            raise ArgumentFailed(box.failure)
        return self._read(box)

    def result(self, future: Future[Any]) -> Any:
        """A copy of the value, or the task's exception."""
        box = self._awaited(future)
        if box.failure is not None:
            raise error_of(box.failure)
        return self._read(box)

    def source(self, future: Future[Any]) -> Source:
        """As `result`; what a failed task has written is read before its exception is raised."""
        box = self._awaited(future)
        if not box.streamed:
            return Source.of_value(self.result(future))
        assert box.failure is not None, "it is the part of a task that failed"
        file = io.BufferedReader(FailedBytes(box.streamed, error_of(box.failure)))
        return Source(FORM, file, None, values_from) if box.frames else Source("bytes", file)

    def _awaited(self, future: Future[Any]) -> Box:
        """What is behind a future of this strand; waits where other strands would have to."""
        self._check_owner(future)
        if not future._waited:
            check_may_wait()
            future._waited = True
        return self._box(future)

    def _read(self, box: Box) -> Any:
        assert box.snapshot is not None, "a box is read when it is resolved"
        value = box.snapshot.revived(self._mine)
        return values_in(value) if box.frames else value

    def _mine(self, future: Future[Any]) -> Future[Any]:
        return Future(self, future._handle, future._known)

    def _box(self, future: Future[Any]) -> Box:
        box = future._known
        assert isinstance(box, Box), f"{future!r} is not one of the serial program"
        box.asked = True
        if not box.is_resolved:
            if box.start is None:
                raise CielError(f"{self.label} waits for itself")
            box.start()
        return box

    def _check_owner(self, future: Future[Any]) -> None:
        if here.strand is not self or future._strand is not self:
            future._strand.check_here()
            raise WaitError(f"{future!r} is used in {self.label}: pass it as an argument")

    def _futures(self, boxes: list[Box]) -> tuple[Future[Any], ...]:
        return tuple([Future(self, index, box) for index, box in enumerate(boxes)])

    def put(self, value: Any) -> Future[Any]:
        """A copy of `value` behind a future."""
        box = Box()
        box.snapshot = _snapshot("value", value)
        self.actions += 1
        return Future(self, 0, box)

    def wait(
        self, futures: Sequence[Future[Any]], count_first: bool, timeout_s: float | None
    ) -> list[Future[Any]]:
        """All of them are resolved; the first is the first in order of spawn."""
        chosen = list(futures[:1] if count_first else futures)
        for future in chosen:
            self._awaited(future)
        return chosen

    def completed(
        self, futures: Sequence[Future[Any]], timeout_s: float | None
    ) -> Iterator[Future[Any]]:
        """In the order given."""
        for future in futures:
            self._awaited(future)
            yield future

    def done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """All are resolved, except lazy tasks that were not demanded."""
        return [future._known is not None and future._known.is_resolved for future in futures]

    def cancel(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """No task can be cancelled: each has ended when the next line of its parent runs."""
        for future in futures:
            self._check_owner(future)
        return [False for _ in futures]

    def input(self, kind: str, take: Callable[[], bytes]) -> bytes:
        """Reads the environment: nothing is replayed here."""
        return take()

    def spawn_executor(
        self, executor: str, arguments: dict[str, Any], outputs: int, options: Options, label: str
    ) -> tuple[Future[Any], ...]:
        """Refused: there is no engine to run it."""
        raise Refused(
            f"tasks of the executor {executor!r} need the engine",
            hint="run the program with `ciel run job.py`",
        )


def _streamed(pieces: Generator[Any, Any, Any], box: Box) -> bytes:
    """The bytes of what a generator yields; those before an exception are left in its box."""
    data = bytearray()
    try:
        for parts in encoded(pieces, not box.frames):
            for part in parts:
                data += part
    except BaseException:
        box.note_streamed(bytes(data))
        raise
    return bytes(data)


def _snapshot(what: str, value: Any) -> Snapshot:
    """A copy of `value`; raises NotSerializable with the path from `what`."""
    try:
        return Snapshot(value)
    except Exception as error:  # classes of values may raise anything
        raise explained(what, value, error) from None
