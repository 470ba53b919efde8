"""The life of a session's engine: start, handshake, receiving thread, and one end.

A session that is still open when the program ends is cancelled, with a warning. This module does
not know the submitted tasks. Read next: `_engine.py` for the child process, `_session.py`.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref

from ciel._cells import Cells
from ciel._children import VARIABLE, spawns_between_asks
from ciel._client_strand import ClientStrand
from ciel._engine import Engine, EngineOptions
from ciel._errors import CielError, NonDeterministic, NoRun, error_of, failure_of
from ciel._native import Refusal, Start

DIFFERING = 1
"""The exit status of the engine of a session whose tasks gave different results when checked."""
KEEP_UNSPECIFIED = 0
_NULL = (0, b"null", "json", ())


class SessionProcess:
    """An engine as a child process, and the strand that uses it."""

    def __init__(self, options: EngineOptions) -> None:
        """Starts the engine. Raises CielError if there is no command ciel, or if it refuses."""
        self._engine = Engine(options)
        self._checks = options.keeping.check
        self._client = _greeted(self._engine)
        threading.Thread(target=self._client.hear, name="ciel-session", daemon=True).start()
        self._is_open = True
        self._cells = Cells(self._client)
        _OPEN.add(self)

    def client(self) -> ClientStrand:
        """The strand to submit with; raises NoRun if the session is closed."""
        if not self._is_open:
            raise self._client.forked or NoRun("the session is closed")
        return self._client

    def flush_own_output(self) -> None:
        """As `Engine.flush_own_output`."""
        self._engine.flush_own_output()

    def close(self) -> None:
        """Waits for all submitted tasks and ends the engine.

        Raises the earliest failure that was never read; NonDeterministic if results differ in a
        session that checks.
        """
        if not self._is_open:
            return
        self._leave()
        self._client.connection.exit(self._client.tag, [_NULL], KEEP_UNSPECIFIED)
        status = self._finish()
        for failure in self._client.failures:
            raise error_of(failure)
        if self._checks and status == DIFFERING:
            raise NonDeterministic(
                "tasks that ran twice gave different results",
                hint="warnings on standard error name them; declare a task pure only if it is",
            )

    def cancel(self) -> None:
        """Cancels all submitted tasks at once and ends the engine."""
        if self._is_open:
            self._leave()
            self._client.cancelled = True
            self._client.connection.close()
            self._finish()

    def fail(self, error: BaseException) -> None:
        """Ends the session with a failure, after which no task begins."""
        self._leave()
        self._client.connection.error(self._client.tag, failure_of(error))
        self._finish()

    def _leave(self) -> None:
        self._is_open = False
        self._cells.close()
        _OPEN.discard(self)

    def _finish(self) -> int:
        self._client.connection.flush()
        try:
            self._client.closed.wait()
        except KeyboardInterrupt:
            self._client.connection.close()
            self._engine.end()
            raise
        self._client.connection.close()
        return self._engine.end()


_OPEN: weakref.WeakSet[SessionProcess] = weakref.WeakSet()


def _on_forked() -> None:
    """In a forked child: the sessions belong to the parent, which continues with them."""
    for session in list(_OPEN):
        session._is_open = False
        session._client.on_forked()
    _OPEN.clear()


os.register_at_fork(after_in_child=_on_forked)


def _greeted(engine: Engine) -> ClientStrand:
    """Sends `hello` and waits for the start of the root."""
    connection = engine.connection
    build = f"ciel-python {sys.version.split()[0]}"
    features = ["watching", "streams", "children", "overwrites"]
    connection.hello(build, "", "session", features, True, 0)
    while (message := connection.receive()) is not None:
        if type(message) is Start:
            client = ClientStrand(connection, message.tag, message.label)
            client.submits_between_asks = spawns_between_asks(
                os.environ.get(VARIABLE, "")
            )
            return client
        if type(message) is Refusal:
            engine.end()
            raise CielError(message.reason, hint=message.hint)
    raise engine.failed()


@atexit.register
def _cancel_open_sessions() -> None:
    """Cancels sessions that were not closed, with a warning."""
    for session in list(_OPEN):
        print(
            "ciel: a session was never closed: what it had not finished is cancelled\n"
            "  hint: use `with ciel.Session() as session`, or call session.close()",
            file=sys.stderr,
        )
        session.cancel()
