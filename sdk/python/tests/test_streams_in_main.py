"""The program itself, and a session, read streams while they are written.

Producer and program meet by named pipes: the producer writes the next piece when the program has
opened the pipe of the last one, so a program that waited for the whole would wait for ever.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import ciel
import ciel.testing
import jobs
import pytest

TASKS = """
import gzip
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import ciel


def meet(name: str) -> None:
    '''Waits until the other side is there.'''
    open(name, "rb").read()


def go_on(name: str) -> None:
    '''Lets the other side continue, which waits there or will.'''
    open(name, "wb").close()


@ciel.task
def numbers(count: int) -> Iterator[int]:
    for n in range(count):
        yield n


@ciel.task
def answered(count: int) -> Iterator[int]:
    for n in range(count):
        yield n
        meet(f"pipe{n}")
"""


def run(folder: Path, main: str, *args: str, option: str = "-j2") -> list[str]:
    """Runs a job; what it has printed."""
    ended = jobs.run(folder, TASKS + main, *args, options=(option,))
    assert ended.status == 0, ended.talk
    return ended.lines


VALUES = """
def main():
    for n in range(3):
        os.mkfifo(f"pipe{n}")
    for n in answered.spawn(3).stream():
        print("has", n)
        go_on(f"pipe{n}")
"""


def test_main_has_each_value_as_soon_as_it_was_yielded(tmp_path: Path) -> None:
    assert run(tmp_path, VALUES) == ["has 0", "has 1", "has 2"]


LINES = """
def main():
    os.mkfifo("first")
    os.mkfifo("second")
    script = "echo a; read line < first; echo b; read line < second; printf c"
    made = ciel.sh(script, stdout=ciel.stream)
    with made.open() as file:
        print(file.readline(), flush=True)
        Path("first").write_text("go\\n")
        print(file.read(2), flush=True)
        Path("second").write_text("go\\n")
        print(file.read(2), file.read(2))
    print([*made.stream()], made.result())
"""


def test_main_reads_the_output_of_a_command_as_a_file_while_it_is_printed(tmp_path: Path) -> None:
    assert run(tmp_path, LINES) == [
        "b'a\\n'",
        "b'b\\n'",
        "b'c' b''",
        "[b'a\\n', b'b\\n', b'c'] b'a\\nb\\nc'",
    ]


def test_session_has_each_line_as_soon_as_it_was_printed(tmp_path: Path) -> None:
    gates = [tmp_path / f"gate{n}" for n in range(3)]
    for gate in gates:
        os.mkfifo(gate)
    script = "".join(f"echo {n}; read line < {gate}; " for n, gate in enumerate(gates))
    with ciel.Session(jobs=1, state=tmp_path / "state") as session:
        made = session.sh(script, stdout=ciel.stream)
        found = []
        for line, gate in zip(made.stream(), gates, strict=True):
            found.append(line)
            gate.write_text("go\n")
        assert found == [b"0\n", b"1\n", b"2\n"]
        assert [*made.stream()] == found


WAYS = """
def main():
    empty = ciel.sh("true", stdout=ciel.stream)
    print([*empty.stream()], empty.open().read())
    print([*numbers.spawn(0).stream()])
    large = ciel.sh("head -c 30000000 /dev/zero", stdout=ciel.stream)
    with large.open() as file:
        print(sum(len(part) for part in iter(lambda: file.read(70_001), b"")))
    once = ciel.sh("seq 100000", stdout=ciel.stream(single_consumer=True))
    print(sum(int(line) for line in once.stream()), len(once.result()))
    print(sum(numbers.options(lazy=True).spawn(1000).stream()))
    print([*ciel.sh("seq 3").stream()], [*ciel.put([1, 2]).stream()])
    packed = ciel.sh("seq 1000 | gzip", stdout=ciel.stream)
    with gzip.open(packed.open()) as file:
        print(sum(int(line) for line in file))
"""


@pytest.mark.parametrize("option", ["-j1", "-j2", "--serial"])
def test_main_reads_streams_of_all_kinds(tmp_path: Path, option: str) -> None:
    """Nothing, little, much, what one reader was promised for, what is lazy, and no streams."""
    assert run(tmp_path, WAYS, option=option) == [
        "[] b''",
        "[]",
        "30000000",
        "5000050000 588895",
        "499500",
        "[b'1\\n', b'2\\n', b'3\\n'] [1, 2]",
        "500500",
    ]


SPAWNS = """
@ciel.task
def square(n: int) -> int:
    return n * n


