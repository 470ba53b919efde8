"""`ciel.once`: values that are made once in each worker process, such as a model or a connection.

A value belongs to the process, not to the task that happens to make it: `make` runs outside of any
task, what it prints is talk, and nothing about it is recorded. Values are dropped when memory is
short. The engine is told of which inputs there are values, so that tasks that name these come here.
This module knows neither the engine nor how a worker gives turns. Read next: `_worker_process.py`,
which calls `relieve`.
"""

from __future__ import annotations

import gc
import inspect
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from typing import Any, Generic, TypeVar, cast, overload
from weakref import WeakValueDictionary

from ciel._call import Definition, named
from ciel._code import find
from ciel._freeze import by_value
from ciel._future import Future
from ciel._native import File, Value
from ciel._strand import here

T = TypeVar("T")
U = TypeVar("U")

VALUES_MAX = 256
"""Values that a process keeps; beyond, the one that was used least recently is dropped."""

AVAILABLE_PERCENT_MIN = 10
"""Values are dropped when less of the machine's memory is available."""

DECLARED_PERCENT_MAX = 50
"""Values are dropped when a process uses more than this part of what a task declares."""

LOOK_EVERY_S = 1.0
"""How often the machine's memory is looked at, at most."""

_MISSING: Any = object()


class Once(Definition, Generic[T]):
    """A value that is made at its first use in a process; calling it returns the value."""

    def __init__(self, make: Callable[[], T], origin: str | None = None) -> None:
        """Makes nothing yet; `origin` is the file of the input that the value is made of.

        Raises TypeError if `make` cannot be called without arguments.
        """
        _check(make)
        self.function = make
        self.origin = origin
        self.__doc__ = make.__doc__
        self._value: Any = _MISSING
        self._key = b""
        self._lock = threading.Lock()
        self._maker: int | None = None

    def __repr__(self) -> str:
        """Names the function."""
        return f"<once {_name(self.function)}>"

    def __call__(self) -> T:
        """The value of this process, made if there is none.

        Raises what `make` raises; nothing is kept then, and the next call tries again. Raises
        RuntimeError if `make` calls this itself.
        """
        value = self._value
        if value is _MISSING:
            value = self._made()
        _keep(self)
        return cast(T, value)

    def drop(self) -> None:
        """Drops the value of this process, such as a broken connection; the next call makes it."""
        self._value = _MISSING
        with _keeping:
            if MADE.pop(self, self) is not self:
                _count_origin(self.origin, -1)

    def _made(self) -> Any:
        if self._maker == threading.get_ident():
            raise RuntimeError(f"{_name(self.function)} needs its own value to make it")
        with self._lock:
            value = self._value  # another thread may have made it meanwhile
            if value is _MISSING:
                self._maker = threading.get_ident()
                try:
                    with _apart():
                        value = self._value = self.function()
                finally:
                    self._maker = None
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        """By reference if the module has this under its name, else the function by value."""
        module = self.function.__module__
        if module != "__main__" and named(self.function) is self:
            return (_find, (module, self.function.__qualname__))
        if not self._key:
            import hashlib

            self._key = hashlib.blake2b(by_value(self.function), digest_size=16).digest()
            _adopted.setdefault(self._key, self)
        return (_adopt, (self._key, self.function))


@overload
def once(make: Callable[[], T]) -> Once[T]: ...
@overload
def once(make: Callable[[U], T], input: Future[U]) -> T: ...
def once(make: Any, input: Future[Any] | None = None) -> Any:
    """A value that is made once in each worker process, at its first use there.

    ```python
    @ciel.once
    def model() -> Model:
        return Model.load("weights.bin")
    ```

    `model()` returns the value in any task. `make` runs outside of tasks: it cannot spawn, wait or
    read recorded inputs, and what it prints goes to standard error. A failure is raised in the task
    that needed the value, and the next one tries again. Values are dropped when memory is short,
    see docs/reference/python.md, and by `model.drop()`. Raises TypeError if `make` cannot be called
    without arguments.

    `ciel.once(make, input)` returns, in a task, what `make` gives for the value behind the future
    `input`: it is made once in each process for each function and object, also if other tasks name
    the object by futures of their own. Waits for `input`, and raises its failure; raises TypeError
    if it is no future.
    """
    return Once(make) if input is None else _value_of(make, input)


_of_input: WeakValueDictionary[Hashable, Once[Any]] = WeakValueDictionary()
"""What was made of inputs, as long as it is kept."""


def _value_of(make: Callable[[Any], Any], given: Future[Any]) -> Any:
    if not isinstance(given, Future):
        raise TypeError(
            f"ciel.once takes a Future as its input, not {type(given).__name__}: annotate the "
            "parameter of the task as ciel.Future, so that it gets the reference"
        )
    given._strand.check_here()
    given._strand.wait([given], False, None)
    key = (make, _identity(given))
    found = _of_input.get(key)
    if found is None:
        _check_takes(make, (None,), "cannot be called with the value of the input alone")
        value, known = given.result(), given._known
        found = Once(lambda: make(value), known.path if type(known) is File else None)
        found()
        _of_input[key] = found
    return found()


