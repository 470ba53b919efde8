"""The native half: a codec and a socket of the executor protocol, and names.

Written in Rust, crate `ciel-python`. It knows no strands and no scheduling. What a verb means
stands in `protocol/PROTOCOL.md`. A verb appends to a buffer, which is sent when `receive` waits, on
`flush`, and 0.3 ms later at most by a thread of its own. The last word of a turn (`exit`, `error`,
`block`, `tail_spawn`) is sent by the `receive` or `flush` that follows it. Starts that were told
ahead stay here: after an `exit` that one of them can follow, `receive` gives that at once, and
those behind a task that takes long are given back by a thread of its own.

What is wrong with an argument raises TypeError, ValueError or OverflowError, what is wrong with the
system OSError, and what is wrong with the engine RuntimeError. An engine that has gone is no error:
what is said to it is lost, and `receive` gives None.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

from typing_extensions import Buffer, Self

@final
class Frame:
    """One call of a traceback; `line` counts from 1, `source` is the text of that line."""

    __match_args__ = ("file", "line", "function", "source")
    def __new__(cls, file: str, line: int, function: str, source: str) -> Frame: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def function(self) -> str: ...
    @property
    def source(self) -> str: ...

@final
class Failure:
    """Why a task failed.

    `kind` is that of the protocol without its prefix, such as `TASK_ERROR`; frames have the
    outermost call first; `retryable` is `None` if the kind decides; `exception` is the exception
    itself as form and bytes; `task` names the task that failed first.
    """

    __match_args__ = (
        "kind",
        "language",
        "type_name",
        "message",
        "frames",
        "hint",
        "retryable",
        "exception",
        "task",
        "excerpt",
    )
    def __new__(
        cls,
        kind: str,
        language: str,
        type_name: str,
        message: str,
        frames: list[Frame],
        hint: str,
        retryable: bool | None,
        exception: tuple[str, bytes] | None,
        task: str,
        excerpt: str,
    ) -> Failure: ...
    @property
    def kind(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def type_name(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def frames(self) -> list[Frame]: ...
    @property
    def hint(self) -> str: ...
    @property
    def retryable(self) -> bool | None: ...
    @property
    def exception(self) -> tuple[str, bytes] | None: ...
    @property
    def task(self) -> str: ...
    @property
    def excerpt(self) -> str: ...

@final
class TaskOptions:
    """What a spawn asks for, and what a start grants; `None` means the run's default.

    `resources` holds others than cores and memory, by name, in thousandths.
    """

    def __new__(
        cls,
        cores_milli: int | None = None,
        memory_bytes: int | None = None,
        resources: dict[str, int] = ...,
        retries: int | None = None,
        timeout_ms: int | None = None,
        lazy: bool = False,
        pure: bool | None = None,
        live: bool = False,
        keep: bool | None = None,
    ) -> TaskOptions: ...
    @property
    def cores_milli(self) -> int | None: ...
    @property
    def memory_bytes(self) -> int | None: ...
    @property
    def resources(self) -> dict[str, int]: ...
    @property
    def retries(self) -> int | None: ...
    @property
    def timeout_ms(self) -> int | None: ...
    @property
    def lazy(self) -> bool: ...
    @property
    def pure(self) -> bool | None: ...
    @property
    def live(self) -> bool: ...
    @property
    def keep(self) -> bool | None: ...

@final
class Definition:
    """What the spawns of one function in one file have in common; the engine receives it once.

    `code` has name, file, line and digest of all code that it runs, the function itself first.
    """

    def __new__(
        cls,
        executor: str,
        label: str,
        *,
        code: Sequence[tuple[str, str, int, bytes]] = ...,
        file: str = "",
        outputs: int = 1,
        options: TaskOptions | None = None,
        streams: Sequence[int] = (),
        stream_mode: int = 0,
        single_consumer: bool = False,
    ) -> Definition: ...
    @property
    def label(self) -> str: ...
    @property
    def outputs(self) -> int: ...
    @property
    def options(self) -> TaskOptions: ...

# An output given by value: number, bytes, form, handles of the references inside.
Output: TypeAlias = tuple[int, bytes, str, Sequence[int]]

# What a task was seen to do: effects in words; files that it has read, as path, length and digest.
Audit: TypeAlias = tuple[list[str], list[tuple[str, int, bytes]]]

@final
class Pending:
    """The state of a reference whose value is not ready."""

    __match_args__ = ("handle",)
    def __new__(cls, handle: int) -> Pending: ...
    @property
    def handle(self) -> int: ...
    @property
    def is_resolved(self) -> bool: ...

@final
class Value:
    """The state of a reference whose value is `data`; `references` are the handles inside."""

    __match_args__ = ("handle", "data", "form", "references")
    def __new__(
        cls, handle: int, data: bytes, form: str, references: tuple[int, ...]
    ) -> Value: ...
    @property
    def handle(self) -> int: ...
    @property
    def data(self) -> bytes: ...
    @property
    def form(self) -> str: ...
    @property
    def references(self) -> tuple[int, ...]: ...
    @property
    def is_resolved(self) -> bool: ...

@final
class File:
    """The state of a reference whose value is in a file of `length` bytes."""

    __match_args__ = ("handle", "path", "length", "form", "references")
    def __new__(
        cls, handle: int, path: str, length: int, form: str, references: tuple[int, ...]
    ) -> File: ...
    @property
    def handle(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def length(self) -> int: ...
    @property
    def form(self) -> str: ...
    @property
    def references(self) -> tuple[int, ...]: ...
    @property
    def is_resolved(self) -> bool: ...

@final
class Incoming:
    """The state of a reference whose value comes out of a pipe while it is written."""

    __match_args__ = ("handle", "path", "form")
    def __new__(cls, handle: int, path: str, form: str) -> Incoming: ...
    @property
    def handle(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def form(self) -> str: ...
    @property
    def is_resolved(self) -> bool: ...

@final
class SharedWriter:
    """Places values of a stream in memory that the reader of its pipe maps, if it does."""

    def __new__(cls, pipe: int, ask: Callable[[int], str | None]) -> SharedWriter: ...
    def place(self, pieces: list[Any]) -> tuple[bytes, bool] | None: ...
    @property
    def shared_bytes(self) -> int: ...

@final
class SharedReader:
    """Finds values of a stream in memory that the producer of its pipe maps, too."""

    def __new__(cls, pipe: int) -> SharedReader: ...
    def offer(self) -> None: ...
    def value(self, told: bytes) -> SharedValue: ...
    def end(self) -> None: ...
    @property
    def is_full(self) -> bool: ...

@final
class SharedValue:
    """The bytes of a value in such memory, which is used again when nothing points into it."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Failed:
    """The state of a reference whose task failed."""

    __match_args__ = ("handle", "failure")
    def __new__(cls, handle: int, failure: Failure) -> Failed: ...
    @property
    def handle(self) -> int: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def is_resolved(self) -> bool: ...

