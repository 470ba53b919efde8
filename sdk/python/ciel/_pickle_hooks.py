"""Hooks for pickling and unpickling futures, active while this package does it.

`_freeze.py` sets the hooks around a pickle; `Future.__reduce__` reads them. Without this module,
both would import each other. It knows neither futures nor bytes.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

Thaw = Callable[[int], Any]
"""Returns the object for the i-th future of a pickle."""


class _Freezing(threading.local):
    """The hooks of this thread: `number` returns the number of a future in the pickle."""

    number: Callable[[Any], int] | None = None
    thaw: Thaw | None = None


freezing = _Freezing()


def thaw_reference(number: int) -> Any:
    """Represents the future with that number in pickles."""
    found = freezing.thaw
    if found is None:
        raise pickle.UnpicklingError("this pickle holds futures of ciel: only ciel can read it")
    return found(number)
