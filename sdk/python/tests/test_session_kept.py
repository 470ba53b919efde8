"""Kept results and checks in runs that Python programs start: the options of `ciel run`, there.

Each task tells on standard error that it ran, which no result depends on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ciel
from conditions import DEADLINE_S
from test_kept import edit

PARTS = """
import sys

import ciel


@ciel.task
def made(n):
    print("ran made", n, file=sys.stderr)
    print("making", n)
    return b"x" * n


@ciel.task
def length(text):
    print("ran length", len(text), file=sys.stderr)
    return len(text)
"""

PROGRAM = """
import json
import sys

import ciel

from parts import length, made


def main():
    return [length.spawn(made.spawn(n)).result() for n in (3, 5000)]


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    if options.pop("session", False):
        with ciel.Session(**options) as session:
            texts = [session.submit(made, n) for n in (3, 5000)]
            print([session.submit(length, text).result() for text in texts])
    else:
        print(ciel.run(main, **options))
"""

OUTPUT = "making 3\nmaking 5000\n[3, 5000]\n"
ALL = ["length 3", "length 5000", "made 3", "made 5000"]


def project(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "job.py").write_text(PROGRAM)
    (folder / "parts.py").write_text(PARTS)
    return folder


def run(folder: Path, options: str) -> tuple[list[str], str]:
    """What ran, and standard output."""
    ended = subprocess.run(
        [sys.executable, "job.py", options],
        cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    lines = ended.stderr.splitlines()
    return sorted(line.split("] ran ")[1] for line in lines if "] ran " in line), ended.stdout


@pytest.mark.parametrize("session", ["false", "true"])
def test_results_are_taken_by_later_runs_of_a_program_that_asks_for_it(
    tmp_path: Path, session: str
) -> None:
    project(tmp_path)
    kept = f'{{"session": {session}, "kept": true}}'
    assert run(tmp_path, kept) == (ALL, OUTPUT)
    assert run(tmp_path, kept) == ([], OUTPUT)
    assert run(tmp_path, f'{{"session": {session}}}') == (ALL, OUTPUT)
    for before, after, expected in [
        ("import sys", "# A comment.\nimport sys", []),
        ("return len(text)", "return int(len(text))", ["length 3", "length 5000"]),
    ]:
        edit(tmp_path / "parts.py", before, after)
        assert run(tmp_path, kept) == (expected, OUTPUT)


def test_function_of_the_program_itself_runs_again_after_any_edit_above_it(tmp_path: Path) -> None:
    """It is sent as it is, with its lines; those of imported modules are sent by their names."""
    program = PROGRAM.replace("from parts import length, made", PARTS)
    (tmp_path / "job.py").write_text(program)
    assert run(tmp_path, '{"kept": true}') == (ALL, OUTPUT)
    assert run(tmp_path, '{"kept": true}') == ([], OUTPUT)
    edit(tmp_path / "job.py", "import json", "# A comment.\nimport json")
    assert run(tmp_path, '{"kept": true}') == (ALL, OUTPUT)


def test_results_are_taken_from_a_shared_folder(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    for name, expected in (("first", ALL), ("second", [])):
        folder = project(tmp_path / name)
        assert run(folder, f'{{"kept_dir": "{shared}"}}') == (expected, OUTPUT)


def test_owner_who_does_not_exist_is_refused_with_the_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ciel.WorkerLost):
        ciel.run(sum, [1], state=tmp_path / "state", kept_dir=tmp_path, trust_owner=["no one"])
    assert "there is no user no one" in capfd.readouterr().err


COUNTING = """
import sys

import ciel


@ciel.task(pure=True)
def counted(n):
    return n + CHANGE


def main():
    return counted.spawn(1).result()


if __name__ == "__main__":
    try:
        print(ciel.run(main, check=True))
    except ciel.NonDeterministic as error:
        print("differs:", str(error).partition("\\n")[0])
"""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("1", "2\n"),
        ("__import__('os').getpid()", "differs: tasks that ran twice gave different results\n"),
    ],
)
def test_check_raises_if_a_pure_task_gives_two_results(
    tmp_path: Path, change: str, expected: str
) -> None:
    (tmp_path / "job.py").write_text(COUNTING.replace("CHANGE", change))
    ended = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert ended.stdout == expected, ended.stderr
    assert ("counted" in ended.stderr) == ("differs" in expected), ended.stderr


def test_files_that_commands_name_count_by_time_if_they_are_trusted_so(tmp_path: Path) -> None:
    program = """
import ciel

def main():
    return ciel.sh("echo ran wc >&2; wc -c < data").result().decode().strip()

if __name__ == "__main__":
    import sys
    print(ciel.run(main, kept=True, trust=sys.argv[1]))
"""
    (tmp_path / "job.py").write_text(program)
    data = tmp_path / "data"
    data.write_text("abc")
    assert run(tmp_path, "mtime") == (["wc"], "3\n")
    stamp = data.stat()
    data.write_text("xyz")
    os.utime(data, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert run(tmp_path, "mtime") == ([], "3\n")
    assert run(tmp_path, "content") == (["wc"], "3\n")
    os.utime(data, ns=(1, 1))
    assert run(tmp_path, "content") == ([], "3\n")


def test_space_of_kept_results_is_bounded(tmp_path: Path) -> None:
    project(tmp_path)
    assert run(tmp_path, '{"kept": true, "keep": 0}') == (ALL, OUTPUT)
    assert run(tmp_path, '{"kept": true, "keep": 0}') == (ALL, OUTPUT)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kept": 1}, TypeError, "kept is True or False, not 1"),
        ({"check": "yes"}, TypeError, "check is True or False, not 'yes'"),
        ({"kept": True, "serial": True}, ValueError, "leave kept and kept_dir out"),
        ({"kept": True, "check": True}, ValueError, "leave kept and kept_dir out"),
        ({"trust": "time"}, ValueError, "trust is 'content' or 'mtime', not 'time'"),
        ({"trust_owner": ["ada"]}, ValueError, "give kept_dir, too"),
        ({"trust_owner": "ada", "kept_dir": "."}, TypeError, "a list of names"),
        ({"keep": -1}, ValueError, "keep must be from 0"),
        ({"keep": "1G"}, TypeError, "keep is a whole number, not '1G'"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_starts(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ciel.run(sum, [1], **options)
    with pytest.raises(error, match=message):
        ciel.Session(**options)
