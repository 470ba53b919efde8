"""Functions that change what they capture: each task of one has a new copy of it.

In a process that runs a task after the other, a call would find what the ones before it have left.
A copy is as long to make as to unpickle, so only what can be left in is copied, where the code uses
it in a way that could. Read next: `_defaults.py`, which does the same for default arguments.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from typing import Any, cast

from ciel._globals import Kind, has_state, kind_of
from ciel._written import used_in


def changes_captured(function: Callable[..., Any]) -> bool:
    """Whether the code of a function itself changes a variable that it captures, or could.

    It could if the value has a state, and is called or passed on. An array or an instance that is
    passed on, or whose methods are called, does not count: it may be large, and is seldom changed.
    """
    code = getattr(function, "__code__", None)
    if code is None or not code.co_freevars:
        return False
    assigns = {"STORE_DEREF", "DELETE_DEREF"}
    found = {one.argval for one in dis.get_instructions(code) if one.opname in assigns}
    (surely, maybe), called = used_in(cast("types.FunctionType", function))
    if not (found | surely).isdisjoint(code.co_freevars):
        return True
    values = dict(_captured(function))
    return any(
        name in called and has_state(value) or name in maybe and _is_left_in(value)
        for name, value in values.items()
    )


def _is_left_in(value: Any) -> bool:
    return has_state(value) and kind_of(type(value)) not in (Kind.ARRAY, Kind.INSTANCE)


def _captured(function: Any) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue
