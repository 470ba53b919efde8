"""`ciel.export`: a result in a file of the user's.

The engine writes the file, whole or not at all, when the serial order has reached the call; this
module only names the result and the path. Read next: `_shell.py`; the reference of executors.
"""

from __future__ import annotations

import os
from typing import Any

from ciel._future import Future
from ciel._options import Options
from ciel._shell import as_file
from ciel._strand import Strand, current


def export(
    result: Future[Any] | bytes | str,
    path: str | os.PathLike[str],
    /,
    *,
    overwrite: bool = False,
) -> Future[str]:
    """Puts a result, bytes or text, into the file at `path`, and returns the future of the path.

    The file is replaced at once, when the result is there and everything before this call in the
    serial program is final: as a line is that `print` would write here. A file that holds the same
    bytes is left alone; one that holds anything else is refused, unless `overwrite` is true. A
    relative path begins at the folder in which the run was started, and folders must exist. A run
    that is resumed does not export again.

    Raises TypeError at once for another path or result. At `result()`, raises Refused for a result
    that is neither bytes nor text, TaskError if the file cannot be written.
    """
    strand = current()
    made = spawn_export(strand, result, path, overwrite)
    strand.note((made,))
    return made


def spawn_export(
    strand: Strand, result: Any, path: str | os.PathLike[str], overwrite: bool
) -> Future[str]:
    """`export` on a given strand, not noted; see there."""
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"the path of an export must be text, not {name!r}")
    arguments = {
        "input": as_file(strand, "the result of an export", result),
        "path": name,
        "overwrite": bool(overwrite),
    }
    label = os.path.basename(name)
    return strand.spawn_executor("export", arguments, 1, Options(), label)[0]
