"""The identity of code: an edit of a project changes that of exactly the functions it concerns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import edited_project
import pytest
from edited_project import EDITS, FUNCTIONS, Edit

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
