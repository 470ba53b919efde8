"""Which calls of a function are tried in place, by how long those before took: a state machine.

A call can be long because the machine was busy, so after some further calls, twice as many each
time, there is another try. It knows neither calls nor clocks. Read next: `_short_calls.py`.
"""

from __future__ import annotations

TRIES = 3
"""Long calls in a row before the next ones are tasks."""

PAUSE = 32
"""Calls that are tasks after the first `TRIES` long ones; twice as many after each further one."""


class Trials:
    """Which calls of a row are tried: a state machine that is told how each of these was."""

    def __init__(self) -> None:
        """No call was tried yet."""
        self._long = 0
        self._pause = PAUSE
        self._waits = 0

    @property
    def is_pausing(self) -> bool:
        """Whether the last tries were long, so that calls are tasks for now."""
        return self._waits > 0

    def next(self) -> bool:
        """Whether the next call of the row is tried."""
        if self._waits == 0:
            return True
        self._waits -= 1
        return False

    def ended(self, is_short: bool) -> None:
        """The call that was tried has ended."""
        if is_short:
            self._long, self._pause = 0, PAUSE
            return
        self._long += 1
        if self._long >= TRIES:
            self._waits = self._pause
            self._pause *= 2
