"""One task makes bytes, another one counts and discards them: in every mode of streams.

``ciel run jitter.py [BYTES]`` prints a line for each mode and kind of tasks: commands, and Python
tasks. Read next: ``measure.py``, which takes the times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ciel

MODES = ["no_stream", "overlap", "indirect_file", "indirect_pipe", "indirect_tcp", "direct"]

PIECE = bytes(1 << 20)


def zeros(length: int) -> Iterator[bytes]:
    """So many bytes, in pieces of up to 1 MiB."""
    for begin in range(0, length, len(PIECE)):
        yield PIECE[: length - begin]


@ciel.task
def count(given: ciel.Reading[bytes]) -> int:
    """How many bytes there are."""
    found, room = 0, bytearray(len(PIECE))
    with given.open() as file:
        while got := file.readinto(room):  # type: ignore[attr-defined]
            found += got
    return found


def by_commands(mode: str, length: int) -> int:
    """Commands at both ends."""
    made = ciel.sh("head -c {length} /dev/zero", length=length, stdout=ciel.stream(mode=mode))
    # `wc -c` alone asks a file for its length, and would read nothing without a stream.
    return int(ciel.sh("wc -lc", stdin=made).result().split()[-1])


def by_tasks(mode: str, length: int) -> int:
    """Python tasks at both ends."""
    made = ciel.task(joined=True, stream=ciel.stream(mode=mode))(zeros).spawn(length)
    return count.spawn(made.stream()).result()


PAIRS: dict[str, Callable[[str, int], int]] = {"commands": by_commands, "tasks": by_tasks}


def main(length: str = "3000001") -> None:
    """Prints mode, kind of the tasks, and the bytes that were counted."""
    if int(length) < 0:
        raise ValueError(f"the number of bytes is 0 or more, not {length}")
    for mode in MODES:
        for kind, pair in PAIRS.items():
            print(mode, kind, pair(mode, int(length)))
