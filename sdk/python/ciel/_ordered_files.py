"""Files that threads of a program write as the serial program would: the file objects.

They wrap the native files of crate `ciel-files`, which know the strands; threads become strands in
`ordered.py`. This module knows no tasks and no engine. Read next: `_open.py`.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from ciel import _native

if TYPE_CHECKING:
    from typing_extensions import Buffer

READ_BYTES = 1 << 16
"""Bytes that are asked for at once where all of a file is read."""


class OrderedBytes(io.RawIOBase):
    """An open file of bytes, made by `ciel.open(path, mode, encoding=None)`.

    Any thread that is a strand of the one that opened it may use it; see `ciel.ordered`. Each write
    is complete: there are no short ones. In the mode "serial-append", reading and moving raise
    `io.UnsupportedOperation`; after `close` everything raises ValueError; a thread that is no
    strand gets RuntimeError; what the system refuses is an OSError with the path.
    """

    def __init__(self, path: str, mode: str, native: _native.OrderedFile) -> None:
        """Takes over an open file; `ciel.open` makes one."""
        super().__init__()
        self._path = path
        self._mode = mode
        self._native = native
        self._is_ended = False

    @property
    def name(self) -> str:
        """The path as it was given."""
        return self._path

    @property
    def mode(self) -> str:
        """One of "global", "local" and "serial-append"."""
        return self._mode

    def write(self, data: Buffer, /) -> int:
        """Writes all of `data`; returns the number of bytes."""
        raw = data if type(data) is bytes else bytes(memoryview(data))
        self._native.write(raw)
        return len(raw)

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads `size` bytes, or all up to the end; fewer only at the end."""
        wanted = -1 if size is None else size
        parts: list[bytes] = []
        while wanted != 0:
            part = self._native.read(READ_BYTES if wanted < 0 else wanted)
            if not part:
                break
            parts.append(part)
            wanted -= len(part) if wanted > 0 else 0
        return b"".join(parts)

    def readall(self) -> bytes:
        """Reads all bytes from the pointer to the end."""
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        """Reads into a buffer; returns the number of bytes, 0 at the end."""
        view = memoryview(buffer).cast("B")
        part = self._native.read(len(view))
        view[: len(part)] = part
        return len(part)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Moves the pointer: in local mode that of this strand, in global mode that of all.

        Returns the new place, in bytes from the beginning.
        """
        return self._native.seek(offset, whence)

    def tell(self) -> int:
        """The place of the pointer, in bytes from the beginning."""
        return self.seek(0, os.SEEK_CUR)

    def flush(self) -> None:
        """Puts what this strand has written into the file, if its turn has come.

        Otherwise the bytes wait for the strands that precede it.
        """
        if not self._is_ended:
            self._native.flush()

    def dup(self) -> OrderedBytes:
        """Another handle of the same open file; the file ends when the last one is closed."""
        return OrderedBytes(self._path, self._mode, self._native.dup())

    def close(self) -> None:
        """Closes the handle; the last one ends the file, which is whole then.

        Raises:
            RuntimeError: strands that precede this one still run; the file stays open.
            OSError: a write has failed, or the file was changed from outside.
        """
        if self.closed:
            return
        try:
            self._native.close()
        except RuntimeError:
            raise
        except BaseException:
            self._end()
            raise
        self._end()

    def _end(self) -> None:
        # The base class flushes when it closes, and the native file is closed already.
        self._is_ended = True
        super().close()

    def readable(self) -> bool:
        """Whether the mode is one with pointers."""
        return self._mode != "serial-append"

    def writable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Whether the mode is one with pointers."""
        return self.readable()

    def fileno(self) -> NoReturn:
        """Refused: who writes to the descriptor writes past the order and the pointers."""
        raise io.UnsupportedOperation(
            f"{self._path!r} is open in the mode {self._mode!r} and gives no descriptor: bytes "
            "written there would be out of order; write to the file object, or use "
            "subprocess.PIPE and write what comes"
        )

    def __repr__(self) -> str:
        """Its path and mode."""
        return f"<ciel file {self._path!r} mode={self._mode!r}>"


