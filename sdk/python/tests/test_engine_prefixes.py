"""The output of a failed job is the beginning of what the serial program prints, without holes.

What a task had printed in the last moment before it killed itself was lost, or not, depending on
time: `blob 0, blob 1, blob 3` where another run of the same job showed `blob 2`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs

JOB = """
import os
import signal
import sys
import ciel

def end():
    HOW

@ciel.task
def blob(i):
    print("blob", i)
    if i == 2:
        sys.stdout.write("part of a line")
        sys.stdout.flush()
        end()
    return i

def main():
    futures = [blob.spawn(i) for i in range(6)]
    WAITS
    print("end")
"""

ENDS = {
    "exception": "raise ValueError('two')",
    "exit of the process": "os._exit(3)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "os.kill(os.getpid(), signal.SIGSEGV)",
}
WAITS = {"waited for": "ciel.gather(futures)", "not waited for": "pass"}


def printed(folder: Path, text: str, mode: str) -> str:
    """What a failed job has printed."""
    folder.mkdir()
    ended = jobs.run(folder, text, options=(mode,))
    assert ended.status == 1 and "error: blob@" in ended.talk
    return ended.printed.decode()


@pytest.mark.parametrize("waits", WAITS)
@pytest.mark.parametrize("how", ENDS)
def test_failed_jobs_output_is_the_beginning_of_the_serial_one(
    how: str, waits: str, tmp_path: Path
) -> None:
    text = JOB.replace("HOW", ENDS[how]).replace("WAITS", WAITS[waits])
    whole = "blob 0\nblob 1\nblob 2\npart of a lineblob 3\nblob 4\nblob 5\n"
    if waits == "not waited for":
        whole += "end\n"
    for mode in ("--serial", "-j1", "-j2", "-j4"):
        found = printed(tmp_path / mode, text, mode)
        assert whole.startswith(found), mode
        assert found.startswith("blob 0\nblob 1\nblob 2\npart of a line"), mode
        assert mode != "--serial" or found == whole
