"""`ciel.skywriting`: tasks that are whole scripts of the language Skywriting.

The engine reads, checks and runs the file; this module only passes its name, and refuses arguments
that a script cannot take. Read next: `_shell.py`, for commands; the reference of executors.
"""

from __future__ import annotations

import os
from typing import Any

from ciel._future import Future
from ciel._options import Options
from ciel._strand import Strand, current

Argument = str | int | float | bool | os.PathLike[str]
"""What a script can be given; it sees text."""


def skywriting(
    file: str | os.PathLike[str], /, *args: Argument, options: Options | None = None
) -> Future[Any]:
    """Spawns the script in `file` and returns the future of its value.

    A relative path begins at the folder of the job's own file. The script finds `args` in `argv()`,
    as text. Its value is JSON: null, booleans, numbers, text, lists, dictionaries; references
    inside are futures. The file is read once in a run.

    Raises TypeError at once for an argument that is neither text nor number nor boolean. A script
    that cannot be read or has errors raises Refused at `result()`; one that fails raises TaskError.
    """
    strand = current()
    made = spawn_script(strand, file, args, options)
    strand.note((made,))
    return made


def spawn_script(
    strand: Strand,
    file: str | os.PathLike[str],
    args: tuple[Argument, ...],
    options: Options | None,
) -> Future[Any]:
    """`skywriting` on a given strand, not noted; see there."""
    asked = options if options is not None else Options()
    name = os.fspath(file)
    if not isinstance(name, str):
        raise TypeError(f"the name of a script must be text, not {name!r}")
    arguments = {"file": name, "args": [_argument(value) for value in args]}
    label = asked.name or os.path.splitext(os.path.basename(name))[0]
    return strand.spawn_executor("skywriting", arguments, 1, asked, label)[0]


def _argument(value: Any) -> Any:
    """An argument in the form that the executor expects."""
    if isinstance(value, Future):
        raise TypeError("a script cannot be given a future: pass its result()")
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        if isinstance(path, str):
            return path
    kind = type(value).__name__
    raise TypeError(f"arguments of a script are text, numbers and booleans, not {kind}")
