"""Source files of the program's modules: what lines define, and modules as a whole.

A file is read, parsed and compiled at most once in a process, and never run. It knows no functions.
Read next: `_reached.py`.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import sys
import types
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from typing import Any, NamedTuple

from ciel._bytecode import names_of, parts_of
from ciel._project import is_project_file

_VARIABLE = re.compile(r"^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)


_REWRITTEN = "@pytest_ar"
"""A global variable of modules in which pytest has rewritten each `assert` at their import."""


class Module(NamedTuple):
    """A whole module, of the program or not, by its name."""

    name: str


class Source:
    """The file of a module of the program."""

    def __init__(self, file: str, loader: Any = None) -> None:
        """Reads nothing yet; the loader reads a file that is inside of another, as of zip."""
        self.file = file
        self._loader = loader

    @functools.cached_property
    def data(self) -> bytes:
        """The content of the file; nothing if it is gone."""
        try:
            with open(self.file, "rb") as file:
                return file.read()
        except OSError:
            return self._loaded()

    def _loaded(self) -> bytes:
        try:
            return bytes(self._loader.get_data(self.file))
        except (AttributeError, OSError):
            return b""

    def tree(self) -> ast.Module:
        """The module as a tree, which nobody changes; raises SyntaxError or ValueError."""
        text = importlib.util.decode_source(self.data)
        return parsed(text if text.endswith("\n") else f"{text}\n")

    @functools.cached_property
    def code(self) -> types.CodeType | None:
        """The code of the module as a whole; `None` if it is of C, or does not compile."""
        if not self.file.endswith(".py"):
            return None
        try:
            return compile(self.data, self.file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return None

    @functools.cached_property
    def _variables(self) -> dict[str, int]:
        return self._lines(_VARIABLE)

    @functools.cached_property
    def _classes(self) -> dict[str, int]:
        return self._lines(_CLASS)

    def line_of_variable(self, name: str) -> int:
        """The line that first assigns a global variable; 0 if there is none."""
        return self._variables.get(name, 0)

    def line_of_class(self, name: str) -> int:
        """The line of a class, by its qualified name; 0 if there is none."""
        return self._classes.get(name.rpartition(".")[2], 0)

    def _lines(self, pattern: re.Pattern[str]) -> dict[str, int]:
        text = self.data.decode("utf-8", "replace")
        found: dict[str, int] = {}
        line, place = 1, 0
        for match in pattern.finditer(text):
            line += text.count("\n", place, match.start(1))
            place = match.start(1)
            found.setdefault(match[1], line)
        return found


@functools.lru_cache(maxsize=4)
def parsed(text: str) -> ast.Module:
    """A text as a tree, which nobody changes; raises SyntaxError or ValueError.

    Lines end as `linecache` has them, so that all who need the text of a file share one tree.
    """
    return ast.parse(text)


@functools.cache
def source_of(module: str) -> Source | None:
    """The file of a module of the program, imported or not; `None` if it is not of the program."""
    known = sys.modules.get(module)
    if known is not None:
        file, loader = getattr(known, "__file__", None), getattr(known, "__loader__", None)
    else:
        spec = _spec_of(module)
        file = spec.origin if spec is not None and spec.has_location else None
        loader = getattr(spec, "loader", None)
    return Source(file, loader) if file is not None and is_project_file(file) else None


def _spec_of(module: str) -> ModuleSpec | None:
    """How a module would be imported, if it can be; this imports the packages that it is in."""
    try:
        return importlib.util.find_spec(module)
    except Exception:  # whatever the code of such a package does
        return None


@functools.cache
def is_module_of(package: str, name: str) -> bool:
    """Whether a name of a package of the program is a module, imported or not."""
    if source_of(package) is None and not _is_folder(package):
        return False
    return source_of(f"{package}.{name}") is not None or _is_folder(f"{package}.{name}")


def _is_folder(package: str) -> bool:
    """Whether it is a folder of modules of the program that has no file of its own."""
    known = sys.modules.get(package)
    if known is not None:
        paths = [] if getattr(known, "__file__", None) else getattr(known, "__path__", None) or []
    else:
        spec = _spec_of(package)
        paths = [] if spec is None or spec.origin else spec.submodule_search_locations or []
    return any(is_project_file(path) for path in paths)


def code_of(function: Any) -> types.CodeType | None:
    """The code of a function as its file has it, which other processes import; pytest changes it.

    `None` for what has no code.
    """
    code: types.CodeType | None = getattr(function, "__code__", None)
    if code is None or _REWRITTEN not in function.__globals__:
        return code
    return _codes_in(function.__module__).get((code.co_qualname, code.co_firstlineno), code)


@functools.cache
def _codes_in(module: str) -> dict[tuple[str, int], types.CodeType]:
    source = source_of(module)
    waiting = [] if source is None or source.code is None else [source.code]
    for code in waiting:  # which grows meanwhile
        waiting += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return {(code.co_qualname, code.co_firstlineno): code for code in waiting}


class Whole(NamedTuple):
    """A module as parts, the names of those that it imports, whether it looks at its text and
    whether it computes names, and the names that it uses.
    """

    parts: list[bytes]
    imports: list[str]
    looks: bool = False
    computes: bool = False
    used: frozenset[str] = frozenset()


def whole_module(name: str, source: Source) -> Whole:
    """All of a module; one of C counts by its bytes."""
    code = source.code
    if code is None:
        return Whole([source.data], [])
    is_package = source.file.endswith("__init__.py")
    package = name if is_package else name.rpartition(".")[0]
    names = names_of(code)
    imports = [*_imports(names.imports, package)]
    return Whole([*parts_of(code)], imports, names.looks, names.computes, names.used)


@functools.cache
def files_of(module: str) -> tuple[str, ...]:
    """The files of the program in which a module lies, and all modules that it imports."""
    found: dict[str, str] = {}
    ahead = [module]
    while ahead:
        name = ahead.pop()
        source = None if name in found else source_of(name)
        if source is not None:
            found[name] = source.file
            ahead += whole_module(name, source).imports
    return tuple(sorted(set(found.values())))


def _imports(imports: tuple[tuple[int, str, tuple[str, ...]], ...], package: str) -> Iterator[str]:
    for level, module, names in imports:
        if level:
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - level + 1])
            module = f"{base}.{module}" if module else base
        yield module
        yield from (f"{module}.{name}" for name in names if is_module_of(module, name))
