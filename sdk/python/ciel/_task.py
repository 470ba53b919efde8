"""`@ciel.task`: functions whose calls may run anywhere.

A plain call of a task runs it here and now. `spawn` lets it run elsewhere and gives a `Future`;
`tail` hands the rest of the work to another call. This module makes calls and gives them to the
current strand; it knows neither how they are frozen nor where they run. Read next: `_strand.py`,
`_code.py` for the identity of a function.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, get_args, overload

from ciel._errors import CielWarning
from ciel._future import Future
from ciel._options import Options
from ciel._strand import Call, here, outside

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

_NAMES_FUTURE = re.compile(r"\bFuture\b")


class Tail:
    """What `tail` gives: the call that is to take the place of the one that returns it."""

    __slots__ = ("call", "taken")

    def __init__(self, call: Call) -> None:
        """Holds the call until whoever runs the task takes it."""
        self.call = call
        self.taken = False

    def take(self) -> Call:
        """The call; to be used by whoever runs it."""
        self.taken = True
        return self.call

    def __del__(self) -> None:
        """Tells of a tail that was not returned: nothing runs it."""
        if not self.taken:
            call = self.call
            warnings.warn_explicit(
                f"{call.label}.tail(...) was not returned, so nothing runs it: "
                f"write `return {call.label}.tail(...)`",
                CielWarning,
                call.file or "unknown",
                call.line,
            )


class AnyTask:
    """A function whose calls may run anywhere; what all tasks have, whatever their type."""

    function: Callable[..., Any]
    options_now: Options
    label: str
    identity: Any
    _keeps: frozenset[str | int] | None

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        """Raises TypeError for what cannot be a task, with the reason."""
        _check_function(function)
        functools.update_wrapper(cast("Callable[..., Any]", self), function)
        self.function = function
        self.options_now = options
        self.label = options.name or function.__name__
        self.identity = None
        self._keeps = None

    def __reduce__(self) -> tuple[Any, ...]:
        """By reference if the module has this very task under its name, else by its function."""
        function = self.function
        named = _named(function) if function.__module__ != "__main__" else None
        if isinstance(named, AnyTask) and named.function is function:
            options = None if named is self else self.options_now
            return (_find, (function.__module__, function.__qualname__, options))
        return (_again, (type(self), self.function, self.options_now))

    def __repr__(self) -> str:
        """Names the function."""
        return f"<task {self.function.__module__}.{self.function.__qualname__}>"

    @property
    def keeps(self) -> frozenset[str | int]:
        """Names and places of the parameters that take futures as they are."""
        if self._keeps is None:
            self._keeps = _keepers(self.function)
        return self._keeps

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters, in order."""
        return list(inspect.signature(self.function).parameters)

    def places(self, count: int) -> list[str]:
        """What to call the first `count` arguments that are given by place."""
        names: list[str] = []
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                missing = count - len(names)
                names += [f"{parameter.name}[{number}]" for number in range(missing)]
            names.append(parameter.name)
        return names

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = self.function(*args, **kwargs)
        while type(value) is Tail:
            call = value.take()
            value = call.task.function(*call.args, **call.kwargs)
        return value

    def _spawned(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Future[Any], ...]:
        strand = here.strand
        if strand is None:
            raise outside()
        frame = sys._getframe(2)
        call = Call(self, args, kwargs, frame.f_code.co_filename, frame.f_lineno)
        futures = strand.spawn(call, self.options_now)
        if strand.scopes:
            strand.note(futures)
        return futures

    def _tailed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        frame = sys._getframe(2)
        return Tail(Call(self, args, kwargs, frame.f_code.co_filename, frame.f_lineno))


