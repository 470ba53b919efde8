"""Measures how soon a follower of an ordered file sees a byte that is final.

A task stamps lines and flushes each; `ciel tail` prints them, and this program compares the stamps
with the clock when it has read them. So the time is that of the whole way: worker, engine, journal,
file, follower. The last line is followed by the end of the run, which the follower has to notice by
itself. Prints medians, 99 %, the machine's load and the number of lines.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

JOB = """
import time
import ciel

def main() -> int:
    with ciel.open("log", "serial-append") as log:
        for number in range({lines}):
            time.sleep({pause_s})
            log.write(f"{{time.monotonic_ns()}}\\n")
            if number == 0:
                print("begun", flush=True)
    return {lines}
"""


def delays_us(ciel: str, lines: int, pause_s: float) -> list[float]:
    """Microseconds from each write to its arrival."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.py").write_text(JOB.format(lines=lines, pause_s=pause_s))
        run = subprocess.Popen([ciel, "run", "-q", "job.py"], cwd=folder, stdout=subprocess.PIPE)
        assert run.stdout is not None and run.stdout.readline() == b"begun\n"
        arrivals: list[tuple[int, int]] = []
        command = [ciel, "tail", "log"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, bufsize=0) as follower:
            assert follower.stdout is not None
            while part := follower.stdout.read(1 << 16):
                now = time.monotonic_ns()
                arrivals += [(now, int(stamp)) for stamp in part.split()]
        run.stdout.read()
        assert run.wait() == 0 and len(arrivals) == lines
        # Lines from before the follower began are late for another reason.
        begun = arrivals[0][0]
        return [(now - stamp) / 1000 for now, stamp in arrivals if stamp > begun]


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ciel", default="ciel", help="the command")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--pause-ms", type=float, default=2.0, help="between two lines")
    options = parser.parse_args()
    found = delays_us(options.ciel, options.lines, options.pause_ms / 1000)
    found.sort()
    late = found[int(len(found) * 0.99)]
    load = os.getloadavg()[0]
    print(
        f"{len(found)} lines: median {statistics.median(found):.0f} µs, "
        f"99 % {late:.0f} µs, longest {found[-1]:.0f} µs; load {load:.1f}"
    )


if __name__ == "__main__":
    main()
