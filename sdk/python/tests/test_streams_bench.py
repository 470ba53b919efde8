"""The measurement of streams, `make streams`: it runs, and gives no figure for a wrong answer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ciel._engine import find_command

BENCH = Path(__file__).resolve().parents[3] / "bench" / "streams"

BYTES = 16 << 20


@pytest.fixture(name="ends")
def built(tmp_path: Path) -> Path:
    """The program of the ends of streams."""
    pytest.importorskip("numpy")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    program = tmp_path / "ends"
    subprocess.run(["cc", "-O2", str(BENCH / "ends.c"), "-o", str(program)], check=True)
    return program


def measured(folder: Path, ends: Path) -> subprocess.CompletedProcess[str]:
    """One round with few bytes."""
    words = [f"--bytes={BYTES}", "--rounds=1", f"--json={folder / 'figures.json'}"]
    words += [find_command(), str(ends)]
    command = [sys.executable, str(BENCH / "compare.py"), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_each_mode_is_measured_beside_its_limit(tmp_path: Path, ends: Path) -> None:
    done = measured(tmp_path, ends)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    for names in (figures["seconds"], figures["microseconds"]):
        for name in names:
            assert any(line.startswith(f"| {name} |") for line in lines), (name, done.stdout)
    indirect = {f"indirect_{kind}, commands" for kind in ("file", "pipe", "tcp")}
    assert indirect <= {*figures["seconds"]}
    assert all(row[0] > 0 for row in figures["seconds"].values())


def test_wrong_answer_has_no_figure(tmp_path: Path, ends: Path) -> None:
    """The reader is a program that loses the last piece."""
    less = tmp_path / "less"
    less.write_text(f'#!/bin/sh\nif test "$1" = drain; then head -c 65536 | {ends} drain; '
                    f'else exec {ends} "$@"; fi\n')
    less.chmod(0o755)
    done = measured(tmp_path, less)
    assert done.returncode != 0 and "in place of" in done.stderr, done.stderr
