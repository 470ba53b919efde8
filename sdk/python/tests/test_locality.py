"""Locality weights: which inputs count where it is decided in which worker a task runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from test_native import Wire, read_frame, tag_from, vector, wire

import ciel
import jobs
from ciel import testing
from ciel._call import Call
from ciel._future import Future
from ciel._locality import weights_of
from ciel._native import Definition

__all__ = ["wire"]

TWO_WORKERS = """
import os
import ciel

@ciel.task
def decoder(block: ciel.Future[bytes], number):
    # Each end of a pipe waits until the other one is opened, so there are two workers.
    with open("met", "rw"[number]):
        pass
    ciel.once(list, block)
    return os.getpid()

@ciel.task
def process_of(long: ciel.Future[bytes], short: ciel.Future[bytes]):
    return os.getpid()

def main():
    long, short = (ciel.put(bytes(length)) for length in (200_000, 100_000))
    pair = [decoder.spawn(block, number) for number, block in enumerate((long, short))]
    decoders = ciel.gather(pair)
    chosen = []
    for locality in ({}, {"long": 0}, {"short": 3}, {"long": 4, "short": 3}):
        task = process_of.options(locality=locality)
        chosen.append(decoders.index(task.spawn(long, short).result()))
    return chosen
"""


def test_task_goes_to_the_worker_that_has_what_weighs_most(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "met")
    run = jobs.run(tmp_path, TWO_WORKERS, options=("-j2",))
    assert run.value == [0, 1, 1, 0]


class Owner:
    """The strand of futures; it counts no handles."""

    label = "test"

    def let_go(self, handle: int) -> None:
        """Nothing is counted."""


def future(handle: int) -> Future[Any]:
    return Future(Owner(), handle, None)


def weights(task: Any, inputs: list[int], *args: Any, **kwargs: Any) -> list[int] | None:
    call = Call(task, args, kwargs, "f.py", 1)
    return weights_of(call, inputs, lambda future: future._handle)


@ciel.task
def reads(table: Any, *blocks: Any, **others: Any) -> None:
    """Never run here."""


def test_weights_are_those_of_the_futures_in_named_arguments() -> None:
    weighed = reads.options(locality={"table": 0, "blocks": 2.5, "index": 7})
    found = weights(weighed, [1, 2, 3, 4, 5, 9], future(1), future(2), {"in": [future(3)]},
                    index=future(4), other=future(5))  # fmt: skip
    assert found == [0, 250, 250, 700, 100, 100]


def test_future_in_several_arguments_has_the_largest_weight() -> None:
    weighed = reads.options(locality={"table": 0, "blocks": 3})
    assert weights(weighed, [1], future(1), future(1)) == [300]
    assert weights(reads, [1], future(1)) is None


@ciel.task
def plain(table: Any) -> None:
    """Never run here."""


@pytest.mark.parametrize(
    ("locality", "kind", "message"),
    [
        ({"tabel": 1}, TypeError, "plain has no parameter 'tabel' for its option locality"),
        ({"table": "1"}, TypeError, "locality of 'table' is a number, not '1'"),
        ({"table": -1}, ValueError, "locality of 'table' is from 0 to 1000000, not -1"),
        ({"table": 1e7}, ValueError, "locality of 'table' is from 0 to 1000000"),
        ("table", TypeError, "locality are weights by parameter, as {'table': 0}, not 'table'"),
    ],
)
def test_wrong_weight_is_named(locality: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        plain.options(locality=locality)


def test_command_has_no_locality() -> None:
    with pytest.raises(ciel.CielError, match="no option 'locality'"):
        testing.run(lambda: ciel.sh("true", locality={"f": 1}).result())


def test_weights_are_sent_with_a_spawn(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    joins = Definition("python", "joins")
    connection.spawn(
        tag, joins, b"", [2, 3], action=1, handle=4, line=0, modes=[1, 0], weights=[250, 0]
    )
    connection.flush()
    assert [read_frame(engine), read_frame(engine)][-1] == vector("worker-spawn-locality")
    with pytest.raises(ValueError, match="2 inputs, but `weights` has 1"):
        connection.spawn(tag, joins, b"", [2, 3], action=2, handle=6, line=0, weights=[250])
