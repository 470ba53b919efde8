"""How an exception gets from a task to its reader: type, text, notes, traceback."""

from __future__ import annotations

import re
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

import ciel
import jobs
from ciel import testing
from ciel._errors import FRAMES_MAX, call_text, error_of, failure_of, frames_of
from ciel._native import Failure, Frame


class Priced(Exception):
    """An exception of the program's own whose arguments differ from its text."""

    def __init__(self, item: str, price: int) -> None:
        """Keeps both."""
        super().__init__(item, price)
        self.item = item

    def __str__(self) -> str:
        """The text."""
        return f"{self.item} costs too much"


class Unpicklable(Exception):
    """Cannot be carried."""

    def __init__(self, text: str, *, needed: int) -> None:
        """Keeps the text only."""
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        """Says how it is made, and is wrong."""
        return (Unpicklable, self.args)


class Composed(Exception):
    """Makes its text of its parts, as many exceptions of programs do."""

    def __init__(self, code: int, *, where: str) -> None:
        """Takes what `args` does not have."""
        super().__init__(f"{code} at {where}")
        self.code, self.where = code, where


class Guarded(Composed):
    """Holds what cannot be copied."""

    def __init__(self, code: int) -> None:
        """Has a lock beside its code."""
        super().__init__(code, where="the gate")
        self.lock = threading.Lock()


class Missing(FileNotFoundError):
    """Extends a built-in exception whose attributes come from its arguments."""

    def __init__(self, path: str) -> None:
        """Knows the number and the text itself."""
        super().__init__(2, "no such thing", path)


class Textless(Exception):
    """Has a text that cannot be made."""

    def __str__(self) -> str:
        """Fails."""
        raise RuntimeError("no text")


@ciel.task
def price(item: str) -> int:
    """The innermost task."""
    raise Priced(item, 7)


@ciel.task
def order(items: list[str]) -> int:
    """Asks for the innermost task."""
    return sum(price.spawn(item).result() for item in items)


@ciel.task
def nested(depth: int) -> int:
    """Fails in its innermost call."""
    if depth:
        return nested.spawn(depth - 1).result()
    error = Priced("tea", 7)
    error.add_note("a note of the user's")
    raise error


@ciel.task
def explained() -> int:
    """Fails because of a failed task, after another error was handled."""
    try:
        try:
            raise KeyError("milk")
        except KeyError:
            return price.spawn("tea").result()
    except Priced as error:
        raise ValueError("too dear") from error


@ciel.task
def raises(kind: str) -> None:
    """Fails in the way asked for."""
    if kind == "cause":
        try:
            dict[str, int]()["x"]
        except KeyError as error:
            raise ValueError("no x") from error
    if kind == "composed":
        try:
            raise Guarded(7)
        except Guarded as error:
            raise Composed(8, where="the door") from error
    if kind == "guarded":
        raise Guarded(9)
    if kind == "missing":
        raise Missing("/nowhere")
    if kind == "several":
        raise ExceptionGroup("both", [Composed(1, where="here"), Missing("/x")])
    if kind == "unpicklable":
        raise Unpicklable("text", needed=1)
    if kind == "textless":
        raise Textless
    if kind == "recursion":
        raises.function(kind)
    if kind == "exit":
        raise SystemExit(3)
    if kind == "memory":
        raise MemoryError
    if kind == "local":

        class Local(Exception):
            pass

        raise Local("made here")


def caught(kind: str) -> BaseException:
    """The exception that arrives."""
    with testing.serial():
        future = raises.spawn(kind)
        try:
            future.result()
        except BaseException as error:
            return error
    raise AssertionError("nothing was raised")


def test_own_exception_type_arrives_with_its_attributes() -> None:
    with testing.serial(), pytest.raises(Priced, match="tea costs too much") as found:
        order.spawn(["tea"]).result()
    assert (found.value.item, found.value.args) == ("tea", ("tea", 7))


def test_traceback_reads_as_one_program_across_tasks() -> None:
    with testing.serial(), pytest.raises(Priced) as found:
        order.spawn(["tea"]).result()
    names = [frame.name for frame in traceback.extract_tb(found.value.__traceback__)]
    assert [name for name in names if name in ("order", "price", "<genexpr>")] == [
        "order", "<genexpr>", "price",
    ]  # fmt: skip
    frames = failure_of(found.value).frames
    assert [frame.function for frame in frames][-3:] == ["order", "<genexpr>", "price"]
    assert frames[-1].source == "raise Priced(item, 7)"
    assert not any("/ciel/_" in frame.file for frame in frames)


