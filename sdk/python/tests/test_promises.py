"""Sentences of the pages about waiting, failures and determinism, each tried as its reader would.

Most sentences of those pages are tested where their subject is; these had no test.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import jobs
from ciel._globals import PARTS_MAX, fingerprint
from ciel.lint import lint

MODES = ("--serial", "-j1", "-j2")

HEAD = """
import ciel
import os
import signal
import threading
import time

def until(condition):
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)

def mark(file, word):
    with open(file, "a") as marks:
        marks.write(f"{word}\\n")

def marked(file):
    return open(file).read().split() if os.path.exists(file) else []
"""


def run(folder: Path, body: str, mode: str = "-j2") -> jobs.Ended:
    """Runs a program with the words of `HEAD`."""
    return jobs.run(folder, HEAD + body, options=(mode,))


DEEP = """
@ciel.task
def down(n):
    mark("workers", os.getpid())
    return down.spawn(n - 1).result() + 1 if n else 0

def main():
    assert down.spawn(500).result() == 500
    return len(set(marked("workers")))
"""


@pytest.mark.parametrize(("mode", "workers"), [("-j1", 1), ("-j2", 4), ("-j3", 6)])
def test_waiting_tasks_share_at_most_twice_as_many_workers_as_slots(
    mode: str, workers: int, tmp_path: Path
) -> None:
    """The page promised as many processes as there are cores; there were up to twice as many."""
    assert run(tmp_path, DEEP, mode).value <= workers


HANDLERS = """
caught = []

@ciel.task
def other():
    return signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL

@ciel.task
def has(n):
    def own(*_):
        caught.append(n)
    signal.signal(signal.SIGUSR1, own)
    elsewhere = other.spawn().result()
    signal.raise_signal(signal.SIGUSR1)
    return elsewhere and signal.getsignal(signal.SIGUSR1) is own and caught.count(n) == 1

def main():
    return all(ciel.gather([has.spawn(n) for n in range(6)])) and other.spawn().result()
"""


@pytest.mark.parametrize("mode", MODES)
def test_handlers_of_signals_are_switched_out_with_their_strand(mode: str, tmp_path: Path) -> None:
    """'Switching a strand out also saves handlers of signals': six strands share a process."""
    assert run(tmp_path, HANDLERS, mode).value is True


PURE = """
@ciel.task
def value():
    until(lambda: len(marked("parked")) == 8)
    return 1

def began_here():
    parked = (line.split(":") for line in marked("parked"))
    return [n for n, pid in parked if pid == str(os.getpid())]

def is_first_of_several(n):
    home = began_here()
    if len(home) == 1 or str(n) not in home:
        return False
    try:
        os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

def one_is_elsewhere():
    resumed = (line.split(":") for line in marked("resumed"))
    return any(n in began_here() and pid != str(os.getpid()) for n, pid in resumed)

@ciel.task(pure=True)
def waits(n, f: ciel.Future[int]):
    if f"{n}:" not in " ".join(marked("parked")):
        mark("parked", f"{n}:{os.getpid()}")
    f.result()
    mark("resumed", f"{n}:{os.getpid()}")
    if is_first_of_several(n):
        until(one_is_elsewhere)
    return n

def main():
    f = value.spawn()
    return ciel.gather([waits.spawn(n, f) for n in range(8)])
"""


def test_pure_strand_that_is_ready_in_a_busy_worker_is_replayed_in_another(tmp_path: Path) -> None:
    """'A pure task's strand is replayed in another worker as soon as waiting has taken 5 ms longer
    than its replay would take': the first strand to resume ends only when that has happened.

    A worker may have begun a single strand: its first strand once waited for a second one, in vain.
    """
    ended = run(tmp_path, PURE)
    assert ended.value == list(range(8)), ended.talk


THREADS = """
@ciel.task
def value():
    until(lambda: os.path.exists("open"))
    return 1

@ciel.task
def waits(n, f: ciel.Future[int]):
    mark("begun", n)
    return f.result() + n

@ciel.task
def leaves():
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()

