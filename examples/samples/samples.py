"""Counts the letters of sixty samples, calls those that are frequent, and joins all calls.

Usage: ciel run samples.py [folder]

The folder is made by make_samples.py; its last sample is damaged at first.
"""

from pathlib import Path

import ciel

FREQUENT = 12
"""How often a letter occurs in a sample at least to be called."""

COUNT = "fold -w1 < {reads} | LC_ALL=C sort | uniq -c"

COUNTING = ciel.Options(name="count")


@ciel.task
def call(sample: str, counts: bytes) -> str:
    """The letters that are frequent in a sample. Raises ValueError if it is damaged."""
    letters = ""
    for line in counts.decode().splitlines():
        count, letter = line.split()
        if letter not in "ACGT":
            raise ValueError(f"{sample}: {letter!r} is no base")
        if int(count) >= FREQUENT:
            letters += letter
    return letters


@ciel.task
def join(names: list[str], calls: list[str]) -> dict[str, int]:
    """How many samples there are of each call."""
    found = dict.fromkeys(sorted(calls), 0)
    for _, letters in zip(names, calls, strict=True):
        found[letters] += 1
    return found


def main(folder: str = "data") -> dict[str, int]:
    """Gives how many samples there are of each call."""
    samples = sorted(Path(folder).glob("*.txt"))
    names = [sample.stem for sample in samples]
    counts = [ciel.sh(COUNT, reads=sample, options=COUNTING) for sample in samples]
    calls = [call.spawn(name, one.later) for name, one in zip(names, counts, strict=True)]
    return join.spawn(names, [one.later for one in calls]).result()
