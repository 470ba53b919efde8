"""Calls that idle workers compute for the strand that keeps them: nobody sees where that was.

Calls are given away here however short they are. What a job shows never depends on it, so that
others have computed any is waited for. Read next: `sdk/python/ciel/_assist.py`,
`crates/ciel-python/src/assist.rs`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from beats import give_all
from short_tasks import SHORT_TASKS
from test_in_place_of_main import PATIENT, _counts
from test_long_lists import KEPT_MAX, LISTS

MAPS = """
import os
import random
import signal
import ciel
""" + SHORT_TASKS + """
@ciel.task
def pairs(x, y=2):
    return x, (str(y), x * 0.5)

@ciel.task
def fails_once(x):
    if x == 149:
        raise ValueError(f"bad {x}")
    return x + 1

@ciel.task
def dives_once(x):
    return deep(100000 if x == 154 else x % 50)

# A failure that nobody asks for is one of the job.
FAILING = [fails_once, dives_once]
ALL = [plain, plain, plain, pairs, large, lists, long, says, spawns, *FAILING]

def items(chance, count):
    for item in range(count):
        if chance.random() < 0.01:
            print("asked for", item)
        yield item

def taken(values):
    try:
        for value in values:
            yield len(str(value))
    except (Exception, SystemExit) as error:
        yield len(str(error)[:3])

def loop(seed, count):
    chance, x = random.Random(seed), 1
    for number in range(count):
        if number == count // 2:
            stop()
        task = chance.choice(ALL)
        length, window = chance.choice([1, 40, 300, 900]), chance.choice([1, 7, 64, 256])
        values = ciel.map(task, items(chance, length), window=window)
        for place, value in enumerate(taken(values)):
            x = (x * 7 + value) % 1009
            if chance.random() < 0.003:
                print("at", place, x)
            if chance.random() < 0.001 and task not in FAILING:
                break
        print("mapped", number, task.label, x)
    return x

def stop():
    if Dies.now and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)

class Dies:
    now = False

@ciel.task
def inner(seed, count, dies):
    Dies.now = dies > 0
    return loop(seed, count)

def main(where, seed, count, *dies):
    if where == "main":
        Dies.now = len(dies) > 0
        return loop(int(seed), int(count))
    return inner.spawn(int(seed), int(count), len(dies)).result()
