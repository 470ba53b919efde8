"""Turns of strands: all greenlets are started and resumed from one *home* greenlet.

So nested waits need no stack: a strand that waits switches back to home, which gives the turn to
another. The owner of the scheduler decides to which: a worker follows its engine, the serial
program runs the task that was spawned last. The process state that a strand has changed is saved
with it. A child that begins in place natively is called here, in a greenlet of its own; native code
says what to call, and who continues. This module knows neither tasks nor messages. Read next:
`_worker_process.py`, `_serial.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from greenlet import getcurrent, greenlet

from ciel._contexts import Contexts
from ciel._native import end, note_base, place
from ciel._process_state import ProcessState
from ciel._raised import Raised
from ciel._random import tell_seed
from ciel._strand import here
from ciel._task_strand import TaskStrand

if TYPE_CHECKING:
    from ciel._native import Counted, Stack

IDLE_MAX = 64
"""Greenlets that are kept for later tasks."""

MADE_MAX = 32
"""Greenlets that home makes at once for those who run in place of one another."""

Body = Callable[[], "greenlet | None"]
"""Runs a task; returns the greenlet that continues when it has ended, `None` for home."""

Begun = tuple[Callable[..., Any], tuple[Any, ...], "dict[str, Any] | None"]
"""A child that has begun natively: its function, its arguments, and those that have names."""

Switch = Callable[..., Any]
"""Switches to a greenlet: its bound method."""


PLACES = 4
"""Functions above one another by which it is found out whether native code sees their places."""

FRAME_BYTES_MIN, FRAME_BYTES_MAX = 48, 512
"""What one of them takes of Python's stack."""


def sees_places() -> bool:
    """Whether native code sees where on Python's stack its callers are: see `Stack`."""
    places = [_place(depth) for depth in range(PLACES)]
    steps = [above - below for below, above in zip(places, places[1:], strict=False)]
    return all(FRAME_BYTES_MIN <= step <= FRAME_BYTES_MAX for step in steps)


def _place(depth: int) -> int:
    return place() if depth == 0 else _place(depth - 1)


class RunnerWanted:
    """Asks home for a greenlet, on behalf of the one that it names.

    A greenlet counts its recursion from where it was first switched to: home is the outermost.
    """

    def __init__(self, where: greenlet) -> None:
        """Home switches to `where` when a greenlet is idle."""
        self.where = where


