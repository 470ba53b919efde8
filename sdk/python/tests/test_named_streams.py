"""Commands that read several streams by path and write several: `{name}`, `{out.name}`, `stdin`.

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
DIGEST = "md5sum | cut -c 1-32 | tr -d '\\n'"


@ciel.task(joined=True)
def pieces(letter: str, length: int) -> Iterator[bytes]:
    """So many letters, in bursts."""
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
def test_command_reads_two_streams_by_their_names(
    session: ciel.Session, way: ciel.Stream, length: int
) -> None:
    a, b = letters(session, "a", length, way), letters(session, "b", length, way)
    found = session.sh(f"cat {{b}} {{in.a}} | {DIGEST}", a=a.stream(), b=b.stream())
    assert found.result().decode() == digest_of(b"b" * length, b"a" * length)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", LENGTHS)
def test_command_reads_one_stream_by_its_name(
    session: ciel.Session, way: ciel.Stream, length: int
) -> None:
    made = letters(session, "a", length, way)
    found = session.sh(f"cat {{a}} | {DIGEST}", a=made.stream())
    assert found.result().decode() == digest_of(b"a" * length)


@pytest.mark.parametrize("way", WAYS)
def test_command_reads_a_named_stream_beside_its_standard_input(
    session: ciel.Session, way: ciel.Stream
) -> None:
    a, b = letters(session, "a", 1 << 20, way), letters(session, "b", 1 << 20, way)
    found = session.sh(f"cat {{b}} - | {DIGEST}", stdin=a, b=b.stream())
    assert found.result().decode() == digest_of(b"b" * (1 << 20), b"a" * (1 << 20))


def test_command_reads_streams_of_a_list_and_of_generators(session: ciel.Session) -> None:
    whole = session.sh("printf whole")
    made = [session.submit(pieces, letter, 100_000) for letter in "abc"]
    parts = [whole, *(one.stream() for one in made)]
    found = session.sh(f"cat {{parts}} | {DIGEST}", parts=parts)
    text = [letter.encode() * 100_000 for letter in "abc"]
    assert found.result().decode() == digest_of(b"whole", *text)
    assert made[0].result() == text[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", LENGTHS)
def test_named_outputs_of_one_command_are_named_streams_of_another(
    session: ciel.Session, way: ciel.Stream, length: int
) -> None:
    script = "head -c {n} /dev/zero | tee {out.low} | tr '\\0' x > {out.high}"
    made = session.sh(script, n=length, outputs=["low", "high"], stdout=way)
    high, low = made["high"].stream(), made["low"].stream()
    found = session.sh(f"cat {{high}} {{low}} | {DIGEST}", high=high, low=low)
    assert found.result().decode() == digest_of(b"x" * length, bytes(length))


@pytest.mark.parametrize("way", WAYS)
def test_consumer_that_leaves_or_never_opens_a_named_stream_does_not_fail_its_producer(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    for number, script in enumerate(["head -c 3 {a}", "printf aaa; : {a}"]):
        end = tmp_path / str(number)
        made = session.sh(f"yes aa | head -c 3000000; echo whole > {end}", stdout=way)
        assert session.sh(script, a=made.stream()).result()[:2] == b"aa"
        assert end.read_text() == "whole\n"


@pytest.mark.parametrize("way", WAYS)
def test_producer_that_dies_is_no_end_of_its_named_stream(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    script = "yes | head -n 40000; test -e {mark} || {{ touch {mark}; kill -9 $$; }}; echo end"
    dies = session.sh(script, mark=str(tmp_path / "mark"), stdout=way, retries=3)
    other = letters(session, "a", 1 << 20, way)
    found = session.sh(f"cat {{a}} {{b}} | {DIGEST}", a=dies.stream(), b=other.stream())
    assert found.result().decode() == digest_of(b"y\n" * 40_000, b"end\n", b"a" * (1 << 20))


@pytest.mark.parametrize("way", WAYS)
def test_failure_of_the_producer_of_a_named_stream_is_that_of_its_reader(
    session: ciel.Session, way: ciel.Stream
) -> None:
    made = session.sh("seq 1000; exit 3", stdout=way)
    with pytest.raises(ciel.CommandError, match="3"):
        session.sh("wc -l < {a}", a=made.stream()).result()


@pytest.mark.parametrize("way", WAYS)
def test_retried_reader_has_its_named_streams_whole_again(
    session: ciel.Session, way: ciel.Stream, tmp_path: Path
) -> None:
    made = [session.sh(f"seq {n} 2 200000", stdout=way) for n in (1, 2)]
    script = "test -e {mark} || {{ head -n 5 {a}; touch {mark}; exit 1; }}; sort -nm {a} {b}"
    again = script.replace("head -n 5 {a}", "seq 3")
    a, b = (one.stream() for one in made)
    found = session.sh(f"{again} | {DIGEST}", mark=str(tmp_path / "mark"), a=a, b=b, retries=2)
    lines = "".join(f"{n}\n" for n in range(1, 200_001))
    assert found.result().decode() == digest_of(lines.encode())


@pytest.mark.parametrize("way", WAYS)
def test_tree_of_named_streams_wider_than_the_slots_ends(
    session: ciel.Session, way: ciel.Stream
) -> None:
    level = [session.sh(f"seq {n} 8 40000", stdout=way) for n in range(1, 9)]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [
            session.sh("sort -nm {a} {b}", a=a.stream(), b=b.stream(), stdout=way)
            for a, b in pairs
        ]
    found = session.sh("cmp - {all} && echo same", stdin=level[0], all=session.sh("seq 40000"))
    assert found.result() == b"same\n"


def test_stream_that_is_a_folder_or_a_variable_is_refused(
    session: ciel.Session,
) -> None:
    made = session.sh("seq 3", stdout=ciel.stream)
    with pytest.raises(ciel.CielError, match="is a folder, which cannot be a stream"):
        session.sh("ls {a/}", a=made.stream()).result()
    with pytest.raises(ciel.CielError, match="the variable A has a text"):
        session.sh("echo $A", env={"A": made.stream()})


def test_stream_with_a_second_place_in_the_command_is_read_whole_in_both(
    session: ciel.Session,
) -> None:
    made = session.sh("seq 100000", stdout=ciel.stream)
    found = session.sh("cat {a} | cmp - {b} && echo same", a=made.stream(), b=made.stream())
    assert found.result() == b"same\n"


MEETING = """
import os

