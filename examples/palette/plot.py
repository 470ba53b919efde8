"""Draws the error of each round as a curve, above the palette that came of it.

Inputs: the colours (a line `pixels #rrggbb` each), then the report of each round (JSON). Output: a
PNG of 1280 × 720. It is drawn twice as large and then made smaller, which smooths the edges.
Read next: update.py.
"""

import json
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from exchange import input_files, output_files

WIDTH, HEIGHT = 2560, 1440
LEFT, RIGHT, TOP, BOTTOM = 230, 2440, 330, 1040
INK, FAINT, GRID, CURVE, PAPER = "#22262b", "#6b737d", "#e4e7eb", "#d1495b", "#ffffff"

Point = tuple[float, float]


@dataclass(frozen=True)
class Swatch:
    """A colour and the number of pixels that have it."""

    colour: str
    pixels: int


def main() -> None:
    colour_file, *report_files = input_files()
    errors = [float(json.loads(file.read_text())["error"]) for file in report_files]
    [output] = output_files()
    output.write_bytes(plotted(colour_file.read_text(), errors))


def plotted(colour_lines: str, errors: list[float]) -> bytes:
    """The curve and the palette as a PNG."""
    swatches = _swatches(colour_lines)
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(image)
    _draw_titles(draw, len(swatches), errors)
    largest = max(1.0, *errors)
    step = _step(largest)
    top = step * (int(largest / step) + 1)
    _draw_grid(draw, step, top)
    _draw_curve(draw, errors, top)
    _draw_swatches(draw, swatches)
    small = image.resize((WIDTH // 2, HEIGHT // 2), Image.Resampling.LANCZOS)
    stream = BytesIO()
    small.save(stream, format="PNG", optimize=True)
    return stream.getvalue()


def _swatches(lines: str) -> list[Swatch]:
    pairs = [line.split() for line in lines.splitlines()]
    return [Swatch(colour, int(pixels)) for pixels, colour in pairs]


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _step(largest: float) -> float:
    """The distance of grid lines for errors up to `largest`, at least 1: at most six of them."""
    power = 1.0
    while power * 10 <= largest:
        power *= 10
    return next(s for s in (power / 5, power / 2, power, 2 * power) if largest / s <= 6)


def _draw_titles(draw: ImageDraw.ImageDraw, colours: int, errors: list[float]) -> None:
    rounds = "1 round" if len(errors) == 1 else f"{len(errors)} rounds"
    draw.text((LEFT, 70), f"{colours} colours in {rounds}", INK, _font(96))
    below = "Mean squared distance of a pixel from its colour, in each round of k-means"
    draw.text((LEFT, 200), below, FAINT, _font(48))


def _draw_grid(draw: ImageDraw.ImageDraw, step: float, top: float) -> None:
    for number in range(round(top / step) + 1):
        y = _height(number * step, top)
        draw.line([(LEFT, y), (RIGHT, y)], GRID if number else FAINT, 4)
        draw.text((LEFT - 32, y), f"{number * step:g}", FAINT, _font(44), anchor="rm")


def _height(error: float, top: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * error / top


def _draw_curve(draw: ImageDraw.ImageDraw, errors: list[float], top: float) -> None:
    inset, gaps = 60, max(1, len(errors) - 1)
    across = [LEFT + inset + (RIGHT - LEFT - 2 * inset) * i / gaps for i in range(len(errors))]
    points = [(x, _height(error, top)) for x, error in zip(across, errors, strict=True)]
    draw.line(points, CURVE, 10, joint="curve")
    every = -(-len(errors) // 25)
    for number, (x, y) in enumerate(points, 1):
        draw.ellipse([(x - 15, y - 15), (x + 15, y + 15)], CURVE, PAPER, 5)
        if number == 1 or number % every == 0:
            draw.text((x, BOTTOM + 28), str(number), FAINT, _font(44), anchor="mt")
    for number in sorted({0, len(points) - 1}):
        x, y = points[number]
        draw.text((x, y - 34), f"{errors[number]:.0f}", INK, _font(52), anchor="mb")


def _draw_swatches(draw: ImageDraw.ImageDraw, swatches: list[Swatch]) -> None:
    """A bar in which each colour has the part of the width that it has of the picture."""
    draw.text((LEFT, 1160), "The palette, by share of the picture", FAINT, _font(48))
    total = sum(swatch.pixels for swatch in swatches)
    before = 0
    for swatch in swatches:
        left = LEFT + (RIGHT - LEFT) * before // total
        before += swatch.pixels
        right = LEFT + (RIGHT - LEFT) * before // total
        if right > left:
            draw.rectangle([(left, 1244), (right - 1, 1364)], swatch.colour)


if __name__ == "__main__":
    main()
