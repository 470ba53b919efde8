"""Callbacks of a session: one thread that runs them, in the order in which they fall due.

The thread that hears the engine must not run them: they may submit, and wait. It is started with
the first callback and ends with the session. Knows no futures. Read next: `_client_strand.py`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_LOGGER = logging.getLogger("ciel")

Due = tuple[Callable[[Any], object], Any]


class Callbacks:
    """A queue of calls and the thread that makes them."""

    def __init__(self) -> None:
        """No thread yet: most sessions have no callbacks."""
        self._due: SimpleQueue[Due | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_running = self._has_ended = False

    def call(self, callback: Callable[[Any], object], argument: Any) -> None:
        """Calls later and in another thread; exceptions are logged."""
        with self._lock:
            self._due.put((callback, argument))
            if self._has_ended:
                self._due.put(None)
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="ciel-callbacks", daemon=True).start()

    def end(self) -> None:
        """Ends the thread after what is due by now; a later call starts another."""
        with self._lock:
            self._has_ended = True
            if self._is_running:
                self._due.put(None)

    def _run(self) -> None:
        while True:
            due = self._due.get()
            if due is not None:
                _make(*due)
            with self._lock:
                if due is None and self._due.empty():
                    self._is_running = False
                    return
            del due  # what it refers to may go while this thread waits


def _make(callback: Callable[[Any], object], argument: Any) -> None:
    try:
        callback(argument)
    except BaseException:  # as the standard library does: nobody waits for a callback
        _LOGGER.exception("a callback of %r failed", argument)
