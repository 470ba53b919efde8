"""Options: what is accepted, what is refused by name, and what the engine receives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

import ciel
from ciel import testing
from ciel._native import TaskOptions
from ciel._options import Options, bytes_of


@pytest.mark.parametrize(
    ("amount", "count"),
    [(5, 5), ("5", 5), ("2 GiB", 2 << 30), ("1.5k", 1500), ("64MB", 64_000_000), ("1Ki", 1024)],
)
def test_amount_of_memory_is_read_with_its_unit(amount: int | str, count: int) -> None:
    assert bytes_of(amount) == count


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cores": 0}, "cores must be above 0"),
        ({"cores": True}, "cores is a number"),
        ({"cores": 10**30}, "cores must be below 1000000000000000, not 1"),
        ({"timeout": 1e300}, "timeout must be below 1000000000000000, not 1e"),
        ({"resources": {"gpu": 1e15}}, "resource 'gpu' must be below"),
        ({"cores": float("nan")}, "cores must be above 0"),
        ({"memory": "much"}, "memory is bytes or text"),
        ({"memory": 0}, "at least one byte"),
        ({"memory": 1.5}, "memory is bytes or text"),
        ({"memory": 1 << 64}, r"memory is below 2\*\*64 bytes"),
        ({"memory": "9" * 400}, r"memory is below 2\*\*64 bytes"),
        ({"memory": "99999999 TiB"}, r"memory is below 2\*\*64 bytes"),
        ({"retries": -1}, "retries must be from 0"),
        ({"retries": 1.5}, "retries is a whole number"),
        ({"timeout": float("inf")}, "timeout must be above 0"),
        ({"outputs": 10_001}, "outputs must be from 0"),
        ({"name": ""}, "name is text"),
        ({"resources": {"gpu": 0}}, "resource 'gpu' must be above 0"),
        ({"keep": 1}, "keep is True, False or None"),
        ({"pure": 3}, "pure is True, False or None, not 3"),
        ({"lazy": 1}, "lazy is True or False, not 1"),
        ({"writes": "x"}, "writes is True or False, not 'x'"),
        ({"resources": ["gpu"]}, "resources are amounts by name, as {'gpu': 1}, not"),
        ({"resources": 3}, "resources are amounts by name, as {'gpu': 1}, not 3"),
        ({"keep": True, "pure": False}, "a task with side effects is never kept"),
        ({"version": 3}, "version is text such as '3'"),
        ({"kept": True}, "a task has no option 'kept': did you mean 'keep'"),
        ({"core": 2}, "a task has no option 'core': did you mean 'cores'"),
        ({"speed": 1}, "no option 'speed': the options are cores, memory, retries"),
    ],
)
def test_wrong_option_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        ciel.task(**options)


def pieces(count: int) -> Iterator[bytes]:
    """Lines with numbers."""
    for number in range(count):
        yield b"%d\n" % number


def test_options_behind_a_function_are_those_of_its_task() -> None:
    """`ciel.task(f, joined=True)` gave the frames of a stream of values to a command that read it.

    All options behind a function were ignored, also those that do not exist.
    """
    assert ciel.task(len, retries=2, name="length").options_now == Options(retries=2, name="length")
    with pytest.raises(TypeError, match="no option 'core': did you mean 'cores'"):
        ciel.task(len, core=2)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="is joined, but does not yield"):
        ciel.task(divmod, joined=True)  # pyright: ignore
    with testing.serial():
        assert ciel.task(pieces, joined=True).spawn(2).result() == b"0\n1\n"
        assert [part.result() for part in ciel.task(divmod, outputs=2).spawn(17, 5)] == [3, 2]


def test_default_options_tell_the_engine_nothing() -> None:
    assert Options().wire is None
    assert Options(name="x", outputs=3, version="2").wire is None


def test_options_are_told_in_small_units() -> None:
    options = Options(cores=0.5, memory="1 KiB", retries=2, timeout=1.5, pure=True)
    assert options.wire == TaskOptions(500, 1024, {}, 2, 1500, False, True, False)
    assert options.changed(pure=False, resources={"gpu": 1}).wire == TaskOptions(
        500, 1024, {"gpu": 1000}, 2, 1500, False, False, False,
    )  # fmt: skip


def test_changed_task_keeps_its_function_and_cannot_change_outputs() -> None:
    @ciel.task
    def plain(n: int) -> int:
        return n

    changed = plain.options(cores=2, name="big")
    assert (changed(3), changed.label, plain.label) == (3, "big", "plain")
    assert plain.options_now.cores is None
    with pytest.raises(TypeError, match="belongs to the definition"):
        plain.options(outputs=2)  # type: ignore[call-arg]


def test_resources_are_taken_as_a_dictionary_everywhere() -> None:
    """`Options(resources={"gpu": 1})` raised "too many values to unpack"; the decorator took it."""
    options = Options(resources={"gpu": 1, "disk": 0.5})
    assert options == Options(resources=(("disk", 0.5), ("gpu", 1)))
    assert options.wire == TaskOptions(None, None, {"disk": 500, "gpu": 1000})
    assert hash(options) == hash(Options().changed(resources={"disk": 0.5, "gpu": 1}))
    with pytest.raises(TypeError, match="no option 'resource': did you mean 'resources'"):
        Options().changed(resource={"gpu": 1})


def test_dir_lists_the_whole_module() -> None:
    """Completion in a notebook did not know `run`, `Session` and whatever is loaded later."""
    assert {"Executor", "Session", "run", "sh", "task", "testing"} <= set(dir(ciel))
    assert not {"Any", "TYPE_CHECKING", "annotations"} & set(dir(ciel))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"jobs": True}, "jobs is the number of cores to use, at least 1, not True"),
        ({"serial": "yes"}, "serial is True or False, not 'yes'"),
        ({"resources": ["gpu"]}, "resources are amounts by name, not"),
    ],
)
def test_wrong_option_of_a_session_is_refused_by_name(options: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        ciel.Session(**options)


def test_wrong_arguments_of_result_and_map_are_refused_by_name() -> None:
    with testing.serial():
        future = ciel.task(abs).spawn(-3)
        with pytest.raises(TypeError, match="timeout is a number, not 'x'"):
            future.result(timeout=cast("float", "x"))
        with pytest.raises(TypeError, match="a function and at least one iterable"):
            list(ciel.map(abs))
        assert future.result(timeout=-1) == 3
