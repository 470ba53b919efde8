"""A strand that runs a task in this process: the call, its tails, and the state of the strand.

A strand of a worker and one of the serial program differ in the destination of futures and outputs;
the course of a call is common to both. A tail is a *step* of its strand: it gets a seed of its own,
its function is checked against rebound captures, and its arguments are copied. This module knows
neither the engine nor how strands take turns. Read next: `_scheduler.py`, `_worker.py`,
`_serial.py`.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from ciel._call import MANY, Call, Joiner, is_written
from ciel._code import current_identity
from ciel._errors import Refused, call_text
from ciel._freeze import frame_of
from ciel._payload import arguments_now
from ciel._random import tell_seed
from ciel._strand import Strand
from ciel._task import Tail, last_value

if TYPE_CHECKING:
    from greenlet import greenlet

    from ciel._future import Future
    from ciel._native import Failure
    from ciel._process_state import Changed


@contextmanager
def no_event_loop() -> Iterator[None]:
    """Suspends the event loop that runs in this thread, if one does: other code may use its own."""
    events = sys.modules.get("asyncio.events")
    loop = None if events is None else events._get_running_loop()
    if events is not None:
        events._set_running_loop(None)
    try:
        yield
    finally:
        if events is not None:
            events._set_running_loop(loop)


class ArgumentFailed(Exception):  # noqa: N818
    """A task cannot start because an argument failed; carries that failure as it is."""

    def __init__(self, failure: Failure) -> None:
        """`failure` becomes the task's own."""
        super().__init__(failure)
        self.failure = failure


class HandedOn:
    """The value of a call whose last tail became a task of its own."""


HANDED_ON = HandedOn()


class TaskStrand(Strand):
    """A strand that runs a task here.

    `where` is the greenlet that it waits in, `aside` its changes of the process state, saved while
    others have their turn; `ended` is set after its last message. `gives` is how the function that
    runs gives its outputs, `many` whether these are several, `function` the one that began;
    `is_task` is false for a root.
    """

    where: greenlet | None = None
    aside: Changed | None = None
    ended: bool = False
    many: bool = False
    gives: int = 0
    function: Callable[..., Any] | None = None
    is_task: bool = True
    _call: tuple[str, tuple[Any, ...], dict[str, Any]] = ("", (), {})

    @abstractmethod
    def argument(self, future: Future[Any]) -> Any:
        """The value of a future among the arguments; raises ArgumentFailed."""

    def hands_on(self, call: Call) -> bool:
        """Whether a tail does not run here as a step; if so, it has become a task of its own."""
        return False

    def awaiting(self, future: Future[Any]) -> Generator[Any, None, Any]:
        """Waits with the event loop of this strand suspended: nothing else runs in it."""
        with no_event_loop():
            return self.result(future)
        yield  # a generator, as `__await__` needs one

    def run_call(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs a function and the tails that follow it; the last value, or `HANDED_ON`."""
        self._call = (name, args, kwargs)
        self.function = function
        value = function(*args, **kwargs)
        if type(value) is Tail and is_written(function, self.gives):
            value.take()
            raise Refused(f"{name} writes its output, so it cannot end with a tail")
        return last_value(value, self._run_step) if type(value) is Tail else value

    def _run_step(self, call: Call) -> Any:
        self.step += 1
        if self.hands_on(call):
            return HANDED_ON
        task = call.task
        self.generator = None
        self.pure = task.options_now.pure is True
        tell_seed(self.seed)
        function = current_identity(task).renewed(task.function)
        args, kwargs = arguments_now(call, self.argument)
        self._call = (task.label, args, kwargs)
        self.function = function
        self.gives = task.gives
        self.many = self.gives & MANY != 0
        return function(*args, **kwargs)

    @property
    def call_text(self) -> str:
        """The call that runs, as the user would write it; empty before the first."""
        name, args, kwargs = self._call
        return call_text(name, args, kwargs) if name else ""


def encoded(pieces: Generator[Any, Any, Any], joined: bool) -> Iterator[list[Any]]:
    """The bytes of what a generator yields, in parts: those of each piece as soon as it is there.

    Raises TypeError for a piece that cannot be joined, Refused if a tail is returned, and
    what the generator raises.
    """
    joiner = Joiner() if joined else None
    with closing(pieces):
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                if type(end.value) is Tail:
                    end.value.take()
                    hint = "write `yield from` of the other generator"
                    raise Refused("a generator cannot end with a tail", hint=hint) from None
                break
            yield frame_of(piece) if joiner is None else joiner.pieces_of(piece)
    if joiner is not None:
        yield joiner.end()


def check_outputs(call: Call, outputs: int) -> None:
    """Raises Refused if a tail has another number of outputs than the task that it follows."""
    count = call.task.options_now.count
    if count != outputs:
        raise Refused(f"its successor has {count} outputs instead of {outputs}")


def outputs_of(value: Any, count: int | None) -> list[tuple[str, Any]]:
    """The outputs in a returned value, each with a name for messages; `None` for a plain result.

    Raises TypeError if their number is not the declared one.
    """
    if count is None:
        return [("result", value)]
    if not isinstance(value, (tuple, list)) or len(value) != count:
        found = f"{len(value)} values" if isinstance(value, (tuple, list)) else type(value).__name__
        raise TypeError(f"a task with outputs={count} returned {found}")
    return [(f"result → [{place}]", part) for place, part in enumerate(value)]
