"""The modules of the package import each other without cycles, read from their sources.

Imports inside functions and those for type checkers count too: a reader follows them as well.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "ciel"
LATER = {"__init__"}
"""What loads other modules by name at their first use, so that no module may import it."""


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports anywhere."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "ciel":
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ciel."):
            found.add((node.module or "").removeprefix("ciel."))
    return found


def test_modules_import_each_other_without_cycles() -> None:
    modules = {path.stem: path for path in PACKAGE.glob("*.py") if path.stem not in LATER}
    edges = {name: imported(path) & modules.keys() for name, path in modules.items()}
    assert len(modules) > 25 and sum(map(len, edges.values())) > 50
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        raise AssertionError(f"modules in a circle: {' ← '.join(error.args[1])}") from None


def test_live_worker_does_not_import_the_serial_program() -> None:
    waiting, reached = ["_worker_process"], {"_worker_process"}
    while waiting:
        for name in imported(PACKAGE / f"{waiting.pop()}.py") - reached:
            if (PACKAGE / f"{name}.py").exists():
                reached.add(name)
                waiting.append(name)
    assert "_task_strand" in reached and "_serial" not in reached
