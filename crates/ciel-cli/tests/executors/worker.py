#!/usr/bin/env python3
"""Executors for tests, good and hostile. The name of the file says how the process greets the
engine; `do` in the payload of a task says what the task does. Results are JSON."""
import base64, json, os, signal, socket, sys, time

NAME = sys.argv[0].rsplit("ciel-executor-", 1)[-1]
SOCKET = socket.socket(fileno=int(os.environ["CIEL_FD"]))
LINES = SOCKET.makefile("r", encoding="utf-8")
PARKED = {}
DEFINITIONS = {}
FOLDERS = []


def encode(data):
    return base64.b64encode(data).decode()


def json_data(value, references=()):
    return {"data": encode(json.dumps(value).encode()), "form": "json", "references": references}


def send(message):
    SOCKET.sendall(json.dumps(message).encode() + b"\n")


def definition(executor, label, **fields):
    """The id of a definition, which the engine has received by then."""
    key = json.dumps([executor, label, fields])
    if key not in DEFINITIONS:
        DEFINITIONS[key] = len(DEFINITIONS)
        send({"define": {"id": DEFINITIONS[key], "executor": executor, "label": label,
                         "outputs": 1, **fields}})
    return DEFINITIONS[key]


class Task:
    """A task as its code sees it."""

    def __init__(self, tag, start):
        self.tag, self.start = tag, start
        self.action, self.handle = int(start.get("action", 0)), start.get("handle", 0)
        recording = start.get("replay", {})
        known = start.get("inputs", []) + recording.get("references", [])
        self.known = {reference.get("handle", 0): reference for reference in known}
        self.observations = list(recording.get("observations", []))
        self.arguments = json.loads(base64.b64decode(start["payload"]))

    def say(self, verb, **fields):
        send({"tag": self.tag, verb: fields})

    def exit(self, *values, **fields):
        outputs = [{"output": index, "value": json_data(value)}
                   for index, value in enumerate(values)]
        self.say("exit", outputs=outputs, **fields)

    def act(self, verb, **fields):
        """Does an action that makes one handle."""
        self.say(verb, action=self.action, handle=self.handle, **fields)
        self.action, self.handle = self.action + 1, self.handle + 1
        return self.handle - 1

    def after(self, verb, **fields):
        """Something that is no action, but has its place among them."""
        self.say(verb, after=self.action, **fields)

    def spawn(self, do, inputs=(), executor=NAME, payload=None, **arguments):
        payload = payload or {"do": do, **arguments}
        task = {"definition": definition(executor, do), "inputs": inputs,
                "payload": encode(json.dumps(payload).encode())}
        return self.act("spawn", tasks=[task])

    def value(self, handle):
        """What is behind a handle; none if that is not known."""
        reference = self.known.get(handle, {})
        if "value" in reference:
            return json.loads(base64.b64decode(reference["value"]["data"]))
        if "concrete" in reference:
            with open(reference["concrete"]["path"], encoding="utf-8") as file:
                return json.load(file)
        return None

    def request(self, verb, **fields):
        """Asks the engine and waits for its answer."""
        self.say(verb, **fields)
        return json.loads(LINES.readline())["answer"]

    def once(self, name):
        """True the first time that any process asks for this name."""
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
            return True
        except FileExistsError:
            return False


def fine(task):
    task.exit(task.arguments.get("value", 42))


def echo(task):
    task.exit(task.value(0))


def where(task):
    task.exit(task.known[0]["concrete"]["path"])


def garbage(task):
    SOCKET.sendall(b"this is no message\n")


def misspelt(task):
    task.say("exit", outptus=[])


def foreign(task):
    task.spawn("fine", [{"handle": task.arguments["handle"]}])
    task.exit(1)


def stubborn(task):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


def empty(task):
    task.say("exit")


def goes_on(task):
    """It continues with a start that it never received."""
    task.say("exit", outputs=[{"value": json_data(1)}], next=7)


