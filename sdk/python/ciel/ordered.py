"""Threads that write as the serial program would: each is a strand, forked where it is started.

The serial program is the same one with each start replaced by a call at that place: `Thread.start`
runs the target, `submit` the function, and what they raise is kept where threads and futures keep
it. What a strand writes to a file of `ciel.open` stands in the file where that call would have
written it. This module knows no tasks; the order itself is in the native half. Read next:
`_ordered_files.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any, ParamSpec, TypeVar

from ciel import _native

__all__ = ["OrderedExecutor", "Strand", "Thread", "executor", "fork", "join", "thread"]

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")


class Strand:
    """A strand that was forked and has not begun, for threads of any other library.

    One that is dropped, or ended, without a run writes nothing.
    """

    def __init__(self) -> None:
        """Forks it here: what it writes precedes all that the caller writes from now on."""
        self._native = _native.OrderedStrand()

    def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls `function` as this strand, on the thread that asks for it, and ends the strand.

        Raises:
            RuntimeError: the strand has begun or ended before.
        """
        result: T = self._native.run(function, *args, **kwargs)
        return result

    def end(self) -> None:
        """Ends a strand that has not begun; otherwise does nothing."""
        self._native.end()


def fork() -> Strand:
    """Forks a strand here, to be run by any thread: `asyncio.to_thread(fork().run, work)`."""
    return Strand()


class Thread(threading.Thread):
    """A `threading.Thread` whose target writes where `start` was called."""

    _strand: Strand | None = None

    def start(self) -> None:
        """Forks the strand and starts the thread."""
        strand = fork()
        # A second start is refused, and must not touch the strand of the first.
        if self._strand is None:
            self._strand = strand
        try:
            super().start()
        except BaseException:
            strand.end()
            raise

    def run(self) -> None:
        """Runs the target as the strand."""
        if self._strand is None:
            super().run()
        else:
            self._strand.run(super().run)


def thread(
    target: Callable[..., object],
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    daemon: bool | None = None,
) -> Thread:
    """Starts a thread that calls `target`, and writes here; returns it, to be joined."""
    started = Thread(target=target, args=args, kwargs=kwargs, name=name, daemon=daemon)
    started.start()
    return started


class OrderedExecutor(Executor):
    """An executor whose calls write where they were submitted; `executor` makes one."""

    def __init__(self, pool: Executor) -> None:
        """Takes a pool of threads, which it shuts down when it is shut down itself.

        Raises:
            TypeError: it is a pool of processes, which do not share files.
        """
        if isinstance(pool, ProcessPoolExecutor):
            raise TypeError(
                "ciel.ordered.executor takes a pool of threads: processes do not share the file; "
                "return what to write, or make the calls tasks"
            )
        self._pool = pool

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submits a call, whose strand is forked here. An exception is kept by its future."""
        strand = fork()
        try:
            future = self._pool.submit(strand.run, fn, *args, **kwargs)
        except BaseException:
            strand.end()
            raise

        def end_if_cancelled(ended: Future[T]) -> None:
            if ended.cancelled():
                strand.end()

        future.add_done_callback(end_if_cancelled)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shuts the pool down, as its own method does."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def executor(pool: Executor) -> OrderedExecutor:
    """Lets the calls of a pool of threads write where they are submitted, in serial order.

    `pool` is any executor that runs calls on threads of this process, and can still be used
    itself. `map` submits its calls in the order of their arguments, so they write in that order.

    Raises:
        TypeError: it is a pool of processes.
    """
    return OrderedExecutor(pool)


def join(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Calls two functions at the same time; all that `first` writes precedes what `second` writes.

    `first` runs on a new thread, `second` on this one. In the files it is as if `second` were not
    called when `first` raises: what it wrote is not there, nor what threads write that it has
    started. Threads of either may run on when `join` has returned, and write where they were
    started. Pointers of files in local mode are afterwards where they were.

    Raises:
        Exception: what `first` raises, otherwise what `second` does, after both have ended.
    """
    group = _native.OrderedGroup()
    before: Future[T] = Future()
    behind: Future[U] = Future()
    strand, own = group.fork(), group.fork()
    helper = threading.Thread(target=_settle, args=(before, strand, first))
    try:
        helper.start()
        _settle(behind, own, second)
        helper.join()
    finally:
        strand.end()
        own.end()
        group.end()
    return before.result(), behind.result()


def _settle(future: Future[T], strand: _native.OrderedStrand, function: Callable[[], T]) -> None:
    try:
        future.set_result(strand.run(function))
    except BaseException as error:
        future.set_exception(error)
