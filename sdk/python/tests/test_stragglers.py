"""Tasks that take much longer than others of their function: who runs twice, and who never does.

Five calls end at once; the sixth waits in its first run for what never comes, and its second run
would end at once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs

JOB = """
import os
import signal
import ciel

@ciel.task(OPTIONS)
def step(n):
    with open("runs", "a") as file:
        file.write(f"{n} ")
    if n < 5:
        return n
    try:
        os.mkdir("begun")
    except FileExistsError:
        return n
    signal.pause()

def main():
    before = sum(step.spawn(n).result() for n in range(5))
    return before + step.options(timeout=LIMIT).spawn(5).result()
"""


def test_straggler_that_is_declared_pure_is_overtaken_by_its_duplicate(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, JOB.replace("OPTIONS", "pure=True").replace("LIMIT", "600"))
    assert ended.value == 15
    assert (tmp_path / "runs").read_text("utf-8").split().count("5") == 2


@pytest.mark.parametrize("said", ["", "pure=False"])
@pytest.mark.parametrize("asked", [(), ("--duplicates",)])
def test_straggler_that_is_not_declared_pure_runs_once(
    said: str, asked: tuple[str, ...], tmp_path: Path
) -> None:
    """Tasks ran twice in healthy runs although a page said never; so only this promise allows it,
    and ``--duplicates`` is about commands.
    """
    job = JOB.replace("OPTIONS", said).replace("LIMIT", "2.5")
    ended = jobs.run(tmp_path, job, options=("-j2", *asked))
    assert ended.status == 1
    assert "time limit" in ended.talk
    runs = (tmp_path / "runs").read_text("utf-8").split()
    assert sorted(runs) == ["0", "1", "2", "3", "4", "5"]
