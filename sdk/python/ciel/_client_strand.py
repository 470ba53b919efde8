"""The root strand of a session: it submits, watches and waits from any thread.

A thread of the session receives the engine's answers, so a waiting thread blocks no other. This
module knows neither options nor the child process. Read next: `_session.py`, `_engine_strand.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, wait
from concurrent.futures import Future as Answered
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ciel import _native
from ciel._call import Call
from ciel._callbacks import Callbacks
from ciel._engine_strand import EngineStrand, truths
from ciel._errors import Cancelled, CielError, NoRun, WorkerLost, error_of
from ciel._future import Future, Known
from ciel._native import Answer, Failed, Failure, Observed, Opened, Shutdown
from ciel._options import Options

if TYPE_CHECKING:
    from ciel._native import Result


class Watched:
    """A request whose answer threads wait for; the answer is an exception if the engine is gone."""

    __slots__ = ("answer",)

    def __init__(self) -> None:
        """Has no answer yet, and cannot be cancelled."""
        self.answer: Answered[Result | Failure] = Answered()
        self.answer.set_running_or_notify_cancel()

    @property
    def is_resolved(self) -> bool:
        """Whether the answer has arrived."""
        return self.answer.done()


class ClientStrand(EngineStrand):
    """The root strand of a session; any thread may use it.

    `lost` is why the engine cannot be reached any more, `failures` are those that were never read;
    `forked` is the error of its use in a forked child; `cancelled` is whether the session was ended
    with all that it had not finished; `cell` has the handles that a notebook's cell has submitted.
    Between two questions whether it may go on, the program submits `submits_between_asks` tasks.
    """

    any_thread = True
    cancelled: bool = False
    cell: list[int] | None = None
    submits_between_asks: int = 0
    _unasked: int = 0

    def __init__(self, connection: _native.Connection, tag: int, label: str) -> None:
        """For a connection after its handshake, and a started strand."""
        self.connection = connection
        self.tag = tag
        self.label = label
        self.saying = threading.RLock()
        self._answers: dict[int, Watched] = {}
        self._expected: dict[int, Watched] = {}
        self.lost: CielError | None = None
        self.failures: list[Failure] = []
        self.closed = threading.Event()
        self._callbacks = Callbacks()
        self.forked: NoRun | None = None

    def hear(self) -> None:
        """Receives messages until the engine is gone; runs in a thread of its own."""
        is_well = False
        try:
            while (message := self.connection.receive()) is not None:
                if type(message) is Answer:
                    self._answered(message.request, message.result)
                elif type(message) is Shutdown:
                    self.failures, is_well = message.failures, True
                    break
        finally:
            self._end(is_well)

    def on_forked(self) -> None:
        """In a forked child: whatever needs the engine raises at once."""
        self.connection.forked()
        self.saying = threading.RLock()  # another thread of the parent may have held it
        self.lost = self.forked = NoRun(
            f"this session belongs to process {os.getppid()}, which forked this one",
            hint="open a session in each process, after the fork",
        )

    def _answered(self, request: int, answer: Result | Failure) -> None:
        watched = self._answers.pop(request, None)
        if watched is not None:
            watched.answer.set_result(answer)

    def _end(self, well: bool) -> None:
        is_expected = well or self.cancelled
        why = "the session is closed" if is_expected else "the engine of the session has ended"
        self.lost = NoRun(why) if is_expected else WorkerLost(why)
        lost = self._end_of_unresolved()
        self.closed.set()
        for request in list(self._answers):
            watched = self._answers.pop(request, None)
            if watched is not None:
                watched.answer.set_exception(lost)
        self._callbacks.end()

    def _end_of_unresolved(self) -> BaseException:
        assert self.lost is not None, "the engine is gone"
        return Cancelled("the session was cancelled") if self.cancelled else self.lost

    def _ask(self, say: Callable[[int], None]) -> Watched:
        """Sends a request and returns the future of its answer."""
        with self.saying:
            request = super().next_request()
            watched = self._answers[request] = Watched()
            if self.lost is not None:  # otherwise its end answers what has an entry by now
                self._answers.pop(request, None)
                raise self.lost
            say(request)
            self.connection.flush()
        return watched

    def _taken(self, watched: Watched) -> Result:
        lost = watched.answer.exception()
        if lost is not None:
            raise lost
        answer = watched.answer.result()
        if isinstance(answer, Failure):
            raise error_of(answer)
        return answer

    def answer(self, request: int) -> Result:
        """Waits for the answer to the last request."""
        self.connection.flush()
        return self._taken(self._expected.pop(request))

    def store(
        self, form: str, pieces: list[Any], references: Sequence[int], part: int | None = None
    ) -> int:
        """As every strand does, one thread at a time."""
        with self.saying:
            return super().store(form, pieces, references, part)

    def next_request(self) -> int:
        """Registers the request before it is sent: its answer may arrive at once."""
        request = super().next_request()
        self._expected[request] = self._answers[request] = Watched()
        return request

    def spawn(self, call: Call, options: Options) -> tuple[Future[Any], ...]:
        """As every strand does, one thread at a time, and sent at once."""
        with self.saying:
            if self.lost is not None:
                raise self.lost
            made = super().spawn(call, options)
            self.connection.flush()
            self._note_submitted(made)
        self._pause()
        return made

    def spawn_executor(
        self, executor: str, arguments: dict[str, Any], outputs: int, options: Options, label: str
    ) -> tuple[Future[Any], ...]:
        """As every strand does, one thread at a time, and sent at once."""
        with self.saying:
            if self.lost is not None:
                raise self.lost
            made = super().spawn_executor(executor, arguments, outputs, options, label)
            self.connection.flush()
            self._note_submitted(made)
        self._pause()
        return made

    def take_released(self) -> Sequence[int]:
        """As every strand does, but none in a cell of a notebook: its end may cancel them."""
        return () if self.cell else super().take_released()

    def _pause(self) -> None:
        """Now and then waits in this thread while very many tasks have not ended.

        Other threads continue; an interrupt ends the wait.
        """
        if self._unasked <= self.submits_between_asks:
            return
        self._unasked = 0
        asked = self._ask(
            lambda request: self.connection.ask(
                self.tag, request, "few_children", [], action=self.next_action, part=0
            )
        )
        wait([asked.answer])

    def _note_submitted(self, futures: Sequence[Future[Any]]) -> None:
        self._unasked += 1
        if self.cell is not None:
            self.cell.extend(future._handle for future in futures)

    def watch(self, future: Future[Any]) -> Watched:
        """Watches a future once, however many threads wait for it."""
        handle = self.handle_of(future)
        with self.saying:
            known = future._known
            if self.forked is not None and (known is None or not known.is_resolved):
                raise self.forked
            if self.lost is not None and known is None:
                raise self._end_of_unresolved()
            if not isinstance(known, Watched):
                known = future._known = self._ask(
                    lambda request: self.connection.open_reference(self.tag, request, handle, True)
                )
            return known

    def result(self, future: Future[Any]) -> Any:
        """Waits in this thread; other threads continue."""
        return self.read(self.settled(future))

    def settled(self, future: Future[Any]) -> Known:
        """Waits in this thread; other threads continue."""
        answer = self._taken(self.watch(future))
        assert not isinstance(answer, (Opened, Observed)), f"{future!r} resolved to {answer!r}"
        return answer

    def looks_on(self, future: Future[Any]) -> bool:
        """Reads what is not known to be whole; what a failed task has written may be there, too."""
        known = future._known
        return known is None or not known.is_resolved or type(known) is Failed

    def open_stream(self, future: Future[Any]) -> Result:
        """Asks and waits in this thread."""
        handle = self.handle_of(future)
        asked = self._ask(
            lambda request: self.connection.open_reference(self.tag, request, handle, False, True)
        )
        return self._taken(asked)

    def say_all(self) -> None:
        """Everything is sent at once."""

    def wait(
        self, futures: Sequence[Future[Any]], count_first: bool, timeout_s: float | None
    ) -> list[Future[Any]]:
        """Waits for all, or for the first; returns the resolved ones, in the order given."""
        watched = [self.watch(future) for future in futures]
        until = FIRST_COMPLETED if count_first else ALL_COMPLETED
        wait([one.answer for one in watched], timeout_s, until)
        pairs = zip(futures, watched, strict=True)
        return [future for future, one in pairs if one.is_resolved]

    def completed(
        self, futures: Sequence[Future[Any]], timeout_s: float | None
    ) -> Iterator[Future[Any]]:
        """As `Strand.completed`; other threads continue."""
        arrived: SimpleQueue[Future[Any]] = SimpleQueue()
        for future in futures:
            self.watch(future).answer.add_done_callback(_putter(arrived, future))
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for _ in futures:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                yield arrived.get(timeout=left)
            except Empty:
                return

    def done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Queries the engine."""
        handles = [self.handle_of(future) for future in futures]
        asked = self._ask(
            lambda request: self.connection.ask(
                self.tag, request, "done", handles, action=self.next_action, part=self.observe()
            )
        )
        answer = self._taken(asked)
        assert isinstance(answer, Observed), f"a question was answered by {answer!r}"
        found: list[bool] = json.loads(answer.value)
        return found

    def cancel(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Requests it from the engine."""
        return self.cancel_handles([self.handle_of(future) for future in futures])

    def cancel_handles(self, handles: list[int]) -> list[bool]:
        """As `cancel`."""
        if not handles:
            return []
        asked = self._ask(
            lambda request: self.connection.ask(
                self.tag, request, "cancel", handles, action=self.next_action, part=self.observe()
            )
        )
        answer = self._taken(asked)
        assert isinstance(answer, Observed), f"a question was answered by {answer!r}"
        return truths(answer.value, len(handles))

    def input(self, kind: str, take: Callable[[], bytes]) -> bytes:
        """Reads the environment: a session is not replayed."""
        return take()

    def call_when_done(
        self, future: Future[Any], callback: Callable[[Future[Any]], object]
    ) -> None:
        """Calls back in a thread that the callbacks of this session share."""
        self.watch(future).answer.add_done_callback(
            lambda _: self._callbacks.call(callback, future)
        )

    def call_later(self, callback: Callable[[Any], object]) -> None:
        """Calls back in that thread when it has called all that is due."""
        self._callbacks.call(callback, None)

    def awaiting(self, future: Future[Any]) -> Generator[Any, None, Any]:
        """Waits in asyncio code."""
        watched = self.watch(future)
        if not watched.is_resolved:
            loop = asyncio.get_running_loop()
            resolved = loop.create_future()

            def resolve() -> None:
                if not resolved.done():
                    resolved.set_result(None)

            watched.answer.add_done_callback(lambda _: _call_soon(loop, resolve))
            yield from resolved
        return self.result(future)


def _putter(
    arrived: SimpleQueue[Future[Any]], future: Future[Any]
) -> Callable[[Answered[Result | Failure]], None]:
    def put(_: Answered[Result | Failure]) -> None:
        arrived.put(future)

    return put


def _call_soon(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(act)
    except RuntimeError:  # the loop was closed: nothing waits any more
        pass
