"""The format of the payload of a Python task, and how it is read.

A payload is a head of fixed size, the header of the function (`_code.Identity`), and a pickle of
the arguments; of a call with plain values and futures only, a pickle of the values and the indices
of the futures, which costs less on both sides. Its inputs are, in this order: the function if it
goes by value, the references among the arguments, large buffers, and the pickle itself if that is
large. `Store` is the interface of a strand that packing uses. Read next: `_freeze.py`,
`_engine_strand.py`.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from ciel._atoms import ATOMS, is_plain
from ciel._code import Identity, current_identity
from ciel._faults import explained_call
from ciel._freeze import Frozen, freeze, thaw
from ciel._future import Future
from ciel._reading import Reading, Source

if TYPE_CHECKING:
    from ciel._call import Call

OBJECT_BYTES_MIN = 64 << 10
"""Buffers and arguments from this size on become objects, which processes map and share."""

SMALL_BYTES_MAX = 4 << 10
"""Payloads and results below this size are small: they cost little to copy."""

# How a function gives its outputs are the bits of `_call.py`.
BY_VALUE, BODY_IS_OBJECT, HAS_BUFFERS, HAS_PLACES = 2, 4, 8, 32
REFERENCE, STREAM = 1, 2
"""Modes of inputs, other than by value."""

_HEAD = struct.Struct(">BHIQ")


class Store(Protocol):
    """The interface of the spawning strand that packing uses."""

    def handle_of(self, future: Future[Any]) -> int:
        """The handle of a future of this strand; raises WaitError for another's."""
        ...

    def function_handle(self, identity: Identity) -> int:
        """The object that holds a function by value."""
        ...

    def buffer_handle(self, buffer: Any) -> int:
        """An object that holds these bytes; equal ones are stored once."""
        ...


class Reader(Protocol):
    """The interface of the running strand that unpacking uses: its inputs by number."""

    def value(self, number: int) -> Any:
        """The value of a resolved input."""

    def future(self, number: int) -> Any:
        """The future of an input that is kept as a reference."""

    def stream(self, number: int) -> Any:
        """The stream of an input, which is read while it is written."""

    def raw(self, number: int) -> Any:
        """The bytes of an input, read-only."""


Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Packed = tuple[bytes, Sequence[int], "Sequence[int] | None"]


def pack(call: Call, store: Store, step: int = 0) -> Packed:
    """Payload, inputs, and the modes in which they are taken (`None`: all by value).

    `step` counts the tails of the strand before this call. Raises NotSerializable that names the
    argument, CielError if what the function captures was rebound.
    """
    task = call.task
    identity = current_identity(task)
    args = call.args
    if not call.kwargs and identity.data is None:
        for value in args:
            if not is_plain(value):
                break
        else:
            flags = 1 | task.gives
            payload = _packed_plain(identity, args, flags, step)
            if payload is not None:
                return payload, (), None
        if not task.keeps:
            packed = _packed_with_places(call, identity, store, step)
            if packed is not None:
                return packed
    return _packed_whole(call, identity, store, step)


def _packed_plain(
    identity: Identity, args: tuple[Any, ...], flags: int, step: int
) -> bytes | None:
    """A call with plain values only; `None` if they are large."""
    body = pickle.dumps((args,), 5) if args else b""
    if len(body) >= OBJECT_BYTES_MIN:
        return None
    header = identity.header
    return _HEAD.pack(flags, len(header), 0, step) + header + body


def head_of_plain(identity: Identity) -> bytes:
    """What precedes the arguments in the payload of a call with plain values only."""
    return _HEAD.pack(1, len(identity.header), 0, 0) + identity.header


def atoms_of(call: Call) -> Arguments | None:
    """The arguments of a call that needs no copy of them; `None` for any other call."""
    for value in call.args:
        if not is_plain(value):
            return None
    for value in call.kwargs.values():
        if not is_plain(value):
            return None
    return call.args, call.kwargs


