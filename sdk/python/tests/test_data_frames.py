"""Data frames of pandas in tasks: a write succeeds, or its error says how to copy.

The job of each test tries all writes on a frame that came as an argument, inside of a dictionary,
as the result of another task, and as a future in the place of an argument. It knows nothing of how
arrays are mapped. Small frames travel in the payload, large ones as objects of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jobs
import pytest

pytest.importorskip("pandas", reason="pandas is not installed")

HINT = "arrays that come to a task are read-only: write to a copy, x = x.copy()"

JOB = """
import numpy
import pandas

import ciel

def frame(rows):
    half = rows // 2
    return pandas.DataFrame({
        "number": numpy.arange(rows),
        "price": numpy.arange(rows) * 1.5,
        "down": numpy.arange(rows)[::-1],
        "text": ["x", "y"] * half,
        "kind": pandas.Categorical(["u", "v"] * half),
        "day": pandas.date_range("2026-01-01", periods=rows, freq="s"),
        "maybe": pandas.array([1, None] * half, dtype="Int64"),
        "any": pandas.Series(["p", 2] * half, dtype=object),
    })

def add(f): f["new"] = 1; return f["new"].iloc[0]
def replace_column(f): f["number"] = f["number"] * 2; return f["number"].iloc[1]
def sort(f): f.sort_values("down", inplace=True); return f["down"].iloc[0]
def sort_index(f): f.sort_index(ascending=False, inplace=True); return f["number"].iloc[-1]
def drop(f): f.drop(columns="price", inplace=True); return len(f.columns)
def cell(f): f.loc[0, "number"] = 7; return f["number"].iloc[0]
def rows(f): f.loc[f["number"] > 1, "price"] = 0.5; return f["price"].iloc[2]
def at(f): f.at[0, "down"] = 9; return f["down"].iloc[0]
def text(f): f.loc[0, "text"] = "new"; return f["text"].iloc[0]
def kind(f): f.loc[0, "kind"] = "v"; return f["kind"].iloc[0]
def day(f): f.loc[0, "day"] = pandas.Timestamp("2020-01-01"); return f["day"].iloc[0].year
def maybe(f): f.loc[0, "maybe"] = 5; return f["maybe"].iloc[0]
def anything(f): f.loc[0, "any"] = "q"; return f["any"].iloc[0]
def fill(f): f.fillna({"maybe": 0}, inplace=True); return f["maybe"].iloc[1]
def substitute(f): f.replace(1, 2, inplace=True); return f["number"].iloc[1]
def view(f): f["number"].to_numpy()[0] = 5; return f["number"].iloc[0]
def unlock(f): f["number"].to_numpy().flags.writeable = True; return 0

@ciel.task
def of_argument(name, found, copies):
    if copies:
        found = found.copy()
    return str(globals()[name](found))

@ciel.task
def nested(name, found, copies):
    inside = found["deep"][0]
    if copies:
        inside = inside.copy()
    return str(globals()[name](inside))

@ciel.task
def of_result(name, size, copies):
    found = make.spawn(size).result()
    if copies:
        found = found.copy()
    return str(globals()[name](found))

@ciel.task
def make(size):
    return frame(size)

def ended(future):
    error = future.exception()
    return future.result() if error is None else getattr(error, "__notes__", [])[1:]

def main(name, words):
    copies = words == "copies"
    return [
        ended(future)
        for size in (6, 20_000)
        for future in (
            of_argument.spawn(name, frame(size), copies),
            nested.spawn(name, {"deep": [frame(size)]}, copies),
            of_result.spawn(name, size, copies),
            of_argument.spawn(name, make.spawn(size), copies),
        )
    ]
"""


def ways(folder: Path, name: str, copies: str, options: tuple[str, ...] = ("-j2",)) -> list[Any]:
    """What a write gives on each way, or the notes of its failure behind the first."""
    found: list[Any] = jobs.run(folder, JOB, name, copies, options=options).value
    assert len(found) == 8
    return found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("add", "1"),
        ("replace_column", "2"),
        ("sort", "0"),
        ("sort_index", "0"),
        ("drop", "7"),
        ("text", "new"),
        ("day", "2020"),
        ("anything", "q"),
    ],
)
def test_a_write_that_replaces_memory_succeeds(tmp_path: Path, name: str, value: str) -> None:
    assert ways(tmp_path, name, "as it is") == [value] * 8


WRITES = [
    ("cell", "7"),
    ("rows", "0.5"),
    ("at", "9"),
    ("kind", "v"),
    ("maybe", "5"),
    ("fill", "0"),
    ("substitute", "2"),
]


@pytest.mark.parametrize(("name", "value"), WRITES)
def test_a_write_into_memory_succeeds_on_a_copy(tmp_path: Path, name: str, value: str) -> None:
    assert ways(tmp_path, name, "copies") == [value] * 8


@pytest.mark.parametrize("name", [*(name for name, _ in WRITES), "view", "unlock"])
def test_a_write_into_memory_says_how_to_copy(tmp_path: Path, name: str) -> None:
    """`fillna` failed with "Invalid value … for dtype 'Int64'" alone, and a view that was made
    writable with "cannot set WRITEABLE flag to True of this array".
    """
    assert ways(tmp_path, name, "as it is") == [[HINT]] * 8


def test_a_serial_run_says_the_same(tmp_path: Path) -> None:
    assert ways(tmp_path, "fill", "as it is", ("--serial",)) == [[HINT]] * 8
    assert ways(tmp_path, "fill", "copies", ("--serial",)) == ["0"] * 8


MAPPED = """
import numpy
import pandas

import ciel

@ciel.task
def make(rows):
    return pandas.DataFrame({
        "number": numpy.arange(rows),
        "price": numpy.arange(rows) * 1.5,
        "half": numpy.arange(rows, dtype="float32"),
    })

def place_of(column):
    values = column.to_numpy()
    address, is_read_only = values.__array_interface__["data"]
    with open("/proc/self/smaps") as mappings:
        for line in mappings:
            first, *rest = line.split()
            if not first.endswith(":"):
                begin, end = (int(place, 16) for place in first.split("-"))
                is_its = begin <= address and address + values.nbytes <= end
                file = rest[4] if len(rest) > 4 else ""
            elif is_its and first == "Anonymous:":
                return [file, int(rest[0]), is_read_only]

@ciel.task
def places(frame):
    found = {name: place_of(frame[name]) for name in frame}
    try:
        frame["price"].to_numpy()[0] = 1
    except ValueError as error:
        found["write"] = str(error)
    return found

def main():
    made = make.spawn(100_000)
    return [task.result() for task in [places.spawn(made) for _ in range(2)]]
"""


def test_blocks_of_a_frame_are_mapped_by_every_reader_and_not_copied(tmp_path: Path) -> None:
    """They lie in the file of the object, of whose pages the reader has none of its own."""
    found = jobs.run(tmp_path, MAPPED).value
    assert len(found) == 2
    for one in found:
        assert "read-only" in one.pop("write")
        assert set(one) == {"number", "price", "half"}
        files = {file for file, _, _ in one.values()}
        assert len(files) == 1 and "/" in files.pop()
        assert all(place[1:] == [0, True] for place in one.values()), found
