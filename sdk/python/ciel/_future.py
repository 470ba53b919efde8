"""`Future[T]`: the result of a task that may still be running.

A future belongs to the strand that received it, and holds little more than a handle: the strand
knows the value behind it. It may be passed to other tasks, alone or inside containers, and is
frozen as a reference. This module knows neither how to wait nor the format of values. Read next:
`_strand.py`, `_freeze.py`, `_no_value.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Generic, Protocol, TypeVar, cast, overload

from ciel._atoms import SHARED
from ciel._errors import Cancelled, NotSerializable, as_told
from ciel._native import FutureState, begin, end
from ciel._no_value import NoValue
from ciel._options import check_number
from ciel._pickle_hooks import freezing, thaw_reference
from ciel._raised import Raised
from ciel._reading import Reading, Source
from ciel._task_streams import Wish

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Known(Protocol):
    """The state of the value behind a future, as its strand knows it.

    A worker's strand has a reference of the engine, a session a `Watched`, the serial program a
    `Box`.
    """

    @property
    def is_resolved(self) -> bool:
        """Whether the value, or the failure, can be read without waiting."""
        ...


class Owner(Protocol):
    """The interface of a strand that its futures use; see `Strand`."""

    label: str

    def let_go(self, handle: int) -> None:
        """A future with that handle is gone; called at any moment, in any thread."""
        ...

    def result(self, future: Future[Any]) -> Any:
        """Waits; returns a copy of the value or raises the failure."""
        ...

    def source(self, future: Future[Any]) -> Source:
        """Waits; returns where its bytes or values can be read, or raises the failure."""
        ...

    def wait(
        self, futures: Sequence[Future[Any]], count_first: bool, timeout_s: float | None
    ) -> list[Future[Any]]:
        """Waits for all, or for the first; returns the resolved ones."""
        ...

    def completed(
        self, futures: Sequence[Future[Any]], timeout_s: float | None
    ) -> Iterator[Future[Any]]:
        """Yields futures as they are resolved; ends early after `timeout_s` in all."""
        ...

    def done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Which futures are resolved now."""
        ...

    def cancel(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Cancels the tasks of futures; which are cancelled now."""
        ...

    def call_when_done(
        self, future: Future[Any], callback: Callable[[Future[Any]], object]
    ) -> None:
        """Calls back when a future is resolved; raises WaitError where nothing could call."""
        ...

    def awaiting(self, future: Future[Any]) -> Generator[Any, None, Any]:
        """Waits in asyncio code."""
        ...

    def check_here(self) -> None:
        """Raises WaitError if the calling code may not use futures of this strand."""
        ...

    def continued(self, future: Future[Any], answer: Any) -> Any:
        """The value of a future in whose place a child has run; `answer` is how that ended."""
        ...

    def end_called(self, future: Future[Any], value: Any) -> Any:
        """The value of a future whose child was called, and has given or raised `value`."""
        ...


class Future(FutureState, NoValue, Generic[T_co]):
    """The result of a spawned task.

    `result()` waits until it is resolved. A future that is passed to a task as an argument makes
    that task start when the value is ready; the caller does not wait.
    """

    __slots__ = ()

    def result(self, timeout: float | None = None) -> T_co:
        """Waits until the future is resolved and returns a copy of the value.

        Raises the task's own exception if it failed, TimeoutError if the future is not resolved
        within `timeout` seconds, and WaitError where waiting is not possible. In a task, whether
        the time was over is recorded for replay.
        """
        begun = begin(self) if timeout is None else None
        if begun is not None:
            function, args = begun
            if args is not None:
                try:
                    if len(args) == 1:  # such a call does not recurse in C
                        value = function(args[0])
                    elif len(args) == 2:
                        value = function(args[0], args[1])
                    else:
                        value = function(*args)
                    if end(value) is not None:
                        return value  # type: ignore[no-any-return]
                except BaseException as error:
                    value = Raised(error)
                value = self._ended(value)
            elif len(function) == 1:
                return function[0]  # type: ignore[no-any-return]
            else:
                value = self._begun(*function)
        else:
            self._wait(timeout)
            try:
                value = self._strand.result(self)
            except BaseException as error:
                value = Raised(error)
        if type(value) is not Raised:
            return value  # type: ignore[no-any-return]
        try:  # one line for all ways, and without the frames of this package that are inside
            raise as_told(value.error)
        finally:
            value.forget()

    @overload
    def stream(
        self: Future[bytes],
        *,
        mode: str | None = None,
        may_stream: bool | None = None,
        must_block: bool | None = None,
        no_store: bool | None = None,
        granularity: int | None = None,
    ) -> Reading[bytes]: ...
    @overload
    def stream(
        self: Future[Iterable[T]],
        *,
        mode: str | None = None,
        may_stream: bool | None = None,
        must_block: bool | None = None,
        no_store: bool | None = None,
        granularity: int | None = None,
    ) -> Reading[T]: ...
    def stream(
        self: Future[Any],
        *,
        mode: str | None = None,
        may_stream: bool | None = None,
        must_block: bool | None = None,
        no_store: bool | None = None,
        granularity: int | None = None,
    ) -> Reading[Any]:
        """What the future's task yields, or the lines of the bytes that it makes.

        A task that is passed the stream starts as soon as that is being written, and reads it
        meanwhile; it ends after the task that writes it. The program itself and a session that
        iterate here read meanwhile, too; a task waits until the stream is whole. Each call returns
        a new one, from the beginning.

        `mode`, or the flags, say how a task or a command reads it that is passed the stream; what
        cannot be had is stored, and `ciel why` says so. `granularity` is how many new bytes it has
        at once at least, while there will be more, if they are stored. Raises ValueError for a mode
        that does not exist, one beside flags, or a granularity below 1, TypeError for a flag that
        is neither True nor False.
        """
        wish = Wish(mode, may_stream, must_block, no_store, granularity)
        return Reading(lambda: self._strand.source(self), self, wish)

    def open(self: Future[bytes]) -> BinaryIO:
        """The bytes of the future as a binary file, not copied into memory.

        The program itself and a session read a stream while it is written, a task once it is whole.
        Raises CielError if it is a future of something else.
        """
        return self.stream().open()

    def _begun(
        self,
        switch: Callable[..., Any] | None,
        function: Callable[..., T_co],
        args: tuple[Any, ...],
        named: dict[str, Any] | None,
    ) -> Any:
        """The value of a child that has a greenlet of its own, or arguments that have names; or
        `Raised`.
        """
        value: Any
        if switch is not None:
            value = switch(function, args, named)
            return value if type(value) in SHARED else self._continued(value)
        try:
            value = function(*args, **(named or {}))
            if end(value) is not None:
                return value
        except BaseException as error:
            value = Raised(error)
        return self._ended(value)

    def _ended(self, value: Any) -> Any:
        try:
            return self._strand.end_called(self, value)
        except BaseException as error:
            return Raised(error)

    def _continued(self, answer: Any) -> Any:
        try:
            return self._strand.continued(self, answer)
        except BaseException as error:
            return Raised(error)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits as `result` does and returns the task's exception, `None` if it has a value.

        Raises TimeoutError, WaitError as `result` does, and Cancelled for a cancelled task.
        """
        self._wait(timeout)
        self._strand.wait([self], False, None)
        try:
            self._strand.result(self)
        except (Cancelled, KeyboardInterrupt):
            raise
        except BaseException as error:  # whatever has left the task
            return as_told(error)
        return None

    def add_done_callback(self, callback: Callable[[Future[T_co]], object]) -> None:
        """Calls `callback(self)` when the future is resolved, at once if it is.

        For futures of a session: a thread of the session calls, one callback after the other, and
        logs exceptions. Raises WaitError in a task, which has no such thread: iterate over
        `as_completed` there.
        """
        self._strand.check_here()
        self._strand.call_when_done(self, callback)

    def _wait(self, timeout: float | None) -> None:
        if timeout is not None:
            check_number("timeout", timeout, above=float("-inf"))
            self._strand.check_here()
            if not self._strand.wait([self], False, timeout):
                raise TimeoutError(f"{self!r} is not resolved after {timeout} s")

    def done(self) -> bool:
        """Whether the future is resolved now. The answer is recorded for replay.

        A task that has asked 64 times in vain frees its core for a millisecond.
        """
        self._strand.check_here()
        return bool(self._strand.done([self])[0])

    def cancel(self) -> bool:
        """Cancels the task, with what it has spawned; whether the future is cancelled now.

        False if the task has ended, if another task can name the result, or if an equal pure call
        takes it: then the task continues. `result()` of a cancelled future raises Cancelled. The
        answer is recorded for replay.
        """
        self._strand.check_here()
        return bool(self._strand.cancel([self])[0])

    @property
    def later(self) -> T_co:
        """This future, typed as its value: `f.spawn(g.spawn(1).later)`."""
        return cast(T_co, self)

    def __await__(self) -> Generator[Any, None, T_co]:
        """Waits in asyncio code. In a task, nothing else runs in its event loop meanwhile."""
        return cast("Generator[Any, None, T_co]", self._strand.awaiting(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the reference while ciel freezes a value; refuses any other pickle."""
        number = freezing.number
        if number is None:
            raise NotSerializable(
                "a Future cannot be pickled by hand: pass it as an argument, or return it",
            )
        return (thaw_reference, (number(self),))

    def __repr__(self) -> str:
        """Names the strand of the future."""
        return f"<Future of {self._strand.label or 'a session'}>"
