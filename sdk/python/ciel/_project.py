"""Which modules are the program's own: not those of Python, nor of an installed package.

It looks at the paths of their files. Read next: `_globals.py`.
"""

from __future__ import annotations

import functools
import os
import types


FILES_MAX = 4096
"""Files of which is kept whether they are the program's own."""

_PACKAGES = ("site-packages", "dist-packages")


@functools.cache
def _foreign() -> tuple[str, ...]:
    """Folders of Python, of installed packages, and of this package."""
    import sysconfig  # it reads all that the interpreter was built with

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = [sysconfig.get_path(name) for name in names]
    return tuple(path + os.sep for path in [*paths, os.path.dirname(os.path.abspath(__file__))])


@functools.lru_cache(maxsize=FILES_MAX)
def is_project_file(path: str) -> bool:
    """Whether a file belongs to the program: not to Python, nor to an installed package."""
    path = os.path.abspath(path)
    if is_package_file(path) or path.startswith(f"{os.sep}<frozen"):
        return False
    return not path.startswith(_foreign())


def is_package_file(path: str) -> bool:
    """Whether a file is in a folder of installed packages, as Python and distributors name it."""
    return any(f"{os.sep}{folder}{os.sep}" in path for folder in _PACKAGES)


def is_project(module: types.ModuleType | None) -> bool:
    """Whether a module belongs to the program: not to Python, nor to an installed package."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_project_file(file)
