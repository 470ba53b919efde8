"""Calls that run before anybody asks: a strand that keeps as many as it may runs the oldest ones,
and one that is to wait runs all of them.

So a list of spawns that is longer than what a strand keeps costs calls rather than tasks, also in
`main`, which tries one call of a function of which it has sent many in a row. Only functions that
leave nothing behind run that way: none of their calls can wait, and one that fails, gives what is
not plain or has become a task meanwhile runs again as it would have. A call of any other function
runs in a strand of its own: if it waits, it becomes a task, and the strand that has spawned it
continues. Long calls stay tasks, but for a few tries. Native code calls this module at a spawn, and
knows the calls. Read next: `_leaves.py`, `_short_calls.py`,
`crates/ciel-python/src/stack/early.rs`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ciel import _short_calls
from ciel._errors import Cancelled
from ciel._leaves import leaves_nothing
from ciel._native import advance_early, begin_early, early_task, end_early, oldest_aside
from ciel._strand import current
from ciel._trials import Trials

if TYPE_CHECKING:
    from ciel._call import TaskFunction
    from ciel._future import Future
    from ciel._native import Promoter


def make_room() -> None:
    """Runs the oldest calls that the strand keeps, if these are short, or the oldest of those that
    may wait, in a strand of its own.
    """
    task = _able()
    if task is None:
        _run_aside()
    else:
        _run_oldest(task)


def run_before_wait(promoter: Promoter) -> None:
    """Runs calls that the strand keeps, the oldest first, while they are short and no core is idle:
    the others become tasks as the strand waits.
    """
    while not promoter.has_idle_core():
        task = _able()
        if task is None or not _run_oldest(task):
            return


def _able() -> TaskFunction | None:
    """The task of the oldest call that may run here, without a strand."""
    task: TaskFunction | None = early_task()
    while task is not None and not leaves_nothing(task.function):
        task.runs_early = False
        task = early_task()
    return task


def _run_oldest(task: TaskFunction) -> bool:
    """Runs the oldest calls, which are of that task; whether they were short."""
    if not trials_of(task).next():
        return False
    is_short = _run(task, None)
    if is_short is False and task.suits_root:
        task.suits_root = None
    return is_short is True


def _run_aside() -> None:
    """Runs the oldest call that may wait; not if the last ones of its task were long, or waited."""
    found: tuple[TaskFunction, Future[Any]] | None = oldest_aside()
    if found is None or not trials_of(found[0]).next():
        return
    began = time.perf_counter()
    has_ended = current().run_aside(found[1])
    is_short = has_ended and time.perf_counter() - began < _short_calls.SHORT_S
    trials_of(found[0]).ended(is_short)


def begin_trial(task: TaskFunction) -> bool:
    """Whether `main`, which has sent many calls of a task in a row, keeps the next for a try."""
    if not leaves_nothing(task.function):
        task.suits_root = False
        return False
    is_tried = current().may_try(task) and trials_of(task).next()
    if is_tried:
        task.suits_root = True
    return is_tried


def end_trial(task: TaskFunction) -> None:
    """Runs the call that is kept; if it is short, `main` keeps further ones."""
    if not _run(task, task):
        task.suits_root = None


def trials_of(task: TaskFunction) -> Trials:
    """Which of its calls are tried before anybody asks, or in place of a root."""
    if task.trials is None:
        task.trials = Trials()
    return task.trials


def _run(task: TaskFunction, newest: TaskFunction | None) -> bool | None:
    """Runs the oldest calls that the strand keeps, or the newest one; they are of that task.

    Whether they were short and went as usual, `None` if none could run here.
    """
    function = task.function
    began = time.perf_counter()
    given = begin_early(newest)
    if given is None:
        return None
    count = 0
    try:
        while given is not None:
            given = advance_early(function(*given))
    except (Cancelled, KeyboardInterrupt):
        raise
    except BaseException:  # noqa: S110  # it is raised again when its value is due
        pass
    finally:
        count = end_early()
    is_short = time.perf_counter() - began < _short_calls.SHORT_S * count
    trials_of(task).ended(is_short)
    return is_short
