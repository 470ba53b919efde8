"""Versions of what a program uses and does not contain: Python itself, and installed packages.

The version of a package is in the name of its folder of metadata. Reading all metadata takes tens
of milliseconds, so that is done only for a module whose package has another name. It knows no
functions. Read next: `_reached.py`, `_project.py`.
"""

from __future__ import annotations

import functools
import os
import re
import sys

_FOLDER = re.compile(r"(.+?)-([^-]+)\.(?:dist-info|egg-info)$")


@functools.cache
def version_of(module: str) -> tuple[str, str]:
    """Name and version of what a module, by its first name, is installed with.

    The version of Python has two numbers: a correction changes no result. A package without
    metadata has its `__version__`, or none.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top in ("ciel", ""):
        return "python", "%d.%d" % sys.version_info[:2]
    found = _versions().get(_plain(top))
    if found is not None:
        return top, found
    for package in _packages().get(top, ()):
        found = _versions().get(_plain(package))
        if found is not None:
            return package, found
    return top, str(getattr(sys.modules.get(top), "__version__", ""))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


@functools.cache
def _versions() -> dict[str, str]:
    """The versions of installed packages, by their plain names; the first on the path counts."""
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            match = _FOLDER.match(name)
            if match is not None:
                found.setdefault(_plain(match[1]), match[2])
    return found


@functools.cache
def _packages() -> dict[str, list[str]]:
    import importlib.metadata  # tens of milliseconds

    return {name: [*names] for name, names in importlib.metadata.packages_distributions().items()}
