"""Children that native code keeps, begins and ends: they do what all tasks do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import jobs
from beats import stop_hearts


def _run(job: Path, *args: str, options: tuple[str, ...]) -> jobs.Ended:
    return jobs.end_of(jobs.start(job, *args, options=options))


BEHAVES = '''
import contextvars
import os
import subprocess
import sys
import threading
import ciel

KEPT = []
SET = contextvars.ContextVar("SET", default="unset")

@ciel.task
def plain(n, text="", *more):
    return n

@ciel.task
def named(first, text="", **others):
    others["seen"] = text
    return (first, tuple(sorted(others)), ciel.task_rng().randrange(1000) if first % 2 else 0)

def refused(n):
    try:
        return named.spawn(n, first=n).result()
    except TypeError as error:
        return str(error)

@ciel.task
def behaves(how, n):
    if how == "prints":
        print("printed", n)
    elif how == "writes":
        os.write(1, b"written %d\\n" % n)
    elif how == "commands":
        subprocess.run(["echo", "commanded", str(n)], check=True)
    elif how == "raises":
        raise ValueError(f"raised {n}")
    elif how == "names":
        return [named.spawn(n, text="text").result(), named.spawn(first=n, other=n).result(),
                named.spawn(n, **{"text": "a", "more": (n, "b")}).result(),
                named.spawn(n, changed=[n]).result(), refused(n)]
    elif how == "lists":
        return [n, {"n": n}]
    elif how == "tails":
        return plain.tail(n)
    elif how == "changes":
        os.environ["CHANGED"] = str(n)
        os.chdir("/")
        sys.stdout.write(f"{SET.get()} ")
        SET.set("set")
    elif how == "threads":
        thread = threading.Thread(target=print, args=("in a thread", n))
        thread.start()
        thread.join()
    elif how == "random":
        return [ciel.task_rng().randrange(1000), os.environ["CIEL_TASK_SEED"]]
    elif how == "leaves":
        plain.spawn(n)
    elif how == "asks":
        return plain.spawn(ciel.now() > 0).result() + sum(ciel.gather(plain.spawn(1)))
    elif how == "passes":
        first = plain.spawn(n)
        first.result()
        return plain.spawn(first).result() + first.result()
    elif how == "hands":
        return plain.spawn(n)
    elif how == "scopes":
        with ciel.scope():
            plain.spawn(n)
    elif how == "large":
        return "x" * 5000
    elif how == "numbers":
        return -(7 ** (40 + n)), plain.spawn(1 << 100).result(), plain.spawn(7**2000).result()
    elif how == "tuples":
        shown = plain.spawn((n, ("text", b"bytes", ()), 1.5)).result()
        return shown, plain.spawn(((((((((n,),),),),),),),)).result(), ("x" * 3000, "y" * 3000)
    elif how == "complexes":
        first = plain.spawn(complex(n, 1), "complex").result()
        second = plain.spawn(2j, "text", complex(n, n)).result()
        return str(first + second), str(plain.spawn(n=3j).result())
    elif how == "inside":
        inside = plain.spawn((n, [n])).result()
        inside[1].append(n)
        return inside
    return (os.environ.get("CHANGED"), os.getcwd() == "/", SET.get(), n)

HOW = ["plain", "prints", "writes", "commands", "raises", "lists", "tails", "changes", "threads",
       "random", "leaves", "asks", "passes", "hands", "scopes", "large", "numbers", "tuples",
       "complexes", "inside", "names"]

@ciel.task
def parent(first):
    shown = []
    for how in HOW:
        for n in range(first, first + 3):
            shown.append(plain.spawn(n).result())
            future = behaves.spawn(how, n)
            later = plain.spawn(n, "text", None, 1.5, b"bytes", True)
            try:
                found = future.result()
                found = found.result() if isinstance(found, ciel.Future) else found
                shown.append(found)
            except ValueError as error:
                shown.append((str(error), error.__context__, len(error.__notes__)))
            shown.append(later.result())
            shown.append(later.result())
    return shown

def main():
    return [parent.spawn(0).result(), parent.spawn(7).result()]
'''


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_child_that_begins_natively_does_what_any_task_does(slots: str, tmp_path: Path) -> None:
    """The first calls of a function are kept by Python, further ones natively."""
    job = jobs.write(tmp_path, BEHAVES)
    serial = _run(job, options=("--serial",))
    ended = _run(job, options=(slots,))
    assert (ended.printed, ended.status) == (serial.printed, 0), ended.talk


def test_future_that_outlives_its_strand_names_it(tmp_path: Path) -> None:
    """A strand that has ended natively has no object that could say its name."""
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def one(n):
    return n

@ciel.task
def leaves(n, kept=set()):
    future = one.spawn(n)
    future.result()
    Left.futures.append(future)
    return n

class Left:
    futures = []

@ciel.task
def parent():
    told = []
    for n in range(4):
        leaves.spawn(n).result()
    for future in Left.futures:
        try:
            future.result()
        except ciel.WaitError as error:
            told.append(str(error))
    return told

def main():
    return parent.spawn().result()
""",
    )
    told = _run(job, options=("-j1",)).value
    assert len(told) == 4
    assert all("belongs to leaves" in words for words in told), told


