"""`ciel.sh` and `ciel.spawn_exec`: tasks that are commands, scripts or another language's code.

A command is a template. Its placeholders become quoted variables of the shell's environment, so no
value is read as part of the command; the engine's executor `shell` does that, and this module only
determines which names are inputs and which are outputs. Read next: `_strand.py`; the reference of
executors.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast, overload

from ciel._errors import CielError
from ciel._future import Future
from ciel._options import OptionNames, Options
from ciel._reading import Reading
from ciel._strand import Strand, current
from ciel._task_files import OrderedFile
from ciel._task_streams import Stream

_PLACEHOLDER = re.compile(r"\$\{\{?|\{\{|\{([A-Za-z_][A-Za-z0-9_.]*)/?\}")
_PREFIX = "out."
_ONLY = "out"
_INPUT = "in."
# The code of a command is its text, for which no version can stand; it keeps nothing decoded.
_OPTIONS = frozenset(OptionNames.__annotations__) - {"version", "stream", "locality"}
_SURROUNDINGS = frozenset({"shell", "conda", "container", "tools"})
_SIMPLE = frozenset({bool, int, float, str, type(None)})
_ARGUMENTS = frozenset({"stdin", "stdout", "env", "cwd", "outputs", "options"}) | _SURROUNDINGS


class Shell(Protocol):
    """How a command is spawned: as `ciel.sh`."""

    @overload
    def __call__(
        self,
        command: str,
        /,
        *,
        stdin: Any = ...,
        stdout: Stream | None = ...,
        env: Mapping[str, Any] | None = ...,
        cwd: str | os.PathLike[str] | None = ...,
        outputs: None = ...,
        options: Options | None = ...,
        live: bool = ...,
        shell: str = ...,
        conda: str | os.PathLike[str] = ...,
        container: str | Sequence[str] = ...,
        tools: bool | Sequence[str] = ...,
        **words: Any,
    ) -> Future[bytes]: ...
    @overload
    def __call__(
        self,
        command: str,
        /,
        *,
        stdin: Any = ...,
        stdout: Stream | None = ...,
        env: Mapping[str, Any] | None = ...,
        cwd: str | os.PathLike[str] | None = ...,
        outputs: Sequence[str],
        options: Options | None = ...,
        live: bool = ...,
        shell: str = ...,
        conda: str | os.PathLike[str] = ...,
        container: str | Sequence[str] = ...,
        tools: bool | Sequence[str] = ...,
        **words: Any,
    ) -> dict[str, Future[bytes]]: ...


def shell(strand: Callable[[], Strand]) -> Shell:
    """`ciel.sh` for the strand that is current when it is called."""

    def sh(
        command: str,
        /,
        *,
        stdin: Any = None,
        stdout: Stream | None = None,
        env: Mapping[str, Any] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        outputs: Sequence[str] | None = None,
        options: Options | None = None,
        live: bool = False,
        **words: Any,
    ) -> Any:
        """Spawns a shell command and returns the future of what it writes, as bytes.

        `{name}` in the command stands for the input of that name: for a future, the path of a file
        with its bytes; for `future.stream()`, a path from which the command can read the bytes
        once, while they are written; for a list, those of its elements, each quoted; for anything
        else, its text.
        `{out}` stands for the path of the file that becomes the result, `{out.bam}` for one that
        ends in this name; without it the result is what the command prints. With
        `outputs=["a", "b"]` the command writes to `{out.a}` and `{out.b}`, and the call returns a
        dictionary of futures. A slash behind a name, as in `{out/}`, is a folder, and `{name/}`
        that of a folder which another command wrote. For a file of `ciel.open`, `{name}` is the
        number of a descriptor: what the command writes to `>&{name}` is appended there. `stdin` is
        a future, `future.stream()`, bytes, text, or a list of them, read one behind the other;
        `env` adds variables; `cwd` is the working folder.

        With `stdout=ciel.stream` a command that is given the result as `stdin` starts at once and
        reads what the first one prints while it prints it, as in a pipe; it ends after the first
        one. `ciel.stream(single_consumer=True)` promises that nobody else reads it: the bytes need
        not be stored. All outputs of the command are streams then. `ciel.stream(mode="overlap")`
        names the mode of its readers, `stdin=future.stream(mode=…)` that of this one.

        `shell="strict"` runs the command by `bash -euo pipefail` in place of `sh`. `conda` is the
        path of a Conda environment, which is activated for the command. `container` holds the words
        that start a container, such as `"docker run --rm image"`: the command follows them.
        With `tools=True` the content of the programs that the command names counts for kept
        results, with `tools=["samtools"]` that of these.

        Options are passed by name, too: `timeout=60, retries=2`; they take precedence over
        `options`. A name that the command uses as a placeholder is always an input.

        Raises CielError at once if the command uses an undefined name, or if an argument is neither
        a placeholder of the command nor an option; TypeError or ValueError for an option with a
        wrong value. A command that fails raises CommandError at `result()`, with its exit status,
        its inputs and the ends of what it wrote as attributes.
        """
        given = dict(stdin=stdin, env=env, cwd=cwd, outputs=outputs, options=options, live=live)
        return spawn_command(strand(), command, words, stdout=stdout, **given)

    sh.__qualname__ = "sh"
    return sh


sh = shell(current)


def spawn_command(
    strand: Strand,
    command: str,
    words: dict[str, Any],
    *,
    stdin: Any,
    stdout: Stream | None,
    env: Mapping[str, Any] | None,
    cwd: str | os.PathLike[str] | None,
    outputs: Sequence[str] | None,
    options: Options | None,
    live: bool,
) -> Future[bytes] | dict[str, Future[bytes]]:
    """`sh` on a given strand; see there."""
    named = _placeholders(command)
    used = named | {name.removeprefix(_INPUT) for name in named}
    inputs = {word: value for word, value in words.items() if word in used}
    files = {word: value for word, value in inputs.items() if isinstance(value, OrderedFile)}
    inputs = {word: value for word, value in inputs.items() if word not in files}
    named -= files.keys()
    where = {word: words[word] for word in _SURROUNDINGS & words.keys() - used}
    others = words.keys() - inputs.keys() - files.keys() - where.keys()
    changes = {word: words[word] for word in words if word in others}
    names = _outputs_of(named, inputs, outputs)
    _check_options(changes, used)
    asked = _asked(options, {**changes, "live": True} if live else changes)
    if asked.version is not None:
        raise CielError(
            "version stands for the code of a function; the code of a command is its text",
            hint="give the command a variable that counts, as env={'TOOL_VERSION': '3'}",
        )
    arguments: dict[str, Any] = {
        "command": command,
        "inputs": {name: _word(strand, name, value) for name, value in inputs.items()},
    }
    if files:
        arguments["appends"] = {name: file.name for name, file in files.items()}
    if names:
        arguments["outputs"] = names
    if stdin is not None:
        arguments.update(_standard_input(strand, stdin))
    if stdout is not None:
        if not isinstance(stdout, Stream):
            raise TypeError(f"stdout must be ciel.stream, not {type(stdout).__name__}")
        arguments.update(stdout.arguments)
    if env is not None:
        arguments["environment"] = {name: _variable(strand, name, env[name]) for name in env}
    if cwd is not None:
        arguments["folder"] = os.fspath(cwd)
    arguments.update(_surroundings(where))
    label = asked.name or _label(command)
    made = strand.spawn_executor("shell", arguments, max(len(names), 1), asked, label)
    strand.note(made)
    return made[0] if outputs is None else dict(zip(names, made, strict=True))


def _asked(options: Options | None, changes: Mapping[str, Any]) -> Options:
    """The options with what the call changes; those of many calls alike are made once."""
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"options must be ciel.Options, not {type(options).__name__}")
    if options is None and all(type(value) in _SIMPLE for value in changes.values()):
        return _simple_options(**changes)
    return (options if options is not None else Options()).changed(**changes)


# By type, too: True equals 1, and is another value of an option.
@functools.lru_cache(maxsize=256, typed=True)
def _simple_options(**changes: Any) -> Options:
    return Options().changed(**changes)


def _surroundings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The shell, environment, container and tools of a command, as the executor takes them."""
    asked = {name: value for name, value in given.items() if value is not None}
    if asked.get("shell", "sh") not in ("sh", "strict"):
        raise ValueError(f"shell is 'sh' or 'strict', not {asked['shell']!r}")
    if "conda" in asked:
        asked["conda"] = os.fspath(asked["conda"])
    if not isinstance(asked.get("container", ""), str):
        asked["container"] = [os.fspath(word) for word in asked["container"]]
    if isinstance(asked.get("tools", True), str):
        raise TypeError(f"tools is True or a list of programs, not {asked['tools']!r}")
    if not isinstance(asked.get("tools", True), bool):
        asked["tools"] = list(asked["tools"])
    return asked


