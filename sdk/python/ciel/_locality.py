"""The locality weights of a call: how much the bytes of its inputs count where it is placed.

The option names parameters; the engine is told of inputs. This module knows neither how calls are
sent nor where they run. Read next: `_payload.py`, for the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ciel._freeze import freeze
from ciel._future import Future
from ciel._payload import future_of

if TYPE_CHECKING:
    from ciel._call import Call

USUAL_PERCENT = 100


def weights_of(
    call: Call, inputs: Sequence[int], handle_of: Callable[[Future[Any]], int]
) -> list[int] | None:
    """The weight of each input in percent; `None` if the call has no such option.

    Inputs that are no futures of a named argument have the usual weight; one that is in several
    arguments has the largest.
    """
    if not call.task.options_now.locality:
        return None
    locality = dict(call.task.options_now.locality)
    found: dict[int, int] = {}
    for name, value in _arguments(call):
        if name not in locality:
            continue
        percent = round(locality[name] * USUAL_PERCENT)
        references: list[Future[Any]] = []
        freeze(value, references, takes_streams=True)
        for reference in references:
            handle = handle_of(future_of(reference))
            found[handle] = max(percent, found.get(handle, 0))
    return [found.get(handle, USUAL_PERCENT) for handle in inputs]


def _arguments(call: Call) -> Iterator[tuple[str, Any]]:
    """The arguments with the names of their parameters, those of `*args` with that name."""
    places = call.task.places(len(call.args))
    for place, value in zip(places, call.args, strict=False):
        yield place.partition("[")[0], value
    yield from call.kwargs.items()
