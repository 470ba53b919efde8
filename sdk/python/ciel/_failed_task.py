"""Saves failed tasks, so that `ciel replay` can rerun them.

A worker writes the payload and the inputs of the first tasks that fail in it to the run's folder;
files of inputs are linked, or copied if they cannot be. This module knows neither the connection
nor how tasks run. Read next: `replay.py`, which reads it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import sys
from typing import NamedTuple

from ciel._future import Known
from ciel._native import File

FOLDER = "CIEL_FAILED"
"""The environment variable with the folder for failed tasks."""

KEPT_MAX = 20
"""Failed tasks that one worker saves; a program may use failures as ordinary results."""


COPIED_BYTES_MAX = 256 << 20
"""An input that cannot be linked is copied up to this size; with a larger one none is saved."""


class FailedTask(NamedTuple):
    """A failed task. `inputs` are references of the engine, whose files lie beside the saved task;
    `path` is the search path of modules, `folder` the working folder.
    """

    label: str
    payload: bytes
    inputs: list[Known]
    position: bytes
    cores: int
    path: list[str]
    folder: str
    job: str


_kept = 0


def keep(
    label: str, payload: bytes, inputs: list[Known], position: bytes, cores: int
) -> None:
    """Saves a failed task, if there is room; errors of the file system are ignored."""
    global _kept
    folder = os.environ.get(FOLDER, "")
    if not folder or _kept >= KEPT_MAX:
        return
    _kept += 1
    name = os.path.join(folder, label.replace("/", "_"))
    try:
        make_in_run(folder)
        linked = [_linked(known, f"{name}.{place}") for place, known in enumerate(inputs)]
        job, here = os.environ.get("CIEL_JOB", ""), os.getcwd()
        evidence = FailedTask(label, payload, linked, position, cores, sys.path, here, job)
        with open(f"{name}.part", "wb") as file:
            pickle.dump(tuple(evidence), file)
        os.replace(f"{name}.part", name)
    except OSError:  # for example a full disk; the failure itself is reported anyway
        pass


def make_in_run(folder: str) -> None:
    """Makes a folder in that of the run, unless it is there.

    Raises OSError also if that of the run is gone: a state folder of which somebody has removed the
    rest is none, and the next run would refuse it.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)


def load(path: str) -> FailedTask:
    """Reads a task saved by `keep`; raises OSError or pickle's errors for any other file."""
    with open(path, "rb") as file:
        return FailedTask(*pickle.load(file))


def _linked(known: Known, target: str) -> Known:
    """The same reference with a link to its file, or a copy, which outlives the object.

    Raises OSError if the file can be neither linked nor copied.
    """
    if type(known) is not File:
        return known
    try:
        os.link(known.path, target)
    except OSError as error:  # objects on a read-only mount of their own cannot be linked
        if error.errno != errno.EXDEV or known.length > COPIED_BYTES_MAX:
            raise
        from shutil import copyfile

        copyfile(known.path, target)
    return File(known.handle, target, known.length, known.form, known.references)


def describe(evidence: FailedTask) -> str:
    """Function and arguments of a call by JSON, or what is known of any other call, as text."""
    if evidence.payload[:1] != b"{":
        return evidence.label
    call = json.loads(evidence.payload)
    return f"{evidence.label}: {call.get('function') or call.get('main')}"
