"""A run in which no process dies: each task runs once, and a strand hears of what it waits for.

Tasks block on named pipes that the test opens, so what is proven is the order of causes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import jobs
from conditions import until

EIGHT = """
import ciel

@ciel.task
def work(i):
    return sum(range(300_000 * (1 + 2 * (i % 3)))) and i

@ciel.task
def parent(k):
    with open("side.log", "a") as file:
        file.write(f"charge customer {k}\\n")
    return sum(future.result() for future in [work.spawn(i) for i in range(3)])

def main():
    return sum(future.result() for future in [parent.spawn(k) for k in range(8)])
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2", "-j4"])
def test_each_waiting_parent_writes_its_line_once(slots: str, tmp_path: Path) -> None:
    """A waiting strand was replayed elsewhere when its worker was busy: eight parents wrote 21
    lines with ``-j2``, although nobody was killed and nothing had failed.
    """
    ended = jobs.run(tmp_path, EIGHT, options=(slots,))
    assert ended.value == 24
    lines = (tmp_path / "side.log").read_text("utf-8").splitlines()
    assert sorted(lines) == [f"charge customer {k}" for k in range(8)]


PATTERNS = """
import os
import tempfile
import ciel

@ciel.task
def work(i):
    return sum(range(300_000 * (1 + 2 * (int(i) % 3)))) and 1

class Node:
    def __init__(self, number):
        self.number = number

@ciel.task
def iterates(k):
    nodes = {Node(i) for i in range(4)}
    return sum(future.result() for future in [work.spawn(node.number) for node in nodes])

@ciel.task
def looks(k):
    if os.path.exists(f"res{k}"):
        return 0
    with open(f"res{k}", "w"):
        pass
    return sum(future.result() for future in [work.spawn(i) for i in range(4)])

@ciel.task
def keep(path, i):
    work.function(i)
    with open(os.path.join(path, str(i)), "w"):
        pass
    return 1

@ciel.task
def makes(k):
    folder = tempfile.mkdtemp(dir=".")
    return sum(future.result() for future in [keep.spawn(folder, i) for i in range(4)])

def main(what):
    task = {"iterates": iterates, "looks": looks, "makes": makes}.get(what)
    if task is not None:
        return sum(future.result() for future in [task.spawn(k) for k in range(8)])
    os.mkdir("out")
    print(os.listdir("out"))
    return 4 * sum(ciel.map(keep, ["out"] * 8, range(8), window=3))
"""


@pytest.mark.parametrize("what", ["iterates", "looks", "makes", "lists"])
def test_program_that_a_replay_would_change_runs_well(what: str, tmp_path: Path) -> None:
    """Parents that iterate over a set of objects, look for a file, or make a folder, and a main
    function that lists one, failed with NonDeterministic in runs in which nothing had failed.
    """
    ended = jobs.run(tmp_path, PATTERNS, what)
    assert ended.value == 32
    folders = [path for path in tmp_path.iterdir() if path.name.startswith("tmp")]
    assert len(folders) == (8 if what == "makes" else 0)


GATED = """
import sys
import ciel

def note(words):
    with open("notes", "a") as file:
        file.write(f"{words}\\n")

@ciel.task
def gated(i):
    note(f"begun {i}")
    with open(f"gate{i}", "rb") as gate:
        gate.read()
    return i

def completed(count):
    for future in ciel.as_completed([gated.spawn(i) for i in range(count)]):
        note(f"given {future.result()}")

def mapped(count):
    for value in ciel.map(gated, range(count), window=count):
        note(f"given {value}")

def shown(count):
    import tqdm
    futures = ciel.as_completed([gated.spawn(i) for i in range(count)])
    with open("notes", "a") as notes:
        for future in tqdm.tqdm(
            futures, total=count, file=notes, mininterval=0, miniters=1,
            bar_format="{n} of {total}\\n",
        ):
            future.result()

def firsts(count):
    waiting = [gated.spawn(i) for i in range(count)]
    while waiting:
        ready, waiting = ciel.wait(waiting, count="first")
        for future in ready:
            note(f"given {future.result()}")

def limited(count):
    waiting = [gated.spawn(i) for i in range(count)]
    ready, _ = ciel.wait(waiting, timeout=0.02)
    note(f"over {len(ready)}")
    ciel.gather(waiting)

@ciel.task
def nested(what, count):
    globals()[what](count)

def main(where, what, count):
    if where == "root":
        globals()[what](int(count))
    else:
        nested.spawn(what, int(count)).result()
"""


