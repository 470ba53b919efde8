"""Finds the nearest centre for every pixel of one block, and adds the pixels up by centre.

Usage: assign.py BLOCK BLOCKS. Inputs: the pixels (.npy), the centres (JSON). Output: the sums
(JSON), which update.py adds up over all blocks. Read next: update.py.
"""

import json
import sys

import numpy as np

from colours import Pixels, nearest
from exchange import input_files, output_files
from update import Centre, Sums


def main() -> None:
    block, blocks = int(sys.argv[1]), int(sys.argv[2])
    pixel_file, centre_file = input_files()
    pixels: Pixels = np.load(pixel_file, mmap_mode="r")
    centres: list[Centre] = json.loads(centre_file.read_text())
    [output] = output_files()
    output.write_text(json.dumps(sums_of(pixels, centres, block, blocks)))


def sums_of(pixels: Pixels, centre_levels: list[Centre], block: int, blocks: int) -> Sums:
    """The sums of one of `blocks` equal parts of the picture, by centre."""
    pixels = pixels.reshape(-1, 3)
    part = pixels[len(pixels) * block // blocks : len(pixels) * (block + 1) // blocks]
    centres = np.array(centre_levels, dtype=np.int32)
    labels, error = nearest(part, centres)
    # Sums of levels stay far below 2**53, where floating point still counts exactly.
    totals = [np.bincount(labels, part[:, channel], len(centres)) for channel in range(3)]
    return {
        "totals": np.stack(totals, axis=1).astype(np.int64).tolist(),
        "counts": np.bincount(labels, minlength=len(centres)).tolist(),
        "error": error,
    }


if __name__ == "__main__":
    main()
