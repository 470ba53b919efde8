#!/usr/bin/env python3
"""An executor for tests whose tasks send whatever a worker could send, in any order and with any
numbers; `seed` in the payload of a task says what."""
import base64, json, os, random, socket, sys

NAME = sys.argv[0].rsplit("ciel-executor-", 1)[-1]
SOCKET = socket.socket(fileno=int(os.environ["CIEL_FD"]))


def encode(data):
    return base64.b64encode(data).decode()


def send(message):
    SOCKET.sendall(json.dumps(message).encode() + b"\n")


def babble(tag, chance):
    """Sends random messages of the task, of no task and of others; then ends the task."""
    for _ in range(chance.randrange(1, 30)):
        request = chance.choice(sorted(BABBLE))
        fields = BABBLE[request](chance)
        sender = tag if chance.random() < 0.9 else chance.choice([0, 1, 99, tag + 1])
        send({"tag": sender, request: fields} if sender else {request: fields})
    send({"tag": tag, "exit": {"outputs": [{"value": {"data": encode(b"42"), "form": "json"}}]}})


def some_number(chance):
    return chance.choice([0, 0, 1, 1, 2, 3, 5, 1 << 12, 1 << 31, (1 << 31) + 1, (1 << 32) - 1])


def some_place(chance):
    place = {"action": str(chance.choice([0, 1, 2, 3, 7, 1 << 61, 1 << 63, (1 << 64) - 1])),
             "handle": some_number(chance)}
    return place | ({"part": some_number(chance)} if chance.random() < 0.3 else {})


def some_handles(chance):
    return [some_number(chance) for _ in range(chance.randrange(3))]


def some_value(chance):
    size = chance.choice([0, 1, 2000])
    return {"data": encode(b"7" * size), "form": chance.choice(["json", "", "own", "skywriting"]),
            "references": some_handles(chance)}


def some_task(chance):
    inputs = [{"handle": handle, "mode": chance.randrange(3)} for handle in some_handles(chance)]
    return {"definition": chance.randrange(4), "payload": encode(b'{"do": "fine"}'),
            "inputs": inputs}


def some_wait(chance):
    how = chance.choice(["parked", "replay", "saved"])
    wait = {"references": some_handles(chance), "wait": chance.randrange(3), how: {}}
    limit = {"timeoutMs": "0"} if chance.random() < 0.5 else {}
    return wait | limit | some_after(chance)


def some_after(chance):
    return {"after": some_place(chance)["action"]}


BABBLE = {
    "construct": lambda chance: {"value": some_value(chance), **some_place(chance)},
    "spawn": lambda chance: {
        "tasks": [some_task(chance) for _ in range(chance.randrange(3))],
        "action": some_place(chance)["action"], "handle": some_number(chance)},
    "publish": lambda chance: {
        "output": chance.randrange(3), "value": some_value(chance),
        "action": some_place(chance)["action"], "handle": some_number(chance)},
    "tailSpawn": lambda chance: {"task": some_task(chance), **some_after(chance)},
    "openReference": lambda chance: {
        "request": chance.randrange(4), "handle": some_number(chance),
        "mustBlock": chance.random() < 0.5},
    "openOutput": lambda chance: {
        "request": chance.randrange(4), "output": chance.randrange(3)},
    "openConstruct": lambda chance: {"request": chance.randrange(4)},
    "commit": lambda chance: {
        "request": chance.randrange(4), "form": chance.choice(["json", "own"]),
        "references": some_handles(chance), **some_place(chance)},
    "blockOn": some_wait,
    "write": lambda chance: {"sink": chance.randrange(2), **some_after(chance)},
    "observe": lambda chance: {
        "request": chance.randrange(4), "kind": chance.choice(["done", "clock", "first"]),
        "references": some_handles(chance), "action": some_place(chance)["action"],
        **({"value": encode(b"[9]")} if chance.random() < 0.5 else {})},
    "log": lambda chance: {"level": "LEVEL_DEBUG", "message": "babble"},
    "error": lambda chance: {},
    "exit": lambda chance: {"outputs": [{"output": chance.randrange(2),
                                         "value": some_value(chance)}], "next": 0},
    "define": lambda chance: {
        "id": some_number(chance), "executor": NAME, "outputs": chance.choice([0, 1, 3, 1 << 31])},
    "giveBack": lambda chance: {"tags": some_handles(chance)},
    "caches": lambda chance: {"held": ["/etc/passwd"], "dropped": [""]},
    "pong": lambda chance: {},
    "hello": lambda chance: {"protocol": 2},
}


send({"hello": {"protocol": 2, "executor": NAME, "features": ["parked", "caches"],
                "pool": {"reuse": True, "parkedStrandsMax": 10}}})
for line in SOCKET.makefile("r", encoding="utf-8"):
    message = json.loads(line)
    if "start" in message:
        arguments = json.loads(base64.b64decode(message["start"]["payload"]))
        babble(message["tag"], random.Random(arguments.get("seed", 0)))
    elif "shutdown" in message:
        break
