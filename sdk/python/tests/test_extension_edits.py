"""A module in C of the project counts by its file, so what another compilation changes is seen."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from looked_at import Looked, look

EXTENSION = """
#include <Python.h>
static PyObject *value(PyObject *self, PyObject *args) { return PyLong_FromLong(VALUE); }
static PyMethodDef methods[] = {{"value", value, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", "", -1, methods};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
"""

JOB = """
import fast

import ciel


def helper():
    return fast.value()


@ciel.task
def through_c():
    return helper()


@ciel.task
def beside():
    return 1
"""


def looked_at(folder: Path, value: int) -> Looked:
    """The tasks of a project whose extension returns that value."""
    compiler = shutil.which("cc")
    headers = sysconfig.get_path("include")
    if compiler is None or not Path(headers, "Python.h").exists():
        pytest.skip("no C compiler or no headers of Python")
    folder.mkdir(parents=True)
    (folder / "job.py").write_text(JOB)
    (folder / "fast.c").write_text(EXTENSION)
    words = ["-shared", "-fPIC", f"-DVALUE={value}", f"-I{headers}", "fast.c", "-o", "fast.so"]
    subprocess.run([compiler, *words], cwd=folder, check=True)
    return look([folder], "job.py")[0]


def test_other_extension_is_other_code_for_the_tasks_that_reach_it(tmp_path: Path) -> None:
    first, second = (looked_at(tmp_path / str(value) / "p", value) for value in (1, 2))
    assert (first.results["through_c"], second.results["through_c"]) == ("1", "2")
    assert first.before["through_c"] != second.before["through_c"]
    assert first.before["beside"] == second.before["beside"]


def test_the_same_extension_is_the_same_code(tmp_path: Path) -> None:
    first, second = (looked_at(tmp_path / name / "p", 1) for name in "ab")
    assert first.before == second.before
