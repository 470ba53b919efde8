"""Makes two related sequences of the letters A, C, G and T; the same ones each time.

Usage: sequences.py LENGTH, as an environ task with two outputs. The second sequence is the first
one with some letters changed, left out or put in. It does not know how they are compared. Read
next: block.py.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

LETTERS = "ACGT"


def make(length: int) -> tuple[str, str]:
    """Two sequences, the first of `length` letters."""
    numbers = _numbers()
    first = "".join(LETTERS[next(numbers) % 4] for _ in range(length))
    return first, "".join(_changed(letter, numbers) for letter in first)


def _changed(letter: str, numbers: Iterator[int]) -> str:
    """A letter as it is (80 %), another (10 %), none (5 %), or with one more behind it (5 %)."""
    chance, other = next(numbers) % 100, LETTERS[next(numbers) % 4]
    if chance < 80:
        return letter
    if chance < 90:
        return other
    return "" if chance < 95 else letter + other


def _numbers() -> Iterator[int]:
    """A linear congruential generator (Knuth's multiplier), its upper bits."""
    state = 20110330
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield state >> 33


def main() -> None:
    outputs = Path(os.environ["OUTPUT_FILES"]).read_text(encoding="utf-8").splitlines()
    for output, sequence in zip(outputs, make(int(sys.argv[1])), strict=True):
        Path(output).write_text(sequence)


if __name__ == "__main__":
    main()