Resolved: TypeAlias = Value | File | Failed
Reference: TypeAlias = Pending | Incoming | Resolved

@final
class Observation:
    """An input that a strand took from its environment, or an answer about timing."""

    __match_args__ = ("kind", "value")
    def __new__(cls, kind: str, value: bytes) -> Observation: ...
    @property
    def kind(self) -> str: ...
    @property
    def value(self) -> bytes: ...

@final
class Recording:
    """What a strand did in an earlier attempt; its replay gets the same answers.

    `references` are those that it held and that are resolved, `spawned` the indices of its spawns,
    and `until` that behind its last action.
    """

    __match_args__ = ("references", "observations", "spawned", "until")
    def __new__(
        cls,
        references: list[Reference],
        observations: list[Observation],
        spawned: list[int],
        until: int,
    ) -> Recording: ...
    @property
    def references(self) -> list[Reference]: ...
    @property
    def observations(self) -> list[Observation]: ...
    @property
    def spawned(self) -> list[int]: ...
    @property
    def until(self) -> int: ...

@final
class Hello:
    """The engine's greeting: its name with its version, and the features that it has."""

    __match_args__ = ("build", "features")
    def __new__(cls, build: str, features: list[str]) -> Hello: ...
    @property
    def build(self) -> str: ...
    @property
    def features(self) -> list[str]: ...

@final
class Refusal:
    """The engine refuses the connection."""

    __match_args__ = ("reason", "hint")
    def __new__(cls, reason: str, hint: str) -> Refusal: ...
    @property
    def reason(self) -> str: ...
    @property
    def hint(self) -> str: ...

