"""Waiting for a condition, with a deadline.

It knows nothing of what is waited for. Used by tests that look at processes and files.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

DEADLINE_S = 60.0
PAUSE_S = 0.005


def until(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds; raises TimeoutError if it does not in time."""
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what the test waits for does not happen")
        pause.wait(PAUSE_S)
