"""All code that a function reaches: what its results depend on, as named pieces with digests.

A piece is a function, a class, a constant, a whole module, an installed package by its version, or
a setting such as the time zone. A function leads to what it names, captures and has as defaults; a
class to its bases and methods; a container to what is in it. Each piece is looked at once in a
process, and knows only what it leads to by name, so a change shows in the piece that has changed.
Code that computes names leads to all of its module. It runs no code of the program but properties
of its values. Read next: `_values.py`, `_bytecode.py`; docs/reference/python.md, "What counts as
the code of a task".
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ciel import _at_import
from ciel._at_import import Imported, code_at_import, line_at_import, modules_acting
from ciel._bytecode import Names, Noted, Path, assigned_attributes, is_computing, names_of, parts_of
from ciel._call import Definition, TaskFunction
from ciel._classes import parts_of_class
from ciel._defaults import original_defaults
from ciel._globals import is_empty, is_watched
from ciel._libraries import version_of
from ciel._project import is_project_file
from ciel._settings import settings_asked
from ciel._sources import Module, Source, code_of, is_module_of, source_of, whole_module
from ciel._values import Values

DIGEST_BYTES = 16


class Piece(NamedTuple):
    """Code that a function reaches, or a value: its name, file, line, and digest in 16 bytes."""

    name: str
    file: str
    line: int
    digest: bytes


class Local(NamedTuple):
    """A piece, what it leads to, whether the text of code counts for it and whether it computes
    names, and the names that it uses.
    """

    piece: Piece
    leads_to: tuple[Any, ...]
    looks: bool = False
    computes: bool = False
    used: frozenset[str] = frozenset()


class Constant(NamedTuple):
    """A global variable that is no function, class or module."""

    namespace: dict[str, Any]
    name: str


_MISSING = object()
_BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType)
_CALLABLE = (types.FunctionType, types.BuiltinFunctionType)
_EMPTY: set[tuple[int, str]] = set()
"""Global variables of modules, which stay, that were empty containers when those were imported."""

_LOCAL: dict[Any, tuple[Any, Local]] = {}
"""By key, with the object itself, so that no other gets its address."""


def reached(function: Callable[..., Any], version: str | None = None) -> list[Piece]:
    """The pieces that a function reaches, itself first, the others by name; equal in any process.

    `version` stands for the code of the function itself.
    """
    (_, first), *others = _walk(function, with_imports=True)
    piece, looks = first.piece, first.looks or any(local.looks for _, local in others)
    if version is not None:
        piece = piece._replace(digest=digest_of([b"version", version.encode()]))
    found = {(*local.piece[:2], local.piece.digest): local.piece for _, local in others}
    if looks:
        found.update(_texts([piece, *found.values()]))
    used = first.used.union(*(local.used for _, local in others))
    for name, value in settings_asked(used).items():
        found[name, "", b""] = Piece(name, "", 0, digest_of([value.encode()]))
    return [piece, *(found[key] for key in sorted(found))]


def _walk(
    function: Callable[..., Any], with_imports: bool = False
) -> Iterator[tuple[Any, Local]]:
    """All that a function reaches, itself first, each with its piece; with what the imports of its
    modules do on request: that was done before it runs.

    Of a package that is reached as a whole, those of its modules count whose names are used
    anywhere: what has imported them may be elsewhere.
    """
    seen, used, packages = set(), set[str](), set[str]()
    waiting: list[Any] = [function]
    while waiting:
        for target in waiting:  # which grows meanwhile
            key = _key(target)
            if key in seen:
                continue
            seen.add(key)
            if isinstance(target, Imported) and not with_imports:
                continue
            local = _local(target)
            yield target, local
            waiting += local.leads_to
            used |= local.used
            if isinstance(target, Module) and _is_package(target.name):
                packages.add(target.name)
        inside = (f"{package}.{name}" for package in packages for name in used)
        waiting = [Module(name) for name in inside if name in sys.modules]
        waiting = [target for target in waiting if target not in seen]


def _is_package(name: str) -> bool:
    module = sys.modules.get(name)
    return bool(getattr(module, "__path__", None)) and _is_project_module(sys.modules[name])


def _texts(pieces: list[Piece]) -> Iterator[tuple[tuple[str, str, bytes], Piece]]:
    """The files of the program that pieces are in, as pieces by their keys."""
    for file in {piece.file for piece in pieces if is_project_file(piece.file)}:
        piece = Piece(f"text of {os.path.basename(file)}", file, 1, _digest_of_text(file))
        yield (piece.name, piece.file, piece.digest), piece


@functools.cache
def _digest_of_text(file: str) -> bytes:
    return digest_of([Source(file).data])


def note_empty(module: types.ModuleType) -> None:
    """The module was imported now: what is empty counts as empty, however it is filled later."""
    namespace = vars(module)
    for name, value in namespace.items():
        if is_watched(value) and is_empty(value):
            _EMPTY.add((id(namespace), name))


def functions_reached(function: Callable[..., Any]) -> Iterator[types.FunctionType]:
    """The functions of the program that a function reaches, itself first."""
    for target, _ in _walk(function):
        inner = target.function if isinstance(target, TaskFunction) else target
        if isinstance(inner, types.FunctionType) and _is_of_project(inner):
            yield inner


def modules_reached(function: Callable[..., Any]) -> Iterator[str]:
    """The modules of the program that a function reaches as a whole."""
    for target, _ in _walk(function):
        if isinstance(target, Module) and source_of(target.name) is not None:
            yield target.name


def computes(function: Callable[..., Any]) -> bool:
    """Whether code that a function reaches computes names, such as those of modules."""
    return any(local.computes for _, local in _walk(function))


def libraries_reached(function: Callable[..., Any]) -> Iterator[str]:
    """Names of the variables that a function reaches and that are libraries of C, or of these."""
    for target, _ in _walk(function):
        if isinstance(target, Constant):
            module = type(target.namespace[target.name]).__module__
            if module in ("ctypes", "_ctypes", "cffi.api", "_cffi_backend"):
                yield target.name


def forget() -> None:
    """Functions or classes were defined again: nothing that was found holds any more."""
    _LOCAL.clear()
    _at_import.forget()


def digest_of(parts: Iterable[bytes]) -> bytes:
    """A digest of parts, which are told apart."""
    hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big") + part)
    return hasher.digest()


def _key(target: Any) -> Any:
    if isinstance(target, Constant):
        return (id(target.namespace), target.name)
    return target if isinstance(target, (Module, Imported)) else id(target)


def _local(target: Any) -> Local:
    key = _key(target)
    found = _LOCAL.get(key)
    if found is None:
        found = _LOCAL[key] = (target, _made(target))
    return found[1]


def _made(target: Any) -> Local:
    if isinstance(target, TaskFunction):
        return _task(target)
    if isinstance(target, types.FunctionType):
        return _function(target)
    if isinstance(target, Module):
        return _module(target.name)
    if isinstance(target, Imported):
        return _import(target.name)
    if isinstance(target, Constant):
        return _constant(target)
    if isinstance(target, type):
        return _class(target)
    if isinstance(target, _BUILT_IN):
        # It may be of an extension of the program, which counts as a whole, once for all of them.
        return _by_its_name(_local(Module(_module_of(target))), target)
    module = getattr(target, "__module__", None)
    return _by_its_name(_foreign(module or type(target).__module__), target)


def _task(task: TaskFunction) -> Local:
    local = _local(task.function)
    version = task.options_now.version
    if version is None:
        return local
    digest = digest_of([b"version", version.encode()])
    return local._replace(piece=local.piece._replace(digest=digest))


def _function(function: types.FunctionType) -> Local:
    code = code_of(function) or function.__code__
    if not _is_of_project(function):
        return _by_its_name(_foreign_function(function), function)
    noted = Noted()
    names = names_of(code, noted)
    values = Values(_home(function))
    parts = [*parts_of(code, noted)]
    parts.append(values.digest(original_defaults(function)))
    for name, value in _captured(function):
        parts += [name.encode(), values.digest(value)]
    for name, value in _attributes(function):
        parts += [name.encode(), values.digest(value)]
    leads_to = [*values.leads_to]
    for target, text in _named(names, function.__globals__):
        parts.append(text)
        leads_to.append(target)
    leads_to += _imported(names, function.__globals__)
    if (home := _home(function)) is not None:
        leads_to += [Imported(name) for name in modules_acting(home.name)]
    computing = names.computes or _computes_by_another_name(names, function.__globals__)
    if computing:
        leads_to += _all_of(function.__globals__)
    line = code.co_firstlineno
    piece = Piece(function.__qualname__, code.co_filename, line, digest_of(parts))
    return Local(piece, tuple(leads_to), names.looks, computing, names.used)


def _by_its_name(local: Local, function: Any) -> Local:
    """What leads to a function uses its name, whatever that is called there."""
    name = getattr(function, "__name__", "")
    return local._replace(used=local.used | {name})


def _import(name: str) -> Local:
    """What the import of a module does to others."""
    source, namespace = source_of(name), vars(sys.modules[name])
    assert source is not None, "only modules with a file act"
    code = code_at_import(name, source)
    names = names_of(code)
    leads_to = [target for target, _ in _named(names, namespace)]
    piece = Piece(
        f"import of {name}", source.file, line_at_import(name, source), digest_of(parts_of(code))
    )
    return Local(piece, tuple(leads_to), names.looks)


def _computes_by_another_name(names: Names, namespace: dict[str, Any]) -> bool:
    """Whether a global is a function that computes names, under a name of the program."""
    for path in names.paths:
        value = namespace.get(path[0])
        if isinstance(value, _CALLABLE) and path[0] != value.__name__ and is_computing(value):
            return True
    return False


def _home(function: Any) -> Module | None:
    name = function.__globals__.get("__name__")
    return Module(name) if name in sys.modules else None


def _is_of_project(function: types.FunctionType) -> bool:
    file = function.__code__.co_filename
    if file.startswith("<"):  # made from text, as by `dataclass`, or in a notebook
        file = function.__globals__.get("__file__") or ""
        return not file or is_project_file(file)
    return is_project_file(file)


def _captured(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _attributes(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Attributes of the function itself, without those that it assigns, such as a counter."""
    if function.__dict__:
        assigned = assigned_attributes(function.__code__)
        yield from ((name, one) for name, one in function.__dict__.items() if name not in assigned)


