"""Measures Python tasks, beside the peers of the standard library where there is one.

Usage: python measure.py [GROUP...]

Prints a table in Markdown: what was measured, the figure of every run, and the goal. Each group
runs several times; peers are measured in turn with ours, in the same minute. Read next: `jobs.py`.
"""

import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

JOBS = Path(__file__).with_name("jobs.py")
CIEL = os.environ.get("CIEL_COMMAND", str(Path(sys.executable).with_name("ciel")))
RUNS = 5
CORES = os.cpu_count() or 1
MARK_S_MAX = 120.0
"""Seconds in which a job comes to its mark; far more than it takes."""


PLAIN_FIB = """
function fib(n) { if (n < 2) { return n; } return fib(n - 1) + fib(n - 2); }
return fib(%d);
"""

SPAWNED_FIB = """
function fib(n) {
  if (n < 2) { return n; }
  a = spawn(fib, [n - 1]);
  b = spawn(fib, [n - 2]);
  return *a + *b;
}
return *spawn(fib, [%d]);
"""

CHAIN = """
function one() { return 1; }
function add(a, b) { return (*a + *b) % 1000003; }
before = spawn(one);
last = spawn(one);
for (n in range(100000)) {
  next = spawn(add, [before, last]);
  before = last;
  last = next;
}
return *last;
"""

ROUNDS, SPIN_S = 5_000, 100e-6
"""Rounds of a script, and seconds of each task in them."""

SPIN = """
function spin(n) { i = 0; while (i < n) { i += 1; } return 1; }
"""

SPUN = SPIN + """
function spun(ones) { sum = 0; for (one in ones) { sum += *one; } return sum; }
for (round in range(%d)) {
  ones = [];
  for (core in range(%d)) { ones = ones + [spawn(spin, [%d])]; }
  last = *spawn(spun, [ones]);
}
return last;
"""

CALLED = SPIN + """
for (round in range(%d)) { last = spin(%d); }
return last;
"""


def run(name: str, count: int = 0, options: tuple[str, ...] = ()) -> dict[str, float]:
    """Runs a job; what it found out, with the seconds that the whole process took."""
    words = [CIEL, "run", "--new", "--quiet", *options, str(JOBS), name, str(count)]
    began = time.perf_counter()
    ended = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    whole = time.perf_counter() - began
    found: dict[str, float] = json.loads(ended.stdout) if ended.stdout.strip() else {}
    return {**found, "whole": whole}


def nothing(number: int) -> int:
    """The task of the peer."""
    return number


def pool_rate(count: int) -> float:
    """No-op tasks a second of the standard library's process pool."""
    with ProcessPoolExecutor(CORES) as pool:
        list(pool.map(nothing, range(200)))
        began = time.perf_counter()
        futures = [pool.submit(nothing, number) for number in range(count)]
        for future in futures:
            future.result()
        return count / (time.perf_counter() - began)


def show(what: str, figures: list[float], unit: str, goal: str) -> None:
    """A line of the table: the median, then every run."""
    runs = ", ".join(f"{figure:.3g}" for figure in figures)
    print(f"| {what} | {statistics.median(figures):.3g} {unit} | {runs} | {goal} |", flush=True)


def first() -> None:
    """From the start of the process until the first result is shown, and until its end."""
    results, ends = [], []
    for _ in range(RUNS):
        began = time.perf_counter()
        words = [CIEL, "run", "--new", "--quiet", str(JOBS), "hello"]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"1\n"
            results.append(time.perf_counter() - began)
        ends.append(time.perf_counter() - began)
        assert process.returncode == 0
    show("first result", results, "s", "≤ 0.1")
    show("the end of that process", ends, "s", "")


def wide() -> None:
    """No-op tasks a second, and beside the process pool."""
    count, ours, ratios = 20_000, [], []
    for _ in range(RUNS):
        ours.append(count / run("wide", count)["seconds"])
        ratios.append(ours[-1] / pool_rate(count))
    show("no-op tasks, wide", ours, "tasks/s", "≥ 20,000")
    show("the same beside ProcessPoolExecutor.submit", ratios, "times", "≥ 1.5")


