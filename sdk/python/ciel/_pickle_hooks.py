"""What pickling and unpickling mean for futures, while this package does it.

`_freeze.py` sets the hooks around a pickle; `Future.__reduce__` looks at them. Both would import
each other without this module. It knows neither futures nor bytes.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

Thaw = Callable[[int], Any]
"""Gives what stands for the i-th future of a pickle."""


class _Freezing(threading.local):
    """What this thread is freezing or thawing: `number` gives a future its number in the pickle."""

    number: Callable[[Any], int] | None = None
    thaw: Thaw | None = None


freezing = _Freezing()


def thaw_reference(number: int) -> Any:
    """Stands in pickles for the future with that number."""
    found = freezing.thaw
    if found is None:
        raise pickle.UnpicklingError("this pickle holds futures of ciel: only ciel can read it")
    return found(number)
