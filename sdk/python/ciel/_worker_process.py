"""A worker process: it receives the engine's messages and gives each strand its turn.

A strand that waits is parked until the engine resumes, cancels or drops it. Dropped strands, which
continue elsewhere, are kept for ever, since ending a greenlet would run clean-up code of the task.
This module does not know what a task is. Read next: `_worker.py` for a strand, `_scheduler.py` for
turns, protocol/PROTOCOL.md.
"""

from __future__ import annotations

import _thread
import faulthandler
import os
import signal
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from greenlet import getcurrent

from ciel import _native, _once, _streams
from ciel._code import adopt, resolve
from ciel._errors import Cancelled
from ciel._freeze import thaw
from ciel._native import Cancel, Drop, Resume, Shutdown, Start
from ciel._process_state import ProcessState
from ciel._scheduler import Scheduler
from ciel._strand import note_worker
from ciel._waiting_strand import WaitingStrand
from ciel._worker import WorkerStrand

if TYPE_CHECKING:
    from ciel._native import Message

DROPPED_MAX = 256
FUNCTIONS_MAX = 512
CANCEL_WAIT_MS = 20
LOG_WARNING = 2
STDERR = 2

_exit = os._exit


class Capture(Protocol):
    """The file to which commands write their output."""

    def take(self) -> bytes:
        """The bytes written since the last call."""
        ...


