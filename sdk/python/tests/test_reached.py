"""The identity of code: an edit of a project changes that of exactly the functions it concerns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import edited_project
import pytest
from edited_project import EDITS, FUNCTIONS, Edit

from ciel._bytecode import names_of, parts_of

READ = """
import json, os, sys
sys.path[:0] = [".", "site-packages"]
import pipeline
from ciel._code import reached_by

def words(piece):
    place = f"{os.path.basename(piece.file)}:{piece.line} " if piece.file else ""
    return f"{place}({piece.name})"

found = {}
for name in sys.argv[1:]:
    pieces = reached_by(getattr(pipeline, name))
    found[name] = [[words(piece), piece.name, piece.digest.hex()] for piece in pieces]
print(json.dumps(found))
"""

Pieces = dict[str, list[list[str]]]


def pieces_of(folder: Path, *functions: str, seed: int = 0) -> Pieces:
    """The pieces that functions of `pipeline.py` reach, as another process sees them."""
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", READ, *functions]
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    pieces: Pieces = json.loads(found.stdout)
    return pieces


def reason(before: list[list[str]], now: list[list[str]]) -> str:
    """What differs, with its place now; empty if nothing does."""
    earlier = {name: digest for _, name, digest in before}
    same = {(name, digest) for _, name, digest in before}
    changed = [*dict.fromkeys(w for w, name, digest in now if (name, digest) not in same)]
    new = all(name not in earlier for words, name, _ in now if words in changed)
    kind = "new: " if new and all(words.startswith("(") for words in changed) else ""
    return kind + ", ".join(changed) if changed else ""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Pieces:
    folder = tmp_path_factory.mktemp("before")
    edited_project.write(folder)
    return pieces_of(folder, *FUNCTIONS)


@pytest.mark.parametrize("edit", EDITS, ids=[edit.what for edit in EDITS])
def test_edit_changes_the_identity_of_exactly_what_it_concerns(
    edit: Edit, before: Pieces, tmp_path: Path
) -> None:
    edited_project.write(tmp_path)
    edited_project.apply(edit, tmp_path)
    now = pieces_of(tmp_path, *FUNCTIONS, seed=1)
    changes: dict[str, Any] = {}
    for name in FUNCTIONS:
        found = reason(before[name], now[name])
        if found:
            changes[name] = found
    assert changes == edit.changes


def test_identity_is_the_same_in_any_folder_and_with_any_hash_seed(
    before: Pieces, tmp_path: Path
) -> None:
    edited_project.write(tmp_path)
    for seed in (1, 2):
        found = pieces_of(tmp_path, *FUNCTIONS, seed=seed)
        assert found == before


def code_of(text: str) -> types.CodeType:
    """The code of a function in text, without running it."""
    found = [part for part in compile(text, "f", "exec").co_consts if hasattr(part, "co_code")]
    code: types.CodeType = found[0]
    return code


@pytest.mark.parametrize(
    ("expression", "computes"),
    [
        ("getattr(o, 'a')", False),
        ("getattr(o.b, 'a', None)", False),
        ("print(n)", False),
        ("getattr(o, n)", True),
        ("getattr(o.b, n, None)", True),
        ("eval(n)", True),
        ("exec(n)", True),
        ("globals()[n]", True),
        ("importlib.import_module(n)", True),
        ("sys.modules[n]", True),
        ("[getattr(o, n) for o in n]", True),
    ],
)
def test_code_that_computes_names_is_known(expression: str, computes: bool) -> None:
    assert names_of(code_of(f"def f(o, n):\n    return {expression}\n")).computes is computes


def test_names_have_the_attributes_that_are_taken_of_them() -> None:
    text = "def f(x):\n    from . import a\n    return m.sub.g(x) + h(m)\n"
    names = names_of(code_of(text))
    assert set(names.paths) == {("m", "sub", "g"), ("h",), ("m",)}
    assert names.imports == ((1, "", ("a",)),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return x + 1.5", '"doc"\n    return x + 1.5'),
        ("pass", '"doc"'),
        ("class A: y = 3\n    return A", 'class A:\n        "doc"\n\n        y = 3\n    return A'),
        ("return lambda: 'a'", "# Why.\n    return lambda: 'a'"),
    ],
)
def test_text_around_code_is_no_part_of_it(before: str, after: str) -> None:
    first, second = (code_of(f"def f(x):\n    {body}\n") for body in (before, after))
    assert [*parts_of(first)] == [*parts_of(second)]


def test_constants_of_code_are_part_of_it_beyond_the_first_256() -> None:
    body = "; ".join(f"x += {number}.5" for number in range(300))
    first, second = (
        code_of(f"def f(x):\n    {text}\n") for text in (body, body.replace("299.5", "399.5"))
    )
    assert [*parts_of(first)] != [*parts_of(second)]