def is_small(atom: Any) -> bool:
    """Whether a plain value can be shared by many calls without a file of its own."""
    if type(atom) is str or type(atom) is bytes:
        return len(atom) < SMALL_BYTES_MAX
    return type(atom) is not int or atom.bit_length() < SMALL_BYTES_MAX


def _packed_with_places(call: Call, identity: Identity, store: Store, step: int) -> Packed | None:
    """A call with plain values and futures only; `None` for any other."""
    plain: list[Any] = []
    places: list[int] = []
    inputs: list[int] = []
    for value in call.args:
        if type(value) in ATOMS:
            plain.append(value)
        elif type(value) is Future:
            places.append(len(plain))
            plain.append(None)
            inputs.append(store.handle_of(value))
        else:
            return None
    body = pickle.dumps((plain, places), 5)
    if len(body) >= OBJECT_BYTES_MIN:
        return None
    flags = 1 | HAS_PLACES | call.task.gives
    header = identity.header
    return _HEAD.pack(flags, len(header), len(places), step) + header + body, inputs, None


def _packed_whole(call: Call, identity: Identity, store: Store, step: int) -> Packed:
    frozen, kept_count = _frozen(call)
    inputs = [] if identity.data is None else [store.function_handle(identity)]
    flags = 1 if identity.data is None else 1 | BY_VALUE
    flags |= call.task.gives
    references = frozen.references
    first = len(inputs)
    inputs += [store.handle_of(future_of(one)) for one in references]
    modes = [0] * first + [_mode_of(one) for one in references]
    modes[first : first + kept_count] = [REFERENCE] * kept_count
    body = frozen.data
    if frozen.buffers:
        flags |= HAS_BUFFERS
        body = pickle.dumps((body, [_placed(buffer, store, inputs) for buffer in frozen.buffers]))
    if len(body) >= OBJECT_BYTES_MIN:
        flags |= BODY_IS_OBJECT
        inputs.append(store.buffer_handle(body))
        body = b""
    modes += [0] * (len(inputs) - len(modes))
    header = identity.header
    head = _HEAD.pack(flags, len(header), len(references), step)
    return head + header + body, inputs, modes if any(modes) else None


def _mode_of(reference: Any) -> int:
    """How an input is taken, with the wish for a stream above its lowest two bits."""
    return STREAM | reference.wish.number << 2 if isinstance(reference, Reading) else 0


def future_of(reference: Any) -> Future[Any]:
    """The future behind a reference in arguments, which may be its stream."""
    return cast("Future[Any]", reference.unread if isinstance(reference, Reading) else reference)


def _placed(buffer: pickle.PickleBuffer, store: Store, inputs: list[int]) -> bytes | None:
    """The bytes of a small buffer; `None` for a large one, which becomes an input."""
    raw = buffer.raw()
    if raw.nbytes < OBJECT_BYTES_MIN:
        return bytes(raw)
    inputs.append(store.buffer_handle(raw))
    return None


def _frozen(call: Call) -> tuple[Frozen, int]:
    """The arguments as bytes; futures that are kept as references come first."""
    args, kwargs, keeps = call.args, call.kwargs, call.task.keeps
    references: list[Future[Any]] = []
    try:
        if not keeps:
            return freeze((args, kwargs), references, takes_streams=True), 0
        kept, args, kwargs = _parted(args, kwargs, keeps, call.task.parameters)
        inside = freeze(kept, references, apart=False)
        count = len(references)
        return freeze((args, kwargs, inside.data), references, takes_streams=True), count
    except Exception as error:  # classes of arguments may raise anything
        raise _named_fault(call, error) from None


def _named_fault(call: Call, error: BaseException) -> BaseException:
    return explained_call(call.task.places(len(call.args)), call.args, call.kwargs, error)