def test_memory_of_children_that_began_natively_is_given_back(tmp_path: Path) -> None:
    """A child's future led back to its strand through native code, of which the garbage collector
    saw nothing: what referred to such a future, and was referred to by the strand, stayed for ever.
    """
    job = jobs.write(
        tmp_path,
        """
import gc
import weakref
import ciel

@ciel.task
def one(n):
    return n

class Made:
    generators = []

@ciel.task
def child(n):
    generator = ciel.task_rng()
    generator.future = one.spawn(n)
    Made.generators.append(weakref.ref(generator))
    return generator.future.result()

@ciel.task
def parent():
    found = sum(child.spawn(n).result() for n in range(10)) + one.spawn(0).result()
    gc.collect()
    return [found, len(Made.generators), sum(made() is not None for made in Made.generators)]

def main():
    return parent.spawn().result()
""",
    )
    assert _run(job, options=("-j1",)).value == [45, 10, 0]


SEEDS = """
import os
import subprocess
import ciel

KEY = "CIEL_TASK_SEED"

@ciel.task
def plain(n):
    return n

def told():
    printed = subprocess.run(["printenv", KEY], capture_output=True, text=True, check=True)
    assert KEY in os.environ and f"'{KEY}': '{os.environ[KEY]}'" in repr(os.environ)
    assert os.environ[KEY] in os.environ.values()
    return {
        os.environ[KEY], os.environ.get(KEY), dict(os.environ)[KEY], os.environ.copy()[KEY],
        dict(os.environ.items())[KEY], os.environb[KEY.encode()].decode(), printed.stdout.strip(),
    }

@ciel.task
def child(n):
    before = told()
    plain.spawn(n).result()
    assert told() == before
    if n % 3 == 0:
        os.environ[KEY] = "of the task"
        assert told() == {"of the task"}
    return sorted(before)

@ciel.task
def parent():
    mine, found = told(), []
    for n in range(7):
        plain.spawn(n).result()
        found += child.spawn(n).result()
        assert told() == mine
    return [*found, *mine]

def main():
    return parent.spawn().result()
"""


def test_environment_shows_the_seed_of_a_native_child_however_it_is_read(tmp_path: Path) -> None:
    """Such a child tells its seed to the environment of the process, and not to `os.environ`."""
    job = jobs.write(tmp_path, SEEDS)
    serial = _run(job, options=("--serial",))
    ended = _run(job, options=("-j1",))
    assert (ended.printed, ended.status) == (serial.printed, 0), ended.talk
    assert len(set(ended.value)) == 8


BYTES_MAX = 400
"""Bytes that a spawned call keeps, at most, with its arguments."""


def test_spawned_call_that_has_not_begun_keeps_few_bytes(tmp_path: Path) -> None:
    """As many as a strand keeps without making tasks of them."""
    job = jobs.write(
        tmp_path,
        """
import os
import ciel

PAGE_BYTES = os.sysconf("SC_PAGESIZE")

@ciel.task
def add(a, b):
    return a + b

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE_BYTES

@ciel.task
def parent(count):
    [add.spawn(n, n).result() for n in range(10)]
    futures = [None] * count
    before = resident()
    for n in range(count):
        futures[n] = add.spawn(n, n)
    kept = resident() - before
    return [kept / count, sum(future.result() for future in futures)]

def main():
    return parent.spawn(1000).result()
""",
    )
    kept_bytes, total = _run(job, options=("-j1",)).value
    assert total == 999_000
    assert 0 < kept_bytes <= BYTES_MAX


