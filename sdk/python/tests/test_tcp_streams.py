"""Streams over connections of the run's data plane, which break.

A reader asks for a cut when it has read so many bytes; the test breaks the connection in the run's
process, and the reader continues. The producer ends after the last cut, so no end has come before.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import connections
import jobs
import pytest
from conditions import until

LINES = 393_216
WHOLE = b"".join(b"%015d\n" % n for n in range(LINES))

JOB = """
import hashlib
import json
import os
from collections.abc import Iterator

import ciel

LINES = 393_216
WAY = ciel.stream(mode="indirect_tcp")


@ciel.task(joined=True, stream=WAY)
def lines() -> Iterator[bytes]:
    for begin in range(0, LINES, 1000):
        yield b"".join(b"%015d\\n" % n for n in range(begin, min(begin + 1000, LINES)))
    open("rest").read()


@ciel.task
def digest(given: ciel.Reading[bytes], offsets: list[int]) -> str:
    found, at = hashlib.md5(), 0
    with given.open() as file:
        for offset in offsets:
            found.update(file.read(offset - at))
            at = offset
            open("asked", "w").write("x")
            open("done").read()
        open("rest", "w").close()
        found.update(file.read())
    return found.hexdigest()


def by_commands(number: int, offsets: list[int]) -> str:
    made = ciel.sh(f"seq -f %015.0f 0 {LINES - 1}; read x < rest", stdout=WAY)
    parts, at = [""], 0
    for offset in offsets:
        parts.append(f"dd bs={offset - at} count=1 iflag=fullblock status=none;")
        parts.append("echo x > asked; read x < done;")
        at = offset
    script = "{{ " + "".join(parts) + "echo x > rest; cat; }} | md5sum | cut -c 1-32"
    return ciel.sh(script, stdin=made, name=f"reads{number}").result().decode().strip()


def by_tasks(number: int, offsets: list[int]) -> str:
    return digest.options(name=f"reads{number}").spawn(lines.spawn().stream(), offsets).result()


def main(kind: str, offsets: str, rounds: str) -> list[str]:
    for name in ("asked", "done", "rest"):
        os.mkfifo(name)
    pair = {"commands": by_commands, "tasks": by_tasks}[kind]
    return [pair(n, json.loads(offsets)) for n in range(int(rounds))]
