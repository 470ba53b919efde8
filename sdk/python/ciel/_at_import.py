"""What modules do to others when they are imported: statements that leave no variable behind.

Such a statement calls what Python or an installed package has, or assigns there: `set_option` of
pandas, `random.seed`, `os.environ["X"] = …`; or it calls a function of the program, which may do
so. What it does to objects of the program shows in their values. It reads source files and runs
nothing. Read next: `_reached.py`, which counts the statements.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from ciel._project import is_project
from ciel._sources import Source, is_module_of, source_of


class Imported(NamedTuple):
    """The import of a module of the program, by the module's name."""

    name: str
    kind: str = "import"
    """No module as a whole, which is another target, equals it."""


class _Outline(NamedTuple):
    """What of the lines of a module matters here."""

    calling: list[tuple[ast.stmt, list[str]]]
    """The statements that call, or assign parts of, what these names stand for."""

    imports: list[ast.Import | ast.ImportFrom]


@functools.cache
def modules_acting(name: str) -> tuple[str, ...]:
    """The module, and those of the program that it imports, as far as their imports do anything."""
    seen, ahead = {name: False}, [name]
    while ahead:
        one = ahead.pop()
        source, module = source_of(one), sys.modules.get(one)
        if source is None or module is None or not source.file.endswith(".py"):
            continue
        outline = _outline(source)
        seen[one] = next(_acting(outline, vars(module)), None) is not None
        package = getattr(module, "__package__", None) or ""
        for other in _imports(outline, package):
            if other not in seen and other in sys.modules:
                seen[other] = False
                ahead.append(other)
    return tuple(sorted(one for one, acts in seen.items() if acts))


def code_at_import(name: str, source: Source) -> types.CodeType:
    """The statements of a module that do something to others, as code of their own."""
    body = [*_acting(_outline(source), vars(sys.modules[name]))]
    return compile(ast.Module(body, []), source.file, "exec", dont_inherit=True)


def line_at_import(name: str, source: Source) -> int:
    """The line of the first of them."""
    return next(_acting(_outline(source), vars(sys.modules[name]))).lineno


def forget() -> None:
    """Modules were imported again, or more of them."""
    modules_acting.cache_clear()


@functools.cache
def _outline(source: Source) -> _Outline:
    """A module is parsed once, however many others import it."""
    try:
        statements = [*_statements(source.tree().body)]
    except (SyntaxError, ValueError):
        statements = []
    calling = [(node, roots) for node in statements if (roots := [*_roots(node)])]
    imports = [node for node in statements if isinstance(node, (ast.Import, ast.ImportFrom))]
    return _Outline(calling, imports)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All that runs at the import, without bodies of functions and classes, and without what runs
    only in the program's own file.
    """
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield node
        is_main = isinstance(node, ast.If) and "__name__" in _names(node.test)
        for part in ("orelse",) if is_main else ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from _statements(handler.body)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _acting(outline: _Outline, namespace: dict[str, Any]) -> Iterator[ast.stmt]:
    for node, roots in outline.calling:
        if any(_is_of_others(namespace.get(root)) for root in roots):
            yield node


def _roots(node: ast.stmt) -> Iterator[str]:
    """The names of what a statement calls, or assigns parts of, without keeping the result."""
    if isinstance(node, ast.Expr):
        changed: list[ast.expr] = [node.value] if isinstance(node.value, ast.Call) else []
    elif isinstance(node, (ast.Assign, ast.Delete)):
        changed = [one for one in node.targets if isinstance(one, (ast.Attribute, ast.Subscript))]
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        changed = [node.target] if isinstance(node.target, (ast.Attribute, ast.Subscript)) else []
    else:
        return
    for part in changed:
        root: ast.expr = part
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name):
            yield root.id


def _is_of_others(value: Any) -> bool:
    """Whether it is a module of Python or of a package, or what can be called, of whomever."""
    if isinstance(value, types.ModuleType):
        return not is_project(value) and not _is_ours(value.__name__)
    return callable(value) and not _is_ours(getattr(value, "__module__", None) or "")


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "ciel"


def _imports(outline: _Outline, package: str) -> Iterator[str]:
    """The names of modules that may be imported with it."""
    for node in outline.imports:
        if isinstance(node, ast.Import):
            for one in node.names:
                first, *others = one.name.split(".")
                yield from (".".join([first, *others[:n]]) for n in range(len(others) + 1))
        else:
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (
                f"{module}.{one.name}" for one in node.names if is_module_of(module, one.name)
            )
