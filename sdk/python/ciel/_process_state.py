"""Process state of a strand: standard streams, working folder, environment, signal handlers,
filters of warnings, and the mask of new files.

Strands take turns in one process. Changes of a task to this state are saved when another strand has
its turn, restored when the strand resumes, and undone when it ends. Wrappers of the few functions
that make such changes detect them, so a task without changes costs nothing. Context variables are
not handled here: greenlets have their own. This module knows no strand. Read next: `_scheduler.py`,
`_contexts.py`.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

from ciel._filters import NOTED, Filters, Kept
from ciel._random import SEED

_Handlers = dict[int, Any]
_Environment = dict[str, str]
_HANDLER = "a handler"
_FILTERS = "a filter of warnings"
_TIMERS = {
    signal.SIGALRM: signal.ITIMER_REAL,
    signal.SIGVTALRM: signal.ITIMER_VIRTUAL,
    signal.SIGPROF: signal.ITIMER_PROF,
}
"""The signals of timers, which go on while their strand does not run."""


class Changed:
    """The changes of one strand; `None` parts are unchanged."""

    __slots__ = (
        "stdout", "stderr", "folder", "environment", "handlers", "filters", "mask", "arrived",
    )  # fmt: skip

    def __init__(self) -> None:
        """Has no changes."""
        self.stdout: Any = None
        self.stderr: Any = None
        self.folder: int | None = None
        self.environment: _Environment | None = None
        self.handlers: _Handlers = {}
        self.filters: Kept | None = None
        self.mask: int | None = None
        self.arrived: list[int] = []

    def note_signal(self, number: int, _frame: Any) -> None:
        """The handler of timers while the strand does not run: they are its own."""
        self.arrived.append(number)


class ProcessState:
    """The initial process state of every strand, and the changes of the current one.

    `changes` is not empty if there are any, apart from those of the standard streams.
    """

    def __init__(self) -> None:
        """Records the current state of the process as the initial state of strands."""
        self.take()
        self._home = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
        self.changes: list[str] = []
        self._moved = False
        self._environment: _Environment = {}
        self._varied = False
        self._handled: _Handlers = {}
        self._filters = Filters()
        self._filtered = False
        self._mask: int | None = None
        self._set_mask = os.umask
        self._undo: list[Callable[[], None]] = []

    def take(self) -> None:
        """Records the current standard streams as the initial ones."""
        self.stdout = sys.stdout
        self.stderr = sys.stderr

    def install(self, filters: bool = True) -> None:
        """Wraps the functions that change the folder, the environment and signal handlers.

        Without `filters` strands share the filters of warnings.
        """
        self._environment = _environment()
        self._stand_in(os, "chdir", self._note_move)
        self._stand_in(os, "fchdir", self._note_move)
        self._stand_in(os, "putenv", self._note_variable)
        self._stand_in(os, "unsetenv", self._note_variable)
        if filters:
            self._stand_in(warnings, NOTED, self._note_filters)
        self._wrap_mask()
        original = signal.signal

        def handle(number: int, handler: Any) -> Any:
            before = original(number, handler)
            self._handled.setdefault(int(number), before)
            self.changes.append(_HANDLER)
            return before

        handle.__doc__ = original.__doc__
        setattr(signal, "signal", handle)  # noqa: B010
        self._set_signal = original
        self._undo.append(lambda: setattr(signal, "signal", original))

    def uninstall(self) -> None:
        """Restores the functions that `install` wrapped."""
        while self._undo:
            self._undo.pop()()

    def _note_move(self) -> None:
        self._moved = True
        self.changes.append("the folder")

    def _note_variable(self) -> None:
        self._varied = True
        self.changes.append("a variable")

    def _note_filters(self) -> None:
        self._filtered = self._filters.are_others()
        if self._filtered:
            self.changes.append(_FILTERS)
        else:  # as at the end of `catch_warnings`
            self.changes[:] = [change for change in self.changes if change != _FILTERS]

    def _wrap_mask(self) -> None:
        original = self._set_mask = os.umask

        def umask(mask: int) -> int:
            before = original(mask)
            if self._mask is None:
                self._mask = before
            self.changes.append("the mask")
            return before

        umask.__doc__ = original.__doc__
        setattr(os, "umask", umask)  # noqa: B010
        self._undo.append(lambda: setattr(os, "umask", original))

    def _stand_in(self, module: Any, name: str, note: Callable[[], None]) -> None:
        original = getattr(module, name)

        def changed(*args: Any, **kwargs: Any) -> Any:
            note()
            return original(*args, **kwargs)

        changed.__name__, changed.__doc__ = name, original.__doc__
        setattr(module, name, changed)
        self._undo.append(lambda: setattr(module, name, original))

    def keep_imported(self) -> None:
        """Keeps for all tasks what modules have set at their import, before a task's code runs:
        the environment, the working folder, filters of warnings and the mask of new files.
        """
        if self._varied:
            self._environment = _environment()
            self._varied = False
        if self._moved:
            os.close(self._home)
            self._home = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
            self._moved = False
        self._filters.take()
        self._filtered, self._mask = False, None
        if not self._handled:
            self.changes.clear()

    @property
    def touched(self) -> bool:
        """Whether the current strand has changed the state."""
        return (
            sys.stdout is not self.stdout
            or sys.stderr is not self.stderr
            or self._moved
            or self._varied
            or self._filtered
            or self._mask is not None
            or bool(self._handled)
        )

    def leave(self, keep: bool) -> Changed | None:
        """Restores the initial state; returns the changes if `keep`, for `enter`."""
        changed = Changed() if keep else None
        if changed is not None:
            changed.stdout = sys.stdout if sys.stdout is not self.stdout else None
            changed.stderr = sys.stderr if sys.stderr is not self.stderr else None
        sys.stdout, sys.stderr = self.stdout, self.stderr
        if self._moved:
            if changed is not None:
                changed.folder = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
            os.fchdir(self._home)
            self._moved = False
        if self._varied:
            if changed is not None:
                changed.environment = _environment()
            _set_environment(self._environment)
            self._varied = False
        self._leave_handlers(changed)
        self._leave_small(changed)
        self.changes.clear()
        return changed

    def _leave_handlers(self, changed: Changed | None) -> None:
        for number, before in self._handled.items():
            first = signal.SIG_DFL if before is None else before
            if first == signal.SIG_DFL and number in _TIMERS:
                if changed is not None:
                    first = changed.note_signal
                else:  # the default would end the process
                    signal.setitimer(_TIMERS[signal.Signals(number)], 0)
            now = self._set_signal(number, first)
            if changed is not None:
                changed.handlers[number] = now
        self._handled = {}

    def _enter_handlers(self, changed: Changed) -> None:
        for number, handler in changed.handlers.items():
            before = self._set_signal(number, handler)
            is_noting = before == changed.note_signal
            self._handled[number] = signal.SIG_DFL if is_noting else before
            self.changes.append(_HANDLER)
        for number in changed.arrived:
            signal.raise_signal(number)

    def _leave_small(self, changed: Changed | None) -> None:
        kept = self._filters.leave() if self._filtered else None
        mask = self._set_mask(self._mask) if self._mask is not None else None
        self._filtered, self._mask = False, None
        if changed is not None:
            changed.filters, changed.mask = kept, mask

    def enter(self, changed: Changed) -> None:
        """Reapplies the changes that `leave` returned."""
        if changed.stdout is not None:
            sys.stdout = changed.stdout
        if changed.stderr is not None:
            sys.stderr = changed.stderr
        if changed.folder is not None:
            os.fchdir(changed.folder)
            os.close(changed.folder)
        if changed.environment is not None:
            _set_environment(changed.environment)
        if changed.filters is not None:
            self._filters.enter(changed.filters)
            self._note_filters()
        if changed.mask is not None:
            os.umask(changed.mask)
        self._enter_handlers(changed)


def _environment() -> _Environment:
    """The variables of the environment, without the seed, which every turn sets."""
    return {name: value for name, value in os.environ.items() if name != SEED}


def _set_environment(wanted: _Environment) -> None:
    """Changes the variables that differ, so that commands see them, too."""
    for name in _environment().keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
