"""Names and hashes of the native module."""

import pytest

from ciel import _native

POSITION = bytes.fromhex("3f9c12ab000102030405060708090a0b")


def test_hash_of_nothing_is_that_of_the_standard() -> None:
    assert _native.hash_of(b"").hex() == "af1349b9f5f9a1a6a0404dea36dcc949"


def test_hash_of_any_contiguous_buffer_is_that_of_its_bytes() -> None:
    data = bytes(range(256)) * 1000
    assert _native.hash_of(bytearray(data)) == _native.hash_of(data)
    assert _native.hash_of(memoryview(data)[256:]) == _native.hash_of(data[256:])
    with pytest.raises(BufferError):
        _native.hash_of(memoryview(data)[::2])


def test_names_are_hashes_of_the_path_to_the_task() -> None:
    root = _native.position_of_root(b"job")
    assert root == _native.hash_of(b"job")
    child = _native.position_of_spawn(root, 3)
    assert child == _native.hash_of(root + b"\x01" + (3).to_bytes(8, "big"))
    assert _native.label_of("fib", POSITION) == "fib@3f9c12ab"
    assert _native.seed_of(POSITION) == int.from_bytes(POSITION[8:], "big")
    with pytest.raises(ValueError):
        _native.seed_of(b"short")
