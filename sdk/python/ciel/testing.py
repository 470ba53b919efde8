"""Tasks in a test: the serial program, in this process, without the engine.

`run(main)` returns the result of a run of `main`; inside `with serial():` a test spawns and waits
as if it were a task. Values are copied and failures are raised as in a real run. Read next:
`_serial.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar, cast

from ciel._serial import SerialRun

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["run", "serial"]


def run(main: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Runs `main` as the root task of a serial run and returns its value.

    Raises the exception of `main`, or else the earliest failure of a task whose result was never
    requested.
    """
    return cast(R, SerialRun().run(main, *args, **kwargs))


@contextmanager
def serial() -> Iterator[None]:
    """The code inside may spawn and wait; each spawn runs at once.

    If it ends without an exception, the earliest failure of a task whose result was never requested
    is raised.
    """
    elision = SerialRun()
    with elision:
        yield
    elision.raise_unasked()
