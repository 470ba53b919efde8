"""Files of `ciel.open` in programs without an engine: faces, modes, strands, followers, misuse."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ciel
from ciel import ordered, testing
from conditions import DEADLINE_S


def in_thread(call: Callable[[], Any]) -> Any:
    """What a call gives or raises on a thread that is no strand."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(DEADLINE_S)


def test_text_and_bytes_are_written_by_every_face(tmp_path: Path) -> None:
    with ciel.open(tmp_path / "text") as text:
        print("é", 1, file=text)
        text.writelines(["a\n", "b\n"])
        assert text.write("ü") == 1
    assert (tmp_path / "text").read_bytes() == "é 1\na\nb\nü".encode()
    with ciel.open(os.fsencode(tmp_path / "bytes"), encoding=None) as raw:
        assert raw.write(memoryview(b"abc")) == 3
        raw.writelines([b"d", bytearray(b"e"), b""])
    assert (tmp_path / "bytes").read_bytes() == b"abcde"


def test_children_write_where_they_were_started_though_they_end_in_reverse(tmp_path: Path) -> None:
    path = tmp_path / "log"
    events = [threading.Event() for _ in range(5)]

    def child(number: int) -> None:
        if number + 1 < len(events):
            assert events[number + 1].wait(DEADLINE_S)
        print("child", number, file=log)
        events[number].set()

    with ciel.open(path) as log:
        threads = []
        for number in range(5):
            print("before", number, file=log)
            threads.append(ordered.thread(child, (number,)))
        print("end", file=log)
        for one in threads:
            one.join(DEADLINE_S)
    expected = [f"{word} {number}" for number in range(5) for word in ("before", "child")]
    assert path.read_text().splitlines() == [*expected, "end"]


def test_map_of_a_pool_writes_in_the_order_of_its_arguments(tmp_path: Path) -> None:
    def work(number: int) -> int:
        print(number, file=log)
        return number

    with ciel.open(tmp_path / "log") as log, ThreadPoolExecutor(8) as pool:
        assert list(ordered.executor(pool).map(work, range(500))) == list(range(500))
        print("end", file=log)
    assert (tmp_path / "log").read_text().split() == [*map(str, range(500)), "end"]


def test_coroutines_write_through_forked_strands(tmp_path: Path) -> None:
    async def main() -> None:
        strands = [ordered.fork() for _ in range(4)]
        calls = [asyncio.to_thread(one.run, log.write, f"{i}\n") for i, one in enumerate(strands)]
        await asyncio.gather(*reversed(calls))

    with ciel.open(tmp_path / "log") as log:
        asyncio.run(main())
    assert (tmp_path / "log").read_text() == "0\n1\n2\n3\n"


def test_exception_of_a_submitted_call_is_kept_and_its_output_stays(tmp_path: Path) -> None:
    def work(number: int) -> None:
        print("begin", number, file=log)
        if number == 1:
            raise KeyError(number)
        print("end", number, file=log)

    with ciel.open(tmp_path / "log") as log, ThreadPoolExecutor(2) as pool:
        futures = [ordered.executor(pool).submit(work, number) for number in range(3)]
        with pytest.raises(KeyError):
            futures[1].result(DEADLINE_S)
    assert (tmp_path / "log").read_text().splitlines() == [
        "begin 0",
        "end 0",
        "begin 1",
        "begin 2",
        "end 2",
    ]


def test_exception_of_the_first_of_a_join_cuts_the_second_and_is_raised(tmp_path: Path) -> None:
    def first() -> None:
        log.write("first\n")
        raise KeyError("first")

    with ciel.open(tmp_path / "log") as log:
        with pytest.raises(KeyError):
            ordered.join(first, lambda: log.write("second\n"))
        log.write("behind\n")
    assert (tmp_path / "log").read_text() == "first\nbehind\n"


@pytest.mark.parametrize("raises", ["neither", "first", "second"])
@pytest.mark.parametrize("starts", ["first", "second", "both"])
def test_threads_outlive_the_join_that_has_started_them(
    tmp_path: Path, starts: str, raises: str
) -> None:
    """What followed the join was lost, and closing refused, if the first function had raised while
    a thread of the second one still ran."""
    go = threading.Event()
    threads: list[ordered.Thread] = []

    def late(name: str) -> None:
        assert go.wait(DEADLINE_S)
        print("thread of", name, file=log)

    def work(name: str) -> None:
        print(name, "begins", file=log)
        if starts in (name, "both"):
            threads.append(ordered.thread(late, (name,)))
        print(name, "ends", file=log)
        if raises == name:
            raise KeyError(name)

    with ciel.open(tmp_path / "log") as log:
        try:
            ordered.join(lambda: work("first"), lambda: work("second"))
        except KeyError as error:
            print(error.args[0], "has raised", file=log)
        print("behind", file=log)
        go.set()
        for one in threads:
            one.join(DEADLINE_S)
    wanted = []
    for name in ("first",) if raises == "first" else ("first", "second"):
        wanted.append(f"{name} begins")
        wanted += [f"thread of {name}"] if starts in (name, "both") else []
        wanted.append(f"{name} ends")
    wanted += [] if raises == "neither" else [f"{raises} has raised"]
    assert (tmp_path / "log").read_text().splitlines() == [*wanted, "behind"]


