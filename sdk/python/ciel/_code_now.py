"""What the tasks of a Python job reach now, as JSON, for `ciel run -n`.

It imports the job's file as workers do, which runs the module level of the program, and no task.
What the modules print goes to standard error. It does not know what the tasks reached before. Read
next: `_code.py`, `_reached.py`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from ciel._call import TaskFunction
from ciel._code import load_job, reached_by
from ciel._project import is_project
from ciel._reached import Piece


def tasks_now() -> Iterator[list[Piece]]:
    """The pieces of each task among the globals of the program's modules, its own first."""
    seen: set[int] = set()
    for module in [*sys.modules.values()]:
        if not is_project(module):
            continue
        for value in [*vars(module).values()]:
            if isinstance(value, TaskFunction) and id(value) not in seen:
                seen.add(id(value))
                yield reached_by(value)


def main() -> int:
    """Prints a list of the pieces of each task; `CIEL_JOB` and its folder are in the environment.

    Raises whatever the import of the program raises.
    """
    output = os.dup(1)
    os.dup2(2, 1)
    path = os.environ["CIEL_JOB"]
    sys.path.insert(0, os.environ["CIEL_JOB_FOLDER"])
    sys.argv = [path, *sys.argv[1:]]
    wanted: dict[str, Any] = {"main": path}
    if os.environ.get("CIEL_JOB_MODULE"):
        wanted["module"] = os.environ["CIEL_JOB_MODULE"]
    load_job(wanted)
    tasks = [[_plain(piece) for piece in pieces] for pieces in tasks_now()]
    sys.stdout.flush()
    with os.fdopen(output, "w") as file:
        json.dump(tasks, file)
    return 0


def _plain(piece: Piece) -> tuple[str, str, int, str]:
    return piece.name, piece.file, piece.line, piece.digest.hex()
