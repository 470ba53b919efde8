"""Types: the typed program passes the checker, wrong calls do not, and it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import typed_program
from ciel import testing

SDK = Path(__file__).parent.parent

WRONG = """
import ciel
from typed_program import Account, fib, join

fib.spawn("three")  # arg-type
fib.spawn(fib.spawn(3))  # arg-type
join.spawn(["a"], seperator="-")  # call-arg
fib.spawn(3).result().upper()  # attr-defined
Account(1).after.spawn()  # call-arg
ciel.gather(fib)  # call-overload
ciel.task(core=2)  # call-overload
fib.options(memmory="1 GiB")  # call-arg
ciel.wait([fib.spawn(3)], count="one")  # arg-type
ciel.once(lambda path: path)  # arg-type
"""


def test_checker_passes_the_typed_program_and_finds_the_wrong_calls(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    said = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--ignore-missing-imports",
         f"--cache-dir={tmp_path}", "--no-error-summary",
         str(SDK / "tests" / "typed_program.py"), str(program)],
        env={"MYPYPATH": f"{SDK}:{SDK / 'tests'}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert not said.stderr
    found = said.stdout.splitlines()
    assert not [line for line in found if ": error" in line and "wrong.py" not in line]
    for number, line in enumerate(WRONG.splitlines(), 1):
        code = line.partition("# ")[2]
        told = [text for text in found if f"wrong.py:{number}: error" in text]
        assert [text for text in told if f"[{code}]" in text] if code else not told, (line, found)


def test_typed_program_runs() -> None:
    assert testing.run(typed_program.main) == 5
