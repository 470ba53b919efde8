"""Functions that leave nothing behind: what they do is seen in their results alone.

Such a function may run in the process of `main`, whose modules are the program's own: it assigns
no global variable and no attribute, imports nothing, neither prints nor reads, spawns nothing, and
uses but its arguments, constants of its module, other such functions there, and built-in ones and
modules that keep no state. Each global variable of the program that it uses is assigned once, a
constant one in the text of the module: so it has the same value in every process, at any time. What
a look at the code does not show to be so is taken not to be. Read next: `_keeping_strand.py`.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ciel._atoms import is_plain
from ciel._globals import codes_of
from ciel._project import is_project
from ciel._sources import source_of

FUNCTIONS_MAX = 50
"""Functions of a module that are looked at for one task."""

_MODULES = frozenset(
    "bisect cmath collections fractions functools heapq itertools json math numbers "
    "operator re string".split()
)
"""Modules of the standard library without a state that their functions change."""

_ACTING = frozenset(
    "__build_class__ __import__ breakpoint compile delattr eval exec exit globals help id input "
    "locals open print quit setattr vars".split()
)
"""Built-in functions that act, or look at more than their arguments."""

_LEAVING = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME LOAD_BUILD_CLASS STORE_NAME "
    "LOAD_NAME".split()
)
"""Instructions that change more than local variables, or that only code of modules has."""

_CHANGING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_CHANGING_OPS = frozenset(dis.opmap[name] for name in _CHANGING)
_OF_TEXT = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
"""Instructions that have a value from the text of the code."""

_MISSING = object()
_ONLY_CALLED = (types.BuiltinFunctionType, types.FunctionType, type)

_FOUND: WeakKeyDictionary[Callable[..., Any], bool] = WeakKeyDictionary()


def leaves_nothing(function: Callable[..., Any]) -> bool:
    """Whether a look at the code shows that the function leaves nothing behind."""
    found = _FOUND.get(function)
    if found is None:
        found = _FOUND[function] = _look(function)
    return found


def _look(function: Callable[..., Any]) -> bool:
    """The text of the module is read last, and only if nothing else decides."""
    waiting: list[Any] = [function]
    seen: set[Any] = set()
    constant: set[str] = set()
    once: set[str] = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if len(seen) > FUNCTIONS_MAX or not _is_simple(one):
            return False
        for name in _globals_of(one.__code__):
            value = one.__globals__.get(name, _MISSING)
            if value is _MISSING:
                if name in _ACTING or not hasattr(builtins, name):
                    return False
            elif isinstance(value, types.FunctionType) and value.__globals__ is one.__globals__:
                waiting.append(value)
                once.add(name)
            elif _is_harmless(value, one):
                once.add(name)
            elif is_plain(value):
                constant.add(name)
            else:
                return False
    if not once and not constant:
        return True
    assigned = _assigned_in(seen.pop().__globals__)  # all of them are of one module
    return assigned.once >= once and assigned.constant >= constant


def _is_simple(function: Any) -> bool:
    """Whether a function keeps nothing between calls, and its code changes local things only."""
    if not isinstance(function, types.FunctionType) or function.__closure__ or function.__dict__:
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return (
        all(map(is_plain, defaults))
        and not any(name.startswith("__") for name in _names(function))
        and not any(one.opname in _LEAVING for one in _instructions(function.__code__))
    )


def _is_harmless(value: Any, user: types.FunctionType) -> bool:
    """Whether the use of a module, or of what is called, leaves nothing behind."""
    if isinstance(value, types.ModuleType):
        leads_on = (getattr(value, name, None) for name in _names(user))
        return _is_allowed(value.__name__) and not any(
            isinstance(one, types.ModuleType) for one in leads_on
        )
    if not isinstance(value, _ONLY_CALLED):
        return False
    module = (value.__module__ or "").removeprefix("_")  # `_heapq` is the half of `heapq` in C
    return _is_allowed(module) or (module == "builtins" and value.__name__ not in _ACTING)


def _is_allowed(module: str) -> bool:
    return module in _MODULES and not is_project(sys.modules.get(module))


class _Assigned(NamedTuple):
    """Global variables that a module assigns once, and those of them with a value in its text."""

    once: frozenset[str] = frozenset()
    constant: frozenset[str] = frozenset()


def _assigned_in(namespace: dict[str, Any]) -> _Assigned:
    name = namespace.get("__name__", "")
    is_imported = getattr(sys.modules.get(name), "__dict__", None) is namespace
    return _assigned_by(name) if is_imported else _Assigned()


@functools.cache
def _assigned_by(module: str) -> _Assigned:
    source = source_of(module)
    code = source.code if source is not None else None
    if code is None:
        return _Assigned()
    constant, before = set(), ""
    times: Counter[str] = Counter()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_NAME", "DELETE_NAME"):
            times[instruction.argval] += 1
            if before in _OF_TEXT:
                constant.add(instruction.argval)
        before = instruction.opname
    changing = [part for part in codes_of(code) if not _CHANGING_OPS.isdisjoint(part.co_code[::2])]
    changed = {
        one.argval
        for part in changing
        for one in dis.get_instructions(part)
        if one.opname in _CHANGING
    }
    once = frozenset(name for name, count in times.items() if count == 1) - changed
    return _Assigned(once, once & constant)


def _globals_of(code: types.CodeType) -> Iterator[str]:
    for instruction in _instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval


def _names(function: types.FunctionType) -> Iterator[str]:
    """The names of global variables and attributes in its code."""
    return (name for part in codes_of(function.__code__) for name in part.co_names)


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    for part in codes_of(code):
        yield from dis.get_instructions(part)
