"""The joblib backend `ciel`: what the page promises, and joblib's own tests of backends.

Skipped where joblib is not installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ciel
import pytest

joblib = pytest.importorskip("joblib", reason="joblib is not installed")
pytest.importorskip("ciel.joblib")

LEFT_OUT = {
    "nested_loop and loky": "processes of loky have not imported ciel.joblib, as the page says",
    "nested_loop and back_compat_backend": "runs its calls in processes of loky",
}
"""Joblib's tests of backends that are not run, by parts of their names, with the reason."""


def square(number: int) -> int:
    """The square."""
    return number * number


def squares(count: int) -> list[int]:
    """Calls of joblib inside of a call."""
    found: list[int] = joblib.Parallel(n_jobs=2)(joblib.delayed(square)(i) for i in range(count))
    return found


def refuse(number: int) -> int:
    """Fails for three."""
    if number == 3:
        raise ValueError("no threes")
    return number


def parallel(work: Any, count: int, **options: Any) -> Any:
    """Calls `work` for the numbers below `count` with two cores."""
    with joblib.parallel_config(backend="ciel", n_jobs=2):
        return joblib.Parallel(**options)(joblib.delayed(work)(i) for i in range(count))


def test_parallel_calls_run_as_tasks() -> None:
    """`parallel_config(backend="ciel")` is all that a program of joblib needs."""
    assert parallel(square, 20) == [i * i for i in range(20)]


def test_results_can_be_taken_as_they_come() -> None:
    """Joblib's generators work, in order and as completed."""
    expected = [i * i for i in range(20)]
    assert list(parallel(square, 20, return_as="generator")) == expected
    assert sorted(parallel(square, 20, return_as="generator_unordered")) == expected


def test_calls_inside_of_calls_are_serial() -> None:
    """A task keeps to the core that it asked for."""
    assert parallel(squares, 4) == [[i * i for i in range(count)] for count in range(4)]


def test_an_exception_of_a_call_is_raised() -> None:
    """It is the call's own, and the backend works again afterwards."""
    with pytest.raises(ValueError, match="no threes"):
        parallel(refuse, 100)
    assert parallel(square, 3) == [0, 1, 4]


def test_a_session_can_be_given(tmp_path: Path) -> None:
    """Its options hold, and it stays open."""
    with ciel.Session(jobs=2, state=tmp_path / "state") as session:
        with joblib.parallel_config(backend="ciel", n_jobs=2, session=session):
            assert joblib.Parallel()(joblib.delayed(square)(i) for i in range(3)) == [0, 1, 4]
        assert session.submit(square, 3).result() == 9


def test_the_tests_of_joblib_pass(tmp_path: Path) -> None:
    """Joblib has a test of each kind for every backend that is registered: all of them are run."""
    theirs = " and ".join(["ciel", *(f"not ({left_out})" for left_out in LEFT_OUT)])
    (tmp_path / "registered.py").write_text("import ciel.joblib\n", encoding="utf-8")
    words = ["-q", "--no-header", "-p", "registered", "-p", "no:cacheprovider", "-W", "ignore"]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-k", theirs,
         "--pyargs", "joblib.test.test_parallel"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    count = re.search(r"(\d+) passed", done.stdout)
    assert count is not None and int(count[1]) > 70, done.stdout
