"""Exceptions as bytes: what pickle leaves out, and classes that pickle cannot rebuild.

Pickle makes an exception by calling its class with `args`, which are those of `Exception.__init__`:
a class with an `__init__` of its own often takes others. Here such an exception is rebuilt without
calling `__init__`, from its arguments and attributes, with its notes, frames, cause and context.
This module knows no failures. Read next: `_errors.py`.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any, cast

CHAIN_MAX = 8
"""Causes of causes that are carried."""

Place = tuple[str, str, int]
"""A frame: file, function, line."""

_NO_COLUMNS = 0x80 | 13 << 3
"""In `co_linetable`, the head of up to eight instructions on the line of those before."""

_HEAP_TYPE = 1 << 9
"""The flag of classes that a program has defined."""


def carried(error: BaseException, places: Callable[[BaseException], list[Place]]) -> bytes | None:
    """The exception as bytes, or `None` if it cannot be rebuilt from them.

    `places` gives the frames of a traceback that are kept.
    """
    try:
        data = pickle.dumps(_state(error, places, CHAIN_MAX), 5)
        pickle.loads(data)
    except Exception:  # whatever the user's own class does: then it travels as text
        return None
    return data


def restored(data: bytes) -> BaseException:
    """The exception in such bytes; raises whatever the user's own class does."""
    return _restored(pickle.loads(data))


def rebuilt(
    kind: type[BaseException], base: type[BaseException], args: tuple[Any, ...], state: Any
) -> BaseException:
    """An exception without a call of its class; `base` is the built-in class that it extends."""
    error: BaseException = base.__new__(kind, *args)
    base.__init__(error, *args)
    if state:
        error.__setstate__(state)
    return error


def _state(
    error: BaseException, places: Callable[[BaseException], list[Place]], depth: int
) -> tuple[Any, ...]:
    cause = error.__cause__
    context = None if error.__context__ is cause else error.__context__
    deeper = depth - 1
    return (
        _pickled(error),
        list(getattr(error, "__notes__", ())),
        places(error),
        _state(cause, places, deeper) if cause is not None and deeper else None,
        _state(context, places, deeper) if context is not None and deeper else None,
        error.__suppress_context__,
    )


def _restored(state: tuple[Any, ...]) -> BaseException:
    data, notes, places, cause, context, suppressed = state
    error = pickle.loads(data)
    if not isinstance(error, BaseException):
        raise TypeError(f"{type(error).__name__} is no exception")
    error.__notes__ = notes
    if not notes:
        del error.__notes__
    error.__cause__ = _restored(cause) if cause is not None else None
    error.__context__ = _restored(context) if context is not None else error.__cause__
    error.__suppress_context__ = suppressed
    return error.with_traceback(chain(places))


def _pickled(error: BaseException) -> bytes:
    try:
        return _dumped(pickle.Pickler, error)
    except Exception:  # classes of notebooks and of functions have no name to be found by
        import cloudpickle

        return _dumped(cloudpickle.Pickler, error)


def _dumped(pickler: Any, error: BaseException) -> bytes:
    file = io.BytesIO()
    _rebuilding(pickler)(file, 5).dump(error)
    return file.getvalue()


@functools.cache
def _rebuilding(pickler: Any) -> Any:
    """A class of picklers like `pickler`, whose exceptions are rebuilt."""

    class Rebuilding(pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            reduced = _reduced(value) if isinstance(value, BaseException) else None
            if reduced is not None:
                return reduced
            inherited = getattr(super(), "reducer_override", None)
            return NotImplemented if inherited is None else inherited(value)

    return Rebuilding


def _reduced(error: BaseException) -> tuple[Any, ...] | None:
    """How to remake an exception; `None` if pickle does it well, or if its class says how."""
    kind: Any = type(error)
    base: Any = next(one for one in kind.__mro__ if not one.__flags__ & _HEAP_TYPE)
    has_own = kind.__init__ is not base.__init__ or kind.__new__ is not base.__new__
    methods = ("__reduce__", "__reduce_ex__")
    says_how = any(getattr(kind, name) is not getattr(base, name) for name in methods)
    if not has_own or says_how:
        return None
    reduced: Any = error.__reduce__()
    args, state = reduced[1], dict(reduced[2]) if len(reduced) > 2 else {}
    state.pop("__notes__", None)
    lost = [name for name in state if not _can_go(state[name])]
    for name in lost:
        what = type(state.pop(name)).__name__
        note = f"attribute {name!r} stayed in the task: {what} cannot be copied"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    return rebuilt, (kind, base, args, state)


def _can_go(value: Any) -> bool:
    if type(value) in (int, str, float, bool, bytes, type(None)):
        return True
    try:
        import cloudpickle

        cloudpickle.dumps(value, 5)
    except Exception:  # whatever the classes of attributes raise
        return False
    return True


def chain(places: list[Place]) -> TracebackType | None:
    """A traceback that shows these frames, outermost first."""
    made: TracebackType | None = None
    for file, function, line in reversed(places):
        code = _raising().replace(
            co_filename=file, co_name=function, co_qualname=function, co_firstlineno=line
        )
        try:
            exec(code, {"__name__": "", "__file__": file})
        except Exception as error:  # that of the code
            inner = cast(TracebackType, cast(TracebackType, error.__traceback__).tb_next)
            made = TracebackType(made, inner.tb_frame, inner.tb_lasti, line)
    return made


@functools.cache
def _raising() -> CodeType:
    """Code with a frame to be shown; its table of places has no columns, which would be its own."""
    code = compile("raise Exception", "", "exec")
    units = len(code.co_code) // 2
    table = b"".join(
        bytes((_NO_COLUMNS | min(units - begin, 8) - 1, 0)) for begin in range(0, units, 8)
    )
    return code.replace(co_linetable=table)
