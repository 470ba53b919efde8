"""Children that run in place: what a program shows is what it shows if all of them are tasks."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import pytest

import jobs
from beats import stop_hearts
from conditions import until

TREE = '''
import random
import sys
import ciel

@ciel.task
def node(seed, depth):
    r = random.Random(seed)
    total = seed % 97
    children = []
    for number in range(r.randrange(4) if depth else 0):
        what = r.randrange(7)
        children.append(node.spawn(r.randrange(1 << 30), depth - 1))
        if what == 0:
            print("node", seed, number)
        if what == 1:
            total += children[r.randrange(len(children))].result()
        if what == 2:
            total += sum(child.result() for child in children)
        if what == 3:
            children.pop(0)
        if what == 4:
            for step in range(r.randrange(60000)):
                total = (total * 31 + step) % 1000003
        if what == 5:
            total += sum(node.spawn(9, 0, ).result() for _ in range(2))
    if r.randrange(12) == 0 and depth < 4:
        raise ValueError(f"bad {seed}")
    for child in children:
        try:
            total += child.result()
        except ValueError as error:
            total += 7
            print("caught", error)
    if r.randrange(5) == 0:
        print("end", seed, depth, ciel.task_rng().randrange(1000))
    return total

def main(*seeds):
    for seed in seeds:
        try:
            print(seed, node.spawn(int(seed), 6).result())
        except ValueError as error:
            print(seed, error)
'''


def _run(job: Path, *args: str, options: tuple[str, ...]) -> jobs.Ended:
    return jobs.end_of(jobs.start(job, *args, options=options))


def _seeds(first: int, count: int) -> list[str]:
    return [str(seed) for seed in range(first, first + count)]


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_random_trees_show_what_the_serial_program_shows(slots: str, tmp_path: Path) -> None:
    job = jobs.write(tmp_path, TREE)
    seeds = _seeds(100, 40)
    serial = _run(job, *seeds, options=("--serial", "--keep-going"))
    ended = _run(job, *seeds, options=(slots, "--keep-going"))
    assert (ended.status, ended.printed) == (serial.status, serial.printed)
    assert len(serial.lines) > 100


FIB = '''
import ciel

@ciel.task
def fib(n):
    if n < 2:
        return n
    first, second = fib.spawn(n - 1), fib.spawn(n - 2)
    return first.result() + second.result()

def main(n):
    return fib.spawn(int(n)).result()
'''


def test_children_that_are_gathered_run_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def add(a, b):
    return a + b

@ciel.task
def tree(n):
    if n == 0:
        return 1
    with ciel.scope():
        left, right = tree.spawn(n - 1), tree.spawn(n - 1)
    return sum(ciel.gather(left, right)) + sum(ciel.map(add, range(2), range(2)))

def main():
    return tree.spawn(6).result()
""",
    )
    assert _run(job, options=("-j1",)).value == 64 + 63 * 2
    assert _tasks(tmp_path) == 2, "main and its child, of 255"


def test_children_that_only_compute_are_no_tasks_on_one_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for those that see more than ten heartbeats, of which there are none here."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, FIB)
    assert _run(job, "15", options=("-j1",)).value == 610
    assert _tasks(tmp_path) == 2, "main and its child, of 1,974"


