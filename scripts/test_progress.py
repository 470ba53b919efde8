"""Tests of what a build reports, from lines as cargo writes them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "wheel"))
from progress import Progress, clock  # noqa: E402


class Reports(unittest.TestCase):
    def test_crates_are_counted_once_whether_compiled_or_found(self) -> None:
        progress = Progress("2/4 compiling", crates_max=3)
        for line in [
            "       Fresh libc v0.2.191",
            "   Compiling ciel-model v0.1.0 (/src/crates/ciel-model)",
            "     Running `rustc --crate-name ciel_model`",
            "   Compiling ciel-model v0.1.0 (/src/crates/ciel-model)",
        ]:
            progress.feed(line)
        self.assertEqual(progress.report(65.9), "2/4 compiling: 1:05; crate 2 of 3, ciel-model")

    def test_other_work_is_named_until_it_ends(self) -> None:
        status = ["installing Python packages"]
        progress = Progress("2/4 downloading", lambda: status[0])
        self.assertEqual(progress.report(3), "2/4 downloading: 0:03; installing Python packages")
        status[0] = ""
        self.assertEqual(progress.report(4), "2/4 downloading: 0:04")

    def test_errors_of_the_compiler_are_kept_and_status_lines_are_not(self) -> None:
        progress = Progress("2/4 compiling")
        for line in ["error: no such field", "   Compiling a v1.0.0", "     Running `rustc`"]:
            progress.feed(line)
        self.assertEqual(list(progress.tail), ["error: no such field"])

    def test_minutes_and_seconds_are_shown(self) -> None:
        self.assertEqual([clock(0), clock(59.9), clock(600)], ["0:00", "0:59", "10:00"])


if __name__ == "__main__":
    unittest.main()
