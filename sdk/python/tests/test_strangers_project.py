"""A stranger's project: each number of it is edited by itself, and whatever changes is seen.

The project uses what people use: packages and relative imports, decorators, caches, dispatch, data
classes, descriptors, metaclasses, plugins, names that are computed, a namespace package, a package
beside it, a module in a zip file. A task whose result an edit changes must have another identity.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
import strangers_project

from looked_at import Looked, look

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
