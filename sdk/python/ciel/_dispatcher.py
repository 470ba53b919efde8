"""The calls of an executor: which wait, which the engine has, and what becomes of their results.

Results are delivered by the thread of the session that runs callbacks; the next calls are given to
the engine there, too. A dispatcher refers to no executor, so an executor that nobody uses any more
goes, and what it has submitted is done all the same. Read next: `_executor.py`, `_callbacks.py`.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import os
import threading
import weakref
from collections import deque
from concurrent.futures import BrokenExecutor
from typing import Any, NamedTuple

from ciel._call import Call
from ciel._errors import Cancelled, as_told
from ciel._future import Future
from ciel._payload import Copy
from ciel._session import Session

Promise = concurrent.futures.Future[Any]


class Work(NamedTuple):
    """A call that was submitted, and the standard library's future of it."""

    promise: Promise
    call: Call


class Dispatcher:
    """Gives at most `given_max` calls to the engine at once, in the order of their submits.

    `finished` is set when nothing is left to do after `retire`; a session of its own has ended.
    """

    def __init__(self, session: Session, is_own: bool, given_max: int) -> None:
        """`is_own` is whether the session ends with the executor."""
        self._session = session
        self._client = session._process.client()
        self._is_own = is_own
        self._given_max = given_max
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._waiting: deque[Work] = deque()
        self._given = 0
        self._futures: set[Future[Any]] = set()
        self._is_retired = self._is_ending = False
        self.finished = threading.Event()
        _LIVE.add(self)

    def take(self, work: Work) -> None:
        """Gives a call to the engine, or keeps a copy of it until there is room."""
        with self._lock:
            self._check_open()
            if self._given < self._given_max and not self._waiting:
                self._give(work)
                return
            try:
                work = Work(work.promise, _copied(work.call))
            except BaseException as error:  # whatever the classes of arguments raise
                work.promise.set_exception(error)
                return
            self._waiting.append(work)

    def _check_open(self) -> None:
        if _has_exited:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")
        if self._is_retired:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self._client.lost is not None and self._is_own:
            raise BrokenExecutor(str(self._client.lost)) from self._client.lost

    def _give(self, work: Work) -> None:
        promise, call = work
        if not promise.set_running_or_notify_cancel():
            return
        try:
            future = self._session._submit(call)
        except BaseException as error:  # arguments that cannot be pickled, a lost engine
            promise.set_exception(self._as_seen(error))
            return
        self._given += 1
        self._futures.add(future)
        future.add_done_callback(lambda future: self._deliver(promise, future))

    def _deliver(self, promise: Promise, future: Future[Any]) -> None:
        """Settles a future; runs in the session's thread for callbacks."""
        with self._lock:
            while self._waiting and self._given <= self._given_max:
                self._give(self._waiting.popleft())
        try:
            value = future.result()
        except BaseException as error:  # whatever has left the task
            promise.set_exception(self._as_seen(error))
        else:
            promise.set_result(value)
            del value
        with self._lock:
            self._given -= 1
            self._futures.discard(future)
        self._end_if_done()

    def _as_seen(self, error: BaseException) -> BaseException:
        if isinstance(error, Cancelled):
            return concurrent.futures.CancelledError(str(error))
        if error is not self._client.lost:
            return as_told(error)
        broken = BrokenExecutor(str(error))
        broken.__cause__ = error
        return broken

    def retire(self, cancels: bool = False) -> None:
        """Takes no more calls; cancels those that wait if asked to. Does not wait."""
        if self._process != os.getpid():  # a forked child has the executor, and not its session
            return
        self._is_retired = True
        if cancels:
            with self._lock:
                while self._waiting:
                    promise = self._waiting.popleft().promise
                    promise.cancel()
                    promise.set_running_or_notify_cancel()
        if not _has_exited:
            self._client.call_later(lambda _: self._end_if_done())

    def abort(self) -> None:
        """Cancels what the engine was given and has not ended. Does not wait."""
        with self._lock:
            given = list(self._futures)
        if self._client.lost is None:
            self._client.cancel(given)

    def finish(self) -> None:
        """Waits until nothing is left to do after `retire`."""
        self._end_if_done()
        self.finished.wait()

    def _end_if_done(self) -> None:
        with self._lock:
            if not self._is_retired or self._waiting or self._given or self._is_ending:
                return
            self._is_ending = True
        try:
            if self._is_own:
                self._session.close()
        finally:
            self.finished.set()


def _copied(call: Call) -> Call:
    args, kwargs = Copy(call).arguments(_itself, _itself)
    return Call(call.task, args, kwargs, call.file, call.line)


def _itself(future: Any) -> Any:
    return future


_LIVE: weakref.WeakSet[Dispatcher] = weakref.WeakSet()
_has_exited = False


@atexit.register
def _finish_all() -> None:
    """What was submitted is done before the program ends, as the standard library has it."""
    global _has_exited
    _has_exited = True
    for dispatcher in list(_LIVE):
        dispatcher.retire()
        dispatcher.finish()


os.register_at_fork(after_in_child=_LIVE.clear)
