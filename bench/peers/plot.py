"""Draws the figures of a comparison: for each workload, what a task costs in each system.

Usage: python plot.py FIGURES.json PICTURE.svg

Bars are medians, on a logarithmic axis, with the least and the greatest figure; limits of the
machine are grey. Run it with the peers' Python, which has matplotlib.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

LIMITS = {"MPI", "rayon", "OpenMP", "posix_spawn"}
OURS, OTHERS, LIMIT = "#c4451c", "#4c6a92", "#b5b5b5"


def colour(name: str) -> str:
    """Ours, a peer's, or that of a limit."""
    return OURS if name == "Ciel" else LIMIT if name in LIMITS else OTHERS


def draw(axis: Any, row: dict[str, Any]) -> None:
    """One workload: a bar for each system, the best at the top."""
    figures: dict[str, list[float]] = row["figures"]
    order = sorted(figures, key=lambda name: statistics.median(figures[name]))
    if not row["more_is_better"]:
        order.reverse()
    medians = [statistics.median(figures[name]) for name in order]
    ranges = [
        [median - min(figures[name]) for name, median in zip(order, medians, strict=True)],
        [max(figures[name]) - median for name, median in zip(order, medians, strict=True)],
    ]
    bars = axis.barh(order, medians, xerr=ranges, color=[colour(name) for name in order])
    labels = [f"{median:,.0f}" if median >= 1_000 else f"{median:.3g}" for median in medians]
    axis.bar_label(bars, labels, padding=6, fontsize=7)
    axis.set_xscale("log")
    axis.margins(x=0.25)
    better = "more is better" if row["more_is_better"] else "less is better"
    axis.set_title(f"{row['title']}\n{row['unit']}, {better}", fontsize=8)
    axis.tick_params(labelsize=7)


def main() -> None:
    """Draws two columns of workloads."""
    source, target = sys.argv[1:3]
    with open(source, encoding="utf-8") as file:
        found = json.load(file)
    rows = [row for row in found["rows"] if row["figures"]]
    height = (len(rows) + 1) // 2
    figure, axes = plt.subplots(height, 2, figsize=(11, 2.3 * height), squeeze=False)
    for axis in axes.flat[len(rows) :]:
        axis.set_visible(False)
    for axis, row in zip(axes.flat, rows, strict=False):
        draw(axis, row)
    told = found["machine"]
    figure.suptitle(
        f"{told['cores']} cores, {told['processor']}, commit {told['commit']}, {told['date']}",
        fontsize=9,
    )
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    plt.rcParams["svg.hashsalt"] = "ciel"
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
