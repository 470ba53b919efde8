"""Every mode of streams, by name and by flags, in the awkward cases: the bytes are the same in all.

Producers are commands and generators, readers are commands and Python tasks, on few slots and on
enough of them. What a mode does to time and storage is seen in `ciel why` and by named pipes.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import ciel
import jobs
import pytest
import sessions
from ciel._task_streams import MODES

LINE = b"0123456789abcde\n"

LENGTHS = [0, 1, 3 << 20]

KILLS = int(os.environ.get("CIEL_STREAM_KILLS", "3"))
"""Pairs of kills of a producer, in each mode."""

WISHES: list[dict[str, Any]] = [
    {"mode": mode} for mode in MODES
] + [
    {"may_stream": False},
    {"may_stream": True},
    {"may_stream": True, "must_block": True},
    {"may_stream": True, "no_store": True},
]
"""What a reader may say."""


@ciel.task
def digest(lines: ciel.Reading[bytes]) -> str:
    """Reads in a Python task."""
    with lines.open() as file:
        return hashlib.md5(file.read()).hexdigest()


@ciel.task
def slow_digest(lines: ciel.Reading[bytes]) -> str:
    """Reads small pieces."""
    found = hashlib.md5()
    with lines.open() as file:
        while piece := file.read(1021):
            found.update(piece)
    return found.hexdigest()


@ciel.task
def first_bytes(lines: ciel.Reading[bytes]) -> bytes:
    """Leaves early."""
    with lines.open() as file:
        return file.read(16)


def bursts(length: int) -> Iterator[bytes]:
    """So many bytes, in pieces of several sizes."""
    text, made, size = LINE * 4096, 0, 1
    while made < length:
        yield text[: min(size, length - made)]
        made += min(size, length - made)
        size = size * 3 % 65_521 + 1


def bytes_of(length: int) -> bytes:
    """The same, whole."""
    return b"".join(bursts(length))


@ciel.task(joined=True, retries=3)
def dying(length: int, at: list[int], mark: str) -> Iterator[bytes]:
    """Yields bursts; at each of these offsets its worker is killed once."""
    made = 0
    for piece in bursts(length):
        for place, offset in enumerate(at):
            if made >= offset and not Path(f"{mark}{place}").exists():
                Path(f"{mark}{place}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        made += len(piece)
        yield piece


MAKERS = {
    mode: ciel.task(joined=True, stream=ciel.stream(mode=mode))(bursts) for mode in MODES
}
PLAIN = ciel.task(joined=True)(bursts)

Bytes = ciel.Future[bytes]


def by_command(session: ciel.Session, length: int, way: ciel.Stream) -> Bytes:
    """The bytes of a command."""
    script = "yes 0123456789abcde | head -c {length} | dd bs=1021 status=none"
    return session.sh(script, length=length, stdout=way)


def by_generator(session: ciel.Session, length: int, way: ciel.Stream) -> Bytes:
    """The bytes of a generator."""
    maker = PLAIN if way.mode is None else MAKERS[way.mode]
    return session.submit(maker, length)


def to_command(session: ciel.Session, made: Bytes, wish: dict[str, Any]) -> str:
    """The digest of what a command reads."""
    script = "md5sum | cut -c 1-32 | tr -d '\\n'"
    return session.sh(script, stdin=made.stream(**wish)).result().decode()


def to_slow_command(session: ciel.Session, made: Bytes, wish: dict[str, Any]) -> str:
    """The same in small blocks."""
    script = "dd bs=509 status=none | md5sum | cut -c 1-32 | tr -d '\\n'"
    return session.sh(script, stdin=made.stream(**wish)).result().decode()


def to_task(session: ciel.Session, made: Bytes, wish: dict[str, Any]) -> str:
    """The digest of what a Python task reads."""
    return session.submit(digest, made.stream(**wish)).result()


def to_slow_task(session: ciel.Session, made: Bytes, wish: dict[str, Any]) -> str:
    """The same in small pieces."""
    return session.submit(slow_digest, made.stream(**wish)).result()


Producer = Callable[[ciel.Session, int, ciel.Stream], Bytes]
Reader = Callable[[ciel.Session, Bytes, dict[str, Any]], str]
PRODUCERS: list[Producer] = [by_command, by_generator]
READERS: list[Reader] = [to_command, to_slow_command, to_task, to_slow_task]


def expected(producer: Producer, length: int) -> str:
    """The digest of what a producer makes."""
    whole = LINE * (length // 16 + 1)
    made = whole[:length] if producer is by_command else bytes_of(length)
    return hashlib.md5(made).hexdigest()


session = sessions.with_slots(1, 3)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("wish", WISHES)
def test_reader_has_all_bytes_in_the_mode_that_it_asks_for(
    session: ciel.Session, wish: dict[str, Any], producer: Producer, length: int
) -> None:
    for reader in READERS:
        made = producer(session, length, ciel.stream)
        assert reader(session, made, wish) == expected(producer, length)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("mode", MODES)
def test_reader_has_all_bytes_in_the_mode_of_its_producer(
    session: ciel.Session, mode: str, producer: Producer, length: int
) -> None:
    for reader in READERS:
        made = producer(session, length, ciel.stream(mode=mode))
        assert reader(session, made, {}) == expected(producer, length)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_readers_of_one_stream_have_all_bytes_each_in_its_mode(
    session: ciel.Session, producer: Producer
) -> None:
    made = producer(session, 1 << 20, ciel.stream)
    found = [session.submit(digest, made.stream(**wish)) for wish in WISHES]
    assert {one.result() for one in found} == {expected(producer, 1 << 20)}
    again = to_command(session, made, {"mode": "indirect_pipe"})
    assert again == hashlib.md5(made.result()).hexdigest() == expected(producer, 1 << 20)


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("mode", MODES)
def test_reader_that_leaves_early_does_not_fail_its_producer_in_any_mode(
    session: ciel.Session, mode: str, producer: Producer
) -> None:
    first = LINE if producer is by_command else bytes_of(16)
    made = producer(session, 3 << 20, ciel.stream(mode=mode))
    assert session.sh("head -c 16", stdin=made).result() == first
    made = producer(session, 3 << 20, ciel.stream(mode=mode))
    assert session.submit(first_bytes, made.stream()).result() == first


@pytest.mark.parametrize("seed", range(KILLS))
@pytest.mark.parametrize("mode", MODES)
def test_producer_that_dies_anywhere_is_no_end_in_any_mode(
    session: ciel.Session, mode: str, seed: int, tmp_path: Path
) -> None:
    random = Random(f"{mode} {seed}")
    at = sorted(random.randrange(1 << 20) for _ in range(2))
    maker = dying.options(stream=ciel.stream(mode=mode))
    for number, reader in enumerate([to_command, to_task]):
        made = session.submit(maker, 1 << 20, at, str(tmp_path / f"generator{number}."))
        assert reader(session, made, {}) == expected(by_generator, 1 << 20), (seed, at)
        script = (
            f"{{{{ yes 0123456789abcde | head -c {at[0]}; test -e {tmp_path}/{number} || "
            f"{{{{ touch {tmp_path}/{number}; kill -9 $$; }}}}; echo end; }}}}"
        )
        made = session.sh(script, stdout=ciel.stream(mode=mode), retries=3)
        whole = (LINE * (at[0] // 16 + 1))[: at[0]] + b"end\n"
        assert reader(session, made, {}) == hashlib.md5(whole).hexdigest(), (seed, at)


def test_unknown_mode_is_an_error_that_names_those_that_there_are(session: ciel.Session) -> None:
    known = "the modes are no_stream, overlap, indirect_file, indirect_pipe, indirect_tcp, direct"
    with pytest.raises(ValueError, match=f"'fast'; {known}"):
        ciel.stream(mode="fast")
    with pytest.raises(ValueError, match=f"'fast'; {known}"):
        session.sh("true").stream(mode="fast")
    with pytest.raises(ValueError, match="a mode stands for all flags"):
        session.sh("true").stream(mode="direct", no_store=True)
    with pytest.raises(TypeError, match="has the option stream, but does not yield"):
        ciel.task(stream=ciel.stream(mode="direct"))(bytes_of)


def test_flag_that_is_neither_true_nor_false_is_an_error(session: ciel.Session) -> None:
    """`fut.stream(may_stream="yes")` was taken for True, and `may_stream="no"`, too."""
    made = session.sh("true", stdout=ciel.stream)
    for flag in ("may_stream", "must_block", "no_store"):
        wrong: Any = {flag: "yes"}
        with pytest.raises(TypeError, match=f"{flag} is True or False, not 'yes'"):
            made.stream(**wrong)
    for flag in ("may_stream", "single_consumer"):
        wrong = {flag: 1}
        with pytest.raises(TypeError, match=f"{flag} is True or False, not 1"):
            ciel.stream(**wrong)


LOST = """
import os

