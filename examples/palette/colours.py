"""Distances between pixels and colours, in whole numbers.

Centres are kept in 64ths of a level and everything is counted in integers. That is why the answer
is the same however the picture is cut into blocks, in whatever order the blocks are done.
It does not know tasks or files. Read next: assign.py, paint.py.
"""

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Whole = NDArray[np.int32]

FRACTIONS = 64
"""Parts into which one of the 255 levels is divided."""

STRIP_PIXELS = 1 << 14
"""Pixels that are looked at together, so that the work stays in the processor's cache."""


def nearest(pixels: Pixels, centres: Whole) -> tuple[Whole, int]:
    """The number of the nearest centre for each pixel, and the sum of the squared distances.

    `pixels` has one row of red, green and blue in levels; `centres` likewise in 64ths of a level.
    The sum is in squared 64ths. Of two centres equally near, the first is taken.
    """
    labels = np.empty(len(pixels), dtype=np.int32)
    error = 0
    for begin in range(0, len(pixels), STRIP_PIXELS):
        strip = slice(begin, begin + STRIP_PIXELS)
        distances = _distances(pixels[strip], centres)
        labels[strip] = distances.argmin(axis=0)
        error += int(distances.min(axis=0).sum(dtype=np.int64))
    return labels, error


def _distances(pixels: Pixels, centres: Whole) -> Whole:
    channels = np.ascontiguousarray(pixels.T, dtype=np.int32) * FRACTIONS
    distances = np.zeros((len(centres), len(pixels)), dtype=np.int32)
    for channel, values in enumerate(channels):
        difference = values[np.newaxis, :] - centres[:, channel, np.newaxis]
        distances += difference * difference
    return distances