"""

JOBS = {"lists": (LISTS, "13"), "maps": (MAPS, "10")}
COUNT = 3000


def _run(job: Path, *words: str, options: tuple[str, ...] = ("-j2",)) -> jobs.Ended:
    return jobs.end_of(jobs.start(job, *words, options=options))


def _job(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, kept_max: int) -> Path:
    give_all(folder, monkeypatch, kept_max)
    return jobs.write(folder, PATIENT + text)


def _job_and_serial(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, where: str, seed: str
) -> tuple[Path, str, jobs.Ended]:
    """A job of that kind, how many of its programs are run, and what the serial program shows."""
    text, count = JOBS[kind]
    job = _job(folder, monkeypatch, text, KEPT_MAX if kind == "lists" else 1024)
    return job, count, _run(job, where, seed, count, options=("--serial",))


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("kind", JOBS)
def test_random_programs_show_what_the_serial_program_shows(
    kind: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lists, a function was called with the arguments of another one's call, as those of its
    own calls that were next had been given away.
    """
    job, count, serial = _job_and_serial(tmp_path, monkeypatch, kind, where, "12")
    ended = _run(job, where, "12", count, options=("-j3",))
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
    assert serial.status == 0, serial.talk


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("kind", JOBS)
def test_strand_that_dies_goes_on_where_it_was(
    kind: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, count, serial = _job_and_serial(tmp_path, monkeypatch, kind, where, "13")
    ended = _run(job, where, "13", count, "dies", options=("-j3",))
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("kind", JOBS)
def test_killed_runs_resume_to_the_same_end(
    kind: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, count, serial = _job_and_serial(tmp_path, monkeypatch, kind, where, "14")
    ended = jobs.resumed(job, where, "14", count, seed=14, kills=3, lines=6)
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk


UNTIL = """
import os
import time
import ciel
from ciel._strand import current

DEADLINE_S = 600

@ciel.task
def short(x):
    return x * 31 % 1000003

@ciel.task
def bad(x):
    if x == 2500:
        raise ValueError("twenty-five hundred")
    return x

@ciel.task(retries=1)
def process(x):
    return os.getpid()

@ciel.task(retries=1)
def learns(x, count):
    current().process.function(short.identity.header)
    open(f"learnt-{x}", "w").close()
    others = [f"learnt-{other}" for other in range(count)]
    until(lambda: all(map(os.path.exists, others)), os.sched_yield)
    return x

def learn():
    # Each of two workers can compute calls of the function from now on.
    return ciel.gather([learns.spawn(x, 2) for x in range(2)])

def listed(task, count):
    return [future.result() for future in [task.spawn(x) for x in range(count)]]

def mapped(task, count):
    return list(ciel.map(task, range(count)))

def assisted():
    return current().process.promoter.assisted

def until(condition, does):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for does not happen"
        does()

def check(how, count):
    values = globals()[how](short, count)
    assert values == [x * 31 % 1000003 for x in range(count)]
    return count

def rounds(how, count):
    calls = 0
    def one():
        nonlocal calls
        calls += check(how, count)
    until(lambda: assisted() > 0, one)
    return [calls, assisted()]

@ciel.task
def inner(how, count):
    return rounds(how, count)
"""


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("how", ["listed", "mapped"])
def test_idle_worker_computes_calls_that_count_as_calls_in_place(
    how: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All calls of a flat loop ran on one core, however many were idle."""
    main = """
def main(where, how, count):
    learn()
    if where == "main":
        return rounds(how, int(count))
    return inner.spawn(how, int(count)).result()
"""
    job = _job(tmp_path, monkeypatch, UNTIL + main, 1024)
    calls, assisted = _run(job, where, how, str(COUNT)).value
    assert 0 < assisted <= calls
    count, in_place = _counts(tmp_path, "short")
    assert count == calls
    assert in_place >= assisted


@pytest.mark.parametrize("how", ["listed", "mapped"])
def test_failure_is_that_of_a_call_in_place(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = """
def main(how, count):
    learn()
    until(lambda: assisted() > 0, lambda: check(how, int(count)))
    return globals()[how](bad, int(count))
"""
    job = _job(tmp_path, monkeypatch, UNTIL + main, 1024)
    ended = _run(job, how, str(COUNT))
    assert ended.status == 1
    assert "ValueError: twenty-five hundred" in ended.talk and "bad@" in ended.talk
    assert f"in {how}" in ended.talk
    assert "_assist" not in ended.talk and "_compute" not in ended.talk


STUCK = """
from ciel import _assist

def computes_for_ever(self, function, work):
    _assist._Now.is_computing = True
    try:
        if work.begin() is not None:
            open(f"stuck-{os.getpid()}", "w").close()
            while True:
                pass
    except BaseException:
        open(f"left-{os.getpid()}", "w").close()
    finally:
        _assist._Now.is_computing = False
        work.close()

_assist.Assisting._compute = computes_for_ever

def stuck(kind="stuck"):
    return [name for name in os.listdir() if name.startswith(kind + "-")]

def main(how, count):
    learn()
    until(stuck, lambda: check(how, int(count)))
    until(lambda: stuck("left"), lambda: ciel.gather([process.spawn(x) for x in range(4)]))
    return check(how, int(count))
"""


@pytest.mark.parametrize("how", ["listed", "mapped"])
def test_worker_that_computes_for_long_leaves_that_for_a_task(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strand does not wait for it either."""
    job = _job(tmp_path, monkeypatch, UNTIL + STUCK, 1024)
    assert _run(job, how, str(COUNT)).value == COUNT


KILLED = """
def kills():
    for process_id in set(ciel.gather([process.spawn(x) for x in range(6)])):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGKILL)

def killing(how, count):
    calls = 0
    for x in ciel.map(short, range(count)) if how == "mapped" else ():
        calls += 1
        if calls == count // 2:
            kills()
    return check(how, count)

def main(how, count):
    learn()
    until(lambda: assisted() > 0, lambda: check(how, int(count)))
    for _ in range(3):
        killing(how, int(count))
        kills()
        check(how, int(count))
    return int(count)
"""


@pytest.mark.parametrize("how", ["listed", "mapped"])
def test_workers_that_die_lose_nothing(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = "import contextlib\nimport signal\n"
    job = _job(tmp_path, monkeypatch, imports + UNTIL + KILLED, 1024)
    assert _run(job, how, str(COUNT)).value == COUNT
