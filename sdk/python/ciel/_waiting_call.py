"""A call with futures among its arguments that `main` keeps until it asks for the result.

As a task such a call needs a way to a worker and one back after the last of its inputs. If `main`
asks for the result right after the spawn, it waits for the inputs instead, and then runs the call
itself, if that is known to be short and leaves nothing behind. Until the inputs are there the
spawn has not been: `main` waits as if it were the next one. Whatever does not go as usual is left
to a task of the same call. This module does not know how a strand waits. Read next:
`_keeping_strand.py`, `_leaves.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from ciel._atoms import ATOMS, is_plain
from ciel._early import trials_of
from ciel._errors import Cancelled
from ciel._future import Future
from ciel._in_place import Kept, Returned
from ciel._native import plain_arguments
from ciel._payload import is_small

if TYPE_CHECKING:
    from ciel._call import Call, TaskFunction


class Place(NamedTuple):
    """Where the spawn of a call is in its program: the counters of the strand before it."""

    action: int
    handle: int
    observed: int
    arguments: int


class WaitingCall(Kept):
    """A kept child whose arguments are plain values and `futures`.

    `spawn` has what its spawn needs but the payload: definition, line and inputs; `None` for one
    that is sealed.
    """

    __slots__ = ("place", "args", "spawn")

    def __init__(
        self,
        call: Call,
        payload: bytes,
        place: Place,
        spawn: tuple[Any, int, list[int]] | None,
    ) -> None:
        """It has not begun."""
        super().__init__(call.task, None, payload, place.action, place.handle, spawn is None)
        self.place = place
        self.args = call.args
        self.spawn = spawn

    @property
    def futures(self) -> list[Future[Any]]:
        """The futures among its arguments."""
        return [one for one in self.args if type(one) is Future]

    def given_plainly(self) -> tuple[Any, ...] | None:
        """Its arguments, once all is known; `None` if a future has no small plain value."""
        return plain_arguments(self.args)


def may_wait(call: Call) -> bool:
    """Whether a call has plain values and futures of tasks only, one of these at least."""
    args, is_any = call.args, False
    if call.kwargs or call.task.keeps or call.task.copied is not None:
        return False
    for value in args:
        if type(value) is Future:
            if value._child is not None or type(value._known) is Returned:
                return False
            is_any = True
        elif not is_plain(value):
            return False
    return is_any


def called(task: TaskFunction, args: tuple[Any, ...], short_s: float) -> Returned | None:
    """The result of the function; `None` if the call is to run as a task.

    One that takes longer than `short_s` seconds is measured again.
    """
    began = time.perf_counter()
    try:
        value = task.function(*args)
    except (Cancelled, KeyboardInterrupt):
        raise
    except BaseException:  # raised again by the task
        note_tried(task, False)
        return None
    is_short = time.perf_counter() - began < short_s
    if not is_short:
        task.suits_root = None
    is_light = type(value) in ATOMS and is_small(value)
    note_tried(task, is_short and is_light)
    return Returned(value, None) if is_light else None


def note_asked(task: TaskFunction) -> None:
    """A root has asked for a call right after its spawn: the next one is kept until then."""
    if task.suits_root is not False:
        task.keeps_waiting = trials_of(task).next()


def note_tried(task: TaskFunction, is_usual: bool) -> None:
    """A call that was kept has run in place of the root as it should, or has not."""
    trials_of(task).ended(is_usual)
    task.keeps_waiting = is_usual
