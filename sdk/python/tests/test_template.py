"""Workers that are forked from a template: their state is that of workers that are started, and
whoever is killed, nothing is lost and nothing stays behind.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import jobs
import pytest
from conditions import until

TITLE = "ciel-template"
SLOTS = 4

STATE = '''
import gc
import os
import random
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import ciel


def status_line(name):
    text = Path("/proc/self/status").read_text("utf-8")
    return next(line for line in text.splitlines() if line.startswith(name))


def handler_of(number):
    handler = signal.getsignal(number)
    return getattr(handler, "__qualname__", repr(handler))


def state():
    """What must be the same in each worker."""
    status = ["SigBlk", "SigIgn", "SigCgt", "NoNewPrivs", "Groups", "Threads", "Cpus_allowed"]
    own = {"CIEL_COOKIE", "CIEL_TASK_SEED"}
    mask = os.umask(0)
    os.umask(mask)
    return {
        "modules": sorted(name for name in sys.modules),
        "environment": sorted(item for item in os.environ.items() if item[0] not in own),
        "folder": os.getcwd(),
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "handlers": [handler_of(number) for number in (2, 10, 12, 13, 14, 15, 17)],
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "umask": mask,
        "limits": [resource.getrlimit(one) for one in range(16)],
        "status": [status_line(name) for name in status],
        "title": Path("/proc/self/comm").read_text("utf-8"),
        "arguments": [sys.argv, sys.orig_argv, sys.executable, list(sys.flags)],
        "path": sys.path,
        "main": [sys.modules["__main__"].__name__, sys.modules["__main__"].__file__],
        "threads": [thread.name for thread in threading.enumerate()],
        "is_main": threading.current_thread() is threading.main_thread(),
        "collector": [gc.isenabled(), gc.get_threshold()],
        "hashes": hash("a text"),
        "parent": os.getppid(),
        "leads": [os.getpgid(0) == os.getpid(), os.getsid(0)],
    }


def own():
    """What no two workers have in common, and the place of the stack in memory."""
    mark = os.environ["CIEL_COOKIE"]
    entries = Path("/proc/self/environ").read_bytes().split(bytes(1))
    assert f"CIEL_COOKIE={mark}".encode() in entries
    maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
    return [os.getpid(), mark, next(one for one in maps if "[stack]" in one).split("-")[0]]


def meet(folder, count):
    """Waits until as many processes are here."""
    Path(folder, str(os.getpid())).touch()
    while len(os.listdir(folder)) < count:
        time.sleep(0.001)


@ciel.task(pure=False)
def one(number):
    return number


@ciel.task(pure=False)
def told(folder, count):
    import random
    meet(folder, count)
    return [state(), own(), random.random()]
'''

JOB = (
    STATE
    + """
def main(count):
    one.spawn(0).result()
    Path("ready").touch()
    while not Path("go").exists():
        time.sleep(0.001)
    os.mkdir("meeting")
    found = ciel.gather([told.spawn("meeting", int(count)) for _ in range(int(count))])
    return found
"""
)

KILLED = (
    STATE
    + """
@ciel.task(pure=False)
def met(number, folder, count):
    meet(folder, count)
    Path("met").touch()
    while not Path("done").exists():
        time.sleep(0.001)
    return number

def main(count):
    one.spawn(0).result()
    Path("ready").touch()
    while not Path("go").exists():
        time.sleep(0.001)
    os.makedirs("meeting", exist_ok=True)
    return ciel.gather([met.spawn(n, "meeting", int(count)) for n in range(int(count))])
