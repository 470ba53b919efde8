"""`ciel replay TASK`: reruns a failed task in this process, under the debugger.

`python -P -m ciel.replay FILE` runs a task that `_failed_task.keep` has saved. Its own tasks run at
their spawns, as in the serial program. When it fails again, the debugger shows the frame that
failed; without a terminal only the traceback is printed. Read next: `_serial.py`.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ciel._code import find, function_of, load_job
from ciel._errors import CielError, error_of
from ciel._failed_task import FailedTask, describe, load
from ciel._freeze import mapping_of, thaw, value_of, value_of_file
from ciel._future import Future
from ciel._json_call import with_values
from ciel._native import Failed, File, Value
from ciel._payload import BY_VALUE, Unpacked
from ciel._reading import Reading, Source
from ciel._serial import SerialRun

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Kept:
    """The inputs of a kept task, as its payload reads them."""

    def __init__(self, evidence: FailedTask, run: SerialRun) -> None:
        """`run` is the serial run in which the task is rerun."""
        self._inputs = evidence.inputs
        self._run = run

    def value(self, number: int) -> Any:
        """The value of an input; raises CielError if it was not saved."""
        known = self._known(number)
        if type(known) is File:
            return value_of_file(known.path, known.form, self._inside)
        return value_of(known.data, known.form, self._inside)

    def future(self, number: int) -> Future[Any]:
        """An input that the task received as a future; it is resolved."""
        return self._run.root.put(self.value(number))

    def stream(self, number: int) -> Reading[Any]:
        """The stream of an input; raises CielError if it was not whole when the task failed."""
        return Reading(Source.of_value(self.value(number)).itself)

    def raw(self, number: int) -> Any:
        """The bytes of an input, read-only."""
        known = self._known(number)
        if type(known) is Value:
            return known.data
        with open(known.path, "rb", buffering=0) as file:
            return mapping_of(file.fileno())

    def _known(self, number: int) -> Value | File:
        known = self._inputs[number]
        if isinstance(known, Failed):
            raise error_of(known.failure)
        if not isinstance(known, (Value, File)):
            raise CielError(f"input {number} was not ready when the task failed")
        return known

    def _inside(self, number: int) -> Any:
        raise CielError("a future inside a value is not saved: the task cannot be rerun")


def call_of(evidence: FailedTask, run: SerialRun) -> Callable[[], Any]:
    """The failed call, with its arguments read from the file."""
    kept = Kept(evidence, run)
    if evidence.payload[:1] == b"{":
        return _call_by_json(json.loads(evidence.payload), kept)
    payload = Unpacked(evidence.payload)
    if payload.flags & BY_VALUE:
        function = thaw(bytes(kept.raw(0)))
    else:  # its code may have changed: the user may have fixed it
        module, name, _ = pickle.loads(payload.header)
        function = function_of(find(module, name))
    args, kwargs = payload.arguments(kept, len(evidence.inputs))
    return lambda: function(*args, **kwargs)


def _call_by_json(wanted: dict[str, Any], kept: Kept) -> Callable[[], Any]:
    """A root, or a call from another language."""
    if "main" in wanted:
        sys.argv = [wanted["main"], *wanted.get("args", [])]
        main = function_of(getattr(load_job(wanted), "main", None))
        return lambda: main(*wanted.get("args", []))
    module, _, name = wanted["function"].rpartition(":")
    function = function_of(find(module, name))
    args = with_values(wanted.get("args", []), kept.value)
    kwargs = with_values(wanted.get("kwargs", {}), kept.value)
    return lambda: function(*args, **kwargs)


def _of_the_task(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame of the task on; all of it if there is no such frame."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_HERE):
        found = found.tb_next
    return found or trace


def main() -> int:
    """Runs the task of the file; the exit status is 0 if it succeeds, 1 if it fails again."""
    evidence = load(sys.argv[1])
    sys.path[:] = evidence.path
    if evidence.job:
        os.environ["CIEL_JOB"] = evidence.job
    os.chdir(evidence.folder)
    run = SerialRun()
    run.root.position, run.root.label = evidence.position, evidence.label
    run.root.cores = evidence.cores
    print(f"again: {describe(evidence)}", file=sys.stderr)
    try:
        value = run.run(call_of(evidence, run))
    except BaseException as error:  # any exception of the task is the result
        error.__traceback__ = _of_the_task(error.__traceback__)
        traceback.print_exception(error)
        if sys.stdin.isatty():
            import pdb

            pdb.post_mortem(error.__traceback__)
        return 1
    print(f"{evidence.label} ended well this time and gave {value!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, pickle.UnpicklingError) as error:
        sys.exit(f"cannot read what was kept of the task: {error}")
