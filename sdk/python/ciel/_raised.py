"""What was raised in place of a value. It knows no children. Read next: `_in_place.py`."""

from __future__ import annotations


class Raised:
    """What has left a child, or has come between it and its parent."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        """It is to be raised where a result is awaited."""
        self.error = error

    def forget(self) -> None:
        """It was told: its traceback need not lead back to it."""
        del self.error
