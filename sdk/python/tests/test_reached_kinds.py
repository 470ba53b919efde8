"""The identity of code of all kinds: an edit of what a function reaches changes the identity of
that function, and an edit beside it does not.

Each row is a module with a function `f`, and two edits: one that counts and one that does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from test_reached import pieces_of

KINDS = {
    "cache": (
        "import functools\n\n\n@functools.lru_cache(maxsize=8)\ndef g(x):\n    return x + 1\n\n\n"
        "def f(x):\n    return g(x)\n",
        ("x + 1", "x + 2"),
        ("return x + 1\n", "# Adds.\n    return x + 1\n"),
    ),
    "method with a cache": (
        "import functools\n\n\nclass A:\n    @functools.cached_property\n    def g(self):\n"
        "        return 1\n\n\ndef f():\n    return A().g\n",
        ("return 1", "return 2"),
        ("class A:", "class A:\n    # A class.\n"),
    ),
    "partial of a partial": (
        "from functools import partial\n\n\ndef g(x, y, z):\n    return x + y + z\n\n\n"
        "h = partial(partial(g, 1), 2)\n\n\ndef f(x):\n    return h(x)\n",
        ("x + y + z", "x + y - z"),
        ("h = partial", "other = 1\nh = partial"),
    ),
    "method of a data class": (
        "from dataclasses import dataclass, field\n\n\n@dataclass(frozen=True, slots=True)\n"
        "class A:\n    x: int = 1\n    y: list = field(default_factory=list)\n\n"
        "    def g(self):\n        return self.x\n\n\ndef f():\n    return A().g()\n",
        ("return self.x", "return -self.x"),
        ("class A:", "class A:\n    # A class.\n"),
    ),
    "options of a data class": (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass A:\n    x: int\n\n\n"
        "def f():\n    return A(1) == A(1)\n",
        ("@dataclass\n", "@dataclass(eq=False)\n"),
        ("class A:", "class A:\n    # A class.\n"),
    ),
    "slots": (
        'class A:\n    __slots__ = ("x",)\n\n\ndef f():\n    return A()\n',
        ('("x",)', '("x", "y")'),
        ("\n\n\ndef f", "\n\n\n\ndef f"),
    ),
    "coroutine": (
        "import asyncio\n\n\nasync def g(x):\n    await asyncio.sleep(0)\n    return x + 1\n\n\n"
        "def f(x):\n    return asyncio.run(g(x))\n",
        ("x + 1", "x + 2"),
        ("async def g(x):", "# Waits.\nasync def g(x):"),
    ),
    "setter of a property": (
        "class A:\n    y = 0\n\n    @property\n    def x(self):\n"
        "        return self.y\n\n    @x.setter\n    def x(self, value):\n"
        "        self.y = value\n\n\n"
        "def f():\n    a = A()\n    a.x = 1\n    return a.x\n",
        ("self.y = value", "self.y = value + 1"),
        ("    @property", "    # Read.\n    @property"),
    ),
    "decorator of a class": (
        "def named(cls):\n    cls.label = 'a'\n    return cls\n\n\n@named\nclass A:\n    pass\n\n\n"
        "def f():\n    return A.label\n",
        ("'a'", "'b'"),
        ("@named", "# A class.\n@named"),
    ),
    "static and class methods": (
        "class A:\n    @staticmethod\n    def g():\n        return 1\n\n    @classmethod\n"
        "    def h(cls):\n        return cls.g()\n\n\ndef f():\n    return A.h()\n",
        ("return 1", "return 2"),
        ("    @classmethod", "\n    @classmethod"),
    ),
    "nested function": (
        "def g(x):\n    return x\n\n\ndef f(x):\n    def inner(y):\n"
        "        return [g(z) for z in y]\n\n    return inner(x)\n",
        ("return x\n", "return -x\n"),
        ("    def inner", "    # Inside.\n    def inner"),
    ),
    "comprehension": (
        "A = 3\n\n\ndef f(x):\n    return {y: (z for z in range(A)) for y in x if y}\n",
        ("A = 3", "A = 4"),
        ("A = 3", "A = 3\nB = 4"),
    ),
}


def identity(folder: Path, text: str) -> list[tuple[str, str]]:
    """Names and digests of what `f` of a module with that text reaches."""
    text = text.replace("def f(", "@ciel.task\ndef f(")
    (folder / "pipeline.py").write_text(f"import ciel\n{text}")
    return [(name, digest) for _, name, digest in pieces_of(folder, "f")["f"]]


@pytest.mark.parametrize("kind", KINDS)
def test_edit_of_what_is_reached_counts_and_one_beside_it_does_not(
    kind: str, tmp_path: Path
) -> None:
    text, (before, after), beside = KINDS[kind]
    assert before in text
    assert beside[0] in text
    found = identity(tmp_path, text)
    assert identity(tmp_path, text.replace(before, after, 1)) != found
    assert identity(tmp_path, text.replace(*beside)) == found
