"""A strand: one sequential thread of control, as the language uses it.

Three things are strands: a task in a worker (`_worker.py`), a task of the serial program in this
process (`_serial.py`), and a session (`_session.py`). The rest of the package uses the abstract
`Strand` only. This module knows nothing of sockets, greenlets or bytes. Read next: `_future.py` and
`_task.py`.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from ciel import _native
from ciel._errors import NoRun, WaitError
from ciel._reading import Source

if TYPE_CHECKING:
    import random

    from ciel._call import Call, TaskFunction
    from ciel._future import Future
    from ciel._options import Options
    from ciel._seen import Seen


STEPS_FROM = 1 << 63
"""Names of steps lie above those of spawns, so that a tail moves no sibling's name."""


class Strand(ABC):
    """One thread of control, as the language sees it.

    Only the code that runs in a strand uses it; a session is used from any thread. `label` is its
    printed name, `position` the 16 bytes of its name, `step` counts its tails, `cores` is the
    number of its cores; `pure` is whether equal calls share its result; `any_thread` is whether
    threads that run no task may use its futures; `scopes` are the open ones, the innermost last;
    `seen` is what the audit of a worker has seen it do.
    """

    label: str = ""
    position: bytes = bytes(16)
    step: int = 0
    cores: int = 1
    pure: bool = False
    any_thread: bool = False
    scopes: Sequence[list[Future[Any]]] = ()
    generator: random.Random | None = None
    seen: Seen | None = None

    @property
    def seed(self) -> int:
        """The seed of random numbers, from the strand's name and the number of earlier tails."""
        position = self.position
        if self.step:
            position = _native.position_of_spawn(position, STEPS_FROM + self.step)
        return _native.seed_of(position)

    @abstractmethod
    def spawn(self, call: Call, options: Options) -> tuple[Future[Any], ...]:
        """Spawns a call and returns the futures of its outputs; arguments are copied now."""

    @abstractmethod
    def spawn_executor(
        self, executor: str, arguments: dict[str, Any], outputs: int, options: Options, label: str
    ) -> tuple[Future[Any], ...]:
        """Spawns a task of another executor; futures anywhere in `arguments` are its inputs."""

    @abstractmethod
    def put(self, value: Any) -> Future[Any]:
        """Stores a copy of `value` once and returns its future, which is resolved."""

    @abstractmethod
    def result(self, future: Future[Any]) -> Any:
        """Waits for a future of this strand; returns a copy of the value or raises the failure."""

    def source(self, future: Future[Any]) -> Source:
        """Waits for a future of this strand; returns where its bytes or values can be read."""
        return Source.of_value(self.result(future))

    @abstractmethod
    def wait(
        self, futures: Sequence[Future[Any]], count_first: bool, timeout_s: float | None
    ) -> list[Future[Any]]:
        """Waits for all, or for the first; returns the resolved ones, in the order given."""

    @abstractmethod
    def completed(
        self, futures: Sequence[Future[Any]], timeout_s: float | None
    ) -> Iterator[Future[Any]]:
        """Yields futures as they are resolved; ends early after `timeout_s` in all."""

    @abstractmethod
    def done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Which futures are resolved now; the answer is recorded for replays."""

    @abstractmethod
    def cancel(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Cancels the tasks of futures; which are cancelled now. Recorded for replays."""

    @abstractmethod
    def input(self, kind: str, take: Callable[[], bytes]) -> bytes:
        """Reads bytes from the environment, or from the record of an earlier attempt."""

    def may_try(self, task: TaskFunction) -> bool:
        """Whether short calls of a task, which would be tasks, may run in place of this strand."""
        return False

    def run_aside(self, future: Future[Any]) -> bool:
        """Runs a kept child before anybody asks for it, if it may; whether that has ended."""
        return False

    def let_go(self, handle: int) -> None:
        """A future with that handle is gone; called at any moment, in any thread."""

    def call_when_done(
        self, future: Future[Any], callback: Callable[[Future[Any]], object]
    ) -> None:
        """Calls back when a future is resolved; raises WaitError where nothing could call."""
        raise WaitError("tasks have no callbacks: iterate over ciel.as_completed(futures)")

    def awaiting(self, future: Future[Any]) -> Generator[Any, None, Any]:
        """Waits for a future in asyncio code; raises WaitError where nothing can be awaited."""
        raise WaitError("tasks are plain functions: call .result() instead of await")

    def check_here(self) -> None:
        """Raises WaitError if the calling code may not use futures of this strand."""
        running = here.strand
        if running is not self and not self.any_thread:
            where = running.label if running is not None else "a thread that runs no task"
            raise WaitError(
                f"this future belongs to {self.label} and is used in {where}: "
                "pass it as an argument"
            )

    def note(self, futures: Sequence[Future[Any]]) -> None:
        """Adds spawned futures to the innermost `ciel.scope()`."""
        if self.scopes:
            self.scopes[-1].extend(futures)


class _Here(threading.local):
    """The strand that runs in this thread; threads that tasks start have none.

    `making` is whether this thread makes a value of `ciel.once`. `serves` is the same in all
    threads: whether this process is a worker.
    """

    making: bool = False
    serves: bool = False
    _own: Strand | None = None

    @property
    def strand(self) -> Strand | None:
        """The one that runs, also if it has begun natively and nobody has asked for it."""
        return cast("Strand | None", _native.strand_here(self._own))

    @strand.setter
    def strand(self, strand: Strand | None) -> None:
        self._own = strand
        _native.note_here(strand is not None)


here = _Here()


def note_worker() -> None:
    """Marks this process as a worker, for all threads."""
    _Here.serves = True


def current() -> Strand:
    """The strand that this code runs in; raises NoRun outside of a run."""
    strand = here.strand
    if strand is None:
        raise outside()
    return strand


def outside() -> NoRun:
    """The error of code outside of any strand."""
    if here.making:
        return NoRun(
            "a value of ciel.once is made outside of any task: spawn, wait and read recorded "
            "inputs in the task that uses it"
        )
    if threading.current_thread() is not threading.main_thread():
        return NoRun(
            "this thread runs no task: spawn and wait in the task itself, not in a thread of it"
        )
    return NoRun("no run is active: start one with ciel.run(main) or `ciel run job.py`")


def check_may_wait() -> None:
    """Refuses to park a strand inside a running event loop: other strands would run inside it."""
    events = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:
        raise WaitError(
            "a task cannot wait inside a running event loop: await the future, or get the result "
            "before asyncio.run"
        )
