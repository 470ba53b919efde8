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
_WAY_BITS = 4
_GRANULARITY_MAX = 1 << 48


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
    stream decides. With a `granularity` the reader has so many new bytes at once, or the rest.
    """

    mode: str | None = None
    may_stream: bool | None = None
    must_block: bool | None = None
    no_store: bool | None = None
    granularity: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a mode that does not exist, one beside flags, or a granularity of
        no bytes.

        Raises TypeError for a flag that is neither True nor False, and a granularity of no number.
        """
        granularity = self.granularity
        if granularity is not None:
            if not isinstance(granularity, int) or isinstance(granularity, bool):
                raise TypeError(f"granularity is a number of bytes, not {granularity!r}")
            if not 1 <= granularity <= _GRANULARITY_MAX:
                raise ValueError(
                    f"granularity is from 1 to {_GRANULARITY_MAX} bytes, not {granularity}"
                )
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
        given: dict[str, Any] = {**self._flags} if self.mode is None else {"mode": self.mode}
        if self.granularity is not None:
            given["granularity"] = self.granularity
        return given

    @property
    def number(self) -> int:
        """As a number: 0 if it says nothing; a mode from 1, or flags as bits from 8, in the lowest
        bits, and the granularity above."""
        return self._way | (self.granularity or 0) << _WAY_BITS

    @property
    def _way(self) -> int:
        if self.mode is not None:
            return 1 + MODES.index(self.mode)
        if not self._flags:
            return 0
        bits = (bool(self._flags.get(name)) << at for at, name in enumerate(_FLAGS))
        return _FLAGS_FROM + sum(bits)

