"""Exceptions of ciel, and how an exception gets from a task to the reader of its result.

A failing task's exception becomes a *failure*: plain data with kind, type name, message, frames
and, if it can be pickled, the exception itself. The reader gets the user's own exception type, with
a traceback rebuilt so that it reads as one program. This module knows no strand and no socket. Read
next: `_carried.py`.
"""

from __future__ import annotations

import json
import linecache
import os
import reprlib
import sys
from collections.abc import Mapping
from types import FrameType, MappingProxyType, TracebackType
from typing import Any

from ciel._carried import CHAIN_MAX, Place, carried, chain, restored
from ciel._native import Failure, Frame

FRAMES_MAX = 32
NOTES_MAX = 12
CAUSE_CHARACTERS_MAX = 200
ORIGIN = "__ciel_task__"
"""The attribute of an exception that names the task in which it was raised."""

_COPY_FIRST = "arrays that come to a task are read-only: write to a copy, x = x.copy()"
_READ_ONLY = ("read-only", "WRITEABLE")
"""One of these is in what numpy says of a write to an array that is read-only."""

_IN_TASK = "in task "
_IN_MORE = "in more tasks, not shown"

_OURS = (os.path.dirname(os.path.abspath(__file__)) + os.sep, "<frozen importlib")
"""Folders of code that is not the user's program: this package, and the import machinery."""


