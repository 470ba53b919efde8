"""`ciel.stream`: outputs of commands that others read while they are written.

The engine moves the bytes; this module only declares what it may do. Read next: `_shell.py`; the
guide page about pipelines.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stream:
    """How an output is a stream: the value of `stdout=` of `ciel.sh`.

    The bytes are stored as they come, and any number of tasks may read them, then or later. With
    `single_consumer` they have one reader: they may go to it through a pipe and be stored nowhere.
    Whoever else asks for them then gets ObjectLost.
    """

    single_consumer: bool = False

    def __call__(self, *, single_consumer: bool = False) -> Stream:
        """The same with these properties."""
        return Stream(single_consumer=single_consumer)


stream = Stream()
