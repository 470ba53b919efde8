"""Random numbers that are the same every time a task is run.

The seed of a task depends on its place in the program only. `CIEL_TASK_SEED` in the environment
says it to commands that a task starts. Read next: `_strand.py`.
"""

from __future__ import annotations

import os
import random

from ciel._strand import current

SEED = "CIEL_TASK_SEED"


def tell_seed(seed: int) -> None:
    """Tells the seed of the strand that has its turn to the commands that it starts."""
    os.environ[SEED] = str(seed)



def task_rng() -> random.Random:
    """The random numbers of this task: the same generator each time it is asked for.

    Raises NoRun outside of a run.
    """
    strand = current()
    if strand.generator is None:
        strand.generator = random.Random(strand.seed)
    return strand.generator
