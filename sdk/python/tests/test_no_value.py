"""A future in the place of its value: what fails names `.result()`, and the rest still works."""

from __future__ import annotations

import concurrent.futures
import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import ciel
import pytest
from ciel import testing


@ciel.task
def number() -> int:
    """A value."""
    return 20


def unpack(future: Any) -> None:
    """Takes two outputs of a task that has one."""
    _left, _right = future


USES: list[tuple[str, Callable[[Any], object]]] = [
    ("+", lambda future: future + 1),
    ("+", lambda future: 1 + future),
    ("+", lambda future: "text" + future),
    ("+", lambda future: [1] + future),
    ("+", lambda future: sum([future, future])),
    ("*", lambda future: 2.5 * future),
    ("/", lambda future: future / 2),
    ("%", lambda future: future % 2),
    ("-", lambda future: -future),
    ("<", lambda future: future < 3),
    (">", lambda future: future > 3),
    ("<", lambda future: sorted([future, future])),
    ("abs()", abs),
    ("round()", round),
    ("int()", int),
    ("float()", math.sqrt),
    ("use as a whole number", range),
    ("len()", len),
    ("[…] and iteration", lambda future: future[0]),
    ("[…] and iteration", lambda future: future["key"]),
    ("[…] and iteration", lambda future: [item for item in future]),
    ("[…] and iteration", lambda future: 1 in future),
    ("[…] and iteration", list),
    ("[…] and iteration", unpack),
    ("the format '.3f'", lambda future: f"{future:.3f}"),
]


@pytest.mark.parametrize(("what", "use"), USES)
def test_a_future_in_place_of_its_value_says_result(
    what: str, use: Callable[[Any], object]
) -> None:
    """`1 + future` failed with "unsupported operand type(s) for +: 'int' and 'Future'", and
    `for item in future` with "'Future' object is not iterable": true, and no help to someone who
    forgot `.result()`."""
    with testing.serial(), pytest.raises(TypeError) as caught:
        use(number.spawn())
    assert str(caught.value) == f"a Future does not support {what}: call .result() first"


def test_an_attribute_of_the_value_says_result() -> None:
    """`future.shape` failed with "'Future' object has no attribute 'shape'"."""
    with testing.serial():
        future: Any = number.spawn()
        with pytest.raises(AttributeError) as caught:
            _ = future.shape
        assert str(caught.value) == "a Future has no attribute 'shape': call .result() first"
        assert (caught.value.name, caught.value.obj) == ("shape", future)


@pytest.mark.parametrize("function", ["wait", "as_completed"])
def test_the_standard_librarys_ways_of_waiting_say_ours(function: str) -> None:
    """They failed with "no attribute '_condition': call .result() first"."""
    with testing.serial():
        futures: Any = [number.spawn()]
        with pytest.raises(AttributeError, match=f"use .*ciel.{function}"):
            list(getattr(concurrent.futures, function)(futures))


def test_truth_of_a_future_says_result() -> None:
    """`if future:` would be true for every value."""
    with testing.serial(), pytest.raises(ciel.CielError, match=r"call \.result\(\) first"):
        assert not number.spawn()


def test_a_future_is_still_a_single_object() -> None:
    """Programs put futures into sets and dictionaries, compare, copy and show them; those that
    flatten lists ask for `Iterable` and `__iter__`."""
    with testing.serial():
        future, other = number.spawn(), number.spawn()
        assert future == future
        assert future != other
        assert len({future, other, future}) == 2
        assert not isinstance(future, Iterable)
        assert not hasattr(future, "__iter__")
        assert not callable(future)
        assert copy.copy([future]) == [future]
        assert f"{future}" == repr(future) == str(future)
        assert ciel.gather([future, other]) == [20, 20]


def test_a_future_in_an_array_stays_one_item() -> None:
    """Arrays of objects ask their items for a length and for items."""
    numpy = pytest.importorskip("numpy")
    with testing.serial():
        futures = [number.spawn(), number.spawn()]
        array = numpy.array(futures, dtype=object)
        assert array.shape == (2,)
        assert [future.result() for future in array] == [20, 20]
        with pytest.raises(TypeError, match=r"does not support \+: call \.result\(\) first"):
            numpy.ones(2) + futures[0]


@ciel.task
def total(numbers: dict[str, list[int]]) -> int:
    """The sum of what futures in containers stand for."""
    return sum(sum(each) for each in numbers.values())


def test_a_future_in_containers_reaches_its_task() -> None:
    """What freezes a value must not see the operators."""
    with testing.serial():
        futures: Any = {"a": [number.spawn()], "b": [number.spawn(), number.spawn()]}
        assert total.spawn(futures).result() == 60