def _placeholders(command: str) -> set[str]:
    """The names in braces that the command uses."""
    if not isinstance(command, str):
        raise TypeError(f"a command must be text, not {command!r}")
    return {match[1] for match in _PLACEHOLDER.finditer(command) if match[1]}


def _check_options(given: Iterable[str], used: set[str]) -> None:
    """Raises CielError for the first name that is not an option, with the one probably meant."""
    for word in given:
        if word not in _OPTIONS:
            known = sorted(_OPTIONS | _ARGUMENTS)
            import difflib

            near = difflib.get_close_matches(word, [*sorted(used), *known], 1)
            raise CielError(
                f"the command does not use {{{word}}}, and it has no option {word!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"options: {', '.join(known)}",
            )


def _outputs_of(
    named: set[str], inputs: Mapping[str, Any], outputs: Sequence[str] | None
) -> list[str]:
    """The names of the outputs, checked against the placeholders of the command."""
    wanted = {name.removeprefix(_PREFIX) for name in named if name.startswith(_PREFIX)}
    if isinstance(outputs, str):
        raise TypeError(f"outputs is a list of names, not {outputs!r}")
    if outputs is not None:
        names = list(outputs)
    elif _ONLY in named and _ONLY not in inputs:
        names = [_ONLY]
    elif len(wanted) == 1:
        names = list(wanted)
    else:
        names = []
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ValueError(f"the output {twice!r} is declared twice")
    missing = sorted(wanted - set(names))
    if missing:
        raise CielError(
            f"the command writes to {{out.{missing[0]}}}, which is not among its outputs",
            hint=f"declare the outputs: outputs={sorted(wanted)}",
        )
    known = {*names, *inputs, *(f"in.{name}" for name in inputs)}
    unknown = sorted(name for name in named - known if not name.startswith(_PREFIX))
    if unknown:
        raise CielError(
            f"the command uses {{{unknown[0]}}}, which is not defined",
            hint=f"pass {unknown[0]}=…; for a brace of the shell itself write {{{{ or }}}}",
        )
    return names


