"""The identity of functions: how another process finds the function of a task.

A function that can be imported goes *by reference*: module, name and a hash of its code, so that a
module edited during a run is noticed. Any other function goes *by value*, pickled once in this
process, at its first spawn. Its captured values are frozen then; a global or cell that is rebound
later is an error that names it. This module knows no connection. Read next: `_payload.py`.
"""

from __future__ import annotations

import dis
import functools
import importlib
import importlib.util
import os
import pickle
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, cast
from weakref import WeakKeyDictionary

from ciel._bytecode import parts_of
from ciel._call import Definition, TaskFunction, named
from ciel._captured import changes_captured
from ciel._defaults import original_defaults
from ciel._errors import CielError, CielWarning, NonDeterministic, Refused, place_here
from ciel._faults import explained, largest
from ciel._freeze import by_value, thaw
from ciel._globals import check_unchanged, codes_of, readings_of, take_readings
from ciel._project import is_project
from ciel._reached import Piece, forget, note_empty, reached
from ciel._sources import code_of
from ciel._warnings import advise

CAPTURED_BYTES_MAX = 1 << 20
"""Captures above this size cause a warning: they are sent with the function."""

_PLAIN = (int, float, complex, str, bytes, bool, tuple, list, dict, set, frozenset)
_DEFINITIONS = (types.FunctionType, type, Definition)
"""What is defined again in notebooks, rather than assigned."""

_MISSING = object()


