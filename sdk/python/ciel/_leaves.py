"""Functions that leave nothing behind: what they do is seen in their results alone.

Such a function may run in the process of `main`, whose modules are the program's own: it assigns
no global variable and no attribute, imports nothing, neither prints nor reads, spawns nothing, and
uses but its arguments, constants of its module, other such functions there, and built-in ones and
modules that keep no state. What a look at the code does not show to be so is taken not to be. Read
next: `_keeping_strand.py`.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ciel._atoms import ATOMS

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

_ONLY_CALLED = (types.BuiltinFunctionType, types.FunctionType, type)

_FOUND: WeakKeyDictionary[Callable[..., Any], bool] = WeakKeyDictionary()


def leaves_nothing(function: Callable[..., Any]) -> bool:
    """Whether a look at the code shows that the function leaves nothing behind."""
    found = _FOUND.get(function)
    if found is None:
        found = _FOUND[function] = _look(function)
    return found


def _look(function: Callable[..., Any]) -> bool:
    waiting: list[Any] = [function]
    seen: set[Any] = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if len(seen) > FUNCTIONS_MAX or not _is_simple(one):
            return False
        for name in _globals_of(one.__code__):
            value = one.__globals__.get(name, one)
            if value is one and name not in one.__globals__:
                if name in _ACTING or not hasattr(builtins, name):
                    return False
            elif isinstance(value, types.FunctionType) and value.__globals__ is one.__globals__:
                waiting.append(value)
            elif not _is_harmless(value):
                return False
    return True


def _is_simple(function: Any) -> bool:
    """Whether a function keeps nothing between calls, and its code changes local things only."""
    if not isinstance(function, types.FunctionType) or function.__closure__:
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return all(map(_is_constant, defaults)) and not any(
        instruction.opname in _LEAVING for instruction in _instructions(function.__code__)
    )


def _is_harmless(value: Any) -> bool:
    """Whether the use of a global variable leaves nothing behind."""
    if isinstance(value, types.ModuleType):
        return value.__name__ in _MODULES
    if isinstance(value, _ONLY_CALLED):
        module = value.__module__
        is_acting = module == "builtins" and value.__name__ in _ACTING
        return module in ("builtins", *_MODULES) and not is_acting
    return _is_constant(value)


def _is_constant(value: Any) -> bool:
    return type(value) in ATOMS or type(value) is tuple and all(map(_is_constant, value))


def _globals_of(code: types.CodeType) -> Iterator[str]:
    for instruction in _instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)
