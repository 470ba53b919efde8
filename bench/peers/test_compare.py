"""Tests of the comparison: its answers, what it does with wrong ones, and its table."""

import math
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import compare
import numpy as np
import work
from compare import Failed, Row, in_turn, run, shown, table
from systems import WORKLOADS, System, systems
from with_futures import in_waves

WIDE = next(workload for workload in WORKLOADS if workload.name == "wide")
CHAIN = next(workload for workload in WORKLOADS if workload.name == "chain")


def saying(text: str, name: str = "system", status: int = 0) -> System:
    """A system that prints a text and exits."""
    program = f"import sys; print({text!r}); print('why', file=sys.stderr); sys.exit({status})"
    return System(name, lambda *_: [sys.executable, "-c", program], {"wide": (4,), "chain": (3,)})


class Answers(unittest.TestCase):
    def test_price_is_that_of_the_formula(self) -> None:
        with mock.patch.multiple(work, STEPS=2_000, BLOCK=100):
            found = float(work.priced(work.begin_block, work.step_block)[0][0])
        spread = work.VOLATILITY * math.sqrt(work.YEARS)
        drift = (work.RATE + work.VOLATILITY**2 / 2) * work.YEARS
        above = (math.log(work.SPOT / work.STRIKE) + drift) / spread
        likely = [math.erfc(-x / math.sqrt(2)) / 2 for x in (above, above - spread)]
        discounted = work.STRIKE * math.exp(-work.RATE * work.YEARS)
        self.assertAlmostEqual(found, work.SPOT * likely[0] - discounted * likely[1], delta=0.01)

    def test_waves_give_the_price_of_the_serial_program(self) -> None:
        with mock.patch.multiple(work, STEPS=400, BLOCK=100):
            serial = work.priced(work.begin_block, work.step_block)
            waves = in_waves(lambda pairs: [work.step_block(*pair) for pair in pairs])
        self.assertEqual(waves[0][0], serial[0][0])

    def test_chain_and_tree_count_as_they_say(self) -> None:
        self.assertEqual(work.chain_answer(10), 89)
        self.assertEqual((work.fib(10), work.fib_tasks(10)), (55, 177))

    def test_clusters_do_not_depend_on_the_parts(self) -> None:
        with mock.patch.multiple(work, POINTS=800, DIMENSIONS=3, CLUSTERS=4, PARTS=2):
            centres = work.first_centres()
            halves = [work.points(0), work.points(1)]
            whole = [work.assign(np.concatenate(halves), centres)]
            parts = [work.assign(part, centres) for part in halves]
            one, other = work.new_centres(whole, centres), work.new_centres(parts, centres)
        self.assertTrue(np.allclose(one, other))


class Runs(unittest.TestCase):
    def test_figure_is_computed_from_what_the_program_prints(self) -> None:
        good = saying('{"answer": 6, "seconds": 0.5, "tasks": 4}')
        self.assertEqual(run(good, WIDE, 2), 8.0)

    def test_wrong_answer_is_no_figure(self) -> None:
        with self.assertRaisesRegex(Failed, "answered 7 instead of 6"):
            run(saying('{"answer": 7, "seconds": 0.5, "tasks": 4}'), WIDE, 2)

    def test_program_that_fails_is_no_figure(self) -> None:
        with self.assertRaisesRegex(Failed, "status 3: why"):
            run(saying('{"answer": 6, "seconds": 0.5, "tasks": 4}', status=3), WIDE, 2)

    def test_program_without_an_answer_is_no_figure(self) -> None:
        with self.assertRaisesRegex(Failed, "status 0"):
            run(saying("nothing"), WIDE, 2)

    def test_failed_system_runs_no_more_and_the_others_do(self) -> None:
        good = saying('{"answer": 3, "seconds": 3e-6, "tasks": 3}', "good")
        bad = saying('{"answer": 4, "seconds": 3e-6, "tasks": 3}', "bad")
        row = compare.measure(CHAIN, [bad, good], 2, 2)
        self.assertEqual(row.figures, {"good": [1.0, 1.0]})
        self.assertEqual(list(row.failures), ["bad"])

    def test_each_round_begins_with_another_system(self) -> None:
        names = [system.name for system in in_turn([saying("", name) for name in "abc"], 3)]
        self.assertEqual("".join(names), "abcbcacab")


class Tables(unittest.TestCase):
    def test_cells_are_medians_with_their_range(self) -> None:
        self.assertEqual(shown([3.0, 1.0, 2.0]), "2 (1–3)")
        self.assertEqual(shown([12_345.6]), "12,346 (12,346–12,346)")

    def test_systems_without_a_figure_are_marked(self) -> None:
        row = Row("wide", "tasks", "tasks/s", True, {"a": [1.5]}, {"b": "why"})
        self.assertEqual(
            list(table([row], ["a", "b", "c"])),
            [
                "| | tasks, tasks/s |",
                "|---|---|",
                "| a | 1.5 (1.5–1.5) |",
                "| b | failed |",
                "| c | – |",
            ],
        )

    def test_every_system_has_numbers_for_all_that_it_does(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for system in systems(Path(folder)):
                wanted = {workload.name for workload in WORKLOADS} - system.left_out
                self.assertLessEqual(wanted, set(system.sizes), system.name)


if __name__ == "__main__":
    unittest.main()
