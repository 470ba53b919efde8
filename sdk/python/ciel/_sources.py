"""Source files of the program's modules: what lines define, and modules as a whole.

A file is read and compiled at most once in a process, and never run. It knows no functions. Read
next: `_reached.py`.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ciel._bytecode import names_of, parts_of
from ciel._project import is_project_file

_VARIABLE = re.compile(r"^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)


class Module(NamedTuple):
    """A whole module, of the program or not, by its name."""

    name: str


class Source:
    """The file of a module of the program."""

    def __init__(self, file: str) -> None:
        """Reads nothing yet."""
        self.file = file

    @functools.cached_property
    def data(self) -> bytes:
        """The content of the file; nothing if it is gone."""
        try:
            with open(self.file, "rb") as file:
                return file.read()
        except OSError:
            return b""

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


@functools.cache
def source_of(module: str) -> Source | None:
    """The file of a module of the program, imported or not; `None` if it is not of the program."""
    known = sys.modules.get(module)
    if known is not None:
        file = getattr(known, "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError, AttributeError):
            return None
        file = spec.origin if spec is not None and spec.has_location else None
    return Source(file) if file is not None and is_project_file(file) else None


def whole_module(name: str, source: Source) -> tuple[list[bytes], list[str]]:
    """A module as parts, and the names of those that it imports; one of C counts by its bytes."""
    if not source.file.endswith(".py"):
        return [source.data], []
    try:
        code = compile(source.data, source.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return [source.data], []
    is_package = source.file.endswith("__init__.py")
    package = name if is_package else name.rpartition(".")[0]
    return [*parts_of(code)], [*_imports(names_of(code).imports, package)]


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
            ahead += whole_module(name, source)[1]
    return tuple(sorted(set(found.values())))


def _imports(imports: tuple[tuple[int, str, tuple[str, ...]], ...], package: str) -> Iterator[str]:
    for level, module, names in imports:
        if level:
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - level + 1])
            module = f"{base}.{module}" if module else base
        yield module
        yield from (f"{module}.{name}" for name in names if source_of(f"{module}.{name}"))
