"""Tasks that do what tasks should not do, for `test_bad_input.py`; workers import this module."""

from __future__ import annotations

import asyncio
import ctypes
import os
import pickle
import signal
import subprocess
import sys
import threading
from typing import Any

import ciel
from ciel import Future

KEPT: list[Future[int]] = []
LEFT: list[threading.Event] = []
RATE = 1


@ciel.task
def double(number: int) -> int:
    """What a good task beside the bad ones does."""
    return 2 * number


@ciel.task
def no_bytes() -> Any:
    """Gives what cannot be pickled."""
    return {"parts": [1, threading.Lock()]}


@ciel.task
def leave() -> None:
    """Ends its process."""
    os._exit(3)


@ciel.task
def crash() -> None:
    """Reads from where nothing is."""
    ctypes.string_at(0)


def below(level: int) -> int:
    """Calls itself without end."""
    return below(level + 1) + 1


@ciel.task
def recurse() -> int:
    """Calls without end."""
    return below(0)


@ciel.task
def say_goodbye() -> None:
    """Asks the interpreter to end."""
    sys.exit("goodbye")


@ciel.task(timeout=0.3)
def swallow() -> None:
    """Cannot be cancelled: it swallows everything."""
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            continue


@ciel.task
def leave_thread() -> int:
    """Starts a thread that outlives it."""
    event = threading.Event()
    LEFT.append(event)
    threading.Thread(target=event.wait, name="left-behind", daemon=True).start()
    return os.getpid()


@ciel.task
def fork_and_return() -> str:
    """Its child comes to the end of the task, too."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    return "child" if child == 0 else "parent"


@ciel.task
def fork_and_raise() -> str:
    """Its child fails."""
    child = os.fork()
    if child == 0:
        raise ValueError("in the child")
    return f"status {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"


@ciel.task
def fork_and_spawn() -> str:
    """Its child uses the module."""
    child = os.fork()
    if child == 0:
        double.spawn(1).result()
    return f"status {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}"


@ciel.task
def fork_and_print() -> str:
    """Its child prints between two prints of its own."""
    print("before")
    child = os.fork()
    if child == 0:
        print("from the child")
        os._exit(0)
    os.waitpid(child, 0)
    print("after")
    return "parent"


def handlers() -> list[str]:
    """The signal handlers of this process, as text."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    return [str(signal.getsignal(number)) for number in numbers]


@ciel.task
def change_handlers() -> int:
    """Handles signals, also that of the worker itself."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    return os.getpid()


@ciel.task
def look_at_handlers() -> tuple[int, bool]:
    """Whether handlers are as a task should find them, and in which process."""
    return os.getpid(), str(signal.SIG_IGN) in handlers()


@ciel.task
def print_without_end(words: str) -> int:
    """Prints half a line."""
    print(words, end="")
    return len(words)


@ciel.task
def print_bytes() -> int:
    """Prints text, bytes that are no text, and lets commands print in between."""
    print("text", end=";")
    sys.stdout.buffer.write(b"\xff\x00;")
    subprocess.run(["printf", "command;"], check=True)
    print("more")
    os.system("echo shell")
    os.write(1, b"descriptor\n")
    print("end")
    return 1


@ciel.task
def keep_globally() -> int:
    """Leaves a future in a global, where others of this process find it."""
    KEPT[:] = [double.spawn(4), double.spawn(5)]
    KEPT[0].result()
    return os.getpid()


@ciel.task
def use_global(which: int, how: str) -> tuple[int, str]:
    """Uses the future of another task."""
    if not KEPT:
        return os.getpid(), ""
    try:
        if how == "result":
            KEPT[which].result()
        elif how == "done":
            KEPT[which].done()
        else:
            double.spawn(KEPT[which].later)
    except ciel.WaitError as error:
        return os.getpid(), str(error)
    return os.getpid(), "no error"


@ciel.task
def pickle_future() -> bytes:
    """Pickles a future by hand."""
    return pickle.dumps(double.spawn(1))


@ciel.task
def wait_in_thread() -> list[Any]:
    """Waits in a thread of its own, before and after the result is ready."""
    found: list[Any] = []
    future = double.spawn(8)

    def work() -> None:
        try:
            found.append(future.result())
        except ciel.WaitError as error:
            found.append(str(error))

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        future.result()
    return found


@ciel.task
def spawn_in_thread() -> str:
    """Spawns in a thread of its own."""
    found: list[str] = []

    def work() -> None:
        try:
            double.spawn(1)
        except ciel.NoRun as error:
            found.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


@ciel.task
def wait_in_loop() -> list[Any]:
    """Waits inside asyncio.run, awaits, and waits again when the result is ready."""
    future = double.spawn(8)

    async def wait(way: str) -> Any:
        try:
            return await future if way == "await" else future.result()
        except ciel.WaitError as error:
            return str(error)

    found = [asyncio.run(wait("result")), asyncio.run(wait("await"))]
    future.result()
    return [*found, asyncio.run(wait("result"))]


@ciel.task
def declare(what: str) -> None:
    """Makes a task of what cannot be one."""
    if what == "async":

        @ciel.task
        async def waits() -> None:
            """Is async."""

    else:

        @ciel.task(joined=True)
        def whole() -> Any:
            """Yields nothing."""


@ciel.task
def rate() -> int:
    """Reads a global."""
    return RATE


@ciel.task
def assign_again() -> list[Any]:
    """Assigns a global that a task reads, after its first spawn."""
    global RATE
    RATE = 1
    found: list[Any] = [rate.spawn().result()]
    RATE = 2
    try:
        rate.spawn()
    except ciel.CielError as error:
        found.append(str(error))
    finally:
        RATE = 1
    return found


@ciel.task
def assign_captured_again() -> str:
    """Assigns a captured variable again."""
    level = 1

    @ciel.task
    def captured() -> int:
        return level

    assert captured.spawn().result() == 1
    level = 2
    try:
        captured.spawn()
    except ciel.CielError as error:
        return str(error)
    return "no error"


@ciel.task
def ask_for_truth() -> str:
    """Takes a future for its value."""
    return "yes" if double.spawn(0) else "no"
