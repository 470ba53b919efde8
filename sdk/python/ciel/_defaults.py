"""Default arguments that a task may change: each spawned call has a copy of its own.

A default such as `acc=[]` is one object for all calls in a process. What a call leaves in it would
depend on the tasks that ran in that process before, so a spawn passes a copy of the default, as it
was when the task was defined, like any other argument; a plain call takes the default itself. That
is done for defaults that can be changed, and that the function changes or passes on to code which
could; all other functions have no copies, and cost nothing. Read next: `_kept_state.py`, which
finds such functions for warnings.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ciel._freeze import Snapshot
from ciel._globals import has_state
from ciel._written import changed_in

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class _Default(NamedTuple):
    """A default that is copied, of the parameter with that name, at that place if it has one."""

    name: str
    place: int | None
    has_name: bool
    value: Snapshot

    def copy(self) -> Any:
        return self.value.revived(lambda future: future)


class Defaults:
    """The defaults of a function that are copied, as they were at its definition."""

    def __init__(self, function: types.FunctionType, copied: list[_Default]) -> None:
        """Takes the function as it is now."""
        self._copied = copied
        self._placed = function.__defaults__ or ()
        self._first = function.__code__.co_argcount - len(self._placed)

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments of a call, with a copy of each such default that the call takes."""
        for one in self._copied:
            if one.place is not None and one.place < len(args) or one.name in kwargs:
                continue
            if one.has_name:
                kwargs = {**kwargs, one.name: one.copy()}
            elif len(args) >= self._first and one.place is not None:
                between = self._placed[len(args) - self._first : one.place - self._first]
                args = (*args, *between, one.copy())
        return args, kwargs

    def original(self, function: types.FunctionType) -> Arguments:
        """The defaults of the function with those copies: by place, and by name."""
        placed, named = [*self._placed], {**(function.__kwdefaults__ or {})}
        for one in self._copied:
            if one.place is None:
                named[one.name] = one.copy()
            else:
                placed[one.place - self._first] = one.copy()
        return tuple(placed), named


_DEFAULTS: WeakKeyDictionary[Callable[..., Any], Defaults] = WeakKeyDictionary()


def copied_defaults(function: Callable[..., Any]) -> Defaults | None:
    """The defaults of which calls of a function have copies, as they are at the first call of this;
    `None` if there are none.
    """
    if not isinstance(function, types.FunctionType):
        return None
    if not function.__defaults__ and not function.__kwdefaults__:
        return None
    found = _DEFAULTS.get(function)
    if found is None and (copied := list(_copied(function))):
        found = _DEFAULTS[function] = Defaults(function, copied)
    return found


def original_defaults(function: Any) -> tuple[Any, Any]:
    """`__defaults__` and `__kwdefaults__`, those that are copied as they were at the definition."""
    placed = getattr(function, "__defaults__", None)
    named = getattr(function, "__kwdefaults__", None)
    known = _DEFAULTS.get(function) if placed or named else None
    if known is None:
        return placed, named
    first, second = known.original(function)
    return first or None, second or None


def _copied(function: types.FunctionType) -> Iterator[_Default]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    placed = function.__defaults__ or ()
    first = code.co_argcount - len(placed)
    values: dict[int | str, Any] = dict(enumerate(placed, first))
    values.update(function.__kwdefaults__ or {})
    watched = {key: value for key, value in values.items() if has_state(value)}
    if not watched:
        return
    changed = changed_in(function)
    for key, value in watched.items():
        name = names[key] if isinstance(key, int) else key
        if changed is not None and name not in changed:
            continue
        try:
            snapshot = Snapshot(value)
        except Exception:  # what cannot be copied belongs to the process, as a lock does
            continue
        place = key if isinstance(key, int) else None
        yield _Default(name, place, place is None or place >= code.co_posonlyargcount, snapshot)
