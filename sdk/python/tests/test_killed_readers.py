"""Readers of streams that are killed at random offsets of what they have read, in every mode.

A reader counts the bytes that it has read, and kills at its offset: itself, or the process of its
run, which is then started again. The producer waits behind its last byte for a line of a reader
that lives, so it has not ended when a reader dies that has begun before.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import jobs
import pytest
from ciel._task_streams import MODES

KILLS = int(os.environ.get("CIEL_STREAM_KILLS", "1"))
"""Kills of each kind of reader beside each kind of producer, in each mode."""

LENGTH = 1 << 20
"""Bytes of a stream: four times what a pipe holds."""

LINE = b"0123456789abcde\n"

DIGEST = hashlib.md5(LINE * (LENGTH // len(LINE))).hexdigest()

JOB = """
import hashlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import ciel

LINE = b"0123456789abcde\\n"


def pieces(name: str, length: int, waits: bool) -> Iterator[bytes]:
    with open(f"runs.{name}", "a") as runs:
        runs.write("run\\n")
    for begin in range(0, length, len(LINE) * 1021):
        yield (LINE * 1021)[: length - begin]
    if waits:
        with open(f"gate.{name}", "rb", buffering=0) as gate:
            gate.readline()


def made_by_task(case: dict) -> ciel.Future[bytes]:
    maker = ciel.task(joined=True, stream=ciel.stream(mode=case["mode"]))(pieces)
    name, length = case["name"], case["length"]
    return maker.options(name=f"made_{name}").spawn(name, length, case["waits"])


def made_by_command(case: dict) -> ciel.Future[bytes]:
    name, length = case["name"], case["length"]
    script = f"echo run >> runs.{name}; yes 0123456789abcde | head -c {length}"
    if case["waits"]:
        script += f"; read line < gate.{name}"
    return ciel.sh(script, stdout=ciel.stream(mode=case["mode"]), name=f"made_{name}")


@ciel.task(retries=3)
def digest(given: ciel.Reading[bytes], name: str, offset: int, victim: str) -> str:
    is_first = victim != "nobody" and not Path(f"died.{name}").exists()
    with given.open() as file:
        if is_first:
            assert len(file.read(offset)) == offset
            die(name, victim)
        Path(f"gate.{name}").write_text("x\\n" * 9)
        return hashlib.md5(file.read()).hexdigest()


def die(name: str, victim: str) -> None:
    Path(f"died.{name}").touch()
    if victim == "run":
        os.kill(int(Path("run").read_text()), signal.SIGKILL)
        signal.pause()
    os.kill(os.getpid(), signal.SIGKILL)


def read_by_task(made: ciel.Future[bytes], case: dict) -> ciel.Future[str]:
    name = case["name"]
    reader = digest.options(name=f"read_{name}")
    return reader.spawn(made.stream(), name, case["offset"], case["victim"])


def read_by_command(made: ciel.Future[bytes], case: dict) -> ciel.Future[bytes]:
    name = case["name"]
    dies = "kill -9 $(cat run); read line < never" if case["victim"] == "run" else "kill -9 $$"
    first = f"mkdir died.{name} 2> /dev/null" if case["victim"] != "nobody" else "false"
    script = (
        f"if {first}; then head -c {case['offset']} > /dev/null; {dies}; fi; "
        f"yes x | head -n 9 > gate.{name}; md5sum | head -c 32"
    )
    return ciel.sh(script, stdin=made, name=f"read_{name}", retries=3)


MADE = {"task": made_by_task, "command": made_by_command}
READ = {"task": read_by_task, "command": read_by_command}


def main(cases: str) -> list[str]:
    found = []
    for case in json.loads(cases):
        made = MADE[case["producer"]](case)
        digest = READ[case["reader"]](made, case).result()
        found.append(digest if isinstance(digest, str) else digest.decode())
    return found
