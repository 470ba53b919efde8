"""The jobs that `measure.py` times. Each prints one JSON value: what it found out about itself.

Usage: ciel run jobs.py NAME [COUNT]
"""

import json
import os
import time
from typing import Any

import ciel


@ciel.task
def nothing(number: int) -> int:
    """A task that costs no more than being a task."""
    return number


@ciel.task
def batch(count: int) -> int:
    """So many tasks that cost no more than being one."""
    return len(ciel.gather([nothing.spawn(number) for number in range(count)]))


@ciel.task
def add(first: int, second: int) -> int:
    """A task that needs the two before it."""
    return (first + second) % 1_000_003


@ciel.task
def down(depth: int, start_kib: int) -> tuple[int, int]:
    """Goes down by one level; the last one tells how much its process has grown, in KiB."""
    if depth == 0:
        return resident_kib() - start_kib, os.getpid()
    return down.spawn(depth - 1, start_kib or resident_kib()).result()


@ciel.task
def total(array: Any) -> int:
    """Reads an array, which must not be copied for it."""
    return int(array[:: 1 << 16].sum())


@ciel.task
def spin(milliseconds: float) -> int:
    """Keeps a core busy."""
    until = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < until:
        pass
    return 1


@ciel.task
def outer(count: int, milliseconds: float) -> int:
    """Waits for tasks of its own."""
    return sum(ciel.gather(*[spin.spawn(milliseconds) for _ in range(count)]))


@ciel.task
def branch(depth: int, milliseconds: float) -> int:
    """Works, waits for two of its kind, and works again; the number of all beneath it."""
    spin.function(milliseconds)
    below = [branch.spawn(depth - 1, milliseconds) for _ in range(2 if depth else 0)]
    count = 1 + sum(ciel.gather(below))
    spin.function(milliseconds)
    return count


@ciel.task
def rested(seconds: float) -> float:
    """Takes its time and no core; tells when that was over."""
    time.sleep(seconds)
    return time.perf_counter()


@ciel.task
def countdown(number: int) -> int:
    """A loop by tails."""
    return number if number == 0 else countdown.tail(number - 1)


def resident_kib() -> int:
    """Anonymous memory of this process, in KiB."""
    with open("/proc/self/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["RssAnon"].split()[0])


def hello() -> None:
    """Nothing but a beginning and an end."""


def wide(count: int) -> dict[str, float]:
    """No-op tasks, all spawned before the first is waited for."""
    ciel.gather(*[nothing.spawn(n) for n in range(200)])
    began = time.perf_counter()
    found = ciel.gather(*[nothing.spawn(n) for n in range(count)])
    seconds = time.perf_counter() - began
    assert found == list(range(count))
    return {"seconds": seconds}


def completed(count: int) -> dict[str, float]:
    """Takes the results of no-op tasks one after the other, as they come."""
    began = time.perf_counter()
    futures = [nothing.spawn(n) for n in range(count)]
    found = sorted(future.result() for future in ciel.as_completed(futures))
    seconds = time.perf_counter() - began
    assert found == list(range(count))
    return {"seconds": seconds}


def chain(count: int) -> dict[str, float]:
    """Each task needs the two before it."""
    began = time.perf_counter()
    before, last = add.spawn(0, 0), add.spawn(0, 1)
    for _ in range(count):
        before, last = last, add.spawn(before.later, last.later)
    last.result()
    return {"seconds": time.perf_counter() - began}


def deep(count: int) -> dict[str, float]:
    """Every level is parked when the last one looks at its process; run it with -j1."""
    few, _ = down.spawn(10, 0).result()
    many, _ = down.spawn(count + 10, 0).result()
    return {"bytes": (many - few) * 1024 / count}


def many(count: int) -> dict[str, float]:
    """Tasks that are all there at once, because the first of all has not ended."""
    gate = spin.spawn(3000)
    waiting = [add.spawn(gate.later, number) for number in range(count)]
    values = ciel.gather(waiting)
    return {"sum": sum(values)}


def array(count: int) -> dict[str, float]:
    """An array of 300 MB, passed to tasks one by one."""
    import numpy as np

    data = np.ones(300_000_000 // 8, dtype=np.int64)
    began = time.perf_counter()
    ciel.gather(*[total.spawn(data) for _ in range(count)])
    seconds = time.perf_counter() - began
    folder = os.path.dirname(os.environ["CIEL_FAILED"])
    size = sum(
        os.stat(os.path.join(place, name)).st_blocks * 512  # ciel: ok
        for place, _, names in os.walk(folder)  # ciel: ok
        for name in names
    )
    return {"seconds": seconds, "copies": size / data.nbytes}


def nested(count: int) -> dict[str, float]:
    """As many outer tasks, each with four inner ones that take 10 ms."""
    ciel.gather(*[nothing.spawn(n) for n in range(200)])
    began = time.perf_counter()
    ciel.gather(*[outer.spawn(4, 10.0) for _ in range(count)])
    return {"seconds": time.perf_counter() - began}


def tree(depth: int) -> dict[str, float]:
    """A binary tree of tasks, each of which works for 2 ms before and after it waits."""
    ciel.gather(*[nothing.spawn(n) for n in range(200)])
    began = time.perf_counter()
    count = branch.spawn(depth, 2.0).result()
    return {"seconds": time.perf_counter() - began, "tasks": count}


def timely(count: int) -> dict[str, float]:
    """How late the results of tasks of half a second are given, and the end of a timeout."""
    ciel.gather(*[nothing.spawn(n) for n in range(200)])
    late = 0.0
    for future in ciel.as_completed([rested.spawn(0.5) for _ in range(count)]):
        late = max(late, time.perf_counter() - future.result())
    waiting = [rested.spawn(0.5) for _ in range(count)]
    began = time.perf_counter()
    ciel.wait(waiting, timeout=0.3)
    return {"late": late, "timeout": time.perf_counter() - began}


def tails(count: int) -> dict[str, float]:
    """A loop by tails."""
    began = time.perf_counter()
    countdown.spawn(count).result()
    return {"seconds": time.perf_counter() - began}


def batches(count: int) -> dict[str, float]:
    """More tasks than one strand should remember: batches of them, a few batches at a time."""
    began = time.perf_counter()
    done = 0
    while done < count:
        done += sum(ciel.gather([batch.spawn(5_000) for _ in range(8)]))
    return {"seconds": time.perf_counter() - began}


def marked(count: int, mark: str) -> None:
    """So many tasks, and then one that writes into a pipe and takes its time."""
    ciel.gather([nothing.spawn(number) for number in range(count)])
    ciel.sh("echo > {mark}; sleep 60", mark=mark).result()


def main(name: str, count: str = "0", mark: str = "") -> None:
    """Runs one of them."""
    if name == "hello":
        return hello()
    if name == "marked":
        return marked(int(count), mark)
    all_jobs = (wide, completed, chain, deep, many, array, nested, tree, timely, tails, batches)
    jobs = {job.__name__: job for job in all_jobs}
    print(json.dumps(jobs[name](int(count))))
