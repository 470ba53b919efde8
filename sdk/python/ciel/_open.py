"""`ciel.open`: files that a parallel program writes as the serial program would.

Threads of a program of its own write through `_ordered_files.py`, tasks of a job through the
engine. Read next: `ordered.py`.
"""

from __future__ import annotations

import os
from typing import Literal, TypeAlias, overload

from ciel._errors import CielError
from ciel._ordered_files import OrderedBytes, OrderedText, open_free
from ciel._strand import here

Mode: TypeAlias = Literal["global", "local", "serial-append"]
MODES = ("global", "local", "serial-append")

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]


@overload
def open(  # noqa: A001
    path: Path,
    mode: Mode = "serial-append",
    *,
    encoding: str = "utf-8",
    errors: str = "strict",
    exists: bool = False,
) -> OrderedText: ...


@overload
def open(  # noqa: A001
    path: Path,
    mode: Mode = "serial-append",
    *,
    encoding: None,
    errors: str = "strict",
    exists: bool = False,
) -> OrderedBytes: ...


def open(  # noqa: A001
    path: Path,
    mode: Mode = "serial-append",
    *,
    encoding: str | None = "utf-8",
    errors: str = "strict",
    exists: bool = False,
) -> OrderedText | OrderedBytes:
    """Opens a file that threads write as the serial program would.

    In the mode "serial-append" what strands write is appended in the order in which the serial
    program writes it, and cannot be read before the file is closed; in "local" each strand has a
    pointer of its own, which begins where that of its parent is; in "global" all share one. Strands
    are threads and calls that `ciel.ordered` starts.

    The file is text, or bytes if `encoding` is `None`; `errors` is that of `str.encode`. A file
    that is there is emptied and one that is not is made, unless `exists` says that it has to be
    there and keeps what it holds: then serial append continues at its end, and the pointers of the
    other modes are at its beginning.

    Raises:
        ValueError: another mode, or an encoding in which a newline is not one byte.
        LookupError: there is no such encoding.
        OSError: the system refuses, or the file is open for serial append already.
        CielError: it was called in a task.
    """
    if mode not in MODES:
        known = ", ".join(repr(one) for one in MODES)
        raise ValueError(f"mode of {os.fsdecode(path)!r} is {mode!r}; the modes are {known}")
    if here.strand is not None or here.serves:
        raise CielError(
            f"ciel.open({os.fsdecode(path)!r}) was called in a task: its files are for "
            "threads of a program of its own; print in the task, or return what to write"
        )
    if encoding is None:
        return open_free(path, mode, exists)
    # An encoding that cannot be used is found before the file is emptied.
    OrderedText.check(encoding, errors)
    return OrderedText(open_free(path, mode, exists), encoding, errors)
