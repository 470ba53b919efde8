"""Options of tasks with a real engine: each does what the reference says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs

JOB = """
import os
import time
import ciel

def mark(name):
    with open(name, "a") as file:
        file.write("x")
    return os.path.getsize(name)

@ciel.task(retries=2)
def flaky(name):
    tries = mark(name)
    if tries < 3:
        raise OSError(f"try {tries}")
    return tries

@ciel.task
def plain(name):
    mark(name)
    raise OSError("never")

@ciel.task(timeout=0.2)
def slow():
    time.sleep(600)

@ciel.task(timeout=10)
def waits_long(name):
    return quick.spawn(10.5, name).result()

@ciel.task
def quick(seconds, name):
    time.sleep(seconds)
    return mark(name)

@ciel.task(memory="128 MiB")
def eats():
    pieces = [b"x" * (1 << 20) for _ in range(400)]
    time.sleep(600)
    return len(pieces)

@ciel.task(memory="128 MiB")
def modest():
    return len(b"x" * (1 << 20))

@ciel.task
def surroundings():
    names = ["CIEL_CORES", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
    return [os.environ.get(name) for name in names]

@ciel.task(name="polish")
def named():
    raise ValueError("dull")

@ciel.task(pure=True)
def pure(name, n):
    mark(name)
    return n

@ciel.task
def impure(name, n):
    mark(name)
    return n

@ciel.task(lazy=True)
def lazy(name):
    return mark(name)

@ciel.task(resources={"gpu": 1})
def gpu():
    return 1

@ciel.task(outputs=3)
def three(n):
    return n, [n] * 2, str(n)

def main():
    %s
"""


def value_of(folder: Path, body: str, *options: str) -> object:
    """The value of a job with this body of main."""
    return jobs.run(folder, JOB % body, options=options or ("-j2",)).value


def error_of(folder: Path, call: str, kind: str) -> list[str]:
    """Text and task of the exception that asking for `call` raises, beside a task that is well."""
    body = f"""
    good = pure.spawn("good", 4)
    try:
        {call}.result()
    except {kind} as error:
        return [str(error), getattr(error, "task", ""), good.result()]
"""
    found = value_of(folder, body.strip())
    assert isinstance(found, list) and found[2] == 4
    return found[:2]


def test_retries_try_again_until_it_ends_well(tmp_path: Path) -> None:
    assert value_of(tmp_path, "return flaky.spawn('tries').result()") == 3


def test_without_retries_one_try_is_all(tmp_path: Path) -> None:
    assert error_of(tmp_path, "plain.spawn('tries')", "OSError")[0] == "never"
    assert (tmp_path / "tries").read_text(encoding="utf-8") == "x"


def test_retries_used_up_raise_the_last_exception(tmp_path: Path) -> None:
    call = "plain.options(retries=2).spawn('tries')"
    assert error_of(tmp_path, call, "OSError")[0] == "never"
    assert (tmp_path / "tries").read_text(encoding="utf-8") == "xxx"


def test_task_over_its_time_raises_timeout(tmp_path: Path) -> None:
    words, task = error_of(tmp_path, "slow.spawn()", "ciel.Timeout")
    assert "time limit of 0.2 s" in words and "hint:" in words and task.startswith("slow@")


def test_waiting_does_not_count_as_time(tmp_path: Path) -> None:
    assert value_of(tmp_path, "return waits_long.spawn('mark').result()", "-j1") == 1


def test_task_over_its_memory_raises_out_of_memory(tmp_path: Path) -> None:
    words, task = error_of(tmp_path, "eats.spawn()", "ciel.OutOfMemory")
    assert "declared 128 MiB" in words and task.startswith("eats@")
    assert value_of(tmp_path, "return modest.spawn().result()") == 1 << 20


@pytest.mark.parametrize("cores", [1, 2])
def test_numeric_libraries_are_told_the_cores_of_the_task(cores: int, tmp_path: Path) -> None:
    body = f"return surroundings.options(cores={cores}).spawn().result()"
    assert value_of(tmp_path, body, "-j4") == [str(cores)] * 4


def test_more_cores_than_there_are_is_refused(tmp_path: Path) -> None:
    words, _ = error_of(tmp_path, "surroundings.options(cores=3).spawn()", "ciel.Refused")
    assert "needs 3 cores, this machine offers 2" in words and "hint:" in words


def test_resource_that_is_not_there_is_refused(tmp_path: Path) -> None:
    words, task = error_of(tmp_path, "gpu.spawn()", "ciel.Refused")
    assert "needs 1 gpu, this machine offers 0" in words and task.startswith("gpu@")


def test_name_is_what_people_see(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, JOB % "named.spawn().result()")
    assert ended.status == 1 and "polish@" in ended.talk
    told = jobs.command(tmp_path, "why", "polish")
    assert told.status == 0, told.talk
    assert told.lines[0].startswith("polish@") and "ValueError: dull" in told.lines[0]
    assert "job.py" in told.printed.decode()


def test_equal_calls_of_a_pure_task_share_one_result(tmp_path: Path) -> None:
    body = "return ciel.gather([pure.spawn('pure', n % 2) for n in range(6)])"
    assert value_of(tmp_path, body) == [0, 1] * 3
    assert (tmp_path / "pure").read_text(encoding="utf-8") == "xx"
    body = "return ciel.gather([impure.spawn('impure', n % 2) for n in range(6)])"
    assert value_of(tmp_path, body) == [0, 1] * 3
    assert (tmp_path / "impure").read_text(encoding="utf-8") == "xxxxxx"


def test_lazy_task_runs_only_if_its_result_is_asked_for(tmp_path: Path) -> None:
    body = "unused, used = lazy.spawn('unused'), lazy.spawn('used'); return used.result()"
    assert value_of(tmp_path, body) == 1
    assert not (tmp_path / "unused").exists()
    body = "return impure.spawn('eager', lazy.spawn('given').later).result()"
    assert value_of(tmp_path, body) == 1


def test_outputs_have_a_future_each(tmp_path: Path) -> None:
    body = "a, b, c = three.spawn(2); return [b.result(), a.result(), c.result()]"
    assert value_of(tmp_path, body) == [[2, 2], 2, "2"]
