"""Files of results that are lost or damaged between a kill and the resume are recomputed.

Jobs of tasks in Python whose results are of many sizes are killed at a gate; some files of the run,
on the disk and in memory, are damaged; the resumed run gives what the serial program gives. Another
attempt of a task writes its result in a file of another name, unlike that of a command. It knows
nothing of how files are found to be damaged.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import jobs
import pytest
from conditions import until

JOB = """
import hashlib
import os
from pathlib import Path

import ciel

SIZES = [2_000, 65_000, 1 << 16, 1_000_000, 5_000_000]

def note(what):
    with open("ran", "a") as log:
        log.write(f"{what}\\n")
    if os.path.exists("hold"):
        Path("remaking").touch()
        Path("hold").read_text()

# What is retried is a task of its own, never a call within its caller.
@ciel.task(keep=False, retries=1)
def made(size):
    note(f"made {size}")
    return b"ab" * (size // 2)

@ciel.task(keep=False, retries=1)
def turned(data):
    note(f"turned {len(data)}")
    return [data[::-1], len(data)]

@ciel.task(keep=False, retries=1)
def told(data, pair):
    return [hashlib.sha256(part).hexdigest() for part in (data, *pair[:-1])]

@ciel.task(keep=False, retries=1)
def stores(size):
    return {"inside": ciel.put(b"c" * size)}

@ciel.task(keep=False, retries=1)
def timed(size):
    return b"c" * (size + (ciel.now() is None))

@ciel.task(keep=False, retries=1, pure=False)
def changes(size):
    return b"c" * size

@ciel.task(keep=False, retries=1)
def longer(size):
    note("longer")
    return b"c" * (size + Path("ran").read_text().count("longer") - 1)

@ciel.task(keep=False, retries=1)
def wait():
    Path("waits").touch()
    Path("gate").read_text()
"""

RESULTS = (
    JOB
    + """
def main():
    first = [made.spawn(size) for size in SIZES]
    second = [turned.spawn(data) for data in first]
    ciel.gather([told.spawn(*pair) for pair in zip(first, second)])
    print("recorded")
    wait.spawn().result()
    return ciel.gather([told.spawn(*pair) for pair in zip(first, second)])
"""
)

PUT = (
    JOB
    + """
def main():
    value = VALUE
    ciel.gather([value])
    print("recorded")
    wait.spawn().result()
    return len(READ)
"""
)


def _flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 0x10
    _replace(path, bytes(data))


def _replace(path: Path, data: bytes) -> None:
    """Files of results cannot be written to."""
    path.unlink()
    path.write_bytes(data)
    path.chmod(0o400)


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "removed": lambda path, _: path.unlink(),
    "cut": lambda path, _: _replace(path, path.read_bytes()[:-1]),
    "emptied": lambda path, _: _replace(path, b""),
    "longer": lambda path, _: _replace(path, path.read_bytes() + b"more"),
    "flipped": _flip,
}


def objects_of(folder: Path) -> list[Path]:
    """The files of objects of the run in a folder, on the disk and in memory."""
    found = list((folder / "state").glob("runs/*/objects/*"))
    for memory in jobs.in_memory_of(folder):
        found.extend((memory / "objects").iterdir())
    return sorted(found)


def kill_at(folder: Path, mark: str, options: tuple[str, ...], shown: bytes = b"") -> None:
    """Starts or resumes the job of a folder, and kills it when a task has left that file, and the
    job has shown that.
    """
    live = jobs.start(folder / "job.py", options=options)
    assert live.stdout is not None and live.stdout.read(len(shown)) == shown
    until(lambda: (folder / mark).exists() or live.poll() is not None)
    live.send_signal(signal.SIGKILL)
    assert jobs.end_of(live).status == -signal.SIGKILL


def broken_off(folder: Path, text: str, options: tuple[str, ...]) -> list[Path]:
    """Kills a job at its gate, which is open then; the files of its objects.

    They are recorded, since the job has printed something after them. A test of lost data found
    nothing lost where their records had not been written yet.
    """
    os.mkfifo(folder / "gate")
    jobs.write(folder, text)
    kill_at(folder, "waits", options, b"recorded\n")
    (folder / "gate").unlink()
    (folder / "gate").touch()
    return objects_of(folder)


def serial(folder: Path, text: str) -> jobs.Ended:
    """What the serial program gives, in a folder of its own."""
    (folder / "serial").mkdir()
    (folder / "serial" / "gate").touch()
    return jobs.run(folder / "serial", text, options=("--serial",))


def expect_serial(folder: Path) -> None:
    ended = jobs.command(folder, "resume", "--quiet")
    assert ended.status == 0, ended.talk
    assert ended.printed == serial(folder, RESULTS).printed


PLACES = [("-j2", "--store-memory=0"), ("-j2", "--store-memory=100M")]


@pytest.mark.parametrize("options", PLACES, ids=["disk", "memory"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_result_that_is_lost_is_recomputed(
    damage: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    """A result of a task in Python once had a name under which no rerun could leave it again: the
    resumed run ended with `ObjectLost`."""
    files = broken_off(tmp_path, RESULTS, options)
    assert len(files) == 10
    for path in files:
        DAMAGES[damage](path, random.Random(len(damage)))
    expect_serial(tmp_path)
    ran = (tmp_path / "ran").read_text().splitlines()
    assert all(ran.count(line) == 2 for line in ran), ran


@pytest.mark.parametrize("options", PLACES, ids=["disk", "memory"])
@pytest.mark.parametrize("seed", range(4))
def test_results_damaged_at_random_are_recomputed_over_and_over(
    seed: int, options: tuple[str, ...], tmp_path: Path
) -> None:
    """The run is killed a second time while it recomputes, and again some files are gone."""
    chance = random.Random(seed)
    files = broken_off(tmp_path, RESULTS, options)
    for path in [path for path in files if chance.random() < 0.7] or files:
        DAMAGES[chance.choice(list(DAMAGES))](path, chance)
    os.mkfifo(tmp_path / "hold")
    kill_at(tmp_path, "remaking", options)
    (tmp_path / "hold").unlink()
    for path in objects_of(tmp_path):
        if chance.random() < 0.3:
            path.unlink()
    expect_serial(tmp_path)


@pytest.mark.parametrize("options", PLACES, ids=["disk", "memory"])
@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("ciel.put(b'c' * 200_000)", "value.result()"),
        ("stores.spawn(200_000)", "value.result()['inside'].result()"),
        ("timed.spawn(200_000)", "value.result()"),
        ("changes.spawn(200_000)", "value.result()"),
        ("longer.spawn(200_000)", "value.result()"),
    ],
)
def test_lost_data_that_cannot_be_recomputed_is_told(
    value: str, read: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    """It was put, its task is impure or has asked for the time, or it has another length now."""
    text = PUT.replace("VALUE", value).replace("READ", read)
    (lost,) = broken_off(tmp_path, text, options)
    lost.unlink()
    ended = jobs.end_of(jobs.start(tmp_path / "job.py", options=options))
    assert ended.status == 1
    assert "is lost and cannot be recomputed" in ended.talk and "ciel run --new" in ended.talk
    again = jobs.end_of(jobs.start(tmp_path / "job.py", options=(*options, "--new")))
    assert again.value == 200_000 + 2 * value.startswith("longer")


PAIRS = (
    JOB
    + """
@ciel.task(keep=False, retries=1, outputs=2)
def pair(size):
    return b"a" * size, os.urandom(size)

def main():
    pairs = [pair.spawn(100_000 + number) for number in range(12)]
    second = [told.spawn(pair[1], [0]) for pair in pairs]
    ciel.gather([*second, *(pair[0] for pair in pairs)])
    print("recorded")
    wait.spawn().result()
    again = [told.spawn(pair[1], [1]) for pair in pairs]
    first = [told.spawn(pair[0], [2]) for pair in pairs]
    same = [one[0] == other[0] for one, other in zip(*map(ciel.gather, (second, again)))]
    return [same, len(set(one[0] for one in ciel.gather(first)))]
"""
)


def test_result_beside_a_lost_one_stays_what_it_was(tmp_path: Path) -> None:
    """The rerun makes both: the other one could be written over the one that readers
    have seen already, if its start had the number of a start of the killed process."""
    files = broken_off(tmp_path, PAIRS, PLACES[0])
    first = [path for path in files if set(path.read_bytes()) == {ord("a")}]
    assert len(first) == 12
    for path in first:
        path.unlink()
    ended = jobs.command(tmp_path, "resume", "--quiet")
    assert ended.value == [[True] * 12, 12]
