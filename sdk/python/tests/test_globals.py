"""Module-level data that a program changes: an error at the spawn, and no false alarm for caches.

A task once read what its process had: some the value of the import, others the new one, and the
results differed from run to run with exit status 0. Read next: `ciel/_globals.py`.
"""

from __future__ import annotations

import functools
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobs
from ciel._globals import PARTS_MAX, fingerprint
from ciel._written import may_write, writes

MODES = ("--serial", "-j1", "-j2")


class Settings:
    """An instance of a project class."""

    def __init__(self) -> None:
        """Has nothing computed yet."""
        self.mode = "default"
        self.path: str | None = None

    @functools.cached_property
    def width(self) -> int:
        """Computed when it is first asked for, in any process."""
        return len(self.mode)


CHANGED = {
    "dictionary": ('CONFIG = {"mode": "default"}', 'CONFIG["mode"] = "fast"'),
    "list": ("CONFIG = [1, 2]", "CONFIG.append(3)"),
    "element of a list": ("CONFIG = [1, 2]", "CONFIG[0] = 3"),
    "set": ("CONFIG = {1}", "CONFIG |= {2}"),
    "nested": ('CONFIG = {"a": {"b": [1, 2]}}', 'CONFIG["a"]["b"][1] = 3'),
    "bytearray": ('CONFIG = bytearray(b"abc")', "CONFIG[1] = 0"),
    "array": ("import numpy\nCONFIG = numpy.zeros((100, 100))", "CONFIG[:] = 1"),
    "instance": (
        "class Settings:\n    mode = 1\n    def load(self): self.mode = 2\nCONFIG = Settings()",
        "CONFIG.load()",
    ),
    "by a helper": ("CONFIG = {}\ndef configure(config): config[1] = 2", "configure(CONFIG)"),
    "by a method": (
        "CONFIG = {}\nclass Loader:\n    def load(self): CONFIG[1] = 2",
        "Loader().load()",
    ),
    "by a called function": ("CONFIG = {}\ndef configure(): CONFIG[1] = 2", "configure()"),
}

JOB = """
import ciel
DEFINITION

@ciel.task
def use(i):
    local = {}
    local[i] = CONFIG
    return str(local)

def main():
    global CONFIG
    use.spawn(0).result()
    CHANGE
    print("changed")
    use.spawn(1)
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", CHANGED)
def test_spawn_of_a_task_that_reads_changed_data_is_an_error(
    what: str, mode: str, tmp_path: Path
) -> None:
    definition, change = CHANGED[what]
    job = JOB.replace("DEFINITION", definition).replace("CHANGE", change)
    ended = jobs.run(tmp_path, job, options=(mode,))
    line = 1 + job.splitlines().index("    local[i] = CONFIG")
    assert (ended.status, ended.lines) == (1, ["changed"])
    words = "global 'CONFIG' was changed after its import, and task use reads it in job.py, line"
    assert f"{words} {line}\n" in ended.talk
    assert "hint: other processes do not see the change: pass it as an argument" in ended.talk


def test_change_by_a_task_before_it_spawns_is_an_error(tmp_path: Path) -> None:
    job = """
import ciel
CONFIG = {"mode": "default"}

@ciel.task
def use(i):
    return CONFIG["mode"]

@ciel.task
def outer(i):
    CONFIG["mode"] = i
    return use.spawn(1).result()

def main():
    return use.spawn(1).result(), outer.spawn(1).result()
"""
    ended = jobs.run(tmp_path, job)
    assert ended.status == 1 and "global 'CONFIG' was changed" in ended.talk


def test_change_by_a_function_of_another_module_is_an_error(tmp_path: Path) -> None:
    """Only functions of the spawning module were searched for what they change, so a registry that
    `main` filled through its own module was empty in other processes, without a word.
    """
    jobs.write(
        tmp_path,
        "import ciel\nREGISTRY = {}\n\ndef register(name):\n    REGISTRY[name] = 1\n\n"
        "@ciel.task\ndef use():\n    return list(REGISTRY)\n",
        "registry.py",
    )
    job = (
        "import registry\nfrom registry import register\n\n"
        "def main():\n    CALL('a')\n    return registry.use.spawn().result()\n"
    )
    for call in ("registry.register", "register"):
        for mode in MODES:
            ended = jobs.run(tmp_path, job.replace("CALL", call), options=(mode,))
            assert ended.status == 1, (call, mode)
            assert "global 'REGISTRY' was changed after its import" in ended.talk


CAPTURED = """
import ciel

