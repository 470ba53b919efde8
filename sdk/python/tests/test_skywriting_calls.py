"""Skywriting scripts that call Python tasks, and Python that gets from commands what they need."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs

TOOLS = """
import ciel

def double(n):
    return 2 * n

@ciel.task
def fib(n):
    if n < 2:
        return n
    return fib.spawn(n - 1).result() + fib.spawn(n - 2).result()

@ciel.task
def factorial(n, total=1):
    return total if n < 2 else factorial.tail(n - 1, total * n)

def shout(text, mark="!"):
    return text.upper() + mark

def seen(data):
    return [type(data).__name__, len(data)]

def zeros(count):
    return bytes(count)

def look(box, **more):
    return {"box": box, "more": more}

def pair():
    return 1, "b"

def say(words):
    print("said", words)

def refuse(what):
    raise KeyError(what)

def group(n):
    return {n}
"""

CALL = """
python = function (name, args, kwargs) {
    call = {"function": "tools:" + name, "args": args, "kwargs": kwargs};
    return spawn_exec("python", call, 1)[0];
};
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module that scripts call."""
    jobs.write(tmp_path, TOOLS, "tools.py")
    return tmp_path


def value_of(folder: Path, script: str) -> object:
    """The value of a script."""
    return jobs.run(folder, CALL + script, name="job.sw").value


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ('python("double", [21], {})', 42),
        ('python("double", [], {"n": 2.5})', 5.0),
        ('python("double", [[1, null]], {})', [1, None, 1, None]),
        ('python("fib", [9], {})', 34),
        ('python("factorial", [20], {})', 2432902008176640000),
        ('python("look", [null], {})', {"box": None, "more": {}}),
    ],
)
def test_script_gets_the_value_of_a_call(folder: Path, call: str, value: object) -> None:
    assert value_of(folder, f"return *{call};") == value


def test_references_arrive_as_values_also_inside(folder: Path) -> None:
    script = """
four = python("double", [2], {});
word = spawn_exec("shell", {"command": "printf word"}, 1)[0];
name = python("shout", ["me"], {});
return [
    *python("double", [four], {}),
    *python("look", [{"deep": [four, name]}], {"more": four}),
    *python("seen", [word], {}),
    *python("seen", [name], {}),
    *python("seen", [python("zeros", [200000], {})], {})
];
"""
    assert value_of(folder, script) == [
        8,
        {"box": {"deep": [4, "ME!"]}, "more": {"more": 4}},
        ["bytes", 4],
        ["str", 3],
        ["bytes", 200000],
    ]


def test_text_and_bytes_are_objects_for_scripts_and_commands(folder: Path) -> None:
    script = """
name = python("shout", ["grüße"], {"mark": "?"});
zeros = python("zeros", [100000], {});
count = spawn_exec("shell", {"command": "wc -c < {in.zeros}; cat {in.name}",
    "inputs": {"zeros": zeros, "name": name}}, 1)[0];
return [text(name), text(count)];
"""
    assert value_of(folder, script) == ["GRÜSSE?", "100000\nGRÜSSE?"]


def test_several_outputs_are_references_of_their_own(folder: Path) -> None:
    script = """
both = spawn_exec("python", {"function": "tools:pair"}, 2);
return [*both[0], text(both[1])];
"""
    assert value_of(folder, script) == [1, "b"]


def test_what_a_call_prints_keeps_its_place(folder: Path) -> None:
    script = """
print("before");
python("say", ["one"], {});
print("between");
python("say", ["two"], {});
"""
    ended = jobs.run(folder, CALL + script, name="job.sw")
    assert ended.lines[:4] == ["before", "said one", "between", "said two"]


def test_exception_can_be_caught_by_the_script(folder: Path) -> None:
    script = """
kind_of = function (call) {
    try { print(*call); } catch (error) { return error.kind + " " + error.message; }
};
refused = python("refuse", ["tea"], {});
return [kind_of(refused), kind_of(python("double", [refused], {})), *python("double", [1], {})];
"""
    assert value_of(folder, script) == ["KeyError 'tea'", "KeyError 'tea'", 2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('"tools:nothing"', "module tools has no 'nothing'"),
        ('"nowhere:double"', "nowhere"),
        ('"tools:__name__"', "'tools' is not a function"),
    ],
)
def test_function_that_is_not_there_is_told(folder: Path, call: str, words: str) -> None:
    script = f'return *spawn_exec("python", {{"function": {call}}}, 1)[0];'
    ended = jobs.run(folder, script, name="job.sw")
    assert ended.status == 1 and words in ended.talk


def test_result_that_only_python_can_read_is_told(folder: Path) -> None:
    ended = jobs.run(folder, CALL + 'return *python("group", [1], {}) == 1;', name="job.sw")
    assert ended.status == 1 and "not JSON" in ended.talk


def test_call_that_failed_can_be_run_again(folder: Path) -> None:
    script = 'return *python("refuse", [python("shout", ["tea"], {})], {});'
    assert jobs.run(folder, CALL + script, name="job.sw").status == 1
    ended = jobs.command(folder, "replay", "refuse")
    assert ended.status == 1 and ended.talk.splitlines()[-1] == "KeyError: 'TEA!'"


def test_python_reads_what_other_executors_made(folder: Path) -> None:
    job = """
import ciel

def main():
    lines = ciel.sh("printf 'b\\\\na\\\\n'")
    made = ciel.spawn_exec("stdinout", {"command_line": ["sort"], "inputs": [lines]})[0]
    text = {"args": [{"deep": [ciel.put("words"), 1]}], "kwargs": {"mark": ciel.put([2])}}
    called = ciel.spawn_exec("python", {"function": "tools:look", **text})[0]
    return [made.result().decode(), called.result()]
"""
    expected = {"box": {"deep": ["words", 1]}, "more": {"mark": [2]}}
    assert jobs.run(folder, job).value == ["a\nb\n", expected]
