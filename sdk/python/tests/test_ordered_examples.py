"""What shows serial append: the example `ordered-threads`, and the drawing of its page.

The report is the same on any number of threads, by every way.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "ordered-threads"


def logs(folder: Path) -> str:
    """Makes logs, of which the first is the longest; gives the report on their errors."""
    expected = []
    for file in range(12):
        lines = [f"{'error' if n % 3 else 'notice'} {file} {n}" for n in range(3000 // (file + 1))]
        (folder / f"{file:02}.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
        found = [(n, line) for n, line in enumerate(lines, 1) if "error" in line]
        expected += [f"{file:02}.gz:{n}: {line}\n" for n, line in found]
    return "".join(expected)


@pytest.mark.parametrize(
    ("way", "threads"), [("strands", 1), ("strands", 2), ("strands", 8), ("map", 2), ("sort", 2)]
)
def test_report_of_the_scan_is_the_serial_one(tmp_path: Path, way: str, threads: int) -> None:
    expected, report = logs(tmp_path), tmp_path / "report"
    options = ["--by", way, "--threads", str(threads)]
    program: list[str | Path] = [sys.executable, EXAMPLE / "scan.py"]
    command = [*program, tmp_path, "error", report, *options]
    subprocess.run(command, check=True)
    assert report.read_text() == expected


def test_ways_are_measured_beside_each_other() -> None:
    command: list[str | Path] = [sys.executable, EXAMPLE / "measure.py", "2", "1"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert [line.split()[0] for line in ended.stdout.splitlines()] == [
        "serial",
        "strands",
        "map",
        "sort",
    ]


def test_drawing_of_the_page_is_that_of_its_script() -> None:
    images = ROOT / "docs" / "images"
    command: list[str | Path] = [sys.executable, images / "serial-append.py"]
    drawn = subprocess.run(command, check=True, capture_output=True).stdout
    assert drawn == (images / "serial-append.svg").read_bytes()
