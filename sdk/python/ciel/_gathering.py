"""Waiting for many: gather, as_completed, wait, first, map, and scope.

All of them use the current strand; this module does not know how the strand waits. The answers of
`as_completed` and `wait` depend on time, so they are recorded: a replay receives the same ones, but
another run may receive others. Read next: `_strand.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar, cast, overload

from ciel._callables import call_of
from ciel._errors import Cancelled
from ciel._flat_loop import FlatLoop
from ciel._future import Future
from ciel._strand import current
from ciel._task import AnyTask, BoundTask

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
R = TypeVar("R")

MAP_WINDOW = 256
"""Calls of a `map` that are spawned ahead. The number is the same on every machine, so that output
between them has the same position everywhere."""


def put(value: T) -> Future[T]:
    """Stores a copy of `value` once and returns its future, which can be passed to many tasks."""
    future: Future[T] = current().put(value)
    return future


@overload
def gather(futures: Iterable[Future[T]], /) -> list[T]: ...
@overload
def gather(first: Future[T], second: Future[U], /) -> list[T | U]: ...
@overload
def gather(first: Future[T], second: Future[U], third: Future[V], /) -> list[T | U | V]: ...
@overload
def gather(*futures: Future[T]) -> list[T]: ...
def gather(*futures: Any) -> list[Any]:
    """Waits for all futures and returns their values, in the order of the arguments.

    Takes futures one by one or as one iterable. Raises the exception of the first failed future in
    that order, TypeError for anything but a future.
    """
    listed = _listed(futures)
    owner = listed[0]._strand if listed else current()
    owner.wait(listed, False, None)
    return [future.result() for future in listed]


def wait(
    futures: Iterable[Future[T]],
    *,
    count: Literal["all", "first"] = "all",
    timeout: float | None = None,
) -> tuple[list[Future[T]], list[Future[T]]]:
    """Waits until all futures are resolved, or the first, for at most `timeout` seconds.

    `count` is `"all"` or `"first"`. Returns the resolved futures, failed ones included, and the
    unresolved ones, both in the order given. Raises ValueError for another `count`.
    """
    if count not in ("all", "first"):
        raise ValueError(f"count is 'all' or 'first', not {count!r}")
    listed = list(futures)
    if not listed:
        return [], []
    there = {id(future) for future in listed[0]._strand.wait(listed, count == "first", timeout)}
    done = [future for future in listed if id(future) in there]
    return done, [future for future in listed if id(future) not in there]


def as_completed(
    futures: Iterable[Future[T]], *, timeout: float | None = None
) -> Iterator[Future[T]]:
    """Yields futures as they are resolved, failed ones included.

    `timeout` is in seconds, from the first step of the iteration to its end. Raises TimeoutError,
    as `concurrent.futures.as_completed` does, if some future is not resolved by then.
    """
    listed = list(futures)
    count = 0
    if listed:
        for future in listed[0]._strand.completed(listed, timeout):
            count += 1
            yield future
    if count < len(listed):
        raise TimeoutError(f"{len(listed) - count} (of {len(listed)}) futures unfinished")


def first(futures: Iterable[Future[T]], *, timeout: float | None = None) -> T:
    """Waits for the first value, cancels the other futures, and returns the value.

    Failed and cancelled futures are passed over; if there is no other, raises the exception of the
    first in the order given. A future is not cancelled that another task can name. Raises
    TimeoutError if there is no value within `timeout` seconds, and then cancels nothing;
    ValueError for no futures.
    """
    listed = list(futures)
    if not listed:
        raise ValueError("first takes one future at least")
    for future in as_completed(listed, timeout=timeout):
        try:
            value = future.result()
        except (Exception, Cancelled):  # another one may have a value
            continue
        future._strand.cancel([other for other in listed if other is not future])
        return value
    return listed[0].result()


def map(  # noqa: A001
    function: Callable[..., R], *iterables: Iterable[Any], window: int = MAP_WINDOW
) -> Iterator[R]:
    """Spawns `function` for the items of `iterables` and yields the values in their order.

    Takes a task, or anything that can be called, as `Session.submit` does. Lazy: at most `window`
    calls are spawned and not yielded, so the iterables may be endless. Raises the exception of a
    failed call when its value is due, and that of an iterable behind the values before it;
    ValueError for `window` below 1, TypeError for one that is no whole number, for what cannot be
    called, and without iterables.
    """
    if not isinstance(window, int) or isinstance(window, bool):
        raise TypeError(f"window is a number of calls, not {window!r}")
    if not iterables:
        raise TypeError("ciel.map takes a function and at least one iterable")
    if window < 1:
        raise ValueError(f"window must be at least 1, not {window}")
    frame = sys._getframe(1)
    each = call_of(function, (), {}, frame.f_code.co_filename, frame.f_lineno)
    loop = FlatLoop(each, len(iterables), zip(*iterables, strict=False), window)
    yield from loop.known
    while (due := loop.due()) is not None:
        yield from due
        yield from loop.known


class Scope:
    """The end of a `with ciel.scope():` block waits for all tasks that were spawned inside."""

    def __init__(self) -> None:
        """Begins empty."""
        self.futures: list[Future[Any]] = []

    def __enter__(self) -> Scope:
        """Opens the scope in the current strand."""
        self._strand = current()
        self._strand.scopes = (*self._strand.scopes, self.futures)
        return self

    def cancel(self) -> int:
        """Cancels the tasks spawned in the scope so far; the number of futures that are cancelled.

        The end of the block does not wait for these. Others have ended, or another task can name
        their results.
        """
        futures = list(self.futures)
        are_cancelled = self._strand.cancel(futures)
        pairs = zip(futures, are_cancelled, strict=True)
        self.futures[:] = [future for future, is_cancelled in pairs if not is_cancelled]
        return sum(are_cancelled)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Waits for all; raises the first failure in order of spawn unless the block raised."""
        scopes = self._strand.scopes
        self._strand.scopes = [inner for inner in scopes if inner is not self.futures]
        if not isinstance(error, Exception) and error is not None:
            return
        if self.futures:
            self._strand.wait(self.futures, False, None)
        if error is None:
            for future in self.futures:
                future.result()


def scope() -> Scope:
    """`with ciel.scope():` waits at its end for every task spawned inside by this strand."""
    return Scope()


def _listed(futures: Sequence[Any]) -> list[Future[Any]]:
    if len(futures) == 1 and not isinstance(futures[0], Future):
        futures = list(futures[0])
    for future in futures:
        if not isinstance(future, Future):
            hint = " (spawn it first)" if isinstance(future, (AnyTask, BoundTask)) else ""
            raise TypeError(f"gather takes futures, not {type(future).__name__}{hint}")
    return cast("list[Future[Any]]", list(futures))
