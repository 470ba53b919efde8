"""Reads a picture, chooses the first centres and says into how many blocks the work is cut.

Usage: start.py COLOURS. Input: a picture of any common format. Outputs: the pixels (.npy, one row
of red, green, blue each, in a shape of height × width × 3), the centres (JSON), the number of
blocks (JSON).
Each centre is the pixel that is farthest from those chosen before, which needs no random numbers.
Read next: assign.py.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from colours import FRACTIONS, Pixels, Whole
from exchange import input_files, output_files

BLOCK_PIXELS = 1 << 17
"""Pixels per block: enough that a task is worth the start of its process."""


def main() -> None:
    wanted = number_of_colours(sys.argv[1])
    [picture] = input_files()
    pixels = read_pixels(picture)
    pixel_file, centre_file, block_file = output_files()
    with pixel_file.open("wb") as stream:
        np.save(stream, pixels)
    centre_file.write_text(json.dumps(first_centres(pixels, wanted)))
    block_file.write_text(json.dumps(number_of_blocks(pixels)))


def number_of_blocks(pixels: Pixels) -> int:
    """Into how many blocks a picture is cut."""
    return -(-pixels.size // 3 // BLOCK_PIXELS)


def first_centres(pixels: Pixels, wanted: int) -> list[list[int]]:
    """As many colours of the picture, far apart, in 64ths of a level."""
    centres: list[list[int]] = _far_apart(pixels.reshape(-1, 3), wanted).tolist()
    return centres


def read_pixels(picture: Path) -> Pixels:
    """A picture of any common format as height × width × 3 levels."""
    try:
        with Image.open(picture) as image:
            return np.asarray(image.convert("RGB"))
    except UnidentifiedImageError:
        sys.exit("the picture is in none of the formats that Pillow reads")


def number_of_colours(word: str) -> int:
    """The number in a word of the command line, from 2 to 256."""
    if not word.isdecimal() or not 2 <= int(word) <= 256:
        sys.exit(f"the number of colours must be from 2 to 256, not {word!r}")
    return int(word)


def _far_apart(pixels: Pixels, wanted: int) -> Whole:
    levels = pixels.astype(np.int32)
    chosen = [levels[_distance(levels, levels.mean(axis=0).astype(np.int32)).argmax()]]
    gap = _distance(levels, chosen[0])
    while len(chosen) < wanted:
        if not gap.any():
            sys.exit(f"{wanted} colours are asked for; the picture has only {len(chosen)}")
        chosen.append(levels[gap.argmax()])
        gap = np.minimum(gap, _distance(levels, chosen[-1]))
    return np.stack(chosen) * FRACTIONS


def _distance(levels: Whole, centre: Whole) -> Whole:
    difference = levels - centre
    squares: Whole = np.einsum("ij,ij->i", difference, difference)
    return squares


if __name__ == "__main__":
    main()