def _named(names: Names, namespace: dict[str, Any]) -> Iterator[tuple[Any, bytes]]:
    """What paths of names lead to, each with a text that says which that is."""
    for path in names.paths:
        value, where = namespace.get(path[0], _MISSING), namespace
        if value is _MISSING:  # built in, perhaps by the program, or assigned later
            where = builtins.__dict__
            value = where.get(path[0], _MISSING)
            if value is _MISSING or getattr(value, "__module__", "builtins") == "builtins":
                continue
        target, text = _at(path, value, where)
        yield target, text
        if isinstance(target, Module):
            names_inside = (name for name in path[1:] if is_module_of(target.name, name))
            yield from ((Module(f"{target.name}.{name}"), text) for name in names_inside)


def _at(path: Path, value: Any, namespace: dict[str, Any]) -> tuple[Any, bytes]:
    """The target at the end of a path, with a text that says which: attributes are followed through
    modules of the program.
    """
    name, written = path[0], ".".join(path).encode() + b"="
    for attribute in path[1:]:
        if not isinstance(value, types.ModuleType) or not _is_project_module(value):
            break
        namespace, name = value.__dict__, attribute
        if attribute not in namespace:  # made when it is asked for, or a module not imported yet
            return Module(value.__name__), written + value.__name__.encode()
        value = namespace[attribute]
    target = _target(value, namespace, name)
    return target, written + _title(target)


