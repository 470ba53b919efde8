"""`--serial` is the same language: each program ends alike with it, with -j1 and with -j2.

Compared are standard output, standard error and the exit status; only the digits in names of tasks
and amounts that are measured may differ. A first version of `--serial` ran all tasks in the worker
of the root, without the engine: no option of a task was in force there, and texts differed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jobs

MODES = ("--serial", "-j1", "-j2")

BEGIN = """
import os
import threading
import time

import ciel

def mark(name):
    with open(name, "a") as file:
        file.write("x")
    return os.path.getsize(name)
"""

FAILS_TWICE = """
@ciel.task(retries=RETRIES)
def flaky():
    print("one line")
    if (tries := mark("tries")) < 3:
        raise OSError(f"try {tries}")
    return tries

def main():
    try:
        print(flaky.spawn().result())
    except OSError as error:
        print("caught", error)
    print(mark("tries"))
"""

PROGRAMS = {
    "retries": FAILS_TWICE.replace("RETRIES", "2"),
    "retries that do not suffice": FAILS_TWICE.replace("RETRIES", "1"),
    "retry that prints something else": """
@ciel.task(retries=1)
def differs():
    print("try", mark("tries"))
    raise OSError("always")

def main():
    differs.spawn().result()
""",
    "outputs": """
@ciel.task(outputs=2)
def pair(n):
    return tuple(range(n))

@ciel.task
def hands_on():
    return pair.tail(2)

def main():
    for n in (2, 3, 1):
        first, second = pair.spawn(n)
        print("spawned", n)
        try:
            print(first.result(), second.result())
        except TypeError as error:
            print(error)
    try:
        hands_on.spawn().result()
    except ciel.Refused as error:
        print(error)
    pair.spawn(4)
""",
    "resource that is not there": """
@ciel.task(resources={"gpu": 1})
def gpu():
    return 1

def main():
    try:
        gpu.spawn().result()
    except ciel.Refused as error:
        print(error)
    gpu.spawn()
""",
    "memory that can never be had": """
@ciel.task(memory="900 TiB")
def huge():
    return 1

def main():
    huge.spawn().result()
""",
    "time limit": """
@ciel.task(timeout=0.2)
def slow():
    time.sleep(600)

def main():
    try:
        slow.spawn().result()
    except ciel.Timeout as error:
        print(error)
    slow.spawn()
""",
    "memory limit": """
@ciel.task(memory="64 MiB")
def eats():
    pieces = [b"x" * (1 << 20) for _ in range(300)]
    time.sleep(600)
    return len(pieces)

def main():
    try:
        eats.spawn().result()
    except ciel.OutOfMemory as error:
        print(str(error).split(",")[1])
""",
    "worker that dies": """
@ciel.task
def dies():
    os._exit(3)

def main():
    try:
        dies.spawn().result()
    except ciel.WorkerLost as error:
        print(error)
""",
    "lazy tasks": """
@ciel.task
def inner(n):
    print("inner", n)
    return n

@ciel.task(lazy=True)
def lazy(n):
    print("lazy", n)
    return inner.spawn(n).result()

def main():
    lazy.spawn(1)
    used = lazy.spawn(2)
    print(used.done())
    print(used.result(), inner.spawn(lazy.spawn(3)).result())
""",
    "exception that cannot be copied": """
class Broken(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a}-{b}")
        self.lock = threading.Lock()

    def __reduce__(self):
        raise TypeError("not this one")

@ciel.task
def bad():
    raise Broken(1, 2)

@ciel.task
def outer():
    return bad.spawn().result()

def main():
    try:
        outer.spawn().result()
    except Exception as error:
        print(type(error), error, error.__notes__)
    outer.spawn().result()
""",
    "representations": """
@ciel.task
def f(n):
    return n

@ciel.task
def shown(futures: "list[ciel.Future[int]]"):
    return repr(futures)

def main():
    made = f.spawn(1)
    print(made, [made], ciel.put(3), f, shown.spawn([made]).result())
""",
    "coroutine that waits": """
@ciel.task
def f(n):
    return n