def test_join_gives_both_results(tmp_path: Path) -> None:
    with ciel.open(tmp_path / "log") as log:
        assert ordered.join(lambda: log.write("ab"), lambda: log.write("c")) == (2, 1)
    assert (tmp_path / "log").read_text() == "abc"


def test_cancelled_call_writes_nothing_and_holds_nobody_up(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        assert go.wait(DEADLINE_S)
        log.write("blocked\n")

    with ciel.open(tmp_path / "log") as log, ThreadPoolExecutor(1) as pool:
        executor = ordered.executor(pool)
        executor.submit(block)
        assert begun.wait(DEADLINE_S)
        second: Future[int] = executor.submit(log.write, "never\n")
        assert second.cancel()
        executor.submit(log.write, "third\n")
        go.set()
    assert (tmp_path / "log").read_text() == "blocked\nthird\n"


def test_follower_always_sees_a_prefix(tmp_path: Path) -> None:
    path, ended = tmp_path / "log", threading.Event()
    lines = [f"{number:05}\n" * 400 for number in range(200)]
    expected = "".join(lines).encode()
    lengths: list[int] = []

    def follow() -> None:
        is_last = False
        while not is_last:
            is_last = ended.is_set()
            found = path.read_bytes()
            assert expected.startswith(found), f"{len(found)} bytes are no prefix"
            lengths.append(len(found))

    def work(line: str) -> None:
        log.write(line)
        log.flush()

    with ciel.open(path) as log:
        with ThreadPoolExecutor(1) as watcher, ThreadPoolExecutor(4) as pool:
            following = watcher.submit(follow)
            list(ordered.executor(pool).map(work, lines))
            log.close()
            ended.set()
            following.result(DEADLINE_S)
    assert lengths[-1] == len(expected)
    assert lengths == sorted(lengths)


def test_what_leads_and_is_flushed_is_in_the_file_at_once(tmp_path: Path) -> None:
    with ciel.open(tmp_path / "log") as log:
        log.write("now")
        log.flush()
        assert (tmp_path / "log").read_text() == "now"


def test_local_pointer_of_a_child_begins_at_its_parents_and_moves_alone(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("0123456789")
    with ciel.open(path, "local", exists=True) as file:
        assert file.read(3) == "012"
        strand = ordered.fork()
        assert file.read(2) == "34"
        assert in_thread(lambda: strand.run(lambda: (file.read(4), file.tell()))) == ("3456", 7)
        assert file.tell() == 5
        assert ordered.join(lambda: file.read(1), lambda: file.read(2)) == ("5", "56")
        assert file.read() == "56789"
        assert file.seek(-1, os.SEEK_END) == 9
        file.write("X")
    assert path.read_text() == "012345678X"


def test_global_pointer_is_one_for_all(tmp_path: Path) -> None:
    with ciel.open(tmp_path / "data", "global") as file:
        file.write("é1\n2\n")
        in_thread(lambda: file.write("3\n"))
        file.seek(0)
        assert file.read(2) == "é1"
        assert in_thread(file.readline) == "\n"
        assert list(file) == ["2\n", "3\n"]
        assert file.read(1) == ""


def test_bytes_in_a_file_of_text_are_refused_by_name(tmp_path: Path) -> None:
    """It said that 'bytes' has no attribute 'encode'."""
    with ciel.open(tmp_path / "text") as text:
        anything: Any = text
        for value, kind in ((b"x", "bytes"), (3, "int")):
            with pytest.raises(TypeError, match=f"takes str, not {kind}: its buffer takes bytes"):
                anything.write(value)
        text.buffer.write(b"y")
    assert (tmp_path / "text").read_bytes() == b"y"


def test_bytes_are_read_into_buffers(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"abcdef")
    with ciel.open(tmp_path / "data", "local", encoding=None, exists=True) as file:
        buffer = bytearray(4)
        assert (file.readinto(buffer), bytes(buffer)) == (4, b"abcd")
        assert file.readall() == b"ef"


def test_file_ends_with_the_last_of_its_handles(tmp_path: Path) -> None:
    log = ciel.open(tmp_path / "log")
    other = log.dup()
    log.write("a")
    log.close()
    other.write("b")
    other.close()
    other.close()
    assert (tmp_path / "log").read_text() == "ab"
    with pytest.raises(ValueError, match="log.* is closed"):
        other.write("c")
    with pytest.raises(ValueError, match="log.* is closed"):
        log.dup()


def test_file_that_exists_is_continued_or_emptied(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with pytest.raises(FileNotFoundError) as missing:
        ciel.open(path, exists=True)
    assert missing.value.filename == str(path)
    path.write_text("old\n")
    with ciel.open(path, exists=True) as log:
        log.write("new\n")
    assert path.read_text() == "old\nnew\n"
    ciel.open(path).close()
    assert path.read_text() == ""


def test_program_that_does_not_close_still_writes(tmp_path: Path) -> None:
    program = "import ciel, sys; log = ciel.open(sys.argv[1]); log.write('kept')"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "log")], check=True)
    assert (tmp_path / "log").read_text() == "kept"


