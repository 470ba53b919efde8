"""Tasks with `assert` in modules that pytest has imported, which rewrites their code.

A worker imports the file as it is, so such a task was said to be another one than was spawned, and
failed with NonDeterministic. Read next: `code_of` in `ciel/_sources.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jobs

TESTS = '''
import ciel
import pytest

LIMIT = 10

def bounded(n):
    assert n < LIMIT, "too large"
    return n

@ciel.task
def checked(n, least=0):
    """Has another one inside."""
    def inner():
        assert n > least, f"bad {n}"
        return bounded(n)
    return inner()

@ciel.task
def outer(n):
    assert n
    return checked.spawn(n).result() + ciel.gather([checked.spawn(m) for m in (1, 2)])[1]

def test_tasks_of_a_session(tmp_path):
    with ciel.Session(jobs=2, state=tmp_path) as session:
        assert session.submit(checked, 3).result() == 3
        assert session.submit(outer, 4).result() == 6
        for n, words in ((-1, "bad -1"), (11, "too large")):
            with pytest.raises(AssertionError, match=words):
                session.submit(checked, n).result()

def test_closure(tmp_path):
    least = 2

    @ciel.task
    def closed(n):
        assert n > least
        return checked.spawn(n).result()

    with ciel.Session(jobs=1, state=tmp_path) as session:
        assert session.submit(closed, 3).result() == 3
'''


def test_tasks_with_asserts_run_from_modules_that_pytest_has_rewritten(tmp_path: Path) -> None:
    jobs.write(tmp_path, TESTS, "test_asserts.py")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_asserts.py"]
    ended = subprocess.run(
        words, cwd=tmp_path, env={**os.environ}, capture_output=True, timeout=jobs.DEADLINE_S
    )
    assert ended.returncode == 0, ended.stdout.decode()
    assert b"2 passed" in ended.stdout
