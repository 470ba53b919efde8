"""Random programs whose children become tasks never, always, or at places that a number chooses.

What they show is the same each time, and so are the names of the tasks. The job itself changes the
library in its workers: that is how a test says when a child becomes a task. `CIEL_SOAK_S` is how
many seconds the test with kills lasts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs
import programs
from beats import keep_few, stop_hearts
from test_engine_programs import COUNT, expected_print, soak_killed

PROMOTING = '''

import os
import zlib
from ciel import _keeping_strand, _short_calls, _worker
from ciel._keeping_strand import KeepingStrand
from ciel._light_strand import LightStrand
from ciel._strand import here
from ciel._task import Task


def _install(promoted):
    spawn, run_call, keep = Task.spawn, LightStrand.run_call, KeepingStrand._keep

    def is_chosen(*words):
        # The seed is known without a strand, which native code has none of until one is asked for.
        text = repr((os.environ.get("CIEL_TASK_SEED"), words))
        return zlib.crc32(text.encode()) % 100 < promoted

    def keep_then_promote(strand, call, payload, is_sealed):
        future = keep(strand, call, payload, is_sealed)
        if is_chosen(0, strand.next_action):
            strand.promote()
        return future

    def spawn_then_promote(task, *args, **kwargs):
        future = spawn(task, *args, **kwargs)
        is_now = is_chosen(1, args, sorted(kwargs.items()))
        if is_now and isinstance(here.strand, KeepingStrand):
            here.strand.promote()
        return future

    def promote_then_run(strand, name, function, args, kwargs):
        if is_chosen(2, name, args) and not strand._child.sealed:
            strand.promote()
        return run_call(strand, name, function, args, kwargs)

    def note_promoting(call, definition):
        function, head = call.task.function, _keeping_strand.head_of_plain(call.task.identity)

        def promote_then_call(*args, **kwargs):
            if is_chosen(2, function.__name__, args, sorted(kwargs.items())):
                here.strand.promote()
            return function(*args, **kwargs)

        call.task.keep_plain_calls(promote_then_call, call.file, definition, head, [], True)

    _worker.IN_PLACE_S = 1e9  # no tail is a task because it comes late
    _short_calls.SHORT_S = 1e9  # no call of a list is long
    if promoted:
        KeepingStrand._keep, LightStrand.run_call = keep_then_promote, promote_then_run
        Task.spawn, _keeping_strand._note_plain = spawn_then_promote, note_promoting


_install(PROMOTED)
'''
"""What is appended to the job; of a hundred spawns and beginnings, `PROMOTED` promote."""

NEVER, SOMETIMES, ALWAYS = 0, 30, 100

KEPT_MAX = 6
"""Children that a strand keeps: lists of the programs are longer."""


def _job(folder: Path, promoted: int) -> Path:
    text = Path(programs.__file__).read_text(encoding="utf-8")
    return jobs.write(folder, text + PROMOTING.replace("PROMOTED", str(promoted)), "programs.py")


def _names(folder: Path) -> set[str]:
    """The names of the tasks of the last run."""
    lines = jobs.command(folder, "ps", "--all").printed.decode().splitlines()
    return {line.split()[0] for line in lines if line.startswith("  ") and "@" in line}


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_programs_show_the_same_whenever_children_become_tasks(
    slots: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without heartbeats, which make tasks of more children the slower the machine is. Small calls
    of lists that are longer than what a strand keeps run early.
    """
    stop_hearts(tmp_path, monkeypatch, KEPT_MAX)
    for seed in (70_001, 80_001):
        names: list[set[str]] = []
        for promoted in (ALWAYS, SOMETIMES, NEVER):
            folder = tmp_path / f"{seed}-{promoted}"
            folder.mkdir()
            job = _job(folder, promoted)
            ended = jobs.end_of(jobs.start(job, str(seed), str(COUNT), options=(slots,)))
            assert (ended.status, ended.printed) == (0, expected_print(seed)), ended.talk
            names.append(_names(folder))
        always, sometimes, never = names
        assert never <= always and sometimes <= always
        assert len(never) < len(sometimes) < len(always)


NAMED = """
import random
import ciel

@ciel.task
def node(seed, depth=3, *, factor=1, **others):
    chance = random.Random(f"{seed} {depth} {factor} {sorted(others.items())}")
    total = ciel.task_rng().randrange(1000) * factor
    futures = []
    for n in range(chance.randrange(1, 5) if depth else 0):
        if chance.random() < 0.2:
            print("node", seed, depth, n)
        named = {"factor": chance.randrange(9)} if chance.random() < 0.7 else {}
        if chance.random() < 0.3:
            named["other"] = (n, "text")
        if chance.random() < 0.5:
            futures.append(node.spawn(7 * seed + n, depth - 1, **named))
        else:
            futures.append(node.spawn(depth=depth - 1, **named, seed=7 * seed + n))
    for future in chance.sample(futures, len(futures)):
        try:
            total += future.result()
        except ValueError as error:
            total += error.args[0]
    if chance.random() < 0.05:
        raise ValueError(total)
    return total

def main():
    first, second = node.spawn(1, depth=4), node.spawn(seed=5, depth=4)
    return [second.result(), first.result()]
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_calls_with_named_arguments_show_the_same_whenever_they_become_tasks(
    slots: str, tmp_path: Path
) -> None:
    serial = jobs.end_of(jobs.start(jobs.write(tmp_path, NAMED), options=("--serial",)))
    assert serial.status == 0, serial.talk
    for promoted in (ALWAYS, SOMETIMES, NEVER):
        folder = tmp_path / str(promoted)
        folder.mkdir()
        job = jobs.write(folder, NAMED + PROMOTING.replace("PROMOTED", str(promoted)))
        ended = jobs.end_of(jobs.start(job, options=(slots,)))
        assert (ended.status, ended.printed) == (0, serial.printed), ended.talk


def test_killed_programs_show_the_same_whenever_children_become_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_few(tmp_path, monkeypatch, KEPT_MAX)
    soak_killed(_job(tmp_path, SOMETIMES), 5, monkeypatch)
