"""The language in process: spawn, tail, waiting, and what is refused, by the serial program."""

from __future__ import annotations

import asyncio
import contextvars
import os
import pickle
import sys
import threading
import time
from typing import Any

import pytest

import ciel
from ciel import Future, testing
from ciel._serial import Box


@ciel.task
def fib(n: int) -> int:
    """The usual one."""
    if n < 2:
        return n
    left = fib.spawn(n - 1)
    return fib.spawn(n - 2).result() + left.result()


@ciel.task
def add(left: Any, right: Any) -> Any:
    """Adds."""
    return left + right


@ciel.task
def count(n: int, total: int = 0) -> int:
    """A loop of tails."""
    return total if n == 0 else count.tail(n - 1, total + 1)


@ciel.task
def deep(n: int) -> int:
    """Waits at every level."""
    return 0 if n == 0 else 1 + deep.spawn(n - 1).result()


@ciel.task
def fail(text: str) -> None:
    """Fails."""
    raise ValueError(text)


@ciel.task(outputs=2)
def halves(text: str) -> tuple[str, str]:
    """Two outputs."""
    return text[: len(text) // 2], text[len(text) // 2 :]


@ciel.task
def is_future(reference: Future[int], value: Any) -> tuple[bool, bool]:
    """What arrives: the annotated parameter keeps the future."""
    return isinstance(reference, Future), isinstance(value, Future)


@ciel.task
def rest_are_futures(*references: Future[int], **named: Future[int]) -> list[bool]:
    """Every future is kept."""
    return [isinstance(found, Future) for found in (*references, *named.values())]


@ciel.task
def total_of(box: dict[str, list[Future[int]]]) -> int:
    """Futures in a container are kept and can be asked."""
    return sum(future.result() for futures in box.values() for future in futures)


@ciel.task
def append_to(items: list[int]) -> list[int]:
    """Changes its argument."""
    items.append(0)
    return items


@ciel.task
def draw() -> float:
    """A random number of its own."""
    return ciel.task_rng().random()


@ciel.task
def draw_in_tails(n: int, drawn: tuple[float, ...] = ()) -> tuple[float, ...]:
    """One number in each step."""
    drawn = (*drawn, ciel.task_rng().random())
    return drawn if n == 0 else draw_in_tails.tail(n - 1, drawn)


class Account:
    """Has a task as a method."""

    def __init__(self, balance: int) -> None:
        """Holds an amount."""
        self.balance = balance

    @ciel.task
    def after(self, amount: int) -> int:
        """Changes its own copy of the account."""
        self.balance += amount
        return self.balance


def test_plain_call_outside_of_a_run_just_runs() -> None:
    assert add(1, 2) == 3
    assert count(2_000) == 2_000
    assert Account(1).after(2) == 3


def test_spawned_call_gives_the_value_of_the_plain_call() -> None:
    with testing.serial():
        assert fib.spawn(12).result() == fib(12)


def test_loop_of_a_million_tails_ends_within_seconds() -> None:
    begun = time.process_time()
    with testing.serial():
        assert count.spawn(1_000_000).result() == 1_000_000
    assert time.process_time() - begun < 30


def test_depth_of_twenty_thousand_waits_is_not_bounded_by_recursion() -> None:
    with testing.serial():
        assert deep.spawn(20_000).result() == 20_000


def test_futures_as_arguments_arrive_as_values_also_inside_containers() -> None:
    with testing.serial():
        one, two = fib.spawn(1), fib.spawn(3)
        assert add.spawn(one.later, two.later).result() == 3
        assert add.spawn([one, {"a": two}], []).result() == [1, {"a": 2}]


def test_parameter_annotated_future_keeps_the_reference_and_others_do_not() -> None:
    with testing.serial():
        one = fib.spawn(1)
        assert is_future.spawn(one, one).result() == (True, False)
        assert is_future.spawn(reference=one, value=one).result() == (True, False)
        assert rest_are_futures.spawn(one, one, last=one).result() == [True, True, True]
        assert total_of.spawn({"x": [one, fib.spawn(7)]}).result() == 14


def test_arguments_are_copied_at_the_spawn_and_results_when_read() -> None:
    with testing.serial():
        items = [1]
        future = append_to.spawn(items)
        items.append(5)
        got = future.result()
        assert (items, got) == ([1, 5], [1, 0])
        got.append(9)
        assert future.result() == [1, 0]
        stored = ciel.put(items)
        items.append(6)
        assert stored.result() == [1, 5]


def test_arrays_arrive_read_only_and_the_callers_stays_writable() -> None:
    numpy = pytest.importorskip("numpy")

    @ciel.task
    def writable(array: Any) -> tuple[bool, float]:
        return bool(array.flags.writeable), float(array.sum())

    with testing.serial():
        array = numpy.ones(10)
        future = writable.spawn(array)
        array[0] = 5
        assert future.result() == (False, 10.0)
        assert not ciel.put(array).result().flags.writeable


def test_arrays_that_are_not_one_piece_of_memory_arrive_as_copies_to_write_to() -> None:
    """The page said that all arrays are read-only in a task."""
    numpy = pytest.importorskip("numpy")

    @ciel.task
    def cleared(array: Any) -> Any:
        array[:] = numpy.zeros(len(array), array.dtype)
        return array

    whole = numpy.arange(100_000)
    masked = numpy.ma.masked_array(whole, whole % 2)
    with testing.serial():
        for array in (whole[::2], whole.astype("M8[s]"), whole.astype(object), masked):
            before = array.copy()
            given = cleared.spawn(array).result()
            assert type(given) is type(array) and given.dtype == array.dtype
            assert (given == numpy.zeros(1, array.dtype)).all() and (array == before).all()


def test_several_outputs_are_futures_of_their_own() -> None:
    with testing.serial():
        left, right = halves.spawn("abcd")
        assert (right.result(), left.result()) == ("cd", "ab")


def test_wrong_number_of_outputs_is_an_error_of_the_task() -> None:
    @ciel.task(outputs=3)
    def two_of_three() -> tuple[int, int]:
        return 1, 2

    with testing.serial():
        futures = two_of_three.spawn()
        for future in futures:
            with pytest.raises(TypeError, match="outputs=3 returned 2 values"):
                future.result()


def test_method_is_spawned_with_a_copy_of_its_object() -> None:
    with testing.serial():
        account = Account(10)
        assert account.after.spawn(5).result() == 15
        assert account.balance == 10


def test_failure_arrives_at_result_and_not_at_the_spawn() -> None:
    with testing.serial():
        future = fail.spawn("no tea")
        for _ in range(2):
            with pytest.raises(ValueError, match="no tea"):
                future.result()


def test_failed_argument_fails_the_task_with_that_failure() -> None:
    with testing.serial():
        failed = fail.spawn("first")
        with pytest.raises(ValueError, match="first") as caught:
            add.spawn(add.spawn(failed, 1), 2).result()
        assert not any("add" in note for note in caught.value.__notes__)


def test_failure_that_nobody_asked_for_is_the_failure_of_the_run() -> None:
    def main() -> int:
        fail.spawn("earliest")
        fail.spawn("later")
        return 1

    with pytest.raises(ValueError, match="earliest"):
        testing.run(main)


def test_lazy_task_runs_on_demand_only(capsys: pytest.CaptureFixture[str]) -> None:
    @ciel.task(lazy=True)
    def lazy(n: int) -> int:
        print(n)
        return n

    with testing.serial():
        first, second = lazy.spawn(1), lazy.spawn(2)
        assert not second.done()
        assert second.result() == 2
    assert capsys.readouterr().out == "2\n"
    assert isinstance(first._known, Box) and not first._known.asked


def test_gather_gives_values_in_order_and_the_first_failure_in_order() -> None:
    with testing.serial():
        assert ciel.gather(fib.spawn(3), fib.spawn(4)) == [2, 3]
        assert ciel.gather(fib.spawn(n) for n in range(5)) == [0, 1, 1, 2, 3]
        assert ciel.gather([]) == []
        with pytest.raises(ValueError, match="one"):
            ciel.gather(fib.spawn(1), fail.spawn("one"), fail.spawn("two"))
        with pytest.raises(TypeError, match="spawn it first"):
            ciel.gather([fib])  # type: ignore[arg-type]


def test_waiting_questions_answer_in_order_of_spawn() -> None:
    with testing.serial():
        futures = [fib.spawn(n) for n in range(4)]
        assert [future.result() for future in ciel.as_completed(futures)] == [0, 1, 1, 2]
        done, others = ciel.wait(futures, count="first")
        assert (done, others) == (futures[:1], futures[1:])
        assert ciel.wait(futures) == (futures, [])
        assert ciel.wait([]) == ([], [])
        assert all(future.done() for future in futures)


def test_map_is_lazy_ordered_and_takes_endless_input() -> None:
    taken: list[int] = []

    def numbers() -> Any:
        while True:
            taken.append(len(taken))
            yield taken[-1]

    with testing.serial():
        results = ciel.map(fib, numbers(), window=4)
        assert [next(results) for _ in range(6)] == [0, 1, 1, 2, 3, 5]
        assert len(taken) <= 10
        assert list(ciel.map(add, [1, 2], [3, 4])) == [4, 6]


def test_window_of_a_map_that_is_no_number_is_named() -> None:
    """The error was that of a comparison, and did not say what was compared."""
    for window in ("a", 2.5, None, True):
        with pytest.raises(TypeError, match=f"window is a number of calls, not {window!r}"):
            list(ciel.map(fib, [1], window=window))  # type: ignore[arg-type]


def test_scope_waits_for_all_and_raises_the_first_failure() -> None:
    with testing.serial():
        with ciel.scope() as outer, ciel.scope() as inner:
            fib.spawn(3)
        assert (len(outer.futures), len(inner.futures)) == (0, 1)
        with pytest.raises(ValueError, match="one"), ciel.scope():
            fail.spawn("one")
            fail.spawn("two").later
        with pytest.raises(KeyError), ciel.scope():
            fail.spawn("three")
            raise KeyError("body")


def test_random_numbers_depend_on_the_place_only() -> None:
    def main() -> Any:
        drawn = [draw.spawn().result() for _ in range(3)]
        return drawn, draw_in_tails.spawn(3).result(), ciel.task_rng() is ciel.task_rng()

    first, second = testing.run(main), testing.run(main)
    assert first == second
    assert len({*first[0], *first[1]}) == 7
    assert first[2]


def test_tail_moves_no_name_of_later_spawns() -> None:
    @ciel.task
    def after_tails(n: int) -> float:
        return draw.spawn().result() if n == 0 else after_tails.tail(n - 1)

    def main(n: int) -> float:
        return after_tails.spawn(n).result()

    results = [testing.run(main, n) for n in (0, 1, 5)]
    assert len(set(results)) == 1


def test_tail_that_is_not_returned_is_told() -> None:
    @ciel.task
    def forgetful(n: int) -> None:
        count.tail(n)

    with testing.serial(), pytest.warns(ciel.CielWarning, match="was not returned"):
        assert forgetful.spawn(3).result() is None


def test_async_functions_and_other_things_are_refused_as_tasks() -> None:
    async def later() -> None: ...

    async def both() -> Any:
        yield 1

    for function, reason in [(later, "async"), (both, "async")]:
        with pytest.raises(TypeError, match=reason):
            ciel.task(function)
    with pytest.raises(TypeError, match="int is a class"):
        ciel.task(int)


def test_spawn_outside_of_a_run_says_how_to_start_one() -> None:
    with pytest.raises(ciel.NoRun, match=r"ciel\.run\(main\)"):
        fib.spawn(3)
    with pytest.raises(ciel.NoRun):
        ciel.task_rng()


def test_spawn_on_a_thread_of_the_task_is_refused() -> None:
    found: list[BaseException] = []

    def body() -> None:
        try:
            fib.spawn(1)
        except ciel.NoRun as error:
            found.append(error)

    with testing.serial():
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    assert "this thread runs no task" in str(found[0])


LEAKED: list[Future[int]] = []
VARIABLE = contextvars.ContextVar("VARIABLE", default=0)


@ciel.task
def use_leaked() -> int:
    """Uses a future that lies in a global."""
    return LEAKED[0].result()


@ciel.task
def change(folder: str) -> Any:
    """Changes all that belongs to a strand, and looks at it before and after a child had it."""
    os.chdir(folder)
    sys.stdout = sys.stderr
    VARIABLE.set(7)
    inner = look.spawn().result()
    return inner, os.getcwd(), VARIABLE.get(), sys.stdout is sys.stderr


@ciel.task
def look() -> Any:
    """What a strand finds."""
    return os.getcwd(), VARIABLE.get(), sys.stdout is sys.stderr


def test_future_of_another_strand_is_refused_by_name() -> None:
    with testing.serial():
        LEAKED.append(fib.spawn(2))
        with pytest.raises(ciel.WaitError, match="pass it as an argument"):
            use_leaked.spawn().result()


def test_future_cannot_be_pickled_by_hand_or_taken_for_a_value() -> None:
    with testing.serial():
        future = fib.spawn(2)
        with pytest.raises(ciel.NotSerializable, match="pickled by hand"):
            pickle.dumps(future)
        with pytest.raises(ciel.CielError, match="truth value"):
            bool(future)


def test_waiting_inside_a_running_event_loop_is_refused_for_lazy_tasks() -> None:
    @ciel.task(lazy=True)
    def lazy() -> int:
        return 1

    async def ask(future: Future[int]) -> int:
        return future.result()

    with testing.serial():
        future = lazy.spawn()
        with pytest.raises(ciel.WaitError, match="event loop"):
            asyncio.run(ask(future))
        assert future.result() == 1
        assert asyncio.run(ask(future)) == 1


def test_folder_context_and_streams_belong_to_the_task(tmp_path: Any) -> None:
    home = os.getcwd()
    with testing.serial():
        found = change.spawn(str(tmp_path)).result()
        assert found[0] == (home, 0, False)
        assert found[1:] == (os.path.realpath(tmp_path), 7, True)
        assert look.spawn().result() == (home, 0, False)


def test_tasks_of_other_executors_need_the_engine() -> None:
    from ciel._options import Options
    from ciel._strand import current

    with testing.serial(), pytest.raises(ciel.Refused, match="need the engine"):
        current().spawn_executor("shell", {"command": "true"}, 1, Options(), "sh")


def test_run_inside_a_run_is_refused() -> None:
    with testing.serial(), pytest.raises(ciel.WaitError, match="cannot be nested"):
        testing.run(fib, 3)
