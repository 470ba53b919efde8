"""A worker process: it receives the engine's messages and gives each strand its turn.

A strand that waits is parked until the engine resumes, cancels or drops it. Dropped strands, which
continue elsewhere, are kept for ever, since ending a greenlet would run clean-up code of the task.
This module does not know what a task is. Read next: `_worker.py` for a strand, `_scheduler.py` for
turns, protocol/PROTOCOL.md.
"""

from __future__ import annotations

import _thread
import errno
import faulthandler
import os
import signal
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from greenlet import getcurrent, greenlet

from ciel import _assist, _audit, _early, _native, _once, _streams, _task_files
from ciel._code import adopt, identity_of, resolve
from ciel._errors import Cancelled, WaitError
from ciel._freeze import thaw
from ciel._future import Future
from ciel._in_place import Kept
from ciel._keeping_strand import InsideStrand, KeepingStrand
from ciel._light_strand import LightStrand
from ciel._native import Cancel, Drop, Resume, Shutdown, Start
from ciel._native_tasks import NativeTasks
from ciel._process_state import ProcessState
from ciel._raised import Raised
from ciel._random import follow_environment
from ciel._scheduler import Scheduler, sees_places
from ciel._strand import here, note_worker
from ciel._task import Task
from ciel._task_strand import no_event_loop
from ciel._waiting_strand import WAIT_ALL, WaitingStrand
from ciel._worker import Begun, WorkerStrand

if TYPE_CHECKING:
    from ciel._call import TaskFunction
    from ciel._native import Message
    from ciel._payload import Arguments

ASKED_AFTER_BYTES = 1 << 16
DROPPED_MAX = 256
FUNCTIONS_MAX = 512
LOG_WARNING = 2
STDERR = 2

_exit = os._exit