class Task(AnyTask, Generic[P, R]):
    """A task with one output of type `R`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function here and now, as if it were no task."""
        return cast(R, self._run(args, kwargs))

    def spawn(self, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Lets the call run elsewhere and gives the future of its value.

        Arguments are copied now. Raises NoRun outside of a run, NotSerializable for arguments that
        have no bytes.
        """
        return self._spawned(args, kwargs)[0]

    def tail(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """`return f.tail(x)` ends this task and lets the call make its outputs.

        A loop of tails costs neither memory nor depth. Typed as the value; must be returned.
        """
        return cast(R, self._tailed(args, kwargs))

    def options(self, **changes: Any) -> Task[P, R]:
        """The same task that asks for more: cores, memory, retries, timeout, name, pure, lazy.

        Raises TypeError or ValueError that names what is wrong.
        """
        return _changed(self, changes)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Task[P, R]: ...
    @overload
    def __get__(
        self: Task[Concatenate[S, Q], R], instance: S, owner: Any = None
    ) -> BoundTask[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A task in a class is a method; `self` is copied like every argument."""
        return self if instance is None else BoundTask(self, instance)


class ManyTask(AnyTask, Generic[P]):
    """A task with several outputs: it returns as many values as were declared."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Sequence[Any]:
        """Runs the function here and now, as if it were no task."""
        return cast("Sequence[Any]", self._run(args, kwargs))

    def spawn(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Future[Any], ...]:
        """As `Task.spawn`, with one future for each output."""
        return self._spawned(args, kwargs)

    def tail(self, *args: P.args, **kwargs: P.kwargs) -> Sequence[Any]:
        """As `Task.tail`; the successor must have as many outputs."""
        return cast("Sequence[Any]", self._tailed(args, kwargs))

    def options(self, **changes: Any) -> ManyTask[P]:
        """As `Task.options`."""
        return _changed(self, changes)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A task in a class is a method; `self` is copied like every argument."""
        return self if instance is None else BoundTask(self, instance)


class BoundTask(Generic[P, R]):
    """A task that is a method of an instance; the instance is its first argument."""

    __slots__ = ("_task", "_instance")

    def __init__(self, task: AnyTask, instance: Any) -> None:
        """Holds the instance itself; it is copied at each spawn."""
        self._task = task
        self._instance = instance

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the method here and now."""
        return cast(R, self._task._run((self._instance, *args), kwargs))

    def spawn(self, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """As `Task.spawn`; a copy of the instance goes along."""
        futures = self._task._spawned((self._instance, *args), kwargs)
        return futures[0] if self._task.options_now.outputs is None else cast(Any, futures)

    def tail(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `Task.tail`."""
        return cast(R, self._task._tailed((self._instance, *args), kwargs))

    def options(self, **changes: Any) -> BoundTask[P, R]:
        """As `Task.options`."""
        return BoundTask(_changed(self._task, changes), self._instance)


class _Decorator:
    """`@ciel.task(...)` with options, before it has met its function."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def __call__(self, function: Callable[P, R]) -> Task[P, R]:
        return Task(function, self.options)


class _ManyDecorator(_Decorator):
    """`@ciel.task(outputs=n)`."""

    def __call__(self, function: Callable[P, Any]) -> ManyTask[P]:  # type: ignore[override]
        return ManyTask(function, self.options)


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(*, outputs: int, **options: Any) -> _ManyDecorator: ...
@overload
def task(**options: Any) -> _Decorator: ...
def task(function: Any = None, /, **options: Any) -> Any:
    """Makes a function a task: `@ciel.task`, or `@ciel.task(cores=2, retries=1)`.

    Options: cores, memory ("2 GiB" or bytes), retries, timeout (seconds), name, pure, outputs,
    lazy, resources. Raises TypeError for `async def` and generators.
    """
    if isinstance(options.get("resources"), dict):
        options["resources"] = tuple(sorted(options["resources"].items()))
    if function is not None:
        return Task(function, _DEFAULT)
    made = Options(**options)
    return _Decorator(made) if made.outputs is None else _ManyDecorator(made)


_DEFAULT = Options()

_A = TypeVar("_A", bound=AnyTask)


def _changed(task: _A, changes: dict[str, Any]) -> _A:
    changed = cast(_A, _again(type(task), task.function, task.options_now.changed(**changes)))
    changed.identity = task.identity
    return changed


def _again(kind: type[AnyTask], function: Callable[..., Any], options: Options) -> AnyTask:
    """Makes a task that was passed by value."""
    return kind(function, options)


def _find(module: str, name: str, options: Options | None) -> Any:
    """Finds a task that was passed by reference; `options` are its own if they were changed."""
    from ciel._code import find

    found = find(module, name)
    return found if options is None else _again(type(found), found.function, options)


def _named(function: Callable[..., Any]) -> Any:
    """What the function's module holds under its name."""
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        if part == "<locals>" or found is None:
            return None
        found = inspect.getattr_static(found, part, None)
    return found


def _check_function(function: Any) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{function.__qualname__} is async: tasks are plain functions that wait with .result()"
        )
    if inspect.isgeneratorfunction(function):
        raise TypeError(
            f"{function.__qualname__} is a generator: return a list, or spawn one task for each "
            "piece"
        )
    if not inspect.isfunction(function):
        kind = type(function).__name__
        raise TypeError(f"a task is a function defined with def or lambda, not a {kind}")


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
