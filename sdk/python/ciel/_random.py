"""Random numbers that are the same every time a task is run.

The seed of a task depends on its place in the program only. `CIEL_TASK_SEED` in the environment
says it to commands that a task starts. Read next: `_strand.py`.
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
    """The random numbers of this task: the same generator each time it is asked for.

    Raises NoRun outside of a run.
    """
    strand = current()
    if strand.generator is None:
        strand.generator = random.Random(strand.seed)
    return strand.generator


_TEXTS: Any = getattr(os.environ, "_data", {})
"""The texts behind `os.environ`; written without telling the C library, which is told above."""
