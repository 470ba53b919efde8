"""Lists of spawns longer than what a strand keeps: they show what the serial program shows.

The oldest short calls run before anybody asks for them. What a strand keeps is few here, so that
short lists are long. Read next: `sdk/python/ciel/_early.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
from beats import keep_few, stop_hearts
from jobs import Ended
from short_tasks import SHORT_TASKS
from test_in_place_of_main import PATIENT, _counts

LISTS = """
import os
import random
import signal
import ciel
""" + SHORT_TASKS + """
@ciel.task
def pairs(x):
    return x, (str(x), x * 0.5)

@ciel.task
def fans(x):
    return sum([future.result() for future in [plain.spawn(x + n) for n in range(x % 40)]])

@ciel.task
def hands(x):
    return total.tail(*[plain.spawn(x + n) for n in range(x % 40)])

@ciel.task
def total(*values):
    return sum(values)

@ciel.task(retries=1)
def sent(x):
    return x * 3

@ciel.task
def stays(x):
    return sent.spawn(x).result() + plain.spawn(x).result()

@ciel.task
def asks(futures):
    return sum(future.result() for future in futures)

@ciel.task
def gives(x):
    return [plain.spawn(x + n) for n in range(30)]

@ciel.task
def items(xs):
    return plain.spawn(xs[0]).result() + 1

@ciel.task
def awaits(xs):
    return sent.spawn(xs[0]).result() if xs[0] % 7 == 0 else xs[0]

