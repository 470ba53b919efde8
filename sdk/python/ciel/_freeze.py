"""Values to bytes and back.

Arguments and results are frozen: they behave as if copied at the spawn. Bytes and text stay
unchanged, anything else becomes a pickle of protocol 5. Futures inside become references, and the
memory of arrays follows the pickle, so that its file can be mapped and arrays are read without a
copy. This module knows no task and no connection. Read next: `_payload.py` for calls, `_faults.py`
for the path to what cannot be serialized.
"""

from __future__ import annotations

import copyreg
import functools
import io
import json
import mmap
import os
import pickle
import struct
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from ciel import _native
from ciel._atoms import ATOMS
from ciel._errors import NotSerializable, ObjectLost
from ciel._frames import SHARED_BYTES_MIN, head_of, parts_from, parts_in
from ciel._pickle_hooks import Thaw, freezing

if TYPE_CHECKING:
    from ciel._future import Future

_NO_RESERVE: int = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Python names it from 3.13 on."""

ALIGNMENT = 64
MAGIC = b"CielBufs"
_ENTRY = struct.Struct("<QQB")
_COUNT = struct.Struct("<I")
_NONE = pickle.dumps(None, 5)
_BYTES = pickle.PROTO + b"\x05" + pickle.BINBYTES8
"""How the pickle of bytes begins, before their length: to write it by hand copies none of them."""

_LENGTH = struct.Struct("<Q")
_ARRAY = "_frombuffer"
"""The function of numpy that a pickle of protocol 5 names for an array in one piece."""

_ARRAY_BYTES = _ARRAY.encode()
_SEARCHED_BYTES_MAX = 1 << 16
"""A pickle of more bytes may name anything, without a search."""


class Frozen:
    """A value as bytes: a pickle, the futures in it by number, and the memory of its arrays."""

    __slots__ = ("data", "references", "buffers")

    def __init__(
        self, data: bytes, references: list[Future[Any]], buffers: list[pickle.PickleBuffer]
    ) -> None:
        """`buffers` point into the value: use or copy them before the value may change."""
        self.data = data
        self.references = references
        self.buffers = buffers


def freeze(
    value: Any,
    references: list[Future[Any]] | None = None,
    apart: bool = True,
    takes_streams: bool = False,
) -> Frozen:
    """Pickles `value`; raises whatever pickle raises, see `_faults.explained`.

    Futures are appended to `references`, and numbered by it; so are streams if they are allowed.
    Memory of arrays is kept apart from the pickle unless `apart` is false.
    """
    found: list[Future[Any]] = [] if references is None else references
    buffers: list[pickle.PickleBuffer] = []

    def number(future: Future[Any]) -> int:
        found.append(future)
        return len(found) - 1

    beside = buffers.append if apart else None
    before = len(found)
    outer, freezing.number = freezing.number, number
    outer_takes, freezing.takes_streams = freezing.takes_streams, takes_streams
    _native.note_freezing(True)
    try:
        try:
            data = pickle.dumps(value, 5, buffer_callback=beside)
            if b"__main__" not in data:
                return Frozen(data, found, buffers)
        except Exception:  # anonymous functions fail in many ways; other faults recur below
            pass
        del found[before:]
        buffers.clear()
        return Frozen(_by_value(value, beside), found, buffers)
    finally:
        _native.note_freezing(False)
        freezing.number, freezing.takes_streams = outer, outer_takes


class _Noting:
    """Who is told of the modules whose functions and classes a value names, if anybody."""

    note: Callable[[str], None] | None = None


def note_modules(note: Callable[[str], None]) -> None:
    """From now on `note` gets the module of each function and class that a thawed value names."""
    _Noting.note = note


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        """As always, after the note, but for what makes arrays."""
        if _Noting.note is not None:
            _Noting.note(module)
        found = super().find_class(module, name)
        if name == _ARRAY and module.startswith("numpy."):
            return functools.partial(_array, found)
        return found


class _Reading:
    """A pickle as a file: a frame of it is copied at a time, and no large part of it twice."""

    def __init__(self, data: Any) -> None:
        self._rest = memoryview(data)

    def read(self, size: int) -> bytes:
        found, self._rest = bytes(self._rest[:size]), self._rest[size:]
        return found

    def readinto(self, into: memoryview) -> int:
        count = min(len(into), len(self._rest))
        into[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def readline(self) -> bytes:
        """Only older protocols have lines."""
        return self.read(bytes(self._rest).find(b"\n") + 1)


def _array(make: Callable[..., Any], memory: Any, dtype: Any, *others: Any) -> Any:
    """What numpy makes of a pickled array, with numpy's own object for a plain type.

    A pickle has a copy of the type, which is equal. Some of numpy tells them apart all the same:
    `numpy.add.at` takes four times as long with a copy.
    """
    if dtype.kind in "biufc" and dtype.isnative and dtype.metadata is None:
        dtype = sys.modules["numpy"].dtype(dtype.str)
    return make(memory, dtype, *others)


def thaw(
    data: Any,
    references: Thaw | None = None,
    buffers: Sequence[Any] | None = None,
    streams: Thaw | None = None,
) -> Any:
    """The value of a pickle; `references` returns the i-th future, `streams` its stream."""
    names = len(data) > _SEARCHED_BYTES_MAX or _names_something(data)
    if not names:
        return pickle.loads(data, buffers=buffers)
    outer, freezing.thaw = freezing.thaw, references
    outer_streams, freezing.thaw_stream = freezing.thaw_stream, streams
    try:
        if _Noting.note is not None or _may_name_array(data):
            is_short = len(data) <= _SEARCHED_BYTES_MAX
            file = io.BytesIO(data) if is_short else _Reading(data)
            return _Unpickler(file, buffers=buffers).load()
        return pickle.loads(data, buffers=buffers)
    finally:
        freezing.thaw, freezing.thaw_stream = outer, outer_streams


def _may_name_array(data: Any) -> bool:
    """Whether a pickle may have the name of what makes arrays."""
    if len(data) > _SEARCHED_BYTES_MAX:
        return True
    return _ARRAY_BYTES in (data if type(data) is bytes else bytes(data))


def _names_something(data: Any) -> bool:
    """Whether a pickle may name functions or classes: it has the byte of that instruction."""
    return b"\x93" in (data if type(data) is bytes else bytes(data))


class Snapshot:
    """A copy of a value that does not change with the value."""

    __slots__ = ("_atom", "_frozen", "_buffers")

    def __init__(self, value: Any) -> None:
        """Copies `value` now; raises whatever pickle raises."""
        self._atom = value if type(value) in ATOMS else None
        self._frozen = None if type(value) in ATOMS else freeze(value)
        self._buffers = [] if self._frozen is None else [bytes(b) for b in self._frozen.buffers]

    def revived(self, mine: Callable[[Future[Any]], Any]) -> Any:
        """A new copy; `mine` converts its futures to futures of the reader."""
        if self._frozen is None:
            return self._atom
        futures = self._frozen.references
        return thaw(self._frozen.data, lambda number: mine(futures[number]), self._buffers)


FrozenObject = tuple[str, "list[Any]", "list[Future[Any]]"]
"""Form, pieces and references of the object that carries a value."""


def object_of(value: Any) -> FrozenObject:
    """Form, pieces and references of the object that carries `value`.

    The object's bytes are the concatenated pieces; some of them point into the value.
    """
    kind = type(value)
    if value is None:
        return ("pickle", [_NONE], [])
    if kind is bytes:
        return ("bytes", [value], [])
    if kind is str:
        try:
            return ("text", [value.encode()], [])
        except UnicodeEncodeError:  # an unpaired surrogate has no UTF-8, but can be pickled
            return ("pickle", [pickle.dumps(value, 5)], [])
    if kind in ATOMS:
        return ("pickle", [pickle.dumps(value, 5)], [])
    return ("pickle", *pieces_of(value))


def pieces_of(value: Any) -> tuple[list[Any], list[Future[Any]]]:
    """The bytes of a pickled value with the memory of its arrays, in pieces, and the futures in it.

    Raises whatever pickle raises.
    """
    frozen = freeze(value)
    return _joined(frozen) if frozen.buffers else [frozen.data], frozen.references


def value_of(data: Any, form: str, references: Thaw | None) -> Any:
    """The value of an object with the bytes `data`, a buffer that must not change afterwards."""
    if form == "pickle":
        if data[-8:] == MAGIC:
            return _value_with_buffers(memoryview(data), references)
        return thaw(data, references)
    if form == "text":
        return str(data, "utf-8")
    if form == "json":
        return _from_json(json.loads(bytes(data)), references)
    if form == "frames":
        return values_in(data)
    if form == "skywriting":
        raise ObjectLost("this value of the Skywriting language has no form that Python can read")
    return bytes(data)


def frame_of(value: Any) -> list[Any]:
    """The pieces of the frame of a value; some of them point into it.

    Raises NotSerializable if a future is in it, and whatever pickle raises.
    """
    kind = type(value)
    if kind is bytes and len(value) >= SHARED_BYTES_MIN:
        begin = _BYTES + _LENGTH.pack(len(value))
        return [head_of(len(begin) + len(value) + 1), begin, value, pickle.STOP]
    if kind in ATOMS or kind is tuple and ATOMS.issuperset(map(type, value)):
        data = pickle.dumps(value, 5)
        return [head_of(len(data)), data]
    pieces, references = pieces_of(value)
    if references:
        raise NotSerializable(
            "a yielded value holds a future", hint="yield its value, or return a list of futures"
        )
    length = sum(len(piece) if type(piece) is bytes else piece.nbytes for piece in pieces)
    return [head_of(length), *pieces]


def values_from(file: BinaryIO) -> Iterator[Any]:
    """The values whose frames a file has, each as soon as its frame is there; closes the file.

    Raises ObjectLost if the file ends within a frame.
    """
    return map(_value_of_part, parts_from(file))


def values_from_pipe(file: BinaryIO) -> Iterator[Any]:
    """As `values_from`; long values may come through memory that the producer shares."""
    return map(_value_of_part, parts_from(file, _native.SharedReader(file.fileno())))


def _value_of_part(part: Any) -> Any:
    return value_of(part, "pickle", None)


def values_in(data: Any) -> Iterator[Any]:
    """The values whose frames are these bytes; arrays in them are not copied."""
    return (value_of(part, "pickle", None) for part in parts_in(data))


def value_of_file(path: str, form: str, references: Thaw | None) -> Any:
    """As `value_of`, of a file, which is mapped: memory of arrays is not copied."""
    with open(path, "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return value_of(b"", form, references)
        mapped = mapping_of(file.fileno())
    return value_of(mapped, form, references)


def mapping_of(descriptor: int) -> memoryview:
    """The bytes of a file that is not empty, read-only and shared with other processes.

    Some functions write to an array without asking whether they may, such as `numpy.add.at`: they
    get a copy of the page of their own instead of a segmentation fault.
    """
    try:
        prot = mmap.PROT_READ | mmap.PROT_WRITE
        found = mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE | _NO_RESERVE, prot=prot)
    except OSError:  # a system or a limit that reserves memory for all that may be written
        found = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    return memoryview(found).toreadonly()


def _from_json(found: Any, references: Thaw | None) -> Any:
    """JSON in which `{"$ref": i}` stands for a reference, and a key `$name` is spelt `$$name`."""
    if isinstance(found, list):
        return [_from_json(part, references) for part in found]
    if isinstance(found, dict):
        if references is not None and len(found) == 1 and isinstance(found.get("$ref"), int):
            return references(found["$ref"])
        return {_plain_key(key): _from_json(part, references) for key, part in found.items()}
    return found


def _plain_key(key: str) -> str:
    return key[1:] if key.startswith("$$") else key


def _joined(frozen: Frozen) -> list[Any]:
    """Pickle, aligned buffers, the table of buffers, its length, and the magic number."""
    pieces: list[Any] = [frozen.data]
    table = []
    offset = len(frozen.data)
    for buffer in frozen.buffers:
        raw = buffer.raw()
        padding = -offset % ALIGNMENT
        pieces += [bytes(padding), raw]
        table.append(_ENTRY.pack(offset + padding, raw.nbytes, raw.readonly))
        offset += padding + raw.nbytes
    return [*pieces, *table, _COUNT.pack(len(table)), MAGIC]


def _value_with_buffers(view: memoryview, references: Thaw | None) -> Any:
    end = len(view) - len(MAGIC) - _COUNT.size
    (count,) = _COUNT.unpack_from(view, end)
    begin = end - count * _ENTRY.size
    entries = [_ENTRY.unpack_from(view, begin + i * _ENTRY.size) for i in range(count)]
    view = view.toreadonly()
    buffers = [view[offset : offset + length] for offset, length, _ in entries]
    pickled = view[: entries[0][0]] if entries else view
    return thaw(pickled, references, buffers)


def by_value(value: Any) -> bytes:
    """Pickles `value` by value: with the functions and classes that cannot be imported."""
    return _by_value(value, None)


def _by_value(value: Any, callback: Any) -> bytes:
    file = io.BytesIO()
    _pickler()(file, protocol=5, buffer_callback=callback).dump(value)
    return file.getvalue()


_PICKLER: list[Any] = []


def _pickler() -> Any:
    """cloudpickle's pickler, imported at first use, which refuses open files."""
    if not _PICKLER:
        import cloudpickle

        table = dict(cloudpickle.Pickler._dispatch_table)
        table.pop(io.TextIOWrapper, None)
        chain = ChainMap(table, copyreg.dispatch_table)
        _PICKLER.append(type("Pickler", (cloudpickle.Pickler,), {"dispatch_table": chain}))
    return _PICKLER[0]
