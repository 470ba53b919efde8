"""Commands whose standard input is a list with streams in it: one behind the other, as they come.

What each case gives is the same on any number of slots, for streams that are stored and for those
that are not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import ciel
import jobs
import pytest
import sessions

Bytes = ciel.Future[bytes]

WAYS = [ciel.stream, ciel.stream(single_consumer=True)]
LENGTHS = [0, 1, 3 << 20]
ALL = "abcdefgh"
DIGEST = "md5sum | cut -c 1-32 | tr -d '\\n'"


@ciel.task(joined=True)
def pieces(letter: str, length: int) -> Iterator[bytes]:
    """So many letters, in pieces of several sizes."""
    made, size = 0, 1
    while made < length:
        size = min(size * 3 % 65_521 + 1, length - made)
        yield letter.encode() * size
        made += size


session = sessions.with_slots(1, 2, 4)


def letters(session: ciel.Session, letter: str, length: int, way: ciel.Stream) -> Bytes:
    """A command that writes one letter `length` times."""
    return session.sh(f"head -c {length} /dev/zero | tr '\\0' {letter}", stdout=way)


def digest_of(*parts: bytes) -> str:
    """As `DIGEST` gives it."""
    return hashlib.md5(b"".join(parts)).hexdigest()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", LENGTHS)
def test_command_reads_streams_values_and_text_one_behind_the_other(
    session: ciel.Session, way: ciel.Stream, length: int
) -> None:
    a, b = letters(session, "a", length, way), letters(session, "b", length, way)
    whole, made = session.sh("printf whole"), session.submit(pieces, "c", length)
    given = [b, "text", a.stream(), whole, b"", made.stream(), b"end"]
    found = session.sh(DIGEST, stdin=given)
    parts = [b"b" * length, b"text", b"a" * length, b"whole", b"c" * length, b"end"]
    assert found.result().decode() == digest_of(*parts)


@pytest.mark.parametrize("mode", ["overlap", "indirect_pipe", "indirect_tcp", "no_stream"])
def test_each_stream_of_a_list_has_the_mode_that_is_asked_for(
    session: ciel.Session, mode: str
) -> None:
    a, b = (letters(session, letter, 1 << 20, ciel.stream()) for letter in "ab")
    given = [a.stream(mode=mode), "-", b.stream(granularity=65_536)]
    parts = [b"a" * (1 << 20), b"-", b"b" * (1 << 20)]
    assert session.sh(DIGEST, stdin=given).result().decode() == digest_of(*parts)


@pytest.mark.parametrize("way", WAYS)
def test_command_reads_a_list_beside_a_named_stream(
    session: ciel.Session, way: ciel.Stream
) -> None:
    a, b, c = (letters(session, letter, 1 << 20, way) for letter in "abc")
    found = session.sh(f"cat {{c}} - | {DIGEST}", stdin=[a, b], c=c.stream())
    parts = [letter * (1 << 20) for letter in (b"c", b"a", b"b")]
    assert found.result().decode() == digest_of(*parts)


@pytest.mark.parametrize("way", WAYS)
def test_list_of_streams_that_has_one_twice_is_read_whole(
    session: ciel.Session, way: ciel.Stream
) -> None:
    made = letters(session, "a", 100_000, ciel.stream)
    other = letters(session, "b", 100_000, way)
    found = session.sh(f"cat - {{made}} | {DIGEST}", stdin=[made, other, made], made=made)
    parts = [letter * 100_000 for letter in (b"a", b"b", b"a", b"a")]
    assert found.result().decode() == digest_of(*parts)


@pytest.mark.parametrize("way", WAYS)
def test_consumer_that_leaves_a_list_early_does_not_fail_its_producers(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    ends = [tmp_path / name for name in "abc"]
    made = [session.sh(f"yes aa | head -c 3000000; echo whole > {end}", stdout=way) for end in ends]
    assert session.sh("head -c 3", stdin=made).result() == b"aa\n"
    lone = session.sh(f"yes aa | head -c 3000000; echo lone > {ends[0]}", stdout=way)
    read = session.sh("head -c 3; exec 0<&-", stdin=["b", lone])
    assert read.result() == b"baa"
    assert [end.read_text() for end in ends] == ["lone\n", "whole\n", "whole\n"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_producer_that_dies_is_no_end_of_a_stream_in_a_list(
    session: ciel.Session, way: ciel.Stream, which: int, tmp_path: Path
) -> None:
    script = "yes | head -n 40000; test -e {mark} || {{ touch {mark}; kill -9 $$; }}; echo end"
    dies = session.sh(script, mark=str(tmp_path / "mark"), stdout=way, retries=3)
    given = [letters(session, letter, 1 << 20, way) for letter in "ab"]
    parts = [b"a" * (1 << 20), b"b" * (1 << 20)]
    given.insert(which, dies)
    parts.insert(which, b"y\n" * 40_000 + b"end\n")
    assert session.sh(DIGEST, stdin=given).result().decode() == digest_of(*parts)


@pytest.mark.parametrize("way", WAYS)
def test_lone_stream_behind_a_text_whose_producer_dies_is_read_again(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    script = "yes | head -n 40000; test -e {mark} || {{ touch {mark}; kill -9 $$; }}; echo end"
    dies = session.sh(script, mark=str(tmp_path / "mark"), stdout=way, retries=3)
    found = session.sh(DIGEST, stdin=["first", dies, b"last"])
    parts = [b"first", b"y\n" * 40_000, b"end\n", b"last"]
    assert found.result().decode() == digest_of(*parts)


@pytest.mark.parametrize("way", WAYS)
def test_failure_of_a_producer_in_a_list_is_that_of_its_reader(
    session: ciel.Session, way: ciel.Stream
) -> None:
    fails = session.sh("seq 1000; exit 3", stdout=way)
    other = letters(session, "a", 1 << 20, way)
    with pytest.raises(ciel.CommandError, match="3"):
        session.sh("wc -l", stdin=[other, fails]).result()


@pytest.mark.parametrize("way", WAYS)
def test_retried_reader_of_a_list_has_it_whole_again(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    made = [letters(session, letter, 1 << 20, way) for letter in "ab"]
    script = f"test -e {{mark}} || {{{{ head -c 9; touch {{mark}}; exit 1; }}}}; {DIGEST}"
    found = session.sh(script, stdin=made, mark=str(tmp_path / "mark"), retries=2)
    parts = [b"a" * (1 << 20), b"b" * (1 << 20)]
    assert found.result().decode() == digest_of(*parts)


@pytest.mark.parametrize("way", WAYS)
def test_tree_of_lists_wider_than_the_slots_ends(session: ciel.Session, way: ciel.Stream) -> None:
    level = [letters(session, letter, 40_000, way) for letter in ALL]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [session.sh("cat", stdin=pair, stdout=way) for pair in pairs]
    found = session.sh(DIGEST, stdin=level[0])
    assert found.result().decode() == digest_of(*(one.encode() * 40_000 for one in ALL))


MEETING = """
import os