import ciel


def main(way: str) -> None:
    how = ciel.stream(single_consumer=way == "once")
    for name in ("a", "b"):
        os.mkfifo(name)
    made = {
        name: ciel.sh(f"echo {name}1; read line < {name}; echo $line", stdout=how)
        for name in ("a", "b")
    }
    script = (
        "exec 4<{a} 5<{in.b}; read x <&4; read y <&5; echo $x $y; "
        "echo a2 > a; echo b2 > b; cat <&5 <&4; cat <&4"
    )
    read = ciel.sh(script, a=made["a"].stream(), b=made["b"].stream(), name="reads")
    print(read.result().decode(), end="")


def one() -> None:
    os.mkfifo("c")
    how = ciel.stream(single_consumer=True)
    made = ciel.sh("echo c1; read line < c; echo $line", stdout=how)
    read = ciel.sh("exec 4<{c}; read x <&4; echo c2 > c; cat <&4", c=made.stream(), name="one")
    print(read.result().decode(), end="")
"""


@pytest.mark.parametrize("way", ["stored", "once"])
def test_command_reads_both_streams_before_either_has_ended(tmp_path: Path, way: str) -> None:
    script = MEETING.replace("cat <&5 <&4; cat <&4", "cat <&5; cat <&4")
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, script), way, options=("-j3",)))
    assert ended.lines == ["a1 b1", "b2", "a2"], ended.talk


def test_named_stream_of_one_reader_is_direct(tmp_path: Path) -> None:
    script = MEETING.replace("def main(", "def both(").replace("def one(", "def main(")
    ended = jobs.end_of(jobs.start(jobs.write(tmp_path, script), options=("-j2",)))
    assert ended.lines == ["c2"], ended.talk
    told = jobs.command(tmp_path, "why", "one").printed.decode()
    assert "  reads input 0 in the mode direct\n" in told, told


SKYWRITING = """
seqs = [];
for (first in [1, 2]) {
    seqs += spawn_exec("shell", {"command": "seq {n} 2 9", "inputs": {"n": first},
                                 "stream": true}, 1)[0];
}
merged = spawn_exec("shell", {
    "command": "sort -m {parts}",
    "inputs": {"parts": [{"stream": seqs[0]}, {"stream": seqs[1], "mode": "indirect_pipe"}]}
}, 1)[0];
joined = spawn_exec("stdinout", {
    "command_line": ["paste", "-s", {"stream": seqs[0]}, "-"], "inputs": [seqs[1]]
}, 1)[0];
split = spawn_exec("shell", {"command": "seq 3 > {out.a}; seq 4 6 > {out.b}",
                             "outputs": ["a", "b"], "stream": ["a", "b"]}, 2);
