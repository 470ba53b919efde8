"""Why tasks run whose run was killed before it had asked for their kept results."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

from ciel._engine import find_command

from conditions import until
from test_kept import edit, run

HELPERS = """def unused() -> None:
    return None


def helper(n: int) -> int:
    return n + 1
"""

JOB = '''
import fcntl
import sys

import ciel
import helpers


@ciel.task
def step(n: int) -> int:
    print("ran step", n, file=sys.stderr)
    return helpers.helper(n)


@ciel.task(keep=False)
def held() -> int:
    with open("gate") as gate:
        fcntl.flock(gate, fcntl.LOCK_SH)
    return 7


def main() -> list[int]:
    spawned = [step.spawn(0), step.spawn(held.spawn())]
    open("spawned", "w").close()
    return [future.result() for future in spawned]
'''


def test_resumed_run_names_the_helper_that_was_edited(tmp_path: Path) -> None:
    """The records of a run have no more of the code of a task than a digest, so the reason named
    the line of the task itself; so did the next run for results that a resumed one had kept.
    """
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "gate").touch()
    assert run(tmp_path)[0] == ["step 0", "step 7"]
    edit(tmp_path / "helpers.py", "n + 1", "n + 2")
    (tmp_path / "spawned").unlink()
    words = [find_command(), "run", "--python", sys.executable, "--kept", "-j2", "job.py"]
    with open(tmp_path / "gate") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        killed = subprocess.Popen(
            words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until((tmp_path / "spawned").exists)
        until(lambda: any(path.stat().st_size > 200 for path in identities(tmp_path)))
        killed.kill()
        killed.communicate()
    ran, printed, told = run(tmp_path, "--kept")
    assert "resuming run" in told and ran[-1] == "step 7"
    assert "step: code changed: helpers.py:5" in told
    assert printed == "[2,9]\n"
    edit(tmp_path / "helpers.py", "n + 2", "n + 3")
    ran, _, told = run(tmp_path, "--kept")
    assert ran == ["step 0", "step 7"] and "step: code changed: helpers.py:5 (2 tasks)" in told


def identities(folder: Path) -> list[Path]:
    """The files in which runs note what their tasks are given, but for that of the first run."""
    found = sorted((folder / ".ciel" / "runs").glob("*/history/identities"))
    return found[1:]
