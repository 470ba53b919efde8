"""Moves every centre to the mean of its pixels.

Usage: update.py ROUND. Inputs: the centres (JSON) and the sums of each block (JSON). Outputs: the
new centres (JSON), a report of the round (JSON: error, moved, and both as a line for people), and
the colours (a line `pixels #rrggbb` each). Centres are in 64ths of a level, as colours.py has it;
this program stays without numpy because it starts sooner so. Read next: palette.sw.
"""

import json
import sys
from typing import TypedDict

from exchange import input_files, output_files

FRACTIONS = 64
"""Parts into which one of the 255 levels is divided."""

Centre = list[int]


class Sums(TypedDict):
    """What assign.py found in a block, by centre."""

    totals: list[Centre]
    counts: list[int]
    error: int


class Report(TypedDict):
    """How a round went; `error` is the mean squared distance of a pixel from its centre, in
    squared levels, `moved` the farthest move of a centre in levels, `line` both for people."""

    error: float
    moved: float
    line: str


def main() -> None:
    centre_file, *sum_files = input_files()
    centres: list[Centre] = json.loads(centre_file.read_text())
    parts: list[Sums] = [json.loads(file.read_text()) for file in sum_files]
    moved, report, lines = updated(centres, parts, int(sys.argv[1]))
    new_file, report_file, colour_file = output_files()
    new_file.write_text(json.dumps(moved))
    report_file.write_text(json.dumps(report))
    colour_file.write_text(lines)


def updated(
    centres: list[Centre], parts: list[Sums], number: int
) -> tuple[list[Centre], Report, str]:
    """The new centres, the report of round `number`, and the colours as lines."""
    sums = _added(parts)
    moved = [_mean(*each) for each in zip(centres, sums["totals"], sums["counts"], strict=True)]
    report = _report(number, sums, _farthest_move(centres, moved))
    return moved, report, _colour_lines(moved, sums["counts"])


def _added(parts: list[Sums]) -> Sums:
    return {
        "totals": [
            [sum(levels) for levels in zip(*rows, strict=True)]
            for rows in zip(*(part["totals"] for part in parts), strict=True)
        ],
        "counts": [sum(each) for each in zip(*(part["counts"] for part in parts), strict=True)],
        "error": sum(part["error"] for part in parts),
    }


def _mean(centre: Centre, totals: Centre, count: int) -> Centre:
    """The mean rounded to the nearest 64th; a centre without near points stays."""
    if count == 0:
        return centre
    return [(2 * FRACTIONS * total + count) // (2 * count) for total in totals]


def _farthest_move(before: list[Centre], after: list[Centre]) -> float:
    """The greatest change of any channel of any centre, in levels."""
    pairs = zip(before, after, strict=True)
    return max(abs(a - b) for old, new in pairs for a, b in zip(old, new, strict=True)) / FRACTIONS


def _report(number: int, sums: Sums, moved: float) -> Report:
    error = sums["error"] / FRACTIONS**2 / sum(sums["counts"])
    line = f"round {number:2}  error {error:7.1f}  moved {moved:6.2f}"
    return {"error": round(error, 3), "moved": moved, "line": line}


def _colour_lines(centres: list[Centre], counts: list[int]) -> str:
    lines = []
    for centre, count in zip(centres, counts, strict=True):
        red, green, blue = ((value + FRACTIONS // 2) // FRACTIONS for value in centre)
        lines.append(f"{count} #{red:02x}{green:02x}{blue:02x}\n")
    return "".join(lines)


if __name__ == "__main__":
    main()
