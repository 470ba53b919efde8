"""Tasks that native code begins and ends: they do what all tasks do.

Those are plain calls. Read next: `test_ahead.py` for the messages by hand,
`test_in_place_natively.py` for children. """

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ahead import field, message, plain
from test_native import DEADLINE_S, read_frame, vector

import jobs
from ciel import _native
from ciel._freeze import object_of
from ciel._code import current_identity
from ciel._payload import head_of_plain
from ciel._task import Task
from properties import UNHURRIED

ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(1 << 80), 1 << 80),
    st.floats(),
    st.text(max_size=300),
    st.binary(max_size=300),
)


@UNHURRIED
@given(ATOMS)
def test_result_has_the_bytes_that_python_gives_it(value: object) -> None:
    form, pieces, references = object_of(value)
    assert not references
    assert _native.packed_atom(value) == (form, b"".join(pieces))


@pytest.mark.parametrize("value", [(1, 2), [1], 1j, "x" * 5000, b"x" * 5000, "\ud800", int])
def test_other_results_are_left_to_python(value: object) -> None:
    assert _native.packed_atom(value) is None


JOB = """
import os
import ciel
from ciel._strand import here
from ciel._worker import WorkerStrand

MADE = []
BEGAN = WorkerStrand.__init__

def noted(strand, process, start):
    MADE.append(start.tag)
    BEGAN(strand, process, start)

if here.serves:
    WorkerStrand.__init__ = noted

@ciel.task
def strands(n):
    return f"strands {len(MADE)}"

@ciel.task
def says(n):
    print("said", n)
    return f"strands {len(MADE)}"

@ciel.task
def fails(n):
    raise ValueError(f"no {n}")

@ciel.task
def forever(n):
    os.write(2, b"it runs\\n")
    while True:
        pass
"""

DEFINED = 3


