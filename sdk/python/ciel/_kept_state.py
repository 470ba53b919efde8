"""Finds where a task changes what it keeps between calls, other than global variables.

These are its mutable default arguments, the variables that it captures, and its own attributes. A
spawned call has a new copy of such defaults, and others do not see changes of the rest, so a result
that depends on them is not that of a plain call. Source text in, findings out; it
knows no task. Read next: `_lint.py`; `_defaults.py` for the copies.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ciel._scopes import Function, Scope
from ciel._written import CHANGING

DEFAULT = "changes its default argument {!r}, of which each spawned call has a new copy"
CAPTURED = "changes the captured variable {!r}, which other tasks do not see"
ATTRIBUTE = "changes its attribute {}, which other processes do not see"
INSTEAD = "pass the value as an argument and return it, or keep it in a process by ciel.once"

_MADE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MAKERS = frozenset("Counter OrderedDict bytearray defaultdict deque dict list set".split())

Change = tuple[ast.expr, str]
"""The place of a change, and what the task does there."""


class KeptStateSearch(ast.NodeVisitor):
    """Collects the first change of each default, captured variable and attribute of a function.

    A name that the function assigns to is a variable of its own.
    """

    def __init__(self, node: Function, scope: Scope) -> None:
        """Searches the body of a function that is defined in that scope."""
        self.found: list[Change] = []
        self._node = node
        self._scope = scope
        self._seen: set[str] = set()
        self._elsewhere = set(_declared(node))
        self._own = set(_assigned(node)) - self._elsewhere
        self._defaults = set(_changeable_defaults(node.args)) - self._own
        self._local = self._own | set(_parameters(node.args))
        for part in node.body:
            self.visit(part)

    def visit_Name(self, node: ast.Name) -> None:
        """`count = …` where `count` is declared `nonlocal`."""
        if not isinstance(node.ctx, ast.Load) and self._is_captured(node.id):
            self._note(node, CAPTURED, node.id)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """`x[key] = …` and `del x[key]`."""
        self._note_target(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """`x.part = …` and `del x.part`."""
        self._note_target(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`x += …` changes a list in its place."""
        if isinstance(node.target, ast.Name) and node.target.id in self._defaults:
            self._note(node.target, DEFAULT, node.target.id)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """`x.append(…)`."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            self._note_change(node.func.value)
        self.generic_visit(node)

    def _note_target(self, node: ast.Subscript | ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            whole = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            self._note_change(node if whole else node.value)
        self.generic_visit(node)

    def _note_change(self, changed: ast.expr) -> None:
        """What is behind that expression is changed."""
        attribute, base = "", changed
        while isinstance(base, (ast.Attribute, ast.Subscript)):
            attribute = base.attr if isinstance(base, ast.Attribute) else attribute
            base = base.value
        if not isinstance(base, ast.Name):
            return
        name = base.id
        if name in self._defaults:
            self._note(changed, DEFAULT, name)
        elif attribute and name not in self._local and self._is_itself(name):
            self._note(changed, ATTRIBUTE, f"{name}.{attribute}")
        elif name not in self._local and self._is_captured(name):
            self._note(changed, CAPTURED, name)

    def _note(self, node: ast.expr, does: str, name: str) -> None:
        if name not in self._seen:
            self._seen.add(name)
            self.found.append((node, does.format(name)))

    def _is_itself(self, name: str) -> bool:
        return self._scope.bound(name)[0] is self._node

    def _is_captured(self, name: str) -> bool:
        """Whether the name is a variable of a function around this one."""
        if name in self._local:
            return False
        bound, scope = self._scope.bound(name)
        is_inside = isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef))
        return bound is None and is_inside and name in scope.names


def _declared(node: Function) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            yield from part.names


def _assigned(node: Function) -> Iterator[str]:
    """Names that are assigned to, but by `+=` and its like."""
    updated = {id(part.target) for part in ast.walk(node) if isinstance(part, ast.AugAssign)}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            if id(part) not in updated:
                yield part.id


def _changeable_defaults(given: ast.arguments) -> Iterator[str]:
    """Parameters with a default that is a new list, dictionary, set or the like."""
    placed = [*given.posonlyargs, *given.args]
    count = len(given.defaults)
    pairs = [*zip(placed[len(placed) - count :], given.defaults, strict=True)]
    for parameter, default in [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
        if isinstance(default, _MADE) or _is_making(default):
            yield parameter.arg


def _is_making(default: ast.expr | None) -> bool:
    called = default.func if isinstance(default, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _MAKERS


def _parameters(given: ast.arguments) -> Iterator[str]:
    for part in ast.walk(given):
        if isinstance(part, ast.arg):
            yield part.arg
