"""The joblib backend `ciel`: `joblib.Parallel` runs its calls as tasks.

```python
import ciel.joblib
import joblib

with joblib.parallel_config(backend="ciel", n_jobs=2):
    joblib.Parallel()(joblib.delayed(pow)(n, 2) for n in range(10))
```

Importing this module registers the backend. Needs joblib 1.5 or newer. Inside a task, and for one
job, calls run serially where they are. Read next: `_executor.py`.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from typing import Any

from joblib import register_parallel_backend
from joblib._parallel_backends import (
    AutoBatchingMixin,
    FallbackToBackend,
    ParallelBackendBase,
    SequentialBackend,
)

from ciel._executor import Executor
from ciel._session import Session
from ciel._strand import here


class CielBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """A backend of joblib over an executor.

    `session` is an open session to use; without one, each backend starts its own when it is first
    configured, and keeps it between the calls inside one `with Parallel()`.
    """

    supports_retrieve_callback = True

    def __init__(self, *, session: Session | None = None, **known: Any) -> None:
        """`known` is what joblib gives every backend."""
        super().__init__(**known)
        self._given = session
        self._session: Session | None = None
        self._executor: Executor | None = None

    def effective_n_jobs(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, n_jobs: int | None
    ) -> int:
        """As joblib counts: all cores for -1, all but one for -2; 1 inside of tasks.

        Raises ValueError for 0.
        """
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None or here.serves or here.strand is not None:
            return 1
        cores = len(os.sched_getaffinity(0))
        return n_jobs if n_jobs > 0 else max(cores + 1 + n_jobs, 1)

    def configure(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        n_jobs: int = 1,
        parallel: Any = None,
        prefer: str | None = None,
        require: str | None = None,
        **_: Any,
    ) -> int:
        """Starts the engine for `n_jobs` cores; falls back to serial calls for one job."""
        jobs = self.effective_n_jobs(n_jobs)
        if jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        self._begin(jobs)
        return jobs

    def submit(
        self,
        func: Callable[[], Any],
        callback: Callable[[concurrent.futures.Future[Any]], object] | None = None,
    ) -> concurrent.futures.Future[Any]:
        """Submits a batch of calls; `callback` gets its future when that is done."""
        assert self._executor is not None, "joblib configures a backend before it submits"
        future = self._executor.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: concurrent.futures.Future[Any]) -> Any:
        """The results of a batch, or its exception."""
        return out.result()

    def terminate(self) -> None:
        """Ends the engine unless the session was given."""
        if self._executor is not None:
            self._executor.shutdown()
            if self._session is not None:
                self._session.close()
            self._executor = self._session = None
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Cancels what has not ended; the engine ends, too, if it is the backend's."""
        if self._executor is None:
            return
        if self._session is not None:
            self._session.cancel()
        else:
            self._executor._dispatcher.abort()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._session = None
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)

    def get_nested_backend(self) -> tuple[Any, None]:
        """This one, which is serial inside of a task: the task has the core that it asked for."""
        return CielBackend(nesting_level=(self.nesting_level or 0) + 1), None

    def _begin(self, jobs: int) -> None:
        if self._executor is None:
            if self._given is None:
                self._session = Session(jobs=jobs)
            self._executor = Executor(session=self._given or self._session)


register_parallel_backend("ciel", CielBackend)