def die(task):
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(task):
    child = task.spawn("fine", value=7)
    task.after("write", data=encode(b"before\n"))
    if task.once("died"):
        os.kill(os.getpid(), signal.SIGKILL)
    if task.value(child) is None:
        return task.after("blockOn", references=[child], replay={})
    task.exit(task.value(child))


def fickle(task):
    child = task.spawn("fine", value=1 if task.once("fickle") else 2)
    if task.value(child) is None:
        return task.after("blockOn", references=[child], replay={})
    task.exit(task.value(child))


def forgetful(task):
    child = task.spawn("fine")
    task.after("blockOn", references=[child], replay={})


def die_first(task):
    if task.once("died-first"):
        os.kill(os.getpid(), signal.SIGKILL)
    task.exit(5)


def park(task):
    child = task.spawn(task.arguments.get("child", "fine"), value=5)
    if task.value(child) is not None:
        return task.exit(task.value(child) + 1)
    park_on(task, [child], lambda resume: task.exit(decoded(resume["answers"][0]) + 1))


def save(task):
    """It waits for the second of two, which needs the first; both come back as they are."""
    if "saved" in task.start:
        saved = task.start["saved"]
        state = base64.b64decode(saved["data"]).decode()
        return task.exit([state, *map(decoded, saved["references"])])
    first = task.spawn("fine", value=2)
    second = task.spawn("echo", [{"handle": first}])
    task.after("blockOn", references=[second],
             saved={"data": encode(b"kept"), "runtime": "none", "references": [first, second]})


def publish(task):
    handle = task.act("publish", output=0, value=json_data("early"))
    task.spawn("echo", [{"handle": handle}])
    task.say("exit", outputs=[{"output": 1, "value": json_data("late")}])


def publish_twice(task):
    for value in (1, 2):
        task.act("publish", output=0, value=json_data(value))
    task.say("exit")


def files(task):
    """Output 0 through a file, and an object through another that a child reads."""
    opened = task.request("openConstruct", request=1)["opened"]["path"]
    with open(opened, "w", encoding="utf-8") as file:
        json.dump("x" * 5000, file)
    made = task.act("commit", request=1, form="json")
    child = task.spawn("echo", [{"handle": made}])
    opened = task.request("openOutput", request=2, output=0)["opened"]["path"]
    with open(opened, "w", encoding="utf-8") as file:
        file.write("y" * 100000)
    if task.request("openOutput", request=3, output=0).get("refused") is None:
        return task.exit("an output was opened twice")
    if task.value(child) is None:
        return task.after("blockOn", references=[child], replay={})
    task.say("exit")


def writes(task):
    task.after("write", data=encode(b"one\n"))
    task.spawn("says", text="two\n")
    task.after("write", data=encode(b"three\n"))
    task.after("write", sink="SINK_STDERR", data=encode(b"aside\n"))
    print("from the process itself", flush=True)
    task.exit(None)


def says(task):
    file = task.arguments.get("file", "")
    task.after("write", file=file, data=encode(task.arguments["text"].encode()))
    task.exit(None)


def clock(task):
    """Its result is its first observation, whatever a replay would observe."""
    seen = task.observations.pop(0) if task.observations else None
    now = base64.b64decode(seen["value"]) if seen else str(time.monotonic_ns()).encode()
    if seen is None:
        task.say("observe", kind="clock", value=encode(now), action=task.action)
    task.action += 1
    if task.once("ticked"):
        with open("first-time", "wb") as file:
            file.write(now)
    child = task.spawn("fine")
    if task.value(child) is None:
        return task.after("blockOn", references=[child], replay={})
    with open("first-time", "rb") as file:
        task.exit(file.read() == now)


def done(task):
    """Asks whether its lazy input is there."""
    answer = task.request("observe", request=1, kind="done", references=[0], action=task.action)
    task.exit(json.loads(base64.b64decode(answer["observed"]["value"])))


