"""Which modules are the program's own: not those of Python, nor of an installed package.

It looks at the paths of their files. Read next: `_globals.py`.
"""

from __future__ import annotations

import functools
import os
import types


@functools.cache
def _foreign() -> tuple[str, ...]:
    """Folders of Python, of installed packages, and of this package."""
    import sysconfig  # it reads all that the interpreter was built with

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = [sysconfig.get_path(name) for name in names]
    return tuple(path + os.sep for path in [*paths, os.path.dirname(os.path.abspath(__file__))])


def is_project(module: types.ModuleType | None) -> bool:
    """Whether a module belongs to the program: not to Python, nor to an installed package."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not os.path.abspath(file).startswith(_foreign())
