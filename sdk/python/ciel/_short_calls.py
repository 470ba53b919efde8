"""Calls that are so short that `main` runs them itself rather than send them as tasks.

How short calls of a function are is not known before some have run, so a few are tried once others
are on their way. This module does not know how a call runs in place. Read next: `_gathering.py`,
`_keeping_strand.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ciel._strand import current

if TYPE_CHECKING:
    from ciel._call import TaskFunction
    from ciel._future import Future

SHORT_S = 80e-6
"""Seconds for which a call may run here: as a task it takes about as long of two cores."""

TRIES = 3
"""Calls in a row that take longer before no further one is tried."""


class ShortCalls:
    """Calls of one function that are spawned one after the other by the strand that runs."""

    def __init__(self, task: TaskFunction) -> None:
        """Nothing was tried yet."""
        self._task = task
        self._before = task.suits_root
        self._tries: int | None = None

    def begin(self) -> bool:
        """Whether the next call is to be run by `run` as soon as it is spawned.

        Never where calls of the task must not run in place.
        """
        if self._tries is None:
            self._tries = TRIES if current().may_try(self._task) else 0
        if self._tries == 0 or self._task.suits_root is False:  # or it became a task, being long
            return False
        self._task.suits_root = True
        return True

    def run(self, future: Future[Any]) -> None:
        """Runs the call here; its failure is raised when its value is due."""
        began = time.perf_counter()
        try:
            future.result()
        except Exception:  # noqa: S110
            pass
        if time.perf_counter() - began < SHORT_S:
            self._tries = TRIES
            return
        self._tries = (self._tries or 1) - 1
        if self._tries == 0 and self._task.suits_root:
            self._task.suits_root = self._before
