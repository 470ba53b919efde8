"""Children that run in place: as calls of their parent, in strands of their own.

A worker keeps a spawned child as a value. If its parent needs the result first, the child runs at
once, in the same process, and nobody else hears of it. It becomes a task (it is *promoted*) when
its parent sends any message, when it does what only a task can do, or at a heartbeat while a core
is idle. So names, output, failures and replays are as if every child had been a task from the
start. This module does not know how a strand runs a function. Read next: `_keeping_strand.py`,
"Children that have begun" in protocol/PROTOCOL.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ciel import _native
from ciel._errors import WaitError

if TYPE_CHECKING:
    from ciel._call import TaskFunction


class Former:
    """Stands for a strand that has ended in place, in futures that have outlived it."""

    __slots__ = ("label",)

    def __init__(self, task: TaskFunction, position: bytes) -> None:
        """`position` is its name."""
        self.label = _native.label_of(task.label, position)

    def check_here(self) -> NoReturn:
        """Raises WaitError: nobody may use what is left of it."""
        raise WaitError(f"this future belongs to {self.label}, which has ended")

    def let_go(self, handle: int) -> None:
        """Its futures are gone with it."""

    def __getattr__(self, name: str) -> NoReturn:
        """As `check_here`."""
        self.check_here()


class Kept:
    """A spawned child that its strand has not heard of as a task.

    Its result gets the handle `handle`; its spawn was the action `action`. One that is `sealed`
    belongs to a part of its parent that is replayed: it ran in place then, and does again.
    """

    __slots__ = ("task", "given", "payload", "action", "handle", "sealed")

    def __init__(
        self,
        task: TaskFunction,
        given: tuple[tuple[Any, ...], dict[str, Any]] | None,
        payload: bytes,
        action: int,
        handle: int,
        sealed: bool,
    ) -> None:
        """It has not begun. `given` are its arguments; `None`: it needs a copy, from `payload`."""
        self.task = task
        self.given = given
        self.payload = payload
        self.action = action
        self.handle = handle
        self.sealed = sealed


class Returned:
    """The result of a child that ran in place: a plain value, which is shared, or small bytes.

    `form` is that of an object with the bytes `value`; `None` for a plain value. `handle` is that
    of the object that holds it, once another task needs one.
    """

    __slots__ = ("value", "form", "handle")

    is_resolved = True

    def __init__(self, value: Any, form: str | None) -> None:
        """No object holds it."""
        self.value = value
        self.form = form
        self.handle: int | None = None
