"""Kept results of tasks that ask for what a user or a machine has set: home folder and time zone.

Each task tells on standard error that it ran, which no result depends on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from test_kept import run

JOB = '''
import datetime
import os.path
import pathlib
import sys
import time

import ciel


def ran(name: str) -> None:
    print(f"ran {name}", file=sys.stderr)


@ciel.task
def home() -> list[str]:
    ran("home")
    return [os.path.expanduser("~/data"), str(pathlib.Path.home())]


def at(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds).isoformat()


@ciel.task
def zone() -> list[object]:
    ran("zone")
    return [at(0), time.localtime(0).tm_hour, time.mktime((1970, 1, 1, 0, 0, 0, 0, 1, 0))]


@ciel.task
def neither() -> int:
    ran("neither")
    return 3


def main() -> list[object]:
    return [task.spawn().result() for task in (home, zone, neither)]
'''


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [("HOME", "/home/grace", "home"), ("TZ", "Asia/Tokyo", "zone"), ("TZ", "XYZ5", "zone")],
)
def test_results_follow_home_folder_and_time_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str
) -> None:
    """Results were taken that another user's folder, or another zone, would have changed: no name
    of a variable stands in `expanduser("~")`, nor in `localtime(0)`.
    """
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("TZ", "UTC")
    assert run(tmp_path, "--kept")[0] == ["home", "neither", "zone"]
    monkeypatch.setenv(variable, value)
    ran, printed, told = run(tmp_path, "--kept")
    assert ran == [expected], told
    assert f"{expected}: code changed: {variable}" in told
    assert run(tmp_path, "--kept")[:2] == ([], printed)
    assert run(tmp_path, "--new")[1] == printed
