"""Ciel: write the program as if it ran serially; it runs on every core.

```python
import ciel

@ciel.task
def fib(n: int) -> int:
    if n < 2:
        return n
    left = fib.spawn(n - 1)
    return fib.spawn(n - 2).result() + left.result()
```

`ciel run job.py` runs `main()` of a file, `ciel.run(main)` a function. This file imports the whole
public interface; the modules that run tasks are loaded at first use. Read next: `_task.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciel import _interpreter

_interpreter.check()

from ciel._errors import (  # noqa: E402  (an interpreter is refused before anything else)
    Cancelled,
    CielError,
    CielWarning,
    CommandError,
    DiskFull,
    NonDeterministic,
    NoRun,
    NotSerializable,
    ObjectLost,
    OutOfMemory,
    Refused,
    TaskError,
    Timeout,
    WaitError,
    WorkerLost,
)
from ciel._future import Future  # noqa: E402
from ciel._gathering import (  # noqa: E402
    as_completed,
    first,
    gather,
    map,  # noqa: A004
    put,
    scope,
    wait,
)
from ciel._inputs import entropy, environ, now  # noqa: E402
from ciel._once import Once, once  # noqa: E402
from ciel._options import Options  # noqa: E402
from ciel._output import output  # noqa: E402
from ciel._random import task_rng  # noqa: E402
from ciel._reading import Reading  # noqa: E402
from ciel._task import Task, task  # noqa: E402
from ciel._task_streams import Stream, stream  # noqa: E402

if TYPE_CHECKING:
    from ciel import ordered as ordered
    from ciel import testing as testing
    from ciel._executor import Executor as Executor
    from ciel._export import export as export
    from ciel._skywriting import skywriting as skywriting
    from ciel._follow import follow as follow
    from ciel._open import open as open
    from ciel._session import Session as Session
    from ciel._run import run as run
    from ciel._shell import sh as sh
    from ciel._shell import spawn_exec as spawn_exec

__version__ = "0.1.0"

__all__ = [
    "Cancelled",
    "CielError",
    "CommandError",
    "CielWarning",
    "DiskFull",
    "Executor",
    "Future",
    "NoRun",
    "NonDeterministic",
    "NotSerializable",
    "ObjectLost",
    "Once",
    "Options",
    "OutOfMemory",
    "Reading",
    "Refused",
    "Session",
    "Stream",
    "Task",
    "TaskError",
    "Timeout",
    "WaitError",
    "WorkerLost",
    "as_completed",
    "entropy",
    "environ",
    "export",
    "first",
    "follow",
    "gather",
    "map",
    "now",
    "once",
    "open",
    "ordered",
    "output",
    "put",
    "run",
    "scope",
    "sh",
    "skywriting",
    "spawn_exec",
    "stream",
    "task",
    "task_rng",
    "testing",
    "wait",
]

_LATER = {
    "Executor": "ciel._executor",
    "Session": "ciel._session",
    "export": "ciel._export",
    "follow": "ciel._follow",
    "open": "ciel._open",
    "run": "ciel._run",
    "sh": "ciel._shell",
    "skywriting": "ciel._skywriting",
    "spawn_exec": "ciel._shell",
}


def __dir__() -> list[str]:
    """The public names, also of what is loaded later."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """Loads the parts that many programs do not need: sessions, shell, files, testing."""
    import importlib

    if name in ("ordered", "testing"):
        return importlib.import_module(f"ciel.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'ciel' has no attribute {name!r}")
