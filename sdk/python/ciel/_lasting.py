"""Files that code reads and keeps in its process: what a later task finds there, it does not read.

Functions of `functools.cache`, cached properties of objects that modules have, code that assigns
global or captured variables, classes and such objects, or parts of them, and values of `ciel.once`
last as long as their process. What they read counts for each later task of the process that reaches
their code, whether it asks for it or not. It looks at frames and at source, and runs nothing. Read
next: `_audit.py`.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from ciel._bytecode import codes_of
from ciel._globals import is_of_project
from ciel._project import is_project, is_project_file
from ciel._reached import functions_reached
from ciel._seen import READ_MAX, Seen, Stamp

FUNCTIONS_MAX = 4096
"""Functions of which is kept what they reach."""

PARTS_MAX = 1000
"""Containers of modules with more elements are not searched for objects that last."""

READ: dict[CodeType, dict[str, Stamp | None]] = {}
"""The files that this process may still have in what code keeps, by that code."""

_CHANGING = frozenset("add append appendleft extend insert put setdefault update".split())
_STORES = frozenset(
    dis.opmap.get(f"STORE_{what}", -1) for what in ("GLOBAL", "ATTR", "SUBSCR", "SLICE", "DEREF")
)
_reached: dict[Callable[..., Any], frozenset[CodeType]] = {}
_cached: dict[CodeType, bool] = {}
"""Whether the function of a code is one of `functools.cache`, since its first reading."""


class Stores(NamedTuple):
    """What code changes that lasts: variables of modules and closures, or its first argument."""

    outside: bool
    first: bool


def note_read(frame: FrameType | None, path: str, stamp: Stamp | None, making: bool) -> None:
    """A file is opened beneath `frame`; `making` is whether for a value of the process."""
    before = None
    while frame is not None:
        code = frame.f_code
        if is_project_file(code.co_filename):
            if making or keeps(frame):
                _note(code, path, stamp)
        elif before and code.co_freevars and not making and _stores(code).outside:
            _note(before, path, stamp)  # what decorates it may keep its result
        before = code if is_project_file(code.co_filename) else None
        frame = frame.f_back


def _note(code: CodeType, path: str, stamp: Stamp | None) -> None:
    files = READ.setdefault(code, {})
    if len(files) <= READ_MAX:
        files[path] = stamp


def lasting_for(function: Callable[..., Any], seen: Seen | None) -> Iterator[tuple[str, Any]]:
    """The files that a task of `function` may have found in its process, with their stamps."""
    read = () if seen is None else seen.read
    codes = _codes_reached(function)
    for code, files in READ.items():
        if code in codes or code.co_filename in read:
            yield from files.items()


def _codes_reached(function: Callable[..., Any]) -> frozenset[CodeType]:
    found = _reached.get(function)
    if found is None:
        if len(_reached) >= FUNCTIONS_MAX:
            _reached.clear()
        functions = functions_reached(function)
        found = frozenset(code for one in functions for code in codes_of(one.__code__))
        _reached[function] = found
    return found


def keeps(frame: FrameType) -> bool:
    """Whether the code of a frame may keep what it gives, or what it reads, in the process."""
    code = frame.f_code
    stores = _stores(code)
    if stores.outside or _is_cached(code, frame.f_globals):
        return True
    if not code.co_argcount or code.co_name == "__init__":  # whoever keeps the object stores it
        return False
    if not (stores.first or _is_property(code, frame.f_globals)):
        return False
    first = frame.f_locals.get(code.co_varnames[0])
    return isinstance(first, type) or any(one is first for one in _held())


def _held() -> Iterator[Any]:
    """What modules of the program have, and what is in these small containers and objects."""
    for module in _modules(len(sys.modules)):
        for value in [*vars(module).values()]:
            yield value
            inside = value if isinstance(value, (dict, list, tuple)) else _attributes(value)
            if len(inside) <= PARTS_MAX:
                yield from [*inside.values()] if isinstance(inside, dict) else [*inside]


@functools.lru_cache(1)
def _modules(count: int) -> tuple[ModuleType, ...]:
    """The modules of the program; there are `count` modules in all."""
    return tuple(module for module in [*sys.modules.values()] if is_project(module))


def _attributes(value: Any) -> dict[str, Any]:
    return getattr(value, "__dict__", {}) if is_of_project(type(value)) else {}


def _is_cached(code: CodeType, namespace: dict[str, Any]) -> bool:
    known = _cached.get(code)
    if known is None:
        if len(_cached) >= FUNCTIONS_MAX:
            _cached.clear()
        known = _cached[code] = _has_cache(code, namespace)
    return known


def _has_cache(code: CodeType, namespace: dict[str, Any]) -> bool:
    found = [*namespace.values(), _defined(code, namespace)]
    for one in found:
        one = getattr(one, "__func__", one) if isinstance(one, (staticmethod, classmethod)) else one
        if type(one) is functools._lru_cache_wrapper:
            if getattr(inspect.unwrap(one), "__code__", None) is code:
                return True
    return False


def _is_property(code: CodeType, namespace: dict[str, Any]) -> bool:
    found = _defined(code, namespace)
    return isinstance(found, functools.cached_property) and found.func.__code__ is code


def _defined(code: CodeType, namespace: dict[str, Any]) -> Any:
    """What a class of the module has under the name of the code."""
    outermost, *inner = code.co_qualname.split(".")
    value = namespace.get(outermost)
    for name in inner:
        value = vars(value).get(name) if isinstance(value, type) else None
    return value if inner else None


@functools.lru_cache(FUNCTIONS_MAX)
def _stores(code: CodeType) -> Stores:
    """What the source of code says; everything if a function's cannot be read."""
    if code.co_name == "<module>":
        return Stores(False, False)  # its values count themselves
    calls = not _CHANGING.isdisjoint(name for one in codes_of(code) for name in one.co_names)
    if code.co_name.startswith("<"):  # a lambda or comprehension: it has no statements
        return Stores(calls, False)
    if not calls and not any(op in _STORES for one in codes_of(code) for op in one.co_code[::2]):
        return Stores(False, False)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError, ValueError, RecursionError, TypeError):
        return Stores(True, True)
    roots = {root for node in ast.walk(tree) for root in _changed(node)}
    inside = [*codes_of(code)]
    own = {name for one in inside for name in (*one.co_varnames, *one.co_cellvars)}
    outside = roots - (own - {*code.co_freevars})
    return Stores(bool(outside), bool(roots & {*code.co_varnames[: code.co_argcount][:1]}))


def _changed(node: ast.AST) -> Iterator[str]:
    """The variables whose values a part of the source changes: `X` of `X.part[key] = …`; and those
    that it declares as global.
    """
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
        yield from _root(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _CHANGING:
            yield from _root(node.func.value)


def _root(node: ast.AST) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