def first(task):
    children = [task.spawn("fine", value=value) for value in (1, 2)]
    seen = task.observations.pop(0) if task.observations else None
    if seen is None:
        return task.after("blockOn", references=children, wait="WAIT_FIRST", replay={})
    places = json.loads(base64.b64decode(seen["value"]))
    task.exit([task.value(children[place]) for place in places] != [])


def look(task):
    """Opens a reference inside its input."""
    inside = task.known[0]["value"]["references"][0]
    reference = task.request("openReference", request=1, handle=inside)["reference"]
    task.known[inside] = reference
    if task.value(inside) is None:
        return task.after("blockOn", references=[inside], replay={})
    task.exit(task.value(inside))


def nest(task):
    child = task.spawn("fine", value=8)
    made = task.act("construct", value=json_data({"$ref": 0}, [child]))
    looking = task.spawn("look", [{"handle": made}])
    if task.value(looking) is None:
        return task.after("blockOn", references=[looking], replay={})
    task.exit(task.value(looking))


def bytes_with_reference(task):
    child = task.spawn("fine", value=8)
    value = {"data": encode(b"7"), "form": "bytes", "references": [child]}
    task.say("exit", outputs=[{"output": 0, "value": value}])


def hold(task):
    """A child that waits at the gate, in a process of its own, and one that does not."""
    if task.once("held"):
        os.mkfifo("gate")
    payload = {"command": "cat " + os.path.abspath("gate")}
    held = task.spawn("cat", executor="shell", payload=payload)
    return [held, task.spawn("fine", value=7)]


def release():
    with open("gate", "w", encoding="utf-8") as gate:
        gate.write(json.dumps("through"))


def park_on(task, handles, then, **fields):
    PARKED[task.tag] = then
    task.after("blockOn", references=handles, parked={}, **fields)
    task.action += "wait" in fields or "timeoutMs" in fields


def race(task):
    """The first of two, kept where it is; then the other."""
    children = hold(task)

    def second(first):
        release()
        numbers = [reference["handle"] for reference in first["answers"]]
        park_on(task, children[:1], lambda last: task.exit([numbers == children[1:],
                first.get("timedOut", False), decoded(last["answers"][0])]))

    park_on(task, children, second, wait="WAIT_FIRST")


def race_again(task):
    """The first of two, replayed from its start; then the other."""
    children = hold(task)
    if not task.observations:
        return task.after("blockOn", references=children, wait="WAIT_FIRST", replay={})
    seen = task.observations.pop(0)
    task.action += 1
    places = json.loads(base64.b64decode(seen["value"]))
    if task.once("released"):
        release()
    if task.value(children[0]) is None:
        return task.after("blockOn", references=children[:1], replay={})
    task.exit([seen["kind"], places, task.value(children[0])])


def race_lost(task):
    """It waits for the first where its child dies, and takes the strand with it."""
    children = [task.spawn("die-first"), task.spawn("die-first")]
    if task.observations:
        return task.exit(task.observations[0]["kind"])
    park_on(task, children, lambda _: task.exit("resumed"), wait="WAIT_FIRST")


def patience(task):
    """It does not wait for ever."""
    held, _ = hold(task)

    def over(resume):
        release()
        task.exit([resume["timedOut"], resume.get("answers", [])])

    park_on(task, [held], over, timeoutMs="50")


def patience_again(task):
    """The same, replayed from its start; and a wait that ends before its limit."""
    children = hold(task)
    if not task.observations:
        return task.after("blockOn", references=children[:1], timeoutMs="50", replay={})
    task.action += 1
    if len(task.observations) == 1:
        return task.after("blockOn", references=children[1:], timeoutMs="60000", replay={})
    if task.once("released"):
        release()
    task.exit([[seen["kind"], json.loads(base64.b64decode(seen["value"]))]
               for seen in task.observations])


def patience_saved(task):
    """The same from bytes."""
    if "saved" in task.start:
        release()
        saved = task.start["saved"]
        return task.exit([saved["timedOut"], "future" in saved["references"][0]])
    children = hold(task)
    task.after("blockOn", references=children[:1], timeoutMs="50",
             saved={"data": encode(b""), "runtime": "none", "references": children[:1]})


