"""`@ciel.task`: functions whose calls may run anywhere.

A plain call of a task runs the function here. `spawn` runs it as a task and returns a `Future`;
`tail` continues with another call. This module passes calls to the current strand; it knows neither
how they are frozen nor where they run. Read next: `_strand.py`, `_code.py` for the identity of a
function.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, Unpack, cast, overload

from ciel._arrow import Batch
from ciel._call import Call, TaskFunction, gathered, named, run_here
from ciel._code import find
from ciel._defaults import Defaults, copied_defaults
from ciel._errors import CielWarning
from ciel._future import Future
from ciel._options import OptionNames, Options
from ciel._strand import here, outside

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")
G = TypeVar("G")
M = TypeVar("M")


class Tail:
    """The result of `tail`: the call that replaces the one that returns it."""

    __slots__ = ("call", "taken")

    def __init__(self, call: Call) -> None:
        """Holds the call until the strand of the task takes it."""
        self.call = call
        self.taken = False

    def take(self) -> Call:
        """The call, for the strand that runs it."""
        self.taken = True
        return self.call

    def __del__(self) -> None:
        """Warns of a tail that was not returned: nothing runs it."""
        if not self.taken:
            call = self.call
            warnings.warn_explicit(
                f"{call.label}.tail(...) was not returned, so nothing runs it: "
                f"write `return {call.label}.tail(...)`",
                CielWarning,
                call.file or "unknown",
                call.line,
            )


def last_value(value: Any, apply: Callable[[Call], Any]) -> Any:
    """The value after all tails: `apply` runs each tail and returns its result."""
    while type(value) is Tail:
        value = apply(value.take())
    return value


def _run_tail(call: Call) -> Any:
    task = call.task
    return gathered(run_here(task.function, task.gives, call.args, call.kwargs), task.gives)


def spawned(call: Call) -> tuple[Future[Any], ...]:
    """Spawns a call in the current strand; raises NoRun outside of a run."""
    strand = here.strand
    if strand is None:
        raise outside()
    if call.task.copied is not None:
        call.args, call.kwargs = call.task.copied.given(call.args, call.kwargs)
    futures = strand.spawn(call, call.task.options_now)
    if strand.scopes:
        strand.note(futures)
    return futures


class AnyTask(TaskFunction):
    """A task of any type, which can be called, spawned and pickled."""

    copied: Defaults | None

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        """As a function; defaults that its calls may change are copied as they are now."""
        super().__init__(function, options)
        self.copied = copied_defaults(self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        """By reference if the module has this task under its name, else by value."""
        function = self.function
        found = named(function) if function.__module__ != "__main__" else None
        if isinstance(found, AnyTask) and found.function is function:
            options = None if found is self else self.options_now
            return (_find, (function.__module__, function.__qualname__, options))
        return (_again, (type(self), self.function, self.options_now))

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = run_here(self.function, self.gives, args, kwargs)
        if type(value) is not Tail:
            return gathered(value, self.gives) if self.gives else value
        return last_value(value, _run_tail)

    def _spawned(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Future[Any], ...]:
        frame = sys._getframe(2)
        return spawned(Call(self, args, kwargs, frame.f_code.co_filename, frame.f_lineno))

    def _spawned_here(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        """The spawn of a task with one output by native code, which has no frame."""
        frame = sys._getframe(1)
        call = Call(self, args, kwargs, frame.f_code.co_filename, frame.f_lineno)
        return spawned(call)[0]

    def _tailed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        frame = sys._getframe(2)
        if self.copied is not None:
            args, kwargs = self.copied.given(args, kwargs)
        return Tail(Call(self, args, kwargs, frame.f_code.co_filename, frame.f_lineno))


class Task(AnyTask, Generic[P, R]):
    """A task with one output of type `R`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function here and now, as if it were no task."""
        if self.gives:
            return cast(R, self._run(args, kwargs))
        value = self.function(*args, **kwargs)  # with no frame more: such calls recurse
        return cast(R, last_value(value, _run_tail) if type(value) is Tail else value)

    def spawn(self, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Submits the call as a task and returns the future of its value.

        Arguments are copied now. Raises NoRun outside of a run, NotSerializable for arguments that
        cannot be serialized.
        """
        return self._spawned(args, kwargs)[0]

    def tail(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """`return f.tail(x)` ends this task; the call produces its outputs instead.

        In a loop of tails neither memory nor stack depth grows. Typed as the value; must be
        returned.
        """
        return cast(R, self._tailed(args, kwargs))

    def options(self, **changes: Unpack[OptionNames]) -> Task[P, R]:
        """A copy of the task with other options, such as `cores=2`; see `ciel.task`.

        Raises TypeError or ValueError that names the invalid option.
        """
        return _changed(self, {**changes})

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Task[P, R]: ...
    @overload
    def __get__(
        self: Task[Concatenate[S, Q], R], instance: S, owner: Any = None
    ) -> BoundTask[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A task in a class is a method; `self` is copied like every argument."""
        return self if instance is None else BoundTask(self, instance)


class ManyTask(AnyTask, Generic[P, G, M]):
    """A task with several outputs: it returns as many values as declared.

    `M` is the type of the values together, `G` that of their futures.
    """

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> M:
        """Runs the function here and now, as if it were no task."""
        return cast(M, self._run(args, kwargs))

    def spawn(self, *args: P.args, **kwargs: P.kwargs) -> G:
        """As `Task.spawn`, with one future for each output."""
        return cast(G, self._spawned(args, kwargs))

    def tail(self, *args: P.args, **kwargs: P.kwargs) -> M:
        """As `Task.tail`; the successor must have as many outputs."""
        return cast(M, self._tailed(args, kwargs))

    def options(self, **changes: Unpack[OptionNames]) -> ManyTask[P, G, M]:
        """As `Task.options`."""
        return _changed(self, {**changes})

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
        """As `Task.spawn`; the call takes a copy of the instance."""
        futures = self._task._spawned((self._instance, *args), kwargs)
        return futures[0] if self._task.options_now.outputs is None else cast(Any, futures)

    def tail(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `Task.tail`."""
        return cast(R, self._task._tailed((self._instance, *args), kwargs))

    def options(self, **changes: Unpack[OptionNames]) -> BoundTask[P, R]:
        """As `Task.options`."""
        return BoundTask(_changed(self._task, {**changes}), self._instance)


class _Decorator:
    """`@ciel.task(...)` with options, before it is applied to a function."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def __call__(self, function: Callable[P, R]) -> Task[P, R]:
        return Task(function, self.options)


class _JoinedDecorator:
    """`@ciel.task(joined=True)`."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def __call__(self, function: Callable[P, Iterator[bytes | Batch]]) -> Task[P, bytes]:
        return Task(cast("Callable[P, Any]", function), self.options)


class _WritesDecorator:
    """`@ciel.task(writes=True)`."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def __call__(self, function: Callable[P, None]) -> Task[P, bytes]:
        return Task(cast("Callable[P, Any]", function), self.options)


class _ManyDecorator:
    """`@ciel.task(outputs=n)`."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[P, tuple[S, T]]
    ) -> ManyTask[P, tuple[Future[S], Future[T]], tuple[S, T]]: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[P, tuple[S, T, U]]
    ) -> ManyTask[P, tuple[Future[S], Future[T], Future[U]], tuple[S, T, U]]: ...
    @overload
    def __call__(
        self, function: Callable[P, Sequence[S]]
    ) -> ManyTask[P, tuple[Future[S], ...], Sequence[S]]: ...
    def __call__(self, function: Callable[P, Any]) -> ManyTask[P, Any, Any]:
        return ManyTask(function, self.options)