def main():
    f = value.spawn()
    waiting = []
    for n in range(12):
        waiting.append(waits.spawn(n, f))
        until(lambda: marked("begun").count(str(n)))
        leaves.spawn().result()
    mark("open", "now")
    assert ciel.gather(waiting) == list(range(1, 13))
    return [marked("begun").count(str(n)) for n in range(12)]
"""


def test_oldest_of_many_workers_that_are_to_end_are_ended_and_their_strands_replayed(
    tmp_path: Path,
) -> None:
    """'More such workers keep strands than there may be workers: the strands of the oldest are
    replayed to bound the number of processes. A warning names each task that leaves threads.'"""
    ended = run(tmp_path, THREADS)
    begun = ended.value
    assert begun[0] == 2 and begun[-1] == 1 and set(begun) == {1, 2}
    assert begun == sorted(begun, reverse=True), "the oldest are replayed"
    assert len(re.findall(r"threads of leaves@\w{8} outlive it", ended.talk)) == 12


INPUTS = """
@ciel.task
def drawn():
    return [ciel.task_rng().random(), ciel.entropy(16).hex()]

def main():
    return drawn.spawn().result()
"""


def test_task_rng_is_the_same_in_every_folder_and_entropy_new_in_every_run(tmp_path: Path) -> None:
    """'A generator, the same in every run and in every folder'; '`entropy` is new in every run'."""
    found = []
    for name, mode in (('a', '-j2'), ('a', '-j1'), ('b', '-j2'), ('b', '--serial')):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        found.append(run(folder, INPUTS, mode).value)
    assert len({number for number, _ in found}) == 1
    assert len({drawn for _, drawn in found}) == len(found)


KINDS = """
@ciel.task(retries=2)
def error():
    mark("error", "x")
    raise ValueError("no")

@ciel.task(retries=2)
def late():
    mark("late", "x")
    raise ciel.Timeout("as a time limit would")

@ciel.task(retries=2)
def large():
    mark("large", "x")
    raise MemoryError

@ciel.task(retries=2)
def no_bytes():
    mark("no_bytes", "x")
    return threading.Lock()

@ciel.task(retries=2)
def refused():
    mark("refused", "x")
    error.options(cores=9999).spawn().result()

def main():
    for task in (error, late, large, no_bytes, refused):
        try:
            task.spawn().result()
        except Exception:
            pass
    return [len(marked(name)) for name in ("error", "late", "large", "no_bytes", "refused")]
"""


@pytest.mark.parametrize("mode", MODES)
def test_kinds_of_failures_are_retried_as_their_table_says(mode: str, tmp_path: Path) -> None:
    """'Whether a task with retries left is retried': yes, yes, yes; no, no."""
    assert run(tmp_path, KINDS, mode).value == [3, 3, 3, 1, 1]


DIFFERS = """
@ciel.task
def leaf(n):
    print("which makes it a task")
    return n

@ciel.task(retries=2)
def differs():
    mark("begun", "x")
    n = len(marked("begun"))
    leaf.spawn(n).result()
    if n == 1:
        os.kill(os.getpid(), signal.SIGKILL)

def main():
    try:
        differs.spawn().result()
    except ciel.NonDeterministic:
        return len(marked("begun"))
"""


def test_task_that_differs_in_its_replay_is_not_retried(tmp_path: Path) -> None:
    """'The task is not retried, even if it has retries left': one run, and one replay."""
    assert run(tmp_path, DIFFERS).value == 2


FIRST = """
@ciel.task
def good():
    return 1

@ciel.task
def bad():
    until(lambda: os.path.exists("answered"))
    raise ValueError("nobody reads this")

def main():
    done, rest = ciel.wait([good.spawn(), bad.spawn()], count="first")
    mark("answered", "x")
    return [len(done), len(rest)]
"""


def test_waiting_for_the_first_of_several_counts_for_each_of_them(tmp_path: Path) -> None:
    """'To wait for the first of several results counts for each of them': no failure of the job,
    although the other one fails later and nobody reads it."""
    assert run(tmp_path, FIRST).value == [1, 1]


