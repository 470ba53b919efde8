"""Random numbers that are the same in every run of a task.

The seed of a task depends only on its position in the program. Commands that a task starts find the
seed in the variable `CIEL_TASK_SEED`. Read next: `_strand.py`.
"""

from __future__ import annotations

import os
import random
from collections.abc import ItemsView, ValuesView
from typing import Any

from ciel import _native
from ciel._seen import Seen
from ciel._strand import current

SEED = "CIEL_TASK_SEED"
_NAME = SEED.encode()

PLACED = "used ciel.task_rng(), whose numbers depend on the place of the task in the program"
"""The effect of using it: a kept result would be taken by equal calls at other places."""


def tell_seed(seed: int) -> None:
    """Sets `CIEL_TASK_SEED`, in `os.environ` and for commands, at the cost of a few stores.

    An assignment to `os.environ` for each task would make the C library keep every value for ever.
    """
    _native.tell_seed(seed)
    texts = _Environment.texts
    if type(texts) is not Texts or _NAME not in texts:
        texts[_NAME] = b"%d" % seed


def task_rng() -> random.Random:
    """The random numbers of this task: every call returns the same generator.

    The result of a task that used it is not kept for later runs. Raises NoRun outside of a run.
    """
    strand = current()
    if strand.generator is None:
        strand.generator = random.Random(strand.seed)
        if getattr(strand, "is_task", True):
            strand.seen = Seen() if strand.seen is None else strand.seen
            strand.seen.note(PLACED)
    return strand.generator


class Texts(dict[bytes, bytes]):
    """The mapping behind `os.environ` of a worker.

    Children that begin natively tell their seed to the environment alone; here it is what the
    environment says.
    """

    def __getitem__(self, name: bytes) -> bytes:
        """As of any mapping."""
        told = _native.told_seed() if name == _NAME and name in self else None
        return super().__getitem__(name) if told is None else told

    def items(self) -> ItemsView[bytes, bytes]:  # type: ignore[override]
        """As of any mapping."""
        return {name: self[name] for name in self}.items()

    def values(self) -> ValuesView[bytes]:  # type: ignore[override]
        """As of any mapping."""
        return {name: self[name] for name in self}.values()


class _Environment:
    """The mapping behind `os.environ`; assignments to it do not reach the C library."""

    texts: Any = getattr(os.environ, "_data", {})


def follow_environment() -> None:
    """Lets `os.environ` show the seeds that native code tells."""
    if type(_Environment.texts) is not Texts:
        texts = _Environment.texts = Texts(_Environment.texts)
        for mapping in (os.environ, os.environb):
            setattr(mapping, "_data", texts)  # noqa: B010
