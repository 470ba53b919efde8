"""Warns of a task whose results may differ when it is rerun, before that happens.

It warns once for each function in a run, when the function is first used as a task. For most
functions the names in their code suffice; only for the others the source is read. It knows no
strand and no connection. Read next: `_lint.py`.
"""

from __future__ import annotations

import dis
import functools
import linecache
import os
import random
import types
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ciel import _nondeterminism
from ciel._defaults import copied_defaults
from ciel._errors import CielWarning
from ciel._failed_task import FOLDER, make_in_run
from ciel._sources import parsed, source_of

if TYPE_CHECKING:
    from ciel._lint import Finding, Source

FUNCTIONS_MAX = 200
"""Functions of a module that are looked at for one task."""

MARKS = "advised"
"""The folder of a run with a mark for each code that was warned of."""

_OF_TASKS = frozenset({"options", "spawn", "tail"})
"""Attributes of a task that are calls of it."""

_advised: set[bytes] = set()


def advise(function: Callable[..., Any], code: bytes) -> None:
    """Warns of nondeterministic calls in `function`, if no process of this run has done so.

    `code` is the hash of its code. Never raises, unless warnings are errors.
    """
    if code in _advised:
        return
    _advised.add(code)
    if not isinstance(function, types.FunctionType) or not _is_suspicious(function):
        return
    found = findings(function)
    if not found or not _is_first(code):
        return
    first = found[0]
    others = len(found) - 1
    more = f" (and {others} more: `ciel lint FILE` shows all)" if others else ""
    text = f"{first.message}; {first.instead}{more}"
    warnings.warn_explicit(text, CielWarning, first.file, first.line)


def findings(function: types.FunctionType) -> list[Finding]:
    """The nondeterministic calls of a function and of what it uses in its file, by its source."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    source = _parsed(text, code.co_filename)
    return [] if source is None else source.findings_in(code.co_name, code.co_firstlineno)


def findings_of(module: str) -> list[Finding]:
    """The nondeterministic calls of all functions of a module of the program, imported or not."""
    found = source_of(module)
    text = "" if found is None else found.data.decode("utf-8", "replace")
    if found is None or not any(word in text for word in _nondeterminism.WORDS):
        return []
    source = _parsed(text, found.file)
    return [] if source is None else source.findings_everywhere()


@functools.lru_cache(maxsize=4)
def _parsed(text: str, file: str) -> Source | None:
    from ciel._lint import Source

    try:
        return Source(text, file, parsed(text))
    except (SyntaxError, ValueError, RecursionError):  # the file was edited
        return None


def _is_first(code: bytes) -> bool:
    """Whether no process of this run has warned of this code; marks it by a file."""
    failed = os.environ.get(FOLDER, "")
    if not failed:
        return True
    folder = os.path.join(os.path.dirname(failed), MARKS)
    try:
        make_in_run(folder)
        os.close(os.open(os.path.join(folder, code.hex()), os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:  # for example a full disk: a repeated warning does no harm
        return True
    return True


def _is_suspicious(function: types.FunctionType) -> bool:
    """Whether the code, or that of functions it uses, may use one of the nondeterministic names."""
    if _may_keep_state(function):
        return True
    waiting, seen = [function], {function}
    while waiting and len(seen) <= FUNCTIONS_MAX:
        one = waiting.pop()
        if "." in one.__qualname__:  # these refer to others not by names alone
            return True
        for name in _names(one.__code__):
            value = one.__globals__.get(name)
            if name in _nondeterminism.WORDS or is_nondeterministic(value):
                return True
            is_here = isinstance(value, types.FunctionType) and value.__module__ == one.__module__
            if isinstance(value, types.FunctionType) and is_here and value not in seen:
                seen.add(value)
                waiting.append(value)
            elif isinstance(value, type) and value.__module__ == one.__module__:
                return True
    return False


def _may_keep_state(function: types.FunctionType) -> bool:
    """Whether the function may change its defaults, or its attributes under its own name."""
    code = function.__code__
    if copied_defaults(function) is not None:
        return True
    return code.co_name in code.co_names and not _OF_TASKS.issuperset(_attributes_of_itself(code))


def _attributes_of_itself(code: types.CodeType) -> Iterator[str]:
    before = None
    for instruction in dis.get_instructions(code):
        if before == code.co_name and instruction.opname.endswith(("_ATTR", "_METHOD")):
            yield instruction.argval
        before = instruction.argval if instruction.opname == "LOAD_GLOBAL" else None


def is_nondeterministic(value: Any) -> bool:
    """Whether a global is one of those functions under another name."""
    try:
        owner, module = getattr(value, "__self__", None), getattr(value, "__module__", None)
    except Exception:  # a module or a class that makes attributes when they are asked for
        return False
    return isinstance(owner, random.Random) or module in _nondeterminism.MODULES


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
