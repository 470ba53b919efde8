"""Runs the compiled kernel on one block of the lattice.

Usage: block.py LEVELS FIRST COLUMNS HIGH LOW. Inputs: the kernel (a shared object); the block's
values at level HIGH, unless that is the last level; the column behind its last one, unless nothing
is there. Outputs: the values at level LOW, and the first column from HIGH to LOW + 1; all are
doubles as the machine has them. It does not know the formulas. Read next: lattice.c.
"""

import os
import sys
from ctypes import CDLL, Array, c_double, c_long
from pathlib import Path


def main() -> None:
    levels, first, columns, high, low = (int(word) for word in sys.argv[1:])
    kernel_file, *value_files = _listed("INPUT_FILES")
    kernel = CDLL(str(kernel_file))
    row = _doubles(columns, value_files.pop(0) if high < levels else None)
    right = _doubles(high - low, value_files.pop(0) if value_files else None)
    left = _doubles(high - low, None)
    if high == levels:
        kernel.payoff(row, *_longs(levels, first, columns))
    kernel.descend(row, right, left, *_longs(levels, first, columns, high, low))
    row_file, left_file = _listed("OUTPUT_FILES")
    row_file.write_bytes(bytes(row))
    left_file.write_bytes(bytes(left))


def _listed(variable: str) -> list[Path]:
    listing = Path(os.environ[variable]).read_text(encoding="utf-8")
    return [Path(line) for line in listing.splitlines()]


def _longs(*numbers: int) -> list[c_long]:
    return [c_long(number) for number in numbers]


def _doubles(count: int, file: Path | None) -> Array[c_double]:
    kind = c_double * count
    return kind() if file is None else kind.from_buffer_copy(file.read_bytes())


if __name__ == "__main__":
    main()
