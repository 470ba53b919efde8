"""Large values in memory: which of them are there, and that nothing stays of a run that is gone.

The root of a job looks for the folder of its run in /dev/shm, which links to the run's folder. It
knows nothing of how values are written.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import jobs
import pytest
from conditions import until

import ciel

MEMORY = Path("/dev/shm")

pytestmark = pytest.mark.skipif(
    not os.access(MEMORY, os.W_OK), reason="there is no /dev/shm that can be written to"
)

JOB = """
import os
from pathlib import Path

import ciel

def in_memory():
    own, mine = Path("state/runs").resolve(), []
    for folder in Path("/dev/shm").glob(f"ciel-{os.getuid()}-*"):
        try:
            if own in Path(os.readlink(folder / "run")).parents:
                mine.append(folder)
        except OSError:
            pass  # the run of somebody else begins or ends
    return [file.name for folder in mine for file in (folder / "objects").iterdir()]

def on_disk():
    return [file.name for file in Path("state/runs").glob("*/objects/*")]

# What is retried is a task of its own, never a call within its caller.
@ciel.task(keep=KEEP, retries=1)
def made(letter):
    with open("made", "a") as log:
        log.write(letter)
    return letter.encode() * 3_000_000

@ciel.task(keep=False, retries=1)
def count(data, letter):
    return data.count(letter.encode())

@ciel.task(keep=False, retries=1)
def wait(number):
    Path("waits").touch()
    Path("gate").read_text()
    return number
"""

HERE = (
    JOB
    + """
def main():
    value = made.spawn("a")
    counts = [count.spawn(value, "a").result(), int(ciel.sh("wc -c < {x}", x=value).result())]
    return [counts, len(in_memory()), len(on_disk())]
"""
)


@pytest.mark.parametrize(
    ("keep", "options", "places"),
    [
        ("False", (), [0, 1]),
        ("False", ("--store-memory=3M",), [1, 0]),
        ("False", ("--store-memory=2M",), [0, 1]),
        ("False", ("--durable=never",), [1, 0]),
        ("False", ("--durable=never", "--store-memory=0"), [0, 1]),
        ("False", ("--durable=power", "--store-memory=3M"), [0, 1]),
        ("True", ("--store-memory=3M",), [0, 1]),
    ],
)
def test_value_that_fits_and_is_not_kept_is_in_memory(
    keep: str, options: tuple[str, ...], places: list[int], tmp_path: Path
) -> None:
    text = HERE.replace("KEEP", keep)
    ended = jobs.run(tmp_path, text, options=("-j2", *options))
    assert ended.value == [[3_000_000, 3_000_000], *places]
    assert jobs.in_memory_of(tmp_path) == []


PUT = """
def main():
    futures = [ciel.put(b"b" * 200_000), count.spawn(b"c" * 200_000, "c")]
    ciel.gather(futures)
    return [len(in_memory()), len(on_disk())]
"""


def test_values_and_arguments_of_the_program_are_in_memory(tmp_path: Path) -> None:
    text = JOB.replace("KEEP", "False") + PUT
    there, on_disk = jobs.run(tmp_path, text, options=("-j2", "--store-memory=1M")).value
    assert there > 0 and on_disk == 0


def places(state: str) -> list[int]:
    """Objects in memory and on the disk, of the runs of a state folder."""
    on_disk = len(list(Path(state).glob("runs/*/objects/*")))
    in_memory = [len(list((one / "objects").iterdir())) for one in jobs.in_memory_of(Path(state))]
    return [sum(in_memory), on_disk]


def test_session_has_its_values_in_memory(tmp_path: Path) -> None:
    state = tmp_path.resolve() / "state"
    with ciel.Session(jobs=1, state=state) as session:
        value = session.put(b"b" * 200_000)
        assert session.submit(len, value.later).result() == 200_000
        there, on_disk = session.submit(places, str(state)).result()
    assert there > 0 and on_disk == 0
    assert jobs.in_memory_of(state) == []


def test_session_can_have_its_values_on_the_disk(tmp_path: Path) -> None:
    """The page said that `--store-memory 0` turns memory off, which no session could say."""
    state = tmp_path.resolve() / "state"
    with ciel.Session(jobs=1, state=state, store_memory=0) as session:
        value = session.put(b"b" * 200_000)
        assert session.submit(len, value.later).result() == 200_000
        there, on_disk = session.submit(places, str(state)).result()
    assert there == 0 and on_disk > 0
    for name, amount in (("store_memory", -1), ("store_memory", "1G"), ("held_bytes", "64K")):
        with pytest.raises(ValueError, match=f"{name} is a number of bytes, not {amount!r}"):
            ciel.run(sum, [1, 2], **{name: amount})  # type: ignore[arg-type]


def large_in_memory(folder: Path) -> list[str]:
    """The tasks that made the large values which a live run has in memory."""
    shown = jobs.command(folder, "ps", "--store", "--json").lines[0]
    return [large["task"] for large in json.loads(shown)["store"]["largest"] if large["in_memory"]]


def test_store_shows_what_is_in_memory_and_the_end_says_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    text = JOB.replace("KEEP", "False") + """
def main():
    values = [made.spawn(letter) for letter in "ab"]
    return sum(ciel.gather([count.spawn(values[0], "a"), wait.spawn(1)]))