both = spawn_exec("shell", {
    "command": "cat {b} {a} | paste -sd+ -",
    "inputs": {"a": {"stream": split[0]}, "b": {"stream": split[1]}}
}, 1)[0];
return [*merged, *joined, *both];
"""


@pytest.mark.parametrize("slots", ["-j1", "-j4"])
def test_skywriting_reads_and_writes_streams_by_name(tmp_path: Path, slots: str) -> None:
    (tmp_path / "job.sw").write_text(SKYWRITING)
    ended = jobs.command(tmp_path, "run", slots, "job.sw")
    assert ended.status == 0, ended.talk
    found = json.loads(ended.printed)
    assert [str(text).split() for text in found[:2]] == [
        [str(n) for n in range(1, 10)],
        ["1", "3", "5", "7", "9", "2", "4", "6", "8"],
    ]
    assert str(found[2]).strip() == "4+5+6+1+2+3"


MANY_STREAMS = """
import ciel


def main():
    names = [f"n{number}" for number in range(40)]
    script = "; ".join("seq 3 > {out.%s}" % name for name in names)
    made = ciel.sh(script, outputs=names, stdout=ciel.stream)
    print([len(ciel.sh("wc -l", stdin=made[name]).result()) for name in names])
"""


def test_streams_beyond_the_limit_of_open_files_say_how_to_raise_it(tmp_path: Path) -> None:
    """The failure was `Too many open files` without a word about the limit."""
    job = jobs.write(tmp_path, MANY_STREAMS)
    limited = ("prlimit", "--nofile=90:90")
    ended = jobs.end_of(jobs.start(job, beneath=limited))
    assert ended.status == 1
    assert "Too many open files" in ended.talk
    assert "hint: this process may open 90 files; raise the limit: ulimit -n" in ended.talk


SMALL = """
import ciel

def main():
    print(ciel.sh("echo small").result())
"""


def test_worker_beyond_the_limit_of_open_files_says_how_to_raise_it(tmp_path: Path) -> None:
    """`could not be started: Too many open files` stood there without a word about the limit."""
    job = jobs.write(tmp_path, SMALL)
    for files in range(20, 60, 4):
        ended = jobs.end_of(jobs.start(job, beneath=("prlimit", f"--nofile={files}:{files}")))
        is_told = "raise the limit" in ended.talk and "ulimit -n" in ended.talk
        assert ended.status == 0 or is_told, ended


READS_ITS_OUTPUT = """
import ciel


def main(script: str):
    made = ciel.sh(script, outputs=["a", "b"], stdout=ciel.stream)
    lengths = [ciel.sh("wc -c", stdin=made[name]) for name in ("a", "b")]
    print([int(length.result()) for length in lengths])
