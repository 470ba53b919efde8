"""The jobs that `measure.py` times. Each prints one JSON value: what it found out about itself.

Usage: ciel run jobs.py NAME [COUNT]
"""

import json
import os
import statistics
import time
from typing import Any

import ciel

PENDING = 1_000
"""Calls that have not begun, on each level; a strand keeps few more."""


@ciel.task
def nothing(number: int) -> int:
    """A task that costs no more than being a task. It might print, so no call runs early."""
    if number < 0:
        print(number)
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


@ciel.task
def fib(number: int) -> int:
    """Each call a spawn."""
    if number < 2:
        return number
    first, second = fib.spawn(number - 1), fib.spawn(number - 2)
    return first.result() + second.result()


def plain_fib(number: int) -> int:
    """The same by plain calls."""
    return number if number < 2 else plain_fib(number - 1) + plain_fib(number - 2)


def fib_calls(number: int) -> int:
    """Calls that either of them makes, the first one included."""
    return 2 * plain_fib(number + 1) - 1


@ciel.task
def fib_seconds(number: int) -> tuple[float, float]:
    """Processor time of this process for spawned calls, and for plain ones."""
    began = time.process_time()
    found = fib(number)
    between = time.process_time()
    assert plain_fib(number) == found
    return between - began, time.process_time() - between


@ciel.task
def stand(milliseconds: float) -> float:
    """Keeps a core busy; when that was over."""
    spin.function(milliseconds)
    return time.perf_counter()


@ciel.task
def divided(count: int, milliseconds: float) -> list[tuple[int, float]]:
    """So many short calls by halves, which stay here until a core is idle: where and when each
    half, and each call, began.
    """
    began = os.getpid(), time.perf_counter()
    if count == 1:
        spin.function(milliseconds)
        return [began]
    first = divided.spawn(count // 2, milliseconds)
    second = divided.spawn(count - count // 2, milliseconds)
    return [began, *first.result(), *second.result()]


@ciel.task
def pending(levels: int, start_kib: int) -> int:
    """Spawns a thousand calls on each level; KiB by which the process has grown on the last one."""
    waiting = [add.spawn(1, 2) for _ in range(PENDING)]
    if levels == 0:
        return resident_kib() - start_kib
    grown = pending.spawn(levels - 1, start_kib or resident_kib()).result()
    assert sum(ciel.gather(waiting)) > 0
    return grown


def resident_kib() -> int:
    """Anonymous memory of this process, in KiB."""
    with open("/proc/self/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["RssAnon"].split()[0])


def hello() -> None:
    """Shows the result of a single task."""
    print(nothing.spawn(1).result())


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


def calls(count: int) -> dict[str, float]:
    """What a spawned call takes more than a plain one."""
    spawned, plain = fib_seconds.spawn(count).result()
    return {"more": (spawned - plain) / fib_calls(count), "plain": plain / fib_calls(count)}


def fib_rate(count: int) -> dict[str, float]:
    """Spawned calls a second."""
    fib.spawn(12).result()
    began = time.perf_counter()
    fib.spawn(count).result()
    return {"rate": fib_calls(count) / (time.perf_counter() - began)}


def idle(count: int) -> dict[str, float]:
    """From the end of the last task on a core to the first instruction of what was promoted for it.

    That task ends before any half has been in place for long enough to be a task anyway.
    """
    gaps = []
    for _ in range(count):
        standing, dividing = stand.spawn(5.0), divided.spawn(256, 0.3)
        found = dividing.result()  # main needs no core meanwhile
        free, (here, _) = standing.result(), found[0]
        elsewhere = [at for place, at in found if place != here and at > free]
        gaps += [min(elsewhere) - free] if elsewhere else []
    assert len(gaps) > count // 2
    return {"seconds": statistics.median(gaps)}


def kept(count: int) -> dict[str, float]:
    """Memory of spawned calls that have not begun; run it with -j1."""
    return {"bytes": pending.spawn(count, 0).result() * 1024 / (count * PENDING)}


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
    tasks = (wide, completed, chain, deep, many, array, nested, tree, timely, tails, batches)
    in_place = (calls, fib_rate, idle, kept)
    jobs = {job.__name__: job for job in (*tasks, *in_place)}
    print(json.dumps(jobs[name](int(count))))
