"""Sessions that all tests of a file share, one for each number of slots.

Used by the tests of streams: what they give must not depend on the slots. It knows nothing of what
is spawned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ciel
import pytest

Fixture = Callable[[pytest.FixtureRequest, pytest.TempPathFactory], Iterator[ciel.Session]]


def with_slots(*counts: int, name: str = "session") -> Fixture:
    """The fixture of that name of a test file: tests run for each of these counts of slots."""

    @pytest.fixture(scope="module", params=counts, name=name)
    def session(
        request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[ciel.Session]:
        with ciel.Session(jobs=request.param, state=tmp_path_factory.mktemp("state")) as made:
            yield made

    return session