CHAIN_COUNT = int(os.environ.get("CIEL_CHAIN_COUNT", "20000"))
"""Calls of the long chain; `CIEL_CHAIN_COUNT=1000000` is for an optimised build."""

GROWTH_KIB_MAX = 2 << 10
"""Growth of a worker's memory while it runs the chain, at most."""


def test_long_chain_of_calls_in_place_keeps_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call needs the result of the one before it, and leaves nothing behind."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def add(a, b):
    return a + b

def peak_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))

def chain(count):
    value = 0
    for n in range(count):
        value = add.spawn(value, n % 2).result()
    return value

@ciel.task
def parent(count):
    chain(1000)
    before = peak_kib()
    return [chain(count), peak_kib() - before]

def main(count):
    return parent.spawn(int(count)).result()
""",
    )
    value, growth_kib = _run(job, str(CHAIN_COUNT), options=("-j1",)).value
    assert value == CHAIN_COUNT // 2
    assert growth_kib < GROWTH_KIB_MAX


LINES = """
import ciel

@ciel.task
def fails(n):
    if n >= 0:
        raise ValueError(n)
    return n

def failed(future):
    try:
        return future.result()
    except ValueError as error:
        return error.args[0]

@ciel.task
def parent():
    found = []
    for n in range(3):
        fails.spawn(-1).result()
        future = fails.spawn(n)
        found.append(failed(fails.spawn(n)))
        found.append(failed(future))
        try:
            found += ciel.map(fails, [-1, -2, n])
        except ValueError:
            pass
    return found

def main():
    return parent.spawn().result()
"""


def test_natively_spawned_tasks_have_the_lines_of_their_spawns(tmp_path: Path) -> None:
    """A line is looked up once for each place of a function's code; `ciel.map` gives its own."""
    job = jobs.write(tmp_path, LINES)
    assert _run(job, options=("-j1",)).value == [0, 0, -1, -2, 1, 1, -1, -2, 2, 2, -1, -2]
    told = json.loads(jobs.command(tmp_path, "ps", "--all", "--json").printed)
    places = [task["place"] for task in told["tasks"] if task["what"] == "fails"]
    lines = [1 + LINES.splitlines().index(text) for text in WHERE]
    failed = [place for place in places if int(place.rpartition(":")[2]) in lines]
    assert sorted(failed) == sorted(3 * [f"{job}:{line}" for line in lines]), places


WHERE = [
    "        future = fails.spawn(n)",
    "        found.append(failed(fails.spawn(n)))",
    "            found += ciel.map(fails, [-1, -2, n])",
]
"""The lines at which calls are spawned that fail."""


def test_calls_with_named_arguments_run_in_place_natively(tmp_path: Path) -> None:
    """They took the way through Python, at nine times the cost."""
    job = jobs.write(
        tmp_path,
        """
import ciel
from ciel import _keeping_strand

class Counted:
    kept = 0

@ciel.task
def add(a, b=1, *, c):
    return a + b + c

def counting(keep):
    def counted(*args):
        Counted.kept += 1
        return keep(*args)
    return counted

@ciel.task
def parent():
    _keeping_strand.KeepingStrand._keep = counting(_keeping_strand.KeepingStrand._keep)
    found = sum(add.spawn(n, c=n).result() + add.spawn(b=n, a=n, c=1).result() for n in range(500))
    return [found, Counted.kept < 500]

def main():
    return parent.spawn().result()
""",
    )
    assert _run(job, options=("-j1",)).value == [500_000, True]


def test_map_runs_calls_in_place_natively(tmp_path: Path) -> None:
    """Each call of `ciel.map` took the way through Python, at several times the cost."""
    job = jobs.write(
        tmp_path,
        """
import ciel
from ciel import _keeping_strand

class Counted:
    kept = 0

@ciel.task
def add(a, b):
    return a + b

def counting(keep):
    def counted(*args):
        Counted.kept += 1
        return keep(*args)
    return counted

@ciel.task
def parent():
    _keeping_strand.KeepingStrand._keep = counting(_keeping_strand.KeepingStrand._keep)
    found = sum(ciel.map(add, range(1000), range(1000)))
    return [found, Counted.kept < 500]

def main():
    return parent.spawn().result()
""",
    )
    assert _run(job, options=("-j1",)).value == [999_000, True]
