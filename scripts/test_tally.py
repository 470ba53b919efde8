"""Tests of the counting, so that no failure can hide in it."""

import unittest

from tally import Tally

RUST = """\
running 3 tests
test a ... ok
test b ... FAILED
test c ... ok

successes:

---- a stdout ----
chatter
skipped: a: no disk

successes:
    a

failures:

---- b stdout ----
cause

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s"""


def fed(text: str) -> tuple[Tally, list[str]]:
    tally = Tally()
    shown = [line for line in text.splitlines() if tally.feed(line)]
    return tally, shown


class Counting(unittest.TestCase):
    def test_rust_results_are_added_up(self) -> None:
        tally, _ = fed(RUST + "\n" + RUST)
        self.assertEqual(tally.summary(), "4 passed, 2 failed, 2 skipped")

    def test_failures_and_skips_are_shown_and_chatter_is_not(self) -> None:
        _, shown = fed(RUST)
        self.assertIn("cause", shown)
        self.assertIn("test b ... FAILED", shown)
        self.assertIn("skipped: a: no disk", shown)
        self.assertNotIn("chatter", shown)
        self.assertNotIn("test a ... ok", shown)

    def test_ignored_tests_count_as_skipped(self) -> None:
        tally, _ = fed("test result: ok. 2 passed; 0 failed; 3 ignored; 0 measured")
        self.assertEqual(tally.summary(), "2 passed, 0 failed, 3 skipped")

    def test_python_failures_are_taken_from_the_total(self) -> None:
        tally, _ = fed("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=2)")
        self.assertEqual(tally.summary(), "2 passed, 3 failed, 0 skipped")

    def test_results_of_pytest_are_added_up(self) -> None:
        tally, shown = fed(
            ".s.F    [100%]\nassert 1 == 2\nSKIPPED [2] test_a.py:7: no CPython 3.12 here\n"
            "FAILED test_a.py::test_b - assert 1 == 2\n"
            "=== 1 failed, 3 passed, 2 skipped, 1 error in 1.66s ==="
        )
        self.assertEqual(tally.summary(), "3 passed, 2 failed, 2 skipped")
        self.assertNotIn(".s.F    [100%]", shown)
        self.assertIn("assert 1 == 2", shown)
        tally, _ = fed("74 passed in 75.20s (0:01:15)")
        self.assertEqual(tally.summary(), "74 passed, 0 failed, 0 skipped")

    def test_step_that_fails_counts_as_a_failure(self) -> None:
        tally = Tally()
        tally.count_step(True)
        tally.count_step(False)
        self.assertEqual(tally.summary(), "1 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
