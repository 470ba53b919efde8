"""Counts tests from what test programs print, line by line.

It knows the words of the harnesses, Rust's, Python's own and pytest, and what is worth showing; it
starts nothing. Read `run_tests.py` next.
"""

import re
from dataclasses import dataclass, field

RUST_RESULT = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
PYTHON_TOTAL = re.compile(r"Ran (\d+) tests? in ")
PYTHON_FAILED = re.compile(r"FAILED \((.*)\)$")
PYTEST_RESULT = re.compile(r"=* ?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s\b")
PYTEST_SKIPPED = re.compile(r"SKIPPED \[(\d+)\] (.*)")
PYTEST_PROGRESS = re.compile(r"[.sFEx]+ *(\[ *\d+%\])?$")


@dataclass
class Tally:
    """What has been counted so far. A step that is no test counts through `count_step`."""

    passed: int = 0
    failed: int = 0
    skips: list[str] = field(default_factory=list)
    _inside_successes: bool = False

    def feed(self, line: str) -> bool:
        """Counts one line without its end; tells whether a person should see it."""
        if line.startswith("skipped:"):
            self.skips.append(line)
            return True
        if line in ("successes:", "failures:"):
            self._inside_successes = line == "successes:"
        if result := RUST_RESULT.match(line):
            self._inside_successes = False
            passed, failed, ignored = map(int, result.groups())
            self.passed += passed
            self.failed += failed
            self.skips += ["skipped: an ignored test"] * ignored
            return failed > 0
        if total := PYTHON_TOTAL.match(line):
            self.passed += int(total[1])
        if failures := PYTHON_FAILED.match(line):
            count = sum(int(number) for number in re.findall(r"\d+", failures[1]))
            self.passed -= count
            self.failed += count
        if skipped := PYTEST_SKIPPED.match(line):
            self.skips += [f"skipped: {skipped[2]}"] * int(skipped[1])
        if outcome := PYTEST_RESULT.match(line):
            self.count_pytest(outcome[1])
        return not self._inside_successes and not is_noise(line)

    def count_pytest(self, outcome: str) -> None:
        """Counts what pytest ends with: `2 failed, 74 passed, 1 error`. Its skips are listed."""
        counts = {what: int(number) for number, what in re.findall(r"(\d+) ([a-z]+)", outcome)}
        self.passed += counts.get("passed", 0)
        wrong = ("failed", "error", "errors", "xpassed", "xfailed")
        self.failed += sum(counts.get(what, 0) for what in wrong)

    def count_step(self, ended_well: bool) -> None:
        """Counts a step that is one test as a whole."""
        self.passed += ended_well
        self.failed += not ended_well

    def summary(self) -> str:
        """The last line of a run."""
        return f"{self.passed} passed, {self.failed} failed, {len(self.skips)} skipped"


def is_noise(line: str) -> bool:
    """Whether the line says only that all is well."""
    is_well = line.startswith("test ") and line.endswith(" ok")
    is_start = line.startswith("running ") and line.endswith((" test", " tests"))
    is_progress = PYTEST_PROGRESS.match(line) is not None
    return is_well or is_start or is_progress or not line.strip()