import ciel


def main(way: str) -> None:
    how = ciel.stream(single_consumer=way == "once")
    for name in ("a", "b"):
        os.mkfifo(name)
    made = [
        ciel.sh(f"echo {name}1; read line < {name}; echo $line", stdout=how) for name in ("a", "b")
    ]
    script = (
        "read x; read y; echo $x $y; echo a2 > a; read x; read y; echo $x $y; "
        "echo b2 > b; cat"
    )
    read = ciel.sh(script, stdin=["first\\n", *made, "last\\n"], name="reads")
    print(read.result().decode(), end="")


def one() -> None:
    os.mkfifo("c")
    how = ciel.stream(single_consumer=True)
    made = ciel.sh("echo c1; read line < c; echo $line", stdout=how)
    script = "read x; read y; echo $x $y; echo c2 > c; cat"
    read = ciel.sh(script, stdin=["first\\n", made, "last\\n"], name="one")
    print(read.result().decode(), end="")
"""


@pytest.mark.parametrize("way", ["stored", "once"])
def test_command_reads_each_stream_of_a_list_before_it_has_ended(tmp_path: Path, way: str) -> None:
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, MEETING), way, options=("-j3",)))
    assert ended.lines == ["first a1", "a2 b1", "b2", "last"], ended.talk


def test_only_stream_of_a_list_with_one_reader_is_direct(tmp_path: Path) -> None:
    script = MEETING.replace("def main(", "def both(").replace("def one(", "def main(")
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, script), options=("-j2",)))
    assert ended.lines == ["first c1", "c2", "last"], ended.talk
    told = jobs.command(tmp_path, "why", "one").printed.decode()
    assert "in the mode direct\n" in told, told


SKYWRITING = """
seqs = [];
for (first in [1, 2]) {
    seqs += spawn_exec("shell", {"command": "seq {n} 2 9", "inputs": {"n": first},
                                 "stream": true}, 1)[0];
}
sorted = spawn_exec("stdinout", {"command_line": ["sort"], "inputs": seqs}, 1)[0];
pasted = spawn_exec("shell", {
    "command": "paste -s",
    "stdin": [{"stream": seqs[1], "mode": "overlap"}, {"stream": seqs[0]}]
}, 1)[0];
twice = spawn_exec("shell", {"command": "cat {x} - | wc -l", "stdin": [seqs[0]],
                             "inputs": {"x": seqs[0]}}, 1)[0];
return [*sorted, *pasted, *twice];
"""


@pytest.mark.parametrize("slots", ["-j1", "-j4"])
def test_skywriting_gives_lists_of_streams(tmp_path: Path, slots: str) -> None:
    (tmp_path / "job.sw").write_text(SKYWRITING)
    ended = jobs.command(tmp_path, "run", slots, "job.sw")
    assert ended.status == 0, ended.talk
    found = [str(text).split() for text in json.loads(ended.printed)]
    assert found == [
        [str(n) for n in range(1, 10)],
        ["2", "4", "6", "8", "1", "3", "5", "7", "9"],
        ["10"],
    ]


def test_list_with_a_stream_that_is_asked_for_wrongly_is_refused(tmp_path: Path) -> None:
    script = SKYWRITING.replace('"mode": "overlap"', '"mode": "pipe"')
    (tmp_path / "job.sw").write_text(script)
    ended = jobs.command(tmp_path, "run", "job.sw")
    assert ended.status != 0
    assert 'no mode of streams is named "pipe"' in ended.talk