class Worker:
    """A worker process that keeps children, and the engine's end of its socket."""

    def __init__(self, folder: Path, job: dict[str, object]) -> None:
        """It was told of one definition."""
        self.job = job
        self.engine, worker = socket.socketpair()
        self.engine.settimeout(DEADLINE_S)
        told = {"CIEL_FD": str(worker.fileno()), "CIEL_IDLE_CORES": str(folder / "none")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ciel.worker"],
            env={**os.environ, **told, "CIEL_SCRIPT_FOLDER": str(folder)},
            pass_fds=[worker.fileno()],
            stderr=subprocess.PIPE,
        )
        worker.close()
        self.engine.sendall(vector("engine-define"))

    def start(self, tag: int, name: str) -> None:
        """Starts the call `name(tag)`."""
        task = self.job[name]
        assert isinstance(task, Task)
        packed = _native.packed_arguments((tag,))
        assert packed is not None
        body = plain(1, DEFINED) + field(2, head_of_plain(current_identity(task)) + packed)
        self.engine.sendall(message(tag, 4, body + field(4, tag.to_bytes(16, "big"))))

    def frames(self) -> Iterator[bytes]:
        """What it sends."""
        while True:
            yield read_frame(self.engine)

    def frame_of(self, tag: int, *words: bytes) -> bytes:
        """The next frame about a task that has one of these words."""
        about = plain(1, tag)
        for frame in self.frames():
            if frame[4:].startswith(about) and any(word in frame for word in words):
                return frame
        raise AssertionError("it sends for ever")


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    (tmp_path / "natively_job.py").write_text(JOB, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("natively_job")
    made = Worker(tmp_path, vars(module))
    yield made
    made.engine.close()
    made.process.kill()
    made.process.communicate()
    del sys.modules["natively_job"]


def test_plain_tasks_behind_the_first_have_no_strands(worker: Worker) -> None:
    for tag in range(1, 20):
        worker.start(tag, "strands")
        assert b"strands 0" in worker.frame_of(tag, b"strands")


def test_task_that_prints_or_fails_has_a_strand_like_any_other(worker: Worker) -> None:
    worker.start(1, "strands")
    worker.frame_of(1, b"strands")
    worker.start(2, "says")
    assert b"said 2\n" in worker.frame_of(2, b"said")
    assert b"strands 1" in worker.frame_of(2, b"strands")
    worker.start(3, "fails")
    failed = worker.frame_of(3, b"ValueError")
    assert b"no 3" in failed and b"_native_tasks" not in failed
    worker.start(4, "strands")
    assert b"strands 2" in worker.frame_of(4, b"strands")


def test_task_is_cancelled_that_has_begun_natively(worker: Worker) -> None:
    worker.start(1, "strands")
    worker.frame_of(1, b"strands")
    worker.start(2, "forever")
    assert worker.process.stderr is not None
    assert worker.process.stderr.readline() == b"it runs\n"
    worker.engine.sendall(message(2, 7, plain(1, 1000)))
    worker.process.send_signal(signal.SIGUSR2)
    assert b"cancelled" in worker.frame_of(2, b"Cancelled", b"cancelled")
    worker.start(3, "strands")
    assert b"strands 1" in worker.frame_of(3, b"strands")


BEHAVES = """
import contextvars
import os
import subprocess
import sys
import threading
import ciel

SET = contextvars.ContextVar("SET", default="unset")

@ciel.task
def plain(n, text="", *more, **named):
    return n

@ciel.task
def behaves(how, n):
    if how == "prints":
        print("printed", n)
    elif how == "writes":
        os.write(1, b"written %d\\n" % n)
    elif how == "commands":
        subprocess.run(["echo", "commanded", str(n)], check=True)
    elif how == "raises":
        raise ValueError(f"raised {n}")
    elif how == "exits":
        sys.exit(n)
    elif how == "tails":
        return plain.tail(n)
    elif how == "changes":
        os.environ["CHANGED"] = str(n)
    elif how == "moves":
        os.chdir("/")
    elif how == "sets":
        SET.set("set")
    elif how == "threads":
        thread = threading.Thread(target=print, args=("in a thread", n))
        thread.start()
        thread.join()
    elif how == "random":
        return ciel.task_rng().randrange(1000)
    elif how == "seeds":
        return subprocess.run(["sh", "-c", "echo $CIEL_TASK_SEED"], stdout=-1).stdout.decode()
    elif how == "deletes":
        del os.environ["CIEL_TASK_SEED"]
    elif how == "leaves":
        plain.spawn(n)
    elif how == "asks":
        return plain.spawn(ciel.now() > 0).result() + sum(ciel.gather(plain.spawn(1)))
    elif how == "large":
        return "x" * 100_000
    elif how == "numbers":
        return [-(7 ** (40 + n)), 1.5, None, True, b"bytes".decode()]
    return f"{os.path.abspath('.') == '/'} {SET.get()} {n}"

@ciel.task
def seeds(n):
    return os.environ.get("CHANGED"), os.environ["CIEL_TASK_SEED"]

HOW = ["plain", "prints", "writes", "commands", "raises", "exits", "tails", "changes", "moves",
       "sets", "threads", "random", "seeds", "deletes", "leaves", "asks", "large", "numbers"]

def told(future):
    try:
        return repr(future.result())
    except BaseException as error:
        return repr(error)

def main():
    spawned = [plain.spawn(n) for n in range(50)]
    for how in HOW:
        spawned += [plain.spawn(n, text="text", named=n) for n in range(3)]
        spawned += [behaves.spawn(how, n) for n in range(3)]
        spawned += [plain.spawn(spawned[-1], "of a future"), plain.spawn(1.5, (2, "tuple"))]
        spawned += [seeds.spawn(n) for n in range(3)]
    return [told(future) for future in spawned]
"""


def test_tasks_of_a_root_behave_as_in_the_serial_program(tmp_path: Path) -> None:
    found = []
    for options in [("--serial",), ("-j1",), ("-j2",), ("-j4",)]:
        folder = tmp_path / options[0]
        folder.mkdir()
        ended = jobs.run(folder, BEHAVES, options=options)
        found.append((ended.value, ended.printed))
    assert found == found[:1] * 4