def made():
    table = {"k": 1}
    seen = []

    @ciel.task
    def use(n):
        seen.append(n)
        return n + table["k"] + 0 * len(seen)

    return use, table, seen

def main(change):
    use, table, seen = made()
    first = use.spawn(1).result()
    if change == "table":
        table["k"] = 2
    seen.append(5)
    print("changed")
    return first, use.spawn(1).result()
"""


@pytest.mark.parametrize("mode", MODES)
def test_change_of_what_a_closure_captures_is_an_error(mode: str, tmp_path: Path) -> None:
    """A closure is copied at its first spawn: later tasks worked on what it captured then, also
    with ``--serial``. What the task itself fills is a cache of each process.
    """
    assert jobs.run(tmp_path, CAPTURED, "", options=(mode,)).value == [2, 2]
    ended = jobs.run(tmp_path, CAPTURED, "table", options=(mode,))
    assert (ended.status, ended.lines) == (1, ["changed"])
    words = "captured variable 'table' was changed after its first use by a spawn, and task use"
    assert words in ended.talk


HARMLESS = """
import functools
import logging
import ciel

CACHE = {}
SEEN = set()
ORDER = []
RESULTS = {}
TABLE = {n: n * n for n in range(1000)}
LOGGER = logging.getLogger("job")

@functools.lru_cache
def square(n):
    return n * n

def remember(n):
    if n not in CACHE:
        CACHE[n] = square(n)
    return CACHE[n]

@ciel.task
def fills(n):
    LOGGER.info("fills %s", n)
    SEEN.add(n)
    ORDER.append(n)
    return remember(n) + len(CACHE) * 0 + (fills.spawn(n - 1).result() if n else 0)

@ciel.task
def reads(n):
    return n + 0 * len(SEEN) + 0 * len(ORDER) + TABLE[n]

@ciel.task
def both(n):
    SEEN.add(n)
    return reads.spawn(n).result()

def main():
    LOGGER.setLevel("ERROR")
    square(3)
    remember(2)
    for n in range(20):
        RESULTS[n] = [f.spawn(n % 4).result() for f in (fills, both, reads)]
    return [fills.spawn(3).result(), sorted(TABLE)[:3], sum(RESULTS[3])]
