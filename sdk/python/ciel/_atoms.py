"""Types of plain values: what nobody can change. Read next: `_freeze.py`."""

from __future__ import annotations

from typing import Any

ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None)})
"""Types whose values are shared instead of copied, because they are immutable."""

SHARED = ATOMS | {tuple}
"""Types of results that children in place share with their parents, if these are plain."""

DEPTH_MAX = 8
"""Tuples inside one another in a plain value, at most."""


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether nobody can change a value: a plain one, or a tuple of such values."""
    if type(value) in ATOMS:
        return True
    if type(value) is not tuple or depth >= DEPTH_MAX:
        return False
    for part in value:
        if not is_plain(part, depth + 1):
            return False
    return True
