"""Files that code keeps in its process count for each task that may find them there.

A function of `functools.cache` read a table once in each worker. The task that called it first was
rerun after an edit of the table, and all others kept results of the old one: `["new", "old"]`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ciel._engine import find_command

import jobs

JOB = """
import ciel
import app


@ciel.task
def use(n):
    return app.table() + str(n)


@ciel.task
def other(n):
    return n


def main():
    return [*(use.spawn(n).result() for n in range(2)), other.spawn(1).result()]
"""

READ = """
def read():
    with open("table.txt") as file:
        return file.read()
"""

KEEPERS = {
    "cache": """
import functools

@functools.cache
def table():
    return read()
""",
    "cache of a method": """
import functools

class Tables:
    @functools.lru_cache(8)
    def first(self):
        return read()

def table():
    return TABLES.first()

TABLES = Tables()
""",
    "cached property of an object": """
import functools

class Tables:
    @functools.cached_property
    def first(self):
        return read()

TABLES = [Tables()]

def table():
    return TABLES[0].first
""",
    "attribute of an object": """
class Tables:
    first = None

    def get(self):
        if self.first is None:
            self.first = read()
        return self.first

TABLES = Tables()

def table():
    return TABLES.get()
""",
    "dictionary": """
FOUND = {}

def table():
    if "first" not in FOUND:
        FOUND["first"] = read()
    return FOUND["first"]
""",
    "list": """
FOUND = []

def table():
    if not FOUND:
        FOUND.append(read())
    return FOUND[0]
""",
    "global variable": """
FOUND = None

def table():
    global FOUND
    if FOUND is None:
        FOUND = read()
    return FOUND
""",
    "attribute of a class": """
class Tables:
    found = None

    @classmethod
    def get(cls):
        if cls.found is None:
            cls.found = read()
        return cls.found

def table():
    return Tables.get()
""",
    "attribute of a function": """
def table():
    if not hasattr(table, "found"):
        table.found = read()
    return table.found
""",
    "decorator of the program": """
def remembers(function):
    found = {}

    def wrapped():
        if not found:
            found["first"] = function()
        return found["first"]

    return wrapped

@remembers
def table():
    return read()
""",
    "value of ciel.once": """
import ciel

@ciel.once
def table():
    return read()
""",
    "nothing, but by the loader of a package": """
import pkgutil

def table():
    return pkgutil.get_data("inside", "../table.txt").decode()
""",
}


@pytest.mark.parametrize("what", KEEPERS)
def test_file_that_a_process_keeps_counts_for_all_who_find_it(what: str, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "__init__.py").touch()
    (tmp_path / "table.txt").write_text("old")
    (tmp_path / "app.py").write_text(READ + KEEPERS[what])
    assert jobs.run(tmp_path, JOB, options=("-j1",)).value == ["old0", "old1", 1]
    assert kept_in(tmp_path) == "3 of 3 kept"
    (tmp_path / "table.txt").write_text("new")
    assert kept_in(tmp_path).startswith("1 of 3 kept; use: input changed: table.txt (2 tasks)")
    assert jobs.run(tmp_path, JOB, options=("-j1", "--kept")).value == ["new0", "new1", 1]


OWN = """
import ciel


class Rows:
    def __init__(self, path):
        self.rows = []
        with open(path) as file:
            for line in file:
                self.rows.append(line)


@ciel.task
def count(path):
    found = {}
    for one in [path]:
        found[one] = len(Rows(one).rows)
    return found[path] + sum(len(open(one).read()) for one in [path])


def main():
    return [count.spawn(path).result() for path in ("one.txt", "two.txt")]
"""


def test_file_that_a_task_keeps_for_itself_counts_for_no_other(tmp_path: Path) -> None:
    """Objects, lists and dictionaries of the task itself are gone with it."""
    (tmp_path / "one.txt").write_text("1\n")
    (tmp_path / "two.txt").write_text("1\n2\n")
    assert jobs.run(tmp_path, OWN, options=("-j1",)).value == [3, 6]
    (tmp_path / "one.txt").write_text("1\n2\n3\n")
    assert kept_in(tmp_path) == "1 of 2 kept; count: input changed: one.txt"


def kept_in(folder: Path) -> str:
    """What the next run of the job says of results that it took, and why the other tasks ran."""
    job = folder / "job.py"
    words = [find_command(), "run", f"--state={folder / 'state'}", "-j1", "--kept", str(job)]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=jobs.DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1]
