"""`ciel lint FILE...`: finds calls in the code of tasks whose results may differ in a rerun.

Takes Python files, or folders of them; `--json` prints one object for each finding. Exits with 1 if
there is one, with 2 if a file cannot be read. Read next: `_lint.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from ciel._lint import Finding, Source

CLEAN, FOUND, UNREADABLE = 0, 1, 2


def lint(text: str, file: str) -> list[Finding]:
    """The findings in a text, by line; `file` is its name in them. Raises SyntaxError."""
    return Source(text, file).findings()


def main(words: Sequence[str] | None = None) -> int:
    """Checks the files; returns the exit status."""
    parser = argparse.ArgumentParser(prog="ciel lint", description=_first_line(__doc__))
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, or a folder of files")
    parser.add_argument("--json", action="store_true", help="one JSON object for each finding")
    given = parser.parse_args(words)
    status = CLEAN
    for path in _files(given.files):
        try:
            with tokenize.open(path) as file:
                found = lint(file.read(), str(path))
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            print(f"{path}: cannot be read: {error}", file=sys.stderr)
            status = UNREADABLE
            continue
        for finding in found:
            print(json.dumps(asdict(finding)) if given.json else finding)
            status = max(status, FOUND)
    return status


def _files(names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0].partition(": ")[2]


if __name__ == "__main__":
    sys.exit(main())
