"""The path to the part of a value that cannot be serialized, in terms of the user's program.

`argument 'cfg' → .lock: _thread.lock` says more than "cannot pickle '_thread.lock' object". The
value is divided into the parts that pickle would visit, and the innermost part that fails is named.
Used only after a failure, so it may be slow; it inspects a bounded number of parts. Read next:
`_freeze.py`.
"""

from __future__ import annotations

import itertools
import pickle
import sys
import types
from collections.abc import Iterator
from typing import Any

from ciel._atoms import ATOMS
from ciel._call import TaskFunction
from ciel._errors import NotSerializable
from ciel._freeze import freeze

PARTS_MAX = 10_000
DEPTH_MAX = 12


def explained(what: str, value: Any, error: BaseException) -> NotSerializable:
    """The error for `value`, called `what` by the user, that could not be frozen."""
    if isinstance(error, NotSerializable):
        return error
    steps, culprit = _culprit(value)
    kind = type(culprit)
    name = kind.__qualname__ if kind.__module__ == "builtins" else _name(kind)
    path = f"{what} → {steps}" if steps else what
    hint = "pass plain data, and construct the object in the task"
    found = NotSerializable(f"{path}: {name} cannot be copied ({_first_line(error)})", hint=hint)
    return found


def not_utf8(what: str, error: UnicodeEncodeError) -> NotSerializable:
    """The error for JSON, called `what` by the user, in which a text has no bytes in UTF-8."""
    begin = error.object.rfind('"', 0, error.start) + 1
    text = error.object[begin : error.object.find('"', error.start)]
    hint = "rename the file, if that is its name"
    return NotSerializable(f"{what}: the text {text!r} is not UTF-8", hint=hint)


def explained_call(
    names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException
) -> NotSerializable:
    """As `explained`, for the argument that fails; `names` are those of the parameters."""
    for place, value in enumerate(args):
        if not _freezes(value):
            name = repr(names[place]) if place < len(names) else str(place + 1)
            return explained(f"argument {name}", value, error)
    for name, value in kwargs.items():
        if not _freezes(value):
            return explained(f"argument {name!r}", value, error)
    return explained("arguments", args, error)


def largest(value: Any, least: int) -> tuple[str, int]:
    """The path to the innermost part whose pickle has at least `least` bytes, and its size."""
    path, size = "", _size(value)
    for _ in range(DEPTH_MAX):
        for step, part in itertools.islice(_parts(value), PARTS_MAX):
            found = _size(part)
            if found >= least:
                path, value, size = path + step, part, found
                break
        else:
            break
    return path, size


def _culprit(value: Any) -> tuple[str, Any]:
    path = ""
    seen: set[int] = set()
    for _ in range(DEPTH_MAX):
        if id(value) in seen:  # a cycle: the parts of this value were visited already
            break
        seen.add(id(value))
        for count, (step, part) in enumerate(_parts(value)):
            if count > PARTS_MAX:
                return path, value
            if not _freezes(part):
                path, value = path + step, part
                break
        else:
            break
    return path.strip(), value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of `value` that pickle would visit, each with the step to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"[{key!r}]", part
            yield f" key {key!r}", key
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield f"[{place}]", part
    elif isinstance(value, (set, frozenset)):
        for part in value:
            yield " element", part
    elif isinstance(value, TaskFunction):
        yield from _captured(value.function)
    elif isinstance(value, types.FunctionType):
        yield from _captured(value)
    elif hasattr(value, "__dict__"):
        for name, part in vars(value).items():
            yield f".{name}", part


def _captured(function: Any) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f" captured {name!r}", cell.cell_contents
        except ValueError:  # a cell without a value
            continue
    if function.__module__ == "__main__" or "<locals>" in function.__qualname__:
        for name in code.co_names:
            if name in function.__globals__:
                yield f" captured {name!r}", function.__globals__[name]


def _freezes(value: Any) -> bool:
    try:
        freeze(value)
    except Exception:  # a class of the user may raise anything
        return False
    return True


def _size(value: Any) -> int:
    if type(value) in ATOMS:
        return sys.getsizeof(value)
    try:
        frozen = freeze(value)
    except (pickle.PicklingError, TypeError, AttributeError, NotSerializable, RecursionError):
        return 0
    return len(frozen.data) + sum(buffer.raw().nbytes for buffer in frozen.buffers)


def _name(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
