"""`ciel.Session`: tasks submitted by an ordinary Python program.

The engine is a child process, the command `ciel`, and this program acts as its root task over the
executor protocol: a submit is a spawn, and to wait for a result is to watch a reference. Any thread
may submit and wait, and asyncio code may await. Read next: `_run.py`, `_client_strand.py` for the
strand, `_session_process.py` for the engine's life.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from ciel._call import Call
from ciel._callables import call_of
from ciel._engine import EngineOptions, KeepingOptions
from ciel._errors import NoRun
from ciel._export import spawn_export
from ciel._future import Future
from ciel._options import Options
from ciel._session_process import SessionProcess
from ciel._shell import Shell, shell
from ciel._skywriting import Argument, spawn_script
from ciel._strand import here
from ciel._task import BoundTask, Task

if TYPE_CHECKING:
    import os

P = ParamSpec("P")
R = TypeVar("R")


class Session:
    """An engine of its own, to which a program submits tasks.

    Use it in `with`, or call `close()`. Each submit is a job of its own: output is in the order of
    submission, and a failure does not affect other submits. A session may be used from several
    threads.

    `jobs` is the number of cores to use, all by default; `serial` runs one task at a time;
    `retries` and `timeout` (seconds) are the defaults of tasks without these options; `state` is
    the state folder, `.ciel` by default; `stderr` is "live" or "ordered"; `keep_going` is whether
    other submits continue after a failure; `progress` shows a progress line on a terminal;
    `resources` are further resources of the machine, by name, that tasks may request; `shell` is
    "sh" or "strict" (`bash -euo pipefail`) for commands that do not say it themselves;
    `held_bytes` is how many bytes of output may wait for output before them; by default there is no
    bound; `store_memory` is how many bytes of large values may be in memory instead of on the
    disk, by default a quarter of what is available; `store_bytes` is how many bytes of the disk
    its results may take; by default there is no bound.

    `kept` keeps results of tasks for later runs, and takes those that earlier ones kept;
    `kept_dir` does so with a folder that several users share, too, and `trust_owner` names users
    whose results there are taken in any form; `trust` is "content", or "mtime" for files that
    commands name; `check` runs each pure task twice and compares the results: `close()` raises
    NonDeterministic if any differ; `keep` is how many bytes earlier runs and kept results may take.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        serial: bool = False,
        keep_going: bool = True,
        retries: int = 0,
        timeout: float | None = None,
        state: str | os.PathLike[str] | None = None,
        stderr: str = "live",
        progress: bool = False,
        resources: Mapping[str, int] | None = None,
        shell: str = "sh",
        held_bytes: int | None = None,
        store_memory: int | None = None,
        store_bytes: int | None = None,
        kept: bool = False,
        kept_dir: str | os.PathLike[str] | None = None,
        trust_owner: Sequence[str] = (),
        trust: str = "content",
        check: bool = False,
        keep: int | None = None,
    ) -> None:
        """Starts the engine. Raises NoRun inside a task, CielError if there is no command ciel."""
        if here.strand is not None:
            raise NoRun(
                f"{here.strand.label} is a task, and already belongs to a run",
                hint="spawn tasks there; start runs outside of tasks",
            )
        options = EngineOptions(
            jobs, serial, keep_going, retries, timeout, state, stderr, progress, resources, shell,
            held_bytes, store_memory, store_bytes,
            KeepingOptions(kept, kept_dir, trust_owner, trust, check, keep),
        )  # fmt: skip
        self._process = SessionProcess(options)

    @overload
    def submit(
        self, task: Task[P, R] | BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[R]: ...
    @overload
    def submit(
        self, task: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[R]: ...
    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submits a task, or a function, with these arguments; returns the future of its value.

        Raises NoRun if the session is closed, NotSerializable for arguments that cannot be
        serialized.
        """
        frame = sys._getframe(1)
        return self._submit(
            call_of(task, args, kwargs, frame.f_code.co_filename, frame.f_lineno)
        )

    def _submit(self, call: Call) -> Future[Any]:
        client = self._process.client()
        self._process.flush_own_output()
        return client.spawn(call, call.task.options_now)[0]

    def put(self, value: R) -> Future[R]:
        """Stores a copy of `value` once and returns its future, which many submits may share."""
        return cast("Future[R]", self._process.client().put(value))

    @property
    def sh(self) -> Shell:
        """As `ciel.sh`, as a submit of its own."""
        return shell(self._process.client)

    def export(
        self,
        result: Future[Any] | bytes | str,
        path: str | os.PathLike[str],
        /,
        *,
        overwrite: bool = False,
    ) -> Future[str]:
        """As `ciel.export`, as a submit of its own: after all earlier ones."""
        return spawn_export(self._process.client(), result, path, overwrite)

    def skywriting(
        self, file: str | os.PathLike[str], /, *args: Argument, options: Options | None = None
    ) -> Future[Any]:
        """As `ciel.skywriting`, as a submit of its own."""
        return spawn_script(self._process.client(), file, args, options)

    def close(self) -> None:
        """Waits for all submitted tasks and ends the engine.

        Raises the earliest failure whose result was never requested; NonDeterministic if there is
        none and results differ in a session that checks.
        """
        self._process.close()

    def cancel(self) -> None:
        """Cancels all submitted tasks at once and ends the engine."""
        self._process.cancel()

    def __enter__(self) -> Session:
        """The session itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the session; cancels the submitted tasks if an exception leaves the block."""
        if error is None:
            self.close()
        else:
            self.cancel()
