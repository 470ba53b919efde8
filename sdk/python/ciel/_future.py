"""`Future[T]`: a value that a task is making.

A future belongs to the strand that got it and is a small ticket: what is behind it the strand
knows. It may be passed to other tasks, alone or inside containers, and is frozen as a reference.
This module knows neither how to wait nor what bytes look like. Read next: `_strand.py`,
`_freeze.py`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from ciel._errors import CielError, NotSerializable, WaitError, as_told
from ciel._freeze import freezing, thaw_reference
from ciel._strand import here

if TYPE_CHECKING:
    from ciel._strand import Strand

T = TypeVar("T")


class Known(Protocol):
    """What a strand knows of the value behind one of its futures.

    A worker's strand has a reference of the engine, a session a `Watched`, the serial program a
    `Box`.
    """

    @property
    def is_resolved(self) -> bool:
        """Whether the value, or the failure, can be read without waiting."""
        ...


class Future(Generic[T]):
    """A value that is there later.

    `result()` waits for it. Passing the future to a task instead makes that task start when the
    value is there, and costs no waiting here.
    """

    __slots__ = ("_strand", "_handle", "_known", "_waited", "__weakref__")

    def __init__(self, strand: Strand, handle: int, known: Known | None = None) -> None:
        """For strands only: `handle` is the strand's own number for it."""
        self._strand = strand
        self._handle = handle
        self._known = known
        self._waited = False

    def result(self) -> T:
        """Waits until the value is there and gives a copy of it.

        Raises the task's own exception if it failed, and WaitError where waiting is impossible.
        """
        try:
            return cast(T, self._strand.result(self))
        except BaseException as error:  # the frames between here and the task are nobody's business
            raise as_told(error)

    def done(self) -> bool:
        """Whether the value, or the failure, is there now. The answer is recorded for replays."""
        self._check_here()
        return self._strand.done([self])[0]

    @property
    def later(self) -> T:
        """This future, typed as its value: `f.spawn(g.spawn(1).later)`."""
        return cast(T, self)

    def __await__(self) -> Generator[Any, None, T]:
        """Waits in asyncio code outside of tasks, for futures of a session."""
        return cast("Generator[Any, None, T]", self._strand.awaiting(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Gives the reference while ciel freezes a value; refuses anybody else's pickle."""
        number = freezing.number
        if number is None:
            raise NotSerializable(
                "a Future cannot be pickled by hand: pass it as an argument, or return it",
            )
        return (thaw_reference, (number(self),))

    def __repr__(self) -> str:
        """Says whose future it is."""
        return f"<Future {self._handle} of {self._strand.label or 'a session'}>"

    def __bool__(self) -> bool:
        """Refuses: a future is no value, and a test of it is nearly always a forgotten result()."""
        raise CielError("a Future has no truth value: call .result() first")

    def _check_here(self) -> None:
        owner = self._strand
        running = here.strand
        if running is not owner and not owner.any_thread:
            where = running.label if running is not None else "a thread that runs no task"
            raise WaitError(
                f"this future belongs to {owner.label} and is used in {where}: "
                "pass it as an argument"
            )