@overload
def task(
    function: Callable[P, Any], /, *, outputs: int, **options: Unpack[OptionNames]
) -> ManyTask[P, Any, Any]: ...
@overload
def task(
    function: Callable[P, Iterator[bytes | Batch]],
    /,
    *,
    joined: Literal[True],
    **options: Unpack[OptionNames],
) -> Task[P, bytes]: ...
@overload
def task(
    function: Callable[P, None], /, *, writes: Literal[True], **options: Unpack[OptionNames]
) -> Task[P, bytes]: ...
@overload
def task(function: Callable[P, R], /, **options: Unpack[OptionNames]) -> Task[P, R]: ...
@overload
def task(*, outputs: int, **options: Unpack[OptionNames]) -> _ManyDecorator: ...
@overload
def task(*, joined: Literal[True], **options: Unpack[OptionNames]) -> _JoinedDecorator: ...
@overload
def task(*, writes: Literal[True], **options: Unpack[OptionNames]) -> _WritesDecorator: ...
@overload
def task(**options: Unpack[OptionNames]) -> _Decorator: ...
def task(function: Any = None, /, **options: Any) -> Any:
    """Makes a task of a function: `@ciel.task`, `@ciel.task(cores=2)`, or `ciel.task(f, cores=2)`.

    Options: cores, memory (bytes, or text such as "2 GiB"), retries, timeout (seconds), name, pure,
    outputs, lazy, resources, keep, version, joined, writes, stream; see `Options`. A generator
    function is a task whose values others may read while it yields them: `Future.stream()`. Raises
    TypeError for `async def` and options that do not exist, ValueError for wrong amounts.
    """
    if not options and function is not None:
        return Task(function, _DEFAULT)
    decorator = _decorator(Options(**options))
    return decorator if function is None else decorator(function)


def _decorator(
    made: Options,
) -> _Decorator | _JoinedDecorator | _ManyDecorator | _WritesDecorator:
    if made.writes:
        return _WritesDecorator(made)
    if made.joined:
        return _JoinedDecorator(made)
    return _Decorator(made) if made.outputs is None else _ManyDecorator(made)


_DEFAULT = Options()

_A = TypeVar("_A", bound=AnyTask)


def _changed(task: _A, changes: dict[str, Any]) -> _A:
    changed = cast(_A, _again(type(task), task.function, task.options_now.changed(**changes)))
    changed.identity = task.identity
    return changed


def _again(kind: type[AnyTask], function: Callable[..., Any], options: Options) -> AnyTask:
    """Unpickles a task that was passed by value."""
    return kind(function, options)


def _find(module: str, name: str, options: Options | None) -> Any:
    """Finds a task that was passed by reference; `options` replace its own if they were changed."""
    found = find(module, name)
    return found if options is None else _again(type(found), found.function, options)
