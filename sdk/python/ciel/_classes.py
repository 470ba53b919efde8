"""Classes as parts: their bases, methods and other attributes, fields and members.

What Python or a decorator generates from fields and members is left out; these count themselves.
It knows no files. Read next: `_values.py`.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import types
from collections.abc import Callable, Iterator
from typing import Any

from ciel._values import Values

_TEXT = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __firstlineno__ __static_attributes__ "
    "__annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dataclass_fields__ "
    "__dataclass_params__ __orig_bases__ __parameters__ __type_params__ __abstractmethods__ "
    "_abc_impl _member_map_ _member_names_ _value2member_map_ _member_type_ _unhashable_values_ "
    "_hashable_values_ _sort_order_ __protocol_attrs__ __non_callable_proto_members__ "
    "__classdictcell__ __classcell__".split()
)


_DUMP: Callable[[type], Any] = vars(abc)["_get_dump"]
"""What an abstract class knows of others: weak references to those that are registered, first."""


def parts_of_class(found: type, values: Values) -> Iterator[bytes]:
    """Bytes that are equal in every process for a class that does the same."""
    yield found.__name__.encode()
    for base in (*found.__bases__, type(found)):
        yield values.digest(base)
    if isinstance(found, abc.ABCMeta):
        yield b" ".join(_registered(found))
    for name, text in _annotations(found):
        yield f"{name}: {text}".encode()
    yield from _fields(found, values)
    is_enum = issubclass(found, enum.Enum)
    for name, value in found.__dict__.items():
        if name in _TEXT or _is_generated(value, found):
            continue
        if isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType)):
            continue
        if is_enum and _is_member(value, found):
            continue
        yield name.encode()
        yield values.digest(value)


def _registered(found: type) -> list[bytes]:
    """Names of the classes that are registered as if they were derived of an abstract one."""
    classes = (one() for one in _DUMP(found)[0])
    return sorted(f"{one.__module__}.{one.__qualname__}".encode() for one in classes if one)


def _annotations(found: type) -> Iterator[tuple[str, str]]:
    try:
        annotations = dict(found.__dict__.get("__annotations__") or found.__annotations__)
    except Exception:  # names that are defined later, or never
        return
    for name, type_ in annotations.items():
        is_class = isinstance(type_, type) and not isinstance(type_, types.GenericAlias)
        yield name, f"{type_.__module__}.{type_.__qualname__}" if is_class else str(type_)


def _fields(found: type, values: Values) -> Iterator[bytes]:
    if "__dataclass_fields__" in found.__dict__:
        yield repr(found.__dict__["__dataclass_params__"]).encode()
        for field in dataclasses.fields(found):
            flags = (field.name, field.init, field.repr, field.hash, field.compare, field.kw_only)
            yield repr(flags).encode()
            for default in (field.default, field.default_factory, field.metadata or None):
                if default is not dataclasses.MISSING:
                    yield values.digest(default)
    if issubclass(found, enum.Enum):
        for name, member in found.__members__.items():
            yield name.encode()
            yield values.digest(member.value)


def _is_member(value: Any, found: type) -> bool:
    """Whether it is a member of an enum, or what stands for one."""
    return isinstance(value, found) or type(value).__module__ == "enum"


def _is_generated(value: Any, found: type) -> bool:
    """Whether a method is made from text, by `dataclass` or `namedtuple`."""
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    generated = code is not None and code.co_filename.startswith("<")
    return generated and (dataclasses.is_dataclass(found) or hasattr(found, "_fields"))
