"""`ciel.Executor`: a `concurrent.futures.Executor` whose calls are tasks of a session.

A library that takes an executor takes this one. Calls that the engine was given are running, as
the standard library has it; a few more than there are cores, so that no worker waits for the next.
The rest waits in a `Dispatcher` and can be cancelled. Read next: `_dispatcher.py`,
`_session.py`.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from ciel._callables import call_of
from ciel._dispatcher import Dispatcher, Work
from ciel._session import Session

P = ParamSpec("P")
R = TypeVar("R")

GIVEN_PER_CORE = 4
"""Calls that the engine holds for each core: one runs, the others wait at its worker."""


class Executor(concurrent.futures.Executor):
    """Runs calls as tasks of a session; the executor protocol of `concurrent.futures`.

    Arguments are copied at the submit, results when they arrive. `max_workers` is how many
    cores to use, all by default; the executor then has a session of its own, which ends with
    `shutdown`. An open `session` may be given instead, for its other options; it stays open.
    """

    def __init__(
        self, max_workers: int | None = None, *, session: Session | None = None
    ) -> None:
        """Raises ValueError for `max_workers` below 1 or beside a session, and as `Session`."""
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if max_workers is not None and session is not None:
            raise ValueError("a session has its own number of cores: leave max_workers out")
        used = session if session is not None else Session(jobs=max_workers)
        cores = max_workers or len(os.sched_getaffinity(0))
        self._dispatcher = Dispatcher(used, session is None, GIVEN_PER_CORE * cores)
        weakref.finalize(self, self._dispatcher.retire).atexit = False

    def submit(
        self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[R]:
        """Submits a call of a function, a task or any other callable.

        What cannot be pickled, and a session that is closed, are exceptions of the future. Raises
        TypeError for what cannot be called, RuntimeError after `shutdown`, BrokenExecutor once the
        engine was lost.
        """
        frame = sys._getframe(1)
        call = call_of(fn, args, kwargs, frame.f_code.co_filename, frame.f_lineno)
        promise: concurrent.futures.Future[R] = concurrent.futures.Future()
        self._dispatcher.take(Work(promise, call))
        return promise

    def map(
        self,
        fn: Callable[..., R],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[R]:
        """Submits a call for the items of `iterables`, yields the values in their order.

        `chunksize` items become one task. Raises TimeoutError if a value is not there `timeout`
        seconds after this call, ValueError for `chunksize` below 1.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout)
        chunks = _chunks(zip(*iterables, strict=False), chunksize)
        lists = super().map(_call_each, itertools.repeat(fn), chunks, timeout=timeout)
        return _flattened(lists)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls; with `wait` until all are done and the engine has ended.

        `cancel_futures` cancels those that the engine has not been given.
        """
        self._dispatcher.retire(cancel_futures)
        if wait:
            self._dispatcher.finish()


def _call_each(fn: Callable[..., R], items: list[tuple[Any, ...]]) -> list[R]:
    return [fn(*arguments) for arguments in items]


def _chunks(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(itertools.islice(items, size)):
        yield chunk


def _flattened(lists: Iterator[list[R]]) -> Iterator[R]:
    """The values one by one; none is referred to after it was yielded."""
    for values in lists:
        values.reverse()
        while values:
            yield values.pop()
