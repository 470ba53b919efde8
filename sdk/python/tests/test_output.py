"""Tasks that write their output as a file, which others read while it is written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
import zipfile
from array import array
from collections.abc import Iterator
from pathlib import Path

import ciel
import jobs
import pytest
from ciel import testing
from sessions import with_slots


@ciel.task(writes=True)
def numbers(count: int) -> None:
    """Writes lines."""
    with ciel.output() as out:
        for n in range(count):
            out.write(b"%d\n" % n)


@ciel.task(writes=True)
def rows(count: int) -> None:
    """Writes a table by `csv`."""
    with io.TextIOWrapper(ciel.output(), newline="") as text:
        csv.writer(text).writerows([n, n * n] for n in range(count))


@ciel.task(writes=True)
def document(count: int) -> None:
    """Writes a document by `json`."""
    with io.TextIOWrapper(ciel.output()) as text:
        json.dump({"numbers": [*range(count)]}, text)


@ciel.task(writes=True)
def packed(count: int) -> None:
    """Writes by `gzip`."""
    with gzip.GzipFile(fileobj=ciel.output(), mode="wb", mtime=0) as file:
        file.write(b"x" * count)


@ciel.task(writes=True)
def archive(mode: str) -> None:
    """Writes an archive by `tarfile`."""
    with tarfile.open(fileobj=ciel.output(), mode=mode) as tar:  # type: ignore[call-overload]
        entry = tarfile.TarInfo("a.txt")
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"hello"))


@ciel.task(writes=True)
def zipped() -> None:
    """Writes an archive by `zipfile`."""
    with zipfile.ZipFile(ciel.output(), "w") as file:
        file.writestr(zipfile.ZipInfo("a.txt"), "hello")


@ciel.task(writes=True)
def nothing() -> None:
    """Writes nothing."""


@ciel.task(writes=True)
def words(count: int) -> None:
    """Writes numbers of eight bytes by one call, between others."""
    out = ciel.output()
    out.write(b"<")
    out.write(array("q", range(count)))
    out.write(b">")


@ciel.task(joined=True)
def yielded(count: int) -> Iterator[bytes]:
    """The same, yielded."""
    yield b"<"
    yield array("q", range(count)).tobytes()
    yield b">"


@ciel.task
def total(stream: ciel.Reading[bytes]) -> int:
    """Reads lines."""
    return sum(int(line) for line in stream)


session = with_slots(1, 2)


@pytest.mark.parametrize("count", [0, 1, 100_000])
def test_what_a_task_writes_is_read_by_tasks_commands_and_the_program(
    session: ciel.Session, count: int
) -> None:
    made = session.submit(numbers, count)
    assert session.submit(total, made.stream()).result() == sum(range(count))
    assert int(session.sh("wc -l", stdin=made).result()) == count
    assert sum(int(line) for line in made.stream()) == sum(range(count))
    assert made.result() == b"".join(b"%d\n" % n for n in range(count))


@pytest.mark.parametrize("count", [0, 1, 1 << 14, (1 << 14) + 1, 1_000_003])
def test_long_pieces_that_are_written_by_one_call_are_whole(
    session: ciel.Session, count: int
) -> None:
    expected = b"<" + array("q", range(count)).tobytes() + b">"
    for task in (words, yielded):
        made = session.submit(task, count)
        assert int(session.sh("wc -c", stdin=made.stream()).result()) == len(expected)
        assert made.result() == expected


def test_modules_that_write_to_files_write_outputs(session: ciel.Session) -> None:
    table = session.submit(rows, 3).result()
    assert table == b"0,0\r\n1,1\r\n2,4\r\n"
    assert json.loads(session.submit(document, 1000).result()) == {"numbers": [*range(1000)]}
    assert gzip.decompress(session.submit(packed, 100_000).result()) == b"x" * 100_000
    for mode in ("w", "w|", "w:gz"):
        with tarfile.open(fileobj=io.BytesIO(session.submit(archive, mode).result())) as tar:
            file = tar.extractfile("a.txt")
            assert file is not None and file.read() == b"hello"
    with zipfile.ZipFile(io.BytesIO(session.submit(zipped).result())) as found:
        assert found.read("a.txt") == b"hello"
    assert session.submit(nothing).result() == b""


def test_frame_of_pandas_is_written_as_a_table(session: ciel.Session) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")

    @ciel.task(writes=True)
    def table(count: int) -> None:
        frame = pandas.DataFrame({"n": range(count)})
        frame.to_csv(ciel.output(), index=False, mode="wb")

    assert session.submit(table, 3).result() == b"n\n0\n1\n2\n"


def test_plain_call_and_serial_program_give_the_bytes() -> None:
    assert numbers(3) == b"0\n1\n2\n"

    def main() -> tuple[bytes, int]:
        made = numbers.spawn(4)
        return made.result(), total.spawn(made.stream()).result()

    assert testing.run(main) == (b"0\n1\n2\n3\n", 6)


@ciel.task(writes=True)
def outer() -> None:
    """Calls another one that writes."""
    inner = numbers(2)
    ciel.output().write(b"<" + inner + b">")


@ciel.task(writes=True)
def looks() -> None:
    """Writes what the file says of itself."""
    out = ciel.output()
    may = (out.seekable(), out.readable(), out.writable())
    told = (may, out.mode, out.tell(), out.write(b"1234"), out.tell())
    out.write(repr(told).encode())


def test_plain_call_and_serial_program_write_the_bytes_that_the_task_writes(
    session: ciel.Session,
) -> None:
    """They wrote to a file that could go back, so `zipfile` wrote another archive."""
    for made in (zipped, looks):
        written = session.submit(made).result()

        def main(made: ciel.Task[[], bytes] = made) -> bytes:
            return made.spawn().result()

        assert made() == testing.run(main) == written
    with pytest.raises(OSError):
        seeks()  # type: ignore[call-arg, unused-ignore]


def test_plain_call_inside_has_an_output_of_its_own(session: ciel.Session) -> None:
    assert session.submit(outer).result() == b"<0\n1\n>"


@ciel.task(writes=True)  # type: ignore[arg-type]
def answers() -> int:
    """Gives a result beside what it writes."""
    ciel.output().write(b"x")
    return 3


@ciel.task
def plain() -> None:
    """Has no output to write."""
    ciel.output()


@ciel.task(writes=True)  # type: ignore[arg-type]
def follows() -> bytes:
    """Ends with a tail."""
    return numbers.tail(3)


@ciel.task(writes=True)  # type: ignore[arg-type]
def seeks() -> int:
    """Goes back."""
    out = ciel.output()
    out.write(b"12345")
    return out.seek(0) if (out.tell(), out.seekable()) == (5, False) else 0


def test_what_has_no_meaning_is_refused(session: ciel.Session) -> None:
    with pytest.raises(TypeError, match="its result is what it writes to ciel.output"):
        session.submit(answers).result()
    with pytest.raises(TypeError, match="answers returns int"):
        answers()  # type: ignore[call-arg, unused-ignore]
    with pytest.raises(ciel.CielError, match="no output to write"):
        session.submit(plain).result()
    with pytest.raises(ciel.CielError, match="no output to write"):
        ciel.output()
    with pytest.raises(ciel.Refused, match="cannot end with a tail"):
        session.submit(follows).result()
    with pytest.raises(OSError):
        session.submit(seeks).result()
    with pytest.raises(TypeError, match="yields and has the option writes"):
        ciel.task(writes=True)(lines)  # type: ignore[arg-type, unused-ignore]
    with pytest.raises(TypeError, match="no outputs=2"):
        ciel.task(ciel.output, writes=True, outputs=2)  # type: ignore[call-overload, unused-ignore]
    with pytest.raises(TypeError, match="belongs to the definition"):
        numbers.options(writes=True)  # type: ignore[call-arg, unused-ignore]


def lines() -> Iterator[bytes]:
    """Yields."""
    yield b""


PIPES = """
import os
import signal
from pathlib import Path

