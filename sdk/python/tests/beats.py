"""Heartbeats of the workers of a job, as a test wants them.

A worker looks for idle cores and for long calls at each heartbeat, a millisecond apart: how many of
them a call sees depends on the machine. It knows nothing of what becomes of calls then. Used by
tests that count which calls were tasks, and by those that want long lists to be short.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CUSTOMIZED = """
import functools
from ciel import _native

_native.Promoter = functools.partial(_native.Promoter, CHANGED)
"""


def stop_hearts(folder: Path, monkeypatch: pytest.MonkeyPatch, kept_max: int = 1024) -> None:
    """Workers that start from now on have no heartbeat within the life of a test: a call becomes a
    task when its strand needs it as one, or when a core gets idle, however long calls take.
    A strand keeps `kept_max` children at most.
    """
    _customize(folder, monkeypatch, f"beat_s=1e6, kept_max={kept_max}")


def give_all(folder: Path, monkeypatch: pytest.MonkeyPatch, kept_max: int) -> None:
    """Strands of workers that start from now on keep at most `kept_max` children, and idle workers
    compute some of these however short they are.
    """
    _customize(folder, monkeypatch, f"call_min_s=0, kept_max={kept_max}")


def keep_few(folder: Path, monkeypatch: pytest.MonkeyPatch, kept_max: int) -> None:
    """Strands of workers that start from now on keep few children, at most `kept_max`."""
    _customize(folder, monkeypatch, f"kept_max={kept_max}")


def _customize(folder: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    """Python runs a module `sitecustomize` at its start, before the worker begins."""
    place = folder / "hearts"
    place.mkdir()
    (place / "sitecustomize.py").write_text(CUSTOMIZED.replace("CHANGED", changed), "utf-8")
    paths = [str(place), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