@pytest.mark.parametrize("act", ["read", "readline", "tell", "fileno"])
def test_serial_append_is_only_written(tmp_path: Path, act: str) -> None:
    with ciel.open(tmp_path / "log") as log:
        assert not log.readable() and not log.seekable() and log.writable()
        with pytest.raises(io.UnsupportedOperation, match="log"):
            getattr(log, act)()
        with pytest.raises(io.UnsupportedOperation, match="log"):
            log.seek(0)


def test_thread_that_was_not_forked_is_told_how_to_be(tmp_path: Path) -> None:
    with ciel.open(tmp_path / "log") as log:
        with pytest.raises(RuntimeError, match=r"log.*ciel\.ordered\.Thread"):
            in_thread(lambda: log.write("x"))


def test_close_before_strands_have_ended_is_refused_and_can_be_repeated(tmp_path: Path) -> None:
    go = threading.Event()
    log = ciel.open(tmp_path / "log")

    def late() -> None:
        assert go.wait(DEADLINE_S)
        log.write("late")

    one = ordered.thread(late)
    with pytest.raises(RuntimeError, match=r"log.*strands run.*join the threads"):
        log.close()
    assert not log.closed
    go.set()
    one.join(DEADLINE_S)
    log.close()
    assert (tmp_path / "log").read_text() == "late"


def test_file_that_somebody_else_has_changed_is_stale_when_it_is_closed(tmp_path: Path) -> None:
    """The number was that of an error of the device, EIO."""
    log = ciel.open(tmp_path / "log")
    log.write("mine")
    log.flush()
    with open(tmp_path / "log", "a") as other:
        other.write("theirs")
    with pytest.raises(OSError, match="log") as stale:
        log.close()
    assert stale.value.errno == errno.ESTALE


def test_second_open_of_one_file_is_refused_in_any_process(tmp_path: Path) -> None:
    with ciel.open(tmp_path / "log") as log:
        log.write("a")
        with pytest.raises(OSError, match="log.*open for serial append already") as refused:
            ciel.open(tmp_path / "log")
        program = "import ciel, sys; ciel.open(sys.argv[1]).write('b')"
        words = [sys.executable, "-c", program, str(tmp_path / "log")]
        other = subprocess.run(words, stderr=subprocess.PIPE, check=False)
        assert b"open for serial append already" in other.stderr
        log.write("c")
    assert refused.value.errno == errno.EBUSY
    assert (tmp_path / "log").read_text() == "ac"
    subprocess.run(words, check=True)
    assert (tmp_path / "log").read_text() == "b"


def test_change_from_outside_is_found(tmp_path: Path) -> None:
    log = ciel.open(tmp_path / "log")
    log.write("abc")
    log.flush()
    with open(tmp_path / "log", "a", encoding="utf-8") as outside:
        outside.write("more")
    with pytest.raises(OSError, match="log.*changed from outside.*7 bytes instead of 3"):
        log.close()
    assert log.closed


def test_full_disk_names_the_valid_length() -> None:
    log = ciel.open("/dev/full")
    log.write("x")
    with pytest.raises(OSError, match="from byte 0 on") as full:
        log.flush()
    assert full.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="/dev/full"):
        log.close()