@final
class Start:
    """A task begins; handles of `inputs` are their indices.

    `position` is the name of the task's strand, 16 bytes; `action` is the index of its first action,
    `handle` the first that it may choose; `cores` says how many it may keep busy; `replay` is set
    if the task runs again.
    """

    __match_args__ = (
        "tag",
        "payload",
        "inputs",
        "outputs",
        "label",
        "seed",
        "position",
        "action",
        "handle",
        "cores",
        "replay",
        "options",
    )
    def __new__(
        cls,
        tag: int,
        payload: bytes,
        inputs: list[Reference],
        outputs: int,
        label: str,
        seed: int,
        position: bytes,
        action: int,
        handle: int,
        cores: int,
        replay: Recording | None,
        options: TaskOptions,
    ) -> Start: ...
    @property
    def tag(self) -> int: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def inputs(self) -> list[Reference]: ...
    @property
    def outputs(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def position(self) -> bytes: ...
    @property
    def action(self) -> int: ...
    @property
    def handle(self) -> int: ...
    @property
    def cores(self) -> int: ...
    @property
    def replay(self) -> Recording | None: ...
    @property
    def options(self) -> TaskOptions: ...

@final
class Resume:
    """A strand that has blocked continues, with the references that it waited for."""

    __match_args__ = ("tag", "references", "timed_out")
    def __new__(cls, tag: int, references: list[Reference], timed_out: bool) -> Resume: ...
    @property
    def tag(self) -> int: ...
    @property
    def references(self) -> list[Reference]: ...
    @property
    def timed_out(self) -> bool: ...

@final
class Opened:
    """A file was opened for writing."""

    __match_args__ = ("path",)
    def __new__(cls, path: str) -> Opened: ...
    @property
    def path(self) -> str: ...

@final
class Observed:
    """A question was answered; `value` is JSON."""

    __match_args__ = ("value",)
    def __new__(cls, value: bytes) -> Observed: ...
    @property
    def value(self) -> bytes: ...

Result: TypeAlias = Reference | Opened | Observed

@final
class Answer:
    """The answer to a request; a `Failure` says why it was refused."""

    __match_args__ = ("tag", "request", "result")
    def __new__(cls, tag: int, request: int, result: Result | Failure) -> Answer: ...
    @property
    def tag(self) -> int: ...
    @property
    def request(self) -> int: ...
    @property
    def result(self) -> Result | Failure: ...

@final
class Cancel:
    """A task is to end within `grace_ms`."""

    __match_args__ = ("tag", "grace_ms")
    def __new__(cls, tag: int, grace_ms: int) -> Cancel: ...
    @property
    def tag(self) -> int: ...
    @property
    def grace_ms(self) -> int: ...

@final
class Drop:
    """A parked strand is not resumed any more."""

    __match_args__ = ("tag",)
    def __new__(cls, tag: int) -> Drop: ...
    @property
    def tag(self) -> int: ...

@final
class Shutdown:
    """The connection ends; `failures` are those of results that were never read."""

    __match_args__ = ("failures",)
    def __new__(cls, failures: list[Failure]) -> Shutdown: ...
    @property
    def failures(self) -> list[Failure]: ...

Message: TypeAlias = Hello | Refusal | Start | Resume | Answer | Cancel | Drop | Shutdown

@final
class Connection:
    """A connection to the engine. Any thread may use it; one thread at a time receives."""

    def __new__(
        cls, fd: int, *, long_turn_s: float = 0.001, alone_s: float = 0.010
    ) -> Connection:
        """Takes over the socket `fd` and marks it close-on-exec; OSError if it is none.

        Prefetched starts are returned while a task runs for longer than `long_turn_s`; none
        follows after `alone_s` without the engine.
        """

    def hello(
        self,
        build: str,
        runtime: str,
        executor: str,
        features: list[str],
        reuse: bool,
        parked_strands_max: int,
    ) -> None:
        """Greets the engine; the first thing said."""

    def receive(self) -> Message | None:
        """The next message, None when the engine has gone; other threads run while it waits."""

    def await_message(self) -> None:
        """Waits for what `receive` would return, which receives it."""

    def poll(self) -> bool:
        """Whether `receive` would return at once; waits for another thread that receives."""

    def flush(self) -> None:
        """Sends all that was said."""

    def close(self) -> None:
        """Sends all that was said and ends the connection; a waiting `receive` gives None."""

    def forked(self) -> None:
        """In a forked child: closes its descriptor without a word; verbs then do nothing."""

    def spawn(
        self,
        tag: int,
        definition: Definition,
        payload: bytes,
        inputs: Sequence[int],
        *,
        action: int,
        handle: int,
        line: int,
        modes: Sequence[int] | None = None,
        weights: Sequence[int] | None = None,
        released: Sequence[int] = ...,
    ) -> None:
        """Spawns a task as action `action`; its outputs get the handles from `handle` on.

        `modes` says how each input is taken: 0 by value, 1 as a reference, 2 as a stream. The bits
        above the lowest two are what the task wishes for as a reader: four bits for a mode from 1,
        or 8 and flags, then the granularity in bytes. `weights` are their locality weights in
        percent.
        `released` are handles that the task uses no more.
        """

    def tail_spawn(
        self,
        tag: int,
        definition: Definition,
        payload: bytes,
        inputs: Sequence[int],
        *,
        after: int,
        line: int,
        modes: Sequence[int] | None = None,
        weights: Sequence[int] | None = None,
        audit: Audit | None = None,
    ) -> None:
        """Hands all outputs to a new task, after so many actions, and ends this one."""

    def construct(
        self,
        tag: int,
        data: bytes,
        form: str,
        references: Sequence[int],
        *,
        action: int,
        handle: int,
        part: int | None = None,
    ) -> None:
        """Makes an object as action `action`, or as that part of the spawn there."""

    def open_construct(self, tag: int, request: int, length: int = 0) -> None:
        """Asks for a file to write a new object of so many bytes into; answered by `opened`."""

    def open_output(
        self, tag: int, request: int, output: int, form: str = "", length: int = 0
    ) -> None:
        """Asks for a file to write an output into, or for the pipe of a stream; see `opened`.

        `form` is that of what is written, unless it is committed with another one, and `length` its
        number of bytes, 0 if it is not known.
        """

    def open_reference(
        self, tag: int, request: int, handle: int, must_block: bool, as_stream: bool = False
    ) -> None:
        """Asks what is behind a handle; with `must_block` answered only when it is settled.

        With `as_stream`, what is not settled is answered at once by `Incoming`.
        """

    def commit(
        self,
        tag: int,
        request: int,
        form: str,
        references: Sequence[int],
        *,
        action: int,
        handle: int,
        part: int | None = None,
    ) -> None:
        """Says that the file opened by `request` is complete; otherwise as `construct`."""

    def block(
        self,
        tag: int,
        handles: Sequence[int],
        wait: int,
        timeout_ms: int | None,
        *,
        after: int,
        part: int | None = None,
        released: Sequence[int] = ...,
    ) -> None:
        """Waits, parked, after so many actions; answered by `resume` or `drop`.

        `wait` is 0 for all of the handles, 1 for the first, 2 for the next of those that the last
        wait for the first has left. An end that depends on time is that part of the next action.
        `released` are handles that the task uses no more.
        """

    def write(self, tag: int, sink: int, data: bytes, after: int) -> None:
        """Writes to a stream, after so many actions: 0 standard output, 1 standard error."""

    def write_file(self, tag: int, path: str, data: bytes, after: int) -> None:
        """Writes to the ordered file at a path, after so many actions; no bytes open it."""

    def observe(self, tag: int, kind: str, value: bytes, *, action: int, part: int) -> None:
        """Records an input from the environment, as that part of the next action."""

    def ask(
        self,
        tag: int,
        request: int,
        kind: str,
        handles: Sequence[int],
        *,
        action: int,
        part: int,
    ) -> None:
        """Asks the engine about timing; answered by `observed`, as JSON. Recorded likewise."""

    def log(self, tag: int, level: int, message: str) -> None:
        """Tells people something: 0 of interest, 1 for who looks for a fault, 2 a warning."""

    def error(self, tag: int, failure: Failure) -> None:
        """Ends the task with a failure."""

    def exit(
        self, tag: int, outputs: Sequence[Output], keep: int, audit: Audit | None = None
    ) -> None:
        """Ends the task well: keep 0 as hello said, 1 ready, 2 used up."""

def tell_caches(connection: Connection, held: list[str], dropped: list[str]) -> None:
    """Of which objects, by the paths of their files, the process keeps something from now on.

    And of which it keeps nothing any more.
    """

def open_shared(connection: Connection, tag: int, request: int, length: int) -> None:
    """Asks for memory to share with the reader of a stream; answered by `opened`.

    Four values of `length` bytes have room there. The path is empty if there is none.
    """

def tell_shared(connection: Connection, tag: int, output: int, bytes: int) -> None:
    """How much of an output its reader has had through such memory, before the exit."""

@final
class OrderedFile:
    """One handle of a file that threads write in a mode of its own; see `_ordered_files.py`.

    RuntimeError is for a thread that runs no strand of the one that opened the file, and for a
    close while strands run that precede; ValueError for a closed handle.
    """

    def __new__(
        cls, path: str, mode: str, create: bool, truncate: bool, structured: bool
    ) -> OrderedFile: ...
    def write(self, data: bytes) -> None: ...
    def read(self, count: int) -> bytes: ...
    def seek(self, offset: int, whence: int) -> int: ...
    def flush(self) -> None: ...
    def dup(self) -> OrderedFile: ...
    def close(self) -> None: ...

@final
class OrderedStrand:
    """A strand that is forked where this is made; `run` gives what the function returns."""

    def __new__(cls) -> OrderedStrand: ...
    def run(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Any: ...
    def end(self) -> None: ...

@final
class OrderedGroup:
    """Strands that end together: an exception in one cuts what comes behind it in the group."""

    def __new__(cls) -> OrderedGroup: ...
    def fork(self) -> OrderedStrand: ...
    def end(self) -> None: ...

@final
class Promoter:
    """Keeps spawns of the strand that has its turn, and of those that run in place of it.

    They are sent by `settle` and `give_slot`, and by a thread of its own while a core is idle.
    """

    def __new__(
        cls,
        connection: Connection,
        idle_path: str | None = None,
        *,
        beat_s: float = ...,
        kept_max: int = ...,
        call_min_s: float = ...,
    ) -> Promoter:
        """Nothing is kept yet. The engine says in the file at `idle_path` if a core is idle.

        Without one there may always be one. The thread looks every `beat_s` seconds; a strand keeps
        `kept_max` children at most; idle workers compute some of them that take `call_min_s` seconds
        each. Raises OSError if the file cannot be mapped, ValueError for a time that is negative or
        not finite.
        """

    @property
    def assisted(self) -> int:
        """Calls of this worker's strands that other workers have computed."""

    def keep(
        self,
        tag: int,
        definition: Definition,
        payload: bytes,
        action: int,
        handle: int,
        line: int,
        inputs: Sequence[int] = ...,
    ) -> None:
        """Keeps a spawn of the strand that has its turn; `tag` is 0 if it is no task yet.

        `inputs` are handles of the futures among the arguments. Raises ValueError if the call is too long for a message.
        """

    def withdraw(self, tag: int, handle: int) -> bool:
        """The task with that tag takes back its last spawn, the only child that it keeps.

        False if that is a task by now, or another one is kept.
        """

    def begin_call(self, tag: int, handle: int) -> None:
        """The strand that has its turn calls that child, whose function leaves nothing behind."""

    def end_call(self, has_ended: bool) -> bool:
        """The child has ended, else it has not begun; whether it has ended in place."""

    def is_full(self) -> bool:
        """Whether the strand that has its turn keeps as many children as it may."""

    def enter(
        self, tag: int, handle: int, after: int, position: bytes, *, aside: bool = False
    ) -> bool:
        """The child with that handle begins at `position`, in place of its parent.

        The parent has done `after` actions; `aside` is whether it continues beside the child if that
        becomes a task, or waits for it. False if the child is a task already.
        """

    def leave(self, position: bytes) -> bool:
        """What began at `position` ends in place.

        False if it is a task by now, or keeps children.
        """

    def settle(self, tag: int) -> None:
        """Sends all children that the task with that tag keeps."""

    def give_slot(self, position: bytes) -> None:
        """Makes a task of what runs in place of a task, which waits for it from now on.

        Nothing happens if it is one already.
        """

    def beats(self) -> int:
        """Heartbeats so far; they stop while nothing is kept."""

    def has_idle_core(self) -> bool:
        """Whether a core is idle that could take what is kept; there may always be one if the engine
        does not say that.
        """

    def name(self, position: bytes, tag: int) -> None:
        """The task that has begun at `position` has that tag."""

    def count_ended(self) -> None:
        """Has the engine count the children that ended in place since the last time."""

    def forget(self) -> None:
        """The strand that has its turn was cancelled: what it keeps is no task ever."""

def ask_after_spawns(count: int) -> None:
    """Strands made from now on ask for the first time whether they may go on after `count` spawns.

    Without this call none asks.
    """

class Counted:
    """The native half of a strand that has a connection; see `_engine_strand.py`.

    `keeps` is whether it may have children that are no tasks yet, `repeats` whether it replays,
    `sends` whether the engine hears what it spawns, `is_root` whether it is the strand of a root.
    `spawns_left` are tasks that it may spawn before it asks whether it may go on.
    """

    next_action: int
    next_handle: int
    _observed: int
    _arguments: int
    tag: int
    depth: int
    may_keep: bool
    repeats: bool
    keeps: bool
    sends: bool
    spawns_left: int
    is_root: bool
    position: bytes
    scopes: Sequence[Any]
    pieces: list[Any]
    errors: list[bytes]
    _made_from: int
    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Nothing is counted yet."""

    def let_go(self, handle: int) -> None:
        """A future with that handle is gone; called at any moment, in any thread."""

    def take_released(self) -> Sequence[int]:
        """The handles of futures that are gone, for the message that is sent now."""

    def last_sent(self, handle: int) -> Any:
        """The task of the call that was sent last, if the result of that has this handle."""

    sent_with_futures: bool
    """Whether that call has futures among its arguments."""

    def note_sent_ready(self, handle: int, task: Any) -> None:
        """A root sends a call of that task, whose inputs are known."""

    def since_sent(self) -> float:
        """Seconds since that call was sent."""

class FutureState:
    """The native half of a future; see `_future.py`."""

    _waited: bool
    _known: Any
    _child: Any
    @property
    def _ended_here(self) -> bool: ...
    def __new__(cls, strand: Any, handle: int, known: Any = None) -> Self:
        """`handle` is the strand's number for the future, `known` what is known of its value."""
    @property
    def _strand(self) -> Any: ...
    @property
    def _handle(self) -> int: ...

class Function:
    """The native half of a task; see `_call.py`.

    `suits_root` is whether its calls may run in place of a root, `None` before one was measured;
    `runs_early` whether they may run before anybody asks for them, `None` before a look at its code;
    `keeps_waiting` whether a root keeps those with futures until it asks for them.
    """

    suits_root: bool | None
    runs_early: bool | None
    keeps_waiting: bool
    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Nothing is known of its calls."""

    def keep_plain_calls(
        self,
        function: Callable[..., Any],
        file: str,
        definition: Definition,
        head: bytes,
        captured: list[tuple[dict[str, Any], str, Any]],
        takes_names: bool,
    ) -> None:
        """Plain calls of `function` that are spawned in `file` may be kept from now on.

        `head` precedes their arguments in payloads; `captured` are globals that must stay as they
        are, each with its namespace and its value. With `takes_names` arguments may have names.
        """

    def knows_plain_calls(self, file: str) -> bool:
        """Whether plain calls that are spawned in `file` are known."""

    def spawn(self, *args: Any, **kwargs: Any) -> Any:
        """Spawns a call: natively if it is plain, else by `_spawned_here`."""

    def spawn_from(self, args: tuple[Any, ...], file: str, line: int) -> Any:
        """Spawns a plain call natively, for that line of a file; `None` if it is Python's to do."""

DEPTH_MAX: int
"""Strands in place above one another; the innermost spawns tasks."""

@final
class Tail:
    """The end of a file to which others append, without a system call for each look."""

    def __new__(cls, file: int) -> Tail:
        """Of the empty file with that descriptor, which is its own and stays open.

        It writes where it is told to. Gives the file a head. Raises OSError if the file cannot be
        written.
        """

    def has_grown(self) -> bool:
        """Whether the file has what was not read yet."""

    def unread(self) -> tuple[int, int]:
        """From where to where the file has what was not read.

        Raises OSError if the system does not say.
        """

    def note_read(self, read: int) -> None:
        """All up to there was read. Raises OSError if the file cannot be written."""

    def look_by_calls(self) -> None:
        """Others may append nothing but zeros: looks by system calls from now on."""

@final
class Stack:
    """The strands that run in place of one another in this thread; see `_scheduler.py`."""

    def __new__(
        cls,
        promoter: Promoter,
        stand: Callable[..., Counted],
        early: Any,
        future: type[FutureState],
        idle: list[Callable[..., Any]],
        captured: Any,
        state: Any,
        calls: bool,
    ) -> Stack:
        """No strand has its turn. `stand` makes the strand of a child that has begun natively.

        It receives its parent, the parent's switch, and whether the child was called there; the
        task and its arguments; its action and handle; its counts of actions and handles; handles of
        futures that are gone; seconds since it began. `early` is the module that says which calls
        run before they are asked for; `idle` has switches to greenlets without work. With `calls` children are called by the code that asks for them, where that lies
        little above the beginning of its greenlet; `place` has to see that.
        """

    def begin_turn(
        self, strand: Counted | None = None, switch: Callable[..., Any] | None = None
    ) -> None:
        """A strand has its turn, in the greenlet that `switch` switches to; none at its end."""

    def take_tasks(
        self,
        stand: Callable[..., Counted],
        functions: dict[bytes, Callable[..., Any]],
        asked: Mapping[Any, tuple[str, ...]],
        concerns: Sequence[dict[Any, Any]],
    ) -> None:
        """Tasks may begin natively; `stand` makes the strand of one that has begun.

        It receives its start; its function, its arguments and those that have names; seconds since it
        began. `functions` has the functions that were imported, by the headers of payloads, `asked`
        what functions ask their environment. No task begins or ends natively while there is
        anything in `concerns`.
        """

    def may_begin(self) -> bool:
        """Whether the start of a task has come that may begin natively."""

    def push(self, strand: Counted, switch: Callable[..., Any]) -> None:
        """A strand begins in place of the innermost one."""

    def pop(self) -> None:
        """The innermost strand has ended."""

    def unwind(self, switch: Callable[..., Any]) -> bool:
        """Whether a strand is there whose greenlet is that of `switch`.

        Those above it are gone then.
        """

    @property
    def top(self) -> Any:
        """The innermost strand; `None` if none has its turn."""

    @property
    def switch(self) -> Any:
        """Switches to the greenlet of the innermost strand."""

def place() -> int:
    """Where on Python's stack its caller is, in bytes.

    An interpreter that passes arguments elsewhere gives places that mean nothing.
    """

def note_base() -> None:
    """The code of the innermost strand begins at the place of the caller."""

def begin(
    future: FutureState,
) -> tuple[Any, tuple[Any, ...] | None] | None:
    """Begins the child whose result a future is, in place of the strand that runs.

    The function that the caller is to call, and its arguments; or, without these, a tuple of the
    switch to a greenlet, which receives the rest, or `None` if the caller is to call the function;
    the function, its arguments, and those that have names, or `None`; or, without
    these, a tuple of a value that is known. `None` for all that if the
    child is not plain, or is a task already whose value is unknown, or not small and plain.
    """

def end(value: Any) -> Callable[..., Any] | None:
    """Ends the innermost strand in place: the switch to the one below; `None` if that cannot be."""

@final
class Assistant:
    """What a worker that has nothing to do waits with."""

    def __new__(cls, connection: Connection, idle_path: str) -> Assistant:
        """For the worker with that connection; `idle_path` is the file of the idle cores.

        Raises OSError if that cannot be mapped.
        """

    def wait(
        self, functions: dict[bytes, Callable[..., Any]]
    ) -> tuple[Callable[..., Any], Work] | None:
        """Waits for a range of calls of one of the functions, which are by their headers.

        The function and the range; `None` if there is something to receive.
        """

@final
class Work:
    """A range of calls that this worker computes for another one."""

    def begin(self) -> list[tuple[Any, ...]] | None:
        """The arguments of the calls of the next step; `None` if there is none."""

    def end(self, values: list[Any]) -> None:
        """The calls of the step have given these values."""

    def close(self, is_interrupted: bool = False) -> None:
        """No further step follows; one that has begun, and has not ended, was not as usual, unless
        it was interrupted.
        """

@final
class Ahead:
    """The calls of one function that one loop has spawned ahead, in the order of their values.

    `runs` is whether they may run before they are asked for: never after one of them has given what
    is not plain.
    """

    runs: bool
    def __new__(
        cls,
        task: Function,
        before: tuple[Any, ...],
        place: tuple[str, int],
        window: int,
        is_plain: bool,
        short_s: float,
        end: object,
    ) -> Ahead:
        """None are spawned. `before` are arguments before those of each call; the loop is at the
        line `place[1]` of the file `place[0]`; `window` is how many calls are spawned before the
        first value is asked for, `is_plain` whether they need nothing but arguments by place,
        `short_s` in how many seconds one ends that may run ahead. `end` tells that none does.
        """

    def __len__(self) -> int:
        """Calls that are spawned and whose values were not given."""

    @property
    def waits(self) -> bool:
        """Whether the value that is due is that of a task."""

    @property
    def is_known(self) -> bool:
        """Whether the value that is due is known."""

    def add(self, future: Any) -> None:
        """Adds a call that Python has spawned."""

    def take_items(self) -> tuple[Any, ...] | None:
        """Takes the arguments of a call that Python is to spawn, and to add, before any other."""

    def take_failure(self) -> Exception | None:
        """Takes the exception that was raised in place of the arguments of a further call."""

    def take(self) -> Any:
        """Takes the future of the value that is due."""

    def newest(self) -> Any | None:
        """The future of the newest call, if that is one that native code has spawned."""

@final
class Values:
    """The values of a loop, in their order: an iterator that asks for the arguments of further calls
    and spawns these.

    It ends where Python has a call to spawn, or the value that is due is unknown, and continues
    behind that. An exception in place of arguments ends the calls.
    """

    def __new__(cls, ahead: Ahead, given: Iterator[Any]) -> Values:
        """Of the calls `ahead`, for which `given` has tuples of arguments."""

    def __iter__(self) -> Values:
        """Itself."""

    def __next__(self) -> Any:
        """The next value."""

def begin_ahead(ahead: Ahead) -> Any:
    """Begins the calls that may run ahead: the caller is to call the function.

    Gives the arguments of the first one, as a tuple unless there is only one, or what tells that
    there is none.
    """

def advance(ahead: Ahead, value: Any) -> Any:
    """The call that runs ahead has returned `value`: the arguments of the next one, as before."""

def end_ahead(ahead: Ahead) -> None:
    """The call that runs ahead has raised an exception: none runs ahead any more."""

def begin_aside(
    future: FutureState,
) -> tuple[tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], Any], None] | None:
    """Begins a child as `begin` does, in a greenlet of its own, for a strand that has not asked."""

