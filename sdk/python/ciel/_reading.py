"""`Reading`: what `Future.stream()` returns, to be iterated, or passed to a task.

A task that is given one starts as soon as the stream is open, and reads it while it is written. The
reader of a stream in place is told when its task has ended. This module does not know where the
bytes come from: a strand finds the `Source`. Read next: `_frames.py`; docs/pipelines.md.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar, cast

from ciel._arrow import batches_from
from ciel._errors import CielError, NotSerializable, as_told
from ciel._frames import FORM
from ciel._native import FutureState
from ciel._pickle_hooks import freezing, thaw_stream
from ciel._task_streams import Wish

T_co = TypeVar("T_co", covariant=True)

STREAMED = frozenset({FORM, "bytes"})
"""The forms of objects that can be read from a file as they come."""


class Source(NamedTuple):
    """Where a stream comes from: a file of that form, or a value that is whole.

    `values` reads values from the file; it has bytes without.
    """

    form: str
    file: BinaryIO | None
    value: Any = None
    values: Callable[[BinaryIO], Iterator[Any]] | None = None

    @staticmethod
    def of_value(value: Any) -> Source:
        """A value that is there: bytes are a file."""
        if isinstance(value, bytes):
            return Source("bytes", io.BytesIO(value))
        return Source("", None, value)

    def itself(self) -> Source:
        """This source, for a reading of what is there already."""
        return self

    def pieces(self) -> Iterator[Any]:
        """Values as they were yielded; the lines of bytes; the parts of any other value."""
        if self.file is None:
            return iter(self.value)
        return (self.values or lines_of)(self.file)


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, which is closed behind the last one."""
    with file:
        yield from file


class FailedBytes(io.RawIOBase):
    """What a failed task has written of a stream: its exception is raised behind that."""

    def __init__(self, data: bytes, error: BaseException) -> None:
        """Has the bytes in memory."""
        super().__init__()
        self._data = io.BytesIO(data)
        self._error = error

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises the exception behind the last byte."""
        count = self._data.readinto(buffer)
        if not count:
            raise self._error
        return count


class Reading(Generic[T_co]):
    """The pieces of a stream, in order and once.

    They are the values that a generator task has yielded, or the lines of bytes, each with its end.
    A task that is passed a reading gets its pieces while they are written.
    """

    __slots__ = ("_find", "_future", "_pieces", "wish")

    def __init__(
        self,
        find: Callable[[], Source],
        future: FutureState | None = None,
        wish: Wish = Wish(),  # noqa: B008
    ) -> None:
        """`find` waits for the stream, and is called at the first use; `wish` is of a task's."""
        self._find = find
        self._future = future
        self.wish = wish
        self._pieces: Iterator[Any] | None = None

    def __iter__(self) -> Reading[T_co]:
        """Returns itself."""
        return self

    def __next__(self) -> T_co:
        """The next piece, as soon as it is there.

        Raises the exception of the task that makes the stream if it has failed.
        """
        if self._pieces is None:
            self._pieces = self._source().pieces()
        return cast(T_co, next(self._pieces))

    def open(self) -> BinaryIO:
        """The bytes of the stream as a binary file, which can be read once.

        Raises CielError if the stream has values instead of bytes, or has been iterated.
        """
        return self._opened("open() is for bytes, and these are values")

    def batches(self) -> Iterator[Any]:
        """The record batches of a stream in the IPC format of Arrow, each as soon as it is there.

        A task that is joined and yields record batches makes one, and so does any program that
        knows Arrow. Raises CielError without `pyarrow`, and as `open` does.
        """
        return batches_from(
            self._opened("batches() is for the bytes of record batches, and these are values")
        )

    def _opened(self, if_values: str) -> BinaryIO:
        if self._pieces is not None:
            raise CielError("this stream is being iterated: call .stream() of the future again")
        source = self._source()
        if source.file is None or source.form != "bytes":
            raise CielError(
                if_values,
                hint="iterate over .stream(), or declare the generator: @ciel.task(joined=True)",
            )
        self._pieces = iter(source.file)
        return source.file

    def _source(self) -> Source:
        try:
            return self._find()
        except BaseException as error:  # without the frames of this package
            raise as_told(error)

    @property
    def unread(self) -> FutureState:
        """The future of the stream, of which nothing was read.

        Raises NotSerializable if something was, or if the stream was passed on before.
        """
        if self._future is None or self._pieces is not None:
            raise NotSerializable(
                "a stream that is being read cannot be passed on",
                hint="pass future.stream() to each of its readers",
            )
        return self._future

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the reference while ciel freezes arguments; refuses any other pickle."""
        number = freezing.number
        if number is None or not freezing.takes_streams:
            raise NotSerializable(
                "a stream cannot be a result or a part of one: pass future.stream() to a task",
            )
        self.unread  # noqa: B018
        return (thaw_stream, (number(self),))

    def __repr__(self) -> str:
        """Names the future."""
        return f"<stream of {self._future!r}>" if self._future is not None else "<stream>"
