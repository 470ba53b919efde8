"""Calls of anything that can be called: what `submit` and `map` take beside tasks.

A function becomes a task by itself. Anything else, a built-in function, a class, a bound method or
an object with `__call__`, is an argument of a task that calls it, and is copied like every
argument; of a `partial` the function is called with all arguments. Knows no strand. Read next:
`_task.py`.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from ciel._call import Call
from ciel._options import Options
from ciel._task import AnyTask, BoundTask, Task

NAMES_MAX = 256
"""Names of callables for which a task is kept."""


def call_of(
    work: Any, args: tuple[Any, ...], kwargs: dict[str, Any], file: str, line: int
) -> Call:
    """The call of `work` with these arguments, asked for at that line.

    Raises TypeError for what cannot be called, and for functions that cannot be tasks.
    """
    while isinstance(work, functools.partial):
        args, kwargs = (*work.args, *args), {**work.keywords, **kwargs}
        work = work.func
    if isinstance(work, BoundTask):
        work, args = work._task, (work._instance, *args)
    if isinstance(work, AnyTask):
        return Call(work, args, kwargs, file, line)
    if inspect.isfunction(work):
        return Call(Task(work, _DEFAULT), args, kwargs, file, line)
    if not callable(work):
        raise TypeError(f"expected a task or a callable, not {work!r}")
    name = getattr(work, "__name__", None) or type(work).__name__
    return Call(_caller(name), (work, *args), kwargs, file, line)


def call(work: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The function of the tasks that call their first argument."""
    return work(*args, **kwargs)


_DEFAULT = Options()


@functools.lru_cache(NAMES_MAX)
def _caller(name: str) -> AnyTask:
    return Task(call, Options(name=name))
