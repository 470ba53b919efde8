"""Predicts how jobs grow with cores, and compares the prediction with real runs of sleeping tasks.

Measures what a task, a wait and a call cost (`jobs.py`), has the production engine run in virtual
time with these costs (`cargo run --example growth -p ciel-sim`), and prints tables in Markdown.
With --picture it also draws the efficiency over the length of a task, if matplotlib is there.
Read next: README.md of `bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

JOBS = Path(__file__).with_name("jobs.py")
MODEL = Path("target/release/examples/growth")

SHAPES = ("flat", "halves")
CORES = (4, 16, 64, 128)
GRAINS_NS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)

# Work for each core in a prediction, and the most tasks for each.
WORK_NS = 1_000_000_000
TASKS_MAX = 2_000

# Calibration: slots whose tasks sleep, and tasks for each.
SLOTS = (16, 64)
SLEEP_NS = 10_000_000
SLEEPS = 100

BEAT_NS = 1_000_000
WAKE_ROUNDS = 2_000


def run_job(slots: int, *words: object) -> dict[str, float]:
    """One run of `ciel`; what its job reports."""
    command = ["ciel", "run", "--quiet", f"-j{slots}", str(JOBS), *map(str, words)]
    env = os.environ | {"SLOTS": str(slots)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def median_of(slots: int, rounds: int, *words: object) -> dict[str, float]:
    """Medians of what several runs report."""
    found = [run_job(slots, *words) for _ in range(rounds)]
    return {key: statistics.median(one[key] for one in found) for key in found[0]}


def wake_ns() -> int:
    """How long a sleeping process takes to notice a byte, by the clock."""
    there, here = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        for _ in range(WAKE_ROUNDS):
            os.write(here[1], os.read(there[0], 1))
        os._exit(0)
    times = []
    for _ in range(WAKE_ROUNDS):
        began = time.monotonic_ns()
        os.write(there[1], b"x")
        os.read(here[0], 1)
        times.append(time.monotonic_ns() - began)
    os.waitpid(child, 0)
    return int(statistics.median(times) / 2)


def costs_of(slots: int, rounds: int) -> dict[str, int]:
    """The model's costs, measured with so many slots, in nanoseconds."""
    wide = median_of(slots, rounds, "wide", 20_000)
    waiting = median_of(slots, rounds, "waiting", 3_000)
    called = median_of(slots, rounds, "called", 1 << 16)
    task = {key: value / wide["count"] for key, value in wide.items()}
    pair = {key: value / waiting["count"] for key, value in waiting.items()}
    take = task["engine_ns"] / 2
    calls = 2 * called["count"]
    return {
        "spawn_ns": int(task["root_ns"]),
        "take_spawn_ns": int(take),
        "take_end_ns": int(take),
        "take_wait_ns": int(max(pair["engine_ns"] - 4 * take, take)),
        "task_ns": int(task["workers_ns"]),
        "wait_ns": int(max(pair["workers_ns"] - 2 * task["workers_ns"], 0)),
        "call_ns": int(called["workers_ns"] / calls),
        "wake_ns": wake_ns(),
        "beat_ns": BEAT_NS,
    }


def run_of(shape: str, grains: int, grain_ns: int, slots: int, shared: int | None) -> Any:
    """A question to the model."""
    job = {"shape": shape, "grains": grains, "grain_ns": grain_ns}
    return {"job": job, "machine": {"slots": slots, "processors": shared}}


def ask(costs: dict[str, int], jobs: list[Any]) -> list[dict[str, float]]:
    """What the model answers."""
    question = json.dumps({"costs": costs, "jobs": jobs})
    done = subprocess.run([MODEL], input=question, capture_output=True, text=True, check=True)
    answers: list[dict[str, float]] = json.loads(done.stdout)
    return answers


def calibrate(rounds: int) -> list[tuple[str, int, float, float]]:
    """Shape, slots, seconds that the model gives, and seconds of real runs."""
    rows = []
    processors = os.cpu_count()
    for slots in SLOTS:
        costs = costs_of(slots, rounds)
        for shape, program in zip(SHAPES, ("flat", "divided"), strict=True):
            grains = 1 << (SLEEPS * slots - 1).bit_length()
            jobs = [run_of(shape, grains, SLEEP_NS, slots, processors)]
            (answer,) = ask(costs, jobs)
            real = median_of(slots, rounds, program, grains, SLEEP_NS / 1e9)
            rows.append((shape, slots, answer["elapsed_ns"] / 1e9, real["clock_ns"] / 1e9))
    return rows


def predict(costs: dict[str, int]) -> dict[tuple[str, int, int], dict[str, float]]:
    """What the model gives for each shape, number of cores and length of a task."""
    places = [(s, c, g) for s in SHAPES for c in CORES for g in GRAINS_NS]
    counts = [min(WORK_NS // grain, TASKS_MAX) * cores for _, cores, grain in places]
    jobs = [
        run_of(shape, count, grain, cores, None)
        for (shape, cores, grain), count in zip(places, counts, strict=True)
    ]
    return dict(zip(places, ask(costs, jobs), strict=True))


def length(ns: int) -> str:
    """A time, as people write it."""
    return f"{ns // 1_000_000} ms" if ns >= 1_000_000 else f"{ns // 1_000} µs"


def show(title: str, head: list[str], rows: list[list[str]]) -> None:
    """A table in Markdown."""
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def draw(found: dict[tuple[str, int, int], dict[str, float]], target: Path) -> None:
    """The efficiency over the length of a task, a line for each number of cores."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ciel"
    plt.rcParams["svg.fonttype"] = "none"
    figure, axes = plt.subplots(1, len(SHAPES), figsize=(11, 4))
    for axis, shape in zip(axes, SHAPES, strict=True):
        for cores in CORES:
            line = [found[shape, cores, grain]["efficiency"] for grain in GRAINS_NS]
            axis.plot(GRAINS_NS, line, "o-", label=f"{cores} cores", markersize=4)
        axis.set_xscale("log")
        axis.set_ylim(0, 1.05)
        axis.set_title(shape, fontsize=9)
        axis.set_xticks(GRAINS_NS, [length(grain) for grain in GRAINS_NS])
        axis.set_xlabel("work in a task", fontsize=8)
        axis.set_ylabel("work done in the time of all cores", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    """Measures, compares, predicts."""
    parser = argparse.ArgumentParser(description="How jobs grow with cores.")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each measurement")
    parser.add_argument("--picture", type=Path, help="draw the prediction, an SVG file")
    options = parser.parse_args()
    costs = costs_of(os.cpu_count() or 1, options.rounds)
    show(
        "Costs",
        ["what", "µs"],
        [[name.removesuffix("_ns"), f"{ns / 1000:.1f}"] for name, ns in costs.items()],
    )
    rows = [
        [shape, str(slots), f"{model:.2f}", f"{real:.2f}", f"{100 * (model / real - 1):+.0f} %"]
        for shape, slots, model, real in calibrate(options.rounds)
    ]
    show("Tasks that sleep 10 ms", ["shape", "slots", "model s", "real s", "error"], rows)
    found = predict(costs)
    for shape in SHAPES:
        head = ["work in a task", *(f"{cores} cores" for cores in CORES)]
        lines = [
            [length(g), *(f"{found[shape, c, g]['efficiency']:.2f}" for c in CORES)]
            for g in GRAINS_NS
        ]
        show(f"Efficiency, {shape}", head, lines)
    if options.picture:
        draw(found, options.picture)
        print(f"the picture is {options.picture}", file=sys.stderr)


if __name__ == "__main__":
    main()
