"""`ciel.skywriting`: scripts that Python calls, and that call Python again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ciel
import pytest
from ciel._engine import find_command
from conditions import DEADLINE_S

COLLATZ = """
n = int(argv(0));
print("script " + str(n));
if (n == 1) { return [1]; }
rest = spawn_exec("python", {"function": "job.py:follow", "args": [n]}, 1)[0];
return [n] + *rest;
"""

JOB = """
import ciel

@ciel.task
def follow(n):
    print("python", n)
    after = n // 2 if n % 2 == 0 else 3 * n + 1
    return ciel.skywriting("collatz.sw", after).result()

@ciel.task
def fail(what):
    raise KeyError(what)

def main(file="collatz.sw", *args):
    return ciel.skywriting(file, *args).result()
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ciel.Session]:
    """One session for all tests that need no folder of their own."""
    with ciel.Session(jobs=2, state=tmp_path_factory.mktemp("state")) as made:
        yield made


def written(folder: Path, text: str) -> Path:
    """A script with that text."""
    path = folder / "script.sw"
    path.write_text(text)
    return path


def run_job(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the job of this file in `folder`."""
    (folder / "job.py").write_text(JOB)
    (folder / "collatz.sw").write_text(COLLATZ)
    command = [find_command(), "run", "-q", f"--python={sys.executable}", *words]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=DEADLINE_S)


@pytest.mark.parametrize("mode", ["-j1", "-j2", "--serial"])
def test_python_and_scripts_call_each_other_in_serial_order(tmp_path: Path, mode: str) -> None:
    ended = run_job(tmp_path, mode, "job.py", "collatz.sw", "3")
    path = [3, 10, 5, 16, 8, 4, 2, 1]
    printed = "".join(f"script {n}\npython {n}\n" for n in path[:-1]) + "script 1\n"
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == printed + str(path).replace(" ", "") + "\n"


@pytest.mark.parametrize(
    ("written_out", "value"),
    [
        ("null", None),
        ("[true, false]", [True, False]),
        ("12345678901234567890123", 12345678901234567890123),
        ("-2.5", -2.5),
        ('"grüße\\n"', "grüße\n"),
        ('{"a": [1, {"b": null}], "$key": 1}', {"a": [1, {"b": None}], "$key": 1}),
        ('{"$ref": 0}', {"$ref": 0}),
        ("[]", []),
    ],
)
def test_value_of_a_script_arrives_as_python_has_it(
    session: ciel.Session, tmp_path: Path, written_out: str, value: Any
) -> None:
    found = session.skywriting(written(tmp_path, f"return {written_out};")).result()
    assert found == value and type(found) is type(value)


def test_arguments_arrive_as_text(session: ciel.Session, tmp_path: Path) -> None:
    script = written(tmp_path, "return argv();")
    found = session.skywriting(script, "a b", 3, 2.5, True, Path("x/y")).result()
    assert found == ["a b", "3", "2.5", "true", "x/y"]


def test_spawned_values_inside_are_waited_for(session: ciel.Session, tmp_path: Path) -> None:
    text = 'f = lambda n: [n, n + 1]; return [*spawn(f, [1]), {"b": *spawn(f, [5])}];'
    assert session.skywriting(written(tmp_path, text)).result() == [[1, 2], {"b": [5, 6]}]


def test_references_inside_are_futures(session: ciel.Session, tmp_path: Path) -> None:
    text = 'return {"made": spawn_exec("shell", {"command": "printf abc"}, 1)[0]};'
    script = str(written(tmp_path, text))

    def read() -> bytes:
        made = ciel.skywriting(script).result()["made"]
        assert isinstance(made, ciel.Future)
        found: bytes = made.result()
        return found

    assert session.submit(read).result() == b"abc"
    assert session.skywriting(script).result()["made"].result() == b"abc"


def test_bytes_as_a_whole_are_bytes(session: ciel.Session, tmp_path: Path) -> None:
    text = 'return *spawn_exec("shell", {"command": "printf \'a\\\\0b\'"}, 1)[0];'
    assert session.skywriting(written(tmp_path, text)).result() == b"a\0b"


def test_failure_of_a_script_is_a_task_error(session: ciel.Session, tmp_path: Path) -> None:
    script = written(tmp_path, "x = 1;\nreturn x / 0;\n")
    with pytest.raises(ciel.TaskError, match="zero") as caught:
        session.skywriting(script).result()
    assert "return x / 0;" in str(caught.value) and f"{script}:2:8" in str(caught.value)


def test_mistakes_are_told_with_their_lines(session: ciel.Session, tmp_path: Path) -> None:
    with pytest.raises(ciel.Refused, match="unknown name `nothing`") as caught:
        session.skywriting(written(tmp_path, "\nreturn nothing;")).result()
    assert "script.sw:2:8" in str(caught.value) and "return nothing;" in str(caught.value)


def test_file_that_was_mended_can_be_called(session: ciel.Session, tmp_path: Path) -> None:
    """A notebook keeps its session: the file was refused before, and was not read again."""
    with pytest.raises(ciel.Refused, match="does not exist"):
        session.skywriting(tmp_path / "script.sw").result()
    with pytest.raises(ciel.Refused, match="unknown"):
        session.skywriting(written(tmp_path, "return nothing;")).result()
    assert session.skywriting(written(tmp_path, "return 7;")).result() == 7


def test_exception_of_python_is_caught_by_a_script(tmp_path: Path) -> None:
    (tmp_path / "catches.sw").write_text(
        'caught = null;\ntry { caught = len(*spawn_exec("python",'
        ' {"function": "job.py:fail", "args": ["tea"]}, 1)[0]); }'
        ' catch (e) { caught = [e["kind"], e["message"]]; }\nreturn caught;'
    )
    ended = run_job(tmp_path, "job.py", "catches.sw")
    assert ended.returncode == 0, ended.stderr
    assert "KeyError" in ended.stdout and "tea" in ended.stdout


def test_arguments_that_are_no_words_are_refused_at_once(session: ciel.Session) -> None:
    with pytest.raises(TypeError, match="cannot be given a future"):
        session.skywriting("x.sw", session.put(1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not list"):
        session.skywriting("x.sw", [1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name of a script must be text"):
        session.skywriting(b"x.sw")  # type: ignore[arg-type]


def test_future_in_the_plain_arguments_is_refused(session: ciel.Session, tmp_path: Path) -> None:
    script = str(written(tmp_path, "return 1;"))

    def call() -> Any:
        arguments = {"file": script, "args": [ciel.put(1)]}
        return ciel.spawn_exec("skywriting", arguments)[0].result()

    with pytest.raises(ciel.Refused, match="cannot take a reference"):
        session.submit(call).result()


def test_scope_waits_for_scripts(session: ciel.Session, tmp_path: Path) -> None:
    script = str(written(tmp_path, "return *spawn(lambda n: n, [4]);"))

    def scoped() -> bool:
        with ciel.scope():
            made = ciel.skywriting(script)
        return made.done()

    assert session.submit(scoped).result() is True
