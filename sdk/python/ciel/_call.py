"""Functions as tasks, and their calls, independent of where they run.

This module knows neither strands nor bytes. Read next: `_task.py` for what users see, `_code.py`
for the identity of a function.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, get_args

from ciel import _native
from ciel._arrow import BatchWriter, is_batch
from ciel._future import Future
from ciel._options import Options
from ciel._output import written
from ciel._task_streams import Stream

if TYPE_CHECKING:
    from ciel._trials import Trials

MANY, YIELDS, JOINED = 16, 64, 128
"""How a function gives its outputs: several of them, values one by one, pieces of bytes.

Bytes that a function writes to `ciel.output()` are pieces, too: then it is no generator.
"""

_NAMES_FUTURE = re.compile(r"\bFuture\b")


class Definition:
    """What a module defines around a function, such as a task: a notebook may define it again."""

    function: Callable[..., Any]


class TaskFunction(_native.Function, Definition):
    """A function whose calls may run anywhere, with its options: the base of all tasks."""

    options_now: Options
    label: str
    identity: Any
    definitions: dict[str, Any]
    gives: int
    copied: Any
    trials: Trials | None
    _keeps: frozenset[str | int] | None

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        """Raises TypeError, with the reason, for a value that cannot be a task."""
        function = _plain_function(function)
        _forget_wrapped(function)
        self.gives = _gives(function, options)
        _check_locality(function, options)
        functools.update_wrapper(cast("Callable[..., Any]", self), function)
        self.function = function
        self.options_now = options
        self.label = options.name or function.__name__
        self.identity = None
        self.definitions = {}
        self.trials = None
        self._keeps = None

    def __repr__(self) -> str:
        """Names the function."""
        return f"<task {self.function.__module__}.{self.function.__qualname__}>"

    @property
    def keeps(self) -> frozenset[str | int]:
        """Names and indices of the parameters that take futures unresolved."""
        if self._keeps is None:
            self._keeps = _keepers(self.function)
        return self._keeps

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in order."""
        return list(inspect.signature(self.function).parameters)

    def places(self, count: int) -> list[str]:
        """Names for the first `count` positional arguments."""
        names: list[str] = []
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                missing = count - len(names)
                names += [f"{parameter.name}[{number}]" for number in range(missing)]
            names.append(parameter.name)
        return names


class Call:
    """One call of a task: the function, its arguments, and the line of the spawn."""

    __slots__ = ("task", "args", "kwargs", "file", "line")

    def __init__(
        self,
        task: TaskFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        file: str,
        line: int,
    ) -> None:
        """`file` and `line` are the location of the spawn; both may be unknown: `""` and 0."""
        self.task = task
        self.args = args
        self.kwargs = kwargs
        self.file = file
        self.line = line

    @property
    def label(self) -> str:
        """The label, without the digits that the engine adds."""
        return self.task.label


def named(function: Callable[..., Any]) -> Any:
    """The attribute of the function's module under its name."""
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        if part == "<locals>" or found is None:
            return None
        found = inspect.getattr_static(found, part, None)
    return found


def _plain_function(work: Any) -> Callable[..., Any]:
    """The function itself, or one that calls anything else that can be called.

    Raises TypeError with the reason for what cannot be a task.
    """
    name = getattr(work, "__qualname__", type(work).__qualname__)
    inner = work.func if isinstance(work, functools.partial) else work
    called = inner if inspect.isroutine(inner) else getattr(type(inner), "__call__", None)
    for found in (inner, called):
        if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
            raise TypeError(
                f"{name} is async: tasks are plain functions that wait with .result()"
            )
        if inspect.isgeneratorfunction(found) and found is not work:
            raise TypeError(
                f"{name} makes a generator: a task that yields is a plain function with `yield`"
            )
    if inspect.isfunction(work):
        return work
    if isinstance(work, type):
        raise TypeError(
            f"{name} is a class: a task is a function, for example one that makes an instance; "
            "methods can be tasks, too"
        )
    if not callable(work):
        raise TypeError(f"a task is a function or another callable, not {work!r}")
    return _calling(work)


def _forget_wrapped(function: Callable[..., Any]) -> None:
    """`functools.wraps(task)` has copied what a task knows of itself to the function."""
    wrapped = getattr(function, "__wrapped__", None)
    if isinstance(wrapped, TaskFunction):
        for name in TaskFunction.__annotations__:
            vars(function).pop(name, None)


