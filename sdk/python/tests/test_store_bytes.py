"""`store_bytes`: how the bound of what a run takes of the disk meets the one of its memory.

It knows nothing of how tasks are held; the tests of the command look at that.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import jobs
import pytest
from conditions import until

import ciel

MIB = 1 << 20

JOB = """
from pathlib import Path

import ciel

@ciel.task(keep=False, retries=1)
def made(letter):
    return letter.encode() * 3_000_000

@ciel.task(keep=False, retries=1)
def count(data, letter):
    return data.count(letter.encode())

@ciel.task(keep=False, retries=1)
def wait(number):
    Path("waits").touch()
    Path("gate").read_text()
    return number

def main():
    values = [made.spawn(letter) for letter in "abc"]
    counts = ciel.gather([count.spawn(value, letter) for value, letter in zip(values, "abc")])
    waited = wait.spawn(1).result()
    return [*counts, waited, *ciel.gather([count.spawn(value, "x") for value in values])]
"""


def test_values_in_memory_do_not_count_for_the_disk(tmp_path: Path) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("there is no /dev/shm that can be written to")
    os.mkfifo(tmp_path / "gate")
    options = ("-j2", "--store-memory=10M", "--store-bytes=2M")
    live = jobs.start(jobs.write(tmp_path, JOB), options=options)
    until(lambda: (tmp_path / "waits").exists() or live.poll() is not None)
    run = json.loads(jobs.command(tmp_path, "ps", "--store", "--json").lines[0])
    (tmp_path / "gate").write_text("go")
    assert jobs.end_of(live).value == [3_000_000] * 3 + [1] + [0] * 3
    store = run["store"]
    assert (store["limit_bytes"], store["memory_limit_bytes"]) == (2 * MIB, 10 * MIB)
    assert 9_000_000 <= store["memory_bytes"] <= 10 * MIB
    assert store["disk_bytes"] == store["present_bytes"] - store["memory_bytes"]
    assert store["disk_bytes"] < MIB
    assert not (run.get("held") or {}).get("room_is_scarce"), run["held"]


@pytest.mark.parametrize("memory", ["0", "4M"])
def test_values_that_are_not_in_memory_count(memory: str, tmp_path: Path) -> None:
    options = ("-j1", f"--store-memory={memory}", "--store-bytes=2M")
    (tmp_path / "gate").touch()
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, JOB), options=options))
    assert ended.status == 1
    told = "DiskFull: its object of 2.9 MiB does not fit into the 2.0 MiB of disk"
    assert told in ended.talk, ended.talk
    # What is in memory is not held on the disk.
    assert ", where" not in ended.talk, ended.talk


def test_run_takes_the_bound(tmp_path: Path) -> None:
    assert ciel.run(sum, [1, 2], store_bytes=MIB, state=tmp_path / "state") == 3
    with pytest.raises(ValueError, match="store_bytes is a number of bytes, not -1"):
        ciel.run(sum, [1, 2], store_bytes=-1, state=tmp_path / "state")


def large() -> int:
    """What a command writes is on the disk, also in a session."""
    return len(ciel.sh("head -c 3M /dev/zero").result())


def test_session_refuses_what_does_not_fit(tmp_path: Path) -> None:
    with ciel.Session(jobs=1, store_bytes=2 * MIB, state=tmp_path / "state") as session:
        kept = session.submit(bytes, 1000)
        assert len(kept.result()) == 1000
        with pytest.raises(ciel.CielError, match="does not fit into the 2.0 MiB of disk"):
            session.submit(large).result()


ENDLESS = """
from pathlib import Path

import ciel

@ciel.task(joined=True, stream=ciel.stream(mode="no_stream"))
def endless():
    for _ in range(64):
        yield bytes(1 << 20)
    Path("gate").read_text()

@ciel.task
def count(given: ciel.Reading[bytes]) -> int:
    with given.open() as file:
        return len(file.read())

def main():
    return count.spawn(endless.spawn().stream()).result()
"""


def test_generator_that_writes_without_end_is_ended_when_there_is_no_room(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    options = ("-j2", "--store-memory=0", "--store-bytes=10M")
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, ENDLESS), options=options))
    assert ended.status == 1
    assert "error: endless@" in ended.talk, ended.talk
    told = "MiB so far, which does not fit into the 10.0 MiB of disk that the run may take"
    assert told in ended.talk, ended.talk
    assert "hint: allow more with --store-bytes" in ended.talk, ended.talk


PARTIAL = (
    JOB.partition("def main")[0]
    + """
from collections.abc import Iterator

@ciel.task(keep=False)
def fails() -> Iterator[bytes]:
    yield b"x" * 3_000_000
    Path("read").read_text()
    raise ValueError("late")

def main():
    try:
        for piece in fails.spawn().stream():
            Path("read").write_text("go on")
    except ValueError as error:
        return [len(piece), str(error), wait.spawn(1).result()]
"""
)


def test_what_is_kept_of_a_failed_stream_counts_for_the_disk(tmp_path: Path) -> None:
    """It is kept for a resume until the run has ended, and counted nowhere."""
    for name in ("gate", "read"):
        os.mkfifo(tmp_path / name)
    options = ("-j2", "--store-bytes=20M")
    live = jobs.start(jobs.write(tmp_path, PARTIAL), options=options)
    until(lambda: (tmp_path / "waits").exists() or live.poll() is not None)
    store = json.loads(jobs.command(tmp_path, "ps", "--store", "--json").lines[0])["store"]
    kept = sum(path.stat().st_size for path in tmp_path.glob("state/runs/*/partial/*"))
    (tmp_path / "gate").write_text("go")
    assert jobs.end_of(live).value == [3_000_000, "late", 1]
    assert kept >= 3_000_000
    assert store["disk_bytes"] >= kept