class Capture(Protocol):
    """The file to which commands write their output."""

    def take(self) -> bytes:
        """The bytes written since the last call."""
        ...

    def note_process(self) -> None:
        """Another process may write from now on."""
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
        self.stack: _native.Stack | None = None
        self._running: WaitingStrand | None = None
        self.forked = self.asks = self.used_up = False
        self.spawns_between_asks = 0
        self.promoter: _native.Promoter | None = None
        self._starts: NativeTasks | None = None
        self.state = ProcessState()
        self._scheduler = Scheduler(getcurrent(), self.state)
        self._thread = threading.get_ident()
        self._threads_known = threading.active_count()
        self._owners: dict[threading.Thread, WaitingStrand | None] = {}
        self._told: set[threading.Thread] = set()
        self._parked: dict[int, WaitingStrand] = {}
        self.late: dict[int, list[Message]] = {}
        self._dropped: list[WaitingStrand] = []
        self._waiting: deque[Message] = deque()
        self._heard: deque[Message] = deque()
        self._is_receiving = self._was_interrupted = False
        self._apart: set[int] = set()
        self._functions: dict[bytes, Callable[..., Any]] = {}
        self._by_value: OrderedDict[Any, Callable[..., Any]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def running(self) -> WaitingStrand | None:
        """The strand that has its turn, also if it has begun natively."""
        top = None if self.stack is None else self.stack.top
        return self._running if top is None else cast("WaitingStrand", top)

    @running.setter
    def running(self, strand: WaitingStrand | None) -> None:
        self._running = strand

    def serve(self) -> None:
        """Receives messages until the engine is gone or sends `shutdown`."""
        while True:
            if self._is_plain() and self._starts is not None and self._starts.run_ready():
                continue
            earlier = self._waiting or self._heard
            if earlier:
                # The last message of the previous strand would wait for the next `receive`.
                self.connection.flush()
            message = earlier.popleft() if earlier else self.connection.receive()
            if message is None or type(message) is Shutdown:
                return
            self.handle(message)

    def _is_plain(self) -> bool:
        """Whether nothing is left by earlier tasks that Python would have to look at."""
        return not (self._waiting or self._heard or self.used_up) and self._threads_known == 1

    def stand_task(self, start: Start, begun: Begun, elapsed_s: float) -> WorkerStrand:
        """The strand of a task that has begun natively, `elapsed_s` ago."""
        strand = self._strand(self, start)
        strand.note_task(begun, elapsed_s)
        return strand

    def handle(self, message: Message) -> None:
        """Handles a message; those about tasks not held here are stale."""
        if type(message) is Start:
            strand = self._strand(self, message)
            self.running = strand
            self._scheduler.begin(strand, strand.run)
            self.running = None
        elif type(message) is Resume:
            parked = self._taken(message)
            if parked is not None:
                self.running = parked
                self._scheduler.resume(parked, message)
                self.running = None
        elif isinstance(message, (Drop, Cancel)):
            parked = self._taken(message)
            if parked is not None and type(message) is Cancel:
                self._unwind(parked, message)
            elif parked is not None:
                self._drop(parked)

    def _taken(self, message: Resume | Drop | Cancel) -> WaitingStrand | None:
        """The parked strand that a message is about, if there is one. If a child that it has called
        is above it in its greenlet, the message waits until that has ended.
        """
        if message.tag not in self.late:
            return self._parked.pop(message.tag, None)
        self.late[message.tag].append(message)
        return None

    def park(self, strand: WaitingStrand) -> Resume:
        """Ends the turn; returns the answers of the engine, or raises Cancelled."""
        self._note_threads(strand)
        self._parked[strand.tag] = strand
        message: Resume | Cancel = self._scheduler.park(strand)
        if isinstance(message, Cancel):
            raise Cancelled("the task was cancelled")
        return message

    def keep_children(self, idle_path: str) -> None:
        """Strands keep children; the engine says in that file whether a core is idle."""
        path = idle_path if os.path.exists(idle_path) else None
        follow_environment()
        promoter = self.promoter = _native.Promoter(self.connection, path)
        scheduler = self._scheduler
        scheduler.end_inside = self._end_inside  # type: ignore[method-assign]
        self.stack = scheduler.stack = _native.Stack(
            promoter, self._stand, _early, Future, scheduler.idle, self.captured, self.state,
            sees_places(),
        )  # fmt: skip
        if self._strand is WorkerStrand:
            self._starts = NativeTasks(self, scheduler, self.stack, self._functions, idle_path)
        Task.spawn = _native.Function.spawn  # type: ignore[method-assign]

    def inside(self, parent: KeepingStrand, child: Kept) -> InsideStrand:
        """The strand of a child that begins in place."""
        return LightStrand(self, parent, child)

    def _stand(
        self,
        below: tuple[KeepingStrand, Callable[..., Any], bool],
        call: tuple[TaskFunction, Arguments],
        place: tuple[int, int],
        counts: tuple[int, int],
        released: list[int],
        elapsed_s: float,
    ) -> LightStrand:
        """The strand of a child that has begun natively, `elapsed_s` ago, in place of `below`."""
        parent, switch, is_called = below
        strand = LightStrand(self, parent, Kept(*call, b"", *place, False))
        strand.is_called = is_called
        strand.next_action, strand.next_handle = counts
        strand.keeps = strand.next_action > 0
        strand.note_begun(call[1], elapsed_s)
        for handle in released:
            strand.let_go(handle)
        parent.where = switch.__self__  # type: ignore[attr-defined]
        parent._waits_inside = True
        return strand

    def _end_inside(self, value: Any) -> tuple[greenlet | None, Any]:
        """Ends what has begun natively: the greenlet that continues, and what that receives: a list
        from which it takes the strand, since an idle greenlet keeps what it has sent.
        """
        strand = here.strand
        assert isinstance(strand, LightStrand), "it has begun natively"
        where = strand.end(value)
        return where, None if where is None else [strand]

    def end_called(self, parent: KeepingStrand, value: Any) -> Any:
        """Ends a child that `parent` has called, and gives `value`; the answer for the parent."""
        if here.strand is parent:  # the child had ended before this was raised
            return value
        where, answer = self._end_inside(value)
        if type(value) is Raised:
            value.forget()
        if where is None:
            self._waiting.extendleft(reversed(self.late.pop(parent.tag, [])))
        return self._scheduler.leave_called(where, answer)

    def return_to(self, parent: KeepingStrand) -> None:
        """Gives the turn back to the parent of a child that has ended in place."""
        self._scheduler.return_to(parent)
        self.running = parent

    def run_inside(self, parent: WaitingStrand, strand: InsideStrand) -> Resume | None:
        """Runs a child in place: `None` when it has ended there, else the answer of the engine.

        Raises Cancelled if the parent was cancelled meanwhile.
        """
        self._note_threads(parent)
        self.running = strand
        message: Resume | Cancel | None
        message = self._scheduler.begin_inside(strand, parent, strand.run)
        if message is None:
            self.running = parent
        if isinstance(message, Cancel):
            raise Cancelled("the task was cancelled")
        return message

    def note_parked(self, strand: WaitingStrand) -> None:
        """A strand waits from now on for what runs in place of it."""
        self._parked[strand.tag] = strand

    def await_start(self, strand: InsideStrand) -> None:
        """Lets a strand that runs in place receive its start as a task.

        Raises Cancelled if the engine has ended the task before.
        """
        self._is_receiving = True
        try:
            while strand.parent is not None:
                message = self._next()
                if type(message) is Start and message.position == strand.position:
                    strand.adopt(message)
                    break
                self.put_off(message)
                if isinstance(message, (Resume, Drop, Cancel)) and message.tag == strand.parent.tag:
                    strand.part()
                    strand.sever()
                    raise Cancelled("the task was cancelled")
        finally:
            self._is_receiving = False
        self._heed()

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
        self._is_receiving = True
        try:
            message = self._next()
        finally:
            self._is_receiving = False
        if self._was_interrupted:
            self._heard.appendleft(message)
            self._heed()
            message = self._heard.popleft()
        return message

    def _next(self) -> Message:
        message = self._heard.popleft() if self._heard else self.connection.receive()
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
        else:
            found = identity_of(found, found.__name__).renewed(found)
        return found

    def note_imported(self) -> None:
        """Modules were imported, and no code of the task has run."""
        self.state.keep_imported()
        self._scheduler.keep_context()

    def write(self, sink: int, data: bytes) -> None:
        """Buffers output of a task; called from any thread, and in forked children."""
        if self.forked:
            os.write(sink + 1, data)
            return
        if threading.get_ident() in self._apart:
            sink = _streams.STDERR
        strand = self._writing()
        if strand is None:
            _assist.note_unusual()
            return
        if sink:
            strand.errors.append(data)
        else:
            self._gather(strand, data)
        if strand is self.running and (not data or data.endswith(b"\n")):
            self._send_now(strand)

    def write_file(self, path: str, data: bytes, now: bool) -> None:
        """Buffers what a task writes to an ordered file; called from any thread.

        Raises:
            OSError: this process is a forked child of a worker.
        """
        if self.forked:
            raise OSError(errno.EBADF, "a forked process cannot write to an ordered file", path)
        strand = self._writing()
        if strand is None:
            return
        if data or not now:
            self._gather(strand, (path, data))
        if now and strand is self.running:
            self._send_now(strand)

    def _writing(self) -> WaitingStrand | None:
        """The strand whose output this thread writes; `None` if it has ended."""
        if threading.get_ident() == self._thread:
            return self.running
        return self._owner(threading.current_thread())

    def _gather(self, strand: WaitingStrand, piece: bytes | tuple[str, bytes]) -> None:
        captured = self.captured.take() if strand is self.running else b""
        if captured:
            strand.pieces.append(captured)
        strand.pieces.append(piece)

    def _send_now(self, strand: WaitingStrand) -> None:
        self.send(strand)
        # What is printed is out, even if the next line kills the process.
        self.connection.flush()
        if self.asks and strand.unasked >= ASKED_AFTER_BYTES:
            self.ask(strand)

    def ask(self, strand: WaitingStrand) -> None:
        """Lets a strand that has written or spawned much wait until it may go on."""
        if strand.replaying or not strand.is_settled or threading.get_ident() != self._thread:
            return
        strand.unasked = 0
        # Where a strand cannot wait, it continues.
        with suppress(WaitError), no_event_loop():
            strand.block([], WAIT_ALL, None)

    def tell_caches(self, held: list[str], dropped: list[str]) -> None:
        """Tells the engine of which files of objects this process keeps something."""
        _native.tell_caches(self.connection, held, dropped)

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
        if not strand.is_settled:
            if threading.get_ident() != self._thread:
                return  # it is sent with what the strand does next
            strand.promote()
        with self._lock:
            tag, after = strand.tag, strand.next_action
            for path, data in _streams.joined(strand.pieces):
                strand.unasked += len(data)
                if path is not None:
                    self.connection.write_file(tag, path, data, after)
                elif data:
                    self.connection.write(tag, _streams.STDOUT, data, after)
            strand.pieces.clear()
            errors = b"".join(strand.errors)
            strand.errors.clear()
            if errors:
                self.connection.write(tag, _streams.STDERR, errors, after)

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
        """Counts what ran in place, and warns of threads that outlive the task, which ends."""
        if self.promoter is not None:
            self.promoter.count_ended()
        if not _thread._count():
            self._threads_known = 1
            return
        self._note_threads(strand)
        left = [thread.name for thread, owner in self._owners.items() if owner is strand]
        if not left:
            return
        self.used_up = True
        strand.ended = True
        text = f"threads of {strand.label} outlive it: {', '.join(left)}"
        self.connection.log(strand.tag, LOG_WARNING, text)

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
        _assist.interrupt()
        self._was_interrupted = True
        if not self._is_receiving:
            self._heed()

    def _heed(self) -> None:
        """Raises Cancelled if an interrupt has come, and a `cancel` for what has its turn.

        That comes before the signal, so it is there by now.
        """
        if not self._was_interrupted:
            return
        self._was_interrupted = False
        running = self.running
        if running is None or self.forked or running.ended:
            return
        while self.connection.poll():
            message = self.connection.receive()
            if message is None:
                self.leave()
            inside = _inside_at(running, message.position) if type(message) is Start else None
            if type(message) is Start and inside is not None:
                inside.adopt(message)
            elif type(message) is Cancel and message.tag == _task_of(running).tag:
                self._sever_inside(running)
                raise Cancelled("the task was cancelled")
            else:
                self._heard.append(message)

    def _sever_inside(self, strand: WaitingStrand) -> None:
        """The task of `strand` was cancelled: what runs in place of it is not heard."""
        if self.promoter is not None:
            self.promoter.forget()
        while isinstance(strand, InsideStrand) and strand.parent is not None:
            strand.sever()
            strand = strand.parent


def _task_of(strand: WaitingStrand) -> WaitingStrand:
    """The strand, or that of the task in which it runs in place."""
    while isinstance(strand, InsideStrand) and strand.parent is not None:
        strand = strand.parent
    return strand


def _inside_at(strand: WaitingStrand, position: bytes) -> InsideStrand | None:
    """The strand at that position, if `strand` is it or runs in place of it, and it is no task."""
    while isinstance(strand, InsideStrand) and strand.parent is not None:
        if strand.position == position:
            return strand
        strand = strand.parent
    return None


def install(process: WorkerProcess) -> None:
    """Makes this process a worker: standard streams, signals, forks, process state of strands."""
    note_worker()
    _streams.install(process.write)
    _task_files.install(process.write_file)
    process.state.take()
    signal.signal(signal.SIGUSR2, process.on_interrupt)
    process.state.install()
    _audit.install(process)
    _once.install(process.apart, process.tell_caches)
    os._exit = process.exit
    os.register_at_fork(after_in_child=process.on_forked)