def _target(value: Any, namespace: dict[str, Any], name: str) -> Any:
    if isinstance(value, types.ModuleType):
        return Module(value.__name__)
    if isinstance(value, Definition) and not isinstance(value, TaskFunction):
        return value.function
    if isinstance(value, (types.FunctionType, type, TaskFunction)):
        return value
    if isinstance(value, _BUILT_IN) and not _is_bound(value):
        return value
    return Constant(namespace, name)


def _is_bound(value: Any) -> bool:
    """Whether a built-in function is a method of some object, which counts."""
    owner = getattr(value, "__self__", None)
    return owner is not None and not isinstance(owner, types.ModuleType)


def _module_of(target: Any) -> str:
    """The name of the module of a function, or of the class of a method that is built in."""
    owner = getattr(target, "__objclass__", target)
    return getattr(owner, "__module__", None) or "builtins"


def _title(target: Any) -> bytes:
    if isinstance(target, (Constant, Module)):
        return target.name.encode()
    inner = target.function if isinstance(target, TaskFunction) else target
    return f"{_module_of(inner)}.{inner.__qualname__}".encode()


def _is_project_module(module: types.ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__":
        return True
    if file is None:
        return bool(getattr(module, "__path__", None))  # a folder without a file of its own
    return is_project_file(file)


def _imported(names: Names, namespace: dict[str, Any]) -> Iterator[Module]:
    package = namespace.get("__package__") or ""
    for level, module, taken in names.imports:
        if level:
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - level + 1])
            module = f"{base}.{module}" if module else base
        yield Module(module)
        for name in taken:
            if is_module_of(module, name):
                yield Module(f"{module}.{name}")


