"""Spawns that native code sends: of `main`, and of calls with futures among their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs

SENDS = '''
import sys
import ciel

@ciel.task
def one(n, *more):
    if n == 13:
        raise ValueError("unlucky")
    return n

@ciel.task
def add(a, b, text="", *more):
    return a + b + len(text)

@ciel.task
def holds(future: "ciel.Future[int]", n):
    return future.result() + n

@ciel.task
def says(n):
    print("says", n)
    return n

def chain(n):
    first, second = one.spawn(n), one.spawn(n + 1)
    for _ in range(5):
        first, second = second, add.spawn(first, second)
    return second.result()

def ended(n):
    first = one.spawn(n)
    first.result()
    other = one.spawn(n + 1)
    return add.spawn(first, other).result() + add.spawn(other, first, "text").result()

def others(n):
    first = one.spawn(n)
    named = add.spawn(b=first, a=n).result()
    listed = add.spawn(first, n, "a", [first]).result()
    tuples = add.spawn(first, n, "b", (1, 2)).result()
    complexes = add.spawn(first, 1j, "c", "c").result()
    return named, listed, tuples, str(complexes), holds.spawn(first, n).result()

def same(n):
    text, first = "text" * n, one.spawn(n)
    return add.spawn(first, first, text, text, first).result()

def prints(n):
    first = says.spawn(n)
    print("before", n)
    second = add.spawn(first, says.spawn(n + 1))
    print("after", n)
    sys.stdout.write("no end ")
    third = add.spawn(second, first)
    print("of the line")
    return third.result()

def scopes(n):
    with ciel.scope():
        first = says.spawn(n)
        return add.spawn(first, one.spawn(n)).result()

def fails(n):
    failed = one.spawn(13)
    try:
        return add.spawn(failed, one.spawn(n)).result()
    except ValueError as error:
        return str(error)

def drops(n):
    kept = [one.spawn(i) for i in range(n)]
    last = add.spawn(kept[0], kept[-1])
    del kept
    more = [add.spawn(last, one.spawn(i)) for i in range(n)]
    return last.result() + sum(future.result() for future in more)

HOW = [chain, ended, others, same, prints, scopes, fails, drops]

@ciel.task
def parent(n):
    return [how(n) for how in HOW for _ in range(3)]

def main(first):
    shown = [[how(n) for how in HOW for _ in range(3)] for n in range(int(first), int(first) + 3)]
    return [*shown, parent.spawn(5).result(), parent.spawn(7).result()]
'''


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_spawns_that_native_code_sends_do_what_all_spawns_do(slots: str, tmp_path: Path) -> None:
    """The first calls of a function are sent by Python, further ones natively."""
    serial = jobs.run(tmp_path, SENDS, "2", options=("--serial",))
    ended = jobs.run(tmp_path, SENDS, "2", options=(slots,))
    assert (ended.printed, ended.status) == (serial.printed, 0), ended.talk


def test_killed_run_whose_spawns_were_sent_natively_resumes_to_the_same_end(
    tmp_path: Path,
) -> None:
    job = jobs.write(tmp_path, SENDS)
    serial = jobs.end_of(jobs.start(job, "2", options=("--serial",)))
    ended = jobs.resumed(job, "2", seed=12, kills=4, lines=40)
    assert (ended.status, ended.printed) == (0, serial.printed), ended.talk


def test_future_of_another_strand_is_refused_natively_too(tmp_path: Path) -> None:
    ended = jobs.run(
        tmp_path,
        """
import sys
import ciel

@ciel.task
def add(a, b):
    return a + b

@ciel.task
def child():
    first = add.spawn(1, 1)
    told = []
    for other in [add.spawn(first, 1), sys.left]:
        try:
            told.append(add.spawn(first, other).result())
        except ciel.WaitError as error:
            told.append(str(error))
    return told

@ciel.task
def parent():
    sys.left = add.spawn(add.spawn(1, 2), 3)
    return child.spawn().result()

def main():
    return parent.spawn().result()
""",
        options=("-j1",),
    )
    first, second = ended.value
    assert first == 5
    assert "pass it as an argument" in second


KINDS = '''
import ciel

class Odd:
    def __init__(self, n):
        self.parts = [n]

    def __repr__(self):
        return f"Odd({self.parts})"

def values():
    again = [5]
    return [
        None, True, 7, -1, 300, 1 << 40, 1 << 100, 1.5, 1 + 2j, "text", "\\xe9", b"bytes", "",
        (1, "a"), [1, [2]], {"a": [1]}, {1}, [again, again], bytearray(b"b"), range(3), Odd(4),
        "long" * 2000, b"l" * 9000, [0] * 5000, b"ends with.", print, len,
    ]

@ciel.task(retries=1)
def made(place):
    return values()[place]

@ciel.task(retries=1)
def fails(n):
    raise ValueError(n)

def change(value):
    kind = type(value)
    if kind is list or kind is bytearray:
        value.append(9)
    elif kind is dict:
        value["a"].append(9)
    elif kind is set:
        value.add(9)
    elif kind is Odd:
        value.parts.append(9)

def seen(futures):
    first, second = ciel.gather(futures), [future.result() for future in futures]
    for value in first:
        change(value)
    return repr([first, second, ciel.gather(*futures)])

@ciel.task
def inside(count):
    return seen([made.spawn(place) for place in range(count)])

@ciel.task
def given(futures):
    return seen(futures)

def main():
    count = len(values())
    futures = [made.spawn(place) for place in range(count)]
    print(seen(futures))
    print(inside.spawn(count).result())
    print(given.spawn(ciel.put(futures)).result())
    try:
        ciel.gather(made.spawn(1), fails.spawn(3))
    except ValueError as error:
        return str(error)
'''


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_each_reader_of_a_result_has_a_copy_of_its_own_of_every_kind(
    slots: str, tmp_path: Path
) -> None:
    """Native code reads small plain results, Python all others."""
    serial = jobs.run(tmp_path, KINDS, options=("--serial",))
    ended = jobs.run(tmp_path, KINDS, options=(slots,))
    assert (ended.printed, ended.value, ended.status) == (serial.printed, serial.value, 0)
    assert ended.printed.count(b"bytearray(b'b\\t')") == 3
