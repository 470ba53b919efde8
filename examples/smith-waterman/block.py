"""Fills one block of the table of scores.

Usage: block.py ROW COLUMN BLOCKS. Inputs: the two sequences; then, if ROW is not 0, the last row of
the block above; then, if COLUMN is not 0, the last column of the block to the left (.npy). Outputs:
this block's last row, with the value left of it in front; its last column (.npy); its best score
(JSON). Read next: smith-waterman.sw puts the blocks together.
"""

import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scores import GAP, MATCH, MISMATCH

Scores = NDArray[np.int64]


def main() -> None:
    row, column, blocks = (int(word) for word in sys.argv[1:])
    first_file, second_file, *edge_files = _listed("INPUT_FILES")
    down = _part(first_file.read_bytes(), row, blocks)
    across = _part(second_file.read_bytes(), column, blocks)
    edges = [np.load(file) for file in edge_files]
    above: Scores = edges.pop(0) if row > 0 else np.zeros(len(across) + 1, dtype=np.int64)
    left: Scores = edges.pop(0) if column > 0 else np.zeros(len(down), dtype=np.int64)
    table = _filled(down, across, above, left)
    row_file, column_file, best_file = _listed("OUTPUT_FILES")
    for file, values in ((row_file, table[-1]), (column_file, table[1:, -1])):
        with file.open("wb") as stream:
            np.save(stream, values)
    best_file.write_text(str(table.max()))


def _listed(variable: str) -> list[Path]:
    listing = Path(os.environ[variable]).read_text(encoding="utf-8")
    return [Path(line) for line in listing.splitlines()]


def _part(sequence: bytes, number: int, parts: int) -> NDArray[np.uint8]:
    begin, end = (len(sequence) * n // parts for n in (number, number + 1))
    return np.frombuffer(sequence[begin:end], dtype=np.uint8)


def _filled(
    down: NDArray[np.uint8], across: NDArray[np.uint8], above: Scores, left: Scores
) -> Scores:
    """The table with row `above` on top and column `left` at the side of all rows below it.

    A gap along the row makes each value depend on the one before; but max(t[i] - GAP * (j - i))
    over all i up to j is a running maximum of t[i] + GAP * i, which needs no loop.
    """
    table = np.empty((len(down) + 1, len(across) + 1), dtype=np.int64)
    table[0] = above
    slope = GAP * np.arange(len(across) + 1)
    for row, letter in enumerate(down):
        pair = np.where(across == letter, MATCH, MISMATCH)
        reached = np.maximum(table[row, :-1] + pair, table[row, 1:] - GAP)
        table[row + 1, 0] = left[row]
        table[row + 1, 1:] = np.maximum(reached, 0)
        table[row + 1] = np.maximum.accumulate(table[row + 1] + slope) - slope
    return table


if __name__ == "__main__":
    main()
