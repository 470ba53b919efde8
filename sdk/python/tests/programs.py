"""Random programs: a seed becomes a job, and a plain evaluation says what it must give.

`ciel run programs.py SEED COUNT` runs the job; `expected(seed, count)` gives its value and its
output without ciel. A program is plain data: a list of acts, some of which hold the acts of tasks
they spawn. One interpreter runs it in both worlds, through the few words of a `Language`. All
failures are asked for before a task ends, so the job itself always ends well. Read next:
`test_random_programs.py`, `test_engine_programs.py`.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from typing import Any

import ciel
from ciel import Future

TASKS_MAX = 40
DEPTH_MAX = 4
MODULUS = 1_000_003
FILES = ("first", "second")
FOLDER = "CIEL_TEST_FILES"
"""The variable with the folder of the ordered files; without it, programs append to none."""

Acts = list[tuple[Any, ...]]


class Tea(Exception):
    """An exception of the program's own, with two arguments."""

    def __init__(self, kind: str, heat: int) -> None:
        """`kind` and `heat` have to survive the way through tasks."""
        super().__init__(kind, heat)


class Died(Exception):
    """Stands for the failure of a task whose process has died."""


DEATHS: dict[str, Callable[[], None]] = {
    "exit": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}

RAISED: list[Callable[[int], Exception]] = [
    lambda n: ValueError(f"no value {n}"),
    lambda n: KeyError(n),
    lambda n: Tea("green", n),
]


def generate(seed: int) -> Acts:
    """The program of a seed."""
    return _acts(random.Random(seed), DEPTH_MAX, [TASKS_MAX])


def with_death(acts: Acts, chance: random.Random, how: str) -> Acts:
    """The same program, in which one task ends its process in the way that `how` says."""
    tasks: list[Acts] = [acts]
    for task in tasks:
        tasks.extend(act[1] for act in task if act[0] in ("spawn", "tail"))
    dying = chance.choice(tasks)
    last = len(dying) - (bool(dying) and dying[-1][0] in ("raise", "tail"))
    dying.insert(chance.randint(0, last), ("die", how))
    return acts


def _acts(chance: random.Random, depth: int, budget: list[int]) -> Acts:
    acts: Acts = []
    futures = 0
    for _ in range(chance.randint(1, 6)):
        kind = chance.choice(
            ["print", "log", "spawn", "spawn", "spawn", "use", "put", "gather", "first"]
        )
        if kind == "print":
            acts.append(("print", chance.choice("abcxyz") * chance.randint(1, 4)))
        elif kind == "log":
            acts.append(("log", chance.choice(FILES), chance.choice("ab\n") * chance.randint(1, 4)))
        elif kind == "spawn" and depth and budget[0] > 0:
            budget[0] -= 1
            given = [chance.randrange(futures) for _ in range(chance.randint(0, 2)) if futures]
            how = chance.choice(["value", "value", "inside", "kept", "bound"])
            acts.append(("spawn", _acts(chance, depth - 1, budget), given, how))
            futures += 1
        elif kind == "use" and futures:
            acts.append(("use", chance.randrange(futures), chance.random() < 0.6))
        elif kind == "put" and chance.random() < 0.3:
            acts.append(("list", chance.randint(8, 16)))
            futures += acts[-1][1]
        elif kind == "put":
            acts.append(("put", [chance.randint(0, 9) for _ in range(3)]))
            futures += 1
        elif kind == "gather" and futures:
            acts.append(("gather", chance.random() < 0.7))
        elif kind == "first" and futures:
            acts.append(("map", chance.randint(0, 3)))
    if chance.random() < 0.15:
        acts.append(("raise", chance.randrange(len(RAISED)), chance.randint(0, 99)))
    elif chance.random() < 0.2 and depth and budget[0] > 0:
        budget[0] -= 1
        given = [chance.randrange(futures)] if futures and chance.random() < 0.7 else []
        acts.append(("tail", _acts(chance, depth - 1, budget), given))
    return acts