"""
)


def titled(run: int, title: str) -> list[int]:
    """The workers of a run that have this title."""

    def title_of(process: int) -> str:
        try:
            return Path(f"/proc/{process}/comm").read_text("utf-8").strip()
        except OSError:
            return ""

    return [process for process in jobs.workers_of(run) if title_of(process) == title]


def spawner_of(run: int) -> int:
    """The process that starts the workers of a run."""
    children = Path(f"/proc/{run}/task/{run}/children").read_text("utf-8").split()
    return next(int(child) for child in children if b"__spawner" in jobs._words_of(int(child)))


def is_gone(process: int) -> bool:
    return jobs._parent_of(process) == 0


def test_a_forked_worker_is_like_a_started_one(tmp_path: Path) -> None:
    process = jobs.start(jobs.write(tmp_path, JOB), str(SLOTS), options=(f"-j{SLOTS}",))
    until((tmp_path / "ready").exists)
    until(lambda: len(titled(process.pid, TITLE)) == 1)
    (tmp_path / "go").touch()
    found = jobs.end_of(process).value
    states, owns, numbers = zip(*found, strict=True)
    for state in states[1:]:
        assert state == states[0]
    pids, marks, places = zip(*owns, strict=True)
    assert len(set(pids)) == len(set(marks)) == len(set(numbers)) == SLOTS
    # Each program that is started has its stack elsewhere in memory, whatever its own place.
    assert len(set(places)) < SLOTS, "some were forked"


def test_a_forked_worker_is_like_one_without_a_template(tmp_path: Path) -> None:
    """The first template is killed, so that the next worker is started, and leaves another."""
    process = jobs.start(jobs.write(tmp_path, JOB), str(SLOTS), options=(f"-j{SLOTS}",))
    until((tmp_path / "ready").exists)
    until(lambda: len(titled(process.pid, TITLE)) == 1)
    (template,) = titled(process.pid, TITLE)
    os.kill(template, signal.SIGKILL)
    until(lambda: is_gone(template))
    (tmp_path / "go").touch()
    states, owns, _ = zip(*jobs.end_of(process).value, strict=True)
    for state in states[1:]:
        assert state == states[0]
    assert len({place for _, _, place in owns}) > 1, "some were started"


def the_template(run: int) -> list[int]:
    return titled(run, TITLE)


def the_spawner(run: int) -> list[int]:
    return [spawner_of(run)]


def all_workers(run: int) -> list[int]:
    return jobs.serving_of(run)


def template_and_workers(run: int) -> list[int]:
    return [*titled(run, TITLE), *jobs.serving_of(run)]


@pytest.mark.parametrize("moment", ["ready", "met"])
@pytest.mark.parametrize(
    "victims", [the_template, the_spawner, all_workers, template_and_workers]
)
def test_who_is_killed_costs_time_only(
    tmp_path: Path, victims: Callable[[int], list[int]], moment: str
) -> None:
    process = jobs.start(jobs.write(tmp_path, KILLED), str(SLOTS), options=(f"-j{SLOTS}",))
    until((tmp_path / "ready").exists)
    until(lambda: len(titled(process.pid, TITLE)) == 1)
    if moment == "met":
        (tmp_path / "go").touch()
        until((tmp_path / "met").exists)
    everyone = [spawner_of(process.pid), *jobs.workers_of(process.pid)]
    killed = victims(process.pid)
    assert killed
    jobs.kill_at_once(killed)
    (tmp_path / "go").touch()
    (tmp_path / "done").touch()
    assert jobs.end_of(process).value == list(range(SLOTS))
    until(lambda: all(map(is_gone, everyone)))


@pytest.mark.parametrize("moment", ["ready", "met"])
def test_a_killed_engine_leaves_no_template(tmp_path: Path, moment: str) -> None:
    job = jobs.write(tmp_path, KILLED)
    process = jobs.start(job, str(SLOTS), options=(f"-j{SLOTS}",))
    until((tmp_path / "ready").exists)
    until(lambda: len(titled(process.pid, TITLE)) == 1)
    if moment == "met":
        (tmp_path / "go").touch()
        until((tmp_path / "met").exists)
    everyone = [spawner_of(process.pid), *jobs.workers_of(process.pid)]
    process.kill()
    process.communicate()
    until(lambda: all(map(is_gone, everyone)))
    (tmp_path / "go").touch()
    (tmp_path / "done").touch()
    again = jobs.end_of(jobs.start(job, str(SLOTS), options=(f"-j{SLOTS}",)))
    assert again.value == list(range(SLOTS))


def test_a_template_that_does_not_answer_is_passed_over(tmp_path: Path) -> None:
    process = jobs.start(jobs.write(tmp_path, KILLED), str(SLOTS), options=(f"-j{SLOTS}",))
    until((tmp_path / "ready").exists)
    until(lambda: len(titled(process.pid, TITLE)) == 1)
    (template,) = titled(process.pid, TITLE)
    os.kill(template, signal.SIGSTOP)
    (tmp_path / "go").touch()
    (tmp_path / "done").touch()
    assert jobs.end_of(process).value == list(range(SLOTS))
    until(lambda: is_gone(template))
