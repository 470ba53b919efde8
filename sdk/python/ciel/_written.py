"""Names of variables whose values the code of a function changes, as its source says.

`writes` are assignments to parts of a variable and calls of methods that change it; `may_write` has
those, too, which are passed to a call or whose other methods are called. Functions of the program
that a function uses are searched, too, in any module, and the methods of its classes that have the
names used. It runs nothing. Read next: `_globals.py`.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ciel._project import is_project

FUNCTIONS_MAX = 50
"""Functions of a module that are searched for one task."""

CHANGING = frozenset(
    "add append appendleft clear difference_update discard extend extendleft fill insert "
    "intersection_update move_to_end pop popitem popleft put remove resize reverse rotate "
    "setdefault sort symmetric_difference_update update".split()
)
_READING = frozenset(
    "all any bool copy count dict enumerate filter frozenset get index isinstance items keys len "
    "list map max min print range repr reversed set sorted spawn str sum tail tuple type values "
    "zip".split()
)

Names = tuple[frozenset[str], frozenset[str]]

_FOUND: WeakKeyDictionary[Callable[..., Any], Names] = WeakKeyDictionary()


def writes(function: Callable[..., Any]) -> frozenset[str]:
    """Names of variables that the code changes for certain, when it gets there."""
    return _names(function)[0]


def may_write(function: Callable[..., Any]) -> frozenset[str]:
    """Names of variables that the code changes or passes to code which could."""
    return _names(function)[1]


def changed_in(function: types.FunctionType) -> frozenset[str] | None:
    """As `may_write`, of the code of the function itself; `None` if its source cannot be read."""
    search = _Search()
    return frozenset(search.surely | search.perhaps) if search.search(function) else None


def used_in(function: types.FunctionType) -> tuple[Names, frozenset[str]]:
    """As `writes` and `may_write`, of the code of the function itself, and the names that it calls;
    none if its source cannot be read.
    """
    search = _Search()
    search.search(function)
    surely = frozenset(search.surely)
    return (surely, surely | search.perhaps), frozenset(search.called)


def _names(function: Callable[..., Any]) -> Names:
    found = _FOUND.get(function)
    if found is None:
        search = _search(function)
        found = (frozenset(search.surely), frozenset(search.surely | search.perhaps))
        _FOUND[function] = found
    return found


def _search(function: Callable[..., Any]) -> _Search:
    """Searches the function, and those of its module that it uses."""
    search = _Search()
    waiting: list[Any] = [inspect.unwrap(function)]
    seen: set[Any] = set()
    while waiting and len(seen) < FUNCTIONS_MAX:
        one = waiting.pop()
        if not isinstance(one, types.FunctionType) or one in seen:
            continue
        seen.add(one)
        search.search(one)
        used = [one.__globals__.get(name) for name in one.__code__.co_names]
        inner = [getattr(part, name, None) for part in _holders(used) for name in search.named]
        called = [_function_of(one.__globals__.get(name)) for name in search.called]
        waiting += [part for part in (*called, *inner, *used) if _is_searched(part, one)]
    return search


def _is_searched(part: Any, user: types.FunctionType) -> bool:
    """Whether it is code of the module that uses it, or of another one of the program."""
    module = getattr(part, "__module__", "")
    return module == user.__module__ or is_project(sys.modules.get(module))


def _holders(used: list[Any]) -> Iterator[Any]:
    """Modules and classes of the program, whose functions are used by their names."""
    for part in used:
        if isinstance(part, types.ModuleType):
            if is_project(part):
                yield part
        elif part is not None:
            kind = part if isinstance(part, type) else type(part)
            if is_project(sys.modules.get(kind.__module__)):
                yield kind


def _function_of(called: Any) -> Any:
    """The function of a task, which runs here if it is called and elsewhere if it is spawned."""
    return getattr(called, "function", called)


class _Search(ast.NodeVisitor):
    """Collects the names that functions change.

    Of the last one, also the names of functions and of attributes that it calls.
    """

    def __init__(self) -> None:
        self.surely: set[str] = set()
        self.perhaps: set[str] = set()
        self.called: set[str] = set()
        self.named: set[str] = set()

    def search(self, function: types.FunctionType) -> bool:
        """Adds those of one function, none if its source cannot be read; whether it can."""
        import textwrap

        self.called, self.named = set(), set()
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function.__code__)))
        except (OSError, SyntaxError, ValueError, RecursionError, TypeError):
            return False
        self.visit(tree)
        return True

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """`X[key] = …` and `del X[key]`."""
        self._note_target(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """`X.part = …` and `del X.part`."""
        self._note_target(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`X |= …` changes a set in its place."""
        self.surely.update(_chain(node.target))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """`X.append(…)`, `X.load(…)` and `configure(X)`."""
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if isinstance(called, ast.Name):
            self.called.add(name)
        if isinstance(called, ast.Attribute):
            self.named.add(name)
            if name in CHANGING:
                self.surely.update(_chain(called.value))
            elif name not in _READING:
                self.perhaps.update(_chain(called.value))
        if name not in _READING:
            for argument in [*node.args, *[keyword.value for keyword in node.keywords]]:
                self.perhaps.update(_chain(argument))
        self.generic_visit(node)

    def _note_target(self, node: ast.Subscript | ast.Attribute) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self.surely.update(_chain(node.value))
        self.generic_visit(node)


def _chain(node: ast.AST) -> Iterator[str]:
    """The names in `module.X[key].part`: any of them may be the variable."""
    while True:
        if isinstance(node, ast.Name):
            yield node.id
            return
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif not isinstance(node, (ast.Subscript, ast.Starred)):
            return
        node = node.value
