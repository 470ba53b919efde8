"""Jobs of which the model of growth is made, and with which it is compared.

Usage: ciel run jobs.py PROGRAM [NUMBER...]; each prints one JSON object.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import ciel


@ciel.task
def nothing(number: int) -> int:
    """A task that does nothing. It might print, so no call runs early."""
    if number < 0:
        print(number)
    return number


@ciel.task(retries=1)
def apart(number: int) -> int:
    """A child that is always a task."""
    return number


@ciel.task
def waits(number: int) -> int:
    """A task that waits for a task."""
    return apart.spawn(number).result()


@ciel.task
def sleeps(seconds: float) -> int:
    """Work that needs no processor."""
    time.sleep(seconds)
    return 1


@ciel.task
def halves_asleep(count: int, seconds: float) -> int:
    """The same in halves."""
    if count == 1:
        time.sleep(seconds)
        return 1
    one = halves_asleep.spawn(count // 2, seconds)
    two = halves_asleep.spawn(count - count // 2, seconds)
    return one.result() + two.result()


@ciel.task
def halves(count: int) -> int:
    """Calls in place."""
    if count == 1:
        return 1
    one, two = halves.spawn(count // 2), halves.spawn(count - count // 2)
    return one.result() + two.result()


def parent_of(process: int) -> int:
    """The parent of a process."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def processor_ns(process: int, thread: str = "*") -> int:
    """What all threads of a process, or one of them, have computed."""
    total = 0
    for file in Path(f"/proc/{process}/task").glob(f"{thread}/schedstat"):
        try:
            total += int(file.read_text().split()[0])
        except OSError:
            continue
    return total


class Meter:
    """Processor time of the engine's thread, of this strand's worker, and of all other workers."""

    def __init__(self) -> None:
        spawner = parent_of(os.getpid())
        self.engine = parent_of(spawner)
        children = Path(f"/proc/{spawner}/task/{spawner}/children").read_text()
        self.workers = [int(child) for child in children.split() if int(child) != os.getpid()]
        self.before = self.look()

    def look(self) -> dict[str, int]:
        """All of it, and the clock, in nanoseconds."""
        return {
            "engine_ns": processor_ns(self.engine, str(self.engine)),
            "root_ns": processor_ns(os.getpid()),
            "workers_ns": sum(processor_ns(worker) for worker in self.workers),
            "clock_ns": time.monotonic_ns(),
        }

    def report(self, **more: float) -> None:
        """Prints what was used since the beginning."""
        now = self.look()
        print(json.dumps({key: now[key] - self.before[key] for key in now} | more))


def warm(count: int = 400) -> None:
    """Has workers started, and the spare ones."""
    ciel.gather([waits.spawn(number) for number in range(count)])


def wide(count: int) -> None:
    """Tasks of the root."""
    warm()
    meter = Meter()
    ciel.gather([nothing.spawn(number) for number in range(count)])
    meter.report(count=count)


def waiting(count: int) -> None:
    """Tasks that each wait for a task."""
    warm()
    meter = Meter()
    ciel.gather([waits.spawn(number) for number in range(count)])
    meter.report(count=count)


def called(count: int) -> None:
    """Calls in place."""
    warm()
    meter = Meter()
    began = time.process_time_ns()
    halves.spawn(count).result()
    meter.report(count=count, own_ns=time.process_time_ns() - began)


def flat(count: int, seconds: float) -> None:
    """Tasks of the root that sleep, once all workers live."""
    slots = os.environ.get("SLOTS", "2")
    ciel.gather([sleeps.spawn(0.2) for _ in range(2 * int(slots))])
    began = time.monotonic_ns()
    ciel.gather([sleeps.spawn(seconds) for _ in range(count)])
    print(json.dumps({"clock_ns": time.monotonic_ns() - began}))


def divided(count: int, seconds: float) -> None:
    """The same in halves."""
    halves_asleep.spawn(count, seconds).result()
    began = time.monotonic_ns()
    halves_asleep.spawn(count, seconds).result()
    print(json.dumps({"clock_ns": time.monotonic_ns() - began}))


PROGRAMS: dict[str, Callable[..., None]] = {
    "wide": wide,
    "waiting": waiting,
    "called": called,
    "flat": flat,
    "divided": divided,
}


def main(program: str, *numbers: str) -> None:
    """Runs the named program."""
    PROGRAMS[program](*(float(text) if "." in text else int(text) for text in numbers))