"""


def test_command_that_reads_an_output_that_is_a_stream_fails_and_is_told_so(
    tmp_path: Path,
) -> None:
    """It waited for ever for what it had not written, as programs do that first look at a file."""
    job = jobs.write(tmp_path, READS_ITS_OUTPUT)
    for way in ("echo 1 > {out.b}; (cat {out.a})", "head -c 1 {out.a}; true", "read x < {out.a}"):
        ended = jobs.end_of(jobs.start(job, way))
        assert ended.status == 1, ended
        assert "it opened its output a for reading, which is a stream" in ended.talk
        assert "hint: make it an ordinary output, which is a file" in ended.talk


def test_command_whose_reader_of_an_output_is_gone_before_it_is_seen_fails(tmp_path: Path) -> None:
    """`dd` took the bytes out of the pipe, and had ended when it was looked at who has it open.

    The command succeeded, and its result lacked what it had written. The engine is stopped here for
    as long as the command runs, so it sees nothing of it but what the kernel has told.
    """
    job = jobs.write(tmp_path, READS_ITS_OUTPUT)
    engine = "$(grep PPid /proc/$PPID/status | cut -f2)"
    taken = "echo 1 > {out.b}; echo 1 > {out.a}; dd if={out.a} iflag=nonblock bs=9 count=1; true"
    ended = jobs.end_of(jobs.start(job, f"kill -STOP {engine}; {taken}; kill -CONT {engine}"))
    assert ended.status == 1, ended
    assert "it opened its output a for reading, which is a stream" in ended.talk


def test_command_that_has_a_stream_for_both_and_reads_it_fails_and_is_told_so(
    tmp_path: Path,
) -> None:
    """It waited for ever, as `tar -r` did, which reads the archive to which it adds."""
    job = jobs.write(tmp_path, READS_ITS_OUTPUT)
    (tmp_path / "added").write_text("x\n")
    for way in (
        f"echo 1 > {{out.b}}; tar -rf {{out.a}} {tmp_path}/added",
        "(exec 3<> {out.a}; read x <&3)",
        "exec 3<> {out.a}; seq 3 >&3; while true; do read x <&3; done",
    ):
        ended = jobs.end_of(jobs.start(job, way))
        assert ended.status == 1, ended
        assert "it opened its output a for reading, which is a stream" in ended.talk
        assert "hint: make it an ordinary output, which is a file" in ended.talk


def test_command_may_open_a_stream_that_it_writes_for_both(tmp_path: Path) -> None:
    script = "exec 3<> {out.a}; echo 12 >&3; echo 3 > {out.b}"
    ended = jobs.run(tmp_path, READS_ITS_OUTPUT, script)
    assert ended.lines == ["[3, 2]"]


SEEKS = """
import ciel
import os


def main():
    os.mkfifo("gate")
    made = ciel.sh("seq 3; cat gate", stdout=ciel.stream)
    seeks = "import os, sys; os.lseek(os.open(sys.argv[1], os.O_RDONLY), 1, os.SEEK_SET)"
    try:
        ciel.sh("python3 -c {seeks} {a}", seeks=seeks, a=made.stream()).result()
    finally:
        open("gate", "wb").close()
"""


def test_command_that_seeks_in_a_stream_is_told_what_a_stream_is(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, SEEKS)
    assert ended.status == 1
    assert "Illegal seek" in ended.talk
    assert "hint: a stream is a pipe, read once from its beginning: if the command" in ended.talk
    assert "pass the future itself in place of its stream()" in ended.talk


OPENS_AGAIN = """
import ciel
import os


def main(mode: str, script: str, pure: str = ""):
    os.mkfifo("gate")
    impure = {"pure": False} if pure == "impure" else {}
    made = ciel.sh("seq 71; cat gate", stdout=ciel.stream(mode=mode))
    # The producer ends when the reader has begun for the first time, so that it reads a stream.
    begun = "mkdir begun 2> begun.error && echo > gate"
    print(ciel.sh(f"{begun}; set -- {{a}}; {script}", a=made.stream(), **impure).result())
