"""A project as a stranger writes it: a package with all kinds of Python, and tasks that use them.

`FILES` are its files; each number of them can be edited by itself. It knows nothing of how
identities are computed. Read next: `test_strangers_project.py`.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from strangers_job import JOB

FILES = {
    "shop/__init__.py": '''"""What the shop sells."""

from .models import *
from .prices import net as net_price
from .prices import with_tax

__all__ = ["net_price", "with_tax"]


def __getattr__(name):
    if name == "lazy_rate":
        return 17
    raise AttributeError(name)
''',
    "shop/prices.py": """import contextlib
import functools
import operator

from . import rates


def net(x):
    return x + 11


def with_tax(x):
    return net(x) * rates.TAX


def counted(function):
    @functools.wraps(function)
    def call(*args):
        call.count += 1
        return function(*args) + call.step

    call.count = 0
    call.step = 13
    return call


@counted
def rounded(x):
    return x // 3


@functools.lru_cache(maxsize=None)
def squared(x):
    return x * x + 19


@functools.singledispatch
def shown(x):
    return 23


@shown.register(int)
def _(x):
    return x + 29


@shown.register(str)
def _(x):
    return x + "text"


@contextlib.contextmanager
def offset():
    yield 31


first = operator.itemgetter(1)
discounts = {"few": lambda x: x - 37, "many": lambda x: x - 41}


def tuned(x):
    return x + tuned.bias


tuned.bias = 43


class Basket:
    size = 47

    @functools.cached_property
    def total(self):
        return self.size + 53

    by_two = functools.partialmethod(lambda self, a, b: a * b + 59, 2)
""",
    "shop/rates.py": "import json\nimport os\n\nTAX = 61\n"
    'with open(os.path.join(os.path.dirname(__file__), "rates.json")) as file:\n'
    "    LOADED = json.load(file)\n",
    "shop/rates.json": '{"base": 67}\n',
    "shop/models.py": '''import abc
import collections
import dataclasses
import enum
import typing

__all__ = ["Point", "Order", "Level", "Flags", "Slotted", "Registered", "Checked", "Row", "Animal"]


class Point:
    def __init__(self, x):
        self.x = x


Point.ORIGIN = Point(71)


def fresh():
    return [73]


@dataclasses.dataclass
class Order:
    lines: list = dataclasses.field(default_factory=fresh)
    level: int = 79

    def __post_init__(self):
        self.level += 83


class Level(enum.IntEnum):
    LOW = 89

    def doubled(self):
        return self.value * 2 + 97


class Flags(enum.Flag):
    A = 1
    B = enum.auto()


class Slotted:
    __slots__ = ("x",)

    def __init__(self):
        self.x = 101


class Meta(type):
    def __call__(cls):
        return super().__call__() or 0

    def __len__(cls):
        return 103


class Registered(metaclass=Meta):
    known = {}

    def __init_subclass__(cls, weight=107):
        Registered.known[cls.__name__] = weight


class Child(Registered, weight=109):
    pass


class Positive:
    def __init__(self, limit):
        self.limit = limit

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, found, owner):
        return getattr(found, self.name) + self.limit if found else self

    def __set__(self, found, value):
        setattr(found, self.name, value + 113)


class Checked:
    x = Positive(127)


class Row(typing.NamedTuple):
    a: int
    b: int = 131


class Animal(abc.ABC):
    @abc.abstractmethod
    def sound(self): ...

    def loud(self):
        return self.sound() + 137


class Sounds(typing.Protocol):
    def sound(self) -> int: ...


class Dog(Animal):
    def sound(self):
        return 139


Pair = collections.namedtuple("Pair", "a b", defaults=(149,))
''',
    "shop/tools/__init__.py": "from .deep import dig\n",
    "shop/tools/deep.py": """import asyncio

from .. import prices
from ..rates import TAX


def dig(x):
    return prices.net(x) + TAX + 151


async def later(x):
    await asyncio.sleep(0)
    return x + 157


async def many(x):
    for n in range(3):
        yield n + x + 163


def numbers(x):
    yield x
    yield from (n * 167 for n in range(x))


def counter():
    count = 173

    def add(x):
        nonlocal count
        count += x
        return count

    return add


def adder(by):
    return lambda x: x + by


def picker(get):
    def pick(x):
        return get(x)

    return pick
""",
    "shop/plugins/__init__.py": """import importlib

STEPS = {}
CALLABLES = {}


def step(name):
    def register(function):
        STEPS[name] = function
        return function

    return register


for name in ("red", "blue"):
    importlib.import_module(f"{__name__}.{name}")
""",
    "shop/plugins/red.py": "import operator\n\nfrom . import CALLABLES, step\n\n\n"
    '@step("red")\ndef red(x):\n    return x + 179\n\n\n'
    'CALLABLES["pick"] = operator.itemgetter(2)\n',
    "shop/plugins/blue.py": 'from . import step\n\n\n@step("blue")\ndef blue(x):\n'
    "    return x + 181\n",
    "shop/late/__init__.py": "",
    "shop/late/green.py": "from .base import SHADE\n\n\ndef run(x):\n    return x + 191 + SHADE\n",
    "shop/late/base.py": "SHADE = 193\n",
    "shop/optional.py": """import sys

try:
    import nowhere_to_be_found as fast
except ImportError:
    from . import slow as fast

if sys.platform == "no such platform":
    VALUE = 1
else:
    VALUE = 197


def optional(x):
    return fast.work(x) + VALUE
""",
    "shop/slow.py": "def work(x):\n    return x + 199\n",
    "shop/late_child.py": "from .models import Animal\n\n\nclass Cat(Animal):\n"
    "    def sound(self):\n        return 211\n\n\n"
    "class Bird(Animal):\n    def sound(self):\n        return 223\n",
    "spaces/part.py": "def part(x):\n    return x + 227\n",
    "beside/editable.py": "def beside(x):\n    return x + 229\n",
    "job.py": JOB,
    "modules.zip": "def inside(x):\n    return x + 367\n",
}

def write(folder: Path, files: dict[str, str]) -> None:
    """Writes the files of the project; a module of it is inside a zip file."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("zipped.py", text)
        else:
            path.write_text(text)


def edits() -> Iterator[tuple[str, dict[str, str]]]:
    """The place of each number, and the files in which it is the next larger one."""
    for name, text in FILES.items():
        for found in re.finditer(r"\b\d+\b", text):
            line = text.count("\n", 0, found.start()) + 1
            after = f"{text[: found.start()]}{int(found[0]) + 1}{text[found.end() :]}"
            yield f"{name}:{line} {found[0]}", {**FILES, name: after}
