"""Values to bytes and back, functions by reference and by value, what has no bytes."""

from __future__ import annotations

import pickle
import sys
import threading
import tracemalloc
import types
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import ciel
from ciel import _code, _freeze, testing
from ciel._faults import largest
from properties import UNHURRIED

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)

RATE = 3
CACHE = None


@ciel.task
def uses_rate(n: int) -> int:
    """Reads a global."""
    return n * RATE


@ciel.task
def fills_cache() -> Any:
    """Fills a cache that began as None."""
    global CACHE
    CACHE = CACHE or [1]
    return CACHE


@ciel.task
def given(*values: Any, **named: Any) -> Any:
    """Returns its argument."""
    return values, named


def through_object(value: Any) -> Any:
    """The value after a way through the bytes of an object."""
    form, pieces, references = _freeze.object_of(value)
    assert references == []
    return _freeze.value_of(b"".join(pieces), form, None)


@UNHURRIED
@hypothesis.given(PLAIN)
def test_value_comes_back_equal_from_its_object(value: Any) -> None:
    assert through_object(value) == value


def test_value_comes_back_equal_from_a_file(tmp_path: Path) -> None:
    for value in (b"", b"x" * 100, "täxt", "\ud800", {"a": [1, None]}, None, 2**80):
        form, pieces, _ = _freeze.object_of(value)
        path = tmp_path / "object"
        path.write_bytes(b"".join(pieces))
        assert _freeze.value_of_file(str(path), form, None) == value


def test_bytes_and_text_keep_their_form_for_other_languages() -> None:
    assert _freeze.object_of(b"ab")[:2] == ("bytes", [b"ab"])
    assert _freeze.object_of("ab")[:2] == ("text", [b"ab"])
    assert _freeze.object_of("\ud800")[0] == "pickle"


def test_json_reads_references_by_their_number() -> None:
    data = b'{"a": [{"$ref": 1}, {"$ref": 0}], "b": {"$ref": "x"}}'
    found = _freeze.value_of(data, "json", lambda number: f"ref {number}")
    assert found == {"a": ["ref 1", "ref 0"], "b": {"$ref": "x"}}


def test_arrays_lie_aligned_beside_the_pickle_and_are_mapped_read_only(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    value = {"a": numpy.arange(1000.0), "b": [numpy.ones((3, 4), "i2")], "c": "text"}
    form, pieces, _ = _freeze.object_of(value)
    path = tmp_path / "object"
    path.write_bytes(b"".join(pieces))
    found = _freeze.value_of_file(str(path), form, None)
    assert (found["a"] == value["a"]).all() and (found["b"][0] == 1).all()
    assert not found["a"].flags.writeable
    assert found["a"].ctypes.data % 64 == 0
    with pytest.raises(ValueError, match="read-only"):
        found["a"][0] = 1


@pytest.mark.parametrize("code", ["f8", "f4", "i8", "i4", "u1", "bool", "c16"])
def test_arrays_of_plain_types_have_the_type_that_numpy_has(code: str) -> None:
    """A pickle has a copy of the type, and `numpy.add.at` takes four times as long with a copy: an
    iteration of k-means took 105 ms, and 34 with arrays that had not been passed to a task."""
    numpy = pytest.importorskip("numpy")
    plain = numpy.dtype(code)
    for array in [numpy.ones(3, plain), numpy.ones((40, 50), plain).T]:
        found = through_object([array])[0]
        assert found.dtype is plain and (found == array).all()
        ((inside,), _) = testing.run(lambda array: given.spawn(array).result(), array)
        assert inside.dtype is plain and (inside == array).all()
    (passed,), _ = _freeze.thaw(_freeze.freeze(((array,), {}), apart=False).data)
    assert passed.dtype is plain


def test_long_pickle_is_read_without_a_second_copy_of_it() -> None:
    """The search for arrays in it is a file to pickle, which was one more copy in memory."""
    numpy = pytest.importorskip("numpy")
    size = 1 << 24
    value = [bytes(size), numpy.ones(2), "text" * 10, list(range(50_000))]
    pickled = memoryview(pickle.dumps(value, 5))
    tracemalloc.start()
    try:
        found = _freeze.thaw(pickled)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found[0] == value[0] and found[2:] == value[2:] and (found[1] == 1).all()
    assert size < peak < 1.5 * size


def test_arrays_of_other_types_keep_them() -> None:
    """What is no plain type has properties that numpy's own object has not."""
    numpy = pytest.importorskip("numpy")
    others = [
        numpy.dtype("f8", metadata={"unit": "m"}),
        numpy.dtype("f8").newbyteorder(),
        numpy.dtype("U3"),
        numpy.dtype("M8[s]"),
        numpy.dtype([("a", "i4"), ("b", "f8")]),
    ]
    for dtype in others:
        found = through_object(numpy.zeros(3, dtype))
        assert found.dtype == dtype and found.dtype.metadata == dtype.metadata
        assert (found == numpy.zeros(3, dtype)).all()


def test_subclass_of_bytes_is_no_bytes() -> None:
    class Secret(bytes):
        pass

    assert _freeze.object_of(Secret(b"x"))[0] == "pickle"


def test_what_has_no_bytes_is_named_by_its_path() -> None:
    class Config:
        def __init__(self) -> None:
            self.lock = threading.Lock()

    with testing.serial():
        cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
            ((), {"cfg": Config()}, r"argument 'cfg' → \.lock: _thread\.lock"),
            (([1, {"x": Config()}],), {}, r"'values\[0\]' → \[1\]\['x'\]\.lock: _thread"),
            ((1, threading.Lock()), {}, r"argument 'values\[1\]': _thread\.lock"),
            ((), {"stream": sys.__stdin__}, r"argument 'stream': _io\.TextIOWrapper"),
        ]
        for args, named, path in cases:
            with pytest.raises(ciel.NotSerializable, match=path):
                given.spawn(*args, **named)


