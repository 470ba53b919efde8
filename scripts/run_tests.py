"""Runs everything that must hold and ends with one line: N passed, N failed, N skipped.

Shows what is wrong and how far it has come; the whole talk is in `test.log` of the target folder.
Exits with 1 if anything failed. Read `tally.py` for how tests are counted.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

from signals import pass_on_defaults
from tally import Tally

CARGO_TEST = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast", "--", "--show-output"]
CLIPPY = ["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]
FOR_ONE_VERSION = ["--package", "ciel-python", "--no-default-features", "--locked"]
CLIPPY_FOR_ONE_VERSION = ["cargo", "clippy", *FOR_ONE_VERSION, "--", "-D", "warnings"]
PAGES = ["make", "--no-print-directory", "doc"]
FORMAT = ["cargo", "fmt", "--all", "--check", "--", "-l"]
SCRIPTS = [sys.executable, "-m", "unittest", "discover", "-s", "scripts"]
PEERS = [sys.executable, "-m", "unittest", "discover", "-s", "bench/peers"]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-rs", "--no-header", "--tb=short"]
MYPY = [sys.executable, "-m", "mypy", "--no-error-summary"]
PYRIGHT = [sys.executable, "-m", "basedpyright", "--level", "error"]

# The longest part of a line that is shown; a failure may quote a megabyte.
SHOWN_CHARACTERS_MAX = 1000


def run(command: list[str], tally: Tally, log: TextIO) -> bool:
    """Runs a command with its talk counted; tells whether it ended well."""
    log.write(f"$ {' '.join(command)}\n")
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    for line in process.stdout:
        log.write(line)
        if tally.feed(line.rstrip("\n")):
            print(line[:SHOWN_CHARACTERS_MAX].rstrip("\n"), flush=True)
    return process.wait() == 0


def tool(name: str, command: list[str], tally: Tally, log: TextIO) -> None:
    """A step that is one test: it fails or not. A tool that is not installed is a skip."""
    probe = subprocess.run([*command[:2], "--version"], capture_output=True, check=False)
    if probe.returncode == 0:
        whole(name, command, tally, log)
    else:
        print(f"skipped: {name}: cargo has no such component here")
        tally.skips.append(name)


def whole(_name: str, command: list[str], tally: Tally, log: TextIO) -> None:
    """A step that is one test."""
    tally.count_step(run(command, tally, log))


def tests(name: str, command: list[str], tally: Tally, log: TextIO) -> None:
    """A step whose tests are counted one by one; one that fails without a word is a failure."""
    failed_before = tally.failed
    if not run(command, tally, log) and tally.failed == failed_before:
        print(f"failed: {name}: see test.log")
        tally.count_step(False)


def typed_examples() -> dict[str, list[str]]:
    """Examples and benches that import `ciel`, by the folder whose other files they may import."""
    found: dict[str, list[str]] = {}
    for path in sorted([*Path("examples").rglob("*.py"), *Path("bench").rglob("*.py")]):
        if "import ciel" in path.read_text(encoding="utf-8"):
            found.setdefault(str(path.parent), []).append(str(path))
    return found


def types(name: str, command: list[str], tally: Tally, log: TextIO) -> None:
    """The types of package, tests, examples and programs beside pages, as two checkers see them."""
    whole(name, [*MYPY, *command], tally, log)
    for folder, files in typed_examples().items():
        os.environ["MYPYPATH"] = os.pathsep.join(["sdk/python", folder])
        whole(name, [*MYPY, *files], tally, log)
    os.environ["MYPYPATH"] = os.pathsep.join(["sdk/python", "bench/peers"])
    whole(name, [*MYPY, *map(str, sorted(Path("bench/peers").glob("*.py")))], tally, log)
    os.environ.pop("MYPYPATH", None)
    pages = list(map(str, sorted(Path("docs").rglob("*.py"))))
    whole(name, [*MYPY, *pages], tally, log)
    examples = [file for files in typed_examples().values() for file in files]
    environment = ["--pythonpath", sys.executable]
    whole(name, [*PYRIGHT, *environment, "sdk/python/ciel", *examples, *pages], tally, log)


def prepare_wheel(target: Path) -> tuple[list[str], list[str]]:
    """How to build the wheel and lay it out; from then on it is what Python and PATH find first.

    Its profile is that of the tests, so the command is not built a second time, optimised.
    """
    wheels, unpacked = target / "wheels", target / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    shutil.rmtree(unpacked, ignore_errors=True)
    os.environ["CIEL_WHEEL_PROFILE"] = "dev"
    os.environ["CIEL_WHEELS"] = str(wheels)
    os.environ["CIEL_PYTHON"] = sys.executable
    os.environ["CIEL_COMMAND"] = str(unpacked / "bin" / "ciel")
    os.environ["PYTHONPATH"] = str(unpacked)
    os.environ["PATH"] = os.pathsep.join([str(unpacked / "bin"), os.environ["PATH"]])
    build = [*PIP, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(wheels), "."]
    lay_out = [*PIP, "install", "--no-deps", "--no-index", "--find-links", str(wheels)]
    return build, [*lay_out, "--target", str(unpacked), "ciel"]


def main() -> int:
    pass_on_defaults()
    os.chdir(Path(__file__).resolve().parent.parent)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
    target.mkdir(parents=True, exist_ok=True)
    build_wheel, lay_out_wheel = prepare_wheel(target)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(target / "hypothesis")
    tally = Tally()
    with open(target / "test.log", "w", encoding="utf-8") as log:
        for step, name, command in [
            (tool, "form", FORMAT),
            (tool, "lints", CLIPPY),
            (tool, "lints of the module for one version of Python", CLIPPY_FOR_ONE_VERSION),
            (whole, "pages of our crates", PAGES),
            (types, "types of Python", ["sdk/python"]),
            (tests, "scripts", SCRIPTS),
            (tests, "comparison", PEERS),
            (whole, "wheel", build_wheel),
            (whole, "wheel laid out", lay_out_wheel),
            (tests, "tests of Python", PYTEST),
            (tests, "tests", CARGO_TEST),
        ]:
            began = time.monotonic()
            print(f"== {name}", flush=True)
            step(name, command, tally, log)
            print(f"== {name}: {time.monotonic() - began:.0f} s", flush=True)
    print(tally.summary())
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
