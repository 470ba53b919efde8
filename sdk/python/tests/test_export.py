"""`ciel.export` with a real engine, as its page describes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ciel
import pytest


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ciel.Session]:
    """One session for all tests of this file."""
    with ciel.Session(jobs=2, state=tmp_path_factory.mktemp("state")) as made:
        yield made


def test_result_of_a_command_is_in_the_file_when_the_future_is_resolved(tmp_path: Path) -> None:
    target = tmp_path / "numbers.txt"

    def main() -> tuple[str, str]:
        numbers = ciel.sh("seq 3")
        path = ciel.export(numbers, target)
        return path.result(), target.read_text()

    for serial in (False, True):
        assert ciel.run(main, serial=serial) == (str(target), "1\n2\n3\n")


def test_bytes_text_and_large_results_are_exported(session: ciel.Session, tmp_path: Path) -> None:
    large = session.sh("seq 100000")
    cases: list[tuple[str, Any, bytes]] = [
        ("bytes", b"\x00\xff", b"\x00\xff"),
        ("text", "grüße", "grüße".encode()),
        ("large", large, large.result()),
    ]
    for name, result, expected in cases:
        assert session.export(result, tmp_path / name).result() == str(tmp_path / name)
        assert (tmp_path / name).read_bytes() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bytes", "large", "text"]


def test_file_with_something_else_is_refused_and_as_it_was(
    session: ciel.Session, tmp_path: Path
) -> None:
    target = tmp_path / "a"
    target.write_text("mine")
    with pytest.raises(ciel.TaskError, match="exists and differs from the result"):
        session.export("new", target).result()
    assert target.read_text() == "mine"
    assert session.export("mine", target).result() == str(target)
    session.export("new", target, overwrite=True).result()
    assert target.read_text() == "new"


def test_python_object_is_refused(session: ciel.Session, tmp_path: Path) -> None:
    made = session.submit(lambda: {"a": 1})
    with pytest.raises(ciel.Refused, match="Python object"):
        session.export(made, tmp_path / "a").result()
    assert not (tmp_path / "a").exists()


def test_failed_result_is_the_failure_of_its_export(session: ciel.Session, tmp_path: Path) -> None:
    with pytest.raises(ciel.CommandError):
        session.export(session.sh("exit 3"), tmp_path / "a").result()
    assert not (tmp_path / "a").exists()


def test_wrong_arguments_are_refused_at_once(session: ciel.Session) -> None:
    with pytest.raises(TypeError, match="the result of an export must be"):
        session.export(5, "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not int"):
        session.export("a", 5)  # type: ignore[arg-type]


def test_missing_folder_is_named(session: ciel.Session, tmp_path: Path) -> None:
    with pytest.raises(ciel.TaskError, match="its folder does not exist"):
        session.export("a", tmp_path / "none" / "a").result()


def test_last_export_of_a_path_in_serial_order_stays(tmp_path: Path) -> None:
    target = tmp_path / "a"

    def main() -> None:
        ciel.export(ciel.sh("sleep 0.2; echo first"), target, overwrite=True)
        ciel.export(ciel.sh("echo second"), target, overwrite=True)

    ciel.run(main, jobs=4)
    assert target.read_text() == "second\n"
