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


class Scheduler:
    """Gives strands their turns. All but `park` is called from `home`.

    `state` is the process state of strands; `None` where strands share it.
    """

    def __init__(self, home: greenlet, state: ProcessState | None) -> None:
        """No strand has its turn."""
        self.home = home
        self.state = state
        self._idle: list[greenlet] = []

    def begin(self, strand: TaskStrand, body: Callable[[], None]) -> Any:
        """Runs `body` as `strand` until it parks or ends; returns what it parked with, else `None`.

        `body` never raises, and marks the strand as ended.
        """
        runner = self._idle.pop() if self._idle else greenlet(self._loop, self.home)
        return self._give_turn(strand, runner, body)

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
        here.strand = None
        if state is not None and state.touched:
            state.leave(False)
        return request

    def _loop(self, body: Callable[[], None]) -> None:
        """The body of a greenlet: one task after another, while greenlets are kept."""
        me = getcurrent()
        while True:
            body()
            me.gr_context = None
            if len(self._idle) >= IDLE_MAX:
                return
            self._idle.append(me)
            body = self.home.switch(None)
