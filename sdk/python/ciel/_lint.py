"""Finds calls in the code of tasks whose results may differ when a task is rerun.

Source text in, findings out; nothing is imported or run. It checks functions that are tasks, the
function `main` of a job, and functions of the same text that those use. It skips tasks declared
`pure=False`, and lines with the comment `# ciel: ok`. Read next: `_scopes.py` for names,
`_nondeterminism.py` and `_effects.py` for what they must not be, `lint.py` for the command.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ciel import _nondeterminism
from ciel._effects import EffectSearch, Found
from ciel._kept_state import INSTEAD, KeptStateSearch
from ciel._scopes import Function, Scope

TASK, RUN = "ciel.task", "ciel.run"
_SILENCED = re.compile(r"#\s*ciel:\s*ok\b")


@dataclass(frozen=True)
class Finding:
    """A place in the code of a task: 1-based line and column, the function around it, the task that
    uses this function, the used name, and what a task uses instead.
    """

    file: str
    line: int
    column: int
    function: str
    task: str
    what: str
    instead: str

    @property
    def message(self) -> str:
        """The finding, without location and hint."""
        through = "" if self.function == self.task else f", used by task {self.task},"
        name = self.function if through else f"task {self.function}"
        return f"{name}{through} uses {self.what}, which may differ when the task is rerun"

    def __str__(self) -> str:
        """`file:line:column: message; hint`."""
        return f"{self.file}:{self.line}:{self.column}: {self.message}; {self.instead}"


class Change(Finding):
    """A place where a task changes what it keeps between calls; `what` says which that is."""

    @property
    def message(self) -> str:
        """The finding, without location and hint."""
        return f"task {self.function} {self.what}"


@dataclass(frozen=True)
class _Place:
    """A function with the scope that it is defined in."""

    node: Function
    scope: Scope


class Source:
    """A text of Python, parsed once."""

    def __init__(self, text: str, file: str, tree: ast.Module | None = None) -> None:
        """`tree` is the text as parsed, if it was. Raises SyntaxError for text that is not Python,
        ValueError for null bytes.
        """
        self.file = file
        self.lines = re.split(r"\r\n|\r|\n", text)
        self.module = ast.parse(text, file) if tree is None else tree
        self.scope = Scope(self.module, None)
        self.places = list(_functions(self.module.body, self.scope))
        self.submitted = self._submitted()

    def findings(self) -> list[Finding]:
        """All findings, by line."""
        found: list[Finding] = []
        seen: set[ast.AST] = set()
        for place in self.places:
            if self._is_root(place):
                self._search(place, place.node.name, seen, found)
                self._search_effects(place, found)
                self._search_kept_state(place, found)
        return sorted(found, key=lambda finding: (finding.line, finding.column))

    def findings_in(self, name: str, line: int) -> list[Finding]:
        """The findings of the function of that name whose definition begins at a line."""
        for place in self.places:
            if place.node.name == name and _first_line(place.node) == line:
                found: list[Finding] = []
                self._search(place, name, set(), found)
                self._search_kept_state(place, found)
                return found
        return []

    def findings_everywhere(self) -> list[Finding]:
        """The findings of all functions but tasks and `main`, which run as tasks of their own."""
        found: list[Finding] = []
        seen: set[ast.AST] = set()
        for place in self.places:
            if _options_of(place) is None and not self._is_root(place):
                self._search(place, place.node.name, seen, found)
        return found

    def _search(self, place: _Place, task: str, seen: set[ast.AST], found: list[Finding]) -> None:
        """Searches a function and those that it uses."""
        waiting = [place]
        while waiting:
            one = waiting.pop()
            if one.node in seen:
                continue
            seen.add(one.node)
            search = _Search(one.scope.inside(one.node), _class_of(one.scope))
            for part in one.node.body:
                search.visit(part)
            found += self._kept(search.found, one.node.name, task)
            waiting += [used for used in reversed(search.used) if _options_of(used) is None]

    def _search_effects(self, place: _Place, found: list[Finding]) -> None:
        """Looks at a task itself for what a replay would do or find differently."""
        search = EffectSearch(place.scope.inside(place.node), place.node.body)
        if search.spawns:
            found += self._kept(search.found, place.node.name, place.node.name)

    def _search_kept_state(self, place: _Place, found: list[Finding]) -> None:
        """Looks at a task itself for changes of what it keeps between calls; `main` has one."""
        if self._is_main(place.node):
            return
        name = place.node.name
        for node, does in KeptStateSearch(place.node, place.scope).found:
            if not self._is_silenced(node):
                at = node.lineno, self._column(node)
                found.append(Change(self.file, *at, name, name, does, INSTEAD))

    def _kept(self, found: list[Found], name: str, task: str) -> Iterator[Finding]:
        """Those that no comment silences."""
        for node, what, instead in found:
            if not self._is_silenced(node):
                line, column = node.lineno, self._column(node)
                yield Finding(self.file, line, column, name, task, what, instead)

    def _column(self, node: ast.expr) -> int:
        """Counted in characters from 1; the parser counts bytes."""
        before = self.lines[node.lineno - 1].encode()[: node.col_offset]
        return len(before.decode()) + 1

    def _is_silenced(self, node: ast.expr) -> bool:
        last = node.end_lineno or node.lineno
        return any(_SILENCED.search(self.lines[line - 1]) for line in {node.lineno, last})

    def _is_root(self, place: _Place) -> bool:
        """Whether it runs as a task that is not declared impure."""
        options = _options_of(place)
        if options is not None:
            return not any(_is_impure(word) for word in options)
        return place.node in self.submitted or self._is_main(place.node)

    def _submitted(self) -> set[ast.AST]:
        """Functions that are passed to `ciel.run` or `ciel.task` directly."""
        found: set[ast.AST] = set()
        for call in ast.walk(self.module):
            if isinstance(call, ast.Call) and self.scope.whole_name(call.func) in (TASK, RUN):
                first = call.args[0] if call.args else None
                bound = self.scope.bound(first.id)[0] if isinstance(first, ast.Name) else None
                if isinstance(bound, ast.AST):
                    found.add(bound)
        return found

    def _is_main(self, node: Function) -> bool:
        """Whether it is the root of a job: `main` of a module that uses ciel and does not call it
        itself, as a program of its own does.
        """
        if node.name != "main" or self.scope.names.get("main") is not node:
            return False
        if not any(str(bound).partition(".")[0] == "ciel" for bound in self.scope.names.values()):
            return False
        outside = [part for part in self.module.body if not _is_definition(part)]
        names = (found for part in outside for found in ast.walk(part))
        return not any(isinstance(found, ast.Name) and found.id == "main" for found in names)


class _Search(ast.NodeVisitor):
    """Collects the nondeterministic calls of a body, and the functions of the text that it uses."""

    def __init__(self, scope: Scope, owner: ast.ClassDef | None) -> None:
        self.scope = scope
        self.owner = owner
        self.found: list[tuple[ast.expr, str, str]] = []
        self.used: list[_Place] = []

    def visit_Call(self, node: ast.Call) -> None:
        """Calls with their arguments; some names matter only if they are called without any."""
        name = self.scope.whole_name(node.func)
        if name is None or not self._is_settled(node, name):
            self.visit(node.func)
        for part in node.args:
            self.visit(part)
        for word in node.keywords:
            whole = self.scope.whole_name(word.value)
            if word.arg != "env" or whole not in _nondeterminism.VARIABLES:
                self.visit(word.value)

    def _is_settled(self, node: ast.Call, name: str) -> bool:
        """Handles a call that is judged as a whole; false for any other."""
        instead = _nondeterminism.instead_of_bare_call(name)
        if instead is not None:
            if all(_is_none(part) for part in [*node.args, *[w.value for w in node.keywords]]):
                self.found.append((node, f"{name}()", instead))
            return True
        mapping, _, method = name.rpartition(".")
        if mapping in _nondeterminism.VARIABLES and method in _nondeterminism.SETTING_METHODS:
            return True
        if name == "os.getenv" or mapping in _nondeterminism.VARIABLES and method == "get":
            return bool(node.args) and _is_own_variable(node.args[0])
        instead = _nondeterminism.instead_of_use(name)
        if instead is not None:
            self.found.append((node, f"{name}()", instead))
        return instead is not None

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Assigned variables, and those of ciel itself, are no findings."""
        is_mapping = self.scope.whole_name(node.value) in _nondeterminism.VARIABLES
        is_read = isinstance(node.ctx, ast.Load) and not _is_own_variable(node.slice)
        if not is_mapping or is_read:
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A whole name, or a method of the same class."""
        if not self._is_name(node):
            if isinstance(node.value, ast.Name):
                self._use_method(node.value.id, node.attr)
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """An imported name, or a function or class of the text."""
        if self._is_name(node) or not isinstance(node.ctx, ast.Load):
            return
        bound, scope = self.scope.bound(node.id)
        if isinstance(bound, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.used.append(_Place(bound, scope))
        elif isinstance(bound, ast.ClassDef):
            self._use(Scope(bound, scope), "__init__")

    def _is_name(self, node: ast.Attribute | ast.Name) -> bool:
        name = self.scope.whole_name(node)
        instead = None if name is None else _nondeterminism.instead_of_use(name)
        if instead is not None and isinstance(node.ctx, ast.Load):
            self.found.append((node, str(name), instead))
        return instead is not None

    def _use_method(self, owner: str, method: str) -> None:
        bound, scope = self.scope.bound(owner)
        if isinstance(bound, ast.ClassDef):
            self._use(Scope(bound, scope), method)
        elif owner in ("self", "cls") and self.owner is not None:
            self._use(Scope(self.owner, self.scope.parent), method)

    def _use(self, scope: Scope, method: str) -> None:
        found = scope.names.get(method)
        if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.used.append(_Place(found, scope))

    def visit_FunctionDef(self, node: Function) -> None:
        """Binds only its name; its body counts if it is used, its defaults are evaluated here."""
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Its body counts, with its own parameters."""
        before, self.scope = self.scope, self.scope.inside(node)
        self.visit(node.body)
        self.scope = before

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Annotations are not evaluated."""
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)


def _functions(body: list[ast.stmt], scope: Scope) -> Iterator[_Place]:
    """All functions of a body, at any depth, in order."""
    for part in body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _Place(part, scope)
            yield from _functions(part.body, scope.inside(part))
        elif isinstance(part, ast.ClassDef):
            yield from _functions(part.body, Scope(part, scope))
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(part, field, []), scope)
            for case in [*getattr(part, "handlers", []), *getattr(part, "cases", [])]:
                yield from _functions(case.body, scope)


def _class_of(scope: Scope) -> ast.ClassDef | None:
    return scope.node if isinstance(scope.node, ast.ClassDef) else None


def _options_of(place: _Place) -> list[ast.keyword] | None:
    """The options in the decorator of a task; `None` for any other function."""
    for decorator in place.node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if place.scope.whole_name(call.func if call else decorator) == TASK:
            return call.keywords if call else []
    return None


def _is_definition(part: ast.stmt) -> bool:
    return isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def _is_impure(word: ast.keyword) -> bool:
    is_false = isinstance(word.value, ast.Constant) and word.value.value is False
    return word.arg == "pure" and is_false


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_own_variable(node: ast.expr) -> bool:
    name = node.value if isinstance(node, ast.Constant) else None
    return isinstance(name, str) and name.startswith(_nondeterminism.OWN_VARIABLES)


def _first_line(node: Function) -> int:
    """The line of its first decorator, as in the code of a function."""
    return min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])
