"""Tasks in a test: the serial program, in this process, without the engine.

`run(main)` gives what a run of `main` would; inside `with serial():` a test spawns and waits as if
it were a task. Values are copied and failures arrive as in a real run. Read next: `_elision.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar, cast

from ciel._elision import Elision

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["run", "serial"]


def run(main: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Runs `main` as the root of a serial run and gives its value.

    Raises what leaves `main`, or else the earliest failure of a task that nobody asked for.
    """
    return cast(R, Elision().run(main, *args, **kwargs))


@contextmanager
def serial() -> Iterator[None]:
    """The code inside may spawn and wait; each spawn runs at once.

    At a good end it raises the earliest failure of a task that nobody asked for.
    """
    elision = Elision()
    with elision:
        yield
    elision.raise_unasked()
