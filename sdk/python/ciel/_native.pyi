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

from collections.abc import Sequence
from typing import Any, TypeAlias, final

from typing_extensions import Buffer

# File, line, function, source.
Frame: TypeAlias = tuple[str, int, str, str]
# Kind such as "TASK_ERROR", language, type_name, message, frames with the outermost first, hint,
# retryable (None: as the kind says), exception as form and bytes, task, excerpt.
Failure: TypeAlias = tuple[
    str,
    str,
    str,
    str,
    list[Frame],
    str,
    bool | None,
    tuple[str, bytes] | None,
    str,
    str,
]
# cores_milli, memory in bytes, other resources in thousandths by name, retries, timeout_ms, lazy,
# purity (0 as the executor says, 1 pure, 2 impure), live.
Options: TypeAlias = tuple[
    int | None,
    int | None,
    dict[str, int] | None,
    int | None,
    int | None,
    bool,
    int,
    bool,
]
# An output given by value: number, bytes, form, handles of the references inside.
Output: TypeAlias = tuple[int, bytes, str, Sequence[int]]
# What is known behind a handle, by its second entry:
#   (handle, 0)                                       not there yet
#   (handle, 1, data, form, references)               the bytes themselves
#   (handle, 2, path, length, form, references)       a file
#   (handle, 3, failure)                              its task failed
Reference: TypeAlias = tuple[Any, ...]

@final
class Tag:
    """The task that a message is about: opaque, hashable, equal if it is the same attempt."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

@final
class Connection:
    """A connection to the engine. Any thread may use it; one thread at a time receives."""

    def __new__(cls, fd: int) -> Connection:
        """Takes over the socket `fd` and marks it close-on-exec; OSError if it is none."""

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

    def receive(self) -> tuple[Any, ...] | None:
        """The next message, None when the engine has gone; other threads run while it waits.

        By its first entry:
          ("hello", build, features)  ("refusal", reason, hint)
          ("start", tag, payload, inputs, outputs, label, seed, position, cores, scratch, folder,
           replay, options), where inputs is a list of references, position is 16 bytes, and replay
           is None or (references, [(kind, value, handles), ...])
          ("resume", tag, references, timed_out)
          ("answer", tag, request, result), where result is ("reference", reference),
           ("opened", path), ("observed", data) or ("refused", failure)
          ("cancel", tag, grace_ms)  ("drop", tag)  ("shutdown", failures)
        """

    def poll(self, timeout_ms: int = 0) -> bool:
        """Whether `receive` would return at once, now or within `timeout_ms`.

        False at once while another thread receives.
        """

    def flush(self) -> None:
        """Sends all that was said."""

    def close(self) -> None:
        """Sends all that was said and ends the connection; a waiting `receive` gives None."""

    def forked(self) -> None:
        """In a forked child: closes its descriptor without a word; verbs then do nothing."""

    def spawn(
        self,
        tag: Tag,
        executor: str,
        payload: bytes,
        inputs: Sequence[int],
        kept: Sequence[bool] | None,
        outputs: int,
        options: Options | None,
        label: str,
        code: bytes,
        file: str,
        line: int,
    ) -> None:
        """Spawns a task; adds one handle for each output.

        An input whose entry of `kept` is true is handed on as a reference.
        """

    def tail_spawn(
        self,
        tag: Tag,
        executor: str,
        payload: bytes,
        inputs: Sequence[int],
        kept: Sequence[bool] | None,
        outputs: int,
        options: Options | None,
        label: str,
        code: bytes,
        file: str,
        line: int,
    ) -> None:
        """Hands all outputs to a new task and ends this one."""

    def construct(self, tag: Tag, data: bytes, form: str, references: Sequence[int]) -> None:
        """Makes an object; adds one handle."""

    def publish(
        self, tag: Tag, output: int, data: bytes, form: str, references: Sequence[int]
    ) -> None:
        """Makes an output available before the end; adds one handle."""

    def open_construct(self, tag: Tag, request: int) -> None:
        """Asks for a file to write a new object into; answered by `opened`."""

    def open_output(self, tag: Tag, request: int, output: int) -> None:
        """Asks for a file to write an output into; answered by `opened`."""

    def open_reference(self, tag: Tag, request: int, handle: int, must_block: bool) -> None:
        """Asks what is behind a handle; with `must_block` answered only when it is settled."""

    def commit(self, tag: Tag, request: int, form: str, references: Sequence[int]) -> None:
        """Says that the file opened by `request` is complete; adds one handle."""

    def block(
        self, tag: Tag, handles: Sequence[int], first: bool, timeout_ms: int | None
    ) -> None:
        """Waits, parked, for all of the handles or the first; answered by `resume` or `drop`."""

    def write(self, tag: Tag, sink: int, data: bytes) -> None:
        """Writes to a stream of the task: 0 standard output, 1 standard error."""

    def observe(self, tag: Tag, kind: str, value: bytes) -> None:
        """Records an input that the task took from outside."""

    def ask(self, tag: Tag, request: int, kind: str, handles: Sequence[int]) -> None:
        """Asks the engine about timing; answered by `observed`, as JSON."""

    def log(self, tag: Tag, level: int, message: str) -> None:
        """Tells people something: 0 of interest, 1 for who looks for a fault, 2 a warning."""

    def error(self, tag: Tag, failure: Failure) -> None:
        """Ends the task with a failure."""

    def exit(self, tag: Tag, outputs: Sequence[Output], keep: int) -> None:
        """Ends the task well: keep 0 as hello said, 1 ready, 2 ready with a cache, 3 used up."""

def position_of_root(key: bytes) -> bytes:
    """The name of a run's root, 16 bytes, from what tells its run from others."""

def position_of_spawn(position: bytes, index: int) -> bytes:
    """The name of the `index`-th task, from 0, that the strand named `position` spawns."""

def label_of(what: str, position: bytes) -> str:
    """What people call a task: `fib@3f9c12ab`."""

def seed_of(position: bytes) -> int:
    """The seed of the task at `position`, as a start tells it."""

def tell_seed(seed: int) -> None:
    """Makes `seed` the CIEL_TASK_SEED that processes inherit; one thread calls it."""

def hash_of(data: Buffer) -> bytes:
    """The first 16 bytes of the BLAKE3 hash of contiguous unsigned bytes; other threads run."""