class Identity:
    """The identity of a task's function: `header` in payloads, `code` as the hash of its code.

    `data` is the pickled function if it goes by value, else `None`.
    """

    __slots__ = (
        "header", "code", "data", "globals", "cells", "name", "readings", "_changes_captured",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        data: bytes | None,
        version: str | None = None,
    ) -> None:
        """Records the values that the function captures now; a version stands for its code."""
        module = function.__module__ if data is None else ""
        self.name = name
        self.code = code_hash(function)
        code = self.code if version is None else version
        self.header = pickle.dumps((module, function.__qualname__, code), 5)
        self.data = data
        self.globals = list(_captured_globals(function, data is not None))
        self.cells = list(_captured_cells(function))
        self.readings = readings_of(function) if data is None else take_readings(function)
        self._changes_captured = data is not None and changes_captured(function)

    def renewed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function for one more task: a new copy of one that changes what it captures."""
        if not self._changes_captured:
            return function
        assert self.data is not None, "it goes by value"
        return cast("Callable[..., Any]", adopt(thaw(self.data), self.data))

    def check(self) -> None:
        """Raises CielError if something captured was rebound since the first spawn.

        A function that goes by value takes the new definition of a function or class; see
        `current_identity`.
        """
        for namespace, name, value in self.globals:
            found = namespace.get(name, _MISSING)
            if found is not value and not self._is_redefined(value, found):
                raise self._rebound("global", name)
        for cell, name, value in self.cells:
            try:
                changed = cell.cell_contents is not value
            except ValueError:  # deleted by `del`
                changed = True
            if changed:
                raise self._rebound("captured variable", name)

    def is_outdated(self) -> bool:
        """Whether a captured function or class was defined again since the first spawn."""
        return any(
            namespace.get(name, _MISSING) is not value
            and self._is_redefined(value, namespace.get(name, _MISSING))
            for namespace, name, value in self.globals
        )

    def _is_redefined(self, before: Any, now: Any) -> bool:
        return (
            self.data is not None
            and isinstance(before, _DEFINITIONS)
            and isinstance(now, _DEFINITIONS)
        )

    def _rebound(self, kind: str, name: str) -> CielError:
        return CielError(
            f"{kind} {name!r} of task {self.name} was assigned again after it was first used by a "
            "spawn",
            hint="other processes would not see the change: pass it as an argument",
        )


_IDENTITIES: WeakKeyDictionary[Callable[..., Any], Identity] = WeakKeyDictionary()


def identify(task: TaskFunction) -> Identity:
    """The identity of a task's function; computed once, at the first spawn.

    Raises NotSerializable that names the captured value that cannot be serialized.
    """
    version = task.options_now.version
    if version is None:
        found = identity_of(task.function, task.label)
    else:
        found = _made(task.function, task.label, version)
    task.identity = found
    if task.options_now.pure is not False:
        advise(task.function, found.code)
    return found


def current_identity(task: TaskFunction) -> Identity:
    """The identity of a task's function with the helpers that it has now.

    Raises CielError if data that it captures were assigned again, or changed by the spawning task.
    """
    identity: Identity = task.identity or identify(task)
    if identity.readings:
        since = "its import" if identity.data is None else "its first use by a spawn"
        check_unchanged(task.function, task.label, identity.readings, since)
    if not identity.globals and not identity.cells:
        return identity
    identity.check()
    if identity.is_outdated():
        _IDENTITIES.pop(task.function, None)
        task.definitions.clear()
        forget()
        identity = identify(task)
    return identity


def reached_by(task: TaskFunction) -> list[Piece]:
    """The code that a task's function reaches, the function first; see `_reached.py`.

    The first piece is that of the function's own code, which is the same in all processes of a run.
    If the task has no version, the second is that of its code with all that it captures.
    """
    pieces = reached(task.function, task.options_now.version)
    if task.options_now.version is not None:
        return pieces
    return [pieces[0]._replace(digest=code_hash(task.function)), *pieces]


def identity_of(function: Callable[..., Any], label: str) -> Identity:
    """As `identify`, of a plain function; `label` is its name in errors."""
    found = _IDENTITIES.get(function)
    if found is None:
        found = _IDENTITIES[function] = _made(function, label)
    return found


def _made(function: Callable[..., Any], label: str, version: str | None = None) -> Identity:
    if function.__module__ != "__main__" and _is_found(function):
        return Identity(function, label, None, version)
    try:
        data = by_value(function)
    except Exception as error:  # classes of captured values may raise anything
        raise explained(f"function {label}", function, error) from None
    if len(data) > CAPTURED_BYTES_MAX:
        path, size = largest(function, CAPTURED_BYTES_MAX)
        file, _, line = place_here().rpartition(":")
        warnings.warn_explicit(
            f"task {label} captures {size >> 20} MiB:{path or ' its own code'}; pass the value as "
            "an argument, or ciel.put it once",
            CielWarning,
            file or "unknown",
            int(line or 0),
        )
    return Identity(function, label, data)


def adopt(function: Callable[..., Any], data: bytes) -> Any:
    """Registers a function that was sent by value, so that its spawns send the same bytes."""
    name = getattr(function, "__name__", "function")
    _IDENTITIES[function] = Identity(function, name, data)
    return function


def _is_found(function: Callable[..., Any]) -> bool:
    found = named(function)
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    return found is function or isinstance(found, TaskFunction) and found.function is function


def resolve(header: bytes) -> Callable[..., Any]:
    """The function that a header names by reference.

    Raises Refused if it is missing, NonDeterministic if its code differs from the caller's. A
    version, which is text, stands for whatever the code is.
    """
    module, name, code = pickle.loads(header)
    function = function_of(find(module, name))
    if not isinstance(code, str) and code_hash(function) != code:
        raise NonDeterministic(
            f"{name} of module {module} is not the code that was spawned",
            hint="a file was edited during the run: rerun the job",
        )
    identity_of(function, name)
    return function


def function_of(found: Any) -> Callable[..., Any]:
    """The plain function of a task, or of a function; of a task that a class method is."""
    found = getattr(found, "_task", found)
    if isinstance(found, TaskFunction):
        return found.function
    if not callable(found):
        raise Refused(f"{found!r} is not a function")
    function: Callable[..., Any] = found
    return function


def find(module: str, name: str) -> Any:
    """The attribute `name`, dotted, of `module`; a module `x.py` is loaded from that file."""
    if module.endswith(".py"):
        found: Any = load_file(module)
    else:
        job = os.environ.get("CIEL_JOB", "")
        if module not in sys.modules and job and _stem(job) == module:
            found = load_file(job)
        else:
            found = importlib.import_module(module)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Refused(f"module {module} has no {name!r}") from None
    return found


def load_file(path: str) -> types.ModuleType:
    """Imports a file under its stem, never as `__main__`; once in this process."""
    path = os.path.abspath(path)
    stem = _stem(path)
    known = sys.modules.get(stem)
    if known is not None:
        if os.path.abspath(getattr(known, "__file__", None) or "") == path:
            return known
        raise Refused(
            f"{path} cannot be loaded: another module is named {stem!r}",
            hint="rename the file",
        )
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise Refused(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[stem]
        raise
    return _identified(module, before)


def load_job(wanted: dict[str, Any]) -> types.ModuleType:
    """The module of a job: its file `main`, or if it has a name `module`, what that imports.

    Raises Refused if a file that is not run as a module imports from its own package.
    """
    if "module" in wanted:
        name: str = wanted["module"]
        is_package = _stem(wanted["main"]) != name.rpartition(".")[2]
        before = set(sys.modules)
        module = importlib.import_module(f"{name}.__main__" if is_package else name)
        return _identified(module, before)
    try:
        return load_file(wanted["main"])
    except ImportError as error:
        if "no known parent package" not in str(error):
            raise
        raise Refused(
            f"{wanted['main']} imports from its own package, but is run as a file",
            hint="run it as a module, from the folder of its package: ciel run -m PACKAGE.MODULE",
        ) from error


def _identified(module: types.ModuleType, before: set[str]) -> types.ModuleType:
    """The module, its tasks identified as they are after the import; before it there were those."""
    for name in sys.modules.keys() - before:
        if is_project(sys.modules[name]):
            note_empty(sys.modules[name])
            for task in _tasks_of(sys.modules[name]):
                readings_of(task.function)
    for task in _tasks_of(module):
        if _is_found(task.function):
            identify(task)
    return module


def _tasks_of(module: types.ModuleType) -> list[TaskFunction]:
    """The tasks among the globals of a module."""
    values = list(getattr(module, "__dict__", {}).values())
    return [value for value in values if isinstance(value, TaskFunction)]


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def code_hash(function: Callable[..., Any]) -> bytes:
    """16 bytes that are equal for equal code with equal defaults, in every process.

    Docstrings do not count.
    """
    import hashlib  # only processes that spawn need it

    code = code_of(function)
    if code is None:
        return hashlib.blake2b(repr(function).encode(), digest_size=16).digest()
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts_of(code):
        hasher.update(len(part).to_bytes(4, "big") + part)
    hasher.update(_constant(original_defaults(function)))
    return hasher.digest()


def _constant(value: Any) -> bytes:
    """Text of a constant that is the same in every process; of an object, its type only."""
    if isinstance(value, frozenset):
        return b"{" + b",".join(sorted(_constant(part) for part in value)) + b"}"
    if isinstance(value, (tuple, list)):
        return b"(" + b",".join(_constant(part) for part in value) + b")"
    if isinstance(value, dict):
        return _constant(tuple(value.items()))
    if value is None or value is ... or type(value) in _PLAIN:
        return repr(value).encode()
    return type(value).__qualname__.encode()


def _names_of(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_of(constant)


def _captured_globals(
    function: Callable[..., Any], everything: bool, seen: set[int] | None = None
) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Globals that the code uses, and those of functions that are sent along by value. By reference
    only plain data is checked: other processes import the rest themselves. `None` is not: caches,
    which each process fills itself, begin with it; nor what the code assigns itself, as a counter.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return
    seen = {id(function)} if seen is None else seen
    namespace = function.__globals__
    for name in sorted(set(_names_of(code)) - _assigned(function)):
        value = namespace.get(name, _MISSING)
        if value is _MISSING or value is None or isinstance(value, types.ModuleType):
            continue
        inner = value.function if isinstance(value, Definition) else value
        if inner is function:
            continue
        if everything or type(value) in _PLAIN:
            yield namespace, name, value
        is_helper = everything and isinstance(inner, types.FunctionType)
        if is_helper and inner.__module__ == "__main__" and id(inner) not in seen:
            seen.add(id(inner))
            yield from _captured_globals(inner, everything, seen)


def _assigned(function: Callable[..., Any]) -> set[str]:
    """Globals that a function assigns, or one of its module that it names."""
    found = set(_assigned_in(function.__code__))
    for name in set(_names_of(function.__code__)):
        used = function.__globals__.get(name)
        used = used.function if isinstance(used, Definition) else used
        if isinstance(used, types.FunctionType) and used.__globals__ is function.__globals__:
            found |= _assigned_in(used.__code__)
    return found


@functools.cache
def _assigned_in(code: types.CodeType) -> frozenset[str]:
    return frozenset(
        instruction.argval
        for part in codes_of(code)
        for instruction in dis.get_instructions(part)
        if instruction.opname == "STORE_GLOBAL"
    )


def _captured_cells(function: Callable[..., Any]) -> Iterator[tuple[Any, str, Any]]:
    code = getattr(function, "__code__", None)
    names = code.co_freevars if code is not None else ()
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        try:
            yield cell, name, cell.cell_contents
        except ValueError:  # a function that calls itself is captured before it is defined
            continue
