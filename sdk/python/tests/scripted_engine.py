"""An engine in one hundred lines of Python, for tests of the worker without the real one.

It has the methods of `ciel._native.Connection` and keeps tasks, objects and their order in lists.
One worker, in the process of the test; strands may be dropped at random and replayed. It checks
that a replayed strand sends the same messages. Read next: `test_worker.py`.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ciel import _native
from ciel._native import (
    Answer,
    Drop,
    Failed,
    Failure,
    File,
    Observation,
    Observed,
    Opened,
    Pending,
    Recording,
    Resume,
    Start,
    TaskOptions,
    Value,
)

if TYPE_CHECKING:
    from ciel._native import Definition, Message, Reference

DELIVERED_FROM = 1 << 31
WAIT_FIRST, WAIT_REST, WAIT_ALL_AND_LATER = 1, 2, 3


class Object:
    """Data that is ready or not: a reference whose handle means nothing, and what is inside."""

    def __init__(self) -> None:
        """Not ready yet."""
        self.state: Value | File | Failed | None = None
        self.inside: list[Object] = []
        self.waiters: list[Task] = []


class Task:
    """A task with what it made and said."""

    def __init__(self, tag: int, position: bytes, payload: bytes, inputs: list[Object]) -> None:
        """`inputs` are the first entries of its table."""
        self.tag, self.position, self.payload, self.inputs = tag, position, payload, inputs
        self.needs: list[Object] = inputs
        self.label = ""
        self.options: Any = None
        self.outputs: list[Object] = []
        self.facts: list[tuple[Any, ...]] = []
        self.observed: list[Observation] = []
        self.first_action = 0
        self.begin()

    def begin(self) -> None:
        """The state of a run from the start."""
        self.table: dict[int, Object] = dict(enumerate(self.inputs))
        self.reached = self.first_action
        self.row: list[int] = []
        self.delivered = DELIVERED_FROM
        self.cursor = 0
        self.released: dict[int, Object] = {}
        self.log: list[Any] = []
        self.opened: dict[int, tuple[str, int | None]] = {}
        self.waits: tuple[list[int], int] | None = None
        self.given: set[int] = set()


class Engine:
    """The connection of a process to an engine that lives in the same process."""

    def __init__(self, payload: bytes = b"", chance: random.Random | None = None) -> None:
        """`chance` says when a parked strand is dropped; without it none is."""
        self.chance = chance
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        self.tasks: dict[int, Task] = {}
        self.ready: deque[int] = deque()
        self.again: deque[int] = deque()
        self.woken: deque[Task] = deque()
        self.messages: deque[Message] = deque()
        self.logged: list[str] = []
        self.keeps: list[int] = []
        self.audits: dict[str, Any] = {}
        self.written = bytearray()
        self.drops = 0
        self.root = self._task(_native.position_of_root(b"serial"), payload, [], [], 1, "main")

    def _task(
        self, position: bytes, payload: bytes, inputs: list[Object], needs: list[Object],
        outputs: int, label: str,
    ) -> Task:  # fmt: skip
        task = Task(len(self.tasks), position, payload, inputs)
        task.needs = needs
        task.label = _native.label_of(label, position)
        task.outputs = [Object() for _ in range(outputs)]
        self.tasks[task.tag] = task
        self.ready.append(task.tag)
        return task

    def receive(self) -> Message | None:
        """The next message: answers, resumed strands, then starts."""
        if self.messages:
            return self.messages.popleft()
        while self.woken:
            task = self.woken.popleft()
            if task.waits is not None and self._there(task):
                return self._resumed(task)
        if self.again:
            return self._start(self.tasks[self.again.popleft()], True)
        for place, tag in enumerate(self.ready):
            if all(entry.state is not None for entry in self.tasks[tag].needs):
                del self.ready[place]
                return self._start(self.tasks[tag], False)
        return None

    def _there(self, task: Task) -> bool:
        assert task.waits is not None
        states = [task.table[handle].state is not None for handle in task.waits[0]]
        return any(states) if task.waits[1] in (WAIT_FIRST, WAIT_REST) else all(states)

    def _resumed(self, task: Task) -> Message:
        assert task.waits is not None
        handles, wait = task.waits
        task.waits = None
        there = [handle for handle in handles if task.table[handle].state is not None]
        if wait == WAIT_ALL_AND_LATER:
            there += self._later(task, handles[-1])
        elif wait:
            places = [place for place, handle in enumerate(task.row) if handle in there]
            kind = "first" if wait == WAIT_FIRST else "rest"
            task.observed.append(Observation(kind, json.dumps(places).encode()))
            task.given.update(there)
        return Resume(task.tag, [self._reference(task, handle) for handle in there], False)

    def _later(self, task: Task, last: int) -> list[int]:
        """The handles behind that one with small values, without a gap."""
        found: list[int] = []
        while (entry := task.table.get(last + 1)) and isinstance(entry.state, Value):
            last += 1
            found.append(last)
        return found

    def _settle(
        self, entry: Object, state: Value | File | Failed, inside: list[Object] | None = None
    ) -> None:
        entry.state = state
        entry.inside = inside or []
        self.woken.extend(entry.waiters)
        entry.waiters.clear()

    def _reference(self, task: Task, handle: int) -> Reference:
        state = task.table[handle].state
        if state is None:
            return Pending(handle)
        if isinstance(state, Failed):
            return Failed(handle, state.failure)
        inside = tuple([self._deliver(task, inner) for inner in task.table[handle].inside])
        if isinstance(state, Value):
            return Value(handle, state.data, state.form, inside)
        return File(handle, state.path, state.length, state.form, inside)

    @staticmethod
    def _deliver(task: Task, inner: Object) -> int:
        task.table[task.delivered] = inner
        task.delivered += 1
        return task.delivered - 1

    def _start(self, task: Task, again: bool) -> Message:
        made = task.table | task.released
        task.begin()
        replay = None
        if again:
            task.table |= {handle: entry for handle, entry in made.items() if handle < 1 << 31}
            known = [self._reference(task, handle) for handle in list(task.table)]
            resolved = [one for one in known if one.is_resolved]
            replay = Recording(resolved, list(task.observed), [], 0)
        inputs = [self._reference(task, place) for place in range(len(task.inputs))]
        return Start(
            task.tag, task.payload, inputs, len(task.outputs), task.label,
            _native.seed_of(task.position), task.position, task.first_action,
            len(task.inputs), 1, replay,
            task.options or TaskOptions(),
        )  # fmt: skip

    @staticmethod
    def _reach(task: Task, actions: int) -> None:
        """The strand has done so many actions; they are never fewer than before."""
        assert actions >= task.reached, f"{task.label} goes back from {task.reached} to {actions}"
        task.reached = actions

    def _made(
        self, task: Task, what: tuple[Any, ...], entries: list[Object], handle: int
    ) -> bool:
        """Adds handles; gives whether the action is new, after a check if it is not."""
        fresh = task.cursor == len(task.facts)
        if fresh:
            task.facts.append((what, entries))
        elif task.facts[task.cursor][0] != what:
            raise AssertionError(f"replayed, {task.label} sent {what} instead")
        for number, entry in enumerate(task.facts[task.cursor][1], handle):
            assert number not in task.table or not fresh, f"{task.label} gives {number} twice"
            task.table[number] = entry
        task.cursor += 1
        return fresh

    def _release(self, task: Task, released: Sequence[int]) -> None:
        """What the task has released it must not use again."""
        for handle in released:
            assert handle in task.table, f"{task.label} releases {handle}, which it does not have"
            task.released[handle] = task.table.pop(handle)

    def spawn(
        self, tag: int, definition: Definition, payload: bytes, inputs: Any, *,
        action: int, handle: int, line: int, modes: Any = None, weights: Any = None,
        released: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """A child of the task."""
        task = self.tasks[tag]
        self._release(task, released)
        given = [task.table[one] for one in inputs]
        needs = [entry for place, entry in enumerate(given) if not (modes and modes[place])]
        entries = [Object() for _ in range(definition.outputs)]
        self._reach(task, action + 1)
        if self._made(task, ("spawn", action, payload), entries, handle):
            position = _native.position_of_spawn(task.position, action)
            child = self._task(position, payload, given, needs, 0, definition.label)
            child.options = definition.options
            child.outputs = entries
            task.facts[-1] = (*task.facts[-1], child)
        task.log.append(task.facts[task.cursor - 1][2])

    def tail_spawn(
        self, tag: int, definition: Definition, payload: bytes, inputs: Any, *,
        after: int, line: int, modes: Any = None, weights: Any = None, audit: Any = None,
    ) -> None:  # fmt: skip
        """The successor of the task."""
        task = self.tasks[tag]
        given = [task.table[one] for one in inputs]
        needs = [entry for place, entry in enumerate(given) if not (modes and modes[place])]
        child = self._task(task.position, payload, given, needs, 0, definition.label)
        child.outputs, child.first_action = task.outputs, after
        child.options = definition.options
        child.begin()
        task.log.append(child)

    def construct(
        self, tag: int, data: bytes, form: str, references: Any, *,
        action: int, handle: int, part: int | None = None,
    ) -> None:  # fmt: skip
        """An object."""
        task = self.tasks[tag]
        entry = Object()
        self._settle(entry, Value(0, data, form, ()), [task.table[one] for one in references])
        self._reach(task, action + (part is None))
        self._made(task, ("construct", action, part, data), [entry], handle)

    def open_construct(self, tag: int, request: int, length: int = 0) -> None:
        """A file for an object."""
        self._open(tag, request, None, length)

    def open_output(self, tag: int, request: int, output: int, *, length: int = 0) -> None:
        """A file for an output."""
        self._open(tag, request, output, length)

    def _open(self, tag: int, request: int, output: int | None, length: int) -> None:
        """Other bytes are in the file, as they may be for a worker that overwrites them all."""
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory(prefix="ciel-test-")
        path = os.path.join(self.folder.name, f"{tag}-{request}-{random.random()}")
        with open(path, "wb") as file:
            file.write(b"?" * length)
        self.tasks[tag].opened[request] = (path, output)
        self.messages.append(Answer(tag, request, Opened(path)))

    def commit(
        self, tag: int, request: int, form: str, references: Any, *,
        action: int, handle: int, part: int | None = None,
    ) -> None:  # fmt: skip
        """The file is complete."""
        task = self.tasks[tag]
        path, output = task.opened.pop(request)
        inner = [task.table[handle] for handle in references]
        entry = Object() if output is None else task.outputs[output]
        self._settle(entry, File(0, path, os.path.getsize(path), form, ()), inner)
        self._reach(task, action + (part is None))
        self._made(task, ("commit", action, part, request), [entry], handle)

    def block(
        self, tag: int, handles: list[int], wait: int, timeout_ms: int | None, *,
        after: int, part: int | None = None, released: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """The strand parks; perhaps it is dropped."""
        task = self.tasks[tag]
        self._release(task, released)
        self._reach(task, after)
        if wait == WAIT_FIRST:
            task.row, task.given = list(handles), set()
        elif wait == WAIT_REST:
            handles = [handle for handle in task.row if handle not in task.given]
        task.waits = (list(handles), wait)
        if timeout_ms is not None and not self._there(task):
            task.waits = None
            task.observed.append(Observation("timeout", b"[]"))
            self.messages.append(Resume(tag, [], True))
        elif self.chance is not None and self.chance.random() < 0.4:
            self.drops += 1
            task.waits = None
            self.messages.append(Drop(tag))
            self.again.append(tag)
        else:
            self.woken.append(task)
            for handle in handles:
                task.table[handle].waiters.append(task)

    def write(self, tag: int, sink: int, data: bytes, after: int) -> None:
        """Output at its place."""
        self._reach(self.tasks[tag], after)
        if sink == 0:
            self.tasks[tag].log.append(data)
        else:
            self.written += data

    def observe(self, tag: int, kind: str, value: bytes, *, action: int, part: int) -> None:
        """A recorded input."""
        self._reach(self.tasks[tag], action)
        self.tasks[tag].observed.append(Observation(kind, value))

    def ask(
        self, tag: int, request: int, kind: str, handles: list[int], *, action: int, part: int
    ) -> None:
        """Which are resolved."""
        task = self.tasks[tag]
        self._reach(task, action)
        answer = json.dumps([task.table[handle].state is not None for handle in handles]).encode()
        task.observed.append(Observation(kind, answer))
        self.messages.append(Answer(tag, request, Observed(answer)))

    def log(self, tag: int, level: int, message: str) -> None:
        """For people."""
        self.logged.append(message)

    def error(self, tag: int, failure: Failure) -> None:
        """The task failed."""
        for entry in self.tasks[tag].outputs:
            self._settle(entry, Failed(0, failure))

    def exit(self, tag: int, outputs: Any, keep: int, audit: Any = None) -> None:
        """The task ended well."""
        task = self.tasks[tag]
        for number, data, form, references in outputs:
            inner = [task.table[handle] for handle in references]
            self._settle(task.outputs[number], Value(0, data, form, ()), inner)
        self.keeps.append(keep)
        self.audits[task.label.partition("@")[0]] = audit

    def poll(self, timeout_ms: int = 0) -> bool:
        """Whether something waits to be heard."""
        return bool(self.messages)

    def flush(self) -> None:
        """Nothing is buffered."""

    def forked(self) -> None:
        """Nothing to close."""

    def output(self, task: Task | None = None) -> bytes:
        """All output in serial order."""
        said = b""
        stack: list[Any] = [task or self.root]
        while stack:
            entry = stack.pop()
            if isinstance(entry, Task):
                stack.extend(reversed(entry.log))
            else:
                said += entry
        return said


class Nothing:
    """Descriptor 1 of a test, which is not read."""

    def take(self) -> bytes:
        """Nothing."""
        return b""

    def note_process(self) -> None:
        """As nothing is read, it does not matter who writes."""


def run_in_worker(
    body: Callable[[], Any], chance: random.Random | None = None, watch: bool = False
) -> tuple[Any, Engine]:
    """Runs `body` as the root of a worker in this process; its value, and the engine.

    With `watch` the audit watches what tasks do, which does not end with the worker.
    """
    import sys

    from ciel import _audit, _worker_process, _streams
    from ciel._errors import error_of

    engine = Engine(chance=chance)
    before = sys.stdout
    process = _worker_process.WorkerProcess(engine, Nothing())  # type: ignore[arg-type]
    if watch:
        _audit.install(process)
    values: list[Any] = []
    header = b"root of a test"
    process._functions[header] = lambda: values.append(body())
    engine.root.payload = _root_payload(header)
    sys.stdout = _streams.StrandText(0, process.write)
    process.state.stdout = sys.stdout
    try:
        process.serve()
    finally:
        sys.stdout = before
    state = engine.root.outputs[0].state
    assert state is not None, "the root never ended"
    if isinstance(state, Failed):
        raise error_of(state.failure)
    return values[-1], engine


def _root_payload(header: bytes) -> bytes:
    from ciel._payload import _HEAD

    return _HEAD.pack(1, len(header), 0, 0) + header