def _gives(function: Callable[..., Any], options: Options) -> int:
    """How the function gives its outputs; raises TypeError if the options do not fit it."""
    name = function.__qualname__
    if options.writes:
        return _gives_written(function, options)
    if not inspect.isgeneratorfunction(function):
        if options.joined:
            raise TypeError(f"{name} is joined, but does not yield")
        if options.stream != Stream():
            raise TypeError(f"{name} has the option stream, but does not yield")
        return 0 if options.outputs is None else MANY
    if options.outputs is not None:
        raise TypeError(f"{name} yields, so it has one output, and no outputs={options.outputs}")
    return YIELDS | JOINED if options.joined else YIELDS


def _gives_written(function: Callable[..., Any], options: Options) -> int:
    name = function.__qualname__
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{name} yields and has the option writes: leave out one of them")
    if options.joined:
        raise TypeError(f"{name} has both options joined and writes: joined is for generators")
    if options.outputs is not None:
        raise TypeError(f"{name} writes its output, which is one, and no outputs={options.outputs}")
    return YIELDS | JOINED


def _check_locality(function: Callable[..., Any], options: Options) -> None:
    """Raises TypeError for a locality weight of a parameter that does not exist."""
    if not options.locality:
        return
    parameters = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    for name in dict(options.locality):
        if name not in parameters:
            raise TypeError(
                f"{function.__qualname__} has no parameter {name!r} for its option locality"
            )


def is_written(function: Callable[..., Any], gives: int) -> bool:
    """Whether the function writes to `ciel.output()` what it gives."""
    return gives & JOINED != 0 and not inspect.isgeneratorfunction(function)


def run_here(function: Callable[..., Any], gives: int, args: Any, kwargs: Any) -> Any:
    """Calls a function; what it gives to who has called it."""
    if is_written(function, gives):
        return written(function.__qualname__, lambda: function(*args, **kwargs))
    return function(*args, **kwargs)


def gathered(pieces: Any, gives: int) -> Any:
    """What a call gives that has run here: the pieces of a generator that is joined, as bytes."""
    if isinstance(pieces, bytes):
        return pieces
    if not gives & JOINED:
        return pieces
    joiner = Joiner()
    parts = [part for piece in pieces for part in joiner.pieces_of(piece)]
    return b"".join([*parts, *joiner.end()])


class Joiner:
    """The bytes of a joined generator: what it yields, or the stream of its record batches."""

    def __init__(self) -> None:
        """Nothing was yielded yet."""
        self._batches: BatchWriter | None = None
        self._has_bytes = False

    def pieces_of(self, piece: Any) -> list[Any]:
        """The bytes of what was yielded; raises TypeError for what does not go with the rest."""
        if self._batches is not None:
            return self._batches.pieces_of(piece)
        if isinstance(piece, (bytes, bytearray, memoryview)):
            self._has_bytes = True
            return [piece]
        if self._has_bytes or not is_batch(piece):
            expected = "bytes" if self._has_bytes else "bytes or record batches of pyarrow"
            raise TypeError(f"a joined generator yields {expected}, not {type(piece).__name__}")
        self._batches = BatchWriter(piece)
        return self._batches.pieces_of(piece)

    def end(self) -> list[Any]:
        """The bytes behind the last piece."""
        return [] if self._batches is None else self._batches.end()


def _calling(work: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls `work`, which it captures."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)

    call.__name__ = getattr(work, "__name__", None) or type(work).__name__
    call.__qualname__ = getattr(work, "__qualname__", call.__name__)
    call.__module__ = getattr(work, "__module__", None) or type(work).__module__
    call.__doc__ = work.__doc__
    try:
        call.__signature__ = inspect.signature(work)  # type: ignore[attr-defined]
    except (TypeError, ValueError):  # some built-in functions have none
        pass
    return call


def _keepers(function: Callable[..., Any]) -> frozenset[str | int]:
    """Parameters annotated `Future[...]`, or a container of it."""
    kept: set[str | int] = set()
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        if _is_future(parameter.annotation):
            named = parameter.kind is not parameter.VAR_KEYWORD
            kept.add(parameter.name if named else "**")
            if parameter.kind is parameter.VAR_POSITIONAL:
                kept.add(-1 - place)
            elif parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
                kept.add(place)
    return frozenset(kept)


def _is_future(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return _NAMES_FUTURE.search(annotation) is not None
    origin = getattr(annotation, "__origin__", annotation)
    return origin is Future or any(_is_future(part) for part in get_args(annotation))
