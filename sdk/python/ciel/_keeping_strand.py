"""A strand of a worker that keeps its children until somebody needs them.

A kept child runs in place when its parent asks for its result. All kept children become tasks
before the strand sends any other message: `connection` sees to that. Until then the promoter has
their spawns, and sends them while a core is idle. In a replay, a child runs in place exactly if it
did so before. Read next: `_in_place.py`, `_light_strand.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ciel._atoms import SHARED
from ciel._call import Call
from ciel._early import run_before_wait
from ciel._engine_strand import definition_of
from ciel._errors import Cancelled, WaitError
from ciel._freeze import value_of
from ciel._future import Future, Known
from ciel._in_place import Kept, Returned
from ciel._inputs import changed
from ciel._leaves import leaves_nothing
from ciel._options import Options
from ciel._native import DEPTH_MAX, Cancel, Value, begin_aside, list_kept, unlist
from ciel._payload import SMALL_BYTES_MAX, atoms_of, head_of_plain, pack
from ciel._raised import Raised
from ciel._strand import here
from ciel._waiting_call import Place, WaitingCall, called, may_wait, note_asked, note_tried
from ciel._waiting_strand import Process, WaitingStrand

if TYPE_CHECKING:
    from greenlet import greenlet

    from ciel._call import TaskFunction
    from ciel._native import Connection, Definition, Promoter, Recording, Resume, Start


SHORT_S = 0.010
"""Seconds from the spawn of a call to its result below which further calls of its function run in
place of a root: what runs for longer in place becomes a task."""

ONE_CORE = 1000
"""Thousandths of a core that a child has, so also its parent, whose slot it may take over."""


class KeepingProcess(Process, Protocol):
    """The interface of the worker process that strands use which keep children.

    `late` has messages for strands, by tag, that wait for children that they have called, and that
    are tasks.
    """

    promoter: Promoter | None
    late: dict[int, list[Any]]

    def inside(self, parent: Any, child: Kept) -> InsideStrand:
        """The strand of a child that begins in place."""
        ...

    def return_to(self, parent: Any) -> None:
        """Gives the turn back to the parent of a child that has ended in place."""
        ...

    def run_inside(self, parent: Any, strand: InsideStrand) -> Resume | None:
        """Runs a child in place: `None` when it has ended there, else the answer of the engine."""
        ...

    def end_called(self, parent: Any, value: Any) -> Any:
        """Ends a child that its parent has called; the answer for the parent."""
        ...

    def note_parked(self, strand: Any) -> None:
        """A strand waits from now on for what runs in place of it."""
        ...

    def await_start(self, strand: InsideStrand) -> None:
        """Lets a strand that runs in place receive its start as a task."""
        ...


class KeepingStrand(WaitingStrand):
    """`keeps` is whether it may have children that are no tasks yet; `depth` is the number of
    strands in place below this one.

    `may_keep` is whether new children are kept, `severed` whether the strand was cancelled.
    `_spawned` are the spawns of an earlier run, which came to the action `_until`; it is `None` in
    the first run. `_waits_inside` is whether a child runs in place of this strand. `_unasked` is
    the task of the last call with futures that was kept, until somebody asks for that.
    """

    process: KeepingProcess
    severed: bool = False
    _connection: Connection
    _spawned: frozenset[int] | None = None
    _until: int = 0
    _waits_inside: bool = False
    _unasked: TaskFunction | None = None

    def __init__(self, process: KeepingProcess, start: Start) -> None:
        """Takes the record of a replay from the start."""
        super().__init__(process, start)
        options = start.options
        limited = options.memory_bytes is not None or options.timeout_ms is not None
        is_usual = options.cores_milli in (None, ONE_CORE) and not options.resources
        self.sends = process.promoter is not None and start.replay is None
        if process.promoter is not None and is_usual and not limited:
            self.may_keep = True
            if start.replay is not None:
                self._repeat(start.replay)

    def _repeat(self, replay: Recording) -> None:
        self.repeats = True
        self._spawned = frozenset(replay.spawned)
        self._until = replay.until

    @property
    def connection(self) -> Connection:
        """The connection, over which the engine has heard of all children before."""
        if self.keeps:
            self.promote()
        return self._connection

    @connection.setter
    def connection(self, connection: Connection) -> None:
        self._connection = connection

    def spawn(self, call: Call, options: Options) -> tuple[Future[Any], ...]:
        """Keeps a small call; spawns others, and those that read what their parent may change."""
        if options.wire is not None or options.locality or call.task.gives:
            return super().spawn(call, options)
        is_sealed = self._spawned is not None
        keeps = self.may_keep and (self._ran_in_place() if is_sealed else self._suits(call))
        waits = keeps if is_sealed else self.may_keep and self._asks_at_once(call.task)
        if waits and self.is_root and here.strand is self and may_wait(call):
            waiting = self._keep_waiting(call, is_sealed)
            if waiting is not None:
                return (waiting,)
        if not keeps or here.strand is not self:
            futures = super().spawn(call, options)
        else:
            packed = pack(call, self)
            payload, inputs, _ = packed
            if not (inputs or len(payload) >= SMALL_BYTES_MAX or call.task.identity.readings):
                return (self._keep(call, payload, is_sealed),)
            futures = self.spawn_packed(call, options, packed)
        self._note_sent(call)
        return futures

    def _suits(self, call: Call) -> bool:
        """Whether a call may run in place: a root keeps those of functions that suit it, but for
        arguments whose own code would run there.
        """
        return not self.is_root or (call.task.suits_root is True and atoms_of(call) is not None)

    def may_try(self, task: TaskFunction) -> bool:
        """Those of functions that leave nothing behind; none that an earlier run has spawned, and
        has perhaps never asked for.
        """
        repeats = self._spawned is not None and self.next_action < self._until
        is_able = self.may_keep and not repeats and task.suits_root is not False
        return is_able and leaves_nothing(task.function)

    def _note_sent(self, call: Call) -> None:
        """Lets native code send further calls like that; it keeps plain ones where any are kept."""
        task, identity = call.task, call.task.identity
        is_plain = identity.data is None and not identity.readings
        if self.sends and is_plain and not task.knows_plain_calls(call.file):
            _note_plain(call, definition_of(call))

    def _keep(self, call: Call, payload: bytes, is_sealed: bool) -> Future[Any]:
        promoter = self.process.promoter
        assert promoter is not None, "it may keep children"
        if self.keeps and not is_sealed and promoter.is_full():
            self.promote()
            unlist()
        self.tidy()
        handle, action = self.take_handle(), self.act()
        self.keeps = True
        given = atoms_of(call)
        future: Future[Any] = Future(self, handle)
        future._child = Kept(call.task, given, payload, action, handle, is_sealed)
        if not is_sealed:
            definition = definition_of(call)
            if given is not None:
                _note_plain(call, definition)
            promoter.keep(self.tag, definition, payload, action, handle, call.line)
            if not self.is_root:
                list_kept(future)
        return future

    def _asks_at_once(self, task: TaskFunction) -> bool:
        """Whether a root is to keep calls of the task with futures until it asks for them; not if
        nobody has asked for the one before.
        """
        if not task.keeps_waiting:
            return False
        unasked, self._unasked = self._unasked, None
        if unasked is not None:
            unasked.keeps_waiting = False
        return task.keeps_waiting

    def _keep_waiting(self, call: Call, is_sealed: bool) -> Future[Any] | None:
        """Keeps a call with futures, and no other; `None` if it is no small plain one."""
        payload, spawn = b"", None
        if not is_sealed:
            payload, inputs, modes = pack(call, self)
            identity = call.task.identity
            is_usual = modes is None and identity.data is None and not identity.readings
            if not is_usual or len(payload) >= SMALL_BYTES_MAX:
                return None
            self.promote()
            self.tidy()
            self._unasked = call.task
            spawn = definition_of(call), call.line, list(inputs)
        place = Place(self.next_action, self.next_handle, self._observed, self._arguments)
        child = WaitingCall(call, payload, place, spawn)
        self._keep_placed(child)
        future: Future[Any] = Future(self, child.handle)
        future._child = child
        return future

    def _keep_placed(self, child: WaitingCall) -> None:
        """The next spawn is that of the child."""
        if (self.next_action, self.next_handle) != child.place[:2]:
            raise WaitError(f"{self.label} waited: its threads must not act for it meanwhile")
        handle, action = self.take_handle(), self.act()
        self.keeps = True
        if child.spawn is not None and not self.severed:
            promoter = self.process.promoter
            assert promoter is not None, "it keeps children"
            definition, line, inputs = child.spawn
            promoter.keep(self.tag, definition, child.payload, action, handle, line, inputs)

    def _wait_waiting(self, child: WaitingCall) -> Known | None:
        """Waits for the futures of a call that is kept, and runs it; `None` if it is a task, or is
        to become one.
        """
        self._check_may_wait()
        self._unasked = None
        task = child.task
        if child.sealed:
            self._learn(child.futures)
            args = child.given_plainly()
            if args is None:
                raise changed(self.label, f"wait for {task.label}", "another value")
            return Returned(task.function(*args), None)
        promoter = self.process.promoter
        assert promoter is not None, "it keeps children"
        if not promoter.withdraw(self.tag, child.handle):
            return None
        self._await_futures(child)
        args = child.given_plainly()
        if args is None:
            note_tried(task, False)
            return None
        if task.suits_root is not True:
            self.note_sent_ready(child.handle, task)
            return None
        promoter.begin_call(self.tag, child.handle)
        returned = None
        try:
            returned = called(task, args, SHORT_S)
        finally:
            has_stayed = promoter.end_call(returned is not None)
        return returned if has_stayed else None

    def _await_futures(self, child: WaitingCall) -> None:
        """Waits for the futures of a child that was withdrawn, as if its spawn were to come."""
        self.keeps = False
        self.next_action, self.next_handle, self._observed, self._arguments = child.place
        try:
            self._learn(child.futures)
        finally:
            self._keep_placed(child)

    def _learn(self, futures: Sequence[Future[Any]]) -> None:
        """As `_await_all`, of which no wait knows what the engine has told before."""
        told = self._told
        for future in futures:
            if future._known is None and told:
                future._known = told.pop(future._handle, None)
        self._await_all(futures)

    def _ran_in_place(self) -> bool:
        """Whether the next spawn was none in the earlier run; behind that, all are."""
        assert self._spawned is not None, "the caller has looked"
        if self.next_action >= self._until:
            self.may_keep = False
        return self.may_keep and self.next_action not in self._spawned

    @property
    def is_settled(self) -> bool:
        """Whether it keeps no children."""
        return not self.keeps

    def promote(self) -> None:
        """Makes tasks of all kept children; the strand is a task."""
        if not self.keeps or self._spawned is not None:
            return  # in a replay, they ended in place before the engine heard of later actions
        if self._waits_inside:
            raise WaitError(f"{self.label} waits: its threads must not act for it meanwhile")
        assert self.process.promoter is not None, "it keeps children"
        self.process.promoter.settle(self.tag)
        self.keeps = False

    def _wait_one(self, future: Future[Any]) -> Known:
        child = future._child
        known: Known | None = None
        if child is not None and future._strand is self and self.depth < DEPTH_MAX:
            is_waiting = type(child) is WaitingCall
            known = self._wait_waiting(child) if is_waiting else self._run_in_place(child)
            if known is not None:
                future._known = known
                return known
        self._run_before_wait([future])
        task = self.last_sent(future._handle) if self.is_root else None
        if task is None or task.suits_root is False:
            return super()._wait_one(future)
        with_futures = self.sent_with_futures
        is_measured = task.suits_root is not None
        last = super()._wait_one(future) if is_measured else self._wait_measured(future, task)
        if with_futures:
            note_asked(task)
        return last

    def _wait_measured(self, future: Future[Any], task: TaskFunction) -> Known:
        """Waits for the call that a root has sent last. If it was short, further ones are kept."""
        known = super()._wait_one(future)
        is_short = self.since_sent() < SHORT_S
        if type(known) is Value and (is_short or self.sent_with_futures):
            leaves = leaves_nothing(task.function)
            task.suits_root = leaves if is_short or not leaves else None
        if task.keeps_waiting and not task.suits_root:
            note_tried(task, False)
        return known

    def _wait_all(self, futures: Sequence[Future[Any]]) -> list[Future[Any]]:
        for future in futures:
            if future._child is not None and future._known is None:
                self._wait_one(future)
        self._run_before_wait(futures)
        return super()._wait_all(futures)

    def _run_before_wait(self, futures: Sequence[Future[Any]]) -> None:
        """Runs short calls that would become tasks since the strand waits for futures."""
        promoter = self.process.promoter
        if not self.keeps or promoter is None or here.strand is not self:
            return
        told = self._told or ()
        if any(future._known is None and future._handle not in told for future in futures):
            run_before_wait(promoter)

    def _run_in_place(self, child: Kept) -> Known | None:
        """What is known of a child when this strand continues; `None` if it must wait as usual."""
        self._check_may_wait()
        self.tidy()
        strand = self.process.inside(self, child)
        if not (child.sealed or self._enters(child, strand.position)):
            return None
        self._waits_inside = True
        try:
            answer = self.process.run_inside(self, strand)
        finally:
            self._waits_inside = False
        return self._among(answer, child.handle) if answer is not None else _returned(strand)

    def run_aside(self, future: Future[Any]) -> bool:
        """Runs a kept child before anybody asks for it, in a greenlet of its own; whether it has
        ended in place. If it becomes a task meanwhile, this strand continues beside it.
        """
        if self.is_root:
            return False
        begun = begin_aside(future)
        if begun is None:
            return self._run_aside(future)
        (switch, *call), _ = begun
        answer = switch(*call)
        if type(answer) in SHARED:
            return True
        self._waits_inside = False
        if type(answer) is Raised:
            raise answer.error
        if type(answer) is Cancel:
            raise Cancelled("the task was cancelled")
        if type(answer) is list:
            self.process.return_to(self)
            future._known = _returned(answer.pop())
        return future._ended_here or type(future._known) is Returned

    def _run_aside(self, future: Future[Any]) -> bool:
        child = future._child
        try:
            self._check_may_wait()
        except WaitError:
            return False
        if child is None or self.depth >= DEPTH_MAX:
            return False
        self.tidy()
        strand = self.process.inside(self, child)
        if not self._enters(child, strand.position, aside=True):
            return False
        self._waits_inside = True
        try:
            answer = self.process.run_inside(self, strand)
        finally:
            self._waits_inside = False
        if answer is None:
            future._known = _returned(strand)
        return answer is None

    def continued(self, future: Future[Any], answer: Any) -> Any:
        """The value of a future in whose place a child has begun natively: `answer` is a list with
        its strand if it has ended in place, else that of the engine, or what was raised meanwhile.
        """
        self._waits_inside = False
        if type(answer) is Raised:
            raise answer.error
        if type(answer) is list:
            self.process.return_to(self)
            future._known = _returned(answer.pop())
        elif type(answer) is Cancel:
            raise Cancelled("the task was cancelled")
        else:
            future._known = self._among(answer, future._handle)
        future._waited = True
        return self.read(future._known)

    def end_called(self, future: Future[Any], value: Any) -> Any:
        """The value of a future whose child was called by this strand, and gives `value`, or
        `Raised`; native code has not ended it.
        """
        return self.continued(future, self.process.end_called(self, value))

    def _enters(self, child: Kept, position: bytes, aside: bool = False) -> bool:
        promoter = self.process.promoter
        assert promoter is not None, "it keeps children"
        after = self.next_action
        return promoter.enter(self.tag, child.handle, after, position, aside=aside)

    def give_slot(self) -> None:
        """The engine knows that the strand waits for what runs in place of it."""
        self.keeps = self._waits_inside = self.replaying = False
        self.process.note_parked(self)

    def sever(self) -> None:
        """As of any strand; it keeps no more children."""
        super().sever()
        self.severed = True
        self.may_keep = self.sends = False

    def take_released(self) -> Sequence[int]:
        """As of any strand; this message sends what is kept, which is listed no more."""
        unlist()
        return super().take_released()

    def handle_of(self, future: Future[Any]) -> int:
        """As of any strand; the result of a child that ran in place becomes an object."""
        return self._handle_at(future, self.argument_part)

    def handle_asked(self, future: Future[Any]) -> int:
        """As of any strand; the result of a child that ran in place becomes an object."""
        return self._handle_at(future, self.observe)

    def _handle_at(self, future: Future[Any], part: Callable[[], int]) -> int:
        known = self.known_of(future)
        if type(known) is not Returned or future._strand is not self:
            return super().handle_of(future)
        if known.handle is None:
            form, pieces = known.form, [known.value]
            if form is None:
                form, pieces, _ = self.frozen("result", known.value)
            known.handle = self.store(form, pieces, (), part())
        return known.handle

    def known_of(self, future: Future[Any]) -> Known | None:
        """What is known of a future, for whatever but a wait for it.

        In a replay, a child that ended in place, and that nobody has waited for so far, has run
        before that: it is called if its function leaves nothing behind, or runs in place.
        """
        known: Known | None = future._known
        child = future._child if known is None and self._spawned is not None else None
        if child is not None and child.sealed:
            if child.given is not None and leaves_nothing(child.task.function):
                args, kwargs = child.given
                known = Returned(child.task.function(*args, **kwargs), None)
            else:
                known = self._run_in_place(child)
            future._known = known
        return known

    def read(self, known: Known) -> Any:
        """As of any strand; the value of a child that ran in place."""
        if type(known) is not Returned:
            return super().read(known)
        return known.value if known.form is None else value_of(known.value, known.form, None)


def _returned(strand: InsideStrand) -> Returned:
    """The result of a child that has ended in place; raises Cancelled if it was not heard."""
    if strand.severed:
        raise Cancelled("the task was cancelled")
    assert strand.returned is not None, "it has ended in place"
    return strand.returned


def _note_plain(call: Call, definition: Definition) -> None:
    """Lets native code keep further plain calls of a task that are spawned in the same file; not if
    they have copies of default arguments.
    """
    task, identity = call.task, call.task.identity
    if not identity.cells and task.copied is None:
        head = head_of_plain(identity)
        task.keep_plain_calls(
            task.function, call.file, definition, head, identity.globals, not task.keeps
        )


class InsideStrand(KeepingStrand):
    """A strand that runs in place of `parent`, which is `None` once it is a task.

    `returned` is its result if it has ended in place.
    """

    parent: KeepingStrand | None
    returned: Returned | None = None

    @abstractmethod
    def run(self) -> greenlet | None:
        """Runs the child; returns the greenlet of its parent if it has ended in place."""

    @abstractmethod
    def part(self) -> None:
        """The parent waits for the engine from now on."""

    @abstractmethod
    def adopt(self, start: Start) -> None:
        """It is the task of that start, which has begun here."""
