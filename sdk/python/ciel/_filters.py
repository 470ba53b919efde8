"""The filters of the module `warnings`, which each strand has for itself.

`warnings.catch_warnings` puts another list in the place of the filters, `simplefilter` changes the
list, and both call `warnings._filters_mutated`, which `ProcessState` wraps. This module knows no
strand. Read next: `_process_state.py`.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

NOTED = "_filters_mutated"
"""What the functions of `warnings` call when they have changed filters."""

_module: Any = warnings


class Kept(NamedTuple):
    """Filters, and what shows the warnings that pass them; `catch_warnings` replaces these, too."""

    found: list[Any]
    items: list[Any]
    show: Any
    show_message: Any


def _kept() -> Kept:
    found = _module.filters
    return Kept(found, [*found], _module.showwarning, _module._showwarnmsg_impl)


class Filters:
    """The filters that strands begin with, as they are now."""

    def __init__(self) -> None:
        """`warnings` is not wrapped yet."""
        self._mutated: Any = getattr(_module, NOTED)
        self.take()

    def take(self) -> None:
        """Strands that begin later have those of now."""
        self._first = _kept()

    def are_others(self) -> bool:
        """Whether the process has others now."""
        found = _module.filters
        return found is not self._first.found or found != self._first.items

    def leave(self) -> Kept:
        """Restores them; returns what was there, for `enter`."""
        kept = _kept()
        self.enter(self._first)
        return kept

    def enter(self, kept: Kept) -> None:
        """Puts back what `leave` has returned."""
        kept.found[:] = kept.items
        _module.filters = kept.found
        _module.showwarning, _module._showwarnmsg_impl = kept.show, kept.show_message
        self._mutated()
