"""The files of an environ task.

It knows how a task finds its files, and nothing about pictures. Read next: start.py.
"""

import os
from pathlib import Path


def input_files() -> list[Path]:
    """The files to read, in the order in which the driver names them."""
    return _listed("INPUT_FILES")


def output_files() -> list[Path]:
    """The files to write, in the order of the references that the driver got."""
    return _listed("OUTPUT_FILES")


def _listed(variable: str) -> list[Path]:
    listing = Path(os.environ[variable]).read_text(encoding="utf-8")
    return [Path(line) for line in listing.splitlines()]