def main():
    squares = []
    for n in numbers.spawn(50).stream():
        squares.append(square.spawn(n).result())
        print(n, square(n) == squares[-1])
    print(sum(squares))
"""


@pytest.mark.parametrize("option", ["-j1", "-j2"])
def test_main_spawns_and_waits_while_it_reads(tmp_path: Path, option: str) -> None:
    *lines, total = run(tmp_path, SPAWNS, option=option)
    assert lines == [f"{n} True" for n in range(50)] and total == str(sum(n * n for n in range(50)))


LEAVES = """
def main():
    for _ in range(50):
        made = ciel.sh("seq 100000; touch whole", stdout=ciel.stream)
        for line in made.stream():
            break
        made.result()
    print(line, os.path.exists("whole"))
"""


def test_main_that_leaves_early_does_not_fail_the_producer(tmp_path: Path) -> None:
    assert run(tmp_path, LEAVES) == ["b'1\\n' True"]


FAILS = """
@ciel.task
def fails(count: int) -> Iterator[int]:
    yield from range(count)
    raise ValueError(count)


def main(count):
    made = fails.spawn(int(count))
    try:
        for n in made.stream():
            print(n)
    except ValueError as error:
        print("failed", error)
    command = ciel.sh("echo said; exit 3", stdout=ciel.stream)
    try:
        for line in command.stream():
            print(line)
    except ciel.CommandError as error:
        print(str(error).partition(" ended ")[2])
"""


def test_main_has_all_that_was_written_before_a_failure(tmp_path: Path) -> None:
    *values, line, status = run(tmp_path, FAILS, "3")
    assert values == ["0", "1", "2", "failed 3"]
    assert (line, status) == ("b'said\\n'", "with exit status 3")


FAILED_BY_THEN = """
@ciel.task
def fails(count: int) -> Iterator[int]:
    for n in range(count):
        yield [n, "x" * n]
    raise ValueError(count)


@ciel.task(stream=ciel.stream(single_consumer=True))
def fails_once(count: int) -> Iterator[int]:
    yield from range(count)
    raise ValueError(count)


@ciel.task(joined=True)
def lines(count: int) -> Iterator[bytes]:
    for n in range(count):
        yield b"%d\\n" % n
    raise ValueError(count)


@ciel.task(writes=True)
def writes(count: int) -> None:
    for n in range(count):
        ciel.output().write(b"%d\\n" % n)
    ciel.output().flush()
    raise ValueError(count)


@ciel.task(retries=1)
def tries(count: int) -> Iterator[int]:
    yield from range(count)
    raise ValueError(count)


def read(made):
    found = []
    try:
        for piece in made.stream():
            found.append(piece)
    except (ciel.CommandError, ValueError) as error:
        found.append(type(error).__name__)
    return found


@ciel.task
def reads_within():
    return read(fails.spawn(2)), read(lines.spawn(2))


def main():
    for task in fails, fails_once, lines, writes, tries, fails.options(lazy=True):
        made = task.spawn(3)
        print(read(made), read(made))
    print(read(fails.spawn(0)), len(read(fails.spawn(3000))))
    made = fails.spawn(2)
    try:
        made.result()
    except ValueError:
        print(read(made))
    with lines.spawn(2).open() as file:
        print(file.read(1), file.readline(), file.readline())
        try:
            file.read(1)
        except ValueError as error:
            print("failed", error)
    print(reads_within(), reads_within.spawn().result())