@ciel.task
def returns_a_lock() -> Any:
    """A result without bytes."""
    return {"x": [1, 2, 3, threading.Lock()]}


def test_result_without_bytes_fails_the_task_with_its_path() -> None:
    with testing.serial(), pytest.raises(
        ciel.NotSerializable, match=r"result → \['x'\]\[3\]: _thread\.lock"
    ):
        returns_a_lock.spawn().result()


def test_captured_value_without_bytes_is_named() -> None:
    lock = threading.Lock()

    @ciel.task
    def locked() -> bool:
        return lock.locked()

    with testing.serial(), pytest.raises(ciel.NotSerializable, match="captured 'lock': _thread"):
        locked.spawn()


def test_large_capture_is_warned_of_once_with_its_path() -> None:
    table = {"rows": [b"x" * (2 << 20)]}

    @ciel.task
    def looks_up() -> int:
        return len(table["rows"])

    with testing.serial():
        with pytest.warns(ciel.CielWarning, match=r"2 MiB:.*'table'\['rows'\]\[0\]"):
            looks_up.spawn()
        assert looks_up.spawn().result() == 1
    assert largest([1, 2], 100) == ("", len(pickle.dumps([1, 2], 5)))


def test_captured_variable_assigned_after_the_first_spawn_is_an_error_that_names_it() -> None:
    factor = 2

    @ciel.task
    def scaled(n: int) -> int:
        return n * factor

    with testing.serial():
        assert scaled.spawn(2).result() == 4
        factor = 3
        with pytest.raises(ciel.CielError, match="captured variable 'factor' of task scaled"):
            scaled.spawn(2)


def test_global_assigned_after_the_first_spawn_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with testing.serial():
        assert uses_rate.spawn(2).result() == 6
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[__name__], "RATE", 4)
            with pytest.raises(ciel.CielError, match="global 'RATE' of task uses_rate"):
                uses_rate.spawn(2)
        assert uses_rate.spawn(3).result() == 9


def test_cache_that_begins_as_none_may_be_filled() -> None:
    with testing.serial():
        assert [fills_cache.spawn().result() for _ in range(2)] == [[1], [1]]


def test_importable_function_goes_by_reference_and_another_by_value() -> None:
    @ciel.task
    def local() -> None: ...

    assert _code.identify(given).data is None
    assert _code.identify(local).data is not None
    assert pickle.loads(pickle.dumps(given)) is given
    changed = pickle.loads(pickle.dumps(given.options(cores=2)))
    assert (changed.function, changed.options_now.cores) == (given.function, 2)


def test_function_by_value_that_calls_itself_comes_back() -> None:
    space: dict[str, Any] = {"__name__": "__main__", "ciel": ciel}
    source = "@ciel.task\ndef down(n):\n    return n if n == 0 else down.spawn(n - 1).result()\n"
    exec(source, space)
    identity = _code.identify(space["down"])
    assert identity.data is not None
    function = _code.adopt(pickle.loads(identity.data), identity.data)
    with testing.serial():
        assert function(3) == 0
    assert _code.identity_of(function, "down").data == identity.data


def test_code_hash_tells_code_and_defaults_apart_and_repeats() -> None:
    def made(source: str) -> Any:
        space: dict[str, Any] = {}
        exec(source, space)
        return _code.code_hash(space["f"])

    texts = [
        "def f(x): return x + 1",
        "def f(x): return x + 2",
        "def f(x, y=1): return x + 1",
        "def f(x, y=2): return x + 1",
        "def f(x): return x in {1, 'a', None}",
        "def f(x): return [x for _ in range(2)]",
    ]
    assert len({made(text) for text in texts}) == len(texts)
    assert [made(text) for text in texts] == [made(text) for text in texts]


def test_module_that_was_edited_is_noticed() -> None:
    module = types.ModuleType("edited_module")
    exec("def f(): return 1", module.__dict__)
    sys.modules["edited_module"] = module
    try:
        module.f.__module__ = "edited_module"
        header = _code.identity_of(module.f, "f").header
        assert _code.resolve(header) is module.f
        exec("def f(): return 2", module.__dict__)
        with pytest.raises(ciel.NonDeterministic, match="edited during the run"):
            _code.resolve(header)
        del module.f
        with pytest.raises(ciel.Refused, match="has no 'f'"):
            _code.resolve(header)
    finally:
        del sys.modules["edited_module"]


def test_job_file_is_imported_once_under_its_stem(tmp_path: Path) -> None:
    path = tmp_path / "some_job_file.py"
    path.write_text("import ciel\n@ciel.task\ndef f(): return __name__\n")
    try:
        module = _code.load_file(str(path))
        assert module.f() == "some_job_file"
        assert _code.load_file(str(path)) is module
        assert _code.identify(module.f).data is None
        assert _code.find(str(path), "f") is module.f
    finally:
        del sys.modules["some_job_file"]
    with pytest.raises(ciel.Refused, match="no Python file"):
        _code.load_file(str(tmp_path / "absent_job_file.py"))
    (tmp_path / "pickle.py").write_text("")
    with pytest.raises(ciel.Refused, match="another module is named 'pickle'"):
        _code.load_file(str(tmp_path / "pickle.py"))
