"""Hits of joblib.Memory: the same calls as those of `jobs.py squared`, one after the other.

Usage: python3 with_joblib.py FOLDER COUNT
Prints the sum and the seconds, as JSON, and the version of joblib.
"""

import json
import sys
import time

import joblib


def squared(number: int) -> int:
    """The function whose results are kept."""
    return number * number


def main() -> None:
    """Calls it COUNT times."""
    folder, count = sys.argv[1], int(sys.argv[2])
    kept = joblib.Memory(folder, verbose=0).cache(squared)
    began = time.perf_counter()
    total = sum(kept(number) for number in range(count))
    seconds = time.perf_counter() - began
    found = {"total": total, "seconds": seconds}
    print(json.dumps({**found, "version": joblib.__version__}))


if __name__ == "__main__":
    main()
