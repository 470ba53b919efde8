"""The strand of a child that runs in place, until it has ended or is a task like any other.

It begins without the engine. It takes over its parent's slot, as a task with a start of its own,
when it uses the connection, fails, or ends with anything but a small plain value. Read next:
`_keeping_strand.py`, `_worker.py`.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ciel import _native
from ciel._atoms import ATOMS
from ciel._contexts import leave_context
from ciel._engine_strand import joined, size_of
from ciel._errors import Cancelled
from ciel._in_place import Kept, Returned
from ciel._inputs import changed
from ciel._keeping_strand import InsideStrand, KeepingStrand
from ciel._payload import SMALL_BYTES_MAX, Arguments, Unpacked, is_small
from ciel._raised import Raised
from ciel._task import last_value
from ciel._task_strand import HANDED_ON
from ciel._waiting_strand import Severed
from ciel._worker import WorkerStrand

if TYPE_CHECKING:
    from greenlet import greenlet

    from ciel._keeping_strand import KeepingProcess
    from ciel._native import Connection, Start

ACTIONS_MAX = 1 << 64
"""More than any task does: a child that is sealed keeps all of its own children."""

_clock = time.monotonic


class LightStrand(WorkerStrand, InsideStrand):
    """Runs a child in place until that has ended or is a task.

    `is_called` is whether it runs in the greenlet of its parent, whose code has called it.
    """

    is_called: bool = False
    _outputs: int = 1
    _memory_bytes: int | None = None

    def __init__(self, process: KeepingProcess, parent: KeepingStrand, child: Kept) -> None:
        """Runs nothing of the child yet."""
        self.process = process
        self.parent = parent
        self._child = child
        self._connection = process.connection
        self.label = child.task.label
        self.depth = parent.depth + 1
        self.position = _native.position_of_spawn(parent.position, child.action)
        self._first_seed = _native.seed_of(self.position)
        self.pieces = []
        self.errors = []
        self.may_keep = True
        self.sends = not child.sealed
        if child.sealed:
            self._spawned, self._until = frozenset(), ACTIONS_MAX
            self.replaying = self.repeats = True
        self._payload = b""
        self._inputs = []
        self._begun = _clock()

    @property
    def connection(self) -> Connection:
        """The connection, for which the child becomes a task."""
        if self.severed:
            return cast("Connection", Severed())
        if self.parent is not None or self.keeps:
            self.promote()
        return self._connection

    @connection.setter
    def connection(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def is_settled(self) -> bool:
        """Whether it is a task that keeps no children."""
        return self.parent is None and not self.keeps

    def sever(self) -> None:
        """The child, or what it runs in, was cancelled: it can only clean up, and is not heard."""
        self.severed = True
        self.may_keep = self.sends = False

    def run(self) -> greenlet | None:
        """Runs the child; returns the greenlet of its parent if it has ended in place."""
        return self._ended(self._run_child)

    def _run_child(self) -> Any:
        function = self._child.task.function
        args, kwargs = self._given_arguments(self._child)
        return self.run_call(function.__name__, function, args, kwargs)

    def note_begun(self, given: Arguments, elapsed_s: float) -> None:
        """The child has begun natively, that long ago."""
        task = self._child.task
        self._call = (task.function.__name__, *given)
        self.function = task.function
        self._begun -= elapsed_s

    def end(self, value: Any) -> greenlet | None:
        """Ends a child that has begun natively; as `run`."""
        if type(value) is not Raised:
            return self._ended(partial(last_value, value, self._run_step))
        self._end_failed(value.error)
        return self._after()

    def _ended(self, course: Callable[[], Any]) -> greenlet | None:
        """Ends the child with what its course gives or raises; as `run`."""
        try:
            value = course()
            if value is not HANDED_ON:
                self._end(value)
        except BaseException as error:  # any exception of a task is its failure
            self._end_failed(error)
        return self._after()

    def _after(self) -> greenlet | None:
        """The greenlet that continues when the child has ended."""
        self.ended = True
        return None if self.parent is None else self.parent.where

    def _given_arguments(self, child: Kept) -> Arguments:
        if child.given is not None:
            return child.given
        return Unpacked(child.payload).arguments(self, 0)

    def _end(self, value: Any) -> None:
        leave_context()
        self.process.check_forked(None)
        self.tidy()
        if type(value) in ATOMS and is_small(value):
            if not self._ends_in_place(Returned(value, None)):
                self.promote()
                self._finish(value)
            return
        if self.parent is None or self.many:
            return self._finish(value)
        frozen = form, pieces, references = self.frozen("result", value)
        is_light = not references and size_of(pieces) < SMALL_BYTES_MAX
        if not (is_light and self._ends_in_place(Returned(joined(pieces), form))):
            self.promote()
            self._finish_frozen([frozen])

    def _ends_in_place(self, returned: Returned) -> bool:
        if not self._child.sealed and not self._may_end_in_place():
            return False
        self.returned = returned
        if self.seen is not None and self.parent is not None:
            self.parent.seen = self.seen.added_to(self.parent.seen)
        return True

    def _may_end_in_place(self) -> bool:
        if self.parent is None or self.many or _thread._count():
            return False
        promoter = self.process.promoter
        return promoter is not None and promoter.leave(self.position)

    def _end_failed(self, error: BaseException) -> None:
        try:
            if self.severed:
                self.process.check_forked(error)
                return
            self.promote()
            self._fail(error)
        except Cancelled:
            pass  # the engine has ended the task, and hears no more of it

    def promote(self) -> None:
        """Makes a task of this strand, and of those below it, and of its own kept children."""
        if self.parent is not None:
            for strand in reversed(self._below()):
                strand._take_slot()
        super().promote()

    def _below(self) -> list[LightStrand]:
        """The strands that run in place, from this one to the outermost."""
        below: list[LightStrand] = [self]
        while isinstance(below[-1].parent, LightStrand) and below[-1].parent.parent is not None:
            below.append(below[-1].parent)
        return below

    def _take_slot(self) -> None:
        """Becomes a task, which has begun here; its parent waits for it from now on."""
        parent, promoter = self.parent, self.process.promoter
        if parent is None:
            return
        assert promoter is not None, "its parent keeps children"
        if self._child.sealed:
            raise changed(parent.label, f"spawn of {self.label}", "no task")
        if parent.severed:
            self.sever()
            raise Cancelled("the task was cancelled")
        promoter.give_slot(self.position)
        self.process.await_start(self)

    def part(self) -> None:
        """The parent waits for the engine from now on."""
        parent, self.parent = self.parent, None
        assert parent is not None, "only what runs in place becomes a task"
        if self.is_called:
            self.process.late[parent.tag] = []
        if parent.is_root:
            self._child.task.suits_root = None  # the next one is measured again
        parent.give_slot()

    def adopt(self, start: Start) -> None:
        """It is the task of that start, which has begun here."""
        self.part()
        assert self.process.promoter is not None, "its parent keeps children"
        self.process.promoter.name(self.position, start.tag)
        self.tag = start.tag
        self.label = start.label
        self.cores = start.cores
        self._payload = start.payload
