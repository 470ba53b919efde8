"""What the page on pipelines promises beside the bytes: where they are, who waits, what is kept.

A producer and its reader meet by named pipes, so that both run at the same time.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import ciel
import jobs
import pytest

WAYS = """
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import ciel

ways = {
    "stored": ciel.stream,
    "once": ciel.stream(single_consumer=True),
    "no_stream": ciel.stream(mode="no_stream"),
    "overlap": ciel.stream(mode="overlap"),
}
"""


def run(folder: Path, main: str, *args: str, option: str = "-j2") -> list[str]:
    """Runs a job; what it has printed."""
    ended = jobs.run(folder, WAYS + main, *args, options=(option,))
    assert ended.status == 0, ended.talk
    return ended.lines


ON_DISK = """
def main(way: str, reader: str) -> None:
    os.mkfifo("pipe")
    made = ciel.sh("read line < pipe; head -c 80000000 /dev/zero", stdout=ways[way])
    count = "head -c 60000000 | wc -c; du -sk state | cut -f 1; cat | wc -c"
    script = f"echo begun > pipe; {{{{ {count}; }}}}"
    if reader == "stdin":
        read = ciel.sh(script, stdin=made)
    else:
        read = ciel.sh(f"{{{{ {script}; }}}} < {{a}}", a=made.stream())
    print(*read.result().split())
"""


@pytest.mark.parametrize("reader", ["stdin", "name"])
@pytest.mark.parametrize("way", ["stored", "once"])
def test_disk_is_not_touched_by_a_stream_of_one_reader(
    tmp_path: Path, way: str, reader: str
) -> None:
    (line,) = run(tmp_path, ON_DISK, way, reader)
    first, disk_kib, rest = (int(word.strip("b'")) for word in line.split())
    assert (first, rest) == (60_000_000, 20_000_000)
    assert (disk_kib < 10_000) == (way == "once"), disk_kib


KEPT = """
# A file that a command names by a plain word would count for its kept result.
def main(way: str) -> None:
    made = ciel.sh("echo run >> $(echo ra)n; seq 3", stdout=ways[way], keep=True)
    print(int(ciel.sh("wc -l", stdin=made).result()))
"""


@pytest.mark.parametrize(("way", "runs"), [("stored", 1), ("once", 2)])
def test_result_of_a_stream_of_one_reader_is_not_kept_across_runs(
    tmp_path: Path, way: str, runs: int
) -> None:
    for _ in range(2):
        assert run(tmp_path, KEPT, way) == ["3"]
    assert (tmp_path / "ran").read_text() == "run\n" * runs


WHOLE = """
def main() -> None:
    made = ciel.sh("echo first; touch ended", stdout=ways["no_stream"])
    script = "test -e ended && test -f /dev/stdin && cat"
    print(ciel.sh(script, stdin=made).result().decode(), end="")
"""


def test_reader_in_no_stream_starts_when_the_output_is_whole(tmp_path: Path) -> None:
    assert run(tmp_path, WHOLE) == ["first"]


LATE = """
import sys

LOOK = "import select; print(len(select.select([0], [], [], 0)[0]))"


def main() -> None:
    os.mkfifo("written")
    os.mkfifo("end")
    made = ciel.sh(
        "echo first; echo written > written; read line < end; echo last", stdout=ways["overlap"]
    )
    script = "read line < written; {python} -c {look}; echo end > end; cat"
    read = ciel.sh(script, stdin=made, python=sys.executable, look=LOOK)
    print(read.result().decode(), end="")
"""


def test_reader_in_overlap_has_the_first_byte_when_the_output_is_whole(tmp_path: Path) -> None:
    assert run(tmp_path, LATE) == ["0", "first", "last"]


AGAIN = """
@ciel.task
def says(what: int) -> int:
    print("child", what)
    return what


@ciel.task(retries=3)
def dies() -> Iterator[int]:
    yield 1
    if not Path("died").exists():
        Path("pipe").read_text()
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield 2


@ciel.task
def reads(values: Iterable[int]) -> int:
    found = []
    for value in values:
        print("value", value)
        found.append(says.spawn(value))
        if not Path("died").exists():
            Path("pipe").write_text("read")
    print("read all")
    return sum(one.result() for one in found)


def main() -> None:
    os.mkfifo("pipe")
    found = reads.spawn(dies.spawn().stream())
    print("behind")
    print(found.result())