class Scheduler:
    """Gives strands their turns. All but `park` is called from `home`.

    `state` is the process state of strands; `None` where strands share it; `contexts` has the
    context variables that strands begin with. `stack` has the strands of a worker that run in place
    of one another; `end_inside` ends one that has begun natively, and returns the greenlet that
    continues, `None` for home, with what that receives.
    """

    stack: Stack | None = None

    def __init__(self, home: greenlet, state: ProcessState | None) -> None:
        """No strand has its turn."""
        self.home = home
        self.state = state
        self.contexts = Contexts()
        self.idle: list[Switch] = []
        self._making = 1

    def keep_context(self) -> None:
        """Strands that begin later have the context variables that modules have set at import."""
        if self.contexts.keep():
            for switch in self.idle:
                runner: greenlet = switch.__self__  # type: ignore[attr-defined]
                runner.gr_context = self.contexts.fresh()
        else:
            getcurrent().gr_context = None  # to look for variables has made an empty context

    def end_inside(self, value: Any) -> tuple[greenlet | None, Any]:
        """Only a worker has children that begin natively."""
        raise AssertionError("nothing begins natively here")

    def begin(self, strand: TaskStrand, body: Body) -> Any:
        """Runs `body` as `strand` until it parks or ends; returns what it parked with, else `None`.

        `body` never raises, and marks the strand as ended.
        """
        return self._give_turn(strand, self._runner(), body)

    def begin_inside(self, strand: TaskStrand, outer: TaskStrand, body: Body) -> Any:
        """Runs `body` as `strand`, called by the strand `outer`, which has its turn.

        Returns in `outer`: either `body` has returned the greenlet of `outer`, and `None` is
        returned here, or home has resumed `outer`, with an answer.
        """
        state = self.state
        if state is not None and state.touched:
            outer.aside = state.leave(True)
        outer.where = getcurrent()
        if not self.idle:
            self.home.switch(RunnerWanted(outer.where))
        switch = self.idle.pop()
        if self.stack is not None:
            self.stack.push(cast("Counted", strand), switch)
        here.strand = strand
        tell_seed(strand.seed)
        answer = switch(body)
        if answer is None:
            self.return_to(outer)
        return answer

    def return_to(self, outer: TaskStrand) -> None:
        """What ran in place of `outer` has ended there."""
        if self.stack is not None:
            self.stack.pop()
        state = self.state
        if state is not None and state.touched:
            state.leave(False)
        here.strand = outer
        tell_seed(outer.seed)
        if outer.aside is not None and state is not None:
            state.enter(outer.aside)
            outer.aside = None

    def leave_called(self, where: greenlet | None, answer: Any) -> Any:
        """A child that was called in this greenlet has ended; the answer for what has called it.

        That continues at `where`, in this greenlet, or when home has resumed it.
        """
        me = getcurrent()
        me.gr_context = None
        assert where is None or where is me, "it was called where it is waited for"
        return self.home.switch() if where is None else answer

    def _runner(self) -> Switch:
        return self.idle.pop() if self.idle else self._made()

    def _made(self) -> Switch:
        made = greenlet(self._loop, self.home)
        made.gr_context = self.contexts.fresh()
        switch: Switch = made.switch
        return switch

    def resume(self, strand: TaskStrand, answer: Any = None) -> Any:
        """Lets a parked strand continue, with an answer; as `begin`."""
        runner = strand.where
        assert runner is not None, f"{strand.label} is resumed and has not parked"
        return self._give_turn(strand, runner.switch, answer)

    def park(self, strand: TaskStrand, request: Any = None) -> Any:
        """Ends the turn and passes a value to home; returns the answer of `resume`."""
        strand.where = getcurrent()
        if self.state is not None and self.state.touched:
            strand.aside = self.state.leave(True)
        return self.home.switch(request)

    def _give_turn(self, strand: TaskStrand, switch: Switch, word: Any) -> Any:
        if self.stack is not None:
            self.stack.begin_turn(cast("Counted", strand), switch)
        here.strand = strand
        tell_seed(strand.seed)
        state = self.state
        if strand.aside is not None and state is not None:
            state.enter(strand.aside)
            strand.aside = None
        return self._taken_back(switch(word))

    def run_started(self, body: Body) -> None:
        """Runs `body`, which begins strands natively, until it parks with one or returns."""
        self._taken_back(self._runner()(body))

    def _taken_back(self, request: Any) -> Any:
        """What a greenlet has passed to home, which has the turn again."""
        state = self.state
        while type(request) is RunnerWanted:
            for _ in range(self._making):
                self._made()(lambda: None)
            self._making = min(2 * self._making, MADE_MAX)
            request = request.where.switch()
        here.strand = None
        if self.stack is not None:
            self.stack.begin_turn()
        if state is not None and state.touched:
            state.leave(False)
        return request

    def _loop(self, body: Body | Begun | None) -> Any:
        """The body of a greenlet: one task after another, while greenlets are kept.

        An idle one keeps nothing of what it has run.
        """
        me = getcurrent()
        switch, idle, contexts = me.switch, self.idle, self.contexts
        while True:
            try:
                note_base()
                if isinstance(body, tuple):
                    function, args, named = body
                    value = function(*args) if named is None else function(*args, **named)
                    body, args, named = None, (), None
                    after = end(value)
                    if after is not None:
                        me.gr_context = None if contexts.imported is None else contexts.fresh()
                        body = after(value)
                        continue
                    where, value = self.end_inside(value)
                else:
                    assert body is not None, "only home and strands switch here"
                    where, value = body(), None
            except BaseException as error:
                where, value = self._end_raised(switch, error)
            body, args, named = None, (), None
            me.gr_context = None if contexts.imported is None else contexts.fresh()
            after = where or self.home
            if len(idle) >= IDLE_MAX:
                me.parent = after
                return value
            idle.append(switch)
            body = after.switch(value)

    def _end_raised(self, switch: Switch, error: BaseException) -> tuple[greenlet | None, Any]:
        """What continues after an exception: of the child, or of a signal's handler behind it."""
        stack = self.stack
        if stack is None or stack.unwind(switch):
            return self.end_inside(Raised(error))
        if switch in self.idle:  # the child had ended
            self.idle.remove(switch)
        below = stack.switch
        return None if below is None else below.__self__, Raised(error)
