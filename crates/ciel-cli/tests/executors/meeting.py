#!/usr/bin/env python3
"""An executor with four slots. Its tasks end when four of them run in one process, and give the id
of that process. With `fatal` in the payload the first process that runs four of them dies."""
import base64
import json
import os
import signal
import socket

SLOTS = 4
SOCKET = socket.socket(fileno=int(os.environ["CIEL_FD"]))


def send(message):
    SOCKET.sendall(json.dumps(message).encode() + b"\n")


def is_first(name):
    """True the first time that any process asks for this name."""
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def end(tags):
    data = base64.b64encode(str(os.getpid()).encode()).decode()
    for tag in reversed(tags):
        send({"tag": tag, "exit": {"outputs": [{"value": {"data": data, "form": "json"}}]}})


def main():
    send({"hello": {"protocol": 2, "executor": "meeting",
                    "pool": {"reuse": True, "slots": SLOTS}}})
    running = []
    for line in SOCKET.makefile("r", encoding="utf-8"):
        message = json.loads(line)
        if "start" not in message:
            continue
        running.append(message["tag"])
        if len(running) == SLOTS:
            arguments = json.loads(base64.b64decode(message["start"]["payload"]))
            if arguments.get("fatal") and is_first("fatal"):
                os.kill(os.getpid(), signal.SIGKILL)
            end(running)
            running = []


main()