"""

VALUES_FIRST = [
    "[[0, ''], [1, 'x'], [2, 'xx'], 'ValueError'] [[0, ''], [1, 'x'], [2, 'xx'], 'ValueError']",
    "[0, 1, 2, 'ValueError'] [0, 1, 2, 'ValueError']",
    *["[b'0\\n', b'1\\n', b'2\\n', 'ValueError'] [b'0\\n', b'1\\n', b'2\\n', 'ValueError']"] * 2,
    "[0, 1, 2, 'ValueError'] [0, 1, 2, 'ValueError']",
    "[[0, ''], [1, 'x'], [2, 'xx'], 'ValueError'] [[0, ''], [1, 'x'], [2, 'xx'], 'ValueError']",
    "['ValueError'] 3001",
    "[[0, ''], [1, 'x'], 'ValueError']",
    "b'0' b'\\n' b'1\\n'",
    "failed 2",
    " ".join(["([[0, ''], [1, 'x'], 'ValueError'], [b'0\\n', b'1\\n', 'ValueError'])"] * 2),
]


@pytest.mark.parametrize("option", ["-j1", "-j2", "--serial"])
def test_values_before_a_failure_are_read_in_every_mode(tmp_path: Path, option: str) -> None:
    """A generator that is read lazily gives its values, then its exception. Only a program that
    read meanwhile had them: with one slot, in a task, or behind the failure it had none.
    """
    assert run(tmp_path, FAILED_BY_THEN, option=option) == VALUES_FIRST


@pytest.mark.parametrize("option", ["-j1", "-j2"])
def test_lines_before_the_failure_of_a_command_are_read_in_every_mode(
    tmp_path: Path, option: str
) -> None:
    main = """
def main():
    made = ciel.sh("echo said; exit 3", stdout=ciel.stream)
    for _ in range(2):
        try:
            for line in made.stream():
                print(line)
        except ciel.CommandError:
            print("failed")
"""
    assert run(tmp_path, main, option=option) == ["b'said\\n'", "failed"] * 2


def test_values_before_a_failure_are_read_in_the_serial_program_of_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "read_serially"}
    exec(compile(TASKS + FAILED_BY_THEN, str(tmp_path / "job.py"), "exec"), names)
    with ciel.testing.serial():
        names["main"]()
    assert capsys.readouterr().out.splitlines() == VALUES_FIRST


DIES = """
@ciel.task(retries=1)
def dies(same: bool) -> Iterator[int]:
    first = not os.path.exists("died")
    yield 0 if same or first else 7
    yield 1
    if first:
        meet("pipe")
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield 2


def main(same):
    os.mkfifo("pipe")
    try:
        for n in dies.spawn(same == "same").stream():
            print(n)
            if n == 1:
                go_on("pipe")
    except ciel.NonDeterministic as error:
        print("other", str(error).splitlines()[0])
"""


def test_producer_that_dies_is_no_end_and_its_bytes_come_once(tmp_path: Path) -> None:
    assert run(tmp_path, DIES, "same") == ["0", "1", "2"]


def test_producer_that_writes_something_else_when_it_is_retried_is_found(tmp_path: Path) -> None:
    lines = run(tmp_path, DIES, "other")
    assert lines[:2] == ["0", "1"] and len(lines) == 3, lines
    assert lines[2].startswith("other the task that writes this stream was repeated")


GOES_ON = """
@ciel.task(joined=True, retries=1)
def dies() -> Iterator[bytes]:
    first = not os.path.exists("died")
    yield b"a" if first else b"bcdefgh"
    if first:
        meet("pipe")
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)


def main():
    os.mkfifo("pipe")
    made = dies.spawn()
    with made.open() as file:
        print(file.read(1))
        go_on("pipe")
        for _ in range(2):
            try:
                print(file.read(1))
            except ciel.NonDeterministic:
                print("other")
    print(made.result())
"""


def test_program_that_reads_on_behind_other_bytes_has_none_of_them(tmp_path: Path) -> None:
    """The second read gave what the repeated task had written behind as many bytes."""
    assert run(tmp_path, GOES_ON) == ["b'a'", "other", "other", "b'bcdefgh'"]


MAIN_DIES = """
def main():
    for n in numbers.spawn(20_000).stream():
        print(n)
        if n == 10_000 and not os.path.exists("died"):
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_main_that_dies_reads_the_same_again(tmp_path: Path) -> None:
    assert run(tmp_path, MAIN_DIES) == [str(n) for n in range(20_000)]
    assert (tmp_path / "died").exists()


