"""Ordered files of tasks: what a strand writes goes to a file at the strand's serial position.

The engine orders the bytes, as those of standard output; in the serial program of `ciel.testing`
they are written at once. This module knows neither strands nor the connection, only who takes
bytes. Read next: `_worker_process.py`, `_serial.py`.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ciel._strand import here

if TYPE_CHECKING:
    from collections.abc import Iterable

MODE = "serial-append"
COMPARED_BYTES_MAX = 1 << 16

WriteFile = Callable[[str, bytes, bool], None]
"""Takes a path, bytes and whether they are to leave now; no bytes only open the file."""


class _Process:
    """Who takes the bytes in this process; `None` outside of workers."""

    write: WriteFile | None = None


def install(write: WriteFile) -> None:
    """From now on tasks of this process write their files there."""
    _Process.write = write


def _writer() -> WriteFile | None:
    own = getattr(here.strand, "write_file", None)
    return own if own is not None else _Process.write


def is_in_task() -> bool:
    """Whether what runs here can write ordered files."""
    return _writer() is not None


def open_in_task(path: str | os.PathLike[str]) -> OrderedFile:
    """The ordered file at a path, made if it is missing; relative to the working folder.

    Raises:
        OSError: the path is a folder, or its folder is missing.
    """
    return OrderedFile(os.path.abspath(os.fspath(path)))


class OrderedFile(io.TextIOBase):
    """An open ordered file: text is written as UTF-8, bytes unchanged.

    It can be written only: to read it or to move in it raises `io.UnsupportedOperation`, to write
    after `close` ValueError. It can be passed to other tasks. What is written is sent at the end
    of a line, with `flush` and `close`, and before anything else that the task does.
    """

    def __init__(self, path: str) -> None:
        """Opens the file."""
        super().__init__()
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not os.path.isdir(os.path.dirname(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._path = path
        self._pass_on(b"", False)

    @property
    def name(self) -> str:
        """The absolute path."""
        return self._path

    @property
    def mode(self) -> str:
        """Always "serial-append"."""
        return MODE

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Always UTF-8."""
        return "utf-8"

    def write(self, data: str | bytes | bytearray | memoryview) -> int:
        """Appends text or bytes; returns the number of characters or bytes.

        Raises:
            ValueError: the file is closed.
            TypeError: it is neither text nor bytes.
        """
        self._check_open()
        if isinstance(data, str):
            raw, length = data.encode("utf-8", "surrogateescape"), len(data)
        else:
            raw = bytes(memoryview(data))
            length = len(raw)
        if raw:
            self._pass_on(raw, raw.endswith(b"\n"))
        return length

    def writelines(self, lines: Iterable[Any]) -> None:
        """Appends them one after another, without newlines of its own."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Sends an incomplete line."""
        self._check_open()
        self._pass_on(b"", True)

    def dup(self) -> OrderedFile:
        """Another handle of the same file."""
        self._check_open()
        return OrderedFile(self._path)

    def writable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int | None = -1, /) -> NoReturn:
        """Cannot be done: raises `io.UnsupportedOperation`."""
        raise io.UnsupportedOperation(f"{self._path} is open for serial-append, not for reading")

    readline = read

    def seek(self, offset: int, whence: int = 0, /) -> NoReturn:
        """Cannot be done: raises `io.UnsupportedOperation`."""
        raise io.UnsupportedOperation(f"{self._path} is open for serial-append, which has no place")

    def tell(self) -> NoReturn:
        """As `seek`."""
        self.seek(0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another task opens the same file."""
        self._check_open()
        return OrderedFile, (self._path,)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"{self._path} is closed")

    def _pass_on(self, data: bytes, now: bool) -> None:
        write = _writer()
        if write is not None:
            write(self._path, data, now)


class SerialFiles:
    """The files of a serial program: each byte is written, or compared, at once."""

    def __init__(self) -> None:
        """Knows no file."""
        self._files: dict[str, _SerialFile] = {}

    def write(self, path: str, data: bytes, now: bool) -> None:
        """Appends bytes to the file at a path; `now` is without effect.

        Raises:
            OSError: the file cannot be written, or does not hold the beginning of the output.
        """
        path = os.path.realpath(path)
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = _SerialFile(path)
        file.write(data)

    def close(self) -> None:
        """Closes all files."""
        for file in self._files.values():
            os.close(file.descriptor)
        self._files.clear()


class _SerialFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._length = os.fstat(self.descriptor).st_size
        self._at = 0

    def write(self, data: bytes) -> None:
        """Compares what the file has, and appends the rest."""
        known = data[: max(0, self._length - self._at)]
        for start in range(0, len(known), COMPARED_BYTES_MAX):
            part = known[start : start + COMPARED_BYTES_MAX]
            if os.pread(self.descriptor, len(part), self._at + start) != part:
                raise FileExistsError(
                    f"{self.path} does not hold the beginning of what is written there: it differs "
                    f"behind byte {self._at + start}"
                )
        self._at += len(known)
        rest = memoryview(data)[len(known) :]
        while rest:
            count = os.pwrite(self.descriptor, rest, self._at)
            self._at += count
            rest = rest[count:]
