"""Context variables of tasks: each task begins with what modules have set at their import.

What a task sets itself is its own, and gone at its end. A context of `decimal` is an object that
its users change in place, so each task has a copy of it; other values are shared, as values of
modules are. This module knows no strand. Read next: `_scheduler.py`, which gives a context to each
task.
"""

from __future__ import annotations

import sys
from contextvars import Context, copy_context
from typing import Any

from greenlet import getcurrent

_OF_DECIMAL = "decimal_context"


def leave_context() -> None:
    """Removes the variables that a task has set, at its end: what their values print is its own."""
    getcurrent().gr_context = None


class Contexts:
    """The context that tasks begin with; `imported` is `None` while no module has set one."""

    def __init__(self) -> None:
        """No module has set anything."""
        self.imported: Context | None = None
        self._module: Any = None
        self._decimal: Any = None

    def keep(self) -> bool:
        """Keeps the variables of the caller's context for later tasks; whether there are any.

        The caller has imported modules and run no code of a task.
        """
        found = copy_context()
        if not len(found):
            return False
        self.imported = found
        self._module = sys.modules.get("decimal")
        if self._module and any(variable.name == _OF_DECIMAL for variable in found):
            self._decimal = self._module.getcontext().copy()
        return True

    def fresh(self) -> Context | None:
        """A context for a task that is to begin; `None` is an empty one."""
        if self.imported is None:
            return None
        made = self.imported.copy()
        if self._decimal is not None:
            made.run(self._module.setcontext, self._decimal.copy())
        return made
