"""Turns of strands: all greenlets are started and resumed from one *home* greenlet.

So nested waits need no stack: a strand that waits switches back to home, which gives the turn to
another. The owner of the scheduler decides to which: a worker follows its engine, the serial
program runs the task that was spawned last. The process state that a strand has changed is saved
with it. This module knows neither tasks nor messages. Read next: `_worker_process.py`,
`_serial.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet

from ciel._process_state import ProcessState
from ciel._random import tell_seed
from ciel._strand import here
from ciel._task_strand import TaskStrand

IDLE_MAX = 64
"""Greenlets that are kept for later tasks."""

Body = Callable[[], "greenlet | None"]
"""Runs a task; returns the greenlet that continues when it has ended, `None` for home."""


class RunnerWanted:
    """Asks home for a greenlet, on behalf of the one that it names.

    A greenlet counts its recursion from where it was first switched to: home is the outermost.
    """

    def __init__(self, where: greenlet) -> None:
        """Home switches to `where` when a greenlet is idle."""
        self.where = where


class Scheduler:
    """Gives strands their turns. All but `park` is called from `home`.

    `state` is the process state of strands; `None` where strands share it.
    """

    def __init__(self, home: greenlet, state: ProcessState | None) -> None:
        """No strand has its turn."""
        self.home = home
        self.state = state
        self._idle: list[greenlet] = []

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
        here.strand = strand
        tell_seed(strand.seed)
        if not self._idle:
            self.home.switch(RunnerWanted(outer.where))
        answer = self._idle.pop().switch(body)
        if answer is None:
            self._return_to(outer)
        return answer

    def _return_to(self, outer: TaskStrand) -> None:
        state = self.state
        if state is not None and state.touched:
            state.leave(False)
        here.strand = outer
        tell_seed(outer.seed)
        if outer.aside is not None and state is not None:
            state.enter(outer.aside)
            outer.aside = None

    def _runner(self) -> greenlet:
        return self._idle.pop() if self._idle else greenlet(self._loop, self.home)

    def resume(self, strand: TaskStrand, answer: Any = None) -> Any:
        """Lets a parked strand continue, with an answer; as `begin`."""
        runner = strand.where
        assert runner is not None, f"{strand.label} is resumed and has not parked"
        return self._give_turn(strand, runner, answer)

    def park(self, strand: TaskStrand, request: Any = None) -> Any:
        """Ends the turn and passes a value to home; returns the answer of `resume`."""
        strand.where = getcurrent()
        if self.state is not None and self.state.touched:
            strand.aside = self.state.leave(True)
        return self.home.switch(request)

    def _give_turn(self, strand: TaskStrand, runner: greenlet, word: Any) -> Any:
        here.strand = strand
        tell_seed(strand.seed)
        state = self.state
        if strand.aside is not None and state is not None:
            state.enter(strand.aside)
            strand.aside = None
        request = runner.switch(word)
        while type(request) is RunnerWanted:
            self._runner().switch(lambda: None)
            request = request.where.switch()
        here.strand = None
        if state is not None and state.touched:
            state.leave(False)
        return request

    def _loop(self, body: Body) -> None:
        """The body of a greenlet: one task after another, while greenlets are kept."""
        me = getcurrent()
        while True:
            after = body() or self.home
            me.gr_context = None
            if len(self._idle) >= IDLE_MAX:
                me.parent = after
                return
            self._idle.append(me)
            body = after.switch(None)
