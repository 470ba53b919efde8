"""Answers that depend on time, chance and the clock, each shown at once, and cancels."""

import threading

import ciel


@ciel.task
def late(number: int) -> int:
    threading.Event().wait(0.01 * (number % 4 + 1))
    return number


@ciel.task
def endless() -> bytes:
    return ciel.sh("sleep 600").result()


@ciel.task
def ranked(number: int) -> int:
    print("ranked", number, ciel.now(), ciel.entropy(4).hex(), ciel.task_rng().random())
    futures = [late.spawn(number * 4 + part) for part in range(4)]
    order = [future.result() for future in ciel.as_completed(futures)]
    print("order", order)
    return sum(order)


def cancels() -> None:
    lost = endless.spawn()
    futures = [late.spawn(number) for number in range(6)]
    done, rest = ciel.wait(futures, count="first", timeout=0.02)
    print("done", len(done), "cancelled", [future.cancel() for future in rest])
    with ciel.scope() as scope:
        inside = [late.spawn(number) for number in range(4)]
        print("first", ciel.first([late.spawn(number) for number in range(3)]))
        print("scope", scope.cancel(), len(inside))
    print("lost", lost.cancel())
    try:
        lost.result()
    except ciel.Cancelled:
        print("Cancelled")


def main() -> int:
    sums = [ranked.spawn(number) for number in range(4)]
    cancels()
    for value in ciel.map(late, range(12), window=4):
        print("mapped", value)
    return sum(ciel.gather(sums))
