"""What code asks its environment, unseen by the interpreter's audit: time, randomness, variables.

The interpreter reports no call of `time.time()`, nor of a function of a library that was loaded
before. So the code that a task reaches is searched for the names of which `ciel lint` warns, once
for each function in a process, and only source of code that has one of these words is read. It
knows no strand. Read next: `_audit.py`, `_nondeterminism.py`.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from ciel import _nondeterminism
from ciel._bytecode import codes_of
from ciel._reached import functions_reached, libraries_reached, modules_reached
from ciel._warnings import findings, findings_of, is_nondeterministic

FUNCTIONS_MAX = 4096
"""Functions of which is kept what they ask."""

ASKED: dict[Callable[..., Any] | None, tuple[str, ...]] = {}
"""What functions ask, as far as that is known."""


def questions_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """What the code that a function reaches asks without a record, in words with places."""
    found = ASKED.get(function)
    if found is None:
        if len(ASKED) >= FUNCTIONS_MAX:
            ASKED.clear()
        found = ASKED[function] = tuple(dict.fromkeys(_questions(function)))
    return found


def _questions(function: Callable[..., Any]) -> list[str]:
    found = [f"used {name}, a library by ctypes" for name in libraries_reached(function)]
    for one in functions_reached(function):
        if _may_ask(one):
            places = findings(one)
            found += [f"asked {place.what} at {place.file}:{place.line}" for place in places]
    for module in modules_reached(function):
        found += [f"asked {one.what} at {one.file}:{one.line}" for one in findings_of(module)]
    return found


def _may_ask(function: types.FunctionType) -> bool:
    for code in codes_of(function.__code__):
        for name in code.co_names:
            if name in _nondeterminism.WORDS:
                return True
            if is_nondeterministic(function.__globals__.get(name)):
                return True
    return False
