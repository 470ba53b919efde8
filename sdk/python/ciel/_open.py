"""`ciel.open`: files that tasks write in serial order.

Read next: `_task_files.py`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ciel._errors import NoRun
from ciel._task_files import MODE, is_in_task, open_in_task

if TYPE_CHECKING:
    from ciel._task_files import OrderedFile


def open(  # noqa: A001
    path: str | os.PathLike[str], mode: str = MODE
) -> OrderedFile:
    """Opens a file that receives what the serial program would write there, in serial order.

    Any task may open it, and a child may be given the open file; all of them append to one file.
    `mode` is "serial-append". A file that is missing or empty is written, one that holds the
    beginning of the output is compared with it and continued, and any other fails the task, unless
    `ciel run` was given `--overwrite`.

    Raises:
        ValueError: another mode.
        NoRun: there is no task here.
        OSError: the path is a folder, or its folder is missing.
    """
    if mode != MODE:
        raise ValueError(f"mode is {mode!r}; a file of tasks has the mode {MODE!r}")
    if not is_in_task():
        raise NoRun("ciel.open was called outside of a task")
    return open_in_task(path)
