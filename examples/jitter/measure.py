"""Takes the times of ``jitter.py``: ``python measure.py [BYTES …]`` prints rows for a plot.

Each row has mode, stores, bytes and seconds, with tabs between them; it is the shortest of three
runs, between commands. ``pipe`` is the same two programs with a pipe of the shell between them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import ciel
from jitter import MODES

RUNS = 3


def shortest(play: Callable[[], object]) -> float:
    """Seconds of the shortest of some runs."""
    found = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        play()
        found.append(time.perf_counter() - begun)
    return min(found)


def pair(session: ciel.Session, mode: str, length: int) -> None:
    """The producer and the consumer, as tasks."""
    script = "head -c {length} /dev/zero"
    made = session.sh(script, length=length, stdout=ciel.stream(mode=mode))
    found = int(session.sh("wc -lc", stdin=made).result().split()[-1])
    assert found == length, f"{mode}: {found} of {length} bytes"


def main() -> None:
    """Prints the rows."""
    lengths = [int(word) for word in sys.argv[1:]] or [64 << 20]
    if min(lengths) < 0:
        raise ValueError(f"numbers of bytes are 0 or more, not {min(lengths)}")
    print("mode", "stores", "bytes", "seconds", sep="\t")
    with ciel.Session(jobs=2) as session:
        for length in lengths:
            bare = f"head -c {length} /dev/zero | wc -lc"
            command = ["sh", "-c", bare]
            seconds = shortest(lambda: subprocess.run(command, check=True, capture_output=True))
            print("pipe", 1, length, f"{seconds:.4f}", sep="\t", flush=True)
            for mode in MODES:
                seconds = shortest(lambda: pair(session, mode, length))  # noqa: B023
                print(mode, 1, length, f"{seconds:.4f}", sep="\t", flush=True)


if __name__ == "__main__":
    main()
