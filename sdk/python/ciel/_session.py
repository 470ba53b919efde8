"""`ciel.run` and `ciel.Session`: tasks submitted by an ordinary Python program.

The engine is a child process, the command `ciel`, and this program plays its root task by the
executor protocol: what is submitted is a spawn, what is asked for is watched. A thread of ours
hears the answers, so that any thread may submit and wait, and asyncio code may await. Read next:
`_engine.py` for the child process, `_speaking.py`, `_strand.py`.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from ciel import _native
from ciel._calling import Argument, spawn_script
from ciel._engine import Engine, EngineOptions
from ciel._errors import CielError, NoRun, WorkerLost, error_of, failure_of
from ciel._future import Future
from ciel._native import Answer, Failure, Observed, Opened, Refusal, Shutdown, Start
from ciel._options import Options
from ciel._shell import spawn_command
from ciel._speaking import Speaker
from ciel._strand import Call, here
from ciel._task import AnyTask, BoundTask, Task

if TYPE_CHECKING:
    import os

    from ciel._native import Result, Tag

P = ParamSpec("P")
R = TypeVar("R")

KEEP_UNSPECIFIED = 0
_NULL = (0, b"null", "json", ())


class Watched:
    """The answer to a request that somebody waits for, and whom to call when it has come.

    `is_lost` is set instead if the engine went without an answer.
    """

    __slots__ = ("answer", "is_lost", "there", "callbacks")

    def __init__(self) -> None:
        """There is no answer yet."""
        self.answer: Result | Failure | None = None
        self.is_lost = False
        self.there = threading.Event()
        self.callbacks: list[Callable[[], None]] = []

    @property
    def is_resolved(self) -> bool:
        """Whether nobody needs to wait any more."""
        return self.answer is not None or self.is_lost


class Client(Speaker):
    """The root strand of a session: spoken to from any thread."""

    any_thread = True

    def __init__(self, connection: _native.Connection, tag: Tag, label: str) -> None:
        """The connection has been greeted and the strand was started."""
        super().__init__(connection, tag, 0)
        self.label = label
        self.saying = threading.RLock()
        self._telling = threading.Lock()
        self._answers: dict[int, Watched] = {}
        self._expected: dict[int, Watched] = {}
        self._lost: CielError | None = None
        self.failures: list[Failure] = []
        self.closed = threading.Event()

    def hear(self) -> None:
        """Hears what the engine says until it is gone; runs in a thread of its own."""
        is_well = False
        try:
            while (message := self.connection.receive()) is not None:
                if type(message) is Answer:
                    self._answered(message.request, message.result)
                elif type(message) is Shutdown:
                    self.failures, is_well = message.failures, True
                    break
        finally:
            self._end(is_well)

    def _answered(self, request: int, answer: Result | Failure | None) -> None:
        watched = self._answers.pop(request, None)
        if watched is None:
            return
        with self._telling:
            watched.answer = answer
            watched.is_lost = answer is None
            told = watched.callbacks
            watched.callbacks = []
        watched.there.set()
        for callback in told:
            callback()

    def _end(self, well: bool) -> None:
        why = "the session is closed" if well else "the engine of the session has ended"
        self._lost = NoRun(why) if well else WorkerLost(why)
        self.closed.set()
        for request in list(self._answers):
            self._answered(request, None)

    def _ask(self, say: Callable[[int], None]) -> Watched:
        """Says a request and gives what its answer will come into."""
        with self.saying:
            if self._lost is not None:
                raise self._lost
            request = super().next_request()
            watched = self._answers[request] = Watched()
            say(request)
            self.connection.flush()
        return watched

    def _taken(self, watched: Watched) -> Result:
        watched.there.wait()
        answer = watched.answer
        if answer is None:
            raise self._lost or WorkerLost("the engine of the session has ended")
        if isinstance(answer, Failure):
            raise error_of(answer)
        return answer

    def answer(self, request: int) -> Result:
        """Waits for the answer to a request that was said just now."""
        self.connection.flush()
        return self._taken(self._expected.pop(request))

    def store(self, form: str, pieces: list[Any], references: Sequence[int]) -> int:
        """As every strand does, one thread at a time."""
        with self.saying:
            return super().store(form, pieces, references)

    def next_request(self) -> int:
        """Its answer is waited for from now on: it may come before anybody looks."""
        request = super().next_request()
        self._expected[request] = self._answers[request] = Watched()
        return request

    def spawn(self, call: Call, options: Options) -> tuple[Future[Any], ...]:
        """As every strand does, one thread at a time, and said at once."""
        with self.saying:
            if self._lost is not None:
                raise self._lost
            made = super().spawn(call, options)
            self.connection.flush()
        return made

    def spawn_executor(
        self, executor: str, arguments: dict[str, Any], outputs: int, options: Options, label: str
    ) -> tuple[Future[Any], ...]:
        """As every strand does, one thread at a time, and said at once."""
        with self.saying:
            if self._lost is not None:
                raise self._lost
            made = super().spawn_executor(executor, arguments, outputs, options, label)
            self.connection.flush()
        return made

    def watch(self, future: Future[Any]) -> Watched:
        """Asks for a future once, however many wait for it."""
        handle = self.handle_of(future)
        with self.saying:
            known = future._known
            if not isinstance(known, Watched):
                known = future._known = self._ask(
                    lambda request: self.connection.open_reference(self.tag, request, handle, True)
                )
            return known

    def result(self, future: Future[Any]) -> Any:
        """Waits in this thread; other threads go on."""
        answer = self._taken(self.watch(future))
        assert not isinstance(answer, (Opened, Observed)), f"{future!r} resolved to {answer!r}"
        return self.read(answer)

    def wait(
        self, futures: Sequence[Future[Any]], count_first: bool, timeout_s: float | None
    ) -> list[Future[Any]]:
        """Waits for all, or for the first; gives those that are there, in the order given."""
        watched = [self.watch(future) for future in futures]
        changed = threading.Semaphore(0)
        with self._telling:
            missing = [one for one in watched if not one.is_resolved]
            for one in missing:
                one.callbacks.append(changed.release)
        wanted = len(missing) if not count_first else min(1, len(missing))
        if count_first and len(missing) < len(watched):
            wanted = 0
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for _ in range(wanted):
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not changed.acquire(timeout=left):
                break
        pairs = zip(futures, watched, strict=True)
        return [future for future, one in pairs if one.is_resolved]

    def done(self, futures: Sequence[Future[Any]]) -> list[bool]:
        """Asks the engine."""
        handles = [self.handle_of(future) for future in futures]
        asked = self._ask(
            lambda request: self.connection.ask(self.tag, request, "done", handles)
        )
        answer = self._taken(asked)
        assert isinstance(answer, Observed), f"a question was answered by {answer!r}"
        found: list[bool] = json.loads(answer.value)
        return found

    def input(self, kind: str, take: Callable[[], bytes]) -> bytes:
        """Takes it: a session is not replayed."""
        return take()

    def awaiting(self, future: Future[Any]) -> Generator[Any, None, Any]:
        """Waits in asyncio code."""
        loop = asyncio.get_running_loop()
        there = loop.create_future()
        watched = self.watch(future)

        def tell() -> None:
            if not there.done():
                there.set_result(None)

        with self._telling:
            is_there = watched.is_resolved
            if not is_there:
                watched.callbacks.append(lambda: _call_soon(loop, tell))
        if not is_there:
            yield from there
        return self.result(future)


def _call_soon(loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:  # the loop was closed: nobody waits any more
        pass


class Session:
    """An engine of one's own, to which work is submitted as one goes.

    Use it in `with`, or call `close()`. Each submit is a job of its own: its output comes in the
    order of submission, and its failure hurts no other. It may be used from several threads.

    `jobs` is how many cores to use, all by default; `serial` runs one task at a time; `retries` and
    `timeout` (seconds) hold for tasks that do not say themselves; `state` is the state folder,
    `.ciel` by default; `stderr` is "live" or "ordered"; `keep_going` is whether the failure of a
    submit leaves the others alone; `progress` shows a progress line on a terminal; `resources` is
    what the machine has beside cores and memory, by name, for tasks that ask for it.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        serial: bool = False,
        keep_going: bool = True,
        retries: int = 0,
        timeout: float | None = None,
        state: str | os.PathLike[str] | None = None,
        stderr: str = "live",
        progress: bool = False,
        resources: Mapping[str, int] | None = None,
    ) -> None:
        """Starts the engine. Raises NoRun inside a task, CielError if there is no command ciel."""
        if here.strand is not None:
            raise NoRun(
                f"{here.strand.label} is a task, which is in a run already",
                hint="spawn tasks there; start runs outside of tasks",
            )
        options = EngineOptions(
            jobs, serial, keep_going, retries, timeout, state, stderr, progress, resources
        )
        self._engine = Engine(options)
        self._client = _greeted(self._engine)
        self._listener = threading.Thread(
            target=self._client.hear, name="ciel-session", daemon=True
        )
        self._listener.start()
        self._is_open = True
        _OPEN.add(self)

    @overload
    def submit(
        self, task: Task[P, R] | BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[R]: ...
    @overload
    def submit(
        self, task: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[R]: ...
    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Lets a task, or a function, run with these arguments; gives the future of its value.

        Raises NoRun if the session is closed, NotSerializable for what has no bytes.
        """
        self._check_open()
        self._engine.flush_own_output()
        if isinstance(task, BoundTask):
            task, args = task._task, (task._instance, *args)
        if not isinstance(task, AnyTask):
            task = Task(_function_of(task), Options())
        frame = sys._getframe(1)
        call = Call(task, args, kwargs, frame.f_code.co_filename, frame.f_lineno)
        return self._client.spawn(call, task.options_now)[0]

    def put(self, value: R) -> Future[R]:
        """Stores a copy of `value` once; the future can be passed to many submits."""
        self._check_open()
        return cast("Future[R]", self._client.put(value))

    @overload
    def sh(
        self,
        command: str,
        /,
        *,
        stdin: Any = ...,
        env: Mapping[str, Any] | None = ...,
        cwd: str | os.PathLike[str] | None = ...,
        outputs: None = ...,
        options: Options | None = ...,
        live: bool = ...,
        **inputs: Any,
    ) -> Future[bytes]: ...
    @overload
    def sh(
        self,
        command: str,
        /,
        *,
        stdin: Any = ...,
        env: Mapping[str, Any] | None = ...,
        cwd: str | os.PathLike[str] | None = ...,
        outputs: Sequence[str],
        options: Options | None = ...,
        live: bool = ...,
        **inputs: Any,
    ) -> dict[str, Future[bytes]]: ...
    def sh(
        self,
        command: str,
        /,
        *,
        stdin: Any = None,
        env: Mapping[str, Any] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        outputs: Sequence[str] | None = None,
        options: Options | None = None,
        live: bool = False,
        **inputs: Any,
    ) -> Future[bytes] | dict[str, Future[bytes]]:
        """As `ciel.sh`, as a submit of its own."""
        self._check_open()
        return spawn_command(
            self._client, command, inputs, stdin=stdin, env=env, cwd=cwd, outputs=outputs,
            options=options, live=live,
        )  # fmt: skip

    def skywriting(
        self, file: str | os.PathLike[str], /, *args: Argument, options: Options | None = None
    ) -> Future[Any]:
        """As `ciel.skywriting`, as a submit of its own."""
        self._check_open()
        return spawn_script(self._client, file, args, options)

    def close(self) -> None:
        """Waits for all that was submitted, and ends the engine.

        Raises the earliest failure that nobody asked for.
        """
        if not self._is_open:
            return
        self._leave()
        self._client.connection.exit(self._client.tag, [_NULL], KEEP_UNSPECIFIED)
        self._finish()
        if self._client.failures:
            raise error_of(self._client.failures[0])

    def cancel(self) -> None:
        """Ends all that was submitted, at once, and the engine."""
        if self._is_open:
            self._leave()
            self._client.connection.close()
            self._finish()

    def _fail(self, error: BaseException) -> None:
        """Closes it with a failure, after which nothing more is begun."""
        self._leave()
        self._client.connection.error(self._client.tag, failure_of(error))
        self._finish()

    def _leave(self) -> None:
        self._is_open = False
        _OPEN.discard(self)

    def _finish(self) -> None:
        self._client.connection.flush()
        try:
            self._client.closed.wait()
        except KeyboardInterrupt:
            self._client.connection.close()
            self._engine.end()
            raise
        self._client.connection.close()
        self._engine.end()

    def _check_open(self) -> None:
        if not self._is_open:
            raise NoRun("the session is closed")

    def __enter__(self) -> Session:
        """The session itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it; if an exception leaves the block, cancels what was submitted."""
        if error is None:
            self.close()
        else:
            self.cancel()


def _function_of(work: Any) -> Callable[..., Any]:
    """The function that stands for anything that can be called, for example a built-in one."""
    if inspect.isfunction(work):
        return work
    if not callable(work):
        raise TypeError(f"what is submitted is a task or can be called, not {work!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(work, "__name__", type(work).__name__)
    return call


_OPEN: weakref.WeakSet[Session] = weakref.WeakSet()


def _greeted(engine: Engine) -> Client:
    """Says hello and waits for the start of the root."""
    connection = engine.connection
    connection.hello(f"ciel-python {sys.version.split()[0]}", "", "session", ["watching"], True, 0)
    while (message := connection.receive()) is not None:
        if type(message) is Start:
            return Client(connection, message.tag, message.label)
        if type(message) is Refusal:
            engine.end()
            raise CielError(message.reason, hint=message.hint)
    raise engine.failed()


@atexit.register
def _close_open_sessions() -> None:
    """A session that nobody closed is ended, and said to have been left open."""
    for session in list(_OPEN):
        print(
            "ciel: a session was never closed: what it had not finished is cancelled\n"
            "  hint: use `with ciel.Session() as session`, or call session.close()",
            file=sys.stderr,
        )
        session.cancel()


def run(
    main: Callable[..., R] | Task[..., R],
    /,
    *args: Any,
    jobs: int | None = None,
    serial: bool = False,
    keep_going: bool = False,
    retries: int = 0,
    timeout: float | None = None,
    state: str | os.PathLike[str] | None = None,
    stderr: str = "live",
    progress: bool = False,
    resources: Mapping[str, int] | None = None,
    **kwargs: Any,
) -> R:
    """Runs `main(*args, **kwargs)` as the root of a run, on all cores, and gives its value.

    The options are those of `Session`; arguments of `main` with such names go by place. Raises what
    leaves `main`, or else the earliest failure of a task that nobody asked for. Ctrl-C cancels.
    """
    session = Session(
        jobs=jobs, serial=serial, keep_going=keep_going, retries=retries, timeout=timeout,
        state=state, stderr=stderr, progress=progress, resources=resources,
    )  # fmt: skip
    try:
        value: R = session.submit(main, *args, **kwargs).result()
    except (KeyboardInterrupt, NoRun, WorkerLost):
        session.cancel()
        raise
    except BaseException as error:
        session._fail(error)
        raise
    session.close()
    return value
