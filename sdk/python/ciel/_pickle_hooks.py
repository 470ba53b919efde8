"""Hooks for pickling and unpickling futures and their streams, active while this package does it.

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
    """The hooks of this thread: `number` returns the number of a future in the pickle.

    `takes_streams` is whether that may be the stream of a future.
    """

    number: Callable[[Any], int] | None = None
    takes_streams: bool = False
    thaw: Thaw | None = None
    thaw_stream: Thaw | None = None


freezing = _Freezing()


def thaw_reference(number: int) -> Any:
    """Represents the future with that number in pickles."""
    return _thawed(freezing.thaw, number)


def thaw_stream(number: int) -> Any:
    """Represents the stream of the future with that number in pickles."""
    return _thawed(freezing.thaw_stream, number)


def _thawed(found: Thaw | None, number: int) -> Any:
    if found is None:
        raise pickle.UnpicklingError("this pickle holds futures of ciel: only ciel can read it")
    return found(number)
