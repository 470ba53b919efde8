"""CPython's own tests of executors, run on `ciel.Executor`.

They come with some interpreters only; without them this file is skipped. `test_packaging.py` runs
it with each interpreter that has them. No method of the classes that test the protocol is left out;
parts that are about one executor of the library are, each with its reason.
"""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

import ciel
import pytest
from conditions import FileEvent

TAKEN = {"executor", "test_wait", "test_as_completed", "test_shutdown"}

LEFT_OUT = {
    "test_deadlock": "breaks the pipes and the manager thread inside of ProcessPoolExecutor",
    "test_future": "is about the class Future of the library, which ciel.Executor returns as it is",
    "test_init": "is about the options initializer and initargs, which ciel.Executor has not",
    "test_interpreter_pool": "is about InterpreterPoolExecutor alone",
    "test_process_pool": "is about ProcessPoolExecutor alone",
    "test_thread_pool": "is about ThreadPoolExecutor alone",
    "util": "has no tests",
}
"""Parts of CPython's tests since 3.12, with the reason why they are not run."""


def part(name: str) -> ModuleType:
    """A module of CPython's tests; they were one file before 3.12."""
    for module in (f"test.test_concurrent_futures.{name}", "test.test_concurrent_futures"):
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    pytest.skip("this interpreter comes without CPython's tests", allow_module_level=True)


class Mixin:
    """What each of them needs: an executor with five cores."""

    worker_count = 5
    executor_type = ciel.Executor
    executor: ciel.Executor

    def setUp(self) -> None:
        """Starts an engine."""
        self.folder = tempfile.TemporaryDirectory()
        self.events = 0
        self.executor = ciel.Executor(max_workers=self.worker_count)

    def tearDown(self) -> None:
        """Ends it."""
        self.executor.shutdown()
        self.folder.cleanup()

    def create_event(self) -> FileEvent:
        """An event that can be an argument of a task; those of multiprocessing cannot."""
        self.events += 1
        return FileEvent(f"{self.folder.name}/{self.events}")


def adopted(name: str, kind: str) -> type[unittest.TestCase]:
    """The tests of a class of CPython's, on our executor."""
    theirs = getattr(part(name), kind)
    return type(kind, (Mixin, theirs, unittest.TestCase), {"__module__": __name__})


ExecutorTest = adopted("executor", "ExecutorTest")
WaitTests = adopted("test_wait", "WaitTests")
AsCompletedTests = adopted("test_as_completed", "AsCompletedTests")
ShutdownTest = adopted("test_shutdown", "ExecutorShutdownTest")


@pytest.fixture(autouse=True)
def programs_import_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that a test starts import the executor by name: they get ours."""
    shutdown = part("test_shutdown")
    start = shutdown.assert_python_ok

    def started(*words: str) -> Any:
        theirs, ours = "from concurrent.futures import", "from ciel import"
        return start(*[word.replace(theirs, ours) for word in words], __isolated=False)

    monkeypatch.setattr(shutdown, "assert_python_ok", started)


def test_events_of_these_tests_reach_tasks(tmp_path: Path) -> None:
    with ciel.Executor(max_workers=1) as executor:
        event = FileEvent(str(tmp_path / "event"))
        future = executor.submit(event.wait)
        event.set()
        assert future.result() is True


def test_every_part_is_taken_or_left_out_for_a_reason() -> None:
    """A new version of CPython may bring a part that nobody has looked at."""
    package = importlib.import_module("test.test_concurrent_futures")
    if not hasattr(package, "__path__"):
        pytest.skip("they are one file before 3.12")
    parts = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert TAKEN <= parts and parts <= TAKEN | LEFT_OUT.keys()