"""
STORED = ("indirect_file", "indirect_pipe", "indirect_tcp")


@pytest.mark.parametrize("mode", STORED)
@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("wc -l < $1; wc -l < $1", "72\\n72\\n"),
        ("(head -n 1 $1) > x; tail -n +71 < $1", "71\\n\\n"),
        ("(cat $1) > x; cat < $1 | wc -l; test $(wc -l < x) = 72", "72\\n"),
    ],
)
def test_command_that_opens_a_stored_stream_again_restarts_and_has_it_from_the_start(
    tmp_path: Path, mode: str, script: str, printed: str
) -> None:
    """It found an empty file at the second time, and ended well; then it failed."""
    ended = jobs.run(tmp_path, OPENS_AGAIN, mode, script)
    assert ended.lines == [f"b'{printed}'"], ended


@pytest.mark.parametrize("words", [("direct",), ("indirect_file", "impure")])
def test_command_that_may_not_have_a_stream_again_fails_and_is_told_so(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Nothing of a direct stream is stored, and what is impure is not to run a second time."""
    mode, *rest = words
    for number, way in enumerate(("wc -l < $1; wc -l < $1", "(cat $1) > x; cat < $1; exit 3")):
        folder = tmp_path / str(number)
        folder.mkdir()
        ended = jobs.run(folder, OPENS_AGAIN, mode, way, *rest)
        assert ended.status == 1, ended
        assert "it opened its input a again after it had read of it" in ended.talk
        assert "hint: pass the future itself in place of its stream()" in ended.talk


CAUGHT = OPENS_AGAIN.replace("    print(ciel.sh(", "    failed = (ciel.sh(") + """
    error = failed.exception()
    print(type(error).__name__, error.exit_status, error.signal, error.stderr.strip())
    print(str(error).splitlines()[0])
    print(error.command)
"""


def test_command_that_misuses_a_stream_raises_the_error_of_a_command(tmp_path: Path) -> None:
    """It raised `TaskError`, with `TaskError: ` once more at the beginning of its text."""
    text = CAUGHT.replace("**impure).result())", "**impure))")
    ended = jobs.run(tmp_path, text, "direct", "echo talk >&2; wc -l < $1; wc -l < $1")
    assert ended.lines[0] == "CommandError None  talk", ended
    assert ended.lines[1].startswith("it opened its input a again"), ended
    assert ended.lines[-1].endswith("wc -l < $1; wc -l < $1"), ended


def test_command_may_open_a_stream_again_of_which_nothing_was_read(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, OPENS_AGAIN, "direct", ": < $1; wc -l < $1")
    assert ended.lines == ["b'72\\n'"], ended


NAMES_AGAIN = """
import ciel


def main():
    commands = (
        "paste {a} {a} | tail -n 1",
        "f={a}; paste $f $f | tail -n 1",
        "for f in {a} {a}; do tail -n 1 $f; done | paste - -",
    )
    for mode in MODES:
        for command in commands:
            made = ciel.sh("seq 4000", stdout=ciel.stream(mode=mode))
            print(mode, ciel.sh(command, a=made.stream()).result())
"""


@pytest.mark.parametrize("slots", ["-j1", "-j2"])
def test_stream_that_the_command_names_again_is_a_file(tmp_path: Path, slots: str) -> None:
    """Each opening of `paste {a} {a}` had a part of the bytes, so it was refused."""
    modes = ("no_stream", "overlap", *STORED, "direct")
    ended = jobs.run(tmp_path, NAMES_AGAIN.replace("MODES", repr(modes)), options=(slots,))
    expected = [r"b'4000\t4000\n'"] * 3
    assert ended.lines == [f"{mode} {found}" for mode in modes for found in expected], ended