def test_notes_name_each_task_with_its_call() -> None:
    with testing.serial(), pytest.raises(Priced) as found:
        order.spawn(["tea" * 100]).result()
    first, second = found.value.__notes__
    assert first.startswith("in task order@") and len(first) < 250
    assert second.startswith("in task price@") and "price('teatea" in second and "..." in second


def test_notes_of_many_tasks_end_with_the_task_that_failed() -> None:
    """The last line of `ciel.run(main)` named main: the notes began with the failed task."""
    with testing.serial(), pytest.raises(Priced) as found:
        nested.spawn(30).result()
    notes = found.value.__notes__
    assert notes[0] == "a note of the user's"
    assert notes[1] == "in more tasks, not shown" and len(notes) == 14
    assert notes[-1].endswith(", nested(0)") and notes[2].endswith(", nested(11)")


def test_excerpt_of_a_failure_has_a_line_for_each_cause() -> None:
    """`raise X from error` was shown by `ciel run` as if X had no cause."""
    with testing.serial(), pytest.raises(ValueError, match="dear") as found:
        explained.spawn().result()
    lines = failure_of(found.value).excerpt.splitlines()
    assert lines[0] == 'raise ValueError("too dear") from error'
    assert re.fullmatch(r"caused by price@\w{8}: Priced: tea costs too much", lines[1])
    assert lines[2:] == ["while handling KeyError: 'milk'"]


def test_cause_and_context_arrive_with_the_exception() -> None:
    error = caught("cause")
    assert isinstance(error, ValueError) and isinstance(error.__cause__, KeyError)
    assert error.__suppress_context__


def test_exception_with_an_init_of_its_own_arrives_with_attributes_and_cause() -> None:
    """`except MyError` around `result()` did not catch an exception whose `__init__` takes other
    arguments than `Exception`: it came as a TaskError, without its cause, and nothing said why."""
    error = caught("composed")
    assert isinstance(error, Composed)
    assert (str(error), error.code, error.where) == ("8 at the door", 8, "the door")
    assert isinstance(error.__cause__, Guarded) and error.__cause__.code == 7


def test_attribute_that_cannot_be_copied_is_left_out_with_a_note() -> None:
    error = caught("guarded")
    assert isinstance(error, Guarded) and error.code == 9 and not hasattr(error, "lock")
    assert "attribute 'lock' stayed in the task: lock cannot be copied" in error.__notes__


def test_own_subclass_of_a_built_in_exception_keeps_what_that_knows() -> None:
    error = caught("missing")
    assert isinstance(error, Missing)
    assert (error.errno, error.filename, str(error)) == (
        2, "/nowhere", "[Errno 2] no such thing: '/nowhere'",
    )  # fmt: skip


def test_exceptions_in_a_group_arrive_as_what_they_are() -> None:
    error = caught("several")
    assert isinstance(error, ExceptionGroup)
    first, second = error.exceptions
    assert isinstance(first, Composed) and first.where == "here"
    assert isinstance(second, Missing) and second.filename == "/x"


def test_exception_that_cannot_be_carried_arrives_as_task_error_with_type_and_text() -> None:
    error = caught("unpicklable")
    assert isinstance(error, ciel.TaskError)
    assert (error.type_name, str(error)) == ("Unpicklable", "Unpicklable: text")
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-1] == "raises"


def test_exception_whose_text_fails_still_arrives() -> None:
    assert isinstance(caught("textless"), Textless)


def test_exception_of_a_class_made_in_the_task_arrives() -> None:
    error = caught("local")
    assert (type(error).__name__, error.args) == ("Local", ("made here",))


def test_recursion_error_arrives_with_a_bounded_traceback() -> None:
    error = caught("recursion")
    assert isinstance(error, RecursionError)
    rebuilt = [frame for frame in traceback.extract_tb(error.__traceback__)]
    assert FRAMES_MAX <= len(rebuilt) <= FRAMES_MAX + 8


def test_system_exit_in_a_task_is_the_failure_of_the_task() -> None:
    assert isinstance(caught("exit"), SystemExit)


