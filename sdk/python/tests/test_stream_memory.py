"""Memory that both ends of direct streams share: it is part of the budget, shown, and given back.

Each producer waits for its reader, so that the stream is direct however slow the machine is. It
knows nothing of where a value lies.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jobs
import pytest
from conditions import until

MIB = 1 << 20

BUDGET = 64 * MIB

SLACK = 2 * MIB
"""Words beside the values, which are not granted, of all streams of a job here."""

PARTS = """
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import ciel

MIB = 1 << 20
once = ciel.stream(single_consumer=True)


def dies(name: str, who: str) -> None:
    if who in name and not Path(name + ".died").exists():
        Path(name + ".died").touch()
        os.kill(os.getpid(), signal.SIGKILL)


@ciel.task(stream=once, keep=False, retries=2)
def values(name: str, count: int, length: int) -> Iterator[bytes]:
    # The retried one has a reader that is to begin again, too.
    Path(name).read_text()
    for n in range(count):
        if n == 10:
            dies(name, "producer")
        yield bytes([n]) * length


@ciel.task(keep=False, retries=2)
def total(given: Iterable[bytes], name: str) -> int:
    Path(name).write_text("begun")
    found = 0
    for value in given:
        found += value[0] + len(value)
        if value[0] == 10:
            dies(name, "consumer")
    return found


@ciel.task(keep=False, retries=1)
def long_value(length: int) -> bytes:
    return bytes(length)


@ciel.task(keep=False)
def first(value: bytes) -> int:
    return value[0]


def started(name: str, count: int, length: int) -> ciel.Future[int]:
    os.mkfifo(name)
    made = values.options(name="values_" + name).spawn(name, count, length)
    return total.options(name="total_" + name).spawn(made.stream(), name)


def wait() -> None:
    Path("waits").touch()
    Path("gate").read_text()
"""

OPTIONS = ("--json", f"--store-memory={BUDGET}")


def expected(count: int, length: int) -> int:
    """What a reader has computed of so many values."""
    return sum(range(count)) + count * length


def store_of(ended: jobs.Ended) -> dict[str, Any]:
    """The last words of a run about its store."""
    found = [json.loads(line) for line in ended.talk.splitlines()][-1]["store"]
    assert isinstance(found, dict)
    return found


def shown(folder: Path) -> dict[str, Any]:
    """What `ciel ps --store` says of a live run."""
    (line, *_) = jobs.command(folder, "ps", "--store", "--json").lines
    found = json.loads(line)["store"]
    assert isinstance(found, dict)
    return found


def pages_by_file(process: int) -> dict[int, int]:
    """Bytes of pages of each memory file of streams that a process has, by its inode."""
    found = {}
    for one in Path(f"/proc/{process}/fd").iterdir():
        try:
            if "ciel-values" in os.readlink(one):
                stat = one.stat()
                found[stat.st_ino] = stat.st_blocks * 512
        except OSError:
            continue  # it was closed just now
    return found


def pages_of(process: int) -> int:
    """Bytes of pages that were there between two looks, at least: files come and go meanwhile."""
    earlier, later = pages_by_file(process), pages_by_file(process)
    return sum(min(pages, later.get(file, 0)) for file, pages in earlier.items())


def test_streams_of_200_mb_share_what_the_budget_has(tmp_path: Path) -> None:
    """Each took up to 66 MiB beside the budget, and nothing showed it."""
    text = PARTS + """
def main():
    return ciel.gather([started(name, 50, 4 * MIB) for name in "abcd"])
"""
    live = jobs.start(jobs.write(tmp_path, text), options=("-j8", *OPTIONS))
    most = 0
    while live.poll() is None:
        try:
            most = max(most, pages_of(live.pid))
        except OSError:
            break  # it has ended
    ended = jobs.end_of(live)
    assert ended.value == [expected(50, 4 * MIB)] * 4
    assert most <= BUDGET + SLACK
    store = store_of(ended)
    assert 0 < store["streams_peak_bytes"] <= store["memory_peak_bytes"] <= BUDGET + SLACK


@pytest.mark.parametrize("slots", [1, 51])
def test_pipeline_of_50_direct_streams_runs_within_64_mib(tmp_path: Path, slots: int) -> None:
    text = PARTS + """
@ciel.task(stream=once, keep=False)
def passed(given: Iterable[bytes]) -> Iterator[bytes]:
    yield from given

def main():
    Path("a").touch()
    made = values.spawn("a", 20, 200_000)
    for _ in range(49):
        made = passed.spawn(made.stream())
    return total.spawn(made.stream(), "b").result()
"""
    ended = jobs.run(tmp_path, text, options=(f"-j{slots}", *OPTIONS))
    assert ended.value == expected(20, 200_000)
    assert store_of(ended)["memory_peak_bytes"] <= BUDGET + SLACK


@pytest.mark.parametrize("who", ["", "producer", "consumer"])
def test_memory_of_ended_and_killed_ends_is_given_back(tmp_path: Path, who: str) -> None:
    text = PARTS + """
def main(who):
    found = started(f"pipe_{who}", 40, MIB).result()
    wait()
    return found
"""
    os.mkfifo(tmp_path / "gate")
    live = jobs.start(jobs.write(tmp_path, text), who, options=("-j2", *OPTIONS))
    until(lambda: (tmp_path / "waits").exists() or live.poll() is not None)
    until(lambda: shown(tmp_path)["streams_bytes"] == 0)
    assert 0 < shown(tmp_path)["streams_peak_bytes"] <= BUDGET
    assert pages_of(live.pid) == 0
    (tmp_path / "gate").write_text("go")
    assert jobs.end_of(live).value == expected(40, MIB)


def test_result_has_the_memory_that_workers_keep_for_the_next_stream(tmp_path: Path) -> None:
    """They kept 66 MiB for two seconds, whoever needed it; now that counts, and is reclaimed."""
    text = PARTS + """
def main():
    found = started("pipe", 20, 2 * MIB).result()
    return [found, first.spawn(long_value.spawn(60 * MIB)).result()]
"""
    ended = jobs.run(tmp_path, text, options=("-j2", *OPTIONS))
    assert ended.value == [expected(20, 2 * MIB), 0]
    store = store_of(ended)
    assert 60 * MIB <= store["memory_peak_bytes"] <= BUDGET + SLACK


def test_budget_of_nothing_leaves_the_pipe(tmp_path: Path) -> None:
    text = PARTS + """
def main():
    return started("pipe", 20, MIB).result()
"""
    ended = jobs.run(tmp_path, text, options=("-j2", "--json", "--store-memory=0"))
    assert ended.value == expected(20, MIB)
    assert store_of(ended)["streams_peak_bytes"] == 0


def test_memory_of_streams_is_named(tmp_path: Path) -> None:
    text = PARTS + """
def main():
    return started("pipe", 20, MIB).result()
"""
    ended = jobs.run(tmp_path, text, options=("-j2",))
    assert ended.value == expected(20, MIB)
    line = r"streams in shared memory: \d+\.\d MiB at the peak"
    listed = jobs.command(tmp_path, "ps", "--store").printed.decode()
    assert re.search(line, listed), listed
    told = jobs.command(tmp_path, "why", "values_pipe").printed.decode()
    words = r"its reader had \d+\.\d MiB of its stream in shared memory \(direct\)"
    assert re.search(words, told), told
