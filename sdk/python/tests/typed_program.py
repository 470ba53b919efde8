"""A program that is checked by mypy --strict: how tasks, futures and their values are typed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

import ciel
from ciel import Future


@ciel.task
def fib(n: int) -> int:
    """A task of one argument."""
    if n < 2:
        return n
    left = fib.spawn(n - 1)
    return fib.spawn(n - 2).result() + left.result()


@ciel.task(cores=2, retries=1)
def join(words: list[str], separator: str = " ") -> str:
    """A task with options and a default."""
    return separator.join(words)


@ciel.task
def total(futures: list[Future[int]]) -> int:
    """A task that takes futures as they are."""
    return sum(ciel.gather(futures))


@ciel.task
def loop(n: int, found: int = 0) -> int:
    """A tail has the type of the value."""
    return found if n == 0 else loop.tail(n - 1, found + n)


@ciel.task(outputs=2)
def halves(text: str) -> tuple[str, str]:
    """Several outputs."""
    return text[:1], text[1:]


class Account:
    """A method that is a task."""

    def __init__(self, balance: int) -> None:
        """Holds an amount."""
        self.balance = balance

    @ciel.task
    def after(self, amount: int) -> float:
        """A copy of the account goes along."""
        return self.balance + amount / 100


@ciel.once
def table() -> dict[str, int]:
    """A value of each process."""
    return {"a": 1}


def main() -> int:
    """Uses every form once."""
    future = fib.spawn(5)
    assert_type(future, Future[int])
    assert_type(future.later, int)
    assert_type(fib(3), int)
    assert_type(fib.spawn(future.later).result(), int)
    assert_type(join.spawn(["a"], separator="-"), Future[str])
    assert_type(join.options(cores=1).spawn(["a"]).result(), str)
    assert_type(ciel.task(len, retries=2).spawn("a"), Future[int])
    assert_type(total.spawn([future, fib.spawn(3)]).result(), int)
    assert_type(loop.spawn(10).result(), int)
    assert_type(Account(3).after.spawn(5), Future[float])
    assert_type(ciel.gather(future, fib.spawn(2)), list[int])
    assert_type(ciel.put({"a": 1}), Future[dict[str, int]])
    assert_type(ciel.map(fib, range(3)), Iterator[int])
    assert_type(ciel.now(), float)
    assert_type(ciel.environ("HOME"), str | None)
    assert_type(ciel.environ("HOME", "none"), str)
    assert_type(ciel.entropy(8), bytes)
    assert_type(table, ciel.Once[dict[str, int]])
    assert_type(table(), dict[str, int])
    first, second = halves.spawn("abc")
    assert_type(halves.spawn("abc"), tuple[Future[str], Future[str]])
    assert_type(halves("abc"), tuple[str, str])
    assert_type(ciel.wait([future])[0], list[Future[int]])
    print(first.result(), second.result(), list(ciel.map(fib, range(3))))
    for done in ciel.as_completed([future]):
        assert_type(done, Future[int])
    with ciel.scope():
        fib.spawn(4)
    return future.result()
