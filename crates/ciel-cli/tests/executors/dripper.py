#!/usr/bin/env python3
"""An executor for tests that sends its hello byte by byte and never ends it."""
import os, select, socket

SOCKET = socket.socket(fileno=int(os.environ["CIEL_FD"]))
PAUSE_S = 0.01

with open("starts", "a", encoding="utf-8") as file:
    file.write("start\n")
for byte in b'{"hello": {"protocol": 2,' + b" " * 100_000:
    SOCKET.sendall(bytes([byte]))
    if select.select([SOCKET], [], [], PAUSE_S)[0]:
        break
