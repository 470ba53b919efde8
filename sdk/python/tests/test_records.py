"""Classes of the native module that only carry values."""

import pickle

import pytest
from test_native import FILE, TEXT, TOLD

from ciel._native import Failed, Pending, TaskOptions, Value


def test_messages_are_printed_compared_matched_and_pickled() -> None:
    options = TaskOptions(1500, 1 << 30, {"gpu": 1000}, 0, 5000, True, False, True)
    for value in (FILE, TEXT, Pending(2), Failed(3, TOLD), TOLD, TOLD.frames[0], options):
        again = pickle.loads(pickle.dumps(value, 5))
        assert again == value and again is not value and type(again) is type(value)
    assert TEXT != Value(5, TEXT.data, "text", ())
    assert repr(Pending(2)) == "Pending(handle=2)"
    match TEXT:
        case Value(handle, data, form, ()):
            assert (handle, data.decode(), form) == (4, "té", "text")
    with pytest.raises(AttributeError):
        TEXT.form = "json"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Pending("2")  # type: ignore[arg-type]
