"""What a function keeps between calls: mutable defaults, captured variables, its attributes.

A task with `acc=[]` once gave what the tasks before it in the same process had left there: other
values with each number of slots, with exit status 0 and without a word. Read next:
`ciel/_defaults.py`, `ciel/_kept_state.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ciel
import jobs
import pytest
import test_kept
from ciel import testing
from ciel._defaults import copied_defaults, original_defaults
from ciel._lint import Source

MODES = ("--serial", "-j1", "-j2")

TASKS = """
import ciel

def note(into, n):
    into.append(n)

@ciel.task
def added(n, acc=[0], *, seen={}):
    acc.append(n)
    seen[n] = len(seen)
    return acc, [*seen.items()]

@ciel.task
def passed(n, acc=[]):
    note(acc, n)
    return acc

@ciel.task
def placed(n, acc=[], /):
    acc += [n]
    return acc

@ciel.task
def again(n, left, acc=[]):
    acc.append(n)
    return again.tail(n + 1, left - 1) if left else acc
"""

FRESH = (
    TASKS
    + """
@ciel.task
def parent(n):
    return [added.spawn(i).result() for i in range(n)]

def main():
    expected = [([0, n], [(n, 0)]) for n in range(4)]
    plain = [added.spawn(n).result() for n in range(4)]
    spawned = ciel.gather([added.spawn(n) for n in range(4)])
    mapped = list(ciel.map(added, range(4)))
    beneath = parent.spawn(4).result()
    print(plain == expected, spawned == expected, mapped == expected, beneath == expected)
    print(str(added(1)), str(added(2)), added.spawn(3).result())
    given = [9]
    print(added.spawn(1, given).result()[0], added.spawn(1, acc=given).result()[0], given)
    print([passed.spawn(n).result() for n in range(3)], [placed.spawn(n).result() for n in (1, 2)])
    print(again.spawn(0, 3).result())
"""
)


@pytest.mark.parametrize("mode", MODES)
def test_each_spawned_call_has_a_copy_of_the_defaults_that_it_changes(
    mode: str, tmp_path: Path
) -> None:
    ended = jobs.run(tmp_path, FRESH, options=(mode,))
    assert ended.status == 0, ended.talk
    assert ended.lines == [
        "True True True True",
        "([0, 1], [(1, 0)]) ([0, 1, 2], [(1, 0), (2, 1)]) ([0, 3], [(3, 0)])",
        "[9, 1] [9, 1] [9]",
        "[[0], [1], [2]] [[1], [2]]",
        "[3]",
    ]
    told = "CielWarning: task added changes its default argument 'acc', of which each spawned call"
    assert ended.talk.count(told) == 1


REPLAYED = (
    TASKS
    + """
import os, signal

@ciel.task(retries=1)
def parent():
    found = [added.spawn(n).result()[0] for n in range(3)]
    if not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return found, added.spawn(7).result()[0]

def main():
    return parent.spawn().result()
"""
)


def test_replayed_calls_have_the_same_defaults(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, REPLAYED)
    assert ended.value == [[[0, 0], [0, 1], [0, 2]], [0, 7]]


PLAIN_BEFORE = """
import ciel, library

@ciel.task
def calls(n):
    return library.added(n), library.added.spawn(n).result()

def main():
    return [calls.spawn(n).result()[1] for n in range(6)]
"""


def test_plain_calls_do_not_change_what_a_task_is(tmp_path: Path) -> None:
    """A plain call that had changed the default before the function was first used as a task made
    it another function: its spawn failed with NonDeterministic in some processes.
    """
    jobs.write(tmp_path, TASKS, "library.py")
    for mode in MODES:
        ended = jobs.run(tmp_path, PLAIN_BEFORE, options=(mode,))
        assert ended.value == [[[0, n], [[n, 0]]] for n in range(6)]


CLOSURE = """
import ciel

def made():
    count, seen = 0, []

    @ciel.task
    def counted(n):
        nonlocal count
        count += 1
        seen.append(n)
        return count, seen

    @ciel.task
    def twice(n):
        seen.append(n)
        return twice.tail(n + 1) if n < 3 else seen

    return counted, twice

def main():
    counted, twice = made()
    print(ciel.gather([counted.spawn(n) for n in range(5)]))
    print([twice.spawn(n).result() for n in range(2)])
