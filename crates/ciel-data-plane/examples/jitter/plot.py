"""Plots the rows that ``jitter`` prints: seconds over bytes, a line for each mode and layout.

``jitter 67108864 1073741824 > rows; python plot.py rows picture.svg``
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def lines(rows: Path) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """The points (bytes, seconds) of each mode and number of stores, by size."""
    found: defaultdict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    with rows.open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            point = (int(row["bytes"]), float(row["seconds"]))
            found[row["mode"], row["stores"]].append(point)
    return {key: sorted(points) for key, points in found.items()}


def main() -> None:
    """Reads the rows, writes the picture."""
    rows, picture = map(Path, sys.argv[1:3])
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for (mode, stores), points in lines(rows).items():
        style = "-" if stores == "1" else "--"
        label = f"{mode}, {stores} store{'s' if stores != '1' else ''}"
        axes.plot(*zip(*points, strict=True), style, marker="o", label=label)
    axes.set(xlabel="bytes", ylabel="seconds", xscale="log", yscale="log")
    axes.legend(fontsize="small")
    figure.savefig(picture)


if __name__ == "__main__":
    main()
