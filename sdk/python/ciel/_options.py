"""Options of a spawn: cores, memory, retries, a time limit, a name.

Options are frozen values; a task has one set and `Task.options` makes a changed copy. All options
are checked at their definition, so that a misspelt amount is an error at its own line. This module
knows neither tasks nor the engine. Read next: `_task.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from ciel._native import TaskOptions
from ciel._task_streams import Stream

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)

_PLAIN = Stream()
OUTPUTS_MAX = 10_000
RETRIES_MAX = 1_000
_MEMORY_MAX = (1 << 64) - 1
WEIGHT_MAX = 1_000_000
# Cores, seconds and pieces, of which the engine counts thousandths.
_AMOUNT_LIMIT = 10**15


def bytes_of(amount: int | str) -> int:
    """Reads an amount of memory: a number of bytes, or text such as `"2 GiB"` or `"500 MB"`.

    Raises ValueError if it is not positive, TypeError if it is neither number nor text.
    """
    if isinstance(amount, bool) or not isinstance(amount, (int, str)):
        raise TypeError(f"memory is bytes or text like '2 GiB', not {amount!r}")
    count: float
    if isinstance(amount, int):
        count = amount
    else:
        match = _AMOUNT.fullmatch(amount)
        if match is None:
            raise ValueError(f"memory is bytes or text like '2 GiB', not {amount!r}")
        count = float(match[1]) * _UNITS[(match[2] or "").lower()]
    if count < 1:
        raise ValueError(f"memory must be at least one byte, not {amount!r}")
    if count > _MEMORY_MAX:
        raise ValueError(f"memory is below 2**64 bytes, not {amount!r}")
    return int(count)


class OptionNames(TypedDict, total=False):
    """The options of a task by name, as `ciel.task` and `Task.options` take them; see `Options`."""

    cores: float | None
    memory: int | str | None
    retries: int | None
    timeout: float | None
    name: str | None
    pure: bool | None
    lazy: bool
    live: bool
    resources: Mapping[str, float]
    keep: bool | None
    version: str | None
    stream: Stream
    locality: Mapping[str, float]


@dataclass(frozen=True)
class Options:
    """The options of a task; `None` and `False` mean the run's default.

    `cores` counts cores and may be a fraction, `memory` is in bytes or text, `timeout` in seconds
    for one attempt, `resources` counts pieces by name. `outputs` is the number of futures of a
    spawn. `live` releases the output of a command while it runs. `pure=True` lets equal calls share
    one result, and a call run any number of times, also beside itself; `pure=False` declares that
    the task has side effects. `keep=True` keeps the results
    for later runs, `keep=False` never does. `version` stands for the code of the function itself:
    its results stay valid until the version is another, or what it uses has changed. `joined`
    joins the bytes, or the record batches of Arrow, that a generator yields: its result is bytes.
    `writes` lets a function write its result, which is bytes, to the file `ciel.output()`.
    `stream` is how others may read what a generator yields, or a function writes. `locality` are
    locality weights by parameter: how much the bytes of its futures count where the task is placed.
    """

    cores: float | None = None
    memory: int | str | None = None
    retries: int | None = None
    timeout: float | None = None
    name: str | None = None
    pure: bool | None = None
    outputs: int | None = None
    lazy: bool = False
    live: bool = False
    resources: Mapping[str, float] | tuple[tuple[str, float], ...] = ()
    keep: bool | None = None
    version: str | None = None
    joined: bool = False
    stream: Stream = _PLAIN
    writes: bool = False
    locality: Mapping[str, float] | tuple[tuple[str, float], ...] = ()

    def __new__(cls, *args: Any, **options: Any) -> Options:
        """Raises TypeError for an option that does not exist, with the one probably meant."""
        for name in options:
            if name not in cls.__dataclass_fields__:
                raise TypeError(_no_option(name, list(cls.__dataclass_fields__)))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Checks every part; raises TypeError or ValueError that names it."""
        check_number("cores", self.cores, above=0, below=_AMOUNT_LIMIT)
        check_number("timeout", self.timeout, above=0, below=_AMOUNT_LIMIT)
        check_count("retries", self.retries, 0, RETRIES_MAX)
        check_count("outputs", self.outputs, 0, OUTPUTS_MAX)
        object.__setattr__(self, "resources", check_resources(self.resources))
        object.__setattr__(self, "locality", check_locality(self.locality))
        for name in ("lazy", "live", "joined", "writes"):
            check_choice(name, getattr(self, name))
        for name in ("pure", "keep"):
            check_choice(name, getattr(self, name), or_none=True)
        if self.memory is not None:
            object.__setattr__(self, "memory", bytes_of(self.memory))
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise TypeError(f"name is text, not {self.name!r}")
        if self.version is not None and (not isinstance(self.version, str) or not self.version):
            raise TypeError(f"version is text such as '3', not {self.version!r}")
        if self.keep and self.pure is False:
            raise ValueError("keep=True and pure=False: a task with side effects is never kept")
        if not isinstance(self.stream, Stream):
            raise TypeError(f"stream is ciel.stream or of its kind, not {self.stream!r}")
        object.__setattr__(self, "_wire", self._encoded())

    @property
    def count(self) -> int:
        """How many outputs the task has."""
        return 1 if self.outputs is None else self.outputs

    @property
    def wire(self) -> TaskOptions | None:
        """In the form for `ciel._native.Connection.spawn`; `None` if all are defaults."""
        wire: TaskOptions | None = self._wire  # type: ignore[attr-defined]
        return wire

    def changed(self, **changes: Any) -> Options:
        """A copy with `changes`; `outputs` cannot be changed after the task was defined."""
        if "outputs" in changes:
            raise TypeError("outputs belongs to the definition: @ciel.task(outputs=n)")
        if "joined" in changes:
            raise TypeError("joined belongs to the definition: @ciel.task(joined=True)")
        if "writes" in changes:
            raise TypeError("writes belongs to the definition: @ciel.task(writes=True)")
        return replace(self, **changes)

    def _encoded(self) -> TaskOptions | None:
        cores = None if self.cores is None else max(1, round(self.cores * 1000))
        pieces = dict(self.resources).items()
        others = {name: max(1, round(amount * 1000)) for name, amount in pieces}
        limit = None if self.timeout is None else max(1, round(self.timeout * 1000))
        memory = None if self.memory is None else bytes_of(self.memory)
        wire = TaskOptions(
            cores,
            memory,
            others,
            self.retries,
            limit,
            self.lazy,
            self.pure,
            self.live,
            self.keep,
        )
        return None if wire == TaskOptions() else wire


