"""Calls that are so short that `main` runs them itself rather than send them as tasks.

How short calls of a function are is not known before some have run, so a few are tried once others
are on their way. This module does not know how a call runs in place. Read next: `_trials.py`,
`_gathering.py`, `_keeping_strand.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ciel._strand import current
from ciel._trials import Trials

if TYPE_CHECKING:
    from ciel._call import TaskFunction
    from ciel._future import Future

SHORT_S = 80e-6
"""Seconds for which a call may run here: as a task it takes about as long of two cores."""


class ShortCalls:
    """Calls of one function that are spawned one after the other by the strand that runs."""

    def __init__(self, task: TaskFunction) -> None:
        """Nothing was tried yet."""
        self._task = task
        self._before = task.suits_root
        self._is_able: bool | None = None
        self._trials = Trials()

    def begin(self) -> bool:
        """Whether the next call is to be run by `run` as soon as it is spawned.

        Never where calls of the task must not run in place.
        """
        if self._is_able is None:
            self._is_able = current().may_try(self._task)
        if not self._is_able or not self._trials.next():
            return False
        self._task.suits_root = True
        return True

    def run(self, future: Future[Any]) -> bool:
        """Runs the call here; its failure is raised when its value is due. Whether it was short."""
        began = time.perf_counter()
        try:
            future.result()
        except Exception:  # noqa: S110
            pass
        has_stayed = self._task.suits_root is True
        is_short = has_stayed and time.perf_counter() - began < SHORT_S
        self.ended(is_short)
        return is_short

    def ended(self, is_short: bool) -> None:
        """A call has run here, tried or not."""
        if not self._is_able:
            return
        self._trials.ended(is_short)
        if self._trials.is_pausing:
            self._task.suits_root = self._before
