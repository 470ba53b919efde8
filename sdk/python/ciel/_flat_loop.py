"""The loop behind `ciel.map`: calls that are spawned ahead of their values, and run in place.

Native code spawns, keeps and counts them, and says what is left to do. Short calls of a function
that leaves nothing behind run one after the other before they are asked for, without strands of
their own: what they do is seen in their results alone. One that raises, or gives what is not plain,
runs again when its value is due, in a strand or as a task. This module does not know how a call is
kept. Read next: `_short_calls.py`, `_leaves.py`, `crates/ciel-python/src/stack/ahead.rs`.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from ciel import _short_calls
from ciel._call import Call
from ciel._errors import Cancelled
from ciel._leaves import leaves_nothing
from ciel._native import Ahead, Values, advance, begin_ahead, end_ahead
from ciel._short_calls import ShortCalls
from ciel._task import spawned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciel._future import Future

ASKED_MIN = 16
"""Calls that run in place, or are spawned by `main`, before any may run ahead."""


class Turn(Enum):
    """What is given where no call is to run ahead: any other object may be an argument."""

    END = 1


END: Final = Turn.END


class FlatLoop:
    """The calls of one loop. `known` gives their values as far as native code has them."""

    def __init__(self, each: Call, count: int, given: Iterator[Any], window: int) -> None:
        """`each` is the call without the arguments that differ, of which there are `count`; `given`
        has tuples of these.

        The first value is given when `window` calls are spawned.
        """
        self._each = each
        self._function = each.task.function
        self._is_single = len(each.args) + count == 1
        self._short = ShortCalls(each.task)
        self._tried_from = min(window - 1, ASKED_MIN)
        self._asked = 0
        self._ahead = Ahead(
            each.task,
            each.args,
            (each.file, each.line),
            window,
            not each.kwargs,
            _short_calls.SHORT_S,
            END,
        )
        self.known = Values(self._ahead, given)

    def due(self) -> tuple[Any, ...] | None:
        """Does what is to be done where `known` ends. The value that is due, if it has asked for
        that; `None` at the end, where it raises what `given` has raised.
        """
        ahead = self._ahead
        items = ahead.take_items()
        if items is not None:
            self._spawn(items)
        elif not ahead:
            failure = ahead.take_failure()
            if failure is not None:
                raise failure
            return None
        elif not (self._run() or self._try()):
            return (self._ask(),)
        return ()

    def _spawn(self, items: tuple[Any, ...]) -> None:
        """Spawns a call that native code does not keep."""
        each, ahead = self._each, self._ahead
        is_tried = len(ahead) >= self._tried_from and self._short.begin()
        future = _spawned(each, (*each.args, *items))
        ahead.add(future)
        if is_tried:
            ahead.runs = self._short.run(future)

    def _try(self) -> bool:
        """If the oldest call is a task, to wait for which would make tasks of all others, tries the
        newest; whether that was kept.
        """
        ahead = self._ahead
        future = ahead.newest() if ahead.waits and self._short.begin() else None
        if future is not None:
            ahead.runs = self._short.run(future)
        return future is not None

    def _run(self) -> bool:
        """Runs calls ahead; whether there were any, or the value that is due is known by now."""
        ahead, function = self._ahead, self._function
        given = begin_ahead(ahead)
        if given is END:
            return ahead.is_known
        try:
            if self._is_single:  # such a call does not recurse in C
                while given is not END:
                    given = advance(ahead, function(given))
            else:
                while given is not END:
                    given = advance(ahead, function(*given))
        except BaseException as error:  # any other exception is raised again when it is due
            end_ahead(ahead)
            if isinstance(error, (Cancelled, KeyboardInterrupt)):
                raise
        return True

    def _ask(self) -> Any:
        """The value that is due, of its future."""
        future = self._ahead.take()
        was_asked = future._waited
        began = time.perf_counter()
        value = future.result()
        if future._ended_here and not was_asked:
            self._note(time.perf_counter() - began < _short_calls.SHORT_S)
        return value

    def _note(self, is_short: bool) -> None:
        """A call has run in place when its value was due."""
        self._asked += 1
        self._short.ended(is_short)
        if self._asked >= ASKED_MIN and leaves_nothing(self._function):
            self._ahead.runs = is_short


def _spawned(each: Call, args: tuple[Any, ...]) -> Future[Any]:
    """Spawns a call with other arguments: natively if it is plain."""
    task, file, line = each.task, each.file, each.line
    future = None if each.kwargs else task.spawn_from(args, file, line)
    if future is not None:
        return cast("Future[Any]", future)
    return spawned(Call(task, args, each.kwargs, file, line))[0]
