"""Random numbers that are the same in every run of a task.

The seed of a task depends only on its position in the program. Commands that a task starts find the
seed in the variable `CIEL_TASK_SEED`. Read next: `_strand.py`.
"""

from __future__ import annotations

import os
import random
from typing import Any

from ciel import _native
from ciel._strand import current

SEED = "CIEL_TASK_SEED"
_NAME = SEED.encode()


def tell_seed(seed: int) -> None:
    """Sets `CIEL_TASK_SEED`, in `os.environ` and for commands, at the cost of a few stores.

    An assignment to `os.environ` for each task would make the C library keep every value for ever.
    """
    _native.tell_seed(seed)
    _TEXTS[_NAME] = b"%d" % seed


def task_rng() -> random.Random:
    """The random numbers of this task: every call returns the same generator.

    Raises NoRun outside of a run.
    """
    strand = current()
    if strand.generator is None:
        strand.generator = random.Random(strand.seed)
    return strand.generator


_TEXTS: Any = getattr(os.environ, "_data", {})
"""The mapping behind `os.environ`; assignments to it do not reach the C library."""