class OrderedText(io.TextIOBase):
    """An open file of text, made by `ciel.open(path, mode)`: each call writes all of its text.

    It behaves as `OrderedBytes`, which `buffer` is. Newlines are "\\n" and are not translated.
    `seek` and `tell` count bytes.
    """

    def __init__(self, raw: OrderedBytes, encoding: str, errors: str) -> None:
        """Takes over a file of bytes; the encoding was checked."""
        super().__init__()
        self._raw = raw
        self._encoding = encoding
        self._errors = errors

    @staticmethod
    def check(encoding: str, errors: str) -> None:
        """Refuses an encoding that files of text cannot have.

        Raises:
            LookupError: there is no such encoding or way to treat its errors.
            ValueError: a newline is not one byte in that encoding.
        """
        codecs.lookup_error(errors)
        if "\n".encode(encoding) != b"\n":
            raise ValueError(f"a newline is not one byte in {encoding!r}: open it with UTF-8")

    @property
    def buffer(self) -> OrderedBytes:
        """The file of bytes."""
        return self._raw

    @property
    def name(self) -> str:
        """The path as it was given."""
        return self._raw.name

    @property
    def mode(self) -> str:
        """One of "global", "local" and "serial-append"."""
        return self._raw.mode

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """How text becomes bytes."""
        return self._encoding

    @property
    def errors(self) -> str:  # type: ignore[override]
        """What becomes of characters that the encoding lacks."""
        return self._errors

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._raw.closed

    def write(self, text: str, /) -> int:
        """Writes all of `text` in one piece; returns the number of characters.

        Raises:
            TypeError: it is no text; bytes go to `buffer`.
        """
        if not isinstance(text, str):
            kind = type(text).__name__
            raise TypeError(f"a file of text takes str, not {kind}: its buffer takes bytes")
        self._raw.write(text.encode(self._encoding, self._errors))
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:  # type: ignore[override]
        """Writes them one after another, without newlines of its own."""
        for line in lines:
            self.write(line)

    def read(self, size: int | None = -1, /) -> str:
        """Reads `size` characters, or all up to the end; fewer only at the end."""
        if size is None or size < 0:
            return self._raw.read().decode(self._encoding, self._errors)
        decoder = codecs.getincrementaldecoder(self._encoding)(self._errors)
        text = ""
        # A character has a byte at least, so nothing behind the last one is read.
        while len(text) < size or decoder.getstate()[0]:
            part = self._raw.read(max(size - len(text), 1))
            text += decoder.decode(part, final=not part)
            if not part:
                break
        return text

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Reads to the end of the line; `size` is in bytes.

        In global mode other threads may read between the bytes of a line.
        """
        return self._raw.readline(size).decode(self._encoding, self._errors)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Moves the pointer by bytes, as that of `OrderedBytes`."""
        return self._raw.seek(offset, whence)

    def tell(self) -> int:
        """The place of the pointer, in bytes from the beginning."""
        return self._raw.tell()

    def flush(self) -> None:
        """As that of `OrderedBytes`."""
        self._raw.flush()

    def dup(self) -> OrderedText:
        """Another handle of the same open file; the file ends when the last one is closed."""
        return OrderedText(self._raw.dup(), self._encoding, self._errors)

    def close(self) -> None:
        """As that of `OrderedBytes`."""
        self._raw.close()

    def readable(self) -> bool:
        """Whether the mode is one with pointers."""
        return self._raw.readable()

    def writable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Whether the mode is one with pointers."""
        return self._raw.seekable()

    def fileno(self) -> NoReturn:
        """Refused, as that of `OrderedBytes`."""
        self._raw.fileno()

    def __repr__(self) -> str:
        """Its path, mode and encoding."""
        return f"<ciel file {self.name!r} mode={self.mode!r} encoding={self._encoding!r}>"


def open_free(path: Any, mode: str, exists: bool, structured: bool) -> OrderedBytes:
    """Opens a file without an engine; by default it is made, and emptied if it is there.

    Raises:
        ValueError: another mode, or one in which no structured file is written.
        OSError: the system refuses, or it is open for serial append already.
    """
    name = os.fsdecode(path)
    if structured and (mode != "serial-append" or exists):
        raise ValueError(
            f"{name!r} is to be structured: such a file is written from its start, in the mode "
            "'serial-append' and without exists=True"
        )
    native = _native.OrderedFile(name, mode, not exists, not exists, structured)
    return OrderedBytes(name, mode, native)
