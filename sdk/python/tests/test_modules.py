"""Jobs that are modules of packages: `ciel run -m package.module`, and relative imports."""

from __future__ import annotations

from pathlib import Path

import jobs
import pytest

MODES = [("-j2",), ("--serial",)]

STEPS = """
import ciel
from .numbers import double

@ciel.task
def step(number):
    return double(number)

def main(*args):
    print(__name__, [step.spawn(n).result() for n in range(3)], *args)
"""

FILES = {
    "shop/__init__.py": "",
    "shop/till/__init__.py": "",
    "shop/till/numbers.py": "def double(number):\n    return 2 * number\n",
    "shop/till/steps.py": STEPS,
    "shop/till/__main__.py": STEPS,
    "alone.py": "def main():\n    print(__name__)\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two packages, one in the other, and a module by itself."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        jobs.write(tmp_path, text, name)
    return tmp_path


def run(folder: Path, *words: str) -> jobs.Ended:
    """Runs a job in that folder."""
    return jobs.command(folder, "run", "--quiet", *words)


@pytest.mark.parametrize("options", MODES)
def test_module_of_a_package_imports_from_its_package(
    folder: Path, options: tuple[str, ...]
) -> None:
    """There was no `-m`, and a file that imports from its own package could not be run at all."""
    ended = run(folder, *options, "-m", "shop.till.steps", "a", "-j")
    assert ended.status == 0, ended.talk
    assert ended.lines == ["shop.till.steps [0, 2, 4] a -j"]


@pytest.mark.parametrize("options", MODES)
def test_package_is_run_by_its_main(folder: Path, options: tuple[str, ...]) -> None:
    """As `python -m package` does."""
    for name in ["shop.till", "shop.till.__main__"]:
        ended = run(folder, *options, "-m", name)
        assert ended.status == 0, ended.talk
        assert ended.lines == ["shop.till.__main__ [0, 2, 4]"]


def test_module_without_a_package_is_run(folder: Path) -> None:
    """The same as its file."""
    assert run(folder, "-m", "alone").lines == ["alone"]


def test_file_of_a_package_says_how_it_is_run(folder: Path) -> None:
    """The interpreter's own message does not name the way out."""
    ended = run(folder, "shop/till/steps.py")
    assert ended.status == 1
    assert "imports from its own package, but is run as a file" in ended.talk
    assert "ciel run -m PACKAGE.MODULE" in ended.talk


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shop.bill", "there is no module shop.bill here: neither shop/bill/__main__.py"),
        ("shop/till/steps.py", "`ciel run shop/till/steps.py` runs a file"),
        ("alone.py", "`ciel run alone.py` runs a file"),
    ],
)
def test_name_that_is_no_module_is_refused(folder: Path, name: str, words: str) -> None:
    """The message says what was looked for."""
    ended = run(folder, "-m", name)
    assert ended.status == 2
    assert words in ended.talk


def test_failed_task_of_a_module_is_replayed(folder: Path) -> None:
    """A replay finds the module again, from whatever folder."""
    jobs.write(folder, "def double(number):\n    return 2 // number\n", "shop/till/numbers.py")
    assert run(folder, "-m", "shop.till.steps").status == 1
    ended = jobs.command(folder, "replay", "step")
    assert ended.status == 1
    assert ended.talk.splitlines()[-1].startswith("ZeroDivisionError")
