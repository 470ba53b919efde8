"""A strand of a worker in a serial run: what it spawns runs, to its end, at the spawn.

Everything else is as in any other run: the engine retries tasks, refuses what cannot be granted,
and enforces limits. So `--serial` differs in the order of execution only. Read next: `_worker.py`;
`_serial.py` is the serial program without an engine, for tests.
"""

from __future__ import annotations

from typing import Any

from ciel._call import Call
from ciel._future import Future
from ciel._options import Options
from ciel._pickle_hooks import freezing
from ciel._strand import here
from ciel._task_strand import no_event_loop
from ciel._waiting_strand import WAIT_ALL
from ciel._worker import WorkerStrand


class SerialWorkerStrand(WorkerStrand):
    """The task of a `Start` in a serial run."""

    def spawn(self, call: Call, options: Options) -> tuple[Future[Any], ...]:
        """As in any run; then the task runs, unless it is lazy."""
        futures = super().spawn(call, options)
        self._let_earlier_run(options)
        return futures

    def spawn_executor(
        self, executor: str, arguments: dict[str, Any], outputs: int, options: Options, label: str
    ) -> tuple[Future[Any], ...]:
        """As in any run; then the task runs, unless it is lazy."""
        futures = super().spawn_executor(executor, arguments, outputs, options, label)
        self._let_earlier_run(options)
        return futures

    def _let_earlier_run(self, options: Options) -> None:
        """Resumes when nothing earlier can run; where the strand cannot wait, it continues."""
        may_wait = here.strand is self and freezing.number is None and not self.process.forked
        if may_wait and not options.lazy:
            with no_event_loop():
                self.block([], WAIT_ALL, None)
