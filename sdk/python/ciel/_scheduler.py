"""Turns of strands: one greenlet that all others are started from and switched to.

Depth costs no stack that way: a strand that waits switches back to this *home*, which gives the
turn to another. Who that is decides the owner: a worker listens to its engine, the serial program
runs the task that was spawned last. Whatever a strand changes of the process is put aside with it.
This module knows neither tasks nor messages. Read next: `_worker_process.py`, `_serial.py`.
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
"""Greenlets that are kept for the next tasks."""


class Scheduler:
    """Gives strands their turns. All but `park` is called from `home`.

    `state` is the process as every strand finds it; `None` where strands share what they change.
    """

    def __init__(self, home: greenlet, state: ProcessState | None) -> None:
        """No strand has its turn."""
        self.home = home
        self.state = state
        self._idle: list[greenlet] = []

    def begin(self, strand: TaskStrand, body: Callable[[], None]) -> Any:
        """Runs `body` as `strand` until it parks or ends; gives what it parked with, else `None`.

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
        """Gives the turn away, with a word for home; comes back with the answer of `resume`."""
        strand.where = getcurrent()
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
            strand.aside = state.leave(not strand.ended)
        return request

    def _loop(self, body: Callable[[], None]) -> None:
        """The body of a greenlet: one task after another, while it may be of use."""
        me = getcurrent()
        while True:
            body()
            me.gr_context = None
            if len(self._idle) >= IDLE_MAX:
                return
            self._idle.append(me)
            body = self.home.switch(None)
