"""Commands that read what other commands print while they print it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import ciel
import pytest
import sessions
from conditions import DEADLINE_S

WAYS = [ciel.stream, ciel.stream(single_consumer=True)]

session = sessions.with_slots(1, 2, 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [0, 1, 1000, 3 << 20])
def test_reader_has_the_bytes_of_its_producer(
    session: ciel.Session, way: ciel.Stream, length: int
) -> None:
    script = f"head -c {length} /dev/zero | tr '\\0' x"
    made = session.sh(script, stdout=way)
    found = session.sh("md5sum", stdin=made).result()
    assert found.split()[0].decode() == hashlib.md5(b"x" * length).hexdigest()


@pytest.mark.parametrize("way", WAYS)
def test_pipeline_longer_than_the_slots_ends(session: ciel.Session, way: ciel.Stream) -> None:
    last = session.sh("seq 100000", stdout=way)
    for _ in range(8):
        last = session.sh("sed s/^/1/", stdin=last, stdout=way)
    lines = session.sh("tail -n 1", stdin=last).result()
    assert lines == b"11111111100000\n"


def test_chain_of_a_hundred_streams_ends_on_any_number_of_slots(session: ciel.Session) -> None:
    last = session.sh("seq 1000", stdout=ciel.stream)
    for _ in range(99):
        last = session.sh("cat", stdin=last, stdout=ciel.stream)
    assert session.sh("md5sum", stdin=last).result() == session.sh("seq 1000 | md5sum").result()


@pytest.mark.parametrize("way", WAYS)
def test_reader_that_leaves_early_does_not_fail_its_producer(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    made = session.sh(f"seq 1000000; echo whole > {tmp_path}/end", stdout=way)
    assert session.sh("head -n 1", stdin=made).result() == b"1\n"
    assert (tmp_path / "end").read_text() == "whole\n"


@pytest.mark.parametrize("way", WAYS)
def test_failure_of_the_producer_is_that_of_its_reader(
    session: ciel.Session, way: ciel.Stream
) -> None:
    made = session.sh("seq 1000; exit 3", stdout=way)
    with pytest.raises(ciel.CommandError, match="3"):
        session.sh("wc -l", stdin=made).result()


@pytest.mark.parametrize("way", WAYS)
def test_retried_producer_gives_its_reader_whole_output(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    script = f"seq 1000; test -e {tmp_path}/again && seq 2 || {{ touch {tmp_path}/again; exit 1; }}"
    made = session.sh(script, stdout=way, retries=2)
    assert session.sh("wc -l", stdin=made).result() == b"1002\n"


@pytest.mark.parametrize("way", WAYS)
def test_retried_reader_has_the_whole_stream_again(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    made = session.sh("seq 100000", stdout=way)
    script = f"test -e {tmp_path}/again || {{ head -n 5; touch {tmp_path}/again; exit 1; }}; wc -l"
    assert session.sh(script, stdin=made, retries=2).result() == b"100000\n"


def test_several_readers_have_all_bytes_and_so_has_the_program(session: ciel.Session) -> None:
    made = session.sh("seq 200000", stdout=ciel.stream)
    counts = [session.sh("wc -l", stdin=made) for _ in range(3)]
    assert [count.result() for count in counts] == [b"200000\n"] * 3
    assert made.result().endswith(b"\n200000\n")


def test_reader_that_comes_late_has_all_bytes(session: ciel.Session) -> None:
    made = session.sh("seq 1000", stdout=ciel.stream)
    assert made.result().count(b"\n") == 1000
    assert session.sh("wc -l", stdin=made).result() == b"1000\n"


def test_reader_starts_before_its_producer_has_ended(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Only its reader lets the producer end.
    with ciel.Session(jobs=2, state=tmp_path_factory.mktemp("state")) as session:
        for number, way in enumerate(WAYS):
            seen = tmp_path / f"seen{number}"
            os.mkfifo(seen)
            made = session.sh(f"echo first; cat {seen}", stdout=way, timeout=DEADLINE_S)
            read = session.sh(f"read line; : > {seen}; cat; echo $line", stdin=made)
            assert read.result() == b"first\n"


def test_stream_that_is_no_stream_is_refused(session: ciel.Session) -> None:
    with pytest.raises(TypeError, match=r"stdout must be ciel\.stream"):
        session.sh("true", stdout=3)  # type: ignore[call-overload]


def test_folder_is_no_stream(session: ciel.Session) -> None:
    # The archive of the folder was to be written into a pipe that nobody read.
    made = session.sh("touch {out/}/file", stdout=ciel.stream)
    with pytest.raises(ciel.CielError, match="is a folder, which cannot be a stream") as refused:
        made.result()
    assert "write an archive: tar -c . > {out}" in str(refused.value)
