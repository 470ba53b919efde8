"""Recorded inputs of a task: the clock, environment variables, random bytes.

Each question is an input of the task. The first run asks and has the answer recorded; a task that
is run again gets what was recorded, so that it does the same. In the serial program, in tests and
outside of tasks the questions are just asked. A record is JSON: what was asked, at which line, and
the answer. This module knows neither the connection nor how a replay goes. Read next:
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
"""Random bytes given at once; who needs more seeds a generator with a few."""

CLOCK, ENVIRON, RANDOM = "clock", "environ", "random"
_QUESTIONS = {CLOCK: "ciel.now()", ENVIRON: "ciel.environ()", RANDOM: "ciel.entropy()"}
_TIMING = {
    "first": "which of several futures came first",
    "rest": "which of several futures came first",
    "timeout": "which of several futures came first",
    "done": "whether futures are there",
}
"""Kinds of recorded answers that are no questions of this module, in words."""


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
        raise TypeError(f"the name of a variable is text, not {name!r}")
    found = _asked(ENVIRON, f"ciel.environ({name!r})", lambda: os.environ.get(name))
    return default if found is None else str(found)


def entropy(count: int) -> bytes:
    """`count` random bytes, at most 4096, new in every run; a replayed task gets the same bytes.

    They seed a generator of any kind: `random.Random(ciel.entropy(16))`. Numbers that are the same
    in every run are those of `task_rng`. Raises TypeError or ValueError for a bad count, else as
    `now`.
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"a count of bytes is a whole number, not {count!r}")
    if not 0 <= count <= ENTROPY_BYTES_MAX:
        raise ValueError(
            f"entropy gives from 0 to {ENTROPY_BYTES_MAX} bytes, not {count}: seed a generator"
        )
    answer = _asked(RANDOM, f"ciel.entropy({count})", lambda: os.urandom(count).hex())
    return bytes.fromhex(answer)


def _asked(kind: str, question: str, ask: Callable[[], Any]) -> Any:
    """The answer, from the environment or as it was recorded; plain data that JSON has."""
    strand = here.strand
    if strand is None:
        if here.serves:
            raise outside()
        return ask()
    if strand.pure:
        raise Refused(
            f"{strand.label} is declared pure and asks {question}: its result is shared by equal "
            "calls, so it depends on arguments only",
            hint="ask in the task that spawns it and pass the answer as an argument",
        )
    if here.serves and _is_importing(sys._getframe(1)):
        raise Refused(
            f"{question} is asked while a module is imported, which each process does for itself",
            hint="ask in a task",
        )
    place = place_here()

    def take() -> bytes:
        return json.dumps({"asked": question, "at": place, "answer": ask()}).encode()

    record = json.loads(strand.input(kind, take))
    if record["asked"] != question:
        raise changed(strand.label, f"{question}{_at(place)}", _record_in_words(record))
    return record["answer"]


def changed(label: str, asked: str, before: str) -> NonDeterministic:
    """The error of a task that, run again, asks for something else than before."""
    return NonDeterministic(
        f"run again, {label} asked for {asked} where it had asked for {before}",
        hint="a task must ask the same every time: take time, chance and variables from "
        "ciel.now(), ciel.task_rng() or ciel.entropy(), and ciel.environ()",
    )


def question_in_words(kind: str) -> str:
    """What is asked now, with the line that asks."""
    words = _TIMING.get(kind) or _QUESTIONS.get(kind, kind)
    return f"{words}{_at(place_here())}"


def answer_in_words(kind: str, value: bytes) -> str:
    """What a recorded answer was for, with its line if that is known."""
    if kind in _TIMING:
        return _TIMING[kind]
    try:
        return _record_in_words(json.loads(value))
    except (ValueError, TypeError, KeyError):  # a kind that is no question of this module
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
