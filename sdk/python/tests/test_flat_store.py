"""Fifty times the budget of a store passes through it, and neither memory nor disk grows with that.

The usual run is a small one; `make soak` sets `CIEL_PASSED_BYTES` to 50 GB, so that the budget is
1 GB, and then an optimised build runs the job. A quarter of the bytes each: values of Python tasks,
files of commands, and streams from command to command that are stored, or stored nowhere. Who
reads a value or a file reads an earlier one, too: the serial program would need 23 of the 24 pieces
for which the disk has room, if it had all of them there.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import jobs

PASSED = int(os.environ.get("CIEL_PASSED_BYTES", str(240 << 20)))
"""Bytes that all tasks together make."""

BUDGET = PASSED // 50
"""Bytes that the disk may have of them."""

MEMORY = BUDGET // 6
"""Bytes of values that memory may have."""

PIECES = 1200
"""Tasks that make them."""

SIZE = PASSED // PIECES
"""Bytes of each, of which a budget is 24."""

HELD = 11
"""Earlier files that are needed at any time, and as many values."""

BASE_KIB_MAX = 64 << 10
"""Memory of the largest process that handles no large piece, at most."""

JOB = """
import hashlib

import ciel

@ciel.task(keep=False, retries=1)
def made(number, size):
    line = b"%d\\n" % number
    return (line * (size // len(line) + 1))[:size]

@ciel.task(keep=False, retries=1)
def digest(data, before):
    return hashlib.md5(data + before).hexdigest()

def main(pieces, size, held):
    pieces, size, held = int(pieces), int(size), int(held)
    found, files, values = [], [], [b""] * held
    ways = [None, ciel.stream(single_consumer=True), ciel.stream]
    for number in range(pieces):
        if number % 4 == 3:
            values.append(made.spawn(number, size))
            found.append(digest.spawn(values[-1], values.pop(0)))
            continue
        way = ways[number % 4]
        data = ciel.sh("yes {n} | head -c {size}", n=number, size=size, stdout=way, keep=False)
        read = [data]
        if way is None:
            files.append(data)
            if len(files) > held:
                read.append(files.pop(0))
        found.append(ciel.sh("md5sum | head -c 32", stdin=read, keep=False))
    return [one if isinstance(one, str) else one.decode() for one in ciel.gather(found)]
"""


def made(number: int) -> bytes:
    line = b"%d\n" % number
    return (line * (SIZE // len(line) + 1))[:SIZE]


def expected(number: int) -> str:
    found = hashlib.md5(made(number))
    before = number - 4 * HELD
    if number % 4 in (0, 3) and before >= 0:
        found.update(made(before))
    return found.hexdigest()


def test_bytes_of_fifty_budgets_pass_through_one(tmp_path: Path) -> None:
    """About two results for each core may come on top of the budget of the disk, the page says."""
    budgets = (f"--store-bytes={BUDGET}", f"--store-memory={MEMORY}")
    job = jobs.write(tmp_path, JOB)
    ended, peak_kib = jobs.run_measured(
        job, str(PIECES), str(SIZE), str(HELD), options=("-j2", "--json", *budgets)
    )
    assert ended.value == [expected(number) for number in range(PIECES)]
    store = [json.loads(line) for line in ended.talk.splitlines()][-1]["store"]
    print(f"{PASSED} bytes: peak of the store {store['peak_bytes']}, of a process {peak_kib} KiB")
    assert store["made_bytes"] >= PASSED // 4 * 3
    assert store["memory_peak_bytes"] <= MEMORY
    assert store["peak_bytes"] > HELD * SIZE
    assert store["peak_bytes"] <= BUDGET + MEMORY + 6 * SIZE
    assert peak_kib <= BASE_KIB_MAX + 4 * (SIZE >> 10)
