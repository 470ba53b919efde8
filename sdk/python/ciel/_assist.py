"""What a worker does that has nothing to do: it computes short calls for strands of other workers.

The functions leave nothing behind, so a call gives the same here. Native code finds ranges of
calls, and returns their values; a range ends with the first call that does not go as usual, and the
strand whose it is runs that itself. A call that takes long is interrupted once a message has come.
This module knows neither strands nor messages. Read next: `_leaves.py`,
`crates/ciel-python/src/assist.rs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ciel._errors import Cancelled

if TYPE_CHECKING:
    from ciel._native import Assistant, Work


class _Now:
    """What the thread of tasks does: whether it computes calls, and one of them has printed."""

    is_computing = has_printed = False


def note_unusual() -> None:
    """Something was printed by no strand: if a call did that, its strand runs it again."""
    _Now.has_printed = _Now.is_computing


def interrupt() -> None:
    """Raises Cancelled in the call that is computed, if there is one: a message has come."""
    if _Now.is_computing:
        _Now.is_computing = False
        raise Cancelled("a message has come")


class Assisting:
    """Computes calls of other strands while no message has come."""

    def __init__(self, assistant: Assistant, functions: dict[bytes, Callable[..., Any]]) -> None:
        """`functions` has the functions that were imported, by their headers in payloads."""
        self._assistant = assistant
        self._functions = functions

    def run(self) -> bool:
        """Computes calls until there is something to receive; false if it can compute none."""
        if not self._functions:
            return False
        while (found := self._assistant.wait(self._functions)) is not None:
            self._compute(*found)
        return True

    def _compute(self, function: Callable[..., Any], work: Work) -> None:
        _Now.has_printed = is_interrupted = False
        try:
            while (given := work.begin()) is not None:
                _Now.is_computing = True
                values = [function(*args) for args in given]
                _Now.is_computing = False
                if _Now.has_printed:
                    break
                work.end(values)
        except Cancelled:
            is_interrupted = True
        except BaseException:  # noqa: S110  # it is raised again where the call is asked for
            pass
        finally:
            _Now.is_computing = False
            work.close(is_interrupted)
