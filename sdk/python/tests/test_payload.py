"""Payloads of calls: what is packed comes out again, whatever shape the call has."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ciel
from ciel import _native
from ciel._freeze import object_of, value_of
from ciel._future import Future
from ciel._payload import HAS_PLACES, Unpacked, pack
from properties import UNHURRIED
from ciel._call import Call

ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
)
OTHERS = st.one_of(st.lists(st.integers()), st.tuples(st.text()), st.dictionaries(st.text(), ATOMS))
FUTURE = object()


@ciel.task
def takes(*args: Any, **kwargs: Any) -> Any:
    """Never run here."""


class Strand:
    """A store and a reader: futures are handles, inputs are known by their numbers."""

    label = "test"

    def __init__(self) -> None:
        """No object was stored."""
        self.stored: list[Any] = []
        self.inputs: list[Any] = []

    def let_go(self, handle: int) -> None:
        """Handles are not counted here."""

    def handle_of(self, future: Future[Any]) -> int:
        """Handles below a thousand are futures."""
        return future._handle

    def function_handle(self, identity: Any) -> int:
        """Functions of this module go by reference."""
        raise AssertionError(identity)

    def buffer_handle(self, buffer: Any) -> int:
        """Others are objects."""
        self.stored.append(bytes(buffer))
        return 1000 + len(self.stored) - 1

    def value(self, number: int) -> Any:
        """The value of an input."""
        return f"value of {self.inputs[number]}"

    def future(self, number: int) -> Any:
        """The future of an input."""
        return self.inputs[number]

    def raw(self, number: int) -> Any:
        """The bytes of an input."""
        return self.stored[self.inputs[number] - 1000]


def there_and_back(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Unpacked]:
    """What the task gets; a future becomes the value of its handle."""
    strand: Any = Strand()
    payload, strand.inputs, kept = pack(Call(takes, args, kwargs, "", 0), strand, 7)
    assert kept is None
    unpacked = Unpacked(payload)
    assert unpacked.step == 7
    return *unpacked.arguments(strand, len(strand.inputs)), unpacked


def placed(values: list[Any], make: Callable[[int], Any]) -> tuple[Any, ...]:
    """The values, with something else for each future."""
    return tuple(make(at) if value is FUTURE else value for at, value in enumerate(values))


def future(handle: int) -> Future[Any]:
    """A future of some strand."""
    strand: Any = Strand()
    return Future(strand, handle)


@UNHURRIED
@given(st.lists(st.one_of(ATOMS, st.just(FUTURE))))
def test_plain_values_and_futures_arrive_at_their_places(values: list[Any]) -> None:
    args, kwargs, unpacked = there_and_back(placed(values, future), {})
    assert (args, kwargs) == (placed(values, lambda at: f"value of {at}"), {})
    assert bool(unpacked.flags & HAS_PLACES) == (FUTURE in values)


@UNHURRIED
@given(st.lists(st.one_of(ATOMS, OTHERS, st.just(FUTURE))), st.dictionaries(st.text(), ATOMS))
def test_any_call_arrives_as_it_was_made(values: list[Any], named: dict[str, Any]) -> None:
    args, kwargs, _ = there_and_back(placed(values, future), named)
    assert (args, kwargs) == (placed(values, lambda at: f"value of {at}"), named)


def test_same_future_may_stand_at_two_places() -> None:
    twice = future(3)
    args, _, _ = there_and_back((twice, 1, twice), {})
    assert args == ("value of 3", 1, "value of 3")


def test_large_values_beside_futures_go_as_an_object() -> None:
    args, _, unpacked = there_and_back((future(2), "x" * 100_000), {})
    assert args == ("value of 2", "x" * 100_000) and not unpacked.flags & HAS_PLACES


PLAIN: list[object] = [0, 255, 256, 65535, 65536, -1, -(1 << 31), 1 << 31, (1 << 63) - 1]
PLAIN += [-(1 << 63), 1 << 39, -(1 << 39)]
PLAIN += [127, -128, 32768, True, False, None, 0.5, -1e300, "", "text", "å" * 200]
PLAIN += [b"", b"bytes", b"b" * 300]
PLAIN += [1 << 63, -(1 << 63) - 1, -(1 << 71), 1 << 71, (1 << 71) - 1, 3**1200, -(3**1200)]
PLAIN += [1j, complex(-0.0, float("inf")), (2j, "text", 3 + 4j), 5j]
PLAIN += [(), (1,), (1, "one"), (1, 2.5, None), (True, ((b"deep",), ()), 5, (6, (7, 8, 9, 10)))]


DEEP = ((((((((((),),),),),),),),),)


def test_arguments_that_native_code_packs_are_those_of_pickle() -> None:
    pairs = [(first, count) for first in range(len(PLAIN)) for count in range(1, 6)]
    calls = [tuple(PLAIN[first : first + count]) for first, count in pairs]
    for args in calls:
        assert _native.packed_arguments(args) == pickle.dumps((args,), 5), args
    assert _native.packed_arguments(()) == b""


def test_named_arguments_that_native_code_packs_are_those_of_pickle() -> None:
    for first in range(len(PLAIN)):
        for count in range(3):
            args = tuple(PLAIN[first : first + count])
            for number in (1, 2, 7):
                values = (PLAIN + PLAIN)[first + count : first + count + number]
                named = {f"argument_{place}": value for place, value in enumerate(values)}
                assert _native.packed_arguments(args, named) == pickle.dumps((args, named), 5)


def test_arguments_with_futures_that_native_code_packs_are_those_of_pickle() -> None:
    values = [value for value in PLAIN if not isinstance(value, tuple)]
    for first in range(len(values)):
        for count in range(1, 6):
            args = values[first : first + count]
            for places in ([0], [count - 1], [*range(len(args))]):
                kept = [place for place in places if place < len(args)]
                plain = [None if place in kept else value for place, value in enumerate(args)]
                packed = _native.packed_with_places(tuple(args), kept)
                assert packed == pickle.dumps((plain, kept), 5), (args, kept)
    assert _native.packed_with_places((1, (2,)), [0]) is None
    assert _native.packed_with_places((0,) * 256, [0]) is None


NOT_COMMON: list[object] = [1 << 2040, [1], (1, [1]), (("t", {1}),), DEEP, frozenset([1])]
NOT_COMMON += ["t" * 5000, "\ud800", Ellipsis]


@pytest.mark.parametrize("value", NOT_COMMON)
def test_arguments_that_are_not_common_are_left_to_python(value: object) -> None:
    assert _native.packed_arguments((value,)) is None
    assert _native.packed_arguments((1,), {"name": value}) is None


def test_text_that_a_pickle_writes_once_is_left_to_python() -> None:
    text = "text"
    assert _native.packed_arguments((text, 1, text)) is None
    assert _native.packed_arguments((text, (text,))) is None
    assert _native.packed_arguments((text,), {"name": text}) is None
    assert _native.packed_arguments((), {text: text}) is None
    pair, number = (1, text), 1j
    assert _native.packed_arguments((pair, pair)) is None
    assert _native.packed_arguments((number, number)) is None
    for name in ("builtins", "complex"):
        assert _native.packed_arguments((1j, name)) is None
        assert _native.packed_arguments((name, 1j)) is None
    many = tuple(str(place) for place in range(300))
    assert _native.packed_arguments((*many, 1j, 2j)) is None
    assert _native.packed_arguments((1j, *many, 2j)) == pickle.dumps(((1j, *many, 2j),), 5)
    assert _native.packed_arguments(((), ())) == pickle.dumps((((), ()),), 5)


HEADER = b"header of a function"


def payload_of(body: bytes, count: int = 0, flags: int = 1, step: int = 0) -> bytes:
    """A payload as a spawn packs it."""
    return struct.pack(">BHIQ", flags, len(HEADER), count, step) + HEADER + body


def input_of(value: object) -> _native.Value:
    """An input that has that value."""
    form, pieces, _ = object_of(value)
    return _native.Value(0, b"".join(pieces), form, ())


class Inputs:
    """Reads inputs as a strand does."""

    def __init__(self, inputs: list[_native.Reference]) -> None:
        """All are there."""
        self.inputs = inputs

    def value(self, number: int) -> Any:
        """The value of an input."""
        known = self.inputs[number]
        assert isinstance(known, _native.Value)
        return value_of(known.data, known.form, None)

    def future(self, number: int) -> Any:
        """No argument is one."""
        raise AssertionError(number)

    stream = raw = future


def both(payload: bytes, inputs: list[_native.Reference]) -> tuple[Any, Any]:
    """What native code reads, without the header, and what Python does."""
    read = _native.plain_call(payload, inputs)
    assert read is not None and read[0] == HEADER, payload
    # As text: not a number is not equal to itself, and types count.
    read_slowly = Unpacked(payload).arguments(Inputs(inputs), len(inputs))
    return repr(read[1:]), repr(read_slowly)


def test_plain_calls_that_native_code_reads_are_those_that_python_reads() -> None:
    simple = [value for value in PLAIN if b"\x93" not in pickle.dumps(value, 5)]
    bodies = [b"", pickle.dumps(((),), 5), pickle.dumps((tuple(simple),), 5)]
    bodies += [pickle.dumps(((value,), {"named": value}), 5) for value in simple]
    for body in bodies:
        read, read_slowly = both(payload_of(body), [])
        assert read == read_slowly


NUMBERS: list[float | None] = [0, 255, 256, 65535, 65536, -1, -(1 << 31), 1 << 31, 1 << 70]
NUMBERS += [True, False, None, 0.0, -0.0, 1e300, float("inf"), float("nan")]


@UNHURRIED
@given(st.lists(st.one_of(ATOMS, OTHERS), min_size=1, max_size=5))
def test_values_of_futures_that_native_code_reads_are_those_that_python_reads(
    values: list[Any],
) -> None:
    known = [input_of(value) for value in [*values, *NUMBERS]]
    inputs: list[_native.Reference] = [*known]
    places = [*range(1, len(inputs) + 1)]
    body = pickle.dumps((["first", *[None] * len(inputs)], places), 5)
    payload = payload_of(body, len(inputs), 1 | HAS_PLACES)
    if _native.plain_call(payload, inputs) is None:
        assert any(b"\x93" in one.data or len(one.data) >= 4096 for one in known)
        return
    read, read_slowly = both(payload, inputs)
    assert read == read_slowly


def test_calls_that_are_not_plain_are_left_to_python() -> None:
    body = pickle.dumps(([None], [0]), 5)
    places = 1 | HAS_PLACES
    known = input_of(5)
    inside = _native.Value(0, known.data, "pickle", (7,))
    large = input_of(b"b" * 5000)
    named = input_of(pytest.approx)
    for other in (inside, large, named, _native.Pending(0), _native.Value(0, b"[1]", "json", ())):
        assert _native.plain_call(payload_of(body, 1, places), [other]) is None
    assert _native.plain_call(payload_of(body, 1, places), []) is None
    assert _native.plain_call(payload_of(body, 1, places, step=1), [known]) is None
    assert _native.plain_call(payload_of(b""), [known]) is None
    assert _native.plain_call(payload_of(pickle.dumps(((len,),), 5)), []) is None
    two = payload_of(pickle.dumps(([None, None], [0, 1]), 5), 1, places)
    assert _native.plain_call(two, [known]) is None  # Python asks for an input that is not there
    assert _native.plain_call(payload_of(pickle.dumps(([len], []), 5), 0, places), []) is None
    for flags in range(256):
        if flags not in (1, places):
            assert _native.plain_call(payload_of(body, 1, flags), [known]) is None


@UNHURRIED
@given(st.binary(max_size=40), st.integers(0, 80))
def test_payloads_that_are_damaged_raise_or_are_left_to_python(noise: bytes, cut: int) -> None:
    whole = payload_of(pickle.dumps(([None, 2], [0]), 5), 1, 1 | HAS_PLACES)
    for payload in (noise, whole[:cut], whole[:cut] + noise, payload_of(noise)):
        try:
            read = _native.plain_call(payload, [input_of(5)])
        except Exception as error:  # whatever a pickle raises
            assert not isinstance(error, SystemError)
        else:
            assert read is None or read[0] in payload


def test_places_that_are_not_in_the_call_raise() -> None:
    payload = payload_of(pickle.dumps(([None], [9]), 5), 1, 1 | HAS_PLACES)
    with pytest.raises(IndexError):
        _native.plain_call(payload, [input_of(5)])
