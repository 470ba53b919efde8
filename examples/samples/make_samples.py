"""Makes sixty samples of forty bases each, always the same; the last one is damaged.

Usage: python3 make_samples.py FOLDER, or make_samples.py --repair FOLDER for a whole last sample.
"""

import random
import sys
from pathlib import Path

SAMPLES = 60
BASES = 40


def main(words: list[str]) -> None:
    """Writes the files of the samples whose content is another."""
    folder = Path(words[-1])
    folder.mkdir(exist_ok=True)
    for number in range(1, SAMPLES + 1):
        text = "".join(random.Random(number).choices("ACGT", k=BASES))
        if number == SAMPLES and "--repair" not in words:
            text = "?" + text[1:]
        path = folder / f"s{number:02}.txt"
        if not path.exists() or path.read_text() != text + "\n":
            path.write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
