"""Calls between languages: plain JSON data, which may contain references anywhere.

A reference is `{"$ref": i}`, where `i` counts the inputs of the call. This module knows no strand.
Read next: "executor python" in the reference of executors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from ciel._future import Future


def with_references(found: Any, number: Callable[[Future[Any]], Any]) -> Any:
    """The same lists and dicts with every future replaced by a reference; `number` numbers it."""
    if isinstance(found, Future):
        return number(found)
    if isinstance(found, dict):
        return {key: with_references(part, number) for key, part in found.items()}
    if isinstance(found, (list, tuple)):
        return [with_references(part, number) for part in found]
    return found


def with_values(found: Any, value: Callable[[int], Any]) -> Any:
    """The same lists and dicts with the value of an input for each reference."""
    if isinstance(found, dict):
        if len(found) == 1 and isinstance(found.get("$ref"), int):
            return value(found["$ref"])
        return {key: with_values(part, value) for key, part in found.items()}
    if isinstance(found, list):
        return [with_values(part, value) for part in found]
    return found


def json_of(value: Any) -> bytes:
    """JSON of the job's value: futures in it are their values, waited for in order.

    What JSON cannot represent becomes its repr, `nan` and `inf` too. Raises the exception of a
    future's task.
    """
    found: dict[int, Future[Any]] = {}
    text = _dumped(value, lambda part: _noted(part, found))
    if found:
        values = {place: json.loads(json_of(future.result())) for place, future in found.items()}
        text = _dumped(value, lambda part: values[id(part)] if id(part) in values else repr(part))
    return text.encode()


def _noted(part: Any, found: dict[int, Future[Any]]) -> str:
    if isinstance(part, Future):
        found[id(part)] = part
    return repr(part)


def _dumped(value: Any, other: Callable[[Any], Any]) -> str:
    try:
        return json.dumps(value, default=other, allow_nan=False)
    except (TypeError, ValueError):  # keys that are not text, a cycle, or a float without JSON
        pass
    try:
        return json.dumps(_finite(value), default=other, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(repr(value))


def _finite(value: Any) -> Any:
    """The same lists and dicts with the repr of each float that JSON cannot represent."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return value
