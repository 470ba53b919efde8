"""Module-level data that tasks read: whether the program has changed it since its import.

Each process imports a module itself, so a change that a program makes afterwards is seen by some
tasks and not by others. For each list, dictionary, set, array and instance of a project class that
the code of a task reads, a bounded *fingerprint* is taken when the module has been imported, and
compared at each spawn. An error needs three things: the fingerprint differs, the code of the
spawning task may have made the change, and the variable is no cache: the spawned task does not fill
it itself, nor do only tasks fill what was empty at the import. This module knows no engine. Read
next: `_code.py`; `_written.py` for what code may change.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import sys
import types
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import (
    Callable, Iterable, Iterator, MutableMapping, MutableSequence, MutableSet,
)  # fmt: skip
from enum import Enum, auto
from itertools import islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ciel._atoms import ATOMS
from ciel._errors import CielError
from ciel._project import is_project
from ciel._strand import here
from ciel._written import may_write, writes

PARTS_MAX = 24
"""Parts of the values of one task that are compared; about 10 us."""

SAMPLES_MAX = 16
"""Elements of one container that are compared: all of a small one, else evenly spaced ones."""

ARRAY_SAMPLES_MAX = 64
"""Elements of an array that are compared, evenly spaced."""

TASKS_OF_OBJECTS = os.path.join(os.path.dirname(__file__), "_call.py")
"""The file of the function that stands for a callable object, which it captures."""

TYPES_MAX = 1024
"""Types of which is kept how their values are compared."""

class Reading(NamedTuple):
    """A variable that the code of a task reads, with the fingerprint of its value at the import.

    One that a closure captures has the fingerprint of its first use by a spawn, and a namespace of
    its own: it is copied then, whoever changes it later.
    """

    namespace: dict[str, Any]
    name: str
    value: Any
    fingerprint: list[Any]
    was_empty: bool
    file: str
    line: int
    is_captured: bool = False


_READINGS: WeakKeyDictionary[Callable[..., Any], tuple[Reading, ...]] = WeakKeyDictionary()


def readings_of(function: Callable[..., Any]) -> tuple[Reading, ...]:
    """The changeable variables that `function` reads, as they were at the first call of this."""
    found = _READINGS.get(function)
    if found is None:
        found = _READINGS[function] = take_readings(function)
    return found


def take_readings(function: Callable[..., Any]) -> tuple[Reading, ...]:
    """The changeable variables that `function` reads, as they are now."""
    return tuple(_readings(function))


def check_unchanged(
    function: Callable[..., Any], label: str, readings: tuple[Reading, ...], since: str
) -> None:
    """Raises CielError if the spawning task has changed what `function` reads.

    `label` is the name of the spawned task in the message, `since` when the readings were taken.
    """
    spawner = getattr(here.strand, "function", None)
    is_task = getattr(here.strand, "is_task", False)
    for reading in readings:
        if is_task and reading.was_empty:
            continue
        if reading.namespace.get(reading.name) is not reading.value:
            continue  # assigned again: another check
        if fingerprint(reading.value, PARTS_MAX // len(readings)) == reading.fingerprint:
            continue
        may_be_its = (
            reading.is_captured or spawner is None or reading.name in may_write(spawner)
        )
        if may_be_its and reading.name not in writes(function):
            raise _changed(reading, label, since)


def _changed(reading: Reading, label: str, since: str) -> CielError:
    if reading.file == TASKS_OF_OBJECTS:
        return CielError(
            f"the object that task {label} calls was changed after {since}",
            hint="other processes do not see the change: pass it as an argument, or make another "
            "task of it by ciel.task",
        )
    kind = "captured variable" if reading.is_captured else "global"
    return CielError(
        f"{kind} {reading.name!r} was changed after {since}, and task {label} reads it "
        f"in {os.path.basename(reading.file)}, line {reading.line}",
        hint="other processes do not see the change: pass it as an argument",
    )


def _readings(function: Callable[..., Any]) -> Iterator[Reading]:
    code = getattr(function, "__code__", None)
    if code is None:
        return
    captured = _captured(function)
    namespace = {**function.__globals__, **captured} if captured else function.__globals__
    names = {name for name in (*_names(code), *captured) if is_watched(namespace.get(name))}
    if not names:
        return
    lines = dict(reversed([(name, line) for name, line in _loads(code) if name in names]))
    for name, line in sorted(lines.items()):
        value = namespace[name]
        found = fingerprint(value, PARTS_MAX // len(lines))
        is_its = name in captured
        where = captured if is_its else function.__globals__
        empty = is_empty(value)
        yield Reading(where, name, value, found, empty, code.co_filename, line, is_its)


def _captured(function: Callable[..., Any]) -> dict[str, Any]:
    """The changeable variables that a closure captures; none of them is deleted."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            if is_watched(cell.cell_contents):
                found[name] = cell.cell_contents
    return found


def is_empty(value: Any) -> bool:
    """Whether a container has no elements."""
    kind = kind_of(type(value))
    return kind not in (Kind.ARRAY, Kind.INSTANCE) and len(value) == 0


def _names(code: types.CodeType) -> Iterator[str]:
    for part in codes_of(code):
        yield from part.co_names


