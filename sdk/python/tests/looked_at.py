"""What a process of its own finds out about the tasks of a job: their identities and results.

`look` asks one process about many folders; it forks for each, so that each is imported by itself.
Run as a program, this is that process. It judges nothing. Read next: `test_kinds.py`,
`test_strangers_project.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Looked(NamedTuple):
    """Of each task: the pieces of its identity, the same after it ran, and its result as text."""

    before: dict[str, Any]
    after: dict[str, Any]
    results: dict[str, str]


def look(folders: list[Path], job: str, *arguments: int) -> list[Looked]:
    """The tasks of the file `job` in each folder, called with these arguments."""
    words = [sys.executable, __file__, job, json.dumps(arguments), *map(str, folders)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return [Looked(*json.loads(line)) for line in found.stdout.splitlines()]


def _tasks(folder: str, job: str, arguments: list[int]) -> Looked:
    import ciel
    from ciel import _reached
    from ciel._code import load_job, reached_by

    os.chdir(folder)
    os.environ["CIEL_JOB"] = os.path.join(folder, job)
    sys.path[:0] = [folder, os.path.join(folder, "beside"), os.path.join(folder, "modules.zip")]
    values = vars(load_job({"main": os.path.join(folder, job)}))
    tasks: dict[str, Any] = {
        name: value for name, value in values.items() if isinstance(value, ciel.Task)
    }

    def identities() -> dict[str, Any]:
        _reached.forget()
        return {
            name: [(piece.name, piece.digest.hex()) for piece in reached_by(task)]
            for name, task in tasks.items()
        }

    before = identities()
    results = {name: _result(task, arguments) for name, task in tasks.items()}
    return Looked(before, identities(), results)


def _result(task: Any, arguments: list[int]) -> str:
    try:
        return repr(task.function(*arguments))
    except Exception as error:  # an edit may break the program, which is a result, too
        return repr(error)


def main() -> int:
    """Prints one line for each folder."""
    _, job, arguments, *folders = sys.argv
    sys.dont_write_bytecode = True
    import ciel._code

    assert ciel._code
    for folder in folders:
        child = os.fork()
        if child == 0:
            print(json.dumps(_tasks(folder, job, json.loads(arguments))), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
