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
static PyMethodDef methods_of_box[] = {
    {"of", value, METH_NOARGS, ""},
    {"of_class", value, METH_NOARGS | METH_CLASS, ""},
    {0},
};
static PyType_Slot slots[] = {{Py_tp_methods, methods_of_box}, {0}};
static PyType_Spec box = {"fast.Box", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
static PyMethodDef methods[] = {{"value", value, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", "", -1, methods};
PyMODINIT_FUNC PyInit_fast(void) {
    PyObject *made = PyModule_Create(&module);
    PyModule_AddObject(made, "Box", PyType_FromSpec(&box));
    return made;
}
"""

JOB = """
import fast

import ciel


def helper():
    return fast.value()


@ciel.task
def through_c():
    return helper()


of = fast.Box.of
given = [fast.Box()]


@ciel.task
def through_method():
    return of(given[0])


@ciel.task
def through_class():
    return fast.Box().of()


@ciel.task
def through_instance():
    return given[0].of()


bound, of_class = given[0].of, fast.Box.of_class


@ciel.task
def through_bound_method():
    return bound()


@ciel.task
def through_class_method():
    return of_class()


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


@pytest.mark.parametrize(
    "task",
    [
        "through_method",
        "through_class",
        "through_instance",
        "through_bound_method",
        "through_class_method",
    ],
)
def test_method_of_a_class_in_an_extension_is_code_of_the_extension(
    task: str, tmp_path: Path
) -> None:
    """`of = fast.Box.of` counted as a method of Python, and a class by the names of its methods:
    after another compilation the results of the former code were taken.
    """
    first, second = (looked_at(tmp_path / str(value) / "p", value) for value in (1, 2))
    assert (first.results[task], second.results[task]) == ("1", "2")
    assert first.before[task] != second.before[task]


def test_the_same_extension_is_the_same_code(tmp_path: Path) -> None:
    first, second = (looked_at(tmp_path / name / "p", 1) for name in "ab")
    assert first.before == second.before
