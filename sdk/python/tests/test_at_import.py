"""What modules do to others at their import counts for the tasks that it may concern.

Each task tells on standard error that it ran, which no result depends on.
"""

from __future__ import annotations

import ast
import importlib
import linecache
from pathlib import Path

import pytest

from ciel._reached import reached
from ciel._sources import Source, parsed
from test_kept import edit, run

JOB = '''
import decimal
import os
import sys

import ciel

import settings
from package import inner

decimal.getcontext().prec = 5
os.environ["MODE"] = "plain"
TABLE = {}
TABLE["own"] = 1
print("imported", file=sys.stderr)


@ciel.task
def third(n: int) -> str:
    print("ran third", file=sys.stderr)
    return str(decimal.Decimal(1) / n)


@ciel.task
def other(n: int) -> int:
    print("ran other", file=sys.stderr)
    return inner.plus(n)


def main() -> list[object]:
    return [third.spawn(3).result(), other.spawn(3).result()]


if __name__ == "__main__":
    decimal.getcontext().prec = 2
'''

SETTINGS = """
import decimal

import deeper

EXPONENT = 999


def configure() -> None:
    decimal.getcontext().Emax = EXPONENT


def unused() -> None:
    decimal.getcontext().Emax = 7


configure()
"""

INNER = """
import json


def plus(n: int) -> int:
    return n + 1


if True:
    json.encoder.FLOAT_REPR = None
"""

DEEPER = "from random import seed\n\nseed(1)\n"

BOTH = ["other", "third"]


def project(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.py").write_text(INNER)
    (folder / "settings.py").write_text(SETTINGS)
    (folder / "deeper.py").write_text(DEEPER)
    (folder / "job.py").write_text(JOB)


def test_what_an_import_does_to_python_and_packages_counts_and_is_named(tmp_path: Path) -> None:
    project(tmp_path)
    assert run(tmp_path)[:2] == (BOTH, '["0.33333",4]\n')
    for file, before, after, reason in [
        ("job.py", "prec = 5", "prec = 3", "code changed: job.py:11"),
        ("job.py", '"MODE"] = "plain"', '"MODE"] = "full"', "code changed: job.py:11"),
        ("settings.py", "Emax = EXPONENT", "Emax = EXPONENT - 1", "code changed: settings.py"),
        ("settings.py", "EXPONENT = 999", "EXPONENT = 998", "code changed: settings.py"),
        ("deeper.py", "seed(1)", "seed(2)", "code changed: deeper.py:3"),
        ("package/inner.py", "REPR = None", "REPR = 1", "code changed: package/inner.py"),
    ]:
        edit(tmp_path / file, before, after)
        ran, printed, told = run(tmp_path, "--kept")
        assert ran == BOTH, (after, told)
        assert reason in told.replace(f"{tmp_path}/", ""), (after, told)
        assert printed == run(tmp_path, "--new")[1], after


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("job.py", "decimal.getcontext().prec = 5", "# Five.\n\ndecimal.getcontext().prec = 5"),
        ("job.py", 'print("imported"', 'print("is imported"'),
        ("job.py", 'TABLE["own"] = 1', 'TABLE["own"] = 2'),
        ("job.py", "    decimal.getcontext().prec = 2", "    decimal.getcontext().prec = 9"),
        ("settings.py", "Emax = 7", "Emax = 8"),
        ("settings.py", "configure()\n", "\nconfigure()\n"),
    ],
)
def test_what_does_nothing_to_others_does_not_count(
    tmp_path: Path, file: str, before: str, after: str
) -> None:
    project(tmp_path)
    run(tmp_path)
    path = tmp_path / file
    text = path.read_text()
    assert before in text
    head, _, tail = text.rpartition(before)
    path.write_text(head + after + tail)
    assert run(tmp_path, "--kept")[0] == []


def test_task_that_reads_by_linecache_runs_in_each_run(tmp_path: Path) -> None:
    """The second task of a worker opens no file, so it was not rerun after an edit of that."""
    job = """
import linecache
import sys

import ciel


@ciel.task
def line(n):
    print("ran line", n, file=sys.stderr)
    return linecache.getline("data.txt", n)


def main():
    return [line.spawn(n).result() for n in (1, 2)]
"""
    (tmp_path / "job.py").write_text(job)
    for second in ("two", "three"):
        (tmp_path / "data.txt").write_text(f"one\n{second}\n")
        ran, printed, _ = run(tmp_path, "--kept", "-j1")
        assert ran == ["line 1", "line 2"]
        assert printed == f'["one\\n","{second}\\n"]\n'


def test_module_is_parsed_once_however_many_import_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each module was parsed once for each that leads to it: thirty of them took two seconds."""
    names = [f"parsed_{n}" for n in range(6)]
    for n, name in enumerate(names):
        body = [f"import {other}" for other in names[n + 1 :]]
        calls = "".join(f" + {other}.count()" for other in names[n + 1 :])
        body += ["import random", "random.seed(1)", f"def count(): return 1{calls}"]
        (tmp_path / f"{name}.py").write_text("\n".join(body) + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    parse, parsed = ast.parse, list[bytes]()

    def noted(source: bytes) -> ast.Module:
        parsed.append(source)
        return parse(source)

    count = importlib.import_module(names[0]).count
    monkeypatch.setattr(ast, "parse", noted)
    found = {piece.name for piece in reached(count)}
    assert {f"import of {name}" for name in names} <= found
    assert len(parsed) == len(names)


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n",
        b"x = 1",
        b"x = 1\r\ny = 2\r\n",
        b"# coding: latin-1\nx = '\xe9'\n",
        b"\xef\xbb\xbfx = 1\n",
    ],
    ids=["usual", "no last end of line", "CRLF", "latin-1", "mark"],
)
def test_file_is_parsed_once_for_the_lint_and_for_what_its_import_does(
    data: bytes, tmp_path: Path
) -> None:
    """Each process parsed a file up to three times, for a millisecond and a half each."""
    path = tmp_path / "one.py"
    path.write_bytes(data)
    text = "".join(linecache.getlines(str(path)))
    assert Source(str(path)).tree() is parsed(text)
    assert ast.dump(parsed(text)) == ast.dump(ast.parse(data))