def _identity(given: Future[Any]) -> Hashable:
    """The same for all references to one object, in all tasks of this process: by the file of the
    object, or by its bytes, if these are few.
    """
    known = given._known
    if type(known) is File:
        return known.path
    if type(known) is Value and not known.references:
        return (known.form, bytes(known.data))
    return cast(Hashable, known)


MADE: OrderedDict[Once[Any], None] = OrderedDict()
"""What has a value, the least recently used first."""

_keeping = threading.RLock()
_origins: dict[str, int] = {}
"""The files of which values were made, with the number of values that are kept."""

_adopted: WeakValueDictionary[bytes, Once[Any]] = WeakValueDictionary()


def relieve(memory_bytes: int | None) -> None:
    """Drops all values if memory is short; a task with this limit of memory is about to begin."""
    if not MADE or not _is_short(memory_bytes):
        return
    for one in list(MADE):
        one.drop()
    gc.collect()


def _keep(one: Once[Any]) -> None:
    try:
        MADE.move_to_end(one)
    except KeyError:
        with _keeping:
            if one not in MADE:
                _count_origin(one.origin, 1)
            MADE[one] = None
            while len(MADE) > VALUES_MAX:
                next(iter(MADE)).drop()


def _count_origin(path: str | None, by: int) -> None:
    """So many more values are made of that file; the engine hears of the first and of the last."""
    if path is None:
        return
    before = _origins.pop(path, 0)
    if before + by:
        _origins[path] = before + by
    if not before:
        _process.tell([path], [])
    elif not before + by:
        _process.tell([], [path])


class _Looked:
    """When the machine's memory was looked at."""

    at_s = 0.0


def _is_short(memory_bytes: int | None) -> bool:
    if memory_bytes is not None and 100 * _own_bytes() > DECLARED_PERCENT_MAX * memory_bytes:
        return True
    now = time.monotonic()
    if now - _Looked.at_s < LOOK_EVERY_S:
        return False
    _Looked.at_s = now
    return available_percent() < AVAILABLE_PERCENT_MIN


def _own_bytes() -> int:
    """The anonymous memory of this process, as the engine measures it."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        _, resident, shared = file.read().split()[:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")


def available_percent() -> float:
    """The part of the machine's memory that is available, in percent; 100 if unknown."""
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    try:
        available, total = (int(fields[name].split()[0]) for name in ("MemAvailable", "MemTotal"))
    except (KeyError, ValueError):
        return 100.0
    return 100.0 * available / max(total, 1)


def _check(make: Any) -> None:
    if not callable(make):
        raise TypeError(f"ciel.once takes a function without arguments, not {make!r}")
    if inspect.iscoroutinefunction(make) or inspect.isgeneratorfunction(make):
        raise TypeError(f"{_name(make)} is async or a generator: ciel.once takes a plain function")
    _check_takes(
        make, (), "has required arguments: ciel.once takes a function without arguments"
    )


def _check_takes(make: Any, args: tuple[Any, ...], refusal: str) -> None:
    """Raises TypeError, with the refusal, if `make` cannot be called with these arguments."""
    try:
        inspect.signature(make).bind(*args)
    except TypeError:
        raise TypeError(f"{_name(make)} {refusal}") from None
    except ValueError:  # some built-in functions have no signature
        pass


def _name(make: Any) -> str:
    return str(getattr(make, "__qualname__", type(make).__qualname__))


def _find(module: str, name: str) -> Any:
    return find(module, name)


def _adopt(key: bytes, make: Callable[[], Any]) -> Once[Any]:
    """The value of this process for a function that was sent by value."""
    return _adopted.setdefault(key, Once(make))


@contextmanager
def _apart() -> Iterator[None]:
    """The code inside belongs to no task of this thread, and its prints are no output of one."""
    strand, making = here.strand, here.making
    with _process.redirected(strand is not None):
        here.strand, here.making = None, True
        try:
            yield
        finally:
            here.strand, here.making = strand, making


def _untold(held: list[str], dropped: list[str]) -> None:
    """Nobody places tasks by what a process keeps that is no worker."""


class _Process:
    """What becomes of prints, and who is told of files; both are those of a worker in a worker."""

    redirect: Callable[[], AbstractContextManager[Any]] | None = None
    tell: Callable[[list[str], list[str]], None] = staticmethod(_untold)

    def redirected(self, in_task: bool) -> AbstractContextManager[Any]:
        """Prints inside go to standard error, except in a program outside of tasks."""
        if self.redirect is not None:
            return self.redirect()
        return redirect_stdout(sys.stderr) if in_task else nullcontext()


_process = _Process()


def install(
    redirect: Callable[[], AbstractContextManager[Any]],
    tell: Callable[[list[str], list[str]], None],
) -> None:
    """This process is a worker, in which `redirect` sends prints to standard error.

    `tell` hears of which files of inputs there are values from now on, and of which none any more.
    """
    _process.redirect = redirect
    _process.tell = tell
