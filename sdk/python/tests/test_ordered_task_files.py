"""`ciel.open`: file objects of tasks, in the serial program and with a real engine."""

from __future__ import annotations

import asyncio
import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ciel
import jobs
from ciel import testing

LINES = 20


@ciel.task
def branch(log: io.TextIOBase, depth: int, place: int) -> int:
    """Appends before, between and behind its children."""
    log.write(f"{place} begins\n")
    children = [branch.spawn(log, depth - 1, 2 * place + side) for side in (0, 1) if depth]
    print(place, "has spawned", file=log)
    total = sum(child.result() for child in children)
    log.writelines([f"{place} ends", "\n"])
    return total + 1


def written(depth: int, place: int = 1) -> str:
    """What `branch` appends in the serial program."""
    children = [written(depth - 1, 2 * place + side) for side in (0, 1) if depth]
    return f"{place} begins\n{''.join(children)}{place} has spawned\n{place} ends\n"


def test_serial_program_appends_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def main() -> int:
        with ciel.open(path, "serial-append") as log:
            log.write("root\n")
            return branch.spawn(log, 3, 1).result()

    for _ in range(2):  # the second run compares
        assert testing.run(main) == 15
        assert path.read_text() == "root\n" + written(3)
    path.write_text("other")
    with pytest.raises(FileExistsError, match="does not hold the beginning"):
        testing.run(main)
    assert path.read_text() == "other"


def test_file_object_takes_text_and_bytes_and_refuses_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def main() -> None:
        log: Any = ciel.open(path)
        assert (log.name, log.mode, log.writable()) == (str(path), "serial-append", True)
        assert log.write("grün") == 4
        assert log.write(b" and bytes") == 10
        assert log.write("") == 0
        for act in (log.read, log.readline, log.tell, lambda: log.seek(0)):
            with pytest.raises(io.UnsupportedOperation, match="serial-append"):
                act()
        with pytest.raises(TypeError):
            log.write(7)
        log.flush()
        log.close()
        log.close()
        with pytest.raises(ValueError, match="is closed"):
            log.write("more")
        with pytest.raises(IsADirectoryError):
            ciel.open(tmp_path)
        with pytest.raises(FileNotFoundError):
            ciel.open(tmp_path / "no" / "log")
        with pytest.raises(ValueError, match="mode"):
            ciel.open(path, "w")  # type: ignore[call-overload]

    testing.run(main)
    assert path.read_bytes() == "grün and bytes".encode()


PROGRAM = """
import threading, time, ciel

@ciel.task
def leaf(log, n):
    log.write(f"leaf {n}\\n")
    return n

def main():
    log = ciel.open("log", "serial-append")
    thread = threading.Thread(target=lambda: log.write("from a thread\\n"))
    thread.start()
    thread.join()
    leaves = [leaf.spawn(log, n) for n in range(5)]
    command = ciel.sh("echo from a command >&{log}", log=log)
    log.write(b"behind the command\\n")
    return sum(leaf.result() for leaf in leaves) + len(command.result())
"""


@pytest.mark.parametrize("options", [("--serial",), ("-j1",), ("-j4",)])
def test_tasks_threads_and_commands_append_at_their_places(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    ended = jobs.run(tmp_path, PROGRAM, options=options)
    assert (ended.status, ended.printed) == (0, b"10\n"), ended.talk
    leaves = "".join(f"leaf {n}\n" for n in range(5))
    expected = f"from a thread\n{leaves}from a command\nbehind the command\n"
    assert (tmp_path / "log").read_text() == expected


SLOW = f"""
import time, ciel

def main():
    log = ciel.open("log")
    for line in range({LINES}):
        time.sleep(0.02)
        log.write(f"{{line}} {{time.time()}}\\n")
"""


def test_follow_gives_a_prefix_at_every_moment_until_the_run_ends(tmp_path: Path) -> None:
    process = jobs.start(jobs.write(tmp_path, SLOW))
    path = tmp_path / "log"
    deadline = time.monotonic() + jobs.DEADLINE_S
    while not path.exists():
        assert time.monotonic() < deadline and process.poll() is None

    async def followed() -> bytes:
        seen, delays = b"", []
        async for part in ciel.follow(path):
            delays.append(time.time() - float(part.split()[-1]))
            seen += part
            assert path.read_bytes().startswith(seen)
        print(f"followed {1000 * sorted(delays)[len(delays) // 2]:.2f} ms behind")
        return seen

    seen = asyncio.run(followed())
    ended = jobs.end_of(process)
    assert ended.status == 0, ended.talk
    assert seen == path.read_bytes()
    assert len(seen.splitlines()) == LINES


def test_follow_of_a_missing_file_is_an_error(tmp_path: Path) -> None:
    async def followed() -> None:
        async for _ in ciel.follow(tmp_path / "missing"):
            pass

    with pytest.raises(ciel.CielError, match="cannot follow"):
        asyncio.run(followed())


STRANDS = int(os.environ.get("CIEL_STRANDS", "2000"))

PEAK_KIB_MAX = (100 << 10) + STRANDS
"""Most memory of a run with so many tasks of which few live at once, in KiB: what the root has
spawned stays on record, for its replay."""

LIVE_KIB_MAX = 2
"""What a task may take that has not ended, in KiB."""

MANY = """
import sys, ciel

@ciel.task
def leaf(n):
    with ciel.open("log", "serial-append") as log:
        log.write("" if n % 3 == 0 else f"{n}\\n")
    return n

def main(strands, at_once):
    total = 0
    for first in range(0, int(strands), int(at_once)):
        some = range(first, min(first + int(at_once), int(strands)))
        total += sum(ciel.gather([leaf.spawn(n) for n in some]))
    return total
"""


@pytest.mark.parametrize("at_once", [1000, STRANDS])
def test_file_of_many_tasks_has_the_line_of_each_in_order(tmp_path: Path, at_once: int) -> None:
    """Every third one writes nothing. `CIEL_STRANDS` is how many there are."""
    began = time.monotonic()
    job = jobs.write(tmp_path, MANY)
    ended, peak_kib = jobs.run_measured(job, str(STRANDS), str(at_once), options=("-j4",))
    assert ended.status == 0, ended.talk
    took_s = time.monotonic() - began
    print(f"{STRANDS} tasks, {at_once} at once: {took_s:.1f} s, peak {peak_kib >> 10} MiB")
    assert int(ended.printed) == STRANDS * (STRANDS - 1) // 2
    with (tmp_path / "log").open() as log:
        assert all(line == f"{n}\n" for line, n in zip(log, numbers(), strict=True))
    assert peak_kib < PEAK_KIB_MAX + LIVE_KIB_MAX * at_once


def numbers() -> Iterator[int]:
    """Those that are written."""
    return (n for n in range(STRANDS) if n % 3)
