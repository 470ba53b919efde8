"""Runs a build tool and reports how far it is: one line that is rewritten on a terminal, otherwise
a line every few seconds.

It knows the status lines of cargo, and nothing of what is built; read `install.py` next.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

# A package that cargo compiles or finds compiled; cargo names each package once.
PACKAGE = re.compile(r"\s*(?:Compiling|Fresh) (\S+) v\S+")
# Pauses between two reports, in seconds.
TERMINAL_PAUSE_S = 0.5
LOG_PAUSE_S = 5.0
# Lines of the tool that are printed when it fails.
TAIL_LINES_MAX = 200
# What makes cargo say what it does with each package, one line a package.
ENVIRONMENT = {
    "CARGO_TERM_VERBOSE": "true",
    "CARGO_TERM_COLOR": "never",
    "CARGO_TERM_PROGRESS_WHEN": "never",
}


class Progress:
    """The state of one phase: its title, the packages compiled so far, and other activity."""

    def __init__(
        self, title: str, aside: Callable[[], str] = lambda: "", crates_max: int = 0
    ) -> None:
        self.title = title
        self.aside = aside
        self.crates_max = crates_max
        self.compiled: set[str] = set()
        self.current = ""
        self.tail: deque[str] = deque(maxlen=TAIL_LINES_MAX)

    def feed(self, line: str) -> None:
        """Takes one line of the tool."""
        if package := PACKAGE.match(line):
            self.current = package.group(1)
            self.compiled.add(package.group(0).split(maxsplit=1)[1])
        elif not line.lstrip().startswith("Running `"):
            self.tail.append(line)

    def report(self, elapsed_s: float) -> str:
        """The line for people: phase, time, how far, and which package began last."""
        parts = [f"{self.title}: {clock(elapsed_s)}"]
        if self.compiled:
            parts.append(f"crate {len(self.compiled)} of {self.crates_max}, {self.current}")
        if aside := self.aside():
            parts.append(aside)
        return "; ".join(parts)


def clock(elapsed_s: float) -> str:
    """Minutes and seconds, as in 1:05."""
    return f"{int(elapsed_s) // 60}:{int(elapsed_s) % 60:02}"


class Reporter:
    """Shows the reports of a phase until the phase ends."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.began = time.monotonic()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._show_until_ended, daemon=True)

    def __enter__(self) -> "Reporter":
        self._show()
        self.thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.ended.set()
        self.thread.join()
        self._show()
        if sys.stderr.isatty():
            print(file=sys.stderr)

    def _show_until_ended(self) -> None:
        pause = TERMINAL_PAUSE_S if sys.stderr.isatty() else LOG_PAUSE_S
        while not self.ended.wait(pause):
            self._show()

    def _show(self) -> None:
        line = self.progress.report(time.monotonic() - self.began)
        if sys.stderr.isatty():
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
            print(f"\r\x1b[K{line[: max(columns - 1, 20)]}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)


def run(command: list[str], progress: Progress, folder: Path) -> int:
    """Runs the command in the folder and shows its progress; gives the exit code.

    If the command fails, prints the last lines that it wrote, status lines left out.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    assert process.stderr is not None
    with Reporter(progress):
        for line in process.stderr:
            progress.feed(line.rstrip("\n"))
        code = process.wait()
    if code != 0:
        print("\n".join(progress.tail), file=sys.stderr)
    return code