"""


@pytest.mark.parametrize("mode", MODES)
def test_caches_and_logging_are_no_false_alarm(mode: str, tmp_path: Path) -> None:
    """`lru_cache`, data that only tasks fill, and data that no task reads."""
    assert jobs.run(tmp_path, HARMLESS, options=(mode,)).value == [14, [0, 1, 2], 14 + 12 + 12]


def test_data_of_an_imported_module_counts_from_the_import(tmp_path: Path) -> None:
    """The first spawn comes after the change."""
    jobs.write(tmp_path, "import ciel\nMODES = []\n@ciel.task\ndef use(): return MODES", "parts.py")
    job = "import parts\ndef main():\n    parts.MODES.append(1)\n    parts.use.spawn()\n"
    ended = jobs.run(tmp_path, job)
    assert ended.status == 1 and "global 'MODES' was changed" in ended.talk


@pytest.mark.parametrize(
    "change",
    [
        lambda settings: setattr(settings, "path", "x"),
        lambda settings: setattr(settings, "extra", 1),
        lambda settings: delattr(settings, "mode"),
    ],
)
def test_attributes_of_an_instance_are_parts_of_it(change: Callable[[Settings], None]) -> None:
    settings = Settings()
    before = fingerprint([settings], PARTS_MAX)
    assert settings.width == 7 and fingerprint([settings], PARTS_MAX) == before
    change(settings)
    assert fingerprint([settings], PARTS_MAX) != before


LARGE: list[Any] = [
    list(range(10**6)),
    {n: [n] for n in range(10**6)},
    set(range(10**6)),
    deque(range(10**6)),
    OrderedDict.fromkeys(range(10**5)),
    defaultdict(list, {n: [n] for n in range(10**5)}),
    array("d", [0.0]) * 10**6,
    bytearray(10**7),
    [[[[n] for n in range(30)] for _ in range(30)] for _ in range(30)],
]


@pytest.mark.parametrize("value", LARGE, ids=lambda value: type(value).__name__)
def test_fingerprint_of_a_large_value_is_small(value: Any) -> None:
    found = fingerprint(value, PARTS_MAX)
    assert found == fingerprint(value, PARTS_MAX)
    assert len(found) <= 3 * PARTS_MAX
    assert all(len(part) <= 64 * 8 for part in found if isinstance(part, bytes))


def test_fingerprint_of_a_cycle_ends() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    before = fingerprint(cycle, PARTS_MAX)
    cycle[0] = 2
    assert fingerprint(cycle, PARTS_MAX) != before


TABLE: dict[str, Any] = {}
ROWS: list[int] = []
OTHER = Settings()


def _changes(key: str) -> int:
    TABLE[key] = len(ROWS)
    _appends()
    print(OTHER)
    return str(OTHER).count(key)


def _appends() -> None:
    ROWS.append(1)


def _only_reads(key: str) -> list[int]:
    local = dict(TABLE)
    local[key] = ROWS[0]
    return [*ROWS, local.get(key, OTHER.width)]


def _passes() -> None:
    _consume(OTHER, rows=ROWS)


def _consume(*args: Any, **kwargs: Any) -> None:
    """Could do anything."""


def test_what_code_changes_is_found_in_its_source() -> None:
    assert {"TABLE", "ROWS"} <= writes(_changes) and "OTHER" not in may_write(_changes)
    assert not {"TABLE", "ROWS", "OTHER"} & may_write(_only_reads)
    assert {"ROWS", "OTHER"} <= may_write(_passes) and not {"ROWS", "OTHER"} & writes(_passes)


COUNTERS = """
import ciel

CALLS = 0
IS_READY = False

def prepare():
    global IS_READY
    IS_READY = True

@ciel.task
def counted(n):
    global CALLS
    CALLS += 1
    if not IS_READY:
        prepare()
    return n

@ciel.task
def nested(n):
    return sum(counted.spawn(n).result() for _ in range(3))

def main():
    found = [counted.spawn(n).result() for n in range(3)]
    return found + [nested.spawn(n).result() for n in range(3)]
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_counter_that_a_task_counts_itself_is_no_error(mode: str, tmp_path: Path) -> None:
    """`CALLS += 1` in a task was the error "assigned again", by main with `--serial` and `-j1`,
    where that is the same process, and by another task with any number of cores."""
    ended = jobs.run(tmp_path, COUNTERS, options=(mode,))
    assert ended.status == 0, ended.talk
    assert ended.value == [0, 1, 2, 0, 3, 6]


ASSIGNING = """
import ciel, work

@ciel.task
def use(x):
    return work.LIMIT + x * 0

def main():
    work.LIMIT = 20
    one_by_one = [use.spawn(x).result() for x in range(30)]
    listed = [one.result() for one in [use.spawn(x) for x in range(400)]]
    return len({*one_by_one, *listed, *ciel.map(use, range(400))})
"""


def test_calls_of_a_run_have_the_same_constant_of_a_module_that_main_assigned(
    tmp_path: Path,
) -> None:
    """Calls in `main` had the value that it had assigned, those in workers that of the import: a
    list had both, and how many of each differed from run to run.
    """
    jobs.write(tmp_path, "LIMIT = 17\n", "work.py")
    ended = jobs.run(tmp_path, ASSIGNING)
    assert ended.status == 0, ended.talk
    assert ended.value == 1