"""


def test_what_a_reader_prints_and_spawns_is_there_once_although_it_starts_again(
    tmp_path: Path,
) -> None:
    expected = ["value 1", "child 1", "value 2", "child 2", "read all", "behind", "3"]
    assert run(tmp_path, AGAIN, option="-j3") == expected


HELD = """
def main() -> None:
    os.mkfifo("gate")
    made = ciel.sh("seq 100; read line < gate; seq 3", stdout=ciel.stream, name="writes")
    found = ciel.sh("head -n 1", stdin=made, name="leaves")
    other = ciel.sh("echo a")
    for _ in range(3):
        other = ciel.sh("cat {other}", other=other)
    other = ciel.sh("cat {other}; touch free", other=other)
    print(int(found.result()), other.result())
"""


def test_reader_that_has_ended_holds_no_slot_and_ps_shows_for_whom_it_waits(
    tmp_path: Path,
) -> None:
    # The other tasks have the second slot one after the other, so the reader has given it back.
    process = jobs.start(jobs.write(tmp_path, WAYS + HELD), options=("-j2",))
    shown, deadline = "", time.monotonic() + jobs.DEADLINE_S
    waits = re.compile(r"leaves@\w+ +suspended +waiting for writes@")
    try:
        while not (waits.search(shown) and (tmp_path / "free").exists()):
            assert time.monotonic() < deadline and process.poll() is None, shown
            shown = jobs.command(tmp_path, "ps").printed.decode()
        (tmp_path / "gate").write_text("go\n")
        ended = jobs.end_of(process)
    finally:
        process.kill()
    assert ended.lines == ["1 b'a\\n'"], ended.talk


def test_command_with_more_streams_than_it_may_read_has_all_their_bytes(tmp_path: Path) -> None:
    with ciel.Session(jobs=3, state=tmp_path / "state") as session:
        made = [session.sh("echo {n}", n=n, stdout=ciel.stream) for n in range(60)]
        found = session.sh("cat {parts}", parts=[one.stream() for one in made])
        assert found.result() == b"".join(b"%d\n" % n for n in range(60))


SCRIPT = """
made = spawn_exec("shell", {"command": "echo a; read line < first; echo b",
                            "stream": true, "stream_mode": "indirect_pipe"}, 1)[0];
read = spawn_exec("shell", {"command": "echo go > first; cat", "stdin": [made]}, 1)[0];
print(text(read));
made = spawn_exec("shell", {"command": "echo c; read line < second; echo d", "stream": true}, 1)[0];
read = spawn_exec("stdinout", {"command_line": ["sh", "-c", "echo go > second; cat"],
                               "inputs": [made], "stdin_options": {"mode": "overlap"}}, 1)[0];
print(text(read));
made = spawn_exec("stdinout", {"command_line": ["sh", "-c", "echo e; read line < third; echo f"],
                               "stream": true, "single_consumer": true}, 1)[0];
read = spawn_exec("shell", {"command": "echo go > third; cat", "stdin": [made]}, 1)[0];
print(text(read));
"""


def test_stream_hints_of_skywriting_choose_the_modes_of_readers(tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "job.sw").write_text(SCRIPT)
    ended = jobs.command(tmp_path, "run", "-j2", "job.sw")
    assert ended.status == 0, ended.talk
    assert ended.printed.decode().split() == list("abcdef"), ended.printed


LIBRARY = """
include "stdinout";
made = stdinout_stream([], ["sh", "-c", "echo a; read line < gate; echo b"]);
return text(stdinout([made], ["sh", "-c", "echo go > gate; cat"]));
"""


HINT = LIBRARY.replace(
    'stdinout_stream([], ["sh", "-c", "echo a; read line < gate; echo b"])',
    'spawn_exec("stdinout", {"inputs": [], "stream_output": true, "command_line": '
    '["sh", "-c", "echo a; read line < gate; echo b"]}, 1)[0]',
)


@pytest.mark.parametrize("script", [LIBRARY, HINT], ids=["library", "hint"])
def test_stdinout_stream_of_skywriting_is_read_while_it_is_written(
    tmp_path: Path, script: str
) -> None:
    """The function of the library made no stream, as if a task could not read one.

    Nor did the argument `stream_output`, by which programs of CIEL ask for one.
    """
    os.mkfifo(tmp_path / "gate")
    (tmp_path / "job.sw").write_text(script)
    ended = jobs.command(tmp_path, "run", "-j2", "job.sw")
    assert ended.printed == b'"a\\nb\\n"\n', ended.talk
