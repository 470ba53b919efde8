"""`ciel.open`: files that a parallel program writes as the serial program would.

Threads of a program of its own write through `_ordered_files.py`, tasks of a job through the
engine. Read next: `ordered.py`, `_task_files.py`.
"""

from __future__ import annotations

import codecs
import errno
import os
from typing import Literal, TypeAlias, cast, overload

from ciel._ordered_files import OrderedBytes, OrderedText, open_free
from ciel._task_files import OrderedFile, is_in_task, open_in_task

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
    structured: bool = False,
) -> OrderedText: ...


@overload
def open(  # noqa: A001
    path: Path,
    mode: Mode = "serial-append",
    *,
    encoding: None,
    errors: str = "strict",
    exists: bool = False,
    structured: bool = False,
) -> OrderedBytes: ...


def open(  # noqa: A001
    path: Path,
    mode: Mode = "serial-append",
    *,
    encoding: str | None = "utf-8",
    errors: str = "strict",
    exists: bool = False,
    structured: bool = False,
) -> OrderedText | OrderedBytes:
    """Opens a file that a parallel program writes as the serial program would.

    In a task of a job, the file receives what the serial program would write there, whatever runs
    when, in the mode "serial-append". Any task may open it, and a child may be given the open file;
    all of them append to one file. It takes text, as UTF-8, and bytes. A file that is missing or
    empty is written, one that holds the beginning of the output is compared with it and continued,
    and any other fails the task, unless `ciel run` was given `--overwrite`.

    Elsewhere the file is that of threads. In the mode "serial-append" what strands write is
    appended in the order in which the serial program writes it, and cannot be read before the file
    is closed; in "local" each strand has a pointer of its own, which begins where that of its
    parent is; in "global" all share one. Strands are threads and calls that `ciel.ordered` starts.
    The file is text, or bytes if `encoding` is `None`; `errors` is that of `str.encode`. A file
    that is there is emptied and one that is not is made, unless `exists` says that it has to be
    there and keeps what it holds: then serial append continues at its end, and the pointers of the
    other modes are at its beginning. With `structured` serial append makes a `.cio` file, in which
    every byte is written once, where it stays, and of which a program that is killed leaves what
    was in order: `ciel cat` prints it, and the other modes read it.

    Raises:
        ValueError: another mode, or an encoding in which a newline is not one byte; `structured` in
            another mode or with `exists`; in a task, any mode but "serial-append", any encoding but
            UTF-8, and `structured`.
        LookupError: there is no such encoding.
        OSError: the system refuses, the path is a folder, or the file is open for serial append
            already.
    """
    if mode not in MODES:
        known = ", ".join(repr(one) for one in MODES)
        raise ValueError(f"mode of {os.fsdecode(path)!r} is {mode!r}; the modes are {known}")
    if is_in_task():
        # It has the methods of both, as far as a file that is only appended to can have them.
        if structured:
            raise ValueError(
                f"{os.fsdecode(path)!r} is a file of tasks, which is never structured: leave out "
                "`structured`; the flat file is in serial order at any time, also after a kill"
            )
        return cast(OrderedText, _open_in_task(os.fsdecode(path), mode, encoding, errors, exists))
    if encoding is None:
        return open_free(path, mode, exists, structured)
    # An encoding that cannot be used is found before the file is emptied.
    OrderedText.check(encoding, errors)
    return OrderedText(open_free(path, mode, exists, structured), encoding, errors)


def _open_in_task(
    path: str, mode: Mode, encoding: str | None, errors: str, exists: bool
) -> OrderedFile:
    if mode != "serial-append":
        raise ValueError(
            f"mode of {path!r} is {mode!r}; a file of tasks has the mode 'serial-append'"
        )
    is_utf_8 = encoding is None or codecs.lookup(encoding).name == "utf-8"
    if not is_utf_8 or errors != "strict":
        raise ValueError(f"{path!r} is a file of tasks: its text is UTF-8; encode it, pass bytes")
    if exists and not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return open_in_task(path)
