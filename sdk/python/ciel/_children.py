"""How many tasks one that spawns very many may have unfinished before it pauses.

The engine decides that when it is asked. This module knows no strands. Read next:
`_client_strand.py` and `_waiting_strand.py`, which ask.
"""

from __future__ import annotations

VARIABLE = "CIEL_CHILDREN_MAX"
"""The environment variable with that number."""

_CHILDREN_MAX = 10_000
"""That number unless the variable says another."""

_ASKS_PER_BOUND = 10
"""Questions while so many are spawned."""


def spawns_between_asks(told: str) -> int:
    """Spawns between two questions for that value of the variable; the command refuses bad ones."""
    known = told.isascii() and told.isdigit()
    return (int(told) if known else _CHILDREN_MAX) // _ASKS_PER_BOUND
