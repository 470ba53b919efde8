"""A small project on disk and single edits of it, with what each changes.

`EDITS` is a table: the file, the text before and after, and for each function of `pipeline.py`
whose identity changes, what is named as the reason. It knows nothing of how identities are computed
or what runs again, so tests of both use it. Read next: `test_reached.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FILES = {
    "pipeline.py": '''"""Tasks of several kinds."""

import functools
import json

import tables
import toolbox
from models import *
from steps import clean, trim

import ciel

RATIO = 0.5
ADD_TWO = functools.partial(trim, 2)


@ciel.task
def direct(x):
    """Calls a function of another module."""
    return clean(x)


@ciel.task
def through_table(x):
    # A function of a dictionary calls another.
    return tables.STEPS["second"](x)


@ciel.task
def with_default(x, factor=3):
    return x * factor


@ciel.task
def with_constant(x):
    return f"{x * RATIO} of all"


@ciel.task
def with_class(x):
    return Circle(x).area()


@ciel.task
def with_data_class(x):
    return Setting(x).level


@ciel.task
def with_member(x):
    return Colour.RED.value + x


@ciel.task
def with_partial(x):
    return ADD_TWO(x)


@ciel.task
def with_library(x):
    return toolbox.double(x)


def scaled(by):
    def scale(x):
        return x * by

    return scale


three_times = ciel.task(scaled(3))


@ciel.task
def with_decorated(x):
    return tables.logged_step(x)


@ciel.task
def computed(name, x):
    return getattr(tables, name)(x)


@ciel.task(version="1")
def with_version(x):
    return trim(1, x) + 10


@ciel.task
def nested(x):
    def inner(y):
        return json.dumps([trim(1, z) for z in y])

    return inner(x)
''',
    "steps.py": '''def clean(x):
    return x + 1


def trim(count, x):
    """Trims."""
    return x - count
''',
    "tables.py": '''import functools

import steps


def logged(function):
    @functools.wraps(function)
    def call(x):
        return ("log", function(x))

    return call


def first(x):
    return steps.clean(x) * 2


def second(x):
    return LATER[0](x)


@logged
def logged_step(x):
    return x + 5


LATER = [first]
STEPS = {"second": second}
''',
    "models.py": '''from dataclasses import dataclass
from enum import Enum

__all__ = ["Circle", "Setting", "Colour"]


class Shape:
    scale = 2

    def size(self):
        return self.scale


class Circle(Shape):
    pi = 3

    def __init__(self, r):
        self.r = r

    def area(self):
        return self.pi * self.r * self.half

    @property
    def half(self):
        return self.size() / 2


@dataclass
class Setting:
    name: str
    level: int = 7


class Colour(Enum):
    RED = 1
    BLUE = 2
''',
    "site-packages/toolbox.py": "def double(x):\n    return 2 * x\n",
    "site-packages/toolbox-1.2.dist-info/METADATA": "Name: toolbox\nVersion: 1.2\n",
}

FUNCTIONS = (
    "direct through_table with_default with_constant with_class with_data_class with_member "
    "with_partial with_library three_times with_decorated computed with_version nested"
).split()

NOTHING: dict[str, str] = {}


class Edit(NamedTuple):
    """One edit: all of `before` in `file` becomes `after`; `changes` has a reason by function."""

    what: str
    file: str
    before: str
    after: str
    changes: dict[str, str]


def _each(reason: str, *functions: str) -> dict[str, str]:
    return dict.fromkeys(functions, reason)


_PIPELINE = _each("pipeline.py:1 (module pipeline)", "computed")
"""A function that computes a name changes with all of its module."""

_TABLES = _each("tables.py:1 (module tables)", "computed")
_STEPS = _each("steps.py:1 (module steps)", "computed")
_MODELS = _each("models.py:1 (module models)", "computed")

EDITS = (
    Edit(
        "body",
        "pipeline.py",
        "return x * factor",
        "return x * factor + 1",
        {"with_default": "pipeline.py:29 (with_default)", **_PIPELINE},
    ),
    Edit(
        "callee, also through a dictionary",
        "steps.py",
        "x + 1",
        "x + 9",
        {**_each("steps.py:1 (clean)", "direct", "through_table"), **_STEPS},
    ),
    Edit(
        "callee of several",
        "steps.py",
        "x - count",
        "x - count - 1",
        {
            **_each("steps.py:5 (trim)", "with_partial", "with_version", "nested"),
            **_STEPS,
        },
    ),
    Edit(
        "callee of a callee through a dictionary",
        "tables.py",
        "steps.clean(x) * 2",
        "steps.clean(x) * 3",
        {"through_table": "tables.py:14 (first)", **_TABLES},
    ),
    Edit(
        "function in a list",
        "tables.py",
        "LATER = [first]",
        "LATER = [first, first]",
        {"through_table": "tables.py:27 (LATER)", **_TABLES},
    ),
    Edit(
        "method",
        "models.py",
        "self.pi * self.r",
        "self.pi + self.r",
        {"with_class": "models.py:20 (Circle.area)", **_MODELS},
    ),
    Edit(
        "property",
        "models.py",
        "self.size() / 2",
        "self.size() / 4",
        {"with_class": "models.py:23 (Circle.half)", **_MODELS},
    ),
    Edit(
        "method of a base",
        "models.py",
        "return self.scale",
        "return -self.scale",
        {"with_class": "models.py:10 (Shape.size)", **_MODELS},
    ),
    Edit(
        "class attribute",
        "models.py",
        "pi = 3",
        "pi = 4",
        {"with_class": "models.py:14 (Circle)", **_MODELS},
    ),
    Edit(
        "base class",
        "models.py",
        "class Circle(Shape):",
        "class Circle(Shape, dict):",
        {"with_class": "models.py:14 (Circle)", **_MODELS},
    ),
    Edit(
        "field of a data class",
        "models.py",
        "level: int = 7",
        "level: int = 8",
        {"with_data_class": "models.py:29 (Setting)", **_MODELS},
    ),
    Edit(
        "member of an enum",
        "models.py",
        "RED = 1",
        "RED = 3",
        {"with_member": "models.py:34 (Colour)", **_MODELS},
    ),
    Edit(
        "default",
        "pipeline.py",
        "factor=3",
        "factor=4",
        {"with_default": "pipeline.py:29 (with_default)", **_PIPELINE},
    ),
    Edit(
        "constant",
        "pipeline.py",
        "RATIO = 0.5",
        "RATIO = 0.25",
        {"with_constant": "pipeline.py:13 (RATIO)", **_PIPELINE},
    ),
    Edit(
        "text around values",
        "pipeline.py",
        "of all",
        "of it",
        {"with_constant": "pipeline.py:34 (with_constant)", **_PIPELINE},
    ),
    Edit(
        "decorator",
        "tables.py",
        '("log", function(x))',
        '("LOG", function(x))',
        {"with_decorated": "tables.py:7 (logged_step)", **_TABLES},
    ),
    Edit(
        "decorated function",
        "tables.py",
        "x + 5",
        "x + 6",
        {"with_decorated": "tables.py:22 (logged_step)", **_TABLES},
    ),
    Edit(
        "value that a closure captures",
        "pipeline.py",
        "scaled(3)",
        "scaled(4)",
        {"three_times": "pipeline.py:65 (scaled.<locals>.scale)", **_PIPELINE},
    ),
    Edit(
        "argument of a partial",
        "pipeline.py",
        "partial(trim, 2)",
        "partial(trim, 3)",
        {"with_partial": "pipeline.py:14 (ADD_TWO)", **_PIPELINE},
    ),
    Edit(
        "rename of a function and its uses",
        "tables.py",
        "first",
        "foremost",
        {
            "through_table": "tables.py:27 (LATER), tables.py:14 (foremost)",
            **_TABLES,
        },
    ),
    Edit(
        "code beneath a version",
        "pipeline.py",
        "+ 10",
        "+ 11",
        {**_PIPELINE},
    ),
    Edit(
        "version",
        "pipeline.py",
        'version="1"',
        'version="2"',
        {"with_version": "pipeline.py:84 (with_version)", **_PIPELINE},
    ),
    Edit(
        "code that only a computed name reaches",
        "tables.py",
        'STEPS = {"second": second}\n',
        'STEPS = {"second": second}\n\n\ndef third(x):\n    return x\n',
        _TABLES,
    ),
    Edit("comment", "pipeline.py", "# A function of", "# One of", NOTHING),
    Edit("comment behind code", "steps.py", "x + 1\n", "x + 1  # one\n", NOTHING),
    Edit("blank line", "steps.py", "def trim", "\n\n\ndef trim", NOTHING),
    Edit("blank lines in a class", "models.py", "    def area", "\n\n    def area", NOTHING),
    Edit("docstring", "steps.py", '"""Trims."""', '"""Removes some."""', NOTHING),
    Edit("no docstring", "steps.py", '    """Trims."""\n', "", NOTHING),
    Edit("new docstring", "steps.py", "def clean(x):\n", 'def clean(x):\n    "One."\n', NOTHING),
    Edit("docstring of a class", "models.py", "class Shape:", 'class Shape:\n    "S."', NOTHING),
    Edit("docstring of a module", "steps.py", "def clean", '"""Steps."""\n\ndef clean', NOTHING),
    Edit(
        "version of a library",
        "site-packages/toolbox-1.2.dist-info/METADATA",
        "1.2",
        "1.3",
        {
            "with_library": "new: (toolbox 1.3)",
            "computed": "new: (toolbox 1.3)",
        },
    ),
    Edit("code of a library", "site-packages/toolbox.py", "2 * x", "x + x", NOTHING),
)
"""Also the table of what runs again: a task runs if its function is here."""


def write(folder: Path) -> None:
    """Writes the project."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def apply(edit: Edit, folder: Path) -> None:
    """Makes an edit; that of a version of a library also renames its folder."""
    path = folder / edit.file
    text = path.read_text()
    assert edit.before in text, edit.what
    path.write_text(text.replace(edit.before, edit.after))
    if edit.file.endswith("METADATA"):
        path.parent.rename(folder / "site-packages" / f"toolbox-{edit.after}.dist-info")
