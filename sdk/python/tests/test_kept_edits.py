"""The table of edits by the command: after each edit of a project exactly the tasks that it
concerns run, and the reason is told.

`edited_project` has the table. What ran, and why, is in the records of a run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import edited_project
import pytest
from edited_project import EDITS, FUNCTIONS, Edit

from test_kept import run

JOB = """
import pipeline

NAMES = %r
ARGUMENTS = {"computed": ("second", 1), "nested": ([1, 2],)}


def main() -> list[str]:
    spawned = [getattr(pipeline, name).spawn(*ARGUMENTS.get(name, (1,))) for name in NAMES]
    return [repr(future.result()) for future in spawned]
"""

LABELS = {"scale": "three_times"}
"""Functions of the table by the names of their tasks, where these differ."""


def reasons(folder: Path) -> dict[str, str]:
    """The functions whose tasks ran in the last run, with the reasons."""
    command = os.environ.get("CIEL_COMMAND") or shutil.which("ciel") or ""
    words = [command, "ps", "--json", "--all"]
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
    last = max(map(json.loads, told.splitlines()), key=lambda one: str(one["run"]["run"]))
    ran = {}
    for task in last["tasks"]:
        name = LABELS.get(task["what"], task["what"])
        if name in FUNCTIONS and not any("earlier run kept" in each for each in task["reasons"]):
            ran[name] = (task.get("rerun") or "").replace(f"{folder}/", "")
    return ran


def place_in(reason: str) -> str:
    """The first place that a reason of the table names, as the command tells it."""
    first = reason.split(", ")[0]
    place = re.match(r"(\S+:\d+) ", first)
    return f"code changed: {place[1]}" if place else "code changed"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("project")
    edited_project.write(folder)
    (folder / "job.py").write_text(JOB % (FUNCTIONS,))
    paths = os.pathsep.join([str(folder / "site-packages"), os.environ.get("PYTHONPATH", "")])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", paths)
        run(folder)
        yield folder


@pytest.mark.parametrize("edit", EDITS, ids=[edit.what for edit in EDITS])
def test_edit_reruns_exactly_what_it_concerns_and_says_why(edit: Edit, project: Path) -> None:
    shutil.rmtree(project / "site-packages")
    edited_project.write(project)
    run(project, "--kept")
    edited_project.apply(edit, project)
    _, printed, _ = run(project, "--kept")
    told = reasons(project)
    assert set(told) == set(edit.changes)
    for name, reason in edit.changes.items():
        assert told[name].startswith(place_in(reason)), name
    assert unversioned(printed) == unversioned(run(project, "--new")[1])


def unversioned(printed: str) -> list[str]:
    """Results without that of the function whose version stands for its code: it may be older."""
    results: list[str] = json.loads(printed)
    del results[FUNCTIONS.index("with_version")]
    return results


VERSIONED = """
import ciel


@ciel.task(version="1")
def versioned(x: int) -> int:
    return x + 10


def main() -> int:
    return versioned.spawn(1).result()
"""


def test_version_of_a_task_stands_for_its_code(tmp_path: Path) -> None:
    """The code was part of the arguments, too, so an edit reran the task whatever its version."""
    job = tmp_path / "job.py"
    job.write_text(VERSIONED)
    run(tmp_path)
    job.write_text(VERSIONED.replace("x + 10", "x + 20"))
    _, printed, told = run(tmp_path, "--kept")
    assert (printed, "1 of 1 kept" in told) == ("11\n", True), told
    job.write_text(VERSIONED.replace("x + 10", "x + 20").replace('"1"', '"2"'))
    _, printed, told = run(tmp_path, "--kept")
    assert (printed, "versioned: code changed: job.py:5" in told) == ("21\n", True), told