class Gates:
    """Named pipes in the folder of a job; a task that opens one waits until it is opened here."""

    def __init__(self, folder: Path, count: int) -> None:
        """All are closed."""
        self._folder = folder
        for number in range(count):
            os.mkfifo(folder / f"gate{number}")

    def open(self, number: int) -> None:
        """Lets that task end; it has begun to wait."""
        self.expect(f"begun {number}")
        with (self._folder / f"gate{number}").open("wb"):
            pass

    def expect(self, words: str) -> None:
        """Waits until a task has noted that."""
        until(lambda: words in self.notes())

    def notes(self) -> list[str]:
        """What tasks have noted so far."""
        path = self._folder / "notes"
        return path.read_text("utf-8").splitlines() if path.exists() else []


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("completed", "root"),
        ("completed", "task"),
        ("firsts", "root"),
        ("firsts", "task"),
        ("mapped", "root"),
    ],
)
def test_result_is_given_before_tasks_that_have_not_begun_end(
    what: str, where: str, slots: str, tmp_path: Path
) -> None:
    """All of twelve tasks of half a second were given after three seconds: the strand that waited
    is last in serial order, and resumed when no task was ready.

    `map` in a task waits for one result after the other, which is no question of time: a task may
    begin in its worker while a spare one starts.
    """
    count = 6
    gates = Gates(tmp_path, count)
    job = jobs.write(tmp_path, GATED)
    process = jobs.start(job, where, what, str(count), options=(slots,))
    for number in range(count):
        gates.open(number)
        gates.expect(f"given {number}")
    assert jobs.end_of(process).status == 0


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
@pytest.mark.parametrize("where", ["root", "task"])
def test_progress_bar_moves_with_each_result(where: str, slots: str, tmp_path: Path) -> None:
    """A bar of tqdm over as_completed stood at zero until the last task had ended."""
    count = 4
    gates = Gates(tmp_path, count)
    job = jobs.write(tmp_path, GATED)
    process = jobs.start(job, where, "shown", str(count), options=(slots,))
    for number in range(count):
        gates.expect(f"{number} of {count}")
        gates.open(number)
    gates.expect(f"{count} of {count}")
    assert jobs.end_of(process).status == 0


@pytest.mark.parametrize("where", ["root", "task"])
def test_timeout_ends_although_tasks_run(where: str, tmp_path: Path) -> None:
    """A timeout of 0.3 s came back after 3.08 s, when all tasks had ended: the strand that waited
    was held up by tasks on all cores. A task of its own needs a core to go on, the root does not.
    """
    count = 2 if where == "root" else 1
    gates = Gates(tmp_path, count)
    process = jobs.start(jobs.write(tmp_path, GATED), where, "limited", str(count))
    for number in range(count):
        gates.expect(f"begun {number}")
    gates.expect("over 0")
    for number in range(count):
        gates.open(number)
    assert jobs.end_of(process).status == 0


def test_strand_that_waits_for_its_busy_worker_says_so(tmp_path: Path) -> None:
    gates = Gates(tmp_path, 1)
    process = jobs.start(
        jobs.write(tmp_path, GATED), "task", "limited", "1", options=("-j1",)
    )
    gates.expect("begun 0")
    until(lambda: "waiting for its worker process, which runs gated" in _why(tmp_path, "nested"))
    gates.open(0)
    assert jobs.end_of(process).status == 0


def _why(folder: Path, task: str) -> str:
    return jobs.command(folder, "why", task).printed.decode()


TWENTY = """
import ciel
from ciel import Future

@ciel.task
def gated():
    with open("gate0", "rb") as gate:
        gate.read()

@ciel.task
def waits(n, gate: Future[None]):
    with open("notes", "a") as file:
        file.write(f"begun {n}\\n")
    gate.result()
    return n

def main(count):
    gate = gated.spawn()
    return ciel.gather([waits.spawn(n, gate) for n in range(int(count))])
"""


@pytest.mark.parametrize("slots", ["-j2", "-j4"])
def test_twenty_strands_that_are_ready_at_once_run_once(slots: str, tmp_path: Path) -> None:
    count = 20
    gates = Gates(tmp_path, 1)
    process = jobs.start(jobs.write(tmp_path, TWENTY), str(count), options=(slots,))
    until(lambda: len(gates.notes()) == count)
    with (tmp_path / "gate0").open("wb"):
        pass
    assert jobs.end_of(process).value == [*range(count)]
    assert sorted(gates.notes()) == sorted(f"begun {n}" for n in range(count))
