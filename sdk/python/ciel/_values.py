"""Values that code names, captures or has as defaults, as digests; functions in them are followed.

Plain data counts by content, wherever it is nested. A function, class or module counts by its name
here, and is listed in `leads_to`. An instance of a class of the program counts by its attributes.
Of any other object only its type is known, so the module where the program makes it counts as a
whole. It knows no code. Read next: `_reached.py`.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import types
from collections import OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

from ciel._call import Definition, TaskFunction
from ciel._globals import Kind, kind_of
from ciel._sources import Module

PARTS_MAX = 100_000
"""Parts of one value that are looked at; what has more counts by the module that makes it."""

_PRINTED = (
    *(int, float, complex, str, bool, bytes, type(None), type(...), range, slice),
    *(Decimal, Fraction, date, datetime, time, timedelta, timezone, UUID),
)
_BY_TYPE = frozenset({"_thread", "logging", "threading", "_contextvars", "contextvars", "weakref"})
"""Modules of Python whose objects hold nothing that results depend on."""


class Values:
    """Digests of the values of one piece; `leads_to` is what they lead to."""

    def __init__(self, home: Any) -> None:
        """`home` is the module in which the program makes these values, if it has a file."""
        self._home = home
        self.leads_to: list[Any] = []
        self._open: set[int] = set()
        self._left = PARTS_MAX

    def digest(self, value: Any) -> bytes:
        """A digest of the value, in 16 bytes."""
        return hashlib.blake2b(self._text(value), digest_size=16).digest()

    def _text(self, value: Any) -> bytes:
        self._left -= 1
        type_ = type(value)
        if isinstance(value, enum.Enum):
            return self._lead(type_) + b"." + value.name.encode()
        if type_ in _PRINTED or isinstance(value, PurePath):
            return f"{type_.__name__} {value!r}".encode()
        if isinstance(value, (types.FunctionType, type, TaskFunction)):
            return self._lead(value)
        if isinstance(value, Definition):  # a value of `ciel.once`
            return self._lead(value.function)
        if id(value) in self._open:  # it contains itself
            return b"again"
        if self._left < 0:
            return self._by_home(type_)
        self._open.add(id(value))
        try:
            return self._text_inside(value, type_)
        finally:
            self._open.discard(id(value))

    def _text_inside(self, value: Any, type_: Any) -> bytes:
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, (dict, OrderedDict, defaultdict, types.MappingProxyType)):
            inside = [part for item in value.items() for part in item]
            inside.append(getattr(value, "default_factory", None))
            return self._all(type_, inside)
        if isinstance(value, (list, tuple, deque)):
            return self._all(type_, value)
        if isinstance(value, (set, frozenset)):
            return _name(type_) + b"".join(sorted(self.digest(part) for part in value))
        if isinstance(value, (bytearray, memoryview)):
            return _name(type_) + bytes(value)
        inner = _inner(value)
        if inner is not None:
            return self._all(type_, inner)
        return self._object(value, type_)

    def _all(self, type_: type[Any], parts: Any) -> bytes:
        return _name(type_) + b"".join(self.digest(part) for part in parts)

    def _object(self, value: Any, type_: Any) -> bytes:
        kind = kind_of(type_)
        if kind is Kind.ARRAY and value.dtype.hasobject is False:
            about = f"{value.shape} {value.dtype.str}".encode()
            return about + hashlib.blake2b(value.tobytes()).digest()
        if kind is Kind.INSTANCE:
            slots = [
                getattr(value, name, None)
                for base in type_.__mro__
                for name in base.__dict__.get("__slots__", ())
                if name not in ("__dict__", "__weakref__")
            ]
            return self._lead(type_) + self._all(type_, [vars_of(value), slots])
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            self.leads_to.append(value)
            return repr(getattr(value, "__qualname__", type_)).encode()
        if type_.__module__ in _BY_TYPE:
            return _name(type_)
        return self._by_home(type_)

    def _by_home(self, type_: Any) -> bytes:
        self._lead(type_)
        if self._home is not None:
            self.leads_to.append(self._home)
        return f"{type_.__module__}.{type_.__qualname__}".encode()

    def _module(self, module: types.ModuleType) -> bytes:
        self.leads_to.append(Module(module.__name__))
        return module.__name__.encode()

    def _lead(self, target: Any) -> bytes:
        self.leads_to.append(target)
        inner = target.function if isinstance(target, TaskFunction) else target
        return f"{inner.__module__}.{inner.__qualname__}".encode()


def _name(type_: type[Any]) -> bytes:
    return type_.__qualname__.encode()


def vars_of(value: Any) -> dict[str, Any]:
    """The attributes of an instance itself."""
    found: dict[str, Any] = getattr(value, "__dict__", {})
    return found


def _inner(value: Any) -> list[Any] | None:
    """What a callable of Python's library is made of; `None` if it is something else."""
    if isinstance(value, (functools.partial, functools.partialmethod)):
        return [value.func, value.args, value.keywords]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, functools.cached_property):
        return [value.func]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.GenericAlias):
        return [value.__origin__, value.__args__]
    wrapped = getattr(type(value), "__get__", None) and getattr(value, "__wrapped__", None)
    if wrapped is not None:
        return [wrapped, type(value).__qualname__]
    pattern = getattr(value, "pattern", None)
    if type(value).__module__ == "re" and pattern is not None:
        return [pattern, int(getattr(value, "flags", 0))]
    return None