LAZY = """
@ciel.task(lazy=True)
def lazy(n):
    mark("ran", n)
    return n

def main():
    ciel.wait([lazy.spawn(1), lazy.spawn(2)], count="first")
    until(lambda: len(marked("ran")) == 2)
    return sorted(marked("ran"))
"""


def test_waiting_for_the_first_of_several_demands_all_of_them(tmp_path: Path) -> None:
    """'In each case the task has demanded all of them: lazy ones run.'"""
    assert run(tmp_path, LAZY).value == ["1", "2"]


EQUAL = """
@ciel.task(pure=True)
def slow(n):
    mark("begun", n)
    until(lambda: os.path.exists("open"))
    return n

@ciel.task
def other():
    same = slow.spawn(1)
    ciel.wait([same], timeout=0)  # asks the engine, so the call is there
    mark("spawned", "x")
    return same.result()

def main():
    mine = slow.spawn(1)
    theirs = other.spawn()
    until(lambda: marked("begun") and marked("spawned"))
    cancelled = mine.cancel()
    mark("open", "x")
    return [cancelled, mine.result(), theirs.result(), len(marked("begun"))]
"""


def test_task_whose_result_an_equal_call_takes_is_not_cancelled(tmp_path: Path) -> None:
    """'A task continues, and `cancel` returns `false`, if an equal call takes its result.'

    The worker once said that it had spawned before the engine had heard of that.
    """
    assert run(tmp_path, EQUAL, '-j3').value == [False, 1, 1, 1]


QUIET = """
@ciel.task(pure=False)
def effects():
    return time.time() > 0

@ciel.task
def looks():
    exists = os.path.exists("nowhere")
    effects.spawn().result()
    return exists

def main():
    return looks.spawn().result()
"""


def test_run_does_not_warn_of_what_the_page_says_it_does_not(tmp_path: Path) -> None:
    """'There are no warnings about its code' (of a task with `pure=False`); 'for these there is no
    warning while a job runs' (what only a replay would find differently), which lint finds."""
    ended = run(tmp_path, QUIET)
    assert ended.value is False and "CielWarning" not in ended.talk
    found = lint(HEAD + QUIET, "job.py")
    assert any("os.path.exists" in str(finding) for finding in found), found


def seen(value: Any, change: Callable[[Any, int], None], places: Iterable[int]) -> set[int]:
    """The places at which a change of the value changes its fingerprint."""
    before = fingerprint([value], PARTS_MAX)
    found = set()
    for place in places:
        kept = value[place]
        change(value, place)
        if fingerprint([value], PARTS_MAX) != before:
            found.add(place)
        value[place] = kept
    return found


def test_change_of_a_part_that_the_fingerprint_does_not_look_at_is_not_noticed() -> None:
    """'Up to 16 elements (evenly spaced ones of a long list, those at the two ends of a large
    dictionary)… A change of another part is not noticed.'"""

    def change(value: Any, place: int) -> None:
        value[place] = "changed"

    found = sorted(seen(list(range(1600)), change, range(1600)))
    steps = {after - before for before, after in pairwise(found)}
    assert len(found) == 16 and len(steps) == 1, found
    found = sorted(seen({n: n for n in range(1600)}, change, range(1600)))
    assert 2 <= len(found) <= 16, found
    assert found[0] == 0 and found[-1] == 1599 and not {*found} & {*range(16, 1584)}


KILLED = """#!/bin/sh
echo started >> starts
test $(wc -l < starts) -gt {kills} || kill -9 $$
exec {python} "$@"
"""


@pytest.mark.parametrize("kills", [3, 4])
def test_worker_that_is_killed_while_it_starts_is_started_again_three_times(
    kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """'A worker that is killed while it starts is started again, at most three times in a row; no
    task is lost with it.'"""
    python = jobs.write(tmp_path, KILLED.format(kills=kills, python=sys.executable), "python")
    python.chmod(0o755)
    monkeypatch.setenv("CIEL_PYTHON", str(python))
    ended = run(tmp_path, "def main():\n    return 7\n", "-j1")
    assert (tmp_path / "starts").read_text().count("started") == 4, ended.talk
    if kills == 3:
        assert ended.value == 7
    else:
        assert ended.status == 1, ended.talk
