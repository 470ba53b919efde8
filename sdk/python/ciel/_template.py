"""A template: a process that has imported what a worker needs, and forks the further workers.

The first worker leaves one behind before it runs anything of a program. The spawner then asks the
template for workers; what it sends and expects stands in `Start::template` of the crate
`ciel-spawner`. Each of these processes is forked by one that ends at once, so that the spawner
adopts it. It does not know tasks. Read next: `worker.py`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from ciel import _native

VARIABLE = "CIEL_TEMPLATE_FD"
COOKIE = "CIEL_COOKIE"
NAME = "template"
TITLE = "ciel-template"
GO = b"g"


def leave(worker: int) -> int | None:
    """Leaves a template behind if the spawner wants one, for workers with the socket `worker`.

    Returns in this process, with a child to be collected, and in each worker that is forked.
    """
    number = os.environ.pop(VARIABLE, "")
    if not number.isdigit():
        return None
    socket, middle = int(number), None
    if _is_plain({0, 1, 2, worker, socket}):
        # What is buffered would be written by each worker once more.
        sys.stdout.flush()
        sys.stderr.flush()
        spawner = os.getppid()
        middle = _forked()
        if middle == 0:
            _become_template(socket, worker, spawner)
            return None
    os.close(socket)
    return middle


def collect(middle: int | None) -> None:
    """Collects a child, if there is one."""
    if middle is not None:
        os.waitpid(middle, 0)


def _is_plain(expected: set[int]) -> bool:
    """Whether this process has one thread and these descriptors.

    What a `.pth` file or `sitecustomize` has begun besides, workers must not share.
    """
    try:
        threads = os.listdir("/proc/self/task")
        found = {int(name) for name in os.listdir("/proc/self/fd")}
    except OSError:
        return False
    # One more is that of the list itself.
    return len(threads) == 1 and expected <= found and len(found - expected) <= 1


def _become_template(socket: int, worker: int, spawner: int) -> None:
    """In a fork: becomes the template. Returns in each worker that is forked."""
    with _DiesOfErrors():
        _be_adopted(lambda pid: os.write(socket, _packed(pid)))
        mark = f"{COOKIE}={os.environ[COOKIE]}"
        before, colon, name = mark.rpartition(":")
        _native.overwrite_entry(os.fsencode(before + colon + NAME.ljust(len(name), ".")))
        _native.end_with(spawner)
        title = _retitled(TITLE)
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1, 2, worker):
            os.dup2(null, number)
        os.close(null)
        _serve(socket, worker, spawner)
        _retitled(title)


def _retitled(title: str) -> str:
    """Gives this process another title, as `ps` shows it, in place of the one that is returned."""
    with open("/proc/self/comm", "r+", encoding="utf-8") as file:
        before = file.read().rstrip("\n")
        file.write(title)
    return before


def _serve(socket: int, worker: int, spawner: int) -> None:
    """Forks a worker for each request; returns in these, and ends with the socket."""
    while True:
        request = _native.receive_request(socket)
        if request is None:
            os._exit(0)
        mark, descriptors = request
        middle = _forked()
        if middle == 0:
            os.close(socket)
            _be_adopted(lambda pid: None)
            _become_worker(mark, descriptors, worker, spawner)
            return
        # If there are too many processes, this tells it.
        for descriptor in descriptors:
            os.close(descriptor)
        collect(middle)


def _forked() -> int | None:
    """Forks: as `os.fork`, or None if there are too many processes."""
    try:
        return os.fork()
    except OSError:
        return None


def _be_adopted(announce: Callable[[int], object]) -> None:
    """Forks once more and ends, when it has announced its child. Returns in that, once the spawner
    has adopted it.
    """
    own = os.pidfd_open(os.getpid())
    child = os.fork()
    if child:
        os.setpgid(child, child)
        announce(child)
        os._exit(0)
    _native.await_end(own)
    os.close(own)


def _become_worker(mark: bytes, descriptors: list[int], worker: int, spawner: int) -> None:
    """Makes of this process what the spawner has asked for, and waits until that knows of it."""
    _native.end_with(spawner)
    reply, *sources = descriptors
    for source, target in zip(sources, (0, 1, 2, worker), strict=True):
        os.dup2(source, target)
        os.close(source)
    _native.overwrite_entry(mark)
    os.environ[COOKIE] = os.fsdecode(mark.partition(b"=")[2])
    os.write(reply, _packed(os.getpid()))
    if os.read(reply, 1) != GO:
        raise EOFError("the spawner has given the worker up")
    os.close(reply)
    # Folders are looked at as if they were met for the first time.
    sys.path_importer_cache.clear()


def _packed(pid: int) -> bytes:
    return pid.to_bytes(4, "little")


class _DiesOfErrors:
    """In a fork that nobody knows yet: what fails ends it as if it had been killed."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            os.kill(os.getpid(), signal.SIGKILL)