def test_disk_that_becomes_full_in_the_middle_leaves_a_prefix(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    lines = [f"{number:09}\n" for number in range(300_000)]
    try:
        log = ciel.open(small / "log")
        with ThreadPoolExecutor(2) as pool, pytest.raises(OSError, match="from byte") as full:
            list(ordered.executor(pool).map(lambda n: log.writelines(lines[n : n + 5000]),
                                            range(0, len(lines), 5000)))
        assert full.value.errno == errno.ENOSPC
        with pytest.raises(OSError, match="from byte"):
            log.write("x")
        with pytest.raises(OSError, match="from byte") as closed:
            log.close()
        held = (small / "log").read_bytes()
        assert f"from byte {len(held)} on" in str(closed.value)
        assert held and "".join(lines).encode().startswith(held)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_output_beyond_all_buffers_is_whole_and_in_order(tmp_path: Path) -> None:
    size = 1 << 20
    count = int(os.environ.get("CIEL_OUTPUT_BYTES", "20000000")) // size
    with ciel.open(tmp_path / "log", encoding=None) as log, ThreadPoolExecutor(2) as pool:
        # Later pieces are written first, two by two.
        strands = [ordered.fork() for _ in range(count)]
        turns = [turn ^ 1 if turn ^ 1 < count else turn for turn in range(count)]
        pieces = (pool.submit(strands[n].run, log.write, bytes([n % 251]) * size) for n in turns)
        for piece in list(pieces):
            piece.result()
    with open(tmp_path / "log", "rb") as file:
        for number in range(count):
            assert file.read(size) == bytes([number % 251]) * size
        assert not file.read(1)


def test_wait_for_a_pipe_lets_other_threads_run(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(path.read_bytes)
        with ciel.open(path, encoding=None, exists=True) as pipe:
            pipe.write(b"x" * 1_000_000)
        assert len(reading.result(DEADLINE_S)) == 1_000_000


def test_other_arguments_are_refused_before_the_file_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("kept")
    mode: Any = "w"
    with pytest.raises(ValueError, match="log.*'w'.*'serial-append'"):
        ciel.open(path, mode)
    with pytest.raises(ValueError, match="utf-16"):
        ciel.open(path, encoding="utf-16")
    with pytest.raises(LookupError):
        ciel.open(path, encoding="no such")
    with pytest.raises(LookupError):
        ciel.open(path, errors="no such")
    assert path.read_text() == "kept"


def test_strand_runs_once(tmp_path: Path) -> None:
    strand = ordered.fork()
    assert strand.run(int, "7") == 7
    with pytest.raises(RuntimeError, match="runs once"):
        strand.run(int)
    one = ordered.thread(int)
    one.join(DEADLINE_S)
    with pytest.raises(RuntimeError):
        one.start()


def test_pool_of_processes_and_a_pool_that_has_ended_are_refused(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1) as processes, pytest.raises(TypeError, match="pool of threads"):
        ordered.executor(processes)
    pool = ThreadPoolExecutor(1)
    with ciel.open(tmp_path / "log") as log, ordered.executor(pool) as executor:
        executor.shutdown()
        with pytest.raises(RuntimeError):
            executor.submit(log.write, "x")
        log.write("y")
    assert (tmp_path / "log").read_text() == "y"


def test_many_strands_and_empty_writes(tmp_path: Path) -> None:
    """`CIEL_STRANDS` is how many."""
    count = int(os.environ.get("CIEL_STRANDS", "100000"))
    with ciel.open(tmp_path / "log", encoding=None) as log:
        strands = [ordered.fork() for _ in range(count)]
        for number, strand in enumerate(reversed(strands)):
            strand.run(log.write, b"" if number % 2 else b"x")
        log.write(b"y")
    assert (tmp_path / "log").read_bytes() == b"x" * ((count + 1) // 2) + b"y"


def test_threads_without_the_interpreter_lock_write_in_order(tmp_path: Path) -> None:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this Python has the interpreter lock")
    with ciel.open(tmp_path / "log") as log, ThreadPoolExecutor(8) as pool:
        list(ordered.executor(pool).map(lambda n: log.write(f"{n}\n"), range(10_000)))
    assert (tmp_path / "log").read_text().split() == [*map(str, range(10_000))]


def test_file_of_tasks_is_text_in_utf_8_and_has_no_pointers(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with testing.serial():
        for mode in ("local", "global"):
            with pytest.raises(ValueError, match="log.*a file of tasks has the mode"):
                ciel.open(path, mode)
        with pytest.raises(ValueError, match="log.*UTF-8"):
            ciel.open(path, encoding="latin-1")
        with pytest.raises(FileNotFoundError):
            ciel.open(path, exists=True)
        with ciel.open(path) as log:
            log.write("käse\n")
    assert path.read_bytes() == "käse\n".encode()
