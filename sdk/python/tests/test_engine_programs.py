"""Random programs with a real engine: one core, several, and workers that are killed meanwhile.

What a program gives and prints is known from a plain evaluation without ciel. `CIEL_SOAK_S` is how
many seconds the test with kills lasts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

import jobs
import programs

COUNT = 60
"""Programs in one job: about a thousand tasks."""

SOAK_S = float(os.environ.get("CIEL_SOAK_S", "12"))
LOOK_EVERY_S = 0.01
KILLS_MAX = 3
"""In one run: so many losses of its worker a task survives."""


def expected_print(seed: int) -> bytes:
    """What `ciel run` prints of the job of `seed`."""
    value, printed = programs.expected(seed, COUNT)
    return (printed + json.dumps(value) + "\n").encode()


def job_file(folder: Path) -> Path:
    """The job, in a folder that goes away."""
    text = Path(programs.__file__).read_text(encoding="utf-8")
    return jobs.write(folder, text, "programs.py")


@pytest.mark.parametrize("options", [("--serial",), ("-j1",), ("-j2",), ("-j4",)])
def test_programs_equal_their_plain_evaluation(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (1, 1001):
        folder = fresh_files(tmp_path, monkeypatch)
        ended = jobs.end_of(jobs.start(job_file(tmp_path), str(seed), str(COUNT), options=options))
        assert ended.status == 0, ended.talk
        assert ended.printed == expected_print(seed)
        expect_files(folder, seed, "")


def fresh_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder for the ordered files of the next job."""
    folder = home / f"files-{len(list(home.iterdir()))}"
    folder.mkdir()
    monkeypatch.setenv(programs.FOLDER, str(folder))
    return folder


def expect_files(folder: Path, seed: int, about: str) -> None:
    """The ordered files hold what the plain evaluation of the job of `seed` appends."""
    for name, text in programs.expected_files(seed, COUNT).items():
        path = folder / name
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        assert found == text, f"{name}: {about}"


def killed_run(job: Path, seed: int, chance: random.Random) -> tuple[jobs.Ended, int]:
    """Runs a job and kills its workers now and then; gives how many were hit.

    A worker that dies before it has said hello is one that cannot be started, which ends the job;
    so only those are hit that had begun to serve when they were looked at before.
    """
    options = (chance.choice(["-j1", "-j2", "-j4"]),)
    process = jobs.start(job, str(seed), str(COUNT), options=options)
    landed = 0
    serving: set[int] = set()
    following = time.monotonic() + chance.uniform(0.1, 0.4)
    while process.poll() is None and landed < KILLS_MAX:
        workers = [worker for worker in jobs.workers_of(process.pid) if jobs.serves(worker)]
        targets = [worker for worker in workers if worker in serving]
        if targets and time.monotonic() >= following:
            os.kill(chance.choice(targets), signal.SIGKILL)
            landed += 1
            following = time.monotonic() + chance.uniform(0.0, 0.4)
        serving = set(workers)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_EVERY_S)
    return jobs.end_of(process), landed


def soak_killed(job: Path, hits_min: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs programs of random seeds while workers are killed; checks what each run shows.

    It lasts `SOAK_S` seconds, or until `hits_min` kills have landed.
    """
    began, landed, seed = time.monotonic(), 0, random.randrange(1 << 32)
    chance = random.Random(seed)
    while landed < hits_min or time.monotonic() - began < SOAK_S:
        first = chance.randrange(1 << 32)
        folder = fresh_files(job.parent, monkeypatch)
        ended, hits = killed_run(job, first, chance)
        landed += hits
        assert ended.status == 0, f"chance {seed}, programs from {first}:\n{ended.talk}"
        assert ended.printed == expected_print(first), f"chance {seed}, programs from {first}"
        expect_files(folder, first, f"chance {seed}, programs from {first}")
        assert time.monotonic() - began < SOAK_S + jobs.DEADLINE_S, f"only {landed} kills landed"


def test_programs_whose_workers_are_killed_equal_their_plain_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soak_killed(job_file(tmp_path), 10, monkeypatch)
