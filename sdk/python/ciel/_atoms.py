"""Types of plain values: what nobody can change. Read next: `_freeze.py`."""

from __future__ import annotations

ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None)})
"""Types whose values are shared instead of copied, because they are immutable."""