def _loads(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """Globals and captured variables that the code reads, with lines, in order."""
    for part in codes_of(code):
        line = part.co_firstlineno
        for instruction in dis.get_instructions(part):
            place = instruction.positions
            line = place.lineno if place is not None and place.lineno else line
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
                yield instruction.argval, line


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code and that of all functions and classes inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


class Kind(Enum):
    """How values of a type are compared."""

    ATOM = auto()
    SEQUENCE = auto()
    QUEUE = auto()
    DICTIONARY = auto()
    SET = auto()
    BUFFER = auto()
    ARRAY = auto()
    INSTANCE = auto()
    OTHER = auto()


_KINDS: dict[Any, Kind] = {
    **dict.fromkeys(ATOMS, Kind.ATOM),
    list: Kind.SEQUENCE,
    tuple: Kind.SEQUENCE,
    deque: Kind.QUEUE,
    dict: Kind.DICTIONARY,
    OrderedDict: Kind.DICTIONARY,
    defaultdict: Kind.DICTIONARY,
    set: Kind.SET,
    frozenset: Kind.SET,
    bytearray: Kind.BUFFER,
    array: Kind.BUFFER,
}
_FIXED = frozenset({Kind.ATOM, Kind.OTHER})

_HOLDERS = (MutableSequence, MutableMapping, MutableSet, types.SimpleNamespace)
_RANDOM = frozenset({"random", "numpy.random.mtrand", "numpy.random._generator"})
"""Modules whose instances make random numbers."""


def is_watched(value: Any) -> bool:
    """Whether a variable with this value can be changed in a way that matters."""
    return kind_of(type(value)) not in _FIXED and type(value) not in (tuple, frozenset)


def has_state(value: Any) -> bool:
    """Whether a call that is given this value could leave something in it for the next call: a
    collection, an instance of a class of the program, an iterator, random numbers, or a callable
    that holds one of these.
    """
    if is_watched(value) or hasattr(type(value), "__next__") or isinstance(value, _HOLDERS):
        return True
    if isinstance(value, (tuple, frozenset)):
        return any(map(has_state, value))
    if isinstance(value, types.MethodType):
        return has_state(value.__self__)
    if isinstance(value, functools.partial):
        return any(map(has_state, (value.func, *value.args, *value.keywords.values())))
    return any(kind.__module__ in _RANDOM for kind in type(value).__mro__)


def kind_of(type_: Any) -> Kind:
    """How values of a type are compared; found once."""
    found = _KINDS.get(type_)
    if found is None:
        found = Kind.OTHER
        if (type_.__module__, type_.__qualname__) == ("numpy", "ndarray"):
            found = Kind.ARRAY
        elif is_of_project(type_):
            found = Kind.INSTANCE
        if len(_KINDS) < TYPES_MAX:
            _KINDS[type_] = found
    return found


def is_of_project(type_: Any) -> bool:
    """Whether a class belongs to the program: not to Python, an installed package, or logging."""
    logging = sys.modules.get("logging")
    if logging is not None and issubclass(type_, (logging.Filterer, logging.Formatter)):
        return False
    return type_.__module__ == "__main__" or is_project(sys.modules.get(type_.__module__))


def fingerprint(value: Any, parts_max: int) -> list[Any]:
    """Parts of `value`, outermost first, that are equal as long as nothing of them changes.

    Containers count with their length and a sample of their elements, arrays with shape and a
    sample, instances of project classes with their attributes, anything else with its identity.
    """
    found: list[Any] = []
    waiting: list[Any] = [value]
    for part in waiting:  # which grows meanwhile
        kind = kind_of(type(part))
        if kind is Kind.ATOM:
            found += (type(part), part)
        elif kind is Kind.OTHER:
            found.append(id(part))
        elif kind is Kind.ARRAY:
            found += (part.shape, part.dtype.str, _sample_of_array(part))
        elif kind is Kind.BUFFER:
            found += (len(part), bytes(part[:: _step(len(part), ARRAY_SAMPLES_MAX)]))
        else:
            inner = _attributes(part) if kind is Kind.INSTANCE else part
            found += (type(part), len(inner))
            if len(waiting) < parts_max:
                waiting += _sample(kind, inner)
        if len(found) >= 2 * parts_max:
            break
    return found


def _sample(kind: Kind, part: Any) -> Iterable[Any]:
    """Elements of a container: all of a small one, else some that are found quickly."""
    count, half = len(part), SAMPLES_MAX // 2
    if kind in (Kind.DICTIONARY, Kind.INSTANCE):
        if count <= SAMPLES_MAX:
            return [*part, *part.values()]
        ends = [*islice(part.items(), half), *islice(reversed(part.items()), half)]
        return [inner for item in ends for inner in item]
    if kind is Kind.SEQUENCE:
        sampled: Iterable[Any] = part[:: _step(count, SAMPLES_MAX)]
        return sampled
    if kind is Kind.QUEUE and count > SAMPLES_MAX:
        return [*islice(part, half), *islice(reversed(part), half)]
    return islice(part, SAMPLES_MAX)


def _sample_of_array(values: Any) -> bytes:
    sample: bytes = values.flat[:: _step(values.size, ARRAY_SAMPLES_MAX)].tobytes()
    return sample


def _step(count: int, samples: int) -> int:
    return max(1, -(-count // samples))


def _attributes(part: Any) -> dict[str, Any]:
    """The attributes of an instance, without cached properties: these are computed anywhere."""
    found: dict[str, Any] = getattr(part, "__dict__", {})
    type_: Any = type(part)
    caches = _cached_properties(type_)
    if caches:
        found = {name: value for name, value in found.items() if name not in caches}
    return found


@functools.lru_cache(maxsize=TYPES_MAX)
def _cached_properties(type_: Any) -> frozenset[str]:
    return frozenset(
        name
        for base in type_.__mro__
        for name, value in vars(base).items()
        if isinstance(value, functools.cached_property)
    )
