"""The processes of the comparison with tools that start processes.

Usage: python with_commands.py TOOL shell CORES COUNT
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import work

Ended = tuple[int, float]
"""0 if all went well, and the seconds that it took."""


def spawn_loop(cores: int, count: int) -> Ended:
    """The limit: `posix_spawn`, as many at a time as there are cores."""
    running = failed = 0
    began = time.perf_counter()
    for _ in range(count):
        if running == cores:
            failed += os.waitstatus_to_exitcode(os.wait()[1])
            running -= 1
        os.posix_spawnp("true", ["true"], os.environ)
        running += 1
    for _ in range(running):
        failed += os.waitstatus_to_exitcode(os.wait()[1])
    return failed, time.perf_counter() - began


def fed(command: list[str], count: int) -> Ended:
    """A command that starts a process for each line of its input."""
    lines = "1\n" * count
    began = time.perf_counter()
    ended = subprocess.run(command, input=lines, text=True, check=False)
    return ended.returncode, time.perf_counter() - began


def xargs(cores: int, count: int) -> Ended:
    """`xargs -P`."""
    return fed(["xargs", "-n1", f"-P{cores}", "true"], count)


def parallel(cores: int, count: int) -> Ended:
    """GNU parallel."""
    return fed(["parallel", f"-j{cores}", "true"], count)


def hyperqueue(cores: int, count: int) -> Ended:
    """HyperQueue with a server and a worker of its own; a job of so many tasks."""
    from hyperqueue import Job, LocalCluster
    from hyperqueue.cluster import WorkerConfig

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with LocalCluster() as cluster:
            cluster.start_worker(WorkerConfig(cores=cores))
            client = cluster.client()
            began = time.perf_counter()
            job = Job()
            for _ in range(count):
                job.program(["true"])
            submitted = client.submit(job)
            failed = 0 if client.wait_for_jobs([submitted]) else 1
            return failed, time.perf_counter() - began


TOOLS: dict[str, Callable[[int, int], Ended]] = {
    "posix_spawn": spawn_loop,
    "xargs": xargs,
    "parallel": parallel,
    "hyperqueue": hyperqueue,
}


def main() -> None:
    """Runs one of them."""
    tool, program, cores, count = sys.argv[1:5]
    if program != "shell":
        sys.exit(2)
    failed, seconds = TOOLS[tool](int(cores), int(count))
    work.report(failed, seconds, int(count))


if __name__ == "__main__":
    main()