@ciel.task
def breaks(xs):
    return [10 // (xs[0] % 30)]

class Listed:
    def __init__(self, task):
        self.task, self.label = task, task.label

    def spawn(self, x):
        return self.task.spawn([x])

ALL = [
    plain, plain, plain, pairs, fails, leaves, large, lists, long, dives, says, spawns, fans,
    Listed(items), Listed(awaits), Listed(breaks),
]

def seen(future):
    try:
        return len(str(future.result()))
    except (Exception, SystemExit) as error:
        return len(str(error)[:3])

def failed(future):
    error = future.exception()
    return seen(future) if error is None else len(type(error).__name__)

def gathered(futures):
    try:
        return len(str(ciel.gather(futures)))
    except (Exception, SystemExit) as error:
        return len(type(error).__name__)

def waited(futures):
    ciel.wait(futures, timeout=0)
    return sum(map(seen, futures))

def first(futures):
    ciel.wait(futures, count="first")
    futures[-1].done()
    return sum(map(seen, futures))

def completed(futures):
    return sum(seen(future) for future in ciel.as_completed(futures))

def cancelled(futures):
    futures[0].cancel()
    return sum(map(seen, futures[1:]))

def passed(futures):
    return total.spawn(*futures).result()

def stored(futures):
    return asks.spawn(ciel.put(futures)).result()

def given(futures):
    return sum(seen(future) for future in gives.spawn(len(futures)).result())

def handed(futures):
    return hands.spawn(len(futures)).result()

ANY = [
    lambda futures: sum(map(seen, futures)), lambda futures: sum(map(seen, reversed(futures))),
    lambda futures: sum(map(failed, futures)), gathered, waited, first, completed,
    lambda futures: seen(futures[len(futures) // 2]),
]
OF_PLAIN = [cancelled, passed, stored, given, handed]

def loop(seed, count):
    chance, x = random.Random(seed), 1
    for number in range(count):
        if number == count // 2:
            stop()
        task, ask = chance.choice(ALL), chance.choice(ANY)
        if number % 5 == 2:
            task = stays
        if chance.random() < 0.4:
            task, ask = plain, chance.choice(OF_PLAIN)
        futures = []
        far = sent.spawn(number) if number % 3 == 0 else None
        for item in range(x, x + chance.choice([1, 12, 50, 90])):
            futures.append(task.spawn(item))
            if chance.random() < 0.005:
                print("between", item)
            if chance.random() < 0.005:
                x += seen(chance.choice(futures))
            if chance.random() < 0.2:
                plain.spawn(item)
        if far is not None:
            print("far", far.result())
        x = (x * 7 + ask(futures)) % 1009
        print("listed", number, task.label, x)
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

KEPT_MAX = 24


def _run(job: Path, *words: str, options: tuple[str, ...] = ()) -> Ended:
    return jobs.end_of(jobs.start(job, *words, options=options))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    keep_few(tmp_path, monkeypatch, KEPT_MAX)
    return jobs.write(tmp_path, PATIENT + LISTS)


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_random_lists_show_what_the_serial_program_shows(
    slots: str, where: str, job: Path
) -> None:
    for seed in ("1", "2"):
        serial = _run(job, where, seed, "15", options=("--serial",))
        ended = _run(job, where, seed, "15", options=(slots,))
        assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
        assert serial.status == 0, serial.talk
    assert _counts(job.parent, "plain")[1] > 0


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_strand_that_dies_after_calls_that_ran_early_goes_on_where_it_was(
    slots: str, where: str, job: Path
) -> None:
    serial = _run(job, where, "3", "20", options=("--serial",))
    ended = _run(job, where, "3", "20", "dies", options=(slots,))
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk
    assert (job.parent / "killed").exists()


@pytest.mark.parametrize("where", ["main", "task"])
def test_killed_runs_of_lists_resume_to_the_same_end(where: str, job: Path) -> None:
    serial = _run(job, where, "5", "15", options=("--serial",))
    ended = jobs.resumed(job, where, "5", "15", seed=5, kills=3, lines=20)
    assert (ended.status, ended.printed) == (serial.status, serial.printed), ended.talk


COUNTED = """
import os
import ciel
from ciel import _early

class Runs:
    ended = 0
    begun = 0

def counting(begin, end):
    def counted_begin(newest):
        Runs.begun += 1
        return begin(newest)
    def counted_end():
        ended = end()
        Runs.ended += ended
        return ended
    _early.begin_early, _early.end_early = counted_begin, counted_end

counting(_early.begin_early, _early.end_early)

PAGE_BYTES = os.sysconf("SC_PAGESIZE")

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE_BYTES

@ciel.task
def short(x):
    return x * 31 % 1000003

@ciel.task
def pair(x):
    return [x, x]

@ciel.task
def bad(x):
    if x == 900:
        raise ValueError("nine hundred")
    return x

@ciel.task
def waits(x):
    return short.spawn(x).result()

@ciel.task
def first_of(xs):
    return short.spawn(xs[0]).result()

@ciel.task(retries=1)
def sent(x):
    return x

def behind(task, count):
    far = sent.spawn(1)
    futures = spawned(task, count)
    assert far.result() == 1
    return futures

def behind_all(task, count):
    far = sent.spawn(1)
    futures = spawned(task, count)
    assert ciel.gather([far, futures[0]])[0] == 1
    return futures

@ciel.task
def total(*values):
    return sum(values)

def first(task, count):
    futures = spawned(task, count)
    ciel.wait(futures, count="first")
    return passed_on(futures)

def completed(task, count):
    return passed_on(list(ciel.as_completed(spawned(task, count))))

def passed_on(futures):
    some = futures[:50]
    assert total.spawn(*some).result() == sum(future.result() for future in some)
    return futures

def spawned(task, count):
    return [task.spawn(x) for x in range(count)]

def listed(task, count):
    return [task.spawn([x]) for x in range(count)]

def forgets(task, count):
    for x in range(count):
        task.spawn(x)
    return spawned(task, 10)

def loop(name, count, how="spawned"):
    task = globals()[name]
    short.spawn(0).result()
    before = resident()
    futures = globals()[how](task, count)
    taken = resident() - before
    found = [str(future.result()) for future in futures]
    return [found[-1], Runs.ended, Runs.begun, taken]

@ciel.task
def inner(*words):
    return loop(*words)

def main(where, name, count, *how):
    words = (name, int(count), *how)
    return loop(*words) if where == "main" else inner.spawn(*words).result()
"""

COUNT = 5000


@pytest.mark.parametrize("where", ["main", "task"])
def test_short_calls_of_a_list_are_no_tasks(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a list were tasks as soon as there was one more than a strand keeps, and all of any
    list of `main`.
    """
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, where, "short", str(COUNT), options=("-j1",))  # so no core gets idle
    last, early, *_ = ended.value
    assert last == str((COUNT - 1) * 31 % 1000003)
    assert early >= COUNT - 2048, "those that are not kept, and of main a few that it sends first"
    count, in_place = _counts(tmp_path, "short")
    assert count == COUNT + 1
    assert in_place >= early


@pytest.mark.parametrize("where", ["main", "task"])
def test_failure_of_a_call_of_a_list_has_its_name_and_its_frames(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_few(tmp_path, monkeypatch, KEPT_MAX)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, where, "bad", "1000", options=("-j2",))
    assert ended.status == 1
    assert "ValueError: nine hundred" in ended.talk and "bad@" in ended.talk
    assert "in bad" in ended.talk and "in loop" in ended.talk
    assert "in _run" not in ended.talk and "make_room" not in ended.talk


@pytest.mark.parametrize("name", ["pair", "waits"])
def test_calls_that_do_not_run_early_are_tried_a_few_times_only(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not plain is recomputed when it is due; what spawns is not tried at all."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, "task", name, "4500", options=("-j1",))
    last, early, begun, _ = ended.value
    assert last == ("[4499, 4499]" if name == "pair" else str(4499 * 31))
    assert early == 0
    assert begun <= (3 if name == "pair" else 0)


def test_long_calls_of_a_list_are_tasks_but_for_a_few_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_hearts(tmp_path, monkeypatch)
    no_call_is_short = PATIENT.replace("600", "-1")
    job = jobs.write(tmp_path, no_call_is_short + COUNTED)
    ended = _run(job, "main", "short", "1500", options=("-j1",))
    _, early, begun, _ = ended.value
    assert (early, begun) == (3, 3), "three tries, and the next one after 32 times as many calls"


@pytest.mark.parametrize("how", ["first", "completed"])
def test_calls_that_ran_early_can_be_passed_on_after_a_wait_for_the_first(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine was asked about copies of their values, and its answers took the places of these:
    whoever passed such a future to a task failed, "it used handle 231, which it does not have".
    """
    keep_few(tmp_path, monkeypatch, KEPT_MAX)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, "task", "short", "300", how, options=("-j1",))
    assert ended.status == 0, ended.talk
    assert ended.value[1] > 0


@pytest.mark.parametrize("where", ["main", "task"])
@pytest.mark.parametrize("how", ["behind", "behind_all"])
def test_short_calls_of_a_strand_that_waits_are_no_tasks(
    how: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a strand kept became tasks as soon as it waited for one, up to 1,024 short calls."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, where, "short", "1000", how, options=("-j1",))  # so no core gets idle
    last, early, *_ = ended.value
    assert last == str(999 * 31)
    assert early >= 1000 - FEW - (SENT if where == "main" else 0)
    count, in_place = _counts(tmp_path, "short")
    assert count == 1001
    assert in_place >= early


@pytest.mark.parametrize("name", ["pair", "waits", "bad"])
def test_calls_of_a_strand_that_waits_run_before_only_if_they_may(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, "task", name, "500", "behind", options=("-j1",))
    last, early, begun, _ = ended.value
    shown = {"pair": "[499, 499]", "waits": str(499 * 31), "bad": "499"}
    assert last == shown[name]
    assert (early > 0) == (name == "bad")
    assert begun <= {"pair": 1, "waits": 0, "bad": 500}[name]


def test_children_of_a_list_that_spawn_and_ask_run_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were tasks, all of a list, as soon as there was one more than a strand keeps. Later the
    first 1,024 of them still were: the first one that was kept was not counted, so a strand kept
    one more than it may, and made room for one only.
    """
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, "task", "waits", str(COUNT), options=("-j1",))  # so no core gets idle
    assert ended.value[0] == str((COUNT - 1) * 31)
    count, in_place = _counts(tmp_path, "waits")
    assert (count, in_place) == (COUNT, COUNT)


def test_children_of_a_list_whose_arguments_are_no_plain_values_run_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 1,024 that a strand kept became tasks with each one that was one more, as their spawns
    are Python's, which listed none of them to run before.
    """
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, "task", "first_of", "2500", "listed", options=("-j1",))
    assert ended.value[0] == str(2499 * 31)
    count, in_place = _counts(tmp_path, "first_of")
    assert (count, in_place) == (2500, 2500)


GATE = """
import os
import ciel

@ciel.task(retries=1)
def opened():
    with open("gate", "rb") as gate:
        return len(gate.read())

@ciel.task
def child(x):
    return opened.spawn().result() if x == 8 else x

@ciel.task
def parent():
    os.mkfifo("gate")
    futures = [child.spawn(x) for x in range(100)]
    with open("gate", "wb") as gate:
        gate.write(b"five!")
    return sum(future.result() for future in futures)

def main():
    return parent.spawn().result()
"""


def test_child_of_a_full_list_that_waits_leaves_its_parent_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child waits for what its parent does later, outside of Ciel."""
    stop_hearts(tmp_path, monkeypatch, KEPT_MAX)
    ended = _run(jobs.write(tmp_path, PATIENT + GATE), options=("-j2",))
    assert ended.status == 0, ended.talk
    assert ended.value == sum(range(100)) - 8 + 5


FEW = 16
"""Calls that a strand keeps before it runs any of them early, at most."""

SENT = 256
"""Calls that `main` sends before it tries one."""

BYTES_MAX = 300
"""Bytes that a call of a list keeps, at most, whether it is kept or has run."""


@pytest.mark.parametrize(("how", "bytes_max"), [("spawned", BYTES_MAX), ("forgets", 40)])
def test_calls_that_ran_early_keep_few_bytes(
    how: str, bytes_max: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are forgotten keep nothing, but for what allocators round up."""
    stop_hearts(tmp_path, monkeypatch)
    job = jobs.write(tmp_path, PATIENT + COUNTED)
    ended = _run(job, "task", "short", "100000", how, options=("-j1",))
    _, early, _, taken = ended.value
    assert early > 90_000
    assert taken <= 100_000 * bytes_max