def _no_option(name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    meant = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(known)}"
    return f"a task has no option {name!r}: {meant}"


def check_choice(name: str, value: object, or_none: bool = False) -> None:
    """Raises TypeError if `value` is no bool; `None` may be allowed."""
    if not isinstance(value, bool) and not (or_none and value is None):
        choices = "True, False or None" if or_none else "True or False"
        raise TypeError(f"{name} is {choices}, not {value!r}")


def check_resources(given: Any) -> tuple[tuple[str, float], ...]:
    """Amounts by name, sorted; raises TypeError or ValueError that names the wrong one."""
    is_pairs = isinstance(given, tuple) and all(isinstance(pair, tuple) for pair in given)
    if not isinstance(given, Mapping) and not is_pairs:
        raise TypeError(f"resources are amounts by name, as {{'gpu': 1}}, not {given!r}")
    pieces = tuple(sorted(given.items())) if isinstance(given, Mapping) else given
    for name, amount in pieces:
        check_number(f"resource {name!r}", amount, above=0, below=_AMOUNT_LIMIT)
    return pieces


def check_locality(given: Any) -> tuple[tuple[str, float], ...]:
    """Weights by parameter, sorted; raises TypeError or ValueError that names the wrong one."""
    is_pairs = isinstance(given, tuple) and all(isinstance(pair, tuple) for pair in given)
    if not isinstance(given, Mapping) and not is_pairs:
        raise TypeError(f"locality are weights by parameter, as {{'table': 0}}, not {given!r}")
    pairs = tuple(sorted(given.items())) if isinstance(given, Mapping) else given
    for name, weight in pairs:
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise TypeError(f"locality of {name!r} is a number, not {weight!r}")
        if not 0 <= weight <= WEIGHT_MAX:
            raise ValueError(f"locality of {name!r} is from 0 to {WEIGHT_MAX}, not {weight!r}")
    return pairs


def check_number(name: str, value: object, above: float, below: float = float("inf")) -> None:
    """Raises TypeError or ValueError if `value` is no number between these; `None` is none."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number, not {value!r}")
    if not above < value < float("inf"):
        raise ValueError(f"{name} must be above {above}, not {value!r}")
    if value >= below:
        raise ValueError(f"{name} must be below {below}, not {value!r}")


def check_count(name: str, value: object, least: int, most: int) -> None:
    """Raises TypeError or ValueError if `value` is no whole number of these; `None` is none."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, not {value!r}")
