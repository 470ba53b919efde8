"""Random fork–join programs on threads and pools write what their serial elision writes.

A program is a tree of statements. It is run on threads whose ends are forced into the reverse of
their starts: each child waits for an event that its parent sets when it has done all its own work.
The serial elision runs the same tree with every start replaced by a call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ciel
from ciel import ordered
from ciel._ordered_files import OrderedBytes
from conditions import DEADLINE_S

Statement: TypeAlias = tuple[Any, ...]

WRITES = st.tuples(st.just("write"), st.integers(0, 3), st.sampled_from([0, 1, 7, 40_000, 90_000]))
FLUSHES = st.just(("flush",))
RAISES = st.just(("raise",))


def bodies(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    body = st.lists(inner, max_size=4)
    return st.one_of(
        st.tuples(st.just("thread"), body),
        st.tuples(st.just("submit"), body),
        st.tuples(st.just("join"), body, body),
        st.tuples(st.just("try"), body),
    )


STATEMENTS = st.recursive(st.one_of(WRITES, WRITES, FLUSHES, RAISES), bodies, max_leaves=14)
PROGRAMS = st.lists(STATEMENTS, max_size=6)


class Expected(Exception):
    """What a program raises on purpose."""


def text(file: int, length: int) -> bytes:
    return (b"%d:" % file + b"abcdefghij" * (length // 10 + 1))[:length]


def serial(program: list[Statement], files: dict[int, bytearray]) -> None:
    """The serial elision; raises what the program does not keep."""
    for kind, *rest in program:
        if kind == "write":
            files[rest[0] % 2].extend(text(*rest))
        elif kind == "raise":
            raise Expected
        elif kind == "join":
            serial(rest[0], files)
            serial(rest[1], files)
        elif kind in ("thread", "submit", "try"):
            kept(partial(serial, rest[0], files))


def kept(call: Callable[[], None]) -> None:
    """Calls, and keeps an exception as a thread, a future or a `try` does."""
    try:
        call()
    except Expected:
        pass


@dataclass
class Parallel:
    """Runs programs on threads; those of a join end in it, all others before `end`."""

    files: list[OrderedBytes]
    executor: ordered.OrderedExecutor
    threads: list[ordered.Thread] = field(default_factory=list)
    calls: list[Future[None]] = field(default_factory=list)

    def run(self, program: list[Statement], in_join: bool) -> None:
        """Runs a body, whose children begin when it has done its own work."""
        done = threading.Event()
        children: list[ordered.Thread] = []
        try:
            for kind, *rest in program:
                self.step(kind, rest, in_join, done, children)
        finally:
            done.set()
            if in_join:
                for child in children:
                    child.join(DEADLINE_S)
            else:
                self.threads.extend(children)

    def step(
        self,
        kind: str,
        rest: list[Any],
        in_join: bool,
        done: threading.Event,
        children: list[ordered.Thread],
    ) -> None:
        """Runs one statement."""
        if kind == "write":
            self.files[rest[0] % 2].write(text(*rest))
        elif kind == "flush":
            self.files[0].flush()
        elif kind == "raise":
            raise Expected
        elif kind == "join":
            self.join(rest[0], rest[1])
        elif kind == "try":
            kept(lambda: self.run(rest[0], in_join))
        elif kind == "submit" and not in_join:
            self.calls.append(self.executor.submit(self.child, rest[0], in_join, done))
        else:
            children.append(ordered.thread(self.child, (rest[0], in_join, done)))

    def child(self, body: list[Statement], in_join: bool, begun: threading.Event) -> None:
        """A child: it waits until its parent has done its own work."""
        assert begun.wait(DEADLINE_S)
        kept(lambda: self.run(body, in_join))

    def join(self, first: list[Statement], second: list[Statement]) -> None:
        """Joins two bodies; the first begins when the second has ended."""
        ended = threading.Event()

        def early() -> None:
            assert ended.wait(DEADLINE_S)
            self.run(first, True)

        def late() -> None:
            try:
                self.run(second, True)
            finally:
                ended.set()

        ordered.join(early, late)

    def end(self) -> None:
        """Waits for all threads and calls, also for those that others have started."""
        while self.threads or self.calls:
            if self.threads:
                self.threads.pop().join(DEADLINE_S)
            if self.calls:
                self.calls.pop().result(DEADLINE_S)


def parallel(program: list[Statement], folder: Path, threads: int) -> list[bytes]:
    """What two files hold after a program has run on a pool of so many threads, and on others."""
    paths = [folder / "first", folder / "second"]
    files = [ciel.open(path, "serial-append", encoding=None) for path in paths]
    with ThreadPoolExecutor(threads) as pool:
        run = Parallel(files, ordered.executor(pool))
        kept(lambda: run.run(program, False))
        run.end()
    for file in files:
        file.close()
    return [path.read_bytes() for path in paths]


@pytest.mark.parametrize("threads", [1, 2, 8])
@settings(max_examples=120, deadline=None)
@given(program=PROGRAMS)
def test_reversed_ends_write_what_the_serial_elision_writes(
    tmp_path_factory: pytest.TempPathFactory, threads: int, program: list[Statement]
) -> None:
    files = {0: bytearray(), 1: bytearray()}
    kept(lambda: serial(program, files))
    found = parallel(program, tmp_path_factory.mktemp("files"), threads)
    assert found == [bytes(files[0]), bytes(files[1])]