def oldest_aside() -> Any:
    """The task and the future of the oldest call that the strand keeps and that may wait; `None` for
    none.
    """

def early_task() -> Any:
    """The task of the oldest call that the strand keeps and that may run early; `None` for none."""

def begin_early(newest: Function | None) -> tuple[Any, ...] | None:
    """Begins the newest call that the strand keeps, if that is of the task, or the oldest ones, which
    are of one task: the caller is to call its function with the arguments given. `None` if none may
    run here.
    """

def advance_early(value: Any) -> tuple[Any, ...] | None:
    """The call that runs early has returned `value`: the arguments of the next one, if one is to run.
    """

def end_early() -> int:
    """No further call runs early now. How many have ended, 0 if the last one did not as usual."""

def begin_task(
    switch: Callable[..., Any],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None:
    """Begins the task whose start comes next, in the greenlet that runs, to which `switch` switches.

    Its function, its arguments, those that have names; `None` if the message is for `receive`.
    """

def end_task(value: Any) -> bool:
    """Sends the exit of the task that has begun natively and returned `value`.

    False if it has a strand by now, or the value is not plain; then nothing was done.
    """

def strand_here(own: Any) -> Any:
    """The strand that runs in this thread: `own`, or one that has begun natively."""

def note_here(is_here: bool) -> None:
    """Whether the code that runs in this thread from now on belongs to a strand."""

def list_kept(future: FutureState) -> None:
    """The strand has kept the call of a future: it may run early, in a strand of its own."""

def unlist() -> None:
    """The strand that runs sends what it keeps: none of that runs early."""

def note_freezing(one_more: bool) -> None:
    """One more pickle is being made, or one less: its values must not wait."""

def packed_arguments(
    args: tuple[Any, ...], named: dict[str, Any] | None = None
) -> bytes | None:
    """As `pickle.dumps((args,), 5)` or `pickle.dumps((args, named), 5)`.

    Nothing without arguments, `None` for values that Python has to pack.
    """

def packed_atom(value: Any) -> tuple[str, bytes] | None:
    """As `object_of` for a number, text, bytes, a truth or `None`: form and bytes.

    `None` for values that Python has to pack.
    """

def packed_with_places(args: tuple[Any, ...], places: list[int]) -> bytes | None:
    """As `pickle.dumps((values, places), 5)`, where `values` lists `args`, `None` at `places`.

    `None` for values that Python has to pack.
    """

def plain_arguments(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments of a call with the values of its futures in place of these, each a copy.

    `None` if one has no small plain value.
    """

def plain_call(
    payload: bytes, inputs: list[Reference]
) -> tuple[bytes, tuple[Any, ...], dict[str, Any]] | None:
    """The call in a payload that begins its strand: header of the function, arguments, named ones.

    `None` for calls that Python has to read, or with an input that is no small plain value.
    """

def position_of_root(key: bytes) -> bytes:
    """The name of a run's root, 16 bytes, from what tells its run from others."""

def receive_request(socket: int) -> tuple[bytes, list[int]] | None:
    """The next datagram on a socket and its descriptors; None at the end; raises OSError."""

def await_end(handle: int) -> None:
    """Waits for the end of a process by its handle; its children have another parent then."""

def end_with(parent: int) -> None:
    """Has this process killed when that parent ends, at once if its parent is another."""

def overwrite_entry(entry: bytes) -> None:
    """Writes `NAME=value` over that entry of the environment, where other processes see it.

    Raises ValueError if there is none of the same length.
    """

def digest_of_file(path: str) -> tuple[int, bytes]:
    """Length and BLAKE3 hash, 32 bytes, of the content of a file; raises OSError."""

def position_of_spawn(position: bytes, index: int) -> bytes:
    """The name of the `index`-th task, from 0, that the strand named `position` spawns."""

def label_of(what: str, position: bytes) -> str:
    """What people call a task: `fib@3f9c12ab`."""

def seed_of(position: bytes) -> int:
    """The seed of the task at `position`, as a start tells it."""

def tell_seed(seed: int) -> None:
    """Makes `seed` the CIEL_TASK_SEED that processes inherit; one thread calls it."""

def told_seed() -> bytes | None:
    """The seed that `tell_seed` or a child has told, as processes inherit it.

    `None` if `CIEL_TASK_SEED` has another value, or none.
    """

def hash_of(data: Buffer) -> bytes:
    """The first 16 bytes of the BLAKE3 hash of contiguous unsigned bytes; other threads run."""
