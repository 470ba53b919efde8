"""CPython's own tests of executors, run on `ciel.Executor`.

They come with some interpreters only; without them this file is skipped. Left out are tests that
are about one executor of the standard library, each with its reason; what two of them mean for ours
is in `test_executor.py`.
"""

from __future__ import annotations

import importlib
import unittest
from types import ModuleType
from typing import Any

import ciel
import pytest

LEFT_OUT = {
    "test_interpreter_shutdown": "starts a program that imports the executor from the library",
    "test_submit_after_interpreter_shutdown": "as test_interpreter_shutdown",
    "test_hang_gh83386": "as test_interpreter_shutdown",
    "test_hang_gh94440": "as test_interpreter_shutdown",
}


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
        self.executor = ciel.Executor(max_workers=self.worker_count)

    def tearDown(self) -> None:
        """Ends it."""
        self.executor.shutdown()

    def create_event(self) -> Any:
        """Events of processes cannot be arguments of tasks."""
        raise unittest.SkipTest("events of multiprocessing cannot be sent to tasks")


def adopted(name: str, kind: str) -> type[unittest.TestCase]:
    """The tests of a class of CPython's, on our executor."""
    left_out = {test: unittest.skip(why)(lambda self: None) for test, why in LEFT_OUT.items()}
    theirs = getattr(part(name), kind)
    found = {test: skip for test, skip in left_out.items() if hasattr(theirs, test)}
    return type(kind, (Mixin, theirs, unittest.TestCase), {"__module__": __name__, **found})


ExecutorTest = adopted("executor", "ExecutorTest")
WaitTests = adopted("test_wait", "WaitTests")
AsCompletedTests = adopted("test_as_completed", "AsCompletedTests")
ShutdownTest = adopted("test_shutdown", "ExecutorShutdownTest")