def completed() -> None:
    """How much longer ten times as many futures take, one after the other."""
    ratios = [
        run("completed", 10_000)["seconds"] / run("completed", 1_000)["seconds"]
        for _ in range(RUNS)
    ]
    show("as_completed, 10,000 beside 1,000", ratios, "times", "≤ 12")


def chain() -> None:
    """Each task needs the two before it."""
    count = 10_000
    figures = [run("chain", count)["seconds"] / count * 1e6 for _ in range(RUNS)]
    show("chain, each task needs two", figures, "µs/task", "< 60")


def deep() -> None:
    """Memory of a parked strand."""
    figures = [run("deep", 20_000, ("-j1",))["bytes"] / 1024 for _ in range(3)]
    show("a parked strand, of 20,000", figures, "KiB", "≤ 12")


def many() -> None:
    """Memory of all processes of a run with 100,000 tasks that wait."""
    show("100,000 spawned tasks", [peak_mb("many", 100_000) for _ in range(3)], "MB", "< 300")


def peak_mb(name: str, count: int) -> float:
    """The largest sum of the proportional memory of the command and all its processes."""
    words = [CIEL, "run", "--new", "--quiet", str(JOBS), name, str(count)]
    command = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    most, ended = 0, threading.Event()

    def look() -> None:
        nonlocal most
        while not ended.wait(0.05):
            most = max(most, sum(map(share_kib, [command.pid, *beneath(command.pid)])))

    looking = threading.Thread(target=look)
    looking.start()
    status = command.wait()
    ended.set()
    looking.join()
    if status != 0:
        raise SystemExit(f"{name} ended with status {status}")
    return most * 1024 / 1e6


def beneath(pid: int) -> list[int]:
    """All processes that descend from one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                found += [int(child), *beneath(int(child))]
        except OSError:  # it has ended meanwhile
            continue
    return found


def share_kib(pid: int) -> int:
    """The proportional share of a process in memory, in KiB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def array() -> None:
    """An array of 300 MB for ten tasks."""
    found = [run("array", 10) for _ in range(3)]
    show("300 MB array for ten tasks", [each["copies"] for each in found], "copies", "≤ 1")
    show("the same, time", [each["seconds"] for each in found], "s", "–")


def nested() -> None:
    """500 outer tasks with 4 inner ones of 10 ms, beside the ideal time."""
    ideal = 500 * 4 * 0.010 / CORES
    figures = [run("nested", 500)["seconds"] / ideal for _ in range(RUNS)]
    show("500 × 4 tasks of 10 ms", figures, "of the ideal", "≤ 1.10")


def tree() -> None:
    """A binary tree of tasks that work for 2 ms before and after they wait."""
    figures = []
    for _ in range(RUNS):
        found = run("tree", 10)
        figures.append(found["seconds"] / (found["tasks"] * 0.004 / CORES))
    show("binary tree of waits, depth 10", figures, "of the ideal", "≤ 1.15")


def timely() -> None:
    """Twelve tasks of 0.5 s: how late each result is given, and a timeout while all cores rest."""
    found = [run("timely", 12) for _ in range(RUNS)]
    show("a result of `as_completed`, the latest", [one["late"] for one in found], "s", "< 0.05")
    show("a timeout of 0.3 s in main", [one["timeout"] for one in found], "s", "≤ 0.35")


def tails() -> None:
    """A loop of a million steps."""
    figures = [run("tails", 1_000_000)["seconds"] for _ in range(3)]
    show("a loop of 1,000,000 tails", figures, "s", "–")


def calls() -> None:
    """Spawned calls of fib(22) beside plain ones, and memory of those that have not begun."""
    found = [run("calls", 22, ("-j1",)) for _ in range(RUNS)]
    show("a spawned call more than a plain one", [1e6 * one["more"] for one in found], "µs", "≤ 1")
    show("a plain call", [1e6 * one["plain"] for one in found], "µs", "–")
    sizes = [run("kept", 20, ("-j1",))["bytes"] for _ in range(RUNS)]
    show("a spawned call that has not begun", sizes, "bytes", "≤ 300")


