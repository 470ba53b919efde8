"""What a strand was seen to do, as the audit notes it.

It knows no events and no files. Read next: `_audit.py`.
"""

from __future__ import annotations

EFFECTS_MAX = 8
"""Effects of one task that are named."""

READ_MAX = 10_000
"""Files that one task reads whose contents count; a task with more has an effect."""

Stamp = tuple[int, int, int]
"""Size, time of change in nanoseconds, and number of a file."""


class Seen:
    """What a strand was seen to do: effects in words, files read, and temporary files it has made.

    A temporary file that the strand removes again is no effect.
    """

    __slots__ = ("effects", "read", "temporary")

    def __init__(self) -> None:
        """Nothing."""
        self.effects: dict[str, None] = {}
        self.read: dict[str, Stamp | None] = {}
        self.temporary: dict[str, str] = {}

    def note(self, effect: str) -> None:
        """Adds an effect."""
        if len(self.effects) < EFFECTS_MAX:
            self.effects[effect] = None

    def added_to(self, other: Seen | None) -> Seen:
        """What both were seen to do."""
        if other is None:
            return self
        for effect in self.effects:
            other.note(effect)
        other.read = {**self.read, **other.read}
        other.temporary.update(self.temporary)
        return other
