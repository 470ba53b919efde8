"""The native half where processes fork or threads share it, and what it asks of its descriptor."""

from __future__ import annotations

import fcntl
import os
import platform
import resource
import signal
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conditions import until
from test_native import DEADLINE_S, Wire, heard, read_frame, tag_from, vector, wire

from ciel._native import Connection, Drop, Failure, Shutdown

if TYPE_CHECKING:
    from ciel._native import Message

__all__ = ["wire"]

FAILURE = Failure("REFUSED", "", "", "no", [], "", None, None, "", "")

WAITS_OF = {"x86_64": ("7", "271"), "aarch64": ("73",)}
"""The numbers of the system calls `poll` and `ppoll`."""

# Newer versions of Python warn of what these tests are about.
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@FORKS
def test_forked_child_lays_the_connection_down(wire: Wire) -> None:
    connection, engine = wire
    tag = tag_from(wire)
    connection.write(tag, 0, b"a line\n", 3)
    child = os.fork()
    if child == 0:
        connection.forked()
        connection.write(tag, 0, b"not heard", 0)
        connection.flush()
        is_well = connection.receive() is None and connection.poll()
        connection.close()
        os._exit(0 if is_well else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    connection.write(tag, 0, b"a line\n", 3)
    connection.flush()
    assert read_frame(engine) + read_frame(engine) == vector("worker-write") * 2
    engine.sendall(vector("engine-drop"))
    assert isinstance(heard(connection), Drop)


@FORKS
def test_engine_that_reads_does_not_wake_a_worker_that_waits(wire: Wire) -> None:
    """A worker that waited for an answer was woken when the engine had read its request, and again
    by the answer: a round of one spawn and one wait cost twice as many switches of processes.
    """
    rounds, (connection, engine) = 100, wire
    tag = tag_from(wire)
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        for _ in range(rounds):
            connection.error(tag, FAILURE)
            connection.receive()
        waits = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before
        os._exit(0 if waits <= rounds * 3 // 2 else 1)
    for _ in range(rounds):
        read_frame(engine)
        while Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            os.sched_yield()
        engine.sendall(vector("engine-drop"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@FORKS
def test_child_forked_while_a_thread_receives_is_not_held(wire: Wire) -> None:
    """A thread that receives holds a lock; in a child forked meanwhile it is never released."""
    connection, engine = wire
    results: list[Message | None] = []
    receiver = threading.Thread(target=lambda: results.append(connection.receive()))
    receiver.start()
    child = os.fork()
    if child == 0:
        signal.alarm(int(DEADLINE_S))
        connection.forked()
        os._exit(0 if connection.receive() is None and connection.poll() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    engine.sendall(vector("engine-shutdown"))
    receiver.join(DEADLINE_S)
    assert results == [Shutdown([])]


def test_socket_taken_over_is_closed_on_exec() -> None:
    engine, worker = socket.socketpair()
    worker.set_inheritable(True)
    descriptor = worker.detach()
    connection = Connection(descriptor)
    assert fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    engine.close()
    assert connection.receive() is None


def test_descriptor_that_is_no_socket_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "file", "wb") as file:
        for descriptor in (-1, 1 << 20, file.fileno()):
            with pytest.raises(OSError):
                Connection(descriptor)
        file.write(b"still open")


@pytest.mark.skipif(platform.machine() not in WAITS_OF, reason="the number of poll is not known")
def test_poll_sees_what_another_thread_has_not_taken(wire: Wire) -> None:
    """It gave up when the thread that held the lock got no core for 20 ms: a task that was
    cancelled just then ran on for ever.
    """
    connection, engine = wire
    taken: list[Message | None] = []
    receiver = threading.Thread(target=lambda: taken.append(connection.receive()))
    receiver.start()
    call = Path(f"/proc/self/task/{receiver.native_id}/syscall")
    until(lambda: call.read_text("ascii").split()[0] in WAITS_OF[platform.machine()])
    engine.sendall(vector("engine-drop") * 2)
    assert connection.poll()
    receiver.join()
    assert [type(message) for message in (*taken, heard(connection))] == [Drop, Drop]
