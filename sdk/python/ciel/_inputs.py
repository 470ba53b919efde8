"""Recorded inputs of a task: the clock, environment variables, random bytes.

Each answer is an input of the task. The first run reads the environment and records the answer; a
replayed task receives the recorded answer, so that it does the same. In the serial program, in
tests and outside of tasks nothing is recorded. A record is JSON: the question, the line that asks,
and the answer. This module knows neither the connection nor the course of a replay. Read next:
`_strand.py`, docs/concepts/determinism.md.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, overload

from ciel._errors import NonDeterministic, Refused, place_here
from ciel._strand import here, outside

ENTROPY_BYTES_MAX = 4096
"""Random bytes of one call; a program that needs more seeds a generator."""

CLOCK, ENVIRON, RANDOM = "clock", "environ", "random"
_QUESTIONS = {CLOCK: "ciel.now()", ENVIRON: "ciel.environ()", RANDOM: "ciel.entropy()"}
_TIMING = {
    "first": "which of several futures came first",
    "rest": "which of several futures came first",
    "timeout": "which of several futures came first",
    "done": "whether futures are resolved",
    "cancel": "whether futures are cancelled",
}
"""Names, for messages, of observations of other modules."""


def now() -> float:
    """Seconds since the epoch, as `time.time()`; a replayed task gets the recorded time.

    Raises Refused in a task declared pure, and while a module is imported; NoRun in a thread of a
    task.
    """
    return float(_asked(CLOCK, "ciel.now()", time.time))


@overload
def environ(name: str, default: str) -> str: ...
@overload
def environ(name: str, default: str | None = None) -> str | None: ...
def environ(name: str, default: str | None = None) -> str | None:
    """An environment variable, or `default`; a replayed task gets the recorded value.

    Raises TypeError for a name that is no text, else as `now`.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a variable must be text, not {name!r}")
    found = _asked(ENVIRON, f"ciel.environ({name!r})", lambda: os.environ.get(name))
    return default if found is None else str(found)


def entropy(count: int) -> bytes:
    """`count` random bytes, at most 4096, new in every run; a replayed task gets the same bytes.

    They seed a generator of any kind: `random.Random(ciel.entropy(16))`. Numbers that are the same
    in every run are those of `task_rng`. Raises TypeError or ValueError for a bad count, else as
    `now`.
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"the number of bytes must be an integer, not {count!r}")
    if not 0 <= count <= ENTROPY_BYTES_MAX:
        raise ValueError(
            f"entropy returns from 0 to {ENTROPY_BYTES_MAX} bytes, not {count}: seed a generator"
        )
    answer = _asked(RANDOM, f"ciel.entropy({count})", lambda: os.urandom(count).hex())
    return bytes.fromhex(answer)


def _asked(kind: str, question: str, ask: Callable[[], Any]) -> Any:
    """The answer, from the environment or from the record; plain JSON data."""
    strand = here.strand
    if strand is None:
        if here.serves:
            raise outside()
        return ask()
    if strand.pure:
        raise Refused(
            f"{strand.label} is declared pure and calls {question}: its result is shared by equal "
            "calls, so it may depend on its arguments only",
            hint="make the call in the task that spawns it, and pass the answer as an argument",
        )
    if here.serves and _is_importing(sys._getframe(1)):
        raise Refused(
            f"{question} is called while a module is imported, which every process does separately",
            hint="call it in a task",
        )
    place = place_here()

    def take() -> bytes:
        return json.dumps({"asked": question, "at": place, "answer": ask()}).encode()

    record = json.loads(strand.input(kind, take))
    if record["asked"] != question:
        raise changed(strand.label, f"{question}{_at(place)}", _record_in_words(record))
    return record["answer"]


def changed(label: str, asked: str, before: str) -> NonDeterministic:
    """The error of a replayed task whose request differs from the recorded one."""
    return NonDeterministic(
        f"replayed, {label} requested {asked} where it had requested {before}",
        hint="a task must make the same requests each time: for time, randomness and variables "
        "use ciel.now(), ciel.task_rng() or ciel.entropy(), and ciel.environ()",
    )


def question_in_words(kind: str) -> str:
    """The question, with the line that asks."""
    words = _TIMING.get(kind) or _QUESTIONS.get(kind, kind)
    return f"{words}{_at(place_here())}"


def answer_in_words(kind: str, value: bytes) -> str:
    """The question of a recorded answer, with its line if that is known."""
    if kind in _TIMING:
        return _TIMING[kind]
    try:
        return _record_in_words(json.loads(value))
    except (ValueError, TypeError, KeyError):  # an observation of another module
        return kind


def _record_in_words(record: dict[str, Any]) -> str:
    return f"{record['asked']}{_at(record['at'])}"


def _at(place: str) -> str:
    return f" at {place}" if place else ""


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being executed by an import somewhere above."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "exec_module" and code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
