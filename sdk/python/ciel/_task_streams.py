"""`ciel.stream`, and the modes in which outputs are read while they are written.

The engine chooses among them and moves the bytes; this module only says what both ends declare.
Read next: `_shell.py`, `_reading.py`; the guide page about pipelines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MODES = (
    "no_stream",
    "overlap",
    "indirect_file",
    "indirect_pipe",
    "indirect_tcp",
    "direct",
)
"""The modes, in the order of their numbers on the wire, which begin with 1."""

_FLAGS = ("may_stream", "must_block", "no_store")
_FLAGS_FROM = 8


def _check(mode: str | None, flags: Mapping[str, bool]) -> None:
    for name, flag in flags.items():
        if flag is not True and flag is not False:
            raise TypeError(f"{name} is True or False, not {flag!r}")
    if mode is not None and mode not in MODES:
        raise ValueError(f"no mode of streams is named {mode!r}; the modes are {', '.join(MODES)}")


@dataclass(frozen=True)
class Stream:
    """How an output is a stream: the value of `stdout=` of `ciel.sh`, and of `stream=` of a task.

    The bytes are stored as they come, and any number of tasks may read them, then or later. With
    `single_consumer` they have one reader: they may go to it through a pipe and be stored nowhere.
    Whoever else asks for them then gets ObjectLost. `mode` is the mode of readers that ask for
    none. With `may_stream=False` the output is no stream.
    """

    single_consumer: bool = False
    mode: str | None = None
    may_stream: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError for a mode that does not exist, TypeError for a flag that is none."""
        flags = {"single_consumer": self.single_consumer, "may_stream": self.may_stream}
        _check(self.mode, flags)

    def __call__(
        self, *, mode: str | None = None, single_consumer: bool = False, may_stream: bool = True
    ) -> Stream:
        """The same with these properties; raises ValueError for a mode that does not exist."""
        return Stream(single_consumer, mode, may_stream)

    @property
    def arguments(self) -> dict[str, Any]:
        """As the executors of commands take it."""
        if not self.may_stream:
            return {}
        given: dict[str, Any] = {"stream": True}
        if self.single_consumer:
            given["single_consumer"] = True
        if self.mode is not None:
            given["stream_mode"] = self.mode
        return given

    @property
    def number(self) -> int:
        """The mode as a number; 0 for none."""
        return 0 if self.mode is None else 1 + MODES.index(self.mode)


stream = Stream()


@dataclass(frozen=True)
class Wish:
    """How a task wants to read a stream: in a mode, or in the one that follows from flags.

    A flag that is not named is not set. If none is, and no mode is named, the task that writes the
    stream decides.
    """

    mode: str | None = None
    may_stream: bool | None = None
    must_block: bool | None = None
    no_store: bool | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a mode that does not exist, or one beside flags.

        Raises TypeError for a flag that is neither True nor False.
        """
        _check(self.mode, self._flags)
        if self.mode is not None and self._flags:
            raise ValueError("a mode stands for all flags: name one or the others")

    @property
    def _flags(self) -> dict[str, bool]:
        given = {name: getattr(self, name) for name in _FLAGS}
        return {name: flag for name, flag in given.items() if flag is not None}

    @property
    def arguments(self) -> dict[str, Any]:
        """As the executors of commands take it; empty if it says nothing."""
        return self._flags if self.mode is None else {"mode": self.mode}

    @property
    def number(self) -> int:
        """As a number: 0 if it says nothing, a mode from 1, and flags as bits from 8."""
        if self.mode is not None:
            return 1 + MODES.index(self.mode)
        if not self._flags:
            return 0
        bits = (bool(self._flags.get(name)) << at for at, name in enumerate(_FLAGS))
        return _FLAGS_FROM + sum(bits)

