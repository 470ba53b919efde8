"""Files of results that are lost or damaged while the run lives are recomputed in it.

The jobs are those of `test_lost_results`, which are killed there: here they wait at their gate
while files are damaged, and then go on. It knows nothing of how that is found.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import jobs
import pytest
from conditions import until
from test_lost_results import DAMAGES, JOB, PLACES, RESULTS, objects_of, serial

import ciel

READ_BY_A_TASK = (
    JOB
    + """
@ciel.task(keep=False)
def length(value):
    return len(value["inside"].result() if isinstance(value, dict) else value)

def main():
    value = VALUE
    ciel.gather([value])
    wait.spawn().result()
    return length.spawn(value).result()
"""
)

RAISES = """
import ciel, os

@ciel.task(keep=False)
def raises():
    with open(os.environ["BEGUN"], "a") as begun:
        begun.write("once ")
    raise ciel.ObjectLost("of a store that Ciel knows nothing of")

def main():
    try:
        raises.spawn().result()
    except ciel.ObjectLost as error:
        return str(error)
"""

CAUGHT = (
    JOB
    + """
def main():
    value = made.spawn(200_000)
    turned.spawn(value).result()
    wait.spawn().result()
    try:
        return len(value.result())
    except ciel.CielError as error:
        return repr(error)
"""
)


def damaged_at_the_gate(
    folder: Path, text: str, options: tuple[str, ...], chance: random.Random, share: float = 1.0
) -> jobs.Ended:
    """Starts a job, damages a share of its files while it waits at its gate, and lets it go on."""
    os.mkfifo(folder / "gate")
    jobs.write(folder, text)
    live = jobs.start(folder / "job.py", options=options)
    until(lambda: (folder / "waits").exists() or live.poll() is not None)
    files = objects_of(folder)
    for path in [path for path in files if chance.random() < share] or files:
        DAMAGES[chance.choice(list(DAMAGES))](path, chance)
    (folder / "gate").write_text("")
    return jobs.end_of(live)


UNRECORDED = [("-j2", "--durable=never", "--store-memory=0"), ("-j2", "--durable=never")]


@pytest.mark.parametrize(
    "options", [*PLACES, *UNRECORDED], ids=["disk", "memory", "unrecorded", "unrecorded memory"]
)
@pytest.mark.parametrize("seed", range(6))
def test_results_lost_in_a_live_run_are_recomputed_in_it(
    seed: int, options: tuple[str, ...], tmp_path: Path
) -> None:
    """The run stopped with an error that named the first of them, and had to be resumed by hand."""
    share = 1.0 if seed < 2 else 0.5
    ended = damaged_at_the_gate(tmp_path, RESULTS, options, random.Random(seed), share)
    assert ended.status == 0, ended.talk
    assert ended.printed == serial(tmp_path, RESULTS).printed
    assert "it is recomputed" in ended.talk


def test_inputs_of_tasks_of_a_session_that_are_lost_are_recomputed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Sessions are not recorded: their tasks failed with `ObjectLost`."""
    with ciel.Session(jobs=2, state=tmp_path / "state", store_memory=0) as session:
        value = session.submit(bytes, 200_000)
        assert session.submit(len, value.later).result() == 200_000
        (file,) = objects_of(tmp_path)
        file.unlink()
        assert session.submit(len, value.later).result() == 200_000
    assert "is gone now: it is recomputed" in capfd.readouterr().err


def test_task_of_a_session_that_needs_a_lost_value_which_was_put_fails_alone(
    tmp_path: Path,
) -> None:
    """The session ended with all its results, and said only that its engine had."""
    with ciel.Session(jobs=2, state=tmp_path / "state", store_memory=0) as session:
        value = session.put(b"c" * 200_000)
        made = session.submit(bytes, 300_000)
        assert session.submit(len, made.later).result() == 300_000
        for file in objects_of(tmp_path):
            file.unlink()
        with pytest.raises(ciel.ObjectLost, match="does not exist"):
            session.submit(len, value.later).result()
        assert session.submit(len, made.later).result() == 300_000


def test_session_ends_whose_program_itself_asks_for_a_lost_value(tmp_path: Path) -> None:
    with (
        pytest.raises(ciel.WorkerLost, match="the engine of the session has ended"),
        ciel.Session(jobs=2, state=tmp_path / "state", store_memory=0) as session,
    ):
        value = session.submit(bytes, 200_000)
        session.submit(len, value.later).result()
        (file,) = objects_of(tmp_path)
        file.unlink()
        value.result()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("ciel.put(b'c' * 200_000)", "job@ stored it by itself"),
        ("stores.spawn(200_000)", "stores@ stored it by itself"),
        ("timed.spawn(200_000)", "timed@ asked for the time or the like"),
        ("changes.spawn(200_000)", "changes@ is impure"),
        ("longer.spawn(200_000)", "its task gives another result by now"),
    ],
)
def test_data_lost_in_a_live_run_that_cannot_be_recomputed_is_told_with_its_task(
    value: str, words: str, tmp_path: Path
) -> None:
    text = READ_BY_A_TASK.replace("VALUE", value)
    ended = damaged_at_the_gate(tmp_path, text, PLACES[0], random.Random(1))
    assert ended.status == 1
    assert "is lost and cannot be recomputed" in ended.talk and "ciel run --new" in ended.talk
    # Of one it shows only when it is recomputed that its task gives something else.
    assert ("it is recomputed" in ended.talk) == ("another result" in words)
    for word in words.split("@"):
        assert word in ended.talk


@pytest.mark.parametrize("option", ["--durable=never", "--serial"])
def test_task_fails_without_its_file_in_a_run_that_cannot_recompute_it(
    option: str, tmp_path: Path
) -> None:
    """Such a run has nowhere to put files by then, or cannot go back to a task."""
    os.mkfifo(tmp_path / "gate")
    jobs.write(tmp_path, READ_BY_A_TASK.replace("VALUE", "made.spawn(200_000)"))
    live = jobs.start(tmp_path / "job.py", options=(option, "--store-memory=0"))
    until(lambda: (tmp_path / "waits").exists() or live.poll() is not None)
    for folder in {file.parent for file in objects_of(tmp_path)}:
        shutil.rmtree(folder)
    (tmp_path / "gate").write_text("")
    ended = jobs.end_of(live)
    assert ended.status == 1
    assert "ObjectLost" in ended.talk and "it is recomputed" not in ended.talk, ended.talk


def test_a_lost_file_is_no_failure_that_a_task_could_catch(tmp_path: Path) -> None:
    ended = damaged_at_the_gate(tmp_path, CAUGHT, PLACES[0], random.Random(2))
    assert ended.value == 200_000, ended.talk


def test_task_that_raises_object_lost_by_itself_is_not_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was restarted sixteen times, as if a file that it reads were lost."""
    monkeypatch.setenv("BEGUN", str(tmp_path / "begun"))
    jobs.write(tmp_path, RAISES)
    ended = jobs.end_of(jobs.start(tmp_path / "job.py"))
    assert "of a store that Ciel knows nothing of" in ended.value, ended.talk
    assert (tmp_path / "begun").read_text() == "once "


def test_why_says_that_a_task_has_missed_a_file(tmp_path: Path) -> None:
    text = READ_BY_A_TASK.replace("VALUE", "made.spawn(200_000)")
    damaged_at_the_gate(tmp_path, text, PLACES[0], random.Random(3))
    told = jobs.command(tmp_path, "why", "length")
    assert b"missed the file of an object, restarted" in told.printed, told
