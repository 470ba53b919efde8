"""Standard output and standard error of strands.

`sys.stdout` and `sys.stderr` of a worker are replaced by streams that pass text and bytes to the
current strand. Output of a task's commands on descriptor 1 goes to an unlinked file, which is read
before each message of the strand, so that it keeps its position between prints and spawns. This
module knows neither strands nor the connection, only a `Writer`. Read next: `_worker_process.py`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ciel._native import Tail

STDOUT, STDERR = 0, 1

Write = Callable[[int, bytes], None]


def _nameless_file() -> io.FileIO:
    """A file in the folder for temporary files; it goes with its last descriptor.

    The folder is given by name: to find its default, `tempfile` creates a file with a name for a
    moment, which a process that is killed in that moment leaves behind.

    Raises:
        OSError: no folder for temporary files can be written to.
    """
    folder = os.environ.get("TMPDIR") or "/tmp"
    try:
        return io.FileIO(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600), "r+")
    except OSError:  # no such folder, or a file system without such files
        import tempfile

        return tempfile.TemporaryFile(buffering=0)


class Captured:
    """Descriptor 1 of this process, gathered in a file without a name.

    `tail` is the end of that file, at which native code looks, too.
    """

    def __init__(self) -> None:
        """Redirects descriptor 1 to a file that `take` reads."""
        with _nameless_file() as file:
            self._file = os.dup(file.fileno())
        descriptor = os.open(f"/proc/self/fd/{self._file}", os.O_RDWR | os.O_APPEND)
        self.tail = Tail(self._file)
        os.dup2(descriptor, 1)
        os.close(descriptor)

    def note_process(self) -> None:
        """Another process may write from now on, also what memory does not show."""
        self.tail.look_by_calls()

    def take(self) -> bytes:
        """The bytes written since the last call; usually none."""
        start, end = self.tail.unread()
        if start == end:
            return b""
        pieces = []
        while start < end:
            piece = os.pread(self._file, min(end - start, 1 << 20), start)
            if not piece:
                break
            pieces.append(piece)
            start += len(piece)
        self.tail.note_read(start)
        return b"".join(pieces)


class StrandBytes(io.RawIOBase):
    """`sys.stdout.buffer` of a worker."""

    def __init__(self, sink: int, write: Write) -> None:
        """Passes all bytes to `write` with the number of the sink."""
        super().__init__()
        self._sink = sink
        self._write = write

    def write(self, data: Any) -> int:
        """Passes the bytes on at once."""
        raw = bytes(data)
        self._write(self._sink, raw)
        return len(raw)

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """The descriptor that commands inherit."""
        return self._sink + 1

    def close(self) -> None:
        """Does nothing: the stream is not the task's own."""


class StrandText(io.TextIOBase):
    """`sys.stdout` or `sys.stderr` of a worker: passes text to the current strand."""

    def __init__(self, sink: int, write: Write) -> None:
        """As `StrandBytes`."""
        super().__init__()
        self._sink = sink
        self._write = write
        self._bytes = StrandBytes(sink, write)

    @property
    def buffer(self) -> StrandBytes:
        """The stream for bytes."""
        return self._bytes

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Always UTF-8."""
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """File names that are not UTF-8 are written unchanged."""
        return "surrogateescape"

    @property
    def name(self) -> str:
        """As Python names them."""
        return "<stderr>" if self._sink else "<stdout>"

    def write(self, text: str) -> int:
        """Passes the text on; it is sent at the end of a line, and before any other message."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._write(self._sink, text.encode("utf-8", "surrogateescape"))
        return len(text)

    def flush(self) -> None:
        """Sends an incomplete line."""
        self._write(self._sink, b"")

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Never: the engine orders the output first."""
        return False

    def fileno(self) -> int:
        """The descriptor that commands inherit."""
        return self._sink + 1

    def reconfigure(self, **_: Any) -> None:
        """Accepted and without effect: text is always UTF-8 and sent by lines."""

    def close(self) -> None:
        """Does nothing: the stream is not the task's own."""


def install(write: Write) -> None:
    """Replaces `sys.stdout` and `sys.stderr` by streams that pass everything to `write`."""
    sys.stdout = sys.__stdout__ = StrandText(STDOUT, write)  # type: ignore[misc,assignment]
    sys.stderr = StrandText(STDERR, write)


def joined(
    pieces: list[bytes | tuple[str, bytes]],
) -> Iterator[tuple[str | None, bytes]]:
    """Runs of pieces that go to one file, or to standard output, with the path of the file."""
    target: str | None = None
    run: list[bytes] = []
    for piece in pieces:
        path, data = (None, piece) if isinstance(piece, bytes) else piece
        if path != target and run:
            yield target, b"".join(run)
            run = []
        target = path
        run.append(data)
    if run:
        yield target, b"".join(run)
