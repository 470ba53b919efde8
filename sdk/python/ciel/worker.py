"""The worker process of Python tasks: `python -P -m ciel.worker`.

It inherits a socket, whose descriptor is in `CIEL_FD`, prepares the process, and serves until the
engine is gone. It does not know tasks. Read next: `_worker_process.py`.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ciel._worker import WorkerStrand

STDERR = 2
PARKED_STRANDS_MAX = 1_000_000
FEATURES = [
    "parked",
    "timeouts",
    "no_scratch",
    "interrupt",
    "ahead",
    "unwind",
    "begun",
    "later",
    "files",
    "streams",
    "caches",
    "overwrites",
    "shared",
]


def main() -> None:
    """Serves the engine; ends without running any more code of tasks."""
    descriptor = os.environ.pop("CIEL_FD", "")
    if not descriptor.isdigit():
        sys.exit("ciel.worker is started by ciel, with a socket in CIEL_FD")
    # A crash leaves its stack on descriptor 2, which the engine keeps for the task's failure.
    faulthandler.enable(STDERR)
    # What is imported stays, so the collector would look for nothing.
    collects = gc.isenabled()
    gc.disable()
    _set_path()
    from ciel import __version__, _children, _worker_process, _native, _streams, _template

    strand = _strand()
    middle = _template.leave(int(descriptor))
    connection = _native.Connection(int(descriptor))
    runtime = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
    build = f"ciel {__version__}, CPython {sys.version.split()[0]}"
    connection.hello(build, runtime, "python", FEATURES, True, PARKED_STRANDS_MAX)
    process = _worker_process.WorkerProcess(connection, _streams.Captured(), strand)
    process.asks = os.environ.pop("CIEL_ASKS", "") == "1"
    children_max = os.environ.pop(_children.VARIABLE, "")
    if children_max:
        process.spawns_between_asks = _children.spawns_between_asks(children_max)
        _native.ask_after_spawns(int(children_max))
    idle_path = os.environ.pop("CIEL_IDLE_CORES", "")
    if idle_path:
        process.keep_children(idle_path)
    _worker_process.install(process)
    _template.collect(middle)
    # All objects so far live as long as the process; the collector need not visit them.
    gc.freeze()
    if collects:
        gc.enable()
    process.serve()
    process.leave()


def _strand() -> type[WorkerStrand]:
    """The strands of this run, which may be serial."""
    if os.environ.get("CIEL_SERIAL") == "1":
        from ciel._serial_worker import SerialWorkerStrand

        return SerialWorkerStrand
    from ciel._worker import WorkerStrand

    return WorkerStrand


def _set_path() -> None:
    """Puts the folder of the job first in `sys.path`, as `python job.py` does.

    For a script of another language that is the script's own folder.
    """
    path = os.environ.get("CIEL_PYTHON_PATH", "")
    job = os.environ.get("CIEL_JOB", "")
    if path:
        sys.path[:] = json.loads(path)
    if job:
        sys.path.insert(0, os.environ["CIEL_JOB_FOLDER"])
    elif not path and os.environ.get("CIEL_SCRIPT_FOLDER"):
        sys.path.insert(0, os.environ["CIEL_SCRIPT_FOLDER"])


if __name__ == "__main__":
    main()