import ciel


def main(way: str) -> None:
    ways = {"mode": ciel.stream(mode="direct"), "promise": ciel.stream(single_consumer=True)}
    os.mkfifo("pipe")
    made = ciel.sh("read line < pipe; echo $line", stdout=ways[way])
    print(ciel.sh("echo begun > pipe; cat", stdin=made).result().decode(), end="")
    made.result()
"""


@pytest.mark.parametrize("way", ["mode", "promise"])
def test_hint_of_a_stream_that_is_gone_names_what_the_program_has_declared(
    tmp_path: Path, way: str
) -> None:
    """After `mode="direct"` the hint was to leave out `single_consumer`, which nobody declared."""
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, LOST), way))
    assert ended.lines == ["begun"] and ended.status != 0
    word = {"mode": "the mode direct", "promise": "single_consumer"}[way]
    assert f"leave out {word}, and the stream is stored" in ended.talk, ended.talk


OVERLAP = """
import os

import ciel


def main() -> None:
    os.mkfifo("end")
    made = ciel.sh("echo first; read line < end; echo $line", stdout=ciel.stream)
    begun = ciel.sh("echo last > end; cat", stdin=made.stream(mode="overlap"))
    print(begun.result().decode(), end="")
"""


def test_reader_in_overlap_starts_before_its_producer_has_ended(tmp_path: Path) -> None:
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, OVERLAP)))
    assert ended.lines == ["first", "last"], ended.talk


TOLD = """
import os