class CielError(Exception):
    """An error that ciel reports; `task` names the failed task, `hint` suggests a remedy."""

    kind = "REFUSED"

    def __init__(self, message: str = "", *, hint: str = "", task: str = "") -> None:
        """`message` says what happened; it does not repeat task and hint."""
        super().__init__(message)
        self.hint = hint
        self.task = task

    def __str__(self) -> str:
        """The message, followed by the hint on a line of its own."""
        message = super().__str__()
        return f"{message}\n  hint: {self.hint}" if self.hint else message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles hint and task with the message."""
        return (_rebuilt, (type(self), self.args, self.__dict__))


class TaskError(CielError):
    """A task failed with an exception that cannot be transferred; `type_name` is its type."""

    kind = "TASK_ERROR"
    type_name: str = ""


class CommandError(TaskError):
    """A command failed; the attributes say what it was and what it left.

    `exit_status` is `None` if a signal killed it; `signal` is then its name, such as `SIGTERM`, and
    else empty. `command` is the command as it was written; `inputs` has its first inputs by name,
    each in a few words. `stdout` and `stderr` are the ends of what it wrote, at most 4096 bytes of
    each; `ciel logs` shows more.
    """

    exit_status: int | None = None
    signal: str = ""
    command: str = ""
    inputs: Mapping[str, str] = MappingProxyType({})
    stdout: str = ""
    stderr: str = ""


class WorkerLost(CielError):
    """The process that ran the task died repeatedly; the limit of restarts was reached.

    `excerpt` is what the process printed last, such as the Python stack of a crash. It is a note,
    too, and no part of `str(error)`, since addresses in it differ from run to run.
    """

    kind = "WORKER_LOST"
    excerpt: str = ""


class Timeout(CielError):
    """The task exceeded the time limit of its option `timeout`."""

    kind = "TIMEOUT"


class OutOfMemory(CielError):
    """The task exceeded its option `memory`, or the memory of the machine."""

    kind = "OUT_OF_MEMORY"


class NotSerializable(CielError):
    """A value cannot be serialized; the message shows the path to the part that cannot."""

    kind = "NOT_SERIALIZABLE"


class NonDeterministic(CielError):
    """A replayed task did something other than in its recorded attempt."""

    kind = "NON_DETERMINISTIC"


class ObjectLost(CielError):
    """An object is lost and cannot be recomputed."""

    kind = "OBJECT_LOST"


class DiskFull(CielError):
    """The disk has no room for what the task writes."""

    kind = "DISK_FULL"


class Refused(CielError):
    """The request is invalid or not supported; retrying does not help."""

    kind = "REFUSED"


class NoRun(CielError):
    """A task was spawned, or a future used, outside of a run."""


class WaitError(CielError):
    """Waiting is not possible at this place; the message names the reason."""


class Cancelled(BaseException):
    """The task was cancelled. Not an `Exception`, so that `except Exception` lets it pass."""

    kind = "CANCELLED"
    hint = ""
    task = ""


class CielWarning(UserWarning):
    """A probable mistake that ciel noticed; the program continues."""


_KINDS: dict[str, type[CielError] | type[Cancelled]] = {
    kind.kind: kind
    for kind in (
        TaskError, WorkerLost, Cancelled, Timeout, OutOfMemory, NotSerializable, NonDeterministic,
        ObjectLost, DiskFull, Refused,
    )
}  # fmt: skip


def _rebuilt(kind: type[CielError], args: tuple[Any, ...], state: dict[str, Any]) -> CielError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def failure_of(
    error: BaseException, task: str = "", call: str = "", origin: str = ""
) -> Failure:
    """The failure that stands for an exception which leaves a task.

    `task` and `call` are the task's printed name and its call as the user wrote it, for the note
    that is added here. `origin` names the task that failed first, for an exception that does not.
    """
    if call and task:
        _add_task_note(error, f"{_IN_TASK}{task}, {call}")
    elif call:
        add_note(error, f"in {call}")
    if _wrote_to_what_is_read_only(error):
        _add_once(error, _COPY_FIRST)
    kind = getattr(error, "kind", None) if isinstance(error, (CielError, Cancelled)) else None
    name = getattr(error, "type_name", "") or type(error).__qualname__
    data = carried(error, _places)
    message = str(error.args[0]) if isinstance(error, CielError) and error.args else _text(error)
    frames = [*frames_of(error.__traceback__), *_place_of(error)]
    return Failure(
        kind or ("OUT_OF_MEMORY" if isinstance(error, MemoryError) else "TASK_ERROR"),
        "python",
        name,
        message,
        frames,
        getattr(error, "hint", "") if kind else "",
        None,
        None if data is None else ("pickle", data),
        getattr(error, ORIGIN, "") or (getattr(error, "task", "") if kind else "") or origin,
        _excerpt_of(error, frames),
    )


def _wrote_to_what_is_read_only(error: BaseException) -> bool:
    """Whether numpy refused a write. pandas may raise an error of its own from numpy's, about the
    value that it could not write.
    """
    step: BaseException | None = error
    for _ in range(CHAIN_MAX):
        if step is None:
            break
        refused = isinstance(step, (ValueError, TypeError))
        if refused and any(word in _text(step) for word in _READ_ONLY):
            return True
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)
    return False


def _place_of(error: BaseException) -> list[Frame]:
    """The line of a syntax error: it never ran, so it is in no traceback."""
    if not isinstance(error, SyntaxError) or not error.filename:
        return []
    return [Frame(error.filename, error.lineno or 0, "", (error.text or "").strip())]


def _excerpt_of(error: BaseException, frames: list[Frame]) -> str:
    """What a lost worker printed, the line of a syntax error, or that of the innermost frame if
    causes follow it, each on a line of its own.
    """
    causes = _causes(error)
    source = frames[-1].source if frames and causes else ""
    return "\n".join(part for part in (_own_excerpt(error) or source, *causes) if part)


def _causes(error: BaseException) -> list[str]:
    """What led to the exception, the nearest first: each with the task that failed with it."""
    lines: list[str] = []
    while len(lines) < CHAIN_MAX:
        cause, word = error.__cause__, "caused by"
        if cause is None and not error.__suppress_context__:
            cause, word = error.__context__, "while handling"
        if cause is None:
            break
        task = getattr(cause, ORIGIN, "")
        name = getattr(cause, "type_name", "") or type(cause).__qualname__
        text = f"{word} {task}{': ' if task else ''}{name}: {_first_line(cause)}"
        lines.append(text.removesuffix(": "))
        error = cause
    return lines


def _first_line(error: BaseException) -> str:
    line = _text(error).partition("\n")[0]
    is_long = len(line) > CAUSE_CHARACTERS_MAX
    return line[: CAUSE_CHARACTERS_MAX - 3] + "..." if is_long else line


def _own_excerpt(error: BaseException) -> str:
    """What a lost worker printed, or the line of a syntax error with a caret below the place."""
    if isinstance(error, WorkerLost):
        return error.excerpt
    if not isinstance(error, SyntaxError) or not error.text:
        return ""
    line = error.text.rstrip()
    bare = line.lstrip()
    column = max(0, (error.offset or 1) - 1 - (len(line) - len(bare)))
    return f"{bare}\n{' ' * column}^"


def error_of(failure: Failure) -> BaseException:
    """The exception for a failure: the user's own if it was pickled, else one of this module."""
    form, data = failure.exception or ("", b"")
    if form == "pickle":
        try:
            return _originated(restored(data), failure.task)
        except Exception:  # a class of the user may raise anything
            pass
    kind = CommandError if failure.language == "command" else _KINDS.get(failure.kind, TaskError)
    error = kind(_text_of(failure))
    error.hint, error.task = failure.hint, failure.task
    if isinstance(error, TaskError):
        error.type_name = failure.type_name
    if isinstance(error, CommandError) and form == "json":
        _describe(error, json.loads(data))
    if isinstance(error, WorkerLost) and failure.excerpt:
        error.excerpt = failure.excerpt
        add_note(error, failure.excerpt)
    if failure.task and not failure.language:  # it ended without code of its own to say so
        _add_task_note(error, f"{_IN_TASK}{failure.task}")
    frames = [(frame.file, frame.function, frame.line) for frame in failure.frames]
    return _originated(error, failure.task).with_traceback(chain(frames))