def watcher(task):
    """It continues while it watches, and receives events in the order in which they happen."""
    held, free = hold(task)
    told = []
    for request, handle in [(1, held), (2, free), (3, free)]:
        task.say("openReference", request=request, handle=handle, mustBlock=True)
    for _ in range(2):
        told.append(json.loads(LINES.readline())["answer"]["request"])
    made = task.act("construct", value=json_data("made meanwhile"))
    release()
    answer = json.loads(LINES.readline())["answer"]
    task.known[made] = task.request("openReference", request=4, handle=made)["reference"]
    task.exit([sorted(told), answer["request"], decoded(answer["reference"]), task.value(made)])


def asker(task):
    """Its value is the failure of its child, as received."""
    child = task.spawn(task.arguments["of"])
    park_on(task, [child], lambda resume: task.exit(resume["answers"][0]["error"]))


def passes_on(task):
    """It fails with the failure of its child, with a call of its own."""
    child = task.spawn("fails-whole")

    def fail(resume):
        failure = resume["answers"][0]["error"]
        call = {"file": "job.py", "line": 2, "function": "main", "source": "price()"}
        task.say("error", failure={"task": failure["task"], "message": failure["message"],
                                   "traceback": [call] + failure["traceback"]})

    park_on(task, [child], fail)


def fails_whole(task):
    with open("attempts", "a", encoding="utf-8") as file:
        file.write("attempt\n")
    call = {"file": "job.py", "line": 7, "column": 5, "function": "price", "source": "raise"}
    exception = {"data": encode(b"\x80\x04N."), "form": "pickle"}
    failure = {"kind": "FAILURE_KIND_TASK_ERROR", "language": "python", "typeName": "ValueError",
               "message": "there is no price", "traceback": [call], "exception": exception}
    if "retryable" in task.arguments:
        failure["retryable"] = task.arguments["retryable"]
    task.say("error", failure=failure)


def text(task):
    task.say("exit", outputs=[{"value": {"data": encode("tea\n".encode()), "form": "text"}}])


def place(task):
    """Where it runs: its folder, and whether its position is what its label shows."""
    position = base64.b64decode(task.start["position"])
    task.exit([task.start.get("scratch", ""), len(position), FOLDERS == [os.getcwd()]])


class Interrupted(Exception):
    """The engine wants the task to end."""


def interruptible(task):
    def on_signal(*_):
        raise Interrupted

    signal.signal(signal.SIGUSR2, on_signal)
    try:
        while True:
            signal.pause()
    except Interrupted:
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        task.say("error", failure={"kind": "FAILURE_KIND_CANCELLED", "message": "stopped"})


def outlives(task):
    """It is parked in a process that is used up meanwhile: where it resumes, and what else ran."""
    before = os.getpid()
    children = [task.spawn("counts-processes", keep="KEEP_END"), task.spawn("counts-processes")]

    def over(resume):
        first, second = (decoded(answer) for answer in resume["answers"])
        task.exit([os.getpid() == before, first == before, second == before])

    park_on(task, children, over)


def strange(task):
    """It makes an object of a form of its own, and one with a type, for a child to look at."""
    made = [task.act("construct", value={"data": encode(b"rows"), "form": "parquet"}),
            task.act("construct", value={**json_data(7), "type": "int"})]
    child = task.spawn("forms", [{"handle": handle} for handle in made])
    if task.value(child) is None:
        return task.after("blockOn", references=[child], replay={})
    task.exit(task.value(child))


def forms(task):
    values = [task.known[handle]["value"] for handle in (0, 1)]
    task.exit([[value["form"], value.get("type")] for value in values])


def streams(task):
    task.spawn("fine", [{"handle": task.act("construct", value=json_data(1)),
                         "mode": "INPUT_MODE_STREAM"}])
    task.exit(1)