def test_memory_error_is_told_as_out_of_memory() -> None:
    assert failure_of(MemoryError()).kind == "OUT_OF_MEMORY"
    assert isinstance(caught("memory"), MemoryError)


@pytest.mark.parametrize(
    "kind",
    [
        ciel.WorkerLost, ciel.Cancelled, ciel.Timeout, ciel.OutOfMemory, ciel.NotSerializable,
        ciel.NonDeterministic, ciel.ObjectLost, ciel.DiskFull, ciel.Refused,
    ],
)  # fmt: skip
def test_failure_of_the_engine_becomes_its_exception_with_hint_and_task(kind: Any) -> None:
    failure = Failure(
        kind.kind, "", "", "what happened", [], "what helps", None, None, "fib@3f", ""
    )
    error: Any = error_of(failure)
    assert type(error) is kind
    assert (error.hint, error.task, error.args) == ("what helps", "fib@3f", ("what happened",))
    again = error_of(failure_of(error))
    assert type(again) is kind and again.args == error.args


def test_failure_of_another_language_has_its_type_name_and_place() -> None:
    frames = [Frame("job.java", 7, "price", "throw missing;")]
    failure = Failure("TASK_ERROR", "java", "Missing", "no tea", frames, "", None, None, "p@1", "")
    error = error_of(failure)
    assert str(error) == "Missing: no tea"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    assert (frame.filename, frame.lineno, frame.name) == ("job.java", 7, "price")


def test_cancelled_is_not_swallowed_by_except_exception() -> None:
    assert not issubclass(ciel.Cancelled, Exception)


def test_call_is_told_with_shortened_arguments_whatever_their_repr_does() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError

    assert call_text("f", (30,), {"deep": True}) == "f(30, deep=True)"
    assert len(call_text("f", ("x" * 1000, list(range(1000))), {})) < 120
    assert call_text("f", (Bad(),), {}).startswith("f(<Bad")


def test_notes_of_a_deep_chain_are_bounded() -> None:
    error = ValueError("x")
    for level in range(100):
        failure_of(error, "task", f"level({level})")
    assert len(error.__notes__) == 13


def test_failure_that_passes_through_tasks_names_the_task_that_failed_first() -> None:
    with testing.serial(), pytest.raises(Priced) as found:
        order.spawn(["tea"]).result()
    assert failure_of(found.value, "main@1", "main()").task.startswith("price@")
    assert failure_of(ValueError("new"), "main@1", "main()").task == ""


def test_wrong_mode_of_a_stream_is_told_at_the_line_that_names_it() -> None:
    """The generated `__init__` of our class was told, too, as `<string>:6, in __init__`."""
    with pytest.raises(ValueError, match="no mode of streams is named 'indirct'") as raised:
        ciel.stream(mode="indirct")
    assert [frame.file for frame in frames_of(raised.value.__traceback__)] == [__file__]


PRINTED = """
import traceback
import ciel

@ciel.task
def share(n):
    whole, parts = 12, n
    return [whole + 1, (whole * 2) / parts]

@ciel.task
def told(before, function):
    ciel.gather([share.spawn(1 + n) for n in range(before)])
    for _ in range(before):
        share.spawn(2).result()
    try:
        function.spawn(0).result()
    except ZeroDivisionError:
        return [line for line in traceback.format_exc().splitlines() if " task " not in line]

def main():
    functions = [share, share.options(retries=0), share.options(timeout=100)]
    texts = [told.spawn(before, each).result() for before in (0, 3, 40) for each in functions]
    assert all(text == texts[0] for text in texts), texts
    print(*texts[0], sep="\\n")
"""


@pytest.mark.parametrize("mode", ["--serial", "-j1", "-j2"])
def test_a_printed_traceback_is_the_same_wherever_the_task_ran(mode: str, tmp_path: Path) -> None:
    """A failure in place had a frame of this package more in its traceback, so a program that
    printed it printed another text from run to run; and below the failed line stood carets
    that marked columns 10 to 27, whatever had failed there."""
    ended = jobs.run(tmp_path, PRINTED, options=(mode,))
    assert ended.status == 0, ended.talk
    lines = ended.printed.decode().splitlines()
    assert [line.split(", ")[-1] for line in lines if line.startswith("  File")] == [
        "in told", "in result", "in share",
    ]  # fmt: skip
    assert lines[-2].strip() == "return [whole + 1, (whole * 2) / parts]"