async def main():
    awaited = f.spawn(1)
    print(await awaited, awaited.result(), awaited.exception())
    for wait in (
        lambda: f.spawn(2).result(),
        lambda: f.spawn(2).result(timeout=5),
        lambda: f.spawn(2).exception(),
        lambda: ciel.put(2).result(),
        lambda: ciel.gather([f.spawn(2)]),
        lambda: ciel.wait([f.spawn(2)]),
        lambda: list(ciel.as_completed([f.spawn(2)])),
        lambda: list(ciel.map(f, [2])),
    ):
        try:
            print(wait())
        except ciel.WaitError as error:
            print(error)
    f.spawn(3).result()
""",
    "task with an event loop in a coroutine": """
import asyncio

async def twice(n):
    await asyncio.sleep(0)
    return 2 * n

@ciel.task
def f(n):
    return asyncio.run(twice(n))

async def main():
    print(await f.spawn(await twice(1)))
""",
    "failure that nobody asks for": """
@ciel.task
def bad(n):
    print("in", n)
    raise ValueError(n)

def main():
    bad.spawn(3)
    return 4
""",
    "calls that do not fit": """
@ciel.task
def f(n):
    return n

def main():
    wrong = f.spawn(1, 2)
    try:
        wrong.result()
    except TypeError as error:
        print(error, error.__notes__)
    f.spawn(threading.Lock())
""",
    "equal calls of a pure task": """
@ciel.task(pure=True)
def f(n):
    print("f", n)
    return mark("ran")

@ciel.task(pure=True)
def clock():
    return ciel.now()

def main():
    first, second = f.spawn(1), f.spawn(1)
    print(first.result(), second.result())
    clock.spawn().result()
""",
    "exits": """
import sys

@ciel.task
def leaves(n):
    sys.exit(n)

def main():
    try:
        leaves.spawn(3).result()
    except SystemExit as error:
        print(error)
    sys.exit(5)
""",
    "commands that fail": """
def main():
    try:
        ciel.sh("echo hello; exit 3").result()
    except ciel.TaskError as error:
        print(error)
    needs = ciel.sh("cat {x}", x=ciel.sh("false"))
    try:
        needs.result()
    except ciel.TaskError as error:
        print(error)
    ciel.sh("exit 4")
""",
    "standard error": """
import sys

@ciel.task
def f(n):
    print("task", n, file=sys.stderr)
    return n

def main():
    print("main", file=sys.stderr)
    f.spawn(1).result()
""",
}


# Tasks share a worker where there is one slot, so one that ends it takes along those that wait.
REPLAYED = re.compile("warning: .* while it waited there; it is replayed from its start\n")


def shown(folder: Path, text: str, mode: str) -> tuple[int, str, str]:
    """How a program ends and what it shows, without what differs from run to run."""
    folder.mkdir()
    ended = jobs.run(folder, BEGIN + text, options=(mode,))
    texts = (ended.printed.decode(), ended.talk)
    printed, talk = (re.sub("@[0-9a-f]{8}", "@", text) for text in texts)
    if mode != "-j2":
        talk = REPLAYED.sub("", talk)
    return ended.status, printed, talk.replace(str(folder), "FOLDER")


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_ends_alike_in_every_mode(name: str, tmp_path: Path) -> None:
    ends = {mode: shown(tmp_path / mode, PROGRAMS[name], mode) for mode in MODES}
    assert ends["--serial"] == ends["-j1"] == ends["-j2"]


ONE_AT_A_TIME = """
@ciel.task(outputs=0)
def last(n):
    mark("running")
    assert os.path.getsize("running") == 1, "another task runs"
    os.remove("running")
    return ()

@ciel.task
def leaf(n):
    last.spawn(n)
    if n == 2:
        os.mkdir("made")
    return n

@ciel.task(cores=2)
def branch(n):
    leaf.spawn(n)
    return os.environ["CIEL_CORES"], os.path.exists("made"), os.path.exists("running")

def main():
    return [branch.spawn(n).result() for n in (1, 2, 3)]
"""


def test_serial_run_does_one_thing_at_a_time_with_all_cores_for_it(tmp_path: Path) -> None:
    """Nobody waits for `leaf` and `last`: they have run at their spawns nevertheless."""
    ended = jobs.run(tmp_path, BEGIN + ONE_AT_A_TIME, options=("--serial",))
    assert ended.value == [["2", False, False], ["2", True, False], ["2", True, False]]