"""


Case = dict[str, Any]

WHOLE_FIRST = ("no_stream", "overlap")
"""The modes in which a reader has its first byte when the producer has ended."""


def cases(mode: str, victim: str) -> list[Case]:
    """Every kind of producer with every kind of reader, each killed at so many offsets."""
    kinds = [(made, read) for made in ("command", "task") for read in ("command", "task")]
    return [
        {
            "name": (name := f"{mode}_{made}_{read}_{seed}"),
            "mode": mode,
            "producer": made,
            "reader": read,
            "victim": victim,
            "offset": Random(f"{name} {victim}").randrange(LENGTH),
            "length": LENGTH,
            "waits": mode not in WHOLE_FIRST,
        }
        for made, read in kinds
        for seed in range(KILLS)
    ]


@contextmanager
def gates(folder: Path, found: list[Case]) -> Iterator[None]:
    """The pipes of the cases, held at both ends."""
    paths = [folder / f"gate.{case['name']}" for case in found] + [folder / "never"]
    for path in paths:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    held = [os.open(path, os.O_RDWR) for path in paths]
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def starts_of(folder: Path, case: Case) -> int:
    """How often the producer was started."""
    return len((folder / f"runs.{case['name']}").read_text().splitlines())


def told_of(folder: Path, task: str) -> str:
    """What `ciel why` says of a task."""
    told = jobs.command(folder, "why", task)
    assert told.status == 0, told.talk
    return told.printed.decode()


def served(mode: str) -> str:
    """How `ciel why` says that a reader was served."""
    return "indirect_pipe in place of indirect_file" if mode == "indirect_file" else mode


class Place:
    """A folder of a job whose processes and files are all known."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._mark = f"CIEL_TEST_PLACE={folder}"
        for variable, name in (("TMPDIR", "temporary"), ("XDG_RUNTIME_DIR", "runtime")):
            (folder / name).mkdir()
            monkeypatch.setenv(variable, str(folder / name))
        monkeypatch.setenv(*self._mark.split("="))

    def files(self) -> set[str]:
        """The files of state, runtime folder and temporary folder, whatever the run is called.

        Without kept results, and without the identities of tasks, which are written late.
        """
        found = set()
        for name in ("state/runs", "temporary", "runtime"):
            for path in (self.folder / name).rglob("*"):
                parts = list(path.relative_to(self.folder).parts)
                if parts[:2] == ["state", "runs"]:
                    parts[2] = "RUN"
                found.add("/".join(parts))
        return found - {"state/runs/RUN/history/identities"}

    def play(self, found: list[Case]) -> list[jobs.Ended]:
        """Starts the job until it has ended by itself: how each start of it ended."""
        jobs.write(self.folder, JOB)
        with gates(self.folder, found):
            ends = [self._start(found)]
            while ends[-1].status == -signal.SIGKILL:
                ends.append(self._start(found))
        return ends

    def _start(self, found: list[Case]) -> jobs.Ended:
        process = jobs.start(
            self.folder / "job.py", json.dumps(found), beneath=jobs.noting("run")
        )
        return jobs.end_of(process, jobs.DEADLINE_S + len(found))

    def is_empty(self) -> bool:
        """Whether no process of its jobs lives."""
        return not any(map(self._is_mine, Path("/proc").glob("[0-9]*/environ")))

    def _is_mine(self, environ: Path) -> bool:
        try:
            return self._mark.encode() in environ.read_bytes().split(b"\0")
        except OSError:
            return False


@pytest.fixture(name="place")
def place_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The folder of a test."""
    return Place(tmp_path, monkeypatch)


def expect_nothing_left(place: Place, found: list[Case]) -> None:
    """What is left is what a run without any death leaves."""
    assert place.is_empty()
    left = place.files()
    shutil.rmtree(place.folder / "state")
    undisturbed = [{**case, "victim": "nobody"} for case in found]
    (end,) = place.play(undisturbed)
    assert end.status == 0, end.talk
    assert left == place.files()


@pytest.mark.parametrize("mode", MODES)
def test_reader_killed_at_any_offset_has_every_byte_and_costs_its_producer_nothing(
    place: Place, mode: str
) -> None:
    """A direct producer alone starts again, and `ciel why` says for what."""
    found = cases(mode, "reader")
    (end,) = place.play(found)
    assert end.value == [DIGEST] * len(found), end.talk
    for case in found:
        starts, why = starts_of(place.folder, case), told_of(place.folder, f"made_{case['name']}")
        assert starts == (2 if mode == "direct" else 1), (case, why)
        assert "in 1 attempt\n" in why, (case, why)
        assert ("lost the other end of a stream, restarted" in why) == (mode == "direct"), why
        read = told_of(place.folder, f"read_{case['name']}")
        assert "in 2 attempts\n" in read, (case, read)
        assert mode in WHOLE_FIRST or f"input 0 in the mode {served(mode)}" in read, (case, read)
    expect_nothing_left(place, found)


@pytest.mark.parametrize("mode", MODES)
def test_run_killed_while_both_ends_live_is_resumed_to_the_same_bytes(
    place: Place, mode: str
) -> None:
    found = cases(mode, "run")
    *killed, end = place.play(found)
    assert end.value == [DIGEST] * len(found), end.talk
    assert len(killed) == len(found)
    for case in found:
        assert starts_of(place.folder, case) in ([1, 2] if mode in WHOLE_FIRST else [2]), case
    expect_nothing_left(place, found)