def _parted(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    keeps: frozenset[str | int],
    parameters: list[str],
) -> tuple[dict[Any, Any], tuple[Any, ...], dict[str, Any]]:
    """Separates the arguments of parameters that keep futures from the others."""
    rest = [place for place in keeps if isinstance(place, int) and place < 0]
    begin = -1 - rest[0] if rest else len(args)
    kept: dict[Any, Any] = {
        place: value for place, value in enumerate(args) if place in keeps or place >= begin
    }
    for name, value in kwargs.items():
        if name in keeps or "**" in keeps and name not in parameters:
            kept[name] = value
    others = tuple(None if place in kept else value for place, value in enumerate(args))
    return kept, others, {name: value for name, value in kwargs.items() if name not in kept}


class Unpacked:
    """A decoded payload: the function's header, the step of its strand, its arguments."""

    __slots__ = ("header", "body", "flags", "count", "step")

    def __init__(self, payload: bytes) -> None:
        """Reads the head; raises struct.error for any other payload."""
        self.flags, length, self.count, self.step = _HEAD.unpack_from(payload)
        end = _HEAD.size + length
        self.header = payload[_HEAD.size : end]
        self.body = payload[end:]

    def arguments(self, read: Reader, total: int) -> Arguments:
        """The arguments of the call; `read` reads its inputs, of which there are `total`."""
        body: Any = self.body
        if self.flags & HAS_PLACES:
            args, places = pickle.loads(body)
            for number, place in enumerate(places):
                args[place] = read.value(number)
            return tuple(args), {}
        if not body and not self.flags & BODY_IS_OBJECT:
            return (), {}
        if self.flags & BODY_IS_OBJECT:
            body = read.raw(total - 1)
        first = 1 if self.flags & BY_VALUE else 0
        buffers = None
        if self.flags & HAS_BUFFERS:
            body, placed = pickle.loads(body)
            large = iter(range(first + self.count, total))
            buffers = [read.raw(next(large)) if piece is None else piece for piece in placed]
        return _thawed(
            body,
            buffers,
            lambda i: read.value(first + i),
            lambda i: read.future(first + i),
            lambda i: read.stream(first + i),
        )


def arguments_now(call: Call, value: Callable[[Any], Any]) -> Arguments:
    """The arguments of a call that runs at once in this process, copied; `value` as in `Copy`."""
    atoms = atoms_of(call)
    if atoms is not None:
        return atoms
    return Copy(call).arguments(value, lambda future: future)


class Copy:
    """The arguments of a call as bytes, for a call that runs in this process."""

    __slots__ = ("frozen", "buffers")

    def __init__(self, call: Call) -> None:
        """Copies the arguments now; raises NotSerializable that names the one at fault."""
        self.frozen, _ = _frozen(call)
        self.buffers = [bytes(buffer) for buffer in self.frozen.buffers]

    def arguments(
        self, value: Callable[[Any], Any], mine: Callable[[Any], Any]
    ) -> Arguments:
        """A new copy of the arguments; `value` returns the value of a future that is not kept as
        one, `mine` converts a kept one to a future of the strand that runs the call.
        """
        futures = self.frozen.references
        return _thawed(
            self.frozen.data,
            self.buffers,
            lambda number: value(futures[number]),
            lambda number: mine(futures[number]),
            lambda number: Reading(Source.of_value(value(future_of(futures[number]))).itself),
        )


def _thawed(
    body: Any,
    buffers: Sequence[Any] | None,
    value: Callable[[int], Any],
    future: Callable[[int], Any],
    stream: Callable[[int], Any],
) -> Arguments:
    found = thaw(body, value, buffers, stream)
    if len(found) == 1:
        return found[0], {}
    if len(found) == 2:
        return found[0], found[1]
    args, kwargs = list(found[0]), found[1]
    for place, kept in thaw(found[2], future).items():
        if isinstance(place, int):
            args[place] = kept
        else:
            kwargs[place] = kept
    return tuple(args), kwargs
