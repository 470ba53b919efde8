"""An edit that changes what a task gives changes its identity, whatever kind of code it is of.

`kinds_of_code.txt` and `kinds_of_values.txt` have a program for each kind, in which `-` begins a
line before the edit and `+` one after it; `@` begins another file. The task `f` must give another
result after the edit, or, if the title begins with `same`, must have the same identity.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from looked_at import Looked, look

HERE = Path(__file__).parent
LIBRARIES = ("numpy", "pandas")


def kinds() -> dict[str, str]:
    """The programs with their edits, by title."""
    texts = [(HERE / f"kinds_of_{what}.txt").read_text() for what in ("code", "values")]
    parts = [part.split("\n", 1) for text in texts for part in text.split("### ")[1:]]
    return {title: text for title, text in parts}


KINDS = kinds()


def write(folder: Path, text: str, leave_out: str) -> None:
    """Writes a program without the lines that begin with `leave_out`."""
    for section in f"pipeline.py\n{text}".split("\n@ "):
        name, _, body = section.partition("\n")
        lines = [line for line in body.splitlines() if not line.startswith(leave_out)]
        if body and not lines:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.removeprefix("-").removeprefix("+") for line in lines))


def as_job(folder: Path) -> None:
    """Makes a task of the function `f`."""
    path = folder / "pipeline.py"
    text = path.read_text()
    head = "@D()\ndef f(" if "@D()" in text else "def f("
    path.write_text(f"import ciel\n{text.replace(head, f'@ciel.task{chr(10)}{head}')}\n")


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Looked, Looked, Looked]]:
    """Each program before the edit, again, and after it."""
    top = tmp_path_factory.mktemp("kinds")
    folders = []
    for number, (title, text) in enumerate(KINDS.items()):
        if missing(text):
            continue
        for leave_out, name in (("+", "before"), ("-", "after")):
            folder = top / f"{number}-{name}" / "p"
            write(folder, text, leave_out)
            as_job(folder)
        folders.append((title, top / f"{number}-before" / "p", top / f"{number}-after" / "p"))
    asked = [folder for _, before, after in folders for folder in (before, before, after)]
    found = iter(look(asked, "pipeline.py"))
    return {title: (next(found), next(found), next(found)) for title, _, _ in folders}


def missing(text: str) -> str:
    """A library that a program imports and that is not here; empty if there is none."""
    names = (name for name in LIBRARIES if f"import {name}" in text)
    return next((name for name in names if importlib.util.find_spec(name) is None), "")


@pytest.mark.parametrize("title", KINDS)
def test_edit_that_changes_the_result_changes_the_identity(
    title: str, looked: dict[str, tuple[Looked, Looked, Looked]]
) -> None:
    if missing(KINDS[title]):
        pytest.skip(f"{missing(KINDS[title])} is not installed")
    before, again, after = looked[title]
    assert again.before == before.before, "it is the same in every process"
    if title.startswith("same"):
        assert after.before == before.before
        assert after.results == before.results
    else:
        assert after.results != before.results, "the edit matters"
        assert after.before != before.before