def _describe(error: CommandError, fields: dict[str, Any]) -> None:
    """Sets the attributes of a failed command from its fields."""
    error.exit_status = fields.get("exit_status")
    error.signal = fields.get("signal") or ""
    error.command = fields.get("command", "")
    error.inputs = fields.get("inputs", {})
    error.stdout, error.stderr = fields.get("stdout", ""), fields.get("stderr", "")


def _text_of(failure: Failure) -> str:
    """The message, with the type of an exception that could not be pickled, and the excerpt."""
    text = failure.message
    is_named = failure.type_name not in ("", TaskError.__name__)
    if failure.kind == TaskError.kind and is_named and failure.language != "command":
        text = f"{failure.type_name}: {text}"
    is_text = failure.excerpt and failure.kind != WorkerLost.kind
    return f"{text}\n{failure.excerpt}" if is_text else text


def _originated(error: BaseException, task: str) -> BaseException:
    """Records which task failed first, for callers that do not catch the exception."""
    if task:
        error.__dict__[ORIGIN] = task
    return error


def add_note(error: BaseException, note: str) -> None:
    """Adds a note, up to `NOTES_MAX`; then one note stands for the rest."""
    notes = getattr(error, "__notes__", ())
    if len(notes) < NOTES_MAX:
        error.add_note(note)
    elif len(notes) == NOTES_MAX:
        error.add_note(_IN_MORE)


def _add_task_note(error: BaseException, note: str) -> None:
    """Adds the note of a task before those of the tasks inside it, as in a traceback; of many the
    innermost are kept.
    """
    notes: list[str] = list(getattr(error, "__notes__", ()))
    of_tasks = [place for place, told in enumerate(notes) if told.startswith((_IN_TASK, _IN_MORE))]
    if not of_tasks:
        return add_note(error, note)
    if len(of_tasks) < NOTES_MAX:
        notes.insert(of_tasks[0], note)
    elif notes[of_tasks[0]] != _IN_MORE:
        notes.insert(of_tasks[0], _IN_MORE)
    error.__notes__ = notes


def _add_once(error: BaseException, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


class _Shortened(reprlib.Repr):
    """Short texts of arguments for notes."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 40
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 4
        self.maxlevel = 3

    def repr_ndarray(self, value: Any, level: int) -> str:
        """Arrays by shape: their text may take seconds."""
        return f"<array {value.dtype}{list(value.shape)}>"


_SHORTENED = _Shortened()


def call_text(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """`fib(30, deep=True)`, with long arguments shortened; never raises."""
    try:
        parts = [_SHORTENED.repr(value) for value in args]
        parts += [f"{key}={_SHORTENED.repr(value)}" for key, value in kwargs.items()]
    except Exception:  # a `__repr__` of the user may raise anything
        parts = ["..."]
    text = ", ".join(parts)
    return f"{name}({text if len(text) <= 200 else text[:197] + '...'})"


def frames_of(trace: TracebackType | None) -> list[Frame]:
    """Frames of the user's program, outermost first; of a long recursion its two ends."""
    frames = []
    for found in _entries(trace):
        code = found.tb_frame.f_code
        source = linecache.getline(code.co_filename, found.tb_lineno).strip()
        frames.append(Frame(code.co_filename, found.tb_lineno, code.co_name, source))
    return frames


def _is_ours(frame: FrameType) -> bool:
    """Whether this package's code runs there, what a class of it has generated, or an import."""
    file = frame.f_code.co_filename
    if file.startswith("<frozen importlib"):
        return True
    if file.startswith("<"):
        file = str(frame.f_globals.get("__file__"))
    return file.startswith(_OURS)


def place_here() -> str:
    """The line of the user's program that runs now, as `file:line`; empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        frame = frame.f_back  # type: ignore[assignment]
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def as_told(error: BaseException) -> BaseException:
    """The exception without the outermost frames of this package."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame):
        trace = trace.tb_next
    return error.with_traceback(trace)


def _entries(trace: TracebackType | None) -> list[TracebackType]:
    kept: list[TracebackType] = []
    while trace is not None:
        if not _is_ours(trace.tb_frame):
            kept.append(trace)
            if len(kept) > 2 * FRAMES_MAX:
                del kept[FRAMES_MAX // 2 : -FRAMES_MAX // 2]
        trace = trace.tb_next
    if len(kept) > FRAMES_MAX:
        del kept[FRAMES_MAX // 2 : -FRAMES_MAX // 2]
    return kept


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a `__str__` of the user may raise anything
        return f"<{type(error).__name__} whose text cannot be computed>"


def _places(error: BaseException) -> list[Place]:
    """The frames of an exception's traceback that are the user's program."""
    entries = _entries(error.__traceback__)
    found = [(entry.tb_frame.f_code, entry.tb_lineno) for entry in entries]
    return [(code.co_filename, code.co_name, line) for code, line in found]
