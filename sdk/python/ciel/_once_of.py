"""`ciel.once(make, input)`: values made once in each worker process for each input.

An input is known by the file of its object, which every task that has a reference to it reads; or
by its bytes, if these are few. This module does not know when values are dropped. Read next:
`_once.py`, which keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from ciel._future import Future

T = TypeVar("T")
U = TypeVar("U")

_of_input: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
"""What was made of inputs, as long as `_once` keeps it."""


def once_of(make: Callable[[U], T], given: Future[U]) -> T:
    """What `make` gives for the value behind `given`; `_once.once` says the rest."""
    from ciel._once import Once, check_takes_one

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
        check_takes_one(make)
        value = given.result()
        found = Once(lambda: make(value))
        found()
        _of_input[key] = found
    return cast(T, found())


def _identity(given: Future[Any]) -> Hashable:
    """The same for all references to one object, in all tasks of this process."""
    from ciel._native import File, Value

    known = given._known
    if type(known) is File:
        return known.path
    if type(known) is Value and not known.references:
        return (known.form, bytes(known.data))
    return cast(Hashable, known)