def undefined(task):
    task.act("spawn", tasks=[{"definition": 4000}])
    task.exit(1)


def backwards(task):
    """It gives an action an index that it has given before."""
    task.spawn("fine")
    task.action = 0
    task.spawn("fine")
    task.exit(1)


def leaves_gaps(task):
    """Indices and handles that it leaves out are of no concern."""
    task.action, task.handle = task.action + 5, task.handle + 7
    child = task.spawn("fine", value=3)
    task.action, task.handle = task.action + 2, task.handle - 4
    task.act("construct", value=json_data("between"))
    if task.value(child) is None:
        return task.after("blockOn", references=[child], replay={})
    task.exit(task.value(child))


def takes_all(task):
    """It takes three results as they come, from one list that it gives once."""
    children = [task.spawn("fine", value=value) for value in (1, 2, 3)]
    taken = []

    def take(resume):
        taken.extend(decoded(answer) for answer in resume["answers"])
        if len(taken) < 3:
            return park_on(task, [], take, wait="WAIT_REST")
        task.exit(sorted(taken))

    park_on(task, children, take, wait="WAIT_FIRST")


def fails(task):
    frames = [{"file": "job.py", "line": 7, "function": "price", "source": "raise missing"}]
    task.say("error", failure={"kind": "FAILURE_KIND_TASK_ERROR", "typeName": "PriceError",
                               "message": "there is no price for tea", "traceback": frames,
                               "hint": "add it to prices.csv"})


def counts_processes(task):
    task.exit(os.getpid(), keep=task.arguments.get("keep", "KEEP_UNSPECIFIED"))


def shell(task):
    payload = encode(json.dumps({"command": "cat {in.a}", "inputs": {"a": {"$ref": 0}}}).encode())
    text = task.act("construct", value={"data": encode(b"through a shell")})
    task.after("tailSpawn", task={"definition": definition("shell", "shell"), "payload": payload,
                                  "inputs": [{"handle": text}]})


def run(task):
    verbs = {name: verb for name, verb in globals().items() if callable(verb)}
    verbs[task.arguments["do"].replace("-", "_")](task)


def decoded(reference):
    return json.loads(base64.b64decode(reference["value"]["data"]))


def resume(message):
    PARKED.pop(message["tag"])(message["resume"])


def receive_frame():
    length = int.from_bytes(SOCKET.recv(4, socket.MSG_WAITALL), "big")
    SOCKET.recv(length, socket.MSG_WAITALL)


FEATURES = ["parked", "timeouts", "watching", "no_scratch", "interrupt"]


def greet():
    with open("starts", "a", encoding="utf-8") as file:
        file.write("start\n")
    with open("starts", encoding="utf-8") as file:
        if NAME == "unlucky" and len(file.readlines()) == 1:
            os.kill(os.getpid(), 9)
    if NAME == "mute":
        sys.exit("there is no licence for today")
    if NAME == "noise":
        SOCKET.sendall(b"\xff\xfe\xfd\xfc\xfb\xfa")
    if NAME == "huge":
        hello = b"\x08\x02\x22\x04huge"
        frame = b"\x12" + bytes([len(hello)]) + hello
        SOCKET.sendall(len(frame).to_bytes(4, "big") + frame)
        receive_frame()
        receive_frame()
        SOCKET.sendall(b"\x7f\xff\xff\xff")
        SOCKET.recv(1)
    send({"hello": {"protocol": 1 if NAME == "old" else 2, "executor": NAME,
                    "features": FEATURES if NAME == "waiting" else FEATURES[:1],
                    "pool": {"reuse": True, "parkedStrandsMax": 10}}})


def main():
    greet()
    for line in LINES:
        message = json.loads(line)
        if "hello" in message:
            FOLDERS.append(message["hello"]["folder"])
        elif "start" in message:
            run(Task(message["tag"], message["start"]))
        elif "resume" in message:
            resume(message)
        elif "shutdown" in message or "refusal" in message:
            break


main()
