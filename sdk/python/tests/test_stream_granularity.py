"""How many new bytes a reader of a stream has at once.

It knows nothing of how the bytes travel; that they are the same whatever the granularity is tested
in all modes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import ciel
import jobs
import pytest
from sessions import with_slots

session = with_slots(3)


@ciel.task
def digest(given: ciel.Reading[bytes]) -> str:
    """Reads all of it."""
    with given.open() as file:
        return hashlib.md5(file.read()).hexdigest()


READS = """
import os

sizes = []
while got := os.read(0, 1 << 20):
    sizes.append(len(got))
    if len(sizes) == 1 and SIGNAL:
        os.close(os.open(SIGNAL, os.O_WRONLY))
print(*sizes)
"""


def reading(folder: Path, signal: str = "") -> str:
    """A command that prints how many bytes each of its reads brought; after the first one it
    opens that pipe."""
    program = folder / f"reads{signal}.py"
    path = str(folder / signal) if signal else ""
    program.write_text(READS.replace("SIGNAL", repr(path)), encoding="utf-8")
    return f"python3 {program}"


@pytest.mark.parametrize("mode", ["indirect_file", "indirect_pipe", "indirect_tcp"])
def test_wake_brings_the_granularity_that_its_consumer_asks_for(
    session: ciel.Session, mode: str, tmp_path: Path
) -> None:
    """The first reader has one byte while the second one is not woken yet."""
    for name in ("begun", "seen"):
        os.mkfifo(tmp_path / name)
    script = (
        f"printf 1; cat < {tmp_path}/seen; printf 234; cat < {tmp_path}/begun; "
        f"head -c 99999 /dev/zero"
    )
    made = session.sh(script, stdout=ciel.stream)
    as_it_comes = session.sh(reading(tmp_path, "seen"), stdin=made.stream(mode=mode))
    in_pieces = session.sh(
        reading(tmp_path, "begun"), stdin=made.stream(mode=mode, granularity=4)
    )
    first, *_ = [int(size) for size in as_it_comes.result().split()]
    sizes = [int(size) for size in in_pieces.result().split()]
    assert (first, sizes[0]) == (1, 4)
    assert sum(sizes) == 4 + 99_999


@pytest.mark.parametrize("mode", ["indirect_pipe", "indirect_tcp"])
def test_consumer_reads_no_more_often_than_its_granularity_says(
    session: ciel.Session, mode: str, tmp_path: Path
) -> None:
    length, granularity = 64 << 10, 16 << 10
    made = session.sh(f"yes | head -c {length} | dd bs=512 status=none", stdout=ciel.stream)
    wish: dict[str, Any] = {"mode": mode, "granularity": granularity}
    read = session.sh(reading(tmp_path), stdin=made.stream(**wish))
    sizes = [int(size) for size in read.result().split()]
    assert sum(sizes) == length
    assert all(size >= granularity for size in sizes[:-1]), sizes


FLAGS: list[dict[str, Any]] = [
    {},
    {"may_stream": True},
    {"may_stream": False},
    {"may_stream": True, "no_store": True},
    {"mode": "overlap"},
    {"mode": "direct"},
]


@pytest.mark.parametrize("granularity", [1, 1000, 1 << 40])
def test_bytes_are_the_same_whatever_the_granularity(
    session: ciel.Session, granularity: int
) -> None:
    whole = b"".join(b"%d\n" % n for n in range(1, 30_001))
    expected = hashlib.md5(whole).hexdigest()
    for flags in FLAGS:
        wish: dict[str, Any] = {"granularity": granularity, **flags}
        made = session.sh("seq 30000", stdout=ciel.stream)
        by_command = session.sh("md5sum", stdin=made.stream(**wish))
        by_name = session.sh("md5sum < {made}", made=made.stream(**wish))
        by_task = session.submit(digest, made.stream(**wish))
        found = [one.result().decode().split()[0] for one in (by_command, by_name)]
        assert [*found, by_task.result()] == [expected] * 3, wish


SKYWRITING = """
numbers = spawn_exec("shell", {"command": "seq 1000", "stream": true}, 1)[0];
first = spawn_exec("shell", {"command": "wc -c", "stdin": [numbers],
                             "stdin_options": {"granularity": 100, "mode": "indirect_tcp"}}, 1)[0];
second = spawn_exec("shell", {"command": "wc -c < {a}",
                    "inputs": {"a": {"stream": numbers, "granularity": 1000000}}}, 1)[0];
return [*first, *second];
"""


def test_skywriting_names_a_granularity_for_an_input_with_or_without_a_name(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, SKYWRITING, name="job.sw")
    assert ended.value == [3893, 3893], ended.talk


def test_skywriting_refuses_a_granularity_of_no_bytes(tmp_path: Path) -> None:
    job = SKYWRITING.replace('"granularity": 100,', '"granularity": 0,')
    ended = jobs.run(tmp_path, job, name="job.sw")
    assert ended.status != 0
    assert '"granularity" must be a number of bytes from 1' in ended.talk, ended.talk


def test_granularity_that_is_no_number_of_bytes_is_an_error(session: ciel.Session) -> None:
    made = session.sh("true", stdout=ciel.stream)
    for number in (0, -1, 1 << 60):
        with pytest.raises(ValueError, match=f"granularity is from 1 to .* bytes, not {number}"):
            made.stream(granularity=number)
    for other in ("1", 1.5, True):
        wrong: Any = other
        with pytest.raises(TypeError, match="granularity is a number of bytes, not"):
            made.stream(granularity=wrong)
