"""Waiting for a condition, with a deadline.

It knows nothing of what is waited for. Used by tests that look at processes and files.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEADLINE_S = 600.0
"""Far more than any condition takes to hold, also on a slow machine beside other jobs."""

PAUSE_S = 0.005


def until(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds; raises TimeoutError if it does not in time."""
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for does not happen")
        pause.wait(PAUSE_S)


@contextmanager
def heeded_interrupts() -> Iterator[None]:
    """Interrupts reach programs that are started inside.

    A shell ignores them for what it runs in the background, the tests themselves for example, and
    programs inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class FileEvent:
    """An event that any process can set and wait for: a file that exists."""

    def __init__(self, path: str) -> None:
        """Is not set; the file must not exist."""
        self.path = path

    def set(self) -> None:
        """Lets all waiters continue."""
        with open(self.path, "w", encoding="utf-8"):
            pass

    def is_set(self) -> bool:
        """Whether it is set."""
        return os.path.exists(self.path)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, for at most `DEADLINE_S`, whatever `timeout` is."""
        until(self.is_set)
        return True