import ciel


def main() -> None:
    modes = ["indirect_file", "indirect_pipe", "indirect_tcp", "overlap", "direct"]
    for mode in modes:
        os.mkfifo(mode)
        made = ciel.sh(f"echo {mode}; read line < {mode}; echo $line", stdout=ciel.stream)
        script = f"echo read > {mode}; cat"
        read = ciel.sh(script, stdin=made.stream(mode=mode), name=f"reads_{mode}")
        print(*read.result().decode().split())
"""


def test_why_says_in_which_mode_a_task_reads_and_in_place_of_which(tmp_path: Path) -> None:
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, TOLD)))
    modes = ["indirect_file", "indirect_pipe", "indirect_tcp", "overlap", "direct"]
    assert ended.lines == [f"{mode} read" for mode in modes], ended.talk
    reasons = {
        "indirect_file": "indirect_pipe in place of indirect_file: what a task reads is a pipe",
        "indirect_pipe": "indirect_pipe",
        "indirect_tcp": "indirect_tcp, 18 bytes over 1 connection",
        "overlap": "overlap",
        "direct": "indirect_pipe in place of direct: its producer does not declare single_consumer",
    }
    for mode, reason in reasons.items():
        told = jobs.command(tmp_path, "why", f"reads_{mode}").printed.decode()
        assert f"  reads input 0 in the mode {reason}\n" in told, told


KILLED = """
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import ciel


def pieces(offset: int) -> Iterator[bytes]:
    for n in range(40_000):
        if n == offset and not Path("killed").exists():
            Path("killed").touch()
            os.kill(int(Path("engine").read_text()), signal.SIGKILL)
        yield b"%015d\\n" % n


@ciel.task
def count(lines: ciel.Reading[bytes]) -> int:
    found = sum(int(line) for line in lines)
    print("read all")
    return found


def main(mode: str, offset: str) -> int:
    print("begun")
    maker = ciel.task(joined=True, stream=ciel.stream(mode=mode))(pieces)
    return count.spawn(maker.spawn(int(offset)).stream()).result()
"""


@pytest.mark.parametrize("mode", MODES)
def test_run_that_is_killed_within_a_stream_is_resumed_in_any_mode(
    tmp_path: Path, mode: str
) -> None:
    offset = Random(f"killed {mode}").randrange(40_000)
    job = jobs.write(tmp_path, KILLED)
    process = jobs.start(job, mode, str(offset), beneath=jobs.noting("engine"))
    assert jobs.end_of(process).status == -signal.SIGKILL
    ended = jobs.end_of(jobs.start(job, mode, str(offset)))
    assert ended.lines == ["begun", "read all", str(sum(range(40_000)))], (offset, ended.talk)
