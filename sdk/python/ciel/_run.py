"""`ciel.run`: a function as the root of a run of its own.

A session with one submit, whose failure ends the run. Read next: `_session.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ciel._errors import NoRun, WorkerLost
from ciel._future import Future
from ciel._root import as_plain
from ciel._session import Session
from ciel._task import Task

if TYPE_CHECKING:
    import os

R = TypeVar("R")


def run(
    main: Callable[..., R] | Task[..., R],
    /,
    *args: Any,
    jobs: int | None = None,
    serial: bool = False,
    keep_going: bool = False,
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
    **kwargs: Any,
) -> R:
    """Runs `main(*args, **kwargs)` as the root task of a run and returns its value.

    The options are those of `Session`; arguments of `main` with such names are passed by position.
    A coroutine function is awaited, and a future that `main` returns is waited for. Raises the
    exception of `main`, or else the earliest failure of a task whose result was never
    requested; NonDeterministic if `check` has found that results differ. Ctrl-C cancels the run.
    """
    session = Session(
        jobs=jobs, serial=serial, keep_going=keep_going, retries=retries, timeout=timeout,
        state=state, stderr=stderr, progress=progress, resources=resources, shell=shell,
        held_bytes=held_bytes, store_memory=store_memory, store_bytes=store_bytes,
        kept=kept, kept_dir=kept_dir, trust_owner=trust_owner, trust=trust, check=check, keep=keep,
    )  # fmt: skip
    try:
        value: Any = session.submit(as_plain(main), *args, **kwargs).result()
        if isinstance(value, Future):
            value = value.result()
    except (KeyboardInterrupt, NoRun, WorkerLost):
        session.cancel()
        raise
    except BaseException as error:
        session._process.fail(error)
        raise
    session.close()
    return cast(R, value)