ENGINE_DIES = """
@ciel.task
def held(count: int) -> Iterator[int]:
    for n in range(count):
        yield n
        if n == 1000 and not os.path.exists("resumed"):
            meet("never")


def main():
    for n in held.spawn(2000).stream():
        print(n)
        if n == 1000 and not os.path.exists("resumed"):
            go_on("reached")
"""


def test_run_that_is_killed_while_main_reads_is_resumed(tmp_path: Path) -> None:
    for name in ("never", "reached"):
        os.mkfifo(tmp_path / name)
    process = jobs.start(jobs.write(tmp_path, TASKS + ENGINE_DIES))
    (tmp_path / "reached").read_bytes()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (tmp_path / "resumed").touch()
    ended = jobs.end_of(jobs.start(tmp_path / "job.py"))
    assert ended.status == 0, ended.talk
    assert ended.printed == b"".join(b"%d\n" % n for n in range(2000))


FAILED_BEFORE = """
@ciel.task
def fails(count: int) -> Iterator[int]:
    yield from range(count)
    meet("read")
    raise ValueError(count)


def main(when: str):
    made = fails.spawn(2000)
    try:
        for n in made.stream():
            print(n)
            if n == 0 and not os.path.exists("resumed"):
                go_on("read")
            if when == "reading" and n == 1000 and not os.path.exists("resumed"):
                stop()
    except ValueError as error:
        print("failed", error)
    if when == "after" and not os.path.exists("resumed"):
        stop()
    try:
        made.result()
    except ValueError as error:
        print("again", error)
    try:
        for n in made.stream():
            print(n)
    except ValueError as error:
        print("failed", error)


def stop():
    go_on("reached")
    meet("never")
"""


@pytest.mark.parametrize("when", ["reading", "after"])
def test_run_that_is_killed_behind_a_failure_that_main_has_read_is_resumed(
    tmp_path: Path, when: str
) -> None:
    """The values before the failure were gone then: main had the failure only when it was replayed,
    printed less, and failed with NonDeterministic.
    """
    for name in ("never", "reached", "read"):
        os.mkfifo(tmp_path / name)
    process = jobs.start(jobs.write(tmp_path, TASKS + FAILED_BEFORE), when)
    (tmp_path / "reached").read_bytes()
    assert process.stdout is not None
    while (line := process.stdout.readline()) != b"1000\n":
        assert line
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (tmp_path / "resumed").touch()
    ended = jobs.end_of(jobs.start(tmp_path / "job.py", when))
    assert ended.status == 0, ended.talk
    values = [str(n) for n in range(2000)]
    assert ended.lines == [*values, "failed 2000", "again 2000", *values, "failed 2000"]
    assert not [*(tmp_path / "state").glob("runs/*/partial")]


MORE_FAILED_BEFORE = """
@ciel.task(retries=1)
def tries() -> Iterator[int]:
    first = not os.path.exists("tried")
    Path("tried").touch()
    yield from range(5 if first else 3)
    if first:
        meet("read")
    raise ValueError("first" if first else "last")


def lines(made, last):
    first = not os.path.exists("died")
    try:
        for line in made.stream():
            print(line)
            if line == last and first:
                go_on("read")
    except (ciel.CommandError, ValueError) as error:
        print(type(error).__name__)


def main():
    os.path.exists("read") or os.mkfifo("read")
    made = ciel.sh("seq 3; cat read; exit 4", stdout=ciel.stream)
    lines(made, b"3\\n")
    lines(tries.spawn(), 4)
    if not os.path.exists("died"):
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    lines(made, None)
"""


def test_main_that_dies_behind_failures_reads_again_what_it_had_read(tmp_path: Path) -> None:
    """Of a command, and of a task that had written more before it was retried."""
    said = ["b'1\\n'", "b'2\\n'", "b'3\\n'", "CommandError"]
    lines = run(tmp_path, MORE_FAILED_BEFORE)
    assert lines == [*said, *map(str, range(5)), "ValueError", *said]


def test_streams_of_a_session_that_is_cancelled_end_with_that(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    session = ciel.Session(jobs=1, state=tmp_path / "state")
    made = session.sh(f"echo 1; read line < {tmp_path}/never", stdout=ciel.stream)
    reading = made.stream()
    assert next(reading) == b"1\n"
    session.cancel()
    with pytest.raises(ciel.Cancelled):
        next(reading)
