"""Random programs give what a plain evaluation of them gives: value, output, failures."""

from __future__ import annotations

import contextlib
import io
import random

from hypothesis import given, settings
from hypothesis import strategies as st

import programs
from ciel import testing
from scripted_engine import run_in_worker

SEEDS = st.integers(min_value=0, max_value=2**32)


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_serial_program_equals_plain_evaluation(seed: int) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        value = testing.run(programs.main, str(seed))
    assert (value, out.getvalue()) == programs.expected(seed)


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_worker_equals_plain_evaluation(seed: int) -> None:
    value, engine = run_in_worker(lambda: programs.main(str(seed)))
    assert (value, engine.output().decode()) == programs.expected(seed)


@settings(max_examples=150, deadline=None)
@given(SEEDS, SEEDS)
def test_worker_whose_strands_are_dropped_and_run_again_equals_plain_evaluation(
    seed: int, drops: int
) -> None:
    value, engine = run_in_worker(lambda: programs.main(str(seed)), random.Random(drops))
    assert (value, engine.output().decode()) == programs.expected(seed)


def test_programs_cover_every_word_of_the_language() -> None:
    words = {word for seed in range(50) for word in words_of(programs.generate(seed))}
    kinds = "print log spawn use put gather list map raise tail"
    assert words == set(kinds.split())


def words_of(acts: programs.Acts) -> set[str]:
    """The kinds of acts anywhere inside."""
    found = {act[0] for act in acts}
    for act in acts:
        if act[0] in ("spawn", "tail"):
            found |= words_of(act[1])
    return found
