"""Paints the picture with the colours that were found.

Inputs: the pixels (.npy), the colours (a line `pixels #rrggbb` each). Output: a PNG with a palette,
in the order of the lines. Read next: colours.py.
"""

from io import BytesIO

import numpy as np
from PIL import Image

from colours import FRACTIONS, Pixels, nearest
from exchange import input_files, output_files


def main() -> None:
    pixel_file, colour_file = input_files()
    pixels: Pixels = np.load(pixel_file, mmap_mode="r")
    [output] = output_files()
    output.write_bytes(painted(pixels, colour_file.read_text()))


def painted(pixels: Pixels, colour_lines: str) -> bytes:
    """The picture as a PNG with a palette, in the order of the lines."""
    words = [line.split()[1] for line in colour_lines.splitlines()]
    palette = [list(bytes.fromhex(word[1:])) for word in words]
    centres = np.array(palette, dtype=np.int32) * FRACTIONS
    labels, _ = nearest(pixels.reshape(-1, 3), centres)
    image = Image.fromarray(labels.astype(np.uint8).reshape(pixels.shape[:2]), "P")
    image.putpalette([level for colour in palette for level in colour])
    stream = BytesIO()
    image.save(stream, format="PNG", optimize=True)
    return stream.getvalue()


if __name__ == "__main__":
    main()
