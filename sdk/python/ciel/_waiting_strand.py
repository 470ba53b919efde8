"""How a strand of a worker waits and takes inputs, also in a replay.

It waits by parking: the process runs other strands meanwhile. In a replay, recorded answers are
taken from the record, and all messages are sent again. This module does not know what the strand
runs. Read next: `_worker.py`, `_worker_process.py`, "Replay" in protocol/PROTOCOL.md.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

from ciel._audit import LATE, NOTHING, report
from ciel._engine_strand import EngineStrand, truths
from ciel._errors import Cancelled, WaitError, error_of
from ciel._future import Future, Known
from ciel._inputs import answer_in_words, changed, question_in_words
from ciel._lasting import READ
from ciel._native import Answer, Cancel, Drop, Failed, Failure, Observation, Observed
from ciel._pickle_hooks import freezing
from ciel._questions import ASKED
from ciel._strand import check_may_wait, here
from ciel._task_strand import TaskStrand

if TYPE_CHECKING:
    from ciel._native import Audit, Connection, Message, Output, Result, Resume, Start

_clock = time.monotonic


WAIT_ALL, WAIT_FIRST, WAIT_REST, WAIT_ALL_AND_LATER = 0, 1, 2, 3

QUESTIONS_MAX = 64
"""Answers that a future is not resolved after which a strand lets others run."""

PAUSE_MS = 1
"""Milliseconds for which it does so, unless the future is resolved before."""


class Process(Protocol):
    """The interface of the worker process that its strands use."""

    connection: Connection
    forked: bool
    used_up: bool
    spawns_between_asks: int

    def ask(self, strand: WaitingStrand) -> None:
        """Lets the strand wait until it may go on, where it can wait."""
        ...

    def function(self, header: bytes) -> Callable[..., Any]:
        """The function that a header names, imported once."""
        ...

    def function_by_value(self, key: Any, read: Callable[[], bytes]) -> Callable[..., Any]:
        """The function in an object; `key` is the same for the same object."""
        ...

    def note_imported(self) -> None:
        """Modules were imported, and no code of the task has run."""
        ...

    def park(self, strand: WaitingStrand) -> Resume:
        """Ends the turn until the engine resumes the strand."""
        ...

    def receive(self) -> Message:
        """The next message of the engine."""
        ...

    def put_off(self, message: Message) -> None:
        """Keeps a message until the strand has parked or ended."""
        ...

    def take_captured(self) -> bytes:
        """The output of commands on descriptor 1 since the last call."""
        ...

    def send(self, strand: WaitingStrand) -> None:
        """Sends the output of the strand."""
        ...

    def note_end(self, strand: WaitingStrand) -> None:
        """The strand is about to send its last message."""
        ...

    def check_forked(self, error: BaseException | None) -> None:
        """Ends a forked child that runs code of the task itself."""
        ...


class WaitingStrand(EngineStrand, TaskStrand):
    """A strand of a worker. `pieces` and `errors` are output not sent yet.

    In `pieces`, bytes for an ordered file are behind its path.

    `unasked` counts bytes sent since the strand last asked for room.
    `first_of` is the row of the last wait for a first; the engine keeps its list. `_told` has what
    came with answers to others, by handle. `_asked_in_vain` counts answers that a future is not
    resolved; a replay comes to the same number.
    """

    replaying: bool = False
    unasked: int = 0
    first_of: Row | None = None
    _asked_in_vain: int = 0
    _observations: deque[Observation] | None = None
    _told: dict[int, Known] | None = None

    def __init__(self, process: Process, start: Start) -> None:
        """Takes the record of a replay from the start."""
        self.connection = process.connection
        self.tag = start.tag
        self.next_action = start.action
        self.next_handle = self._made_from = start.handle
        self.process = process
        self.label = start.label
        self._first_seed = start.seed
        self.position = start.position
        self.cores = start.cores
        self.pure = start.options.pure is True
        self.pieces = []
        self.errors = []
        replay = start.replay
        if replay is not None:
            self.replaying = True
            self.recorded = {one.handle: one for one in replay.references if one.is_resolved}
            self._observations = deque(replay.observations)

    @property
    def seed(self) -> int:
        """The seed of the start; each tail has a seed of its own."""
        return super().seed if self.step else self._first_seed

    def note_spawned(self) -> None:
        """A strand that has spawned many tasks asks now and then whether it may go on."""
        left = self.spawns_left
        if left > 0:
            self.spawns_left = left - 1
        else:
            self.spawns_left = self.process.spawns_between_asks
            self.process.ask(self)

    def result(self, future: Future[Any]) -> Any:
        """Waits by parking; on other threads only reads a resolved result."""
        return self.read(self._awaited(future))

    def _awaited(self, future: Future[Any]) -> Known:
        running = here.strand
        if running is not self and running is not None:
            future._strand.check_here()
        known: Known | None = future._known
        if known is None:
            known = self._wait_one(future)
        future._waited = True
        return known

    def settled(self, future: Future[Any]) -> Known:
        """Waits by parking."""
        return self._awaited(future)

    def looks_on(self, future: Future[Any]) -> bool:
        """A root does; others would need their slots while they wait for bytes. What a failed task
        has written may be there, too.
        """
        known = future._known
        if known is None and self._told is not None:
            known = self._told.get(future._handle)
        if self.is_task or here.strand is not self or not (known is None or type(known) is Failed):
            return False
        self._check_may_wait()
        return self.may_open(future)

    def may_open(self, future: Future[Any]) -> bool:
        """Where it has its turn, of a child that is known to the engine."""
        is_known = future._child is None and future._strand is self
        return is_known and here.strand is self

    def _wait_one(self, future: Future[Any]) -> Known:
        known: Known | None = future._known
        if known is None and self._told and future._handle in self._told:
            self._check_may_wait()  # nobody can tell what has ended
            known = self._told.pop(future._handle)
        if known is None:
            resumed = self.block([future._handle], WAIT_ALL_AND_LATER, None)
            known = self._among(resumed, future._handle)
        future._known = known
        return known

    def _among(self, resumed: Resume, handle: int) -> Known:
        """The answer about that handle; others that come with it are kept."""
        found: Known | None = None
        for answer in resumed.references:
            if answer.handle == handle:
                found = answer
            else:
                self._keep_told(answer.handle, answer)
        if found is not None:
            return found
        raise WaitError(f"the engine resumed {self.label} without what it waited for")

    def _keep_told(self, handle: int, known: Known) -> None:
        if self._told is None:
            self._told = {}
        self._told[handle] = known

    def handle_asked(self, future: Future[Any]) -> int:
        """The handle of a future about which the engine is asked next; as `handle_of`.

        What is stored for that comes before the question, as an argument of an action would not.
        """
        return self.handle_of(future)

    def block(
        self, handles: list[int], wait: int, timeout_ms: int | None, part: int | None = None
    ) -> Resume:
        """Parks this strand until the engine resumes it with the awaited references."""
        self._check_may_wait()
        self.tidy()
        released = self.take_released()
        if self._told:
            for handle in released:
                self._told.pop(handle, None)
        self.connection.block(
            self.tag,
            handles,
            wait,
            timeout_ms,
            after=self.next_action,
            part=part,
            released=released,
        )
        self.replaying = False
        return self.process.park(self)

    def _check_may_wait(self) -> None:
        """Raises WaitError, with the reason, where this strand cannot wait."""
        if here.strand is not self:
            where = here.strand.label if here.strand is not None else "a thread of its own"
            raise WaitError(f"{self.label} cannot wait in {where}: wait in the task itself")
        if freezing.number is not None:
            raise WaitError("a task cannot wait while a value is being pickled")
        check_may_wait()
        if self.process.forked:
            raise WaitError(f"a process forked in {self.label} must not use ciel: wait in the task")

    def _may_wait(self) -> bool:
        """Whether this strand can wait here."""
        try:
            self._check_may_wait()
        except WaitError:
            return False
        return True

    def wait(
        self, futures: Sequence[Future[Any]], count_first: bool, timeout_s: float | None
    ) -> list[Future[Any]]:
        """As `Strand.wait`; the engine measures a timeout, so that it can be replayed."""
        for future in futures:
            self._check_mine(future)
        if not count_first and timeout_s is None:
            return self._wait_all(futures)
        there = [future for future in futures if future._waited]
        missing = [future for future in futures if not future._waited]
        deadline = None if timeout_s is None else _clock() + timeout_s
        while missing and not (count_first and there):
            left = None if deadline is None else max(0, round((deadline - _clock()) * 1000))
            arrived = self._wait_first(missing, left)
            if not arrived:
                break
            for future in arrived:
                future._waited = True
            there += arrived
            missing = [future for future in missing if not future._waited]
        return [future for future in futures if future._waited]

    def _wait_all(self, futures: Sequence[Future[Any]]) -> list[Future[Any]]:
        self._await_all(futures)
        for future in futures:
            future._waited = True
        return list(futures)

    def _await_all(self, futures: Sequence[Future[Any]]) -> None:
        """Waits until all are known; as far as the program sees, nobody has waited for them."""
        missing = {future._handle: None for future in futures if future._known is None}
        if missing:
            resumed = self.block([*missing], WAIT_ALL, None)
            answers = {answer.handle: answer for answer in resumed.references}
            for future in futures:
                if future._known is None:
                    future._known = answers.get(future._handle)

    def _wait_first(
        self, futures: list[Future[Any]], timeout_ms: int | None
    ) -> list[Future[Any]]:
        """The first resolved ones, from the record or from the engine; none after a timeout."""
        handles = [self.handle_asked(future) for future in futures]
        part = self.observe()
        if self._observations:
            observed = self._next_observation("first", "timeout")
            if observed.kind == "timeout":
                return []
            return [futures[index] for index in json.loads(observed.value)]
        self.first_of = None
        resumed = self.block(handles, WAIT_FIRST, timeout_ms, part)
        found = {answer.handle: answer for answer in resumed.references}
        arrived = []
        for future, handle in zip(futures, handles, strict=True):
            if handle in found:
                _note_answer(future, found[handle])
                arrived.append(future)
        return arrived

    def completed(
        self, futures: Sequence[Future[Any]], timeout_s: float | None
    ) -> Iterator[Future[Any]]:
        """As `Strand.completed`; the cost of a step is independent of the number of futures."""
        yield from [future for future in futures if future._waited]
        row = Row(self, [future for future in futures if not future._waited])
        deadline = None if timeout_s is None else _clock() + timeout_s
        while row.left:
            left = None if deadline is None else max(0, round((deadline - _clock()) * 1000))
            arrived = row.take(left)
            if not arrived:
                return
            yield from arrived

    def done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Queries the engine, which records the answer. A loop that does so frees its core now and
        then, where it may wait: with one core, what it asks for would never run.
        """
        found = self._are_done(futures)
        missing = [future for future, is_done in zip(futures, found, strict=True) if not is_done]
        if missing:
            self._asked_in_vain += 1
            if self._asked_in_vain % QUESTIONS_MAX == 0 and self._may_wait():
                self._wait_first(missing, PAUSE_MS)
        return found

    def _are_done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        handles = [self.handle_asked(future) for future in futures]
        part = self.observe()
        if self._observations:
            return [bool(part) for part in json.loads(self._next_observation("done").value)]
        self.tidy()
        request = self.next_request()
        self.connection.ask(
            self.tag, request, "done", handles, action=self.next_action, part=part
        )
        answer = self.answer(request)
        assert type(answer) is Observed, f"a question was answered by {answer!r}"
        return [bool(part) for part in json.loads(answer.value)]

    def cancel(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Requests it from the engine, which records the answer."""
        handles = [self.handle_asked(future) for future in futures]
        if not handles:
            return []
        part = self.observe()
        if self._observations:
            return truths(self._next_observation("cancel").value, len(handles))
        if self.process.forked:
            raise WaitError(f"a process forked in {self.label} must not use ciel: use the task")
        self.tidy()
        request = self.next_request()
        self.connection.ask(
            self.tag, request, "cancel", handles, action=self.next_action, part=part
        )
        answer = self.answer(request)
        assert type(answer) is Observed, f"a question was answered by {answer!r}"
        return truths(answer.value, len(handles))

    def input(self, kind: str, take: Callable[[], bytes]) -> bytes:
        """The recorded bytes, or bytes read from the environment now."""
        part = self.observe()
        if self._observations:
            return self._next_observation(kind).value
        if self.process.forked:
            raise WaitError(f"a process forked in {self.label} must not use ciel: use the task")
        taken = take()
        self.tidy()
        self.connection.observe(self.tag, kind, taken, action=self.next_action, part=part)
        return taken

    def _next_observation(self, kind: str, *others: str) -> Observation:
        assert self._observations, "the caller has looked"
        found = self._observations.popleft()
        if found.kind != kind and found.kind not in others:
            before = answer_in_words(found.kind, found.value)
            raise changed(self.label, question_in_words(kind), before)
        return found

    def recorded_wait(self) -> Observation | None:
        """How the next wait for a first ended in the recorded attempt, if it got so far."""
        if not self._observations:
            return None
        return self._next_observation("first", "rest", "timeout")

    def _check_asked(self) -> None:
        """Raises NonDeterministic if a replay ends before it has used all recorded observations."""
        if self._observations:
            first = self._observations[0]
            before = answer_in_words(first.kind, first.value)
            raise changed(self.label, "nothing more", before)

    def answer(self, request: int) -> Result:
        """Waits for the answer; the strand keeps its turn."""
        while True:
            message = self.process.receive()
            if type(message) is Answer and message.tag == self.tag and message.request == request:
                result = message.result
                if isinstance(result, Failure):
                    raise error_of(result)
                return result
            if isinstance(message, (Cancel, Drop)) and message.tag == self.tag:
                raise Cancelled("the task was cancelled")
            self.process.put_off(message)

    def sever(self) -> None:
        """The task was cancelled while it waited: it can only clean up, and is not heard."""
        self.connection = cast("Connection", Severed())

    @property
    def is_settled(self) -> bool:
        """Whether a message that is sent now comes behind all earlier actions."""
        return True

    def promote(self) -> None:
        """Sends all earlier actions that the engine has not heard of."""

    def audit(self) -> Audit | None:
        """What the strand was seen to do since its start, if this process watches."""
        if self.seen is None and not LATE and not READ and ASKED.get(self.function) == ():
            return NOTHING
        return report(self.seen, self.function)

    def tidy(self) -> None:
        """Sends the output of the strand and of its commands."""
        captured = self.process.take_captured()
        if captured:
            self.pieces.append(captured)
        if self.pieces or self.errors:
            self.process.send(self)


def _note_answer(future: Future[Any], answer: Known) -> None:
    """The answer is what is known of a future, unless that was known before: the engine may have
    been asked about a copy of it, with another handle. Of very many answers the last ones are only
    named; the strand asks for them when it needs them.
    """
    if future._known is None and answer.is_resolved:
        future._known = answer


class Severed:
    """Stands for the connection in a strand that was cancelled while it waited."""

    def error(self, tag: int, failure: Failure) -> None:
        """How the strand ends is known to the engine."""

    def exit(
        self, tag: int, outputs: Sequence[Output], keep: int, audit: Audit | None = None
    ) -> None:
        """As `error`."""

    def __getattr__(self, name: str) -> NoReturn:
        """Nothing else can be sent: what would act or wait raises Cancelled again."""
        raise Cancelled("the task was cancelled")


class Row:
    """Futures that a strand takes one after the other, each when it is resolved.

    The engine receives the list once, and again after a replay or another wait for a first.
    """

    def __init__(self, strand: WaitingStrand, futures: Sequence[Future[Any]]) -> None:
        """Sends nothing yet; raises WaitError for futures of another strand."""
        self.strand = strand
        self.left: dict[int, list[Future[Any]]] = {}
        for future in futures:
            self.left.setdefault(strand.handle_asked(future), []).append(future)
        self.listed: list[int] = []

    def take(self, timeout_ms: int | None) -> list[Future[Any]]:
        """The next resolved ones; none after a timeout."""
        strand = self.strand
        part = strand.observe()
        observed = strand.recorded_wait()
        if observed is not None:
            if observed.kind == "first":
                self.listed = [*self.left]
            places = [] if observed.kind == "timeout" else json.loads(observed.value)
            return self._taken([self.listed[place] for place in places])
        arrived = []
        for answer in self._ask(timeout_ms, part).references:
            for future in self.left.get(answer.handle, ()):
                _note_answer(future, answer)
            arrived.append(answer.handle)
        return self._taken(arrived)

    def _ask(self, timeout_ms: int | None, part: int) -> Resume:
        strand = self.strand
        if strand.first_of is self:
            return strand.block([], WAIT_REST, timeout_ms, part)
        self.listed = [*self.left]
        strand.first_of = self
        return strand.block(self.listed, WAIT_FIRST, timeout_ms, part)

    def _taken(self, handles: list[int]) -> list[Future[Any]]:
        taken = [future for handle in handles for future in self.left.pop(handle, ())]
        for future in taken:
            future._waited = True
        return taken
