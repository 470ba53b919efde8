"""Names in source text: what each refers to, as far as the text itself shows.

A scope maps names to what they are bound to: the whole name of something imported, a function or
class of the text, or `None` for anything else. Pure: nothing is imported or run. It does not know
which names are searched for. Read next: `_lint.py`.
"""

from __future__ import annotations

import ast

Function = ast.FunctionDef | ast.AsyncFunctionDef
Bound = str | Function | ast.ClassDef | None


class Scope:
    """The names of a module, class or function. Those of a class are not seen from its methods."""

    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        """Reads what is bound in `node` itself, not in the functions and classes inside."""
        self.node = node
        self.parent = parent
        self.names: dict[str, Bound] = {}
        binder = _Binder(self.names)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            binder.visit_arguments(node.args)
        body = getattr(node, "body", [])
        for part in body if isinstance(body, list) else [body]:
            binder.visit(part)
        for name in binder.elsewhere:
            self.names.pop(name, None)

    def inside(self, node: ast.AST) -> Scope:
        """The scope of a function that is defined here."""
        is_class = isinstance(self.node, ast.ClassDef)
        return Scope(node, self.parent if is_class else self)

    def bound(self, name: str) -> tuple[Bound, Scope]:
        """What a name refers to, and the scope that binds it; (None, this scope) if none does."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name], scope
            scope = scope.parent
        return None, self

    def whole_name(self, node: ast.AST) -> str | None:
        """The whole name of an expression like `np.random.normal`; `None` if it is not imported."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        bound, _ = self.bound(node.id)
        return ".".join([bound, *reversed(parts)]) if isinstance(bound, str) else None


class _Binder(ast.NodeVisitor):
    """Collects what a body binds. An import precedes an assignment of the same name."""

    def __init__(self, names: dict[str, Bound]) -> None:
        self.names = names
        self.elsewhere: set[str] = set()

    def visit_arguments(self, node: ast.arguments) -> None:
        """Parameters."""
        for part in ast.walk(node):
            if isinstance(part, ast.arg):
                self.names[part.arg] = None

    def visit_Name(self, node: ast.Name) -> None:
        """Targets of assignments and loops."""
        if not isinstance(node.ctx, ast.Load):
            self.names.setdefault(node.id, None)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """The name of a caught exception."""
        if node.name:
            self.names.setdefault(node.name, None)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """`import a.b` binds `a`, `import a.b as c` binds `c` to all of it."""
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self.names[alias.asname or first] = alias.name if alias.asname else first

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """`from a import b`; a relative import is a module of the program."""
        for alias in node.names:
            whole = f"{node.module}.{alias.name}" if not node.level else None
            self.names[alias.asname or alias.name] = whole

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        """Names assigned here belong to an enclosing scope."""
        self.elsewhere.update(node.names)

    visit_Nonlocal = visit_Global  # noqa: N815

    def visit_FunctionDef(self, node: Function | ast.ClassDef) -> None:
        """A function or class; what it binds inside is its own."""
        self.names[node.name] = node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Its parameters are its own."""