def script_seconds(text: str, slots: str, by_clock: bool = False) -> float:
    """Processor time of all processes of a script, or the time until it has ended."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.sw")
        job.write_text(text, encoding="utf-8")
        words = [CIEL, "run", "--quiet", "--state", f"{folder}/state", slots, str(job)]
        command = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(command.pid, 0)
        if status != 0:
            raise SystemExit(f"a script ended with status {status}")
    return time.perf_counter() - began if by_clock else usage.ru_utime + usage.ru_stime


def script_rounds() -> float:
    """Rounds of a task for each core, then one that needs them all, to their ideal time."""
    steps = 5_000_000
    start = script_seconds(CALLED % (1, 1), "-j1")
    spins = (script_seconds(CALLED % (1, steps), "-j1") - start) / SPIN_S
    steps = round(steps / spins)
    ideal = script_seconds(CALLED % (ROUNDS, steps), "-j1") - start
    start = script_seconds(CALLED % (1, 1), "-j1", True)
    found = script_seconds(SPUN % (ROUNDS, CORES, steps), f"-j{CORES}", True) - start
    return found / ideal


def scripts() -> None:
    """fib(30) of scripts by spawns beside calls, a chain of 100,000, and rounds of 100 µs."""
    ratios, links = [], []
    for _ in range(RUNS):
        start = script_seconds(PLAIN_FIB % 1, "-j1")
        plain = script_seconds(PLAIN_FIB % 30, "-j1") - start
        ratios.append((script_seconds(SPAWNED_FIB % 30, "-j1") - start) / plain)
        links.append((script_seconds(CHAIN, "-j2") - start) / 100_000 * 1e6)
    show("script: fib(30) by spawns beside calls", ratios, "times", "≤ 2")
    show("script: chain, each task needs two, `-j2`", links, "µs/task", "≤ 2")
    ratios = [script_rounds() for _ in range(RUNS)]
    show("script: a task of 100 µs per core, then one", ratios, "of the ideal", "≤ 1.25")


def shared() -> None:
    """fib(27) on all cores beside as many runs with a core each, and beside the process pool."""
    fast, pools = [], []
    for _ in range(RUNS):
        alone = [JOBS, "fib_rate", "25"]
        words = [CIEL, "run", "--new", "--quiet", "-j1", *map(str, alone)]
        with tempfile.TemporaryDirectory() as folder:
            both = [
                subprocess.Popen([*words[:2], "--state", f"{folder}/{core}", *words[2:]], stdout=-1)
                for core in range(CORES)
            ]
            told = [json.loads(process.communicate()[0])["rate"] for process in both]
        ours = run("fib_rate", 27)["rate"]
        fast.append(ours / sum(told))
        pools.append(ours / pool_rate(5_000))
    show("fib(27), rate beside runs with one core each", fast, "", "≥ 0.8")
    show("the same beside ProcessPoolExecutor.submit", pools, "times", "≥ 70")


def idle() -> None:
    """From the end of a task to the first call that an idle core takes from a busy strand."""
    found = [1e6 * run("idle", 20, ("-j2",))["seconds"] for _ in range(RUNS)]
    show("an idle core without a call, median of 20", found, "µs", "≤ 100")


def journal() -> None:
    """No-op tasks with and without a journal: processor time on all cores, and throughput."""
    count = 50_000
    kept, dropped, slower = [], [], []
    for _ in range(RUNS):
        with_it, without = timed("wide", count, "process"), timed("wide", count, "never")
        kept.append(with_it["processor"] / count * 1e6)
        dropped.append(without["processor"] / count * 1e6)
        slower.append(with_it["seconds"] / without["seconds"])
    show("no-op tasks with a journal", kept, "µs of processor time", "–")
    show("the same without", dropped, "µs of processor time", "4 less at most")
    show("the same, time with beside without", slower, "times", "≤ 1.1")


def timed(name: str, count: int, durable: str) -> dict[str, float]:
    """Runs a job; what it found out, with the processor time of all its processes."""
    words = [CIEL, "run", "--new", "--quiet", "--durable", durable, str(JOBS), name, str(count)]
    command = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert command.stdout is not None
    told = command.stdout.read()
    _, status, usage = os.wait4(command.pid, 0)
    if status != 0:
        raise SystemExit(f"{name} ended with status {status}")
    found: dict[str, float] = json.loads(told)
    return {**found, "processor": usage.ru_utime + usage.ru_stime}


def recovery() -> None:
    """From the command to the first new task of a job of which 100,000 tasks are done."""
    show("first new task after 100,000", [recovered(100_000) for _ in range(3)], "s", "< 2")


def recovered(count: int) -> float:
    """Kills a job after so many tasks, takes it up, and kills it again when it has gone on."""
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder, "mark")
        os.mkfifo(mark)
        words = [CIEL, "run", "--quiet", "--state", f"{folder}/state", str(JOBS)]
        for _ in ("undisturbed", "taken up"):
            reader = os.open(mark, os.O_RDONLY | os.O_NONBLOCK)
            began = time.perf_counter()
            command = subprocess.Popen([*words, "marked", str(count), str(mark)])
            marked, _, _ = select.select([reader], [], [], MARK_S_MAX)
            seconds = time.perf_counter() - began
            os.close(reader)
            command.kill()
            command.wait()
            if not marked:
                raise SystemExit(f"the job did not come to its mark in {MARK_S_MAX} s")
    return seconds


def looks() -> None:
    """`ciel ps` and the history while ten million tasks run, and after; named only, for minutes."""
    count = int(os.environ.get("TASKS", "10000000"))
    with tempfile.TemporaryDirectory() as folder:
        state = ("--state", f"{folder}/state")
        words = [CIEL, "run", "--quiet", *state, str(JOBS), "batches", str(count)]
        command = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        during: list[float] = []
        sizes: list[float] = []
        while command.poll() is None:
            during.append(look(state))
            sizes.append(history_mib(folder))
            time.sleep(1)
        if command.returncode != 0:
            raise SystemExit(f"batches ended with status {command.returncode}")
        after = [look(state) for _ in range(RUNS)]
    what = f"a run of {count:,} tasks"
    show(f"`ciel ps` during {what}", [statistics.median(during)], "s", "≤ 0.2")
    show("the same, the longest", [max(during)], "s", "≤ 0.2")
    show(f"`ciel ps` after {what}", after, "s", "≤ 0.2")
    show(f"the largest history of {what}", [max(sizes)], "MiB", "≤ 64")


def look(state: tuple[str, ...]) -> float:
    """Seconds of one `ciel ps`."""
    began = time.perf_counter()
    subprocess.run([CIEL, "ps", *state], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def history_mib(folder: str) -> float:
    """The sizes of all files of the histories in a folder."""
    total = 0
    for path in Path(folder).glob("state/runs/*/history/*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # it has become an old one
            continue
    return total / 2**20


GROUPS: list[Callable[[], None]] = [
    first,
    wide,
    completed,
    chain,
    deep,
    many,
    array,
    nested,
    tree,
    timely,
    tails,
    calls,
    scripts,
    shared,
    idle,
    journal,
    recovery,
]

NAMED_ONLY = [looks]
"""Groups that take minutes, and so are measured only when they are named."""


def main() -> None:
    """Measures the groups that are named, or all that take less than minutes."""
    known = {group.__name__: group for group in [*GROUPS, *NAMED_ONLY]}
    unknown = [name for name in sys.argv[1:] if name not in known]
    if unknown:
        raise SystemExit(f"there is no group {unknown[0]}; there are {', '.join(known)}")
    print("| what | median | runs | goal |\n|---|---|---|---|")
    for name in sys.argv[1:] or [group.__name__ for group in GROUPS]:
        known[name]()


if __name__ == "__main__":
    main()