"""

KINDS = ["commands", "tasks"]

KILLS = int(os.environ.get("CIEL_STREAM_KILLS", "3"))
"""How often connections are cut, and data planes killed, at other offsets."""


class Gates:
    """What a reader writes to when it asks for a cut, and reads from when that is done."""

    def __init__(self, folder: Path) -> None:
        until((folder / "rest").exists)
        self._asked = os.open(folder / "asked", os.O_RDWR)
        self._done = folder / "done"

    def cut(self, act: Callable[[], None]) -> None:
        """Does that when the reader asks for it."""
        asked, _, _ = select.select([self._asked], [], [], jobs.DEADLINE_S)
        assert asked, "the reader does not come so far"
        os.read(self._asked, 10)
        act()
        with self._done.open("w") as done:
            done.write("x\n")

    def close(self) -> None:
        """Gives the pipes back."""
        os.close(self._asked)


def cut_one(run: int, cut: set[int]) -> None:
    """Breaks the connection of the run that has not been cut before."""

    def fresh() -> list[connections.Socket]:
        return [found for found in connections.to_itself(run) if found.port not in cut]

    until(lambda: len(fresh()) == 1)
    (found,) = fresh()
    cut.add(found.port)
    found.cut()


def played(
    folder: Path, kind: str, offsets: list[int], rounds: int, act: Callable[[int], None]
) -> jobs.Ended:
    """Plays the job with one act for each offset of each round."""
    job = jobs.write(folder, JOB)
    process = jobs.start(job, kind, json.dumps(offsets), str(rounds))
    try:
        gates = Gates(folder)
        for _ in range(rounds * len(offsets)):
            gates.cut(lambda: act(process.pid))
        gates.close()
    except BaseException:
        process.kill()
        raise
    return jobs.end_of(process)


@pytest.mark.parametrize("seed", range(KILLS))
@pytest.mark.parametrize("kind", KINDS)
def test_connection_that_is_cut_at_any_offset_is_resumed_there(
    tmp_path: Path, kind: str, seed: int
) -> None:
    random = Random(f"cut {kind} {seed}")
    # The connection is seen to be broken when what is in the reader's pipe has been read.
    offsets = [begin + random.randrange(1, 400_000) for begin in (0, 2 << 20, 4 << 20)]
    cut: set[int] = set()
    ended = played(tmp_path, kind, offsets, 1, lambda run: cut_one(run, cut))
    assert ended.value == [hashlib.md5(WHOLE).hexdigest()], (offsets, ended.talk)
    told = jobs.command(tmp_path, "why", "reads0").printed.decode()
    how = f"  reads input 0 in the mode indirect_tcp, {len(WHOLE)} bytes over 4 connections\n"
    assert how in told, (offsets, told)


@pytest.mark.parametrize("seed", range(KILLS))
@pytest.mark.parametrize("kind", KINDS)
def test_data_plane_that_dies_leaves_its_reader_the_file_and_the_next_one_a_new_plane(
    tmp_path: Path, kind: str, seed: int
) -> None:
    offset = Random(f"dies {kind} {seed}").randrange(1, len(WHOLE))
    ports: list[int] = []

    def kill(run: int) -> None:
        until(lambda: len(connections.to_itself(run)) == 1)
        ports.extend(found.port for found in connections.listening(run))
        for found in [*connections.listening(run), *connections.to_itself(run)]:
            found.cut()

    ended = played(tmp_path, kind, [offset], 2, kill)
    assert ended.value == [hashlib.md5(WHOLE).hexdigest()] * 2, (offset, ended.talk)
    assert len(set(ports)) == 2, ports
    told = jobs.command(tmp_path, "why", "reads0").printed.decode()
    how = r"indirect_tcp, after \d+ bytes from the file: 127.0.0.1:\d+ cannot be reached"
    assert re.search(how, told), (offset, told)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_connections_count_as_moved(tmp_path: Path, kind: str) -> None:
    ended = played(tmp_path, kind, [], 1, lambda _: None)
    assert ended.value == [hashlib.md5(WHOLE).hexdigest()], ended.talk
    shown = json.loads(jobs.command(tmp_path, "ps", "--store", "--json").printed)
    assert shown["store"]["moved_bytes"] == len(WHOLE), shown


QUIET = """
import ciel


def main() -> None:
    ways = [ciel.stream(mode=mode) for mode in ("overlap", "indirect_pipe", "direct")]
    for way in ways:
        ciel.sh("cat", stdin=ciel.sh("seq 10", stdout=way)).result()
    ciel.sh("echo > asked; read x < done").result()
"""


def test_run_without_such_streams_opens_no_port(tmp_path: Path) -> None:
    for name in ("asked", "done", "rest"):
        os.mkfifo(tmp_path / name)
    process = jobs.start(jobs.write(tmp_path, QUIET))
    gates, found = Gates(tmp_path), list[connections.Socket]()
    gates.cut(lambda: found.extend(connections.listening(process.pid)))
    gates.close()
    assert jobs.end_of(process).status == 0
    assert found == []


LOST = """
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import ciel


@ciel.task(joined=True, stream=ciel.stream(mode="indirect_tcp"), retries=3)
def lines() -> Iterator[bytes]:
    for n in range(40_000):
        if n in (1, 17_777) and not Path(f"died{n}").exists():
            Path(f"died{n}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield b"%015d\\n" % n


@ciel.task
def total(given: ciel.Reading[bytes]) -> int:
    return sum(int(line) for line in given)


def main() -> int:
    return total.spawn(lines.spawn().stream()).result()
"""


def test_producer_that_dies_is_no_end_over_a_connection(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, LOST)
    assert ended.value == sum(range(40_000)), ended.talk


def test_connections_leave_no_process_and_no_port_when_the_run_has_ended(tmp_path: Path) -> None:
    ports: list[int] = []

    def look(run: int) -> None:
        ports.extend(found.port for found in connections.listening(run))

    ended = played(tmp_path, "commands", [1000], 1, look)
    assert ended.status == 0 and len(ports) == 1
    looked = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True, check=True)
    assert f":{ports[0]:04X} 00000000:0000 0A" not in looked.stdout
