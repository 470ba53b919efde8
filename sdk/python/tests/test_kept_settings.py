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
from os.path import expanduser as written_out
from time import localtime as moment

import ciel

SECONDS = {"to local": time.localtime}


class Clock:
    read = staticmethod(time.localtime)


def ran(name: str) -> None:
    print(f"ran {name}", file=sys.stderr)


@ciel.task
def home() -> list[str]:
    ran("home")
    return [os.path.expanduser("~/data"), str(pathlib.Path.home())]


@ciel.task
def renamed_home() -> str:
    ran("renamed_home")
    return written_out("~")


@ciel.task
def renamed_zone() -> list[int]:
    ran("renamed_zone")
    return [moment(0).tm_hour]


@ciel.task
def default_zone(ask=time.localtime) -> int:
    ran("default_zone")
    return ask(0).tm_hour


@ciel.task
def held_zone() -> list[int]:
    ran("held_zone")
    return [SECONDS["to local"](0).tm_hour, Clock.read(0).tm_hour]


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


TASKS = (home, zone, neither, renamed_home, renamed_zone, default_zone, held_zone)


def main() -> list[object]:
    return [task.spawn().result() for task in TASKS]
'''


HOME = ["home", "renamed_home"]
ZONE = ["default_zone", "held_zone", "renamed_zone", "zone"]


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [("HOME", "/home/grace", HOME), ("TZ", "Asia/Tokyo", ZONE), ("TZ", "XYZ5", ZONE)],
)
def test_results_follow_home_folder_and_time_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: list[str]
) -> None:
    """Results were taken that another user's folder, or another zone, would have changed: no name
    of a variable stands in `expanduser("~")`, nor in `localtime(0)`; and the name of the function
    does not, if the program calls that by another one.
    """
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("TZ", "UTC")
    assert run(tmp_path, "--kept")[0] == sorted([*HOME, *ZONE, "neither"])
    monkeypatch.setenv(variable, value)
    ran, printed, told = run(tmp_path, "--kept")
    assert ran == expected, told
    assert f"{expected[0]}: code changed: {variable}" in told
    assert run(tmp_path, "--kept")[:2] == ([], printed)
    assert run(tmp_path, "--new")[1] == printed