class Language:
    """The words of ciel that programs use."""

    def spawn(self, acts: Acts, given: list[Any], how: str) -> Any:
        """Spawns a task, with what it is given passed in one of several ways."""
        if how == "inside":
            return inside.spawn(acts, {"given": given, "more": (1,)})
        if how == "kept":
            return kept.spawn(acts, given)
        if how == "bound":
            return Holder(7).work.spawn(acts, given)
        return work.spawn(acts, *given)

    def tail(self, acts: Acts, given: list[Any]) -> Any:
        """Hands over."""
        return work.tail(acts, *given)

    def put(self, value: Any) -> Any:
        """Stores a value."""
        return ciel.put(value)

    def result(self, future: Any) -> Any:
        """Waits."""
        return future.result()

    def gather(self, futures: list[Any]) -> list[Any]:
        """Waits for all."""
        return ciel.gather(futures)

    def map(self, count: int) -> list[int]:
        """Maps a small task."""
        return list(ciel.map(square, range(count)))

    def row(self, count: int) -> list[Any]:
        """Spawns small tasks."""
        return [square.spawn(number) for number in range(count)]

    def say(self, text: str) -> None:
        """Prints."""
        print(text)

    def log(self, name: str, text: str) -> None:
        """Appends to an ordered file, if there is a folder for them."""
        folder = os.environ.get(FOLDER)
        if folder is not None:
            with ciel.open(os.path.join(folder, name), "serial-append") as file:
                file.write(text)

    def die(self, how: str) -> None:
        """Ends the process."""
        sys.stdout.write("part of a line")
        sys.stdout.flush()
        DEATHS[how]()


def interpret(language: Any, acts: Acts, values: list[Any]) -> Any:
    """Runs acts; the value is a number made of everything that was seen."""
    seen = digest(values)
    futures: list[Any] = []
    try:
        for act in acts:
            if act[0] == "tail":
                drain(language, futures)
                return language.tail(act[1], [futures[place] for place in act[2]])
            seen = (seen * 31 + act_once(language, act, futures)) % MODULUS
    except Exception:
        drain(language, futures)
        raise
    drain(language, futures)
    return seen


def act_once(language: Any, act: tuple[Any, ...], futures: list[Any]) -> int:
    """One act but `tail`; gives what was seen as a number."""
    kind = act[0]
    if kind == "print":
        language.say(act[1])
    elif kind == "log":
        language.log(act[1], act[2])
    elif kind == "spawn":
        futures.append(language.spawn(act[1], [futures[place] for place in act[2]], act[3]))
    elif kind == "list":
        futures.extend(language.row(act[1]))
    elif kind == "put":
        stored = act[1].copy()
        futures.append(language.put(stored))
        stored.append(99)
    elif kind == "use":
        return outcome(lambda: language.result(futures[act[1]]), act[2])
    elif kind == "gather":
        return outcome(lambda: language.gather(futures), act[1])
    elif kind == "map":
        return digest(language.map(act[1]))
    elif kind == "die":
        language.die(act[1])
    elif kind == "raise":
        raise RAISED[act[1]](act[2])
    return 0


def outcome(ask: Callable[[], Any], caught: bool) -> int:
    """What asking gave as a number; an exception counts by type and arguments if it is caught."""
    try:
        return digest(ask())
    except Exception as error:
        if not caught:
            raise
        return digest([type(error).__name__, list(map(str, error.args))])


def drain(language: Any, futures: list[Any]) -> None:
    """Reads every result, so that no failure is left unread."""
    for future in futures:
        outcome(lambda future=future: language.result(future), True)  # type: ignore[misc]


def digest(value: Any) -> int:
    """A number that depends on the whole value."""
    found = 7
    for letter in repr(value):
        found = (found * 131 + ord(letter)) % MODULUS
    return found


@ciel.task
def work(acts: Acts, *values: Any) -> Any:
    """A task that gets values."""
    return interpret(Language(), acts, list(values))


@ciel.task
def inside(acts: Acts, box: dict[str, Any]) -> Any:
    """A task that gets values inside containers."""
    return interpret(Language(), acts, list(box["given"]))


@ciel.task
def kept(acts: Acts, given: list[Future[Any]]) -> Any:
    """A task that gets futures, and asks for them itself."""
    values = [outcome(future.result, True) for future in given]
    return interpret(Language(), acts, values)


@ciel.task
def square(number: int) -> int:
    """A small task."""
    return number * number


