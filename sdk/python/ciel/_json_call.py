"""Calls between languages: plain JSON data, which may contain references anywhere.

A reference is `{"$ref": i}`, where `i` counts the inputs of the call. This module knows no strand.
Read next: "executor python" in the reference of executors.
"""

from __future__ import annotations

import json
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
    """JSON of the job's value; what JSON cannot represent becomes its repr."""
    try:
        return json.dumps(value, default=repr).encode()
    except (TypeError, ValueError):  # keys that are not text, or a cycle
        return json.dumps(repr(value)).encode()
