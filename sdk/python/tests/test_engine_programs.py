"""Random programs with a real engine: one core, several, workers and drivers that are killed.

What a program gives and prints is known from a plain evaluation without ciel. `CIEL_SOAK_S` is how
many seconds the test with kills lasts.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import threading
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
        workers = jobs.serving_of(process.pid)
        targets = [worker for worker in workers if worker in serving]
        if targets and time.monotonic() >= following:
            landed += jobs.kill(chance.choice(targets))
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


DRIVERS = 4
"""Jobs whose driver is killed."""

SOME = 20
"""Programs in one of them."""


class Follower(threading.Thread):
    """Looks at ordered files again and again: each has a prefix of what it is to hold."""

    def __init__(self, folder: Path, whole: dict[str, str]) -> None:
        super().__init__()
        self.folder, self.whole = folder, whole
        self.looks, self.wrong = 0, ""
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.001):
            for name, text in self.whole.items():
                path = self.folder / name
                found = path.read_bytes() if path.exists() else b""
                self.looks += 1
                if not text.encode().startswith(found):
                    self.wrong = f"{name} has {found!r} of {text!r}"

    def end(self) -> str:
        """Looks no more; what was wrong."""
        self.ended.set()
        self.join()
        assert self.looks > 0
        return self.wrong


def killed_drivers(job: Path, seed: int, chance: random.Random) -> tuple[bytes, int]:
    """Runs a job until it has ended, though its driver, or a worker, is killed now and then."""
    for kills in itertools.count():
        process = jobs.start(job, str(seed), str(SOME), options=(chance.choice(["-j2", "-j4"]),))
        if kills < KILLS_MAX:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.05, 0.6))
            workers = jobs.serving_of(process.pid)
            if workers and chance.random() < 0.5:
                jobs.kill(chance.choice(workers))
            process.kill()
        ended = jobs.end_of(process)
        if ended.status != -signal.SIGKILL:
            assert ended.status == 0, ended.talk
            return ended.printed, kills
    raise AssertionError("it ends before")


def test_programs_whose_drivers_are_killed_append_each_byte_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed, kills = random.randrange(1 << 32), 0
    chance = random.Random(seed)
    for first in range(seed, seed + DRIVERS):
        home = tmp_path / str(first)
        home.mkdir()
        folder = fresh_files(home, monkeypatch)
        whole = programs.expected_files(first, SOME)
        follower = Follower(folder, whole)
        follower.start()
        try:
            printed, killed = killed_drivers(job_file(home), first, chance)
        finally:
            wrong = follower.end()
        about = f"chance {seed}, programs from {first}"
        assert wrong == "", about
        value, text = programs.expected(first, SOME)
        assert printed == (text + json.dumps(value) + "\n").encode(), about
        for name, expected in whole.items():
            path = folder / name
            assert (path.read_text("utf-8") if path.exists() else "") == expected, about
        kills += killed
    assert kills > 0, "no driver was killed before its job had ended"
