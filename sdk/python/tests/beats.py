"""Heartbeats of the workers of a job, as a test wants them.

A worker looks for idle cores and for long calls at each heartbeat, a millisecond apart: how many of
them a call sees depends on the machine. It knows nothing of what becomes of calls then. Used by
tests that count which calls were tasks.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CUSTOMIZED = """
import functools
from ciel import _native

_native.Promoter = functools.partial(_native.Promoter, beat_s=1e6)
"""


def stop_hearts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that start from now on have no heartbeat within the life of a test: a call becomes a
    task when its strand needs it as one, or when a core gets idle, however long calls take.

    Python runs a module `sitecustomize` at its start, before the worker begins.
    """
    place = folder / "hearts"
    place.mkdir()
    (place / "sitecustomize.py").write_text(CUSTOMIZED, encoding="utf-8")
    paths = [str(place), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