def _word(strand: Strand, name: str, value: Any) -> Any:
    """An input as the executor takes it: a reference, or text; or a list of such."""
    if isinstance(value, (list, tuple)):
        return [_element(strand, name, element) for element in value]
    return _element(strand, name, value)


def _element(strand: Strand, name: str, value: Any) -> Any:
    """An input that is no list."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers
    if isinstance(value, (Future, str, bool, int, float)):
        return value
    if isinstance(value, Reading):
        return {"stream": value.unread, **value.wish.arguments}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return strand.put(bytes(value))
    raise TypeError(
        f"{name} must be a future, a stream, text, bytes, a path or a number for a command, or a "
        f"list of these, not {type(value).__name__}"
    )


def _variable(strand: Strand, name: str, value: Any) -> Any:
    """A value of the environment."""
    if isinstance(value, Reading):
        raise CielError(
            f"the variable {name} has a text, and a stream is read from a file",
            hint=f"leave out .stream(), or write {{name}} in the command and pass name=….stream()",
        )
    return _element(strand, name, value)


def _standard_input(strand: Strand, given: Any) -> dict[str, Any]:
    """What stands for the standard input of a command among its arguments."""
    if not isinstance(given, Reading):
        return {"stdin": [_part(strand, one) for one in _listed(given)]}
    wish = given.wish.arguments
    return {"stdin": [given.unread], **({"stdin_options": wish} if wish else {})}


def _part(strand: Strand, value: Any) -> Any:
    """One of the inputs that a command reads one behind the other."""
    if isinstance(value, Reading) and value.wish.arguments:
        return {"stream": value.unread, **value.wish.arguments}
    return as_file(strand, "stdin", value)


def as_file(strand: Strand, name: str, value: Any) -> Future[Any]:
    """An input as a reference."""
    if isinstance(value, Future):
        return value
    if isinstance(value, Reading):
        return cast("Future[Any]", value.unread)
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return strand.put(value if isinstance(value, str) else bytes(value))
    raise TypeError(f"{name} must be futures, bytes or text, not {type(value).__name__}")


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


def _label(command: str) -> str:
    first = command.split(maxsplit=1)[0] if command.split() else ""
    name = first.rsplit("/", 1)[-1]
    return name if re.fullmatch(r"[A-Za-z0-9._+-]+", name) else "shell"


def spawn_exec(
    executor: str,
    arguments: Mapping[str, Any],
    outputs: int = 1,
    *,
    options: Options | None = None,
) -> tuple[Future[Any], ...]:
    """Spawns a task of the named executor and returns the futures of its outputs.

    `arguments` are plain JSON data, which may contain futures anywhere. Raises NotSerializable for
    anything else.
    """
    asked = options if options is not None else Options()
    strand = current()
    label = asked.name or ""
    made = strand.spawn_executor(executor, dict(arguments), outputs, asked, label)
    strand.note(made)
    return made
