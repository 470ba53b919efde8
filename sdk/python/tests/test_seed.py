"""The seed of a task, as commands that it starts find it in their environment."""

import os
import subprocess

from ciel import _native


def test_seed_told_is_inherited_by_processes() -> None:
    """An assignment to `os.environ` for each task made the C library keep every value."""
    before = os.environ.get("CIEL_TASK_SEED")
    try:
        for seed in (2**64 - 1, 7, 123, 0, 10, 100, 2**63):
            _native.tell_seed(seed)
            assert inherited("CIEL_TASK_SEED") == str(seed)
            assert _native.told_seed() == b"%d" % seed
        os.environ["CIEL_TASK_SEED"] = "of the user"
        assert _native.told_seed() is None
        _native.tell_seed(8)
        assert inherited("CIEL_TASK_SEED") == "8"
    finally:
        os.environ["CIEL_TASK_SEED"] = before or ""
        if before is None:
            del os.environ["CIEL_TASK_SEED"]


def inherited(name: str) -> str:
    words = ["printenv", name]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.rstrip()
