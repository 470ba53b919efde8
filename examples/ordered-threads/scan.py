"""Searches compressed logs on threads; the report stands in the order of the files.

    python3 examples/ordered-threads/scan.py FOLDER WORD REPORT [--threads N] [--by WAY]

The way "strands" writes each line that is found when it is found. The other two are for comparison:
"map" returns the lines of each file, "sort" also lets the files end in any order and sorts them.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import ciel
from ciel import ordered


def matches(path: Path, word: bytes) -> Iterator[bytes]:
    """Lines of a compressed log that contain a word, each behind the name of the log."""
    with gzip.open(path) as log:
        for number, line in enumerate(log, 1):
            if word in line:
                yield b"%s:%d: %s\n" % (path.name.encode(), number, line.rstrip(b"\n"))


def by_strands(paths: list[Path], word: bytes, report: Path, threads: int) -> None:
    """Each file is a strand, which writes what it finds; one thread is the serial program."""

    def scan(path: Path) -> None:
        for line in matches(path, word):
            out.write(line)

    with ciel.open(report, "serial-append", encoding=None) as out:
        if threads == 1:
            for path in paths:
                scan(path)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(ordered.executor(pool).map(scan, paths))


def found(word: bytes, path: Path) -> list[bytes]:
    """All lines of one file."""
    return list(matches(path, word))


def by_map(paths: list[Path], word: bytes, report: Path, threads: int) -> None:
    """The main thread writes the lines of each file when those before are written."""
    with ThreadPoolExecutor(threads) as pool, open(report, "wb") as out:
        for lines in pool.map(partial(found, word), paths):
            out.writelines(lines)


def by_sort(paths: list[Path], word: bytes, report: Path, threads: int) -> None:
    """The main thread keeps the lines of all files, and writes them at the end."""
    with ThreadPoolExecutor(threads) as pool, open(report, "wb") as out:
        places = {pool.submit(found, word, path): place for place, path in enumerate(paths)}
        ended = [(places[one], one.result()) for one in as_completed(places)]
        for _, lines in sorted(ended):
            out.writelines(lines)


WAYS = {"strands": by_strands, "map": by_map, "sort": by_sort}


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Searches compressed logs on threads.")
    parser.add_argument("folder", type=Path, help="where the logs are, as *.gz")
    parser.add_argument("word")
    parser.add_argument("report", type=Path, help="the file to write")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--by", choices=WAYS, default="strands")
    options = parser.parse_args()
    paths = sorted(options.folder.glob("*.gz"))
    WAYS[options.by](paths, options.word.encode(), options.report, options.threads)


if __name__ == "__main__":
    main()