@pytest.mark.parametrize(("slots", "in_place"), [("-j1", {1972}), ("-j2", range(1, 1973))])
def test_children_in_place_are_counted_with_the_tasks(
    slots: str, in_place: Container[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the first one without a heartbeat; how many at heartbeats depends on the machine."""
    if slots == "-j1":
        stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, FIB)
    assert _run(job, "15", options=(slots,)).value == 610
    talk = jobs.command(tmp_path, "ps", "--all").printed.decode()
    (line,) = [line for line in talk.splitlines() if "of them in place" in line]
    function, count, *_ = line.split()
    assert (function, count) == ("fib", "1973")
    assert int(line.split()[-5]) in in_place


def _tasks(folder: Path) -> int:
    lines = jobs.command(folder, "ps", "--all").printed.decode().splitlines()
    return sum(1 for line in lines if line.startswith("  ") and "@" in line.split()[0])


def test_children_become_tasks_while_they_compute_if_a_core_is_idle(tmp_path: Path) -> None:
    """Two children of a tenth of a second ran one after the other while a core was idle."""
    job = jobs.write(
        tmp_path,
        """
import time
import ciel

@ciel.task
def busy(n):
    with open(f"begun{n}", "w"):
        pass
    end = time.monotonic() + 600
    while not os.path.exists(f"begun{1 - n}") and time.monotonic() < end:
        sum(range(1000))
    return os.path.exists(f"begun{1 - n}")

@ciel.task
def both():
    first, second = busy.spawn(0), busy.spawn(1)
    return first.result() and second.result()

def main():
    return both.spawn().result()
""".replace("import time", "import os\nimport time", 1),
    )
    assert _run(job, options=("-j2",)).value is True


COPIES = '''
import ciel

class Point:
    def __init__(self, x):
        self.x = x
    def __reduce__(self):
        return (Point, (self.x + 100,))

@ciel.task
def grows(values, *, by):
    values.append(by)
    return values

@ciel.task
def moves(point):
    return point, [point]

@ciel.task
def parent():
    values = [1, 2]
    future = grows.spawn(values, by=3)
    values.append("after the spawn")
    first, second = future.result(), future.result()
    first.append("mine")
    point, inside = moves.spawn(Point(0)).result()
    same = point is inside[0]
    return [values, first, second, point.x, same, grows.spawn(first, by=4).result()]

def main():
    return parent.spawn().result()
'''


def test_arguments_and_results_are_copies_though_nobody_else_sees_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, COPIES)
    shown = _run(job, options=("-j1",)).value
    assert _tasks(tmp_path) == 2, "main and parent"
    assert shown == _run(job, options=("--serial",)).value
    assert shown[:3] == [[1, 2, "after the spawn"], [1, 2, 3, "mine"], [1, 2, 3]]


def test_child_has_a_stack_of_its_own(tmp_path: Path) -> None:
    """A child far below others had what they had left of the recursion limit."""
    job = jobs.write(
        tmp_path,
        """
import ciel

def inner(n):
    return 0 if n == 0 else 1 + inner(n - 1)

@ciel.task
def down(n):
    return inner(900) if n == 0 else down.spawn(n - 1).result() + inner(900)

def main():
    return down.spawn(250).result()
""",
    )
    assert _run(job, options=("-j1",)).value == 251 * 900


def test_child_that_reads_a_changeable_global_is_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place it would see what its parent has changed, and elsewhere not."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(
        tmp_path,
        """
import ciel

TABLE = {"one": 1}
LIMIT = 5

@ciel.task
def reads(n):
    return TABLE["one"] + n

@ciel.task
def reads_a_number(n):
    return LIMIT + n

@ciel.task
def parent():
    return reads.spawn(1).result() + reads_a_number.spawn(1).result()

def main():
    return parent.spawn().result()
""",
    )
    assert _run(job, options=("-j1",)).value == 8
    assert _tasks(tmp_path) >= 3

CHANGES = '''
import os
import signal
import sys
import io
import contextlib
import ciel

@ciel.task
def changes(n):
    os.chdir("/")
    os.environ["IN_PLACE"] = str(n)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    sys.stdout = io.StringIO()
    return n

@ciel.task
def looks(n):
    return str((os.environ.get("IN_PLACE"), os.getcwd() == "/", os.environ["CIEL_TASK_SEED"],
                signal.getsignal(signal.SIGALRM) == signal.SIG_DFL))

@ciel.task
def parent():
    os.environ["IN_PLACE"] = "parent"
    changes.spawn(1).result()
    mine = str((os.environ.get("IN_PLACE"), os.getcwd() == "/", os.environ["CIEL_TASK_SEED"],
                signal.getsignal(signal.SIGALRM) == signal.SIG_DFL))
    with contextlib.redirect_stdout(io.StringIO()):
        inside = looks.spawn(2).result()
    print("shown")
    return [mine, inside, looks.spawn(3).result()]

def main():
    return parent.spawn().result()
'''


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_state_of_the_process_is_that_of_each_strand(slots: str, tmp_path: Path) -> None:
    job = jobs.write(tmp_path, CHANGES)
    serial = _run(job, options=("--serial",))
    ended = _run(job, options=(slots,))
    assert (ended.printed, ended.status) == (serial.printed, 0)
    assert ended.lines[0] == "shown"


def test_result_of_a_child_in_place_can_be_passed_on(tmp_path: Path) -> None:
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def add(a, b):
    return a + b

@ciel.task
def inside(pair: list[ciel.Future[int]]) -> int:
    return sum(each.result() for each in pair)

@ciel.task
def parent():
    a, b = add.spawn(1, 2), add.spawn(3, 4)
    seen = a.result() + b.result()
    return [seen, add.spawn(a, b).result(), inside.spawn([a, b]).result(), a, a.done(), a.cancel()]

def main():
    made = parent.spawn().result()
    return [each.result() if isinstance(each, ciel.Future) else each for each in made]
""",
    )
    expected = _run(job, options=("--serial",)).value
    assert _run(job, options=("-j1",)).value == expected == [10, 10, 10, 3, True, False]


def test_successor_in_place_that_gets_a_failed_result_fails_with_it(tmp_path: Path) -> None:
    """A child that ran in place and handed over to a task with a failed argument failed with an
    internal exception instead of that argument's failure: only tasks had it unwrapped.
    """
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def bad():
    raise ValueError("no value")

@ciel.task
def after(value):
    return value

@ciel.task
def first():
    failed = bad.spawn()
    try:
        failed.result()
    except ValueError:
        pass
    return after.tail(failed)

@ciel.task
def outer():
    try:
        first.spawn().result()
    except Exception as error:
        return repr(error)

def main():
    return outer.spawn().result()
""",
    )
    for options in (("--serial",), ("-j1",), ("-j2",)):
        assert _run(job, options=options).value == "ValueError('no value')"


def test_crash_of_a_child_is_that_of_the_child(tmp_path: Path) -> None:
    """A child that ends its process in place takes its parent with it: both are replayed, and the
    failure is the child's.
    """
    job = jobs.write(
        tmp_path,
        """
import os
import ciel

@ciel.task
def crashes(n):
    os._exit(n)

@ciel.task
def parent():
    try:
        return crashes.spawn(7).result()
    except ciel.CielError as error:
        return str(error)

def main():
    return parent.spawn().result()
""",
    )
    ended = _run(job, options=("-j1",))
    assert "crashes" in str(ended.value) or "exit status 7" in str(ended.value), ended


def test_cancelled_parent_ends_with_the_child_that_runs_in_it(tmp_path: Path) -> None:
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def endless(n):
    with open("begun", "w"):
        pass
    while True:
        n += 1

@ciel.task
def parent():
    return endless.spawn(1).result()

def main():
    try:
        return parent.spawn().result()
    except ciel.Cancelled as error:
        return "cancelled"
""",
    )
    process = jobs.start(job, options=("-j1",))
    until(lambda: (tmp_path / "begun").exists())
    assert jobs.command(tmp_path, "cancel", "parent").status == 0
    assert jobs.end_of(process).value == "cancelled"


