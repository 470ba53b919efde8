"""Finds in the code of tasks that wait what a replay would do or find differently.

A strand is replayed if its process dies. What it has done to files is there by then: a folder is
made twice, a line is appended twice, a file that did not exist does. And sets of objects without a
hash of their own have another order in every process. Only `ciel lint` looks for these, and only in
tasks that spawn: others wait for nothing. It knows no files of Python. Read next: `_lint.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ciel._scopes import Scope

LOOK = "a replay finds what the task itself has changed: look in a task of its own"
MAKE = "a replay makes another one: make it in a task of its own, or name it by ciel.entropy(8)"
APPEND = "a replay appends again: return the text, or write a whole file in a task of its own"
ORDER = "their order differs from process to process: use a list or a dictionary"

_USED = {
    **{f"os.path.{name}": LOOK for name in ("exists", "lexists", "isfile", "isdir", "islink")},
    **{f"os.path.{name}": LOOK for name in ("getsize", "getmtime")},
    **{f"os.{name}": LOOK for name in ("access", "listdir", "scandir", "stat", "walk")},
    **{f"glob.{name}": LOOK for name in ("glob", "iglob")},
    **{f"tempfile.{name}": MAKE for name in ("mkdtemp", "mkstemp", "mktemp")},
    **{f"tempfile.{name}": MAKE for name in ("NamedTemporaryFile", "TemporaryDirectory")},
}

_SPAWNING = frozenset({"spawn", "map", "gather", "sh"})

Found = tuple[ast.expr, str, str]


class EffectSearch(ast.NodeVisitor):
    """What is found in a body; `spawns` says whether it counts."""

    def __init__(self, scope: Scope, body: list[ast.stmt]) -> None:
        """Looks through `body`, whose names `scope` explains."""
        self.scope = scope
        self.found: list[Found] = []
        self.spawns = False
        self._sets = {name for part in body for name in self._sets_in(part)}
        for part in body:
            self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        """Calls that look at files, make or append to them; and those that spawn."""
        name = self.scope.whole_name(node.func)
        instead = _USED.get(name or "")
        if instead is not None:
            self.found.append((node, f"{name}()", instead))
        elif self._is_builtin(node.func, "open") and _mode(node).count("a"):
            self.found.append((node, "open() for appending", APPEND))
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SPAWNING:
            self.spawns = True
        self.generic_visit(node)

    def _is_builtin(self, node: ast.expr, *names: str) -> bool:
        """Whether it is one of these names, which nothing in the text binds."""
        if not isinstance(node, ast.Name) or node.id not in names:
            return False
        _, scope = self.scope.bound(node.id)
        return node.id not in scope.names

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """A loop over a set."""
        self._check_order(node.iter)
        self.generic_visit(node)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """The same inside an expression."""
        self._check_order(node.iter)
        self.generic_visit(node)

    def _check_order(self, node: ast.expr) -> None:
        if self._is_set_of_objects(node) or isinstance(node, ast.Name) and node.id in self._sets:
            self.found.append((node, "the order of a set of objects", ORDER))

    def _sets_in(self, part: ast.stmt) -> Iterator[str]:
        """Names to which a set of objects is assigned."""
        for node in ast.walk(part):
            if isinstance(node, ast.Assign) and self._is_set_of_objects(node.value):
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))

    def _is_set_of_objects(self, node: ast.expr) -> bool:
        if isinstance(node, ast.SetComp):
            return self._is_object(node.elt)
        if isinstance(node, ast.Set):
            return any(self._is_object(element) for element in node.elts)
        if not isinstance(node, ast.Call) or not self._is_builtin(node.func, "set", "frozenset"):
            return False
        return any(self._is_object(element) for inside in node.args for element in _inside(inside))

    def _is_object(self, node: ast.expr) -> bool:
        """Whether it makes an object of a class of the text that is hashed by its address."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return False
        owner, scope = self.scope.bound(node.func.id)
        if not isinstance(owner, ast.ClassDef) or owner.decorator_list or owner.bases:
            return False
        return "__hash__" not in Scope(owner, scope).names


def _mode(node: ast.Call) -> str:
    """How a call of `open` opens the file, if the text says so."""
    modes = [*node.args[1:2], *[word.value for word in node.keywords if word.arg == "mode"]]
    return "".join(str(mode.value) for mode in modes if isinstance(mode, ast.Constant))


def _inside(node: ast.expr) -> list[ast.expr]:
    """The elements of a list or tuple, or the one expression for all of them."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [node.elt]
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