"""


@pytest.mark.parametrize("mode", MODES)
def test_each_task_has_a_copy_of_what_its_closure_changes(mode: str, tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, CLOSURE, options=(mode,))
    assert ended.status == 0, ended.talk
    assert ended.lines == [str([(1, [n]) for n in range(5)]), "[[3], [3]]"]
    told = "CielWarning: task made.<locals>.counted changes the captured variable 'count'"
    assert told.replace("made.<locals>.", "") in ended.talk


def test_closure_of_the_serial_program_is_a_copy_for_each_task() -> None:
    seen: list[int] = []

    @ciel.task
    def noted(n: int) -> int:
        seen.append(n)  # ciel: ok
        return len(seen)

    with testing.serial():
        assert [noted.spawn(n).result() for n in range(3)] == [1, 1, 1]
    assert seen == []


def _reads(n: int, table: dict[int, int] = {1: 2}) -> int:  # noqa: B006
    return table.get(n, 0) + len(table)


def _changes(n: int, seen: list[int] = [], *, kept: set[int] = {1}) -> int:  # noqa: B006
    seen.append(n)
    kept.add(n)
    return len(seen)


def _locks(n: int, lock: Any = {"held": os.scandir}) -> Any:  # noqa: B006
    lock["n"] = n
    return lock


def test_only_defaults_that_calls_may_change_are_copied() -> None:
    for plain in (_reads, lambda n, m=1, k=(1, 2): n, len):
        assert copied_defaults(plain) is None
    found = copied_defaults(_changes)
    assert found is not None
    assert found.given((1,), {}) == ((1,), {"seen": [], "kept": {1}})
    assert found.given((1, [2]), {"kept": {3}}) == ((1, [2]), {"kept": {3}})
    _changes(5)
    assert found.given((1,), {}) == ((1,), {"seen": [], "kept": {1}})
    assert original_defaults(_changes) == (([],), {"kept": {1}})


STATES = """
import collections, functools, heapq, io, itertools, random, types
import ciel

class Bag:
    def __init__(self):
        self.seen = []

    def add(self, n):
        self.seen.append(n)
        return len(self.seen)

    __call__ = add

def put(seen, n):
    seen.append(n)
    return len(seen)

def of(n, rng=random.Random(0), ids=itertools.cycle([5, 6]), text=io.StringIO(), pair=([],),
       counted=collections.Counter(), space=types.SimpleNamespace(n=0)):
    text.write("x")
    counted.update([1])
    space.n += 1
    pair[0].append(n)
    return rng.random(), next(ids), len(text.getvalue()), counted[1], space.n, len(pair[0])

def main():
    heap, seen, rng, bag = [], [], random.Random(0), Bag()

    def by_heapq(n):
        heapq.heappush(heap, n)
        return len(heap)

    def by_helper(n):
        return put(seen, n)

    def by_rng(n):
        return rng.random()

    def by_call(n):
        return bag(n)

    partial = functools.partial(put, [])
    for work in (of, by_heapq, by_helper, by_rng, by_call, bag.add, bag, partial):
        task = ciel.task(work)
        found = ciel.gather([task.spawn(n) for n in range(6)])
        found += [task.spawn(n).result() for n in range(2)]
        print(len(set(found)))
"""


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_for_the_next_call_in_what_holds_a_state(mode: str, tmp_path: Path) -> None:
    """Only collections that the code itself changes were copied: random numbers, iterators, bound
    methods and what was passed to a helper gave other values with each number of slots."""
    ended = jobs.run(tmp_path, STATES, options=(mode,))
    assert ended.status == 0, ended.talk
    assert ended.lines == ["1"] * 8


def test_mark_of_a_warning_is_no_effect_of_the_task_that_came_first(tmp_path: Path) -> None:
    """The first worker to warn makes a folder in the run's folder: a task there was called impure
    for it, and its result was not kept."""
    job = """
import sys
import ciel

@ciel.task
def added(n, acc=[]):
    print("ran", n, file=sys.stderr)
    acc.append(n)
    return n

def main():
    print(added.spawn(3).result())
"""
    (tmp_path / "job.py").write_text(job)
    ran, printed, told = test_kept.run(tmp_path, "--kept")
    assert (ran, printed) == (["3"], "3\n") and "changes its default argument" in told
    ran, printed, told = test_kept.run(tmp_path, "--kept")
    assert (ran, printed) == ([], "3\n"), told


CHANGES = """
import ciel
from collections import defaultdict

def outer():
    total = 0
    table = {}

    @ciel.task
    def inner(n, into=[]):
        nonlocal total
        total += n
        table[n] = 1
        into = list(into)
        into.append(n)
        return total

    return inner

@ciel.task
def counts(n, seen=set(), found=defaultdict(list), *, last={}, size=3, read=[]):
    seen.add(n)
    found[n].append(n)
    last |= {n: n}
    size += len(read)
    local = []
    local.append(n)
    counts.calls = n
    counts.cache[n] = n
    return counts.spawn(n)

@ciel.task(pure=False)
def silent(n, seen=[]):
    seen.append(n)

@ciel.task
def asked(n, seen=[]):
    seen.append(n)  # ciel: ok

def helper(n, seen=[]):
    seen.append(n)

def main(seen=[]):
    seen.append(1)
"""


def test_lint_finds_changes_of_what_a_task_keeps_between_calls() -> None:
    found = Source(CHANGES, "job.py").findings()
    assert [(one.line, one.message.partition(",")[0]) for one in found] == [
        (12, "task inner changes the captured variable 'total'"),
        (13, "task inner changes the captured variable 'table'"),
        (22, "task counts changes its default argument 'seen'"),
        (23, "task counts changes its default argument 'found'"),
        (24, "task counts changes its default argument 'last'"),
        (28, "task counts changes its attribute counts.calls"),
        (29, "task counts changes its attribute counts.cache"),
    ]
