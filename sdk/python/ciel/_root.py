"""The root as a program: what it returns, how it exits, and a `main` that is a coroutine function.

A job ends as the same file would under the interpreter: `sys.exit(n)` is its exit status, and what
`async def main` returns is awaited. This module knows no strand. Read next: `_worker.py`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from ciel._native import Failure

EXIT_STATUS = "exit-status"
"""The form of the exception of a root that has exited: its data are the status, in digits."""


def as_plain(main: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function that does what `main` does; a coroutine function is awaited by it."""
    if not inspect.iscoroutinefunction(main):
        return main

    @functools.wraps(main)
    def awaited(*args: Any, **kwargs: Any) -> Any:
        import asyncio

        return asyncio.run(main(*args, **kwargs))

    return awaited


def status_of(left: SystemExit) -> int:
    """The exit status that the interpreter would end with, which prints any other code."""
    if left.code is None:
        return 0
    if isinstance(left.code, int):
        return left.code & 0xFF
    print(left.code, file=sys.stderr)
    return 1


def exit_failure(status: int) -> Failure:
    """The failure of a root that has exited with a status other than 0."""
    return Failure(
        "TASK_ERROR", "python", "SystemExit", f"exit status {status}", [], "", False,
        (EXIT_STATUS, str(status).encode()), "", "",
    )  # fmt: skip
