"""What can be a task, what a task captures, and which definitions later spawns take."""

from __future__ import annotations

import functools
import operator
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import ciel
import jobs
import pytest
from ciel import testing


class Scale:
    """An object that can be called."""

    def __init__(self, factor: int) -> None:
        """Multiplies by `factor`."""
        self.factor = factor

    def __call__(self, number: int) -> int:
        """The product."""
        return self.factor * number


@pytest.mark.parametrize(
    ("work", "args"),
    [
        (len, ([1, 2],)),
        (functools.partial(pow, 2), (5,)),
        (Scale(3), (4,)),
        (Scale(3).__call__, (4,)),
        (operator.itemgetter(1), ([5, 6],)),
    ],
    ids=["built-in", "partial", "object", "bound method", "itemgetter"],
)
def test_any_callable_can_be_a_task(work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """`ciel.task(len)` and `ciel.task(partial(…))` were refused without a word on what to do."""
    task = ciel.task(work)
    assert task(*args) == work(*args)
    with testing.serial():
        assert task.spawn(*args).result() == work(*args)
        again = pickle.loads(pickle.dumps(operator.itemgetter(0)))
        assert list(ciel.map(again, [[7], [8]])) == [7, 8]


def test_a_class_as_a_task_says_what_to_do() -> None:
    """A class is called to make an instance; as a decorator it is nearly always a mistake."""
    with pytest.raises(TypeError, match="a task is a function, for example one that makes"):
        ciel.task(Scale)


def test_what_a_function_captures_costs_its_pickle(tmp_path: Path) -> None:
    """A captured list of a million numbers took 5.5 s at the first spawn: for the warning, each of
    them was pickled by itself."""
    numbers = list(range(1_000_000))

    @ciel.task
    def at(place: int) -> int:
        return numbers[place]

    began = time.process_time()
    pickle.dumps(numbers, 5)
    once = time.process_time() - began
    began = time.process_time()
    with testing.serial(), pytest.warns(ciel.CielWarning, match="captured 'numbers'"):
        assert at.spawn(5).result() == 5
    assert time.process_time() - began < 1 + 20 * once


def notebook() -> tuple[ModuleType, Callable[[str], None]]:
    """A module that stands for a notebook, and how a cell is run in it."""
    module = ModuleType("__main__")
    namespace = vars(module)
    namespace["ciel"] = ciel

    def run(cell: str) -> None:
        exec(compile(cell, "cell", "exec"), namespace)

    return module, run


CELLS = """
def innermost(number):
    return number + 1

def helper(number):
    return innermost(number)

@ciel.task
def use(number):
    return helper(number)
"""


@pytest.mark.parametrize("name", ["helper", "innermost"])
def test_a_helper_that_is_defined_again_is_taken(name: str) -> None:
    """A notebook's cell with a helper was executed twice: the task was refused until its own cell
    was executed, too, and the hint was about arguments."""
    module, run = notebook()
    run(CELLS)
    with testing.serial():
        assert module.use.spawn(1).result() == 2
        run(f"def {name}(number):\n    return 10 * number\n")
        assert module.use.spawn(1).result() == 10


def test_data_that_are_assigned_again_are_an_error_that_names_them() -> None:
    """Other processes would go on with the old ones."""
    module, run = notebook()
    run("RATE = 2\n\ndef helper(n):\n    return RATE * n\n\n@ciel.task\ndef use(n):\n"
        "    return helper(n)\n")  # fmt: skip
    with testing.serial():
        assert module.use.spawn(1).result() == 2
        run("RATE = 3\n")
        with pytest.raises(ciel.CielError, match="global 'RATE' of task use was assigned again"):
            module.use.spawn(1)


def test_data_that_are_changed_are_an_error_that_names_them() -> None:
    """Other processes would go on with those of the first spawn."""
    module, run = notebook()
    run("RATES = [2]\n@ciel.task\ndef use(n):\n    return n * RATES[-1]\n")
    with testing.serial():
        assert module.use.spawn(1).result() == 2
        run("RATES.append(3)\n")
        words = "global 'RATES' was changed after its first use by a spawn, and task use reads it"
        with pytest.raises(ciel.CielError, match=words):
            module.use.spawn(1)


def test_a_changed_object_that_is_a_task_is_named_by_its_task() -> None:
    """The message named a variable and a line of this package: "captured variable 'work' …"."""
    scale = Scale(3)
    task = ciel.task(scale)
    with testing.serial():
        assert task.spawn(4).result() == 12
        scale.factor = 5
        with pytest.raises(ciel.CielError, match="the object that task Scale calls was changed"):
            task.spawn(4)
        assert ciel.task(scale).spawn(4).result() == 20


@ciel.task
def down(levels: int) -> int:
    """Calls itself plainly."""
    return 0 if levels == 0 else 1 + down(levels - 1)


def test_plain_calls_of_a_task_take_three_levels_of_the_recursion_limit() -> None:
    """A recursion of 200 levels failed, where 1000 are the limit: each call took five."""
    code = "from test_callables import down; print(down(300))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert done.stdout == "300\n", done.stderr


def test_a_write_to_an_array_says_that_it_is_read_only(tmp_path: Path) -> None:
    """`x[0] = 1` failed with numpy's words alone, and so did a data frame."""
    pytest.importorskip("numpy")
    ended = jobs.run(
        tmp_path,
        """
import numpy
import ciel

@ciel.task
def write(array):
    array[0] = 1

def main():
    error = write.spawn(numpy.zeros(10)).exception()
    return [str(error), error.__notes__[1]]
""",
    )
    assert ended.value == [
        "assignment destination is read-only",
        "arrays that come to a task are read-only: write to a copy, x = x.copy()",
    ]


@pytest.mark.parametrize("mode", ["-j2", "--serial"])
def test_a_write_that_does_not_ask_whether_it_may_reaches_no_other_task(
    tmp_path: Path, mode: str
) -> None:
    """`numpy.add.at` writes to read-only arrays, too: four processes died of segmentation faults,
    and the task failed with WorkerLost.
    """
    pytest.importorskip("numpy")
    ended = jobs.run(
        tmp_path,
        """
import numpy
import ciel

@ciel.task
def tally(counts, places):
    numpy.add.at(counts, places, 1)
    return counts[:4].tolist()

@ciel.task
def make():
    return numpy.zeros(100_000)

def main():
    counts, places = numpy.zeros(100_000), numpy.array([1, 2, 2])
    found = [tally.spawn(counts, places).result() for _ in range(2)]
    made = make.spawn()
    return found + [tally.spawn(made, places).result() for _ in range(2)] + [counts.sum()]
""",
        options=(mode,),
    )
    assert ended.value == [[0, 1, 2, 0]] * 4 + [0]


def test_tasks_of_callables_are_named_by_them() -> None:
    """Their names are those that people know."""
    assert repr(ciel.task(len)) == "<task builtins.len>"
    assert ciel.task(Scale(2)).label == "Scale"
    assert isinstance(ciel.task(len).function, FunctionType)


METHODS = """
import functools
import ciel

class Base:
    @classmethod
    @ciel.task
    def name(cls, n):
        return cls.__name__, n

class Child(Base):
    pass

@ciel.task
def inner(n):
    return n

@ciel.task
@functools.wraps(inner)
def wrapped(n):
    return n + 1

def main():
    print([one.name.spawn(3).result() for one in (Base, Child)])
    found = [wrapped.spawn(1).result() for _ in range(2)]
    inner.spawn(1).result()
    print(found, ciel.gather([wrapped.spawn(n) for n in range(3)]))
"""


@pytest.mark.parametrize("mode", ["--serial", "-j1", "-j2"])
def test_class_methods_and_functions_that_wrap_tasks_are_tasks(mode: str, tmp_path: Path) -> None:
    """A class method failed as one whose file was edited meanwhile. What a task knows of itself is
    copied by `functools.wraps`, and could not be sent once that task had been spawned."""
    ended = jobs.run(tmp_path, METHODS, options=(mode,))
    assert ended.status == 0, ended.talk
    assert ended.lines == ["[('Base', 3), ('Child', 3)]", "[2, 2] [1, 2, 3]"]
