"""`NoValue`: the base of futures, on which operators of values raise errors that name `.result()`.

A forgotten `.result()` would otherwise fail with words that hide what is missing, such as
"unsupported operand type(s) for +: 'int' and 'Future'". Equality, hashing, copying and calls stay
as they are, and there is no `__iter__`: code that asks whether an object is iterable must take a
future for a single one. Iteration and `in` fail in `__getitem__`.

The methods are set after the class, so type checkers do not see them and refuse such programs
themselves. Read next: `_future.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ciel._errors import CielError

# The operators of two operands, by the names of their methods; each has a reflected method, too.
_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "matmul": "@",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "divmod": "divmod()",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}

# What else a value may support.
_OTHERS = {
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "neg": "-",
    "pos": "+",
    "abs": "abs()",
    "invert": "~",
    "round": "round()",
    "int": "int()",
    "float": "float()",
    "complex": "complex()",
    "index": "use as a whole number",
    "len": "len()",
    "getitem": "[…] and iteration",
    "setitem": "[…] = …",
    "delitem": "del […]",
}

# The first attribute that `wait` and `as_completed` of `concurrent.futures` ask for.
_ADVICE = {
    "_condition": "use ciel.wait and ciel.as_completed; concurrent.futures takes futures of a "
    "ciel.Executor only",
}


class NoValue:
    """Something whose value must be asked for by `.result()` first."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Raises CielError: a test of a future is nearly always a forgotten `result()`."""
        raise CielError("a Future has no truth value: call .result() first")

    def __format__(self, form: str) -> str:
        """Returns the text of the future; raises TypeError if a form of values is asked for."""
        if form:
            raise _unsupported(f"the format {form!r}")
        return str(self)


def _unsupported(what: str) -> TypeError:
    return TypeError(f"a Future does not support {what}: call .result() first")


def _refusal(what: str) -> Callable[..., NoReturn]:
    def refuse(self: NoValue, *_operands: Any) -> NoReturn:
        raise _unsupported(what)

    return refuse


def _refuse_attribute(self: NoValue, name: str) -> NoReturn:
    message = f"a Future has no attribute {name!r}: {_ADVICE.get(name, 'call .result() first')}"
    raise AttributeError(message, name=name, obj=self)


def _refuse_operators() -> None:
    reflected = {f"r{name}": sign for name, sign in _BINARY.items()}
    for name, sign in (_BINARY | reflected | _OTHERS).items():
        setattr(NoValue, f"__{name}__", _refusal(sign))
    setattr(NoValue, "__getattr__", _refuse_attribute)


_refuse_operators()