class WorkerProcess:
    """The strands of one worker process, and the connection they share."""

    def __init__(
        self,
        connection: _native.Connection,
        captured: Capture,
        strand: Callable[[WorkerProcess, Start], WorkerStrand] = WorkerStrand,
    ) -> None:
        """`captured` returns the output on descriptor 1; `strand` makes the strand of a start."""
        self.connection = connection
        self.captured = captured
        self._strand = strand
        self.running: WaitingStrand | None = None
        self.forked = False
        self.used_up = False
        self.state = ProcessState()
        self._scheduler = Scheduler(getcurrent(), self.state)
        self._thread = threading.get_ident()
        self._threads_known = threading.active_count()
        self._owners: dict[threading.Thread, WaitingStrand | None] = {}
        self._told: set[threading.Thread] = set()
        self._parked: dict[int, WaitingStrand] = {}
        self._dropped: list[WaitingStrand] = []
        self._waiting: deque[Message] = deque()
        self._apart: set[int] = set()
        self._functions: dict[bytes, Callable[..., Any]] = {}
        self._by_value: OrderedDict[Any, Callable[..., Any]] = OrderedDict()
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Receives messages until the engine is gone or sends `shutdown`."""
        while True:
            if self._waiting:
                # The last message of the previous strand would wait for the next `receive`.
                self.connection.flush()
            message = self._waiting.popleft() if self._waiting else self.connection.receive()
            if message is None or type(message) is Shutdown:
                return
            self.handle(message)

    def handle(self, message: Message) -> None:
        """Handles a message; those about tasks not held here are stale."""
        if type(message) is Start:
            strand = self._strand(self, message)
            self.running = strand
            self._scheduler.begin(strand, strand.run)
            self.running = None
        elif type(message) is Resume:
            parked = self._parked.pop(message.tag, None)
            if parked is not None:
                self.running = parked
                self._scheduler.resume(parked, message)
                self.running = None
        elif isinstance(message, (Drop, Cancel)):
            parked = self._parked.pop(message.tag, None)
            if parked is not None and type(message) is Cancel:
                self._unwind(parked, message)
            elif parked is not None:
                self._drop(parked)

    def park(self, strand: WaitingStrand) -> Resume:
        """Ends the turn; returns the answers of the engine, or raises Cancelled."""
        self._note_threads(strand)
        self._parked[strand.tag] = strand
        message: Resume | Cancel = self._scheduler.park(strand)
        if isinstance(message, Cancel):
            raise Cancelled("the task was cancelled")
        return message

    def _unwind(self, strand: WaitingStrand, cancel: Cancel) -> None:
        """Raises Cancelled where the strand waits; a process that it does not give back ends."""
        strand.sever()
        # A thread of C, which needs no lock: code that never leaves C is ended, too.
        faulthandler.dump_traceback_later(cancel.grace_ms / 1000, exit=True, file=STDERR)
        self.running = strand
        self._scheduler.resume(strand, cancel)
        self.running = None
        faulthandler.cancel_dump_traceback_later()

    def _drop(self, strand: WaitingStrand) -> None:
        strand.ended = True
        self._dropped.append(strand)
        self.used_up = self.used_up or len(self._dropped) > DROPPED_MAX

    def receive(self) -> Message:
        """The next message, for a strand that needs an answer at once; ends if there is none."""
        message = self.connection.receive()
        if message is None or type(message) is Shutdown:
            self.leave()
        return message

    def put_off(self, message: Message) -> None:
        """Keeps a message for later."""
        self._waiting.append(message)

    def leave(self) -> NoReturn:
        """Ends the process without running any more code of tasks."""
        self.connection.flush()
        _exit(0)

    def function(self, header: bytes) -> Callable[..., Any]:
        """The function that a header names, imported once."""
        found = self._functions.get(header)
        if found is None:
            found = self._functions[header] = resolve(header)
            self.note_imported()
        return found

    def function_by_value(self, key: Any, read: Callable[[], bytes]) -> Callable[..., Any]:
        """The function in an object; `key` is the same for the same object."""
        found = self._by_value.get(key)
        if found is None:
            data = read()
            found = self._by_value[key] = adopt(thaw(data), data)
            self.note_imported()
            if len(self._by_value) > FUNCTIONS_MAX:
                self._by_value.popitem(last=False)
        return found

    def note_imported(self) -> None:
        """Modules were imported, and no code of the task has run."""
        self.state.keep_environment()

    def write(self, sink: int, data: bytes) -> None:
        """Buffers output of a task; called from any thread, and in forked children."""
        if self.forked:
            os.write(sink + 1, data)
            return
        thread = threading.get_ident()
        if thread in self._apart:
            sink = _streams.STDERR
        if thread == self._thread:
            strand = self.running
        else:
            strand = self._owner(threading.current_thread())
        if strand is None:
            return
        if sink:
            strand.errors.append(data)
        else:
            captured = self.captured.take() if strand is self.running else b""
            if captured:
                strand.pieces.append(captured)
            strand.pieces.append(data)
        if strand is self.running and (not data or data.endswith(b"\n")):
            self.send(strand)
            # What is printed is out, even if the next line kills the process.
            self.connection.flush()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What this thread prints inside is no output of its task, but standard error.

        So is the output of commands that run meanwhile.
        """
        thread = threading.get_ident()
        stream, nested = sys.stdout, thread in self._apart
        if not nested:
            self.write(_streams.STDOUT, b"")
        self._apart.add(thread)
        sys.stdout = self.state.stdout
        try:
            yield
        finally:
            sys.stdout = stream
            self.write(_streams.STDERR, self.captured.take())
            if not nested:
                self._apart.discard(thread)

    def take_captured(self) -> bytes:
        """The output of commands on descriptor 1 since the last call."""
        return self.captured.take()

    def send(self, strand: WaitingStrand) -> None:
        """Sends output that was not sent yet."""
        with self._lock:
            for sink, pieces in enumerate((strand.pieces, strand.errors)):
                data = b"".join(pieces)
                pieces.clear()
                if data:
                    self.connection.write(strand.tag, sink, data, strand.next_action)

    def _owner(self, thread: threading.Thread) -> WaitingStrand | None:
        """The strand that started a thread; `None` if it has ended, which is reported once."""
        owner = self._owners[thread] if thread in self._owners else self.running
        if owner is not None and not owner.ended:
            return owner
        if thread not in self._told:
            self._told.add(thread)
            os.write(2, f"what thread {thread.name} prints after its task is dropped\n".encode())
        return None

    def _note_threads(self, strand: WaitingStrand) -> None:
        """Records the threads that were started in this turn."""
        if not _thread._count() and self._threads_known == 1:
            return
        count = threading.active_count()
        if count == self._threads_known:
            return
        alive = threading.enumerate()
        self._owners = {
            thread: self._owners.get(thread, strand)
            for thread in alive
            if thread.ident != self._thread
        }
        self._threads_known = len(alive)

    def note_end(self, strand: WaitingStrand) -> None:
        """Warns of threads that outlive the task that is about to end."""
        if not _thread._count():
            self._threads_known = 1
            return
        self._note_threads(strand)
        left = [thread.name for thread, owner in self._owners.items() if owner is strand]
        if not left:
            return
        self.used_up = True
        strand.ended = True
        names = ", ".join(left)
        self.connection.log(
            strand.tag, LOG_WARNING, f"threads of {strand.label} outlive it: {names}"
        )

    def on_forked(self) -> None:
        """In a forked child: the connection belongs to the parent."""
        self.forked = True
        self.connection.forked()

    def check_forked(self, error: BaseException | None) -> None:
        """Ends a forked child that runs code of the task itself."""
        if not self.forked:
            return
        label = self.running.label if self.running is not None else "a task"
        text = f"a process forked in {label} ended outside of its code: end it with os._exit\n"
        if error is not None:
            text = f"a process forked in {label} ended with {error!r}\n"
        os.write(2, text.encode())
        _exit(0 if error is None else 1)

    def exit(self, status: int) -> NoReturn:
        """Stands for `os._exit` in code of tasks: leaves what was printed, and who called it."""
        if not self.forked:
            label = "a worker without a task"
            if self.running is not None:
                label = self.running.label
                self.send(self.running)
            self.connection.flush()
            os.write(STDERR, f"os._exit({status}) was called in {label}\n".encode())
            faulthandler.dump_traceback(STDERR, all_threads=False)
        _exit(status)

    def on_interrupt(self, number: int, frame: Any) -> None:
        """The signal beside `cancel`: raises Cancelled in the strand that has its turn."""
        running = self.running
        if running is None or self.forked or running.ended:
            return
        while self.connection.poll(CANCEL_WAIT_MS):
            message = self.connection.receive()
            if message is None:
                self.leave()
            if type(message) is Cancel and message.tag == running.tag:
                raise Cancelled("the task was cancelled")
            self._waiting.append(message)


def install(process: WorkerProcess) -> None:
    """Makes this process a worker: standard streams, signals, forks, process state of strands."""
    note_worker()
    _streams.install(process.write)
    process.state.take()
    signal.signal(signal.SIGUSR2, process.on_interrupt)
    process.state.install()
    _once.install(process.apart)
    os._exit = process.exit
    os.register_at_fork(after_in_child=process.on_forked)
