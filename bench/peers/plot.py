"""Draws the figures of a comparison: for each workload, what a task costs in each system.

Usage: python plot.py FIGURES.json PICTURE.svg GRAINS.svg

The first picture has bars: medians, on a logarithmic axis, with the least and the greatest figure;
limits of the machine are grey. The second has lines: how much of the cores each system uses for
tasks of several lengths. A picture without figures is not written. Run it with the peers' Python,
which has matplotlib.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

import matplotlib

from systems import GRAINS, SHAPES

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


def draw_bars(rows: list[dict[str, Any]], machine: dict[str, str], target: str) -> None:
    """Two columns of workloads."""
    height = (len(rows) + 1) // 2
    figure, axes = plt.subplots(height, 2, figsize=(11, 2.3 * height), squeeze=False)
    for axis in axes.flat[len(rows) :]:
        axis.set_visible(False)
    for axis, row in zip(axes.flat, rows, strict=False):
        draw(axis, row)
    save(figure, machine, target, 0.98)


def draw_lines(axis: Any, shape: str, rows: list[dict[str, Any]], known: list[str]) -> None:
    """One shape of work: a line for each system, over the length of a task.

    The place of a system among the `known` ones gives its colour.
    """
    for name in names_in(rows):
        points = [
            (GRAINS[row["workload"].partition("-")[2]], statistics.median(row["figures"][name]))
            for row in rows
            if name in row["figures"]
        ]
        line = (OURS, 2.5) if name == "Ciel" else (f"C{known.index(name)}", 1.2)
        x, y = zip(*points, strict=True)
        axis.plot(x, y, "o-", label=name, color=line[0], linewidth=line[1], markersize=4)
    axis.set_xscale("log")
    axis.set_ylim(0, 1.05)
    axis.set_title(SHAPES[shape], fontsize=9)
    axis.set_xlabel("work in a task", fontsize=8)
    axis.set_ylabel("work done in the time of all cores", fontsize=8)
    axis.set_xticks(list(GRAINS.values()), [grain.replace("us", "µs") for grain in GRAINS])
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7)


def names_in(rows: list[dict[str, Any]]) -> list[str]:
    """The systems that have figures."""
    return list(dict.fromkeys(name for row in rows for name in row["figures"]))


def draw_grains(rows: list[dict[str, Any]], machine: dict[str, str], target: str) -> None:
    """One axis for each shape of work."""
    figure, axes = plt.subplots(1, len(SHAPES), figsize=(4.5 * len(SHAPES), 4))
    for axis, shape in zip(axes, SHAPES, strict=True):
        mine = [row for row in rows if row["workload"].startswith(shape)]
        draw_lines(axis, shape, mine, names_in(rows))
    save(figure, machine, target, 0.95)


def save(figure: Any, machine: dict[str, str], target: str, top: float) -> None:
    """Writes a picture, below a line about the machine."""
    told = "{cores} cores, {processor}, commit {commit}, {date}".format_map(machine)
    figure.suptitle(told, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, top))
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    """Draws both pictures."""
    source, bars, grains = sys.argv[1:4]
    with open(source, encoding="utf-8") as file:
        found = json.load(file)
    plt.rcParams["svg.hashsalt"] = "ciel"
    plt.rcParams["svg.fonttype"] = "none"
    rows = [row for row in found["rows"] if row["figures"]]
    of_grains = [row for row in rows if row["workload"].partition("-")[2] in GRAINS]
    others = [row for row in rows if row not in of_grains]
    if others:
        draw_bars(others, found["machine"], bars)
    if of_grains:
        draw_grains(of_grains, found["machine"], grains)


if __name__ == "__main__":
    main()