def _all_of(namespace: dict[str, Any]) -> Iterator[Any]:
    """All of the module with these globals; one without a file is all that it has."""
    name = namespace.get("__name__") or ""
    if source_of(name) is not None:
        yield Module(name)
        return
    for name, value in sorted(namespace.items()):
        if not name.startswith("__") and not isinstance(value, types.ModuleType):
            yield _target(value, namespace, name)


def _class(found: type) -> Local:
    file = getattr(sys.modules.get(found.__module__), "__file__", None)
    in_project = found.__module__ == "__main__" or file is not None and is_project_file(file)
    if not in_project:
        return _foreign(found.__module__)
    source = source_of(found.__module__)
    if source is not None and not source.file.endswith(".py"):
        return _local(Module(found.__module__))  # its methods are built in
    values = Values(Module(found.__module__) if source is not None else None)
    parts = [*parts_of_class(found, values)]
    line = source.line_of_class(found.__qualname__) if source is not None else 0
    piece = Piece(found.__qualname__, file or "", line, digest_of(parts))
    return Local(piece, tuple(values.leads_to))


def _constant(constant: Constant) -> Local:
    namespace, name = constant
    module = namespace.get("__name__") or ""
    source = source_of(module)
    place = _place_of_constant(name, namespace[name], source)
    values = Values(Module(module) if source is not None else None)
    value = namespace[name]
    if (id(namespace), name) in _EMPTY:
        value = [type(value), getattr(value, "default_factory", None)]
    piece = Piece(name, *place, digest_of([values.digest(value)]))
    return Local(piece, tuple(values.leads_to))


def _place_of_constant(name: str, value: Any, source: Source | None) -> tuple[str, int]:
    """File and line of the assignment, which may be in another module of the program."""
    if source is None:
        return "", 0
    line = source.line_of_variable(name)
    if line:
        return source.file, line
    for other in [*sys.modules.values()]:
        if getattr(other, "__dict__", {}).get(name, _MISSING) is value:
            found = source_of(other.__name__) if _is_project_module(other) else None
            line = found.line_of_variable(name) if found is not None else 0
            if found is not None and line:
                return found.file, line
    return source.file, 0


def _module(name: str) -> Local:
    source = source_of(name)
    if source is None:
        return _foreign(name)
    whole = whole_module(name, source)
    targets = [Module(target) for target in whole.imports]
    piece = Piece(f"module {name}", source.file, 1, digest_of(whole.parts))
    return Local(piece, tuple(targets), whole.looks, whole.computes, whole.used)


def _foreign(module: str) -> Local:
    """A package by its version."""
    package, version = _version(module)
    return Local(Piece(f"{package} {version}".strip(), "", 0, digest_of([version.encode()])), ())


def _foreign_function(function: types.FunctionType) -> Local:
    """A function of a package by its version; what it captures may be of the program and counts."""
    module = function.__globals__.get("__name__") or ""
    captured = [*_captured(function)]
    if not captured:
        return _foreign(module)
    values = Values(None)
    parts = [_version(module)[1].encode()]
    for name, value in captured:
        parts += [name.encode(), values.digest(value)]
    piece = Piece(function.__qualname__, "", 0, digest_of(parts))
    return Local(piece, (Module(module), *values.leads_to))


@functools.cache
def _version(module: str) -> tuple[str, str]:
    return version_of(module)