class Holder:
    """An object with a method that is a task."""

    def __init__(self, held: int) -> None:
        """Holds a number, which is copied with the object."""
        self.held = held

    @ciel.task
    def work(self, acts: Acts, given: list[Any]) -> Any:
        """A task that gets its object by value."""
        return interpret(Language(), acts, [*given, self.held])


class Direct:
    """The same words as plain Python: a spawn is a call, a future its outcome."""

    def __init__(self) -> None:
        """Collects what is printed."""
        self.printed: list[str] = []
        self.files = dict.fromkeys(FILES, "")

    def spawn(self, acts: Acts, given: list[Any], how: str) -> Any:
        """Runs at once; a failed value among the arguments is the task's own failure."""
        if how == "kept":
            values: list[Any] = [
                outcome(lambda entry=entry: self.result(entry), True)  # type: ignore[misc]
                for entry in given
            ]
        else:
            failed = [entry for entry in given if entry[0] == "failed"]
            if failed:
                return failed[0]
            values = [value_of(entry) for entry in given]
        if how == "bound":
            values.append(7)
        return self._run(acts, values)

    def _run(self, acts: Acts, values: list[Any]) -> Any:
        try:
            value = interpret(self, acts, values)
        except Exception as error:
            return ("failed", error)
        if isinstance(value, Direct.Handed):
            return value.entry
        return ("there", value)

    class Handed:
        """What a tail of the direct evaluation gives."""

        def __init__(self, entry: Any) -> None:
            """The outcome of the successor."""
            self.entry = entry

    def tail(self, acts: Acts, given: list[Any]) -> Any:
        """Runs the successor at once."""
        return Direct.Handed(self.spawn(acts, given, "value"))

    def put(self, value: Any) -> Any:
        """A copy."""
        return ("there", list(value))

    def result(self, entry: Any) -> Any:
        """The value, or the exception."""
        if entry[0] == "failed":
            raise entry[1]
        return value_of(entry)

    def gather(self, futures: list[Any]) -> list[Any]:
        """The values in order, or the first exception in order."""
        return [self.result(entry) for entry in futures]

    def map(self, count: int) -> list[int]:
        """Plain squares."""
        return [number * number for number in range(count)]

    def row(self, count: int) -> list[Any]:
        """Squares that are there."""
        return [("there", number) for number in self.map(count)]

    def say(self, text: str) -> None:
        """Prints."""
        self.printed.append(text + "\n")

    def log(self, name: str, text: str) -> None:
        """Appends."""
        self.files[name] += text

    def die(self, _how: str) -> None:
        """The failure of a task whose process has died."""
        self.printed.append("part of a line")
        raise Died


def value_of(entry: Any) -> Any:
    """A copy of the current state."""
    value = entry[1]
    return list(value) if isinstance(value, list) else value


def told(run: Callable[[], Any]) -> str:
    """The value of a run as text, or the exception that left it."""
    try:
        return f"value {run()}"
    except Exception as error:
        return f"raised {type(error).__name__} {error.args}"


def program(seed: int, how: str = "") -> Acts:
    """The program of a seed; one of its tasks ends its process if `how` says in which way."""
    acts = generate(seed)
    return with_death(acts, random.Random(seed), how) if how else acts


def expected(seed: int, count: int = 1, how: str = "") -> tuple[str, str]:
    """What the job of `count` programs from `seed` on gives and prints.

    A value in which a process has died names `Died` in place of ciel's exception.
    """
    direct = Direct()
    values = evaluated(direct, seed, count, how)
    return "\n".join(values), "".join(direct.printed)


def expected_files(seed: int, count: int) -> dict[str, str]:
    """What that job appends to its ordered files."""
    direct = Direct()
    evaluated(direct, seed, count)
    return direct.files


def evaluated(direct: Direct, seed: int, count: int, how: str = "") -> list[str]:
    """The values of the programs."""
    return [
        told(lambda acts=acts: direct.result(direct._run(acts, [])))  # type: ignore[misc]
        for acts in [program(number, how) for number in range(seed, seed + count)]
    ]


def main(seed: str = "0", count: str = "1", how: str = "") -> str:
    """The job: the programs of `count` seeds, all at once; `how` their processes are to die."""
    seeds = range(int(seed), int(seed) + int(count))
    futures = [work.spawn(program(seed, how)) for seed in seeds]
    return "\n".join([told(future.result) for future in futures])
