"""Connections of another process, as the system lists them, and how a test breaks them.

A test has a copy of a socket of a process that it has started, and dissolves its connection. It
knows nothing of what the process sends.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

_GET_DESCRIPTOR = 438
"""The number of the system call `pidfd_getfd`."""

_LISTENING, _ESTABLISHED = "0A", "01"


@dataclass(frozen=True)
class Socket:
    """A TCP socket of a process."""

    process: int
    descriptor: int
    port: int
    remote_port: int
    state: str

    def cut(self) -> None:
        """Breaks it: what it has not passed on is lost, and the other side is told so. A listening
        one refuses connections from now on."""
        library = ctypes.CDLL(None, use_errno=True)
        process = os.pidfd_open(self.process)
        try:
            copy = library.syscall(_GET_DESCRIPTOR, process, self.descriptor, 0)
        finally:
            os.close(process)
        if copy < 0:
            reason = os.strerror(ctypes.get_errno())
            pytest.skip(f"the system gives no socket of another process: {reason}")
        no_address = struct.pack("=H14x", socket.AF_UNSPEC)
        refused = library.connect(copy, no_address, len(no_address))
        os.close(copy)
        assert refused == 0, os.strerror(ctypes.get_errno())


def listening(process: int) -> list[Socket]:
    """The ports of a process."""
    return [found for found in _sockets(process) if found.state == _LISTENING]


def to_itself(process: int) -> list[Socket]:
    """The client's ends of the connections that a process has with a port of its own."""
    ports = {found.port for found in listening(process)}
    ends = [found for found in _sockets(process) if found.state == _ESTABLISHED]
    return [found for found in ends if found.remote_port in ports]


def _sockets(process: int) -> list[Socket]:
    descriptors: dict[str, int] = {}
    for entry in os.scandir(f"/proc/{process}/fd"):
        try:
            kind, _, number = os.readlink(entry.path).partition(":")
        except OSError:
            continue
        if kind == "socket":
            descriptors[number.strip("[]")] = int(entry.name)
    found = []
    for line in Path(f"/proc/{process}/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        port, remote_port = (int(words[place].partition(":")[2], 16) for place in (1, 2))
        if words[9] in descriptors:
            found.append(Socket(process, descriptors[words[9]], port, remote_port, words[3]))
    return found