import ciel


@ciel.task(writes=True)
def talks() -> None:
    out = ciel.output()
    for n in range(3):
        out.write(b"%d\\n" % n)
        out.flush()
        open(f"pipe{n}", "rb").read()


@ciel.task
def answers(stream: ciel.Reading[bytes]) -> list[str]:
    found = []
    for n, line in enumerate(stream):
        found.append(line.decode())
        open(f"pipe{n}", "wb").close()
    return found


@ciel.task(writes=True, retries=1)
def dies(count: int) -> None:
    out = ciel.output()
    out.write(b"x" * count)
    out.flush()
    if not os.path.exists("died"):
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    out.write(b"end")


@ciel.task
def length(stream: ciel.Reading[bytes]) -> int:
    return len(stream.open().read())


@ciel.task
def first(stream: ciel.Reading[bytes]) -> str:
    return next(stream).decode()


@ciel.task(writes=True)
def many() -> None:
    for n in range(200_000):
        ciel.output().write(b"%d\\n" % n)
    Path("whole").touch()


@ciel.task(writes=True)
def breaks() -> None:
    out = ciel.output()
    out.write(b"a\\n")
    out.flush()
    open("pipe0", "rb").read()
    out.write(b"b\\n")
    raise ValueError("broken")


def main(what):
    if what == "breaks":
        os.mkfifo("pipe0")
        found = []
        try:
            for line in breaks.spawn().stream():
                found.append(line.decode())
                if len(found) == 1:
                    open("pipe0", "wb").close()
        except ValueError as error:
            return [*found, str(error)]
    if what == "talks":
        for n in range(3):
            os.mkfifo(f"pipe{n}")
        return answers.spawn(talks.spawn().stream()).result()
    if what == "dies":
        return length.spawn(dies.spawn(300_000).stream()).result()
    made = many.spawn()
    found = first.spawn(made.stream()).result()
    return [found, len(made.result()), os.path.exists("whole")]
"""


def test_reader_has_what_was_flushed_before_the_task_has_ended(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, PIPES, "talks").value == ["0\n", "1\n", "2\n"]


def test_task_that_dies_while_it_writes_is_no_end_of_its_output(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, PIPES, "dies").value == 300_003


def test_reader_has_what_was_written_before_a_failure(tmp_path: Path) -> None:
    """What was not flushed was lost."""
    assert jobs.run(tmp_path, PIPES, "breaks").value == ["a\n", "b\n", "broken"]


def test_reader_that_leaves_early_does_not_fail_who_writes(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, PIPES, "leaves").value == ["0\n", 1_288_890, True]
