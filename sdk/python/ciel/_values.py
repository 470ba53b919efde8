"""Values that code names, captures or has as defaults, as digests; functions in them are followed.

Plain data counts by content, wherever it is nested. A function, class or module counts by its name
here, and is listed in `leads_to`. An instance of a class of the program counts by its attributes,
any other object by what pickle would copy of it. What pickle cannot copy is known by its type only,
so the module where the program makes it counts as a whole. It knows no code. Read next:
`_reached.py`.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import os
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from ciel._call import Definition, TaskFunction
from ciel._globals import Kind, kind_of
from ciel._sources import Module

PARTS_MAX = 100_000
"""Parts of one value that are looked at; what has more counts by the module that makes it."""

DEPTH_MAX = 50
"""Containers and objects in each other that are looked at; what is deeper counts likewise."""

_PRINTED = (int, float, complex, str, bool, type(None), type(...), range, slice)

_PRINTED_OF_MODULES = {
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "uuid": ("UUID",),
}
"""More classes whose objects their text tells apart, of modules that are slow to import: a value of
one is there only if its module is."""
_BY_TYPE = frozenset({"lock", "RLock", "_RLock", "Condition", "Semaphore", "BoundedSemaphore"})
"""Classes of `threading` whose objects hold nothing that results depend on; nor do loggers."""

_ATOMS = (int, float, complex, str, bytes)

PROTOCOL = 4
"""The protocol of pickle whose copies count: without buffers that lie outside of them."""


class _Unknown(Exception):
    """An object has a part that pickle cannot copy."""


class Values:
    """Digests of the values of one piece; `leads_to` is what they lead to."""

    def __init__(self, home: Any) -> None:
        """`home` is the module in which the program makes these values, if it has a file."""
        self._home = home
        self.leads_to: list[Any] = []
        self._open: set[int] = set()
        self._left = PARTS_MAX
        self._copying = False

    def digest(self, value: Any) -> bytes:
        """A digest of the value, in 16 bytes."""
        return hashlib.blake2b(self._text(value), digest_size=16).digest()

    def _text(self, value: Any) -> bytes:
        self._left -= 1
        type_ = type(value)
        if isinstance(value, enum.Enum):
            return self._lead(type_) + b"." + value.name.encode()
        if isinstance(value, bytes) and type_ is bytes:
            return b"bytes " + value
        if _is_told_by_text(value, type_):
            return f"{type_.__name__} {value!r}".encode()
        if isinstance(value, (types.FunctionType, type, TaskFunction)):
            return self._lead(value)
        if isinstance(value, Definition):  # a value of `ciel.once`
            return self._lead(value.function)
        if id(value) in self._open:  # it contains itself
            return b"again"
        if self._left < 0 or len(self._open) >= DEPTH_MAX:
            return self._by_home(type_)
        self._open.add(id(value))
        try:
            return self._text_inside(value, type_)
        finally:
            self._open.discard(id(value))

    def _text_inside(self, value: Any, type_: Any) -> bytes:
        if isinstance(value, types.ModuleType):
            return self._module(value)
        content = self._content(value, type_)
        if content is not None and kind_of(type_) is Kind.INSTANCE:
            return content + self._lead(type_) + self._attributes(value, type_)
        if content is not None:
            return content
        inner = _inner(value)
        if inner is not None:
            return self._all(type_, inner)
        return self._object(value, type_)

    def _content(self, value: Any, type_: Any) -> bytes | None:
        """What is in a container; `None` if it is none."""
        if isinstance(value, (dict, types.MappingProxyType)):
            items = dict.items(value) if isinstance(value, dict) else value.items()
            inside = [part for item in items for part in item]
            inside.append(getattr(value, "default_factory", None))
            return self._all(type_, inside)
        if isinstance(value, deque):
            return self._all(type_, [*value, value.maxlen])
        if isinstance(value, (list, tuple)):
            return self._all(type_, value)
        if isinstance(value, (set, frozenset)):
            return _name(type_) + b"".join(sorted(self.digest(part) for part in value))
        if isinstance(value, (bytearray, memoryview)):
            return _name(type_) + bytes(value)
        return None

    def _all(self, type_: type[Any], parts: Any) -> bytes:
        return _name(type_) + b"".join(self.digest(part) for part in parts)

    def _object(self, value: Any, type_: Any) -> bytes:
        kind = kind_of(type_)
        if kind is Kind.ARRAY and value.dtype.hasobject is False:
            about = f"{value.shape} {value.dtype.str} {value.dtype}".encode()
            return about + hashlib.blake2b(value.tobytes()).digest()
        if kind is Kind.INSTANCE:
            return self._lead(type_) + self._attributes(value, type_)
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            self.leads_to.append(value)
            owner = value.__self__
            text = repr(getattr(value, "__qualname__", type_)).encode()
            return text if isinstance(owner, types.ModuleType) else text + self._text(owner)
        if _is_of_no_account(type_) and not self._copying:
            return _name(type_)
        if type_.__module__ == "weakref":  # what it refers to may go at any time
            return self._by_home(type_)
        return self._copied(value, type_) or self._by_home(type_)

    def _attributes(self, value: Any, type_: Any) -> bytes:
        """What an instance of a class of the program has, also by the built-in class beneath."""
        inside = [vars_of(value), [*_slots(value, type_)]]
        if isinstance(value, BaseException):
            inside.append(value.args)
        atom: Any = next((one for one in _ATOMS if isinstance(value, one)), None)
        if atom is not None:
            inside.append(atom.__repr__(value))
        return self._all(type_, inside)

    def _copied(self, value: Any, type_: Any) -> bytes | None:
        """By the parts of which pickle would make a copy; `None` if it cannot make one."""
        before, led = self._copying, len(self.leads_to)
        self._copying = True
        try:
            return self._lead(type_) + self._all(type_, _parts_of_copy(value))
        except _Unknown:
            if before:
                raise
            del self.leads_to[led:]
            return None
        finally:
            self._copying = before

    def _by_home(self, type_: Any) -> bytes:
        if self._copying:
            raise _Unknown
        self._lead(type_)
        if self._home is not None:
            self.leads_to.append(self._home)
        if self._home is not None or type_.__module__ != "weakref":
            self.leads_to += _job()
        return f"{type_.__module__}.{type_.__qualname__}".encode()

    def _module(self, module: types.ModuleType) -> bytes:
        self.leads_to.append(Module(module.__name__))
        return module.__name__.encode()

    def _lead(self, target: Any) -> bytes:
        self.leads_to.append(target)
        inner = target.function if isinstance(target, TaskFunction) else target
        return f"{inner.__module__}.{inner.__qualname__}".encode()


def _is_told_by_text(value: Any, type_: Any) -> bool:
    """Whether two values of that class are equal if their texts are."""
    if type_ in _PRINTED:
        return True
    if type_.__qualname__ in _PRINTED_OF_MODULES.get(type_.__module__, ()):
        return type_ is getattr(sys.modules.get(type_.__module__), type_.__qualname__, None)
    paths = sys.modules.get("pathlib")
    return paths is not None and isinstance(value, paths.PurePath)


def _name(type_: type[Any]) -> bytes:
    return type_.__qualname__.encode()


def _slots(value: Any, type_: Any) -> Iterator[Any]:
    """Values of the slots of all classes, whose names may be those of private attributes."""
    for base in type_.__mro__:
        names = base.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name in ("__dict__", "__weakref__"):
                continue
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"
            yield getattr(value, name, None)


def _is_of_no_account(type_: Any) -> bool:
    """Whether objects of a class of Python hold nothing that results depend on."""
    module = type_.__module__
    return module == "logging" or module in ("_thread", "threading") and type_.__name__ in _BY_TYPE


def _job() -> list[Module]:
    """The job's module: what it imports may have put an object where it is found."""
    name = os.path.splitext(os.path.basename(os.environ.get("CIEL_JOB", "")))[0]
    return [Module(name)] if name in sys.modules else []


def _parts_of_copy(value: Any) -> list[Any]:
    """The function that makes a copy, its arguments, and the state that it is given."""
    try:
        reduced = value.__reduce_ex__(PROTOCOL)
    except Exception:  # whatever its class does
        raise _Unknown from None
    if isinstance(reduced, str):  # a global name
        return [reduced]
    return [*reduced[:3], *([*part] for part in reduced[3:5] if part is not None)]


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
