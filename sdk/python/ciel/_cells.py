"""Cells of a notebook: one that is interrupted cancels what it has submitted.

IPython calls back before and after each cell. It is not imported here: without it there are no
cells. This module does not know how to cancel. Read next: `_client_strand.py`.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol


class Canceller(Protocol):
    """What submits in a cell: `cell` has the handles that the running cell has submitted."""

    cell: list[int] | None

    def cancel_handles(self, handles: list[int]) -> list[bool]:
        """Cancels the tasks behind handles; which are cancelled now."""
        ...


class Cells:
    """Follows the cells of the notebook that this program is, if it is one."""

    def __init__(self, client: Canceller) -> None:
        """The cell that runs now is the first."""
        ipython = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        self._client = client
        self._events: Any = None if shell is None else shell.events
        if self._events is not None:
            client.cell = []
            self._events.register("pre_run_cell", self._begin)
            self._events.register("post_run_cell", self._end)

    def close(self) -> None:
        """Follows no cells any more."""
        if self._events is not None:
            self._events.unregister("pre_run_cell", self._begin)
            self._events.unregister("post_run_cell", self._end)
            self._events = self._client.cell = None

    def _begin(self, _: object = None) -> None:
        self._client.cell = []

    def _end(self, result: Any) -> None:
        submitted, self._client.cell = self._client.cell, []
        if submitted and isinstance(result.error_in_exec, KeyboardInterrupt):
            self._client.cancel_handles(submitted)