def test_child_is_refused_a_wait_where_its_parent_would_be(tmp_path: Path) -> None:
    job = jobs.write(
        tmp_path,
        """
import asyncio
import threading
import ciel

@ciel.task
def child(n):
    return n

@ciel.task
def parent():
    told = []
    async def inside():
        try:
            child.spawn(1).result()
        except ciel.WaitError as error:
            told.append(str(error))
    asyncio.run(inside())
    future = child.spawn(2)
    def elsewhere():
        try:
            future.result()
        except ciel.WaitError as error:
            told.append(str(error))
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    return told

def main():
    return parent.spawn().result()
""",
    )
    told = _run(job, options=("-j1",)).value
    assert len(told) == 2
    assert "running event loop" in told[0]
    assert "thread of its own" in told[1]


def test_generator_that_a_task_spawns_is_a_task(tmp_path: Path) -> None:
    """As a call in place it gave the generator itself, which cannot be copied."""
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def count(n):
    for i in range(n):
        yield i

@ciel.task(joined=True)
def lines(n):
    for i in range(n):
        yield b"%d\\n" % i

@ciel.task
def parent():
    shown = []
    for n in range(3):
        shown.append(list(count.spawn(n).result()))
        shown.append(lines.spawn(n).result().decode())
        first = count.spawn(n)
        shown.append([*first.stream()])
    return shown

def main():
    return parent.spawn().result()
""",
    )
    counts = [[], [0], [0, 1]]
    texts = ["", "0\n", "0\n1\n"]
    expected = [part for n in range(3) for part in (counts[n], texts[n], counts[n])]
    assert _run(job, options=("-j1",)).value == expected


def test_many_children_and_deep_ones_run(tmp_path: Path) -> None:
    job = jobs.write(
        tmp_path,
        """
import ciel

@ciel.task
def one(n):
    return n

@ciel.task
def down(n):
    return 0 if n == 0 else down.spawn(n - 1).result() + 1

@ciel.task
def wide(n):
    return sum(future.result() for future in [one.spawn(i) for i in range(n)])

def main():
    return [down.spawn(1500).result(), wide.spawn(3000).result()]
""",
    )
    assert _run(job, options=("-j2",)).value == [1500, 3000 * 2999 // 2]


def test_killed_runs_resume_to_the_same_end(tmp_path: Path) -> None:
    """The engine is killed at random moments, with children in place and promoted."""
    job = jobs.write(tmp_path, TREE)
    seeds = _seeds(500, 60)
    serial = _run(job, *seeds, options=("--serial", "--keep-going"))
    ended = jobs.resumed(job, *seeds, options=("-j2", "--keep-going"), seed=5, kills=6, lines=30)
    assert (ended.status, ended.printed) == (serial.status, serial.printed)
