"""The colours of a photograph, reduced by k-means until the centres stand still.

Usage: ciel run palette.py [picture] [colours] [output folder]

The same work as palette.sw in one Python program: the loop is a loop, the tasks are functions, and
what passes between them are values and arrays instead of files. Read next: colours.py.
"""

import os
from pathlib import Path
from typing import Any

import ciel
import paint as painting
import plot as plotting
from assign import sums_of
from colours import Pixels
from start import first_centres, number_of_blocks, number_of_colours, read_pixels
from update import Centre, Report, Sums, updated

STILL_LEVELS = 0.5
"""No eye tells colours apart that differ by less than half a level of 255."""

ROUNDS_MAX = 200


@ciel.task(outputs=3)
def start(picture: Path, colours: int) -> tuple[Pixels, list[list[int]], int]:
    """The pixels, the first centres, and into how many blocks the work is cut."""
    pixels = read_pixels(picture)
    return pixels, first_centres(pixels, colours), number_of_blocks(pixels)


@ciel.task
def assign(pixels: Pixels, centres: list[Centre], block: int, blocks: int) -> Sums:
    """What one block adds to its centres. The pixels are mapped, not copied, into each worker."""
    return sums_of(pixels, centres, block, blocks)


@ciel.task(outputs=3)
def update(
    centres: list[Centre], parts: list[Sums], number: int
) -> tuple[list[Centre], Report, str]:
    """The new centres, the report of the round, and the colours as lines."""
    return updated(centres, parts, number)


@ciel.task
def paint(pixels: Pixels, colour_lines: str) -> bytes:
    """The picture in its new colours."""
    return painting.painted(pixels, colour_lines)


@ciel.task
def plot(colour_lines: str, errors: list[float]) -> bytes:
    """The error of each round as a curve."""
    return plotting.plotted(colour_lines, errors)


@ciel.task(pure=False)
def deliver(data: bytes, folder: Path, name: str) -> str:
    """Puts bytes into the user's folder, whole or not at all; gives the path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    unfinished = folder / f".{name}.part"
    unfinished.write_bytes(data)
    os.replace(unfinished, target)
    return str(target)


def main(
    picture: str = "", colours: str = "16", folder: str = "palette-output"
) -> dict[str, Any]:
    """Works in rounds until no centre moves any more."""
    here = Path(__file__).parent
    source = Path(picture or here / "astronaut.png")
    pixels, centres, count = start.spawn(source, number_of_colours(colours))
    blocks = count.result()
    reports: list[Report] = []
    while True:
        cut = range(blocks)
        parts = [assign.spawn(pixels.later, centres.later, block, blocks).later for block in cut]
        centres, report, used = update.spawn(centres.later, parts, len(reports) + 1)
        reports.append(report.result())
        print(reports[-1]["line"])
        if reports[-1]["moved"] < STILL_LEVELS or len(reports) == ROUNDS_MAX:
            break
    # The colours of the last round, the most used one first.
    ranked = ciel.sh("sort -k1,1nr -k2,2 {used}", used=used).result().decode()
    errors = [report["error"] for report in reports]
    target = Path(folder)
    reduced = deliver.spawn(paint.spawn(pixels.later, ranked).later, target, "reduced.png")
    curve = deliver.spawn(plot.spawn(ranked, errors).later, target, "error.png")
    return {
        "rounds": len(reports),
        "error": errors[-1],
        "palette": ranked.split()[1::2],
        "picture": reduced.result(),
        "plot": curve.result(),
    }
