"""The same score by the plain double loop, for comparison. It knows neither tasks nor blocks.

Usage: plain.py LENGTH; prints the score. Read next: block.py.
"""

import sys

from scores import GAP, MATCH, MISMATCH
from sequences import make


def best_score(first: str, second: str) -> int:
    """The highest score of any local alignment of the two."""
    best = 0
    above = [0] * (len(second) + 1)
    for letter in first:
        row = [0]
        for column, other in enumerate(second):
            pair = above[column] + (MATCH if letter == other else MISMATCH)
            row.append(max(0, pair, above[column + 1] - GAP, row[column] - GAP))
        best = max(best, max(row))
        above = row
    return best


if __name__ == "__main__":
    print(best_score(*make(int(sys.argv[1]))))
