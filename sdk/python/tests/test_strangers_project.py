"""A stranger's project: each number of it is edited by itself, and whatever changes is seen.

The project uses what people use: packages and relative imports, decorators, caches, dispatch, data
classes, descriptors, metaclasses, plugins, names that are computed, a namespace package, a package
beside it, a module in a zip file. A task whose result an edit changes must have another identity.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest
import strangers_project

from looked_at import Looked, look
from test_kept import run

FOLLOWED = (
    "re_exported decorated cached managed looked_up attribute_of_function property_and_partial "
    "loaded_at_import own_type_in_class data_class enums descriptor abstract relative generated "
    "closure registered optional namespace_package beside from_zip defaults remembered"
).split()
"""Tasks whose code is followed function by function, so an edit beside it does not count."""


class Edited(NamedTuple):
    """The place of an edit, and what the project is then."""

    place: str
    looked: Looked


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Looked, list[Edited]]:
    """The project as it was written, and after each edit."""
    top = tmp_path_factory.mktemp("project")
    edits = [("nothing", strangers_project.FILES), *strangers_project.edits()]
    folders = [top / str(number) / "p" for number in range(len(edits))]
    for folder, (_, files) in zip(folders, edits, strict=True):
        strangers_project.write(folder, files)
    found = look(folders, "job.py", 3)
    places = [place for place, _ in edits]
    return found[0], [Edited(*one) for one in zip(places, found, strict=True)][1:]


def test_edit_that_changes_a_result_is_never_missed(
    project: tuple[Looked, list[Edited]],
) -> None:
    before, edits = project
    matter = 0
    for place, after in edits:
        for name, result in before.results.items():
            if after.results[name] != result:
                matter += 1
                assert after.before[name] != before.before[name], f"{name} after {place}"
    assert len(edits) > 80 and matter > 80


def test_edit_of_what_a_task_does_not_reach_does_not_count(
    project: tuple[Looked, list[Edited]],
) -> None:
    """Numbers of another file that change no result of these tasks, apart from those of unused
    methods and counters of the same pieces.
    """
    before, edits = project
    for place, after in edits:
        if not place.startswith(("job.py", "shop/models.py", "shop/prices.py", "shop/plugins")):
            for name in FOLLOWED:
                same = after.before[name] == before.before[name]
                assert same == (after.results[name] == before.results[name]), f"{name}, {place}"


def test_identity_does_not_depend_on_what_ran_before(
    project: tuple[Looked, list[Edited]],
) -> None:
    """A dictionary in which a task keeps results, a counter of calls, a module that was imported
    inside of a task: the identity was another one once tasks had run in the process.
    """
    before, _ = project
    assert before.after == before.before


RERUN = (
    "shop/prices.py:9 11",
    "shop/prices.py:65 43",
    "shop/models.py:15 71",
    "shop/late/base.py:1 193",
    "shop/late_child.py:11 223",
    "shop/plugins/red.py:11 2",
    "shop/rates.json:1 67",
    "spaces/part.py:2 227",
    "beside/editable.py:2 229",
    "modules.zip:2 367",
)
"""Edits that are tried by the command, too."""


def test_run_after_an_edit_prints_what_the_edited_program_prints(
    project: tuple[Looked, list[Edited]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of each kind: callee, attribute, import by a computed name, plugin, data, zip file."""
    paths = [tmp_path / "beside", tmp_path / "modules.zip", os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    strangers_project.write(tmp_path, strangers_project.FILES)
    run(tmp_path)
    files = dict(strangers_project.edits())
    expected = {place: looked.results for place, looked in project[1]}
    for place in RERUN:
        strangers_project.write(tmp_path, files[place])
        _, printed, told = run(tmp_path, "--kept")
        assert json.loads(printed) == [*expected[place].values()], place
        assert f"of {len(expected[place])} kept" in told, told
