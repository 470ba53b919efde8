"""What code objects say: parts that are equal as long as the code does the same, and what it names.

Lines, comments and docstrings are not part of it, nor where constants are stored: a docstring moves
those. Functions are read from their bytes, since a program has many; bodies of modules and classes,
and functions that import or compute names, are disassembled. It knows no module and no value. Read
next: `_reached.py`.
"""

from __future__ import annotations

import dis
import inspect
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

_OPS = {name: op for name, op in dis.opmap.items() if op < 256}
"""Operations that are found in code; those of the compiler alone have higher numbers."""

_CONSTANTS = frozenset(dis.hasconst) & frozenset(_OPS.values())
_ATTRIBUTES = frozenset(_OPS[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in _OPS)
_GLOBAL, _IMPORT, _LONGER = _OPS["LOAD_GLOBAL"], _OPS["IMPORT_NAME"], _OPS["EXTENDED_ARG"]
_STORE = _OPS["STORE_ATTR"]
_NOTED = re.compile(b"[" + re.escape(bytes({*_CONSTANTS, _GLOBAL, _IMPORT})) + b"]", re.DOTALL)
_SHIFTED = sys.version_info >= (3, 12)
"""Whether the name of an attribute is the argument without its lowest bit."""

_IS_FUNCTION = inspect.CO_NEWLOCALS
_HAS_DOCSTRING = 0x4000000
_IN_BODIES = frozenset({"__doc__", "__firstlineno__", "__static_attributes__"})
"""What a body of a class or module stores of its text, rather than of what it does."""

COMPUTING = frozenset({"eval", "exec", "globals", "__import__", "compile", "import_module"})
"""Functions of Python by which code reaches what its names do not say."""

_BEYOND = frozenset(
    {"__globals__", "__subclasses__", "f_builtins", "f_globals", "get_objects", "get_referrers"}
)
"""Attributes that do the same, whatever they are taken of."""

_LOOKING = frozenset(
    "__annotations__ __doc__ co_firstlineno f_lineno findsource getcomments getdoc getframeinfo "
    "getfullargspec getsource getsourcelines get_annotations get_type_hints signature".split()
)
"""Names by which code looks at the text of code: docstrings, annotations, lines."""

Path = tuple[str, ...]


class Import(NamedTuple):
    """An import statement: dots, the module behind them, and the names that it takes."""

    level: int
    module: str
    names: tuple[str, ...]


class Names(NamedTuple):
    """What code names: global variables with the attributes that it takes of them, and imports.

    `computes` is whether it may reach more than that, `looks` whether the text of code counts, too;
    `used` are the names of all globals and attributes, whatever these are taken of.
    """

    paths: tuple[Path, ...]
    imports: tuple[Import, ...]
    computes: bool
    looks: bool
    used: frozenset[str]


class Noted:
    """The instructions of code, and of code inside of it, that load a constant or name a global.

    Both readers below use them, so each code object is searched once.
    """

    def __init__(self) -> None:
        """Nothing is searched yet."""
        self._found: dict[int, list[tuple[int, int, int]]] = {}

    def of(self, code: types.CodeType) -> list[tuple[int, int, int]]:
        """Place, operation and argument of each; the code object must outlive this."""
        found = self._found.get(id(code))
        if found is None:
            found = self._found[id(code)] = _noted(code.co_code)
        return found


def parts_of(code: types.CodeType, noted: Noted | None = None) -> Iterator[bytes]:
    """Bytes that are equal in every process for code that does the same."""
    noted = Noted() if noted is None else noted
    if not code.co_flags & _IS_FUNCTION:  # the body of a class or module
        yield from _parts_of_body(code, noted)
        return
    raw = bytearray(code.co_code)
    found = []
    for place, op, argument in noted.of(code):
        if op in _CONSTANTS:
            found.append(code.co_consts[argument])
            raw[2 * place + 1] = 0
            while place and raw[2 * place - 2] == _LONGER:
                place -= 1
                raw[2 * place + 1] = 0
    yield bytes(raw)
    yield code.co_exceptiontable
    yield repr(
        (
            code.co_names,
            code.co_varnames,
            code.co_freevars,
            code.co_cellvars,
            code.co_argcount,
            code.co_posonlyargcount,
            code.co_kwonlyargcount,
            code.co_flags & ~_HAS_DOCSTRING,
        )
    ).encode()
    for constant in found:
        yield from _parts_of_constant(constant, noted)


def _parts_of_constant(constant: Any, noted: Noted) -> Iterator[bytes]:
    if isinstance(constant, types.CodeType):
        yield constant.co_name.encode()
        yield from parts_of(constant, noted)
    else:
        yield literal(constant)


def literal(value: Any) -> bytes:
    """Text of a constant of code, the same in every process."""
    if isinstance(value, frozenset):
        return b"{" + b",".join(sorted(literal(part) for part in value)) + b"}"
    if isinstance(value, tuple):
        return b"(" + b",".join(literal(part) for part in value) + b")"
    return repr(value).encode()


def _noted(raw: bytes) -> list[tuple[int, int, int]]:
    ops = raw[::2]
    found = []
    for match in _NOTED.finditer(ops):
        place = match.start()
        is_long = place and ops[place - 1] == _LONGER
        argument = _argument(raw, place) if is_long else raw[2 * place + 1]
        found.append((place, ops[place], argument))
    return found


def _argument(raw: bytes, place: int) -> int:
    argument, shift, before = raw[2 * place + 1], 8, place - 1
    while before >= 0 and raw[2 * before] == _LONGER:
        argument |= raw[2 * before + 1] << shift
        before -= 1
        shift += 8
    return argument


def _parts_of_body(code: types.CodeType, noted: Noted) -> Iterator[bytes]:
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "EXTENDED_ARG":
            continue
        if instruction.opname == "STORE_NAME" and instruction.argval in _IN_BODIES:
            before = None
            continue
        if before is not None:
            yield from _parts_of_instruction(before, noted)
        before = instruction
    if before is not None:
        yield from _parts_of_instruction(before, noted)


def _parts_of_instruction(instruction: dis.Instruction, noted: Noted) -> Iterator[bytes]:
    yield instruction.opname.encode()
    if instruction.opcode in _CONSTANTS:
        yield from _parts_of_constant(instruction.argval, noted)
    elif isinstance(instruction.argval, str):
        yield instruction.argval.encode()
    else:
        yield repr(instruction.arg).encode()


def names_of(code: types.CodeType, noted: Noted | None = None) -> Names:
    """What the code names, with the code inside of it."""
    noted = Noted() if noted is None else noted
    paths: dict[Path, None] = {}
    imports: list[Import] = []
    used: set[str] = set()
    computes = looks = False
    for part in codes_of(code):
        if not part.co_flags & _IS_FUNCTION:
            paths.update(dict.fromkeys(_paths_of_body(part)))
        used.update(part.co_names)
        computes = computes or not _BEYOND.isdisjoint(part.co_names)
        looks = looks or not _looking_in(part).isdisjoint(part.co_names)
        imports_any = False
        for place, op, argument in noted.of(part):
            if op == _GLOBAL:
                paths[_path(part, place, argument)] = None
            imports_any = imports_any or op == _IMPORT
        if imports_any:
            imports += _imports(part)
        if "getattr" in part.co_names or "modules" in part.co_names:
            computes = computes or _computes(part)
    ends = {end for path in paths for end in (path[0], path[-1])}
    computes = computes or not COMPUTING.isdisjoint(ends)
    return Names(tuple(paths), tuple(imports), computes, looks, frozenset(used))


def _looking_in(code: types.CodeType) -> frozenset[str]:
    """Bodies of modules and classes store their docstrings and annotations."""
    return _LOOKING if code.co_flags & _IS_FUNCTION else _LOOKING - {"__doc__", "__annotations__"}


def is_computing(function: Any) -> bool:
    """Whether a function of Python computes names, under whichever name the program has it."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__module__", "")
    return owner in ("builtins", "importlib") and (name in COMPUTING or name == "getattr")


def assigned_attributes(code: types.CodeType) -> set[str]:
    """Names of the attributes that the code assigns, of whatever."""
    found = set()
    for part in codes_of(code):
        raw = part.co_code
        for place, op in enumerate(raw[::2]):
            if op == _STORE:
                found.add(part.co_names[_argument(raw, place)])
    return found


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and all code inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def _path(code: types.CodeType, place: int, argument: int) -> Path:
    """The global variable that is loaded there, with attributes that are taken of it at once."""
    raw = code.co_code
    found = [code.co_names[argument >> 1]]
    place += 1
    while 2 * place < len(raw):
        op = raw[2 * place]
        if op in _ATTRIBUTES:
            number = _argument(raw, place) >> (1 if _SHIFTED else 0)
            found.append(code.co_names[number])
        elif op not in (0, _LONGER):  # space for the interpreter is 0
            break
        place += 1
    return tuple(found)


def _paths_of_body(code: types.CodeType) -> Iterator[Path]:
    found: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            if found:
                yield tuple(found)
            found = [instruction.argval]
        elif found and instruction.opcode in _ATTRIBUTES:
            found.append(instruction.argval)
        elif found and instruction.opname != "EXTENDED_ARG":
            yield tuple(found)
            found = []
    if found:
        yield tuple(found)


def _imports(code: types.CodeType) -> Iterator[Import]:
    constants: list[Any] = []
    for instruction in dis.get_instructions(code):
        if instruction.opcode in _CONSTANTS or instruction.opname == "LOAD_SMALL_INT":
            constants.append(instruction.argval)
        elif instruction.opname == "IMPORT_NAME":
            level, names = constants[-2:]
            yield Import(level, instruction.argval, tuple(names or ()))


def _computes(code: types.CodeType) -> bool:
    """Whether it takes attributes whose names are not in the code, or any of all modules."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for place, step in enumerate(steps):
        if step.argval == "modules" and step.opcode in _ATTRIBUTES:
            return True
        if step.argval != "getattr" or step.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
            continue
        behind = place + 2  # the object that the attribute is of
        while behind < len(steps) and steps[behind].opcode in _ATTRIBUTES:
            behind += 1
        name = steps[behind] if behind < len(steps) else step
        if name.opcode not in _CONSTANTS or not isinstance(name.argval, str):
            return True
    return False