"""
    live = jobs.start(jobs.write(tmp_path, text), options=("-j2", "--store-memory=5M", "--json"))
    until(lambda: (tmp_path / "waits").exists() or live.poll() is not None)
    store = json.loads(jobs.command(tmp_path, "ps", "--store", "--json").lines[0])["store"]
    assert store["memory_limit_bytes"] == 5 << 20
    until(lambda: len(large_in_memory(tmp_path)) == 1)
    live_shown = jobs.command(tmp_path, "ps", "--store").printed.decode()
    assert " on disk and in memory\n" in live_shown and "MiB  in memory\n" in live_shown
    (tmp_path / "gate").write_text("go")
    ended = jobs.end_of(live)
    last = [json.loads(line) for line in ended.talk.splitlines()][-1]["store"]
    assert 3_000_000 <= last["memory_peak_bytes"] <= 5 << 20
    assert last["memory_peak_bytes"] < last["made_bytes"]
    shown = jobs.command(tmp_path, "ps", "--store").printed.decode()
    assert "on disk and in memory at the peak, up to 2.9 MiB in memory" in shown, shown


IN_MEMORY = ("-j2", "--store-memory=10M")

KILLED = """
def main():
    value = VALUE
    first = count.spawn(value, "a").result()
    there = len(in_memory())
    print("recorded")
    wait.spawn(1).result()
    return [first, there, count.spawn(value, "a").result()]
"""


def killed(folder: Path, value: str = 'made.spawn("a")') -> None:
    """Kills a job that has a value in memory and waits; all of its processes end.

    What was made before something was printed is recorded, and what was made later perhaps not.
    """
    os.mkfifo(folder / "gate")
    text = JOB.replace("KEEP", "False") + KILLED.replace("VALUE", value)
    live = jobs.start(jobs.write(folder, text), options=IN_MEMORY)
    assert live.stdout is not None and live.stdout.readline() == b"recorded\n"
    until(lambda: (folder / "waits").exists() or live.poll() is not None)
    live.send_signal(signal.SIGKILL)
    live.communicate(timeout=jobs.DEADLINE_S)
    (memory,) = jobs.in_memory_of(folder)
    assert len(list((memory / "objects").iterdir())) == 1
    (folder / "gate").unlink()
    (folder / "gate").touch()


def test_killed_run_resumes_with_what_is_in_memory(tmp_path: Path) -> None:
    killed(tmp_path)
    ended = jobs.end_of(jobs.start(tmp_path / "job.py", options=IN_MEMORY))
    assert ended.value == [3_000_000, 1, 3_000_000]
    assert (tmp_path / "made").read_text() == "a"
    assert jobs.in_memory_of(tmp_path) == []


def test_results_of_a_killed_run_whose_memory_is_lost_are_recomputed(tmp_path: Path) -> None:
    killed(tmp_path)
    (memory,) = jobs.in_memory_of(tmp_path)
    shutil.rmtree(memory)
    ended = jobs.end_of(jobs.start(tmp_path / "job.py", options=IN_MEMORY))
    assert ended.value == [3_000_000, 1, 3_000_000]
    assert (tmp_path / "made").read_text() == "aa"
    assert jobs.in_memory_of(tmp_path) == []


def test_killed_run_whose_put_value_is_lost_says_what_to_do(tmp_path: Path) -> None:
    killed(tmp_path, 'ciel.put(b"a" * 3_000_000)')
    (memory,) = jobs.in_memory_of(tmp_path)
    shutil.rmtree(memory)
    ended = jobs.end_of(jobs.start(tmp_path / "job.py", options=IN_MEMORY))
    assert ended.status == 1
    assert "is lost and cannot be recomputed" in ended.talk and "ciel run --new" in ended.talk
    again = jobs.end_of(jobs.start(tmp_path / "job.py", options=(*IN_MEMORY, "--new")))
    assert again.value == [3_000_000, 1, 3_000_000]


def test_runs_say_what_a_killed_run_has_in_memory_until_it_is_cleaned(tmp_path: Path) -> None:
    """`ciel runs` counted the disk only: a run that held 225 MiB of memory had a size of 88 KiB."""
    killed(tmp_path)
    (line,) = jobs.command(tmp_path, "runs", "--json").lines
    run = json.loads(line)
    assert 3_000_000 <= run["memory_bytes"] < 3_100_000
    shown = jobs.command(tmp_path, "runs").printed.decode()
    assert shown.count("2.9 MiB in memory") == 2, shown
    jobs.command(tmp_path, "clean", "--all")
    assert jobs.in_memory_of(tmp_path) == []


def test_what_a_removed_run_has_in_memory_goes_with_the_next_one(tmp_path: Path) -> None:
    killed(tmp_path)
    shutil.rmtree(tmp_path / "state")
    text = HERE.replace("KEEP", "False")
    assert jobs.run(tmp_path, text, options=IN_MEMORY).value[1:] == [1, 0]
    assert jobs.in_memory_of(tmp_path) == []
