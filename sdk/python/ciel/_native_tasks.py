"""Tasks that begin and end natively: plain calls of one core, without a strand in Python.

They run one after the other in one greenlet, until one asks for its strand, by which it is a task
like any other, or until a message has come that begins no such task. Native code says what to call.
This module knows neither how a strand waits nor what it sends. Read next: `_worker_process.py`,
`crates/ciel-python/src/stack/tasks.rs`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from greenlet import getcurrent

from ciel._assist import Assisting
from ciel._audit import LATE
from ciel._lasting import READ
from ciel._native import Assistant, begin_task, end_task
from ciel._once import MADE
from ciel._questions import ASKED
from ciel._raised import Raised

if TYPE_CHECKING:
    from ciel._native import Connection, Stack, Start
    from ciel._scheduler import Scheduler
    from ciel._worker import Begun, WorkerStrand


class Process(Protocol):
    """The interface of the worker process that such tasks use."""

    connection: Connection

    @property
    def running(self) -> Any:
        """The strand that has its turn; made now, if it has begun natively."""
        ...

    def stand_task(self, start: Start, begun: Begun, elapsed_s: float) -> WorkerStrand:
        """The strand of a task that has begun natively, `elapsed_s` ago."""
        ...


class NativeTasks:
    """Runs the tasks of a worker that begin natively. All but `_run` is called from `home`."""

    def __init__(
        self,
        process: Process,
        scheduler: Scheduler,
        stack: Stack,
        functions: dict[bytes, Callable[..., Any]],
        idle_path: str,
    ) -> None:
        """`functions` has the functions that were imported, by their headers in payloads;
        `idle_path` is the file of the idle cores.
        """
        self._process = process
        self._scheduler = scheduler
        self._stack = stack
        self.assisting: Assisting | None = None
        with suppress(OSError):
            self.assisting = Assisting(Assistant(process.connection, idle_path), functions)
        stack.take_tasks(process.stand_task, functions, ASKED, [LATE, READ, MADE])

    def run_ready(self) -> bool:
        """Waits for a message, and runs tasks if it begins one natively; whether it may have."""
        if self._scheduler.contexts.imported is not None:
            return False
        connection, assisting = self._process.connection, self.assisting
        while assisting is not None and assisting.run() and not connection.poll():
            pass
        connection.await_message()
        if not self._stack.may_begin():
            return False
        self._scheduler.run_started(self._run)
        return True

    def _run(self) -> None:
        switch = getcurrent().switch
        while (begun := begin_task(switch)) is not None:
            function, args, kwargs = begun
            value: Any
            try:
                value = function(*args, **kwargs)
            except BaseException as error:  # any exception of a task is its failure
                value = Raised(error)
            if type(value) is Raised or not end_task(value):
                strand: WorkerStrand = self._process.running
                return strand.end_begun(value)
