"""Random programs with random edits, failures and kills: each run that comes to its end prints what
a run from nothing prints, and no task runs whose result a run that ended well has kept.

A program is a graph of functions and commands, written down in Python or in Skywriting: a function
spawns those with larger numbers and adds up what they give. All follows from the seed; the variable
`CIEL_EDITED_PROGRAMS` says how many seeds are tried instead of the few here.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from conditions import DEADLINE_S

SEEDS = int(os.environ.get("CIEL_EDITED_PROGRAMS", "2"))
ROUNDS = 5
"""Runs of each program."""

RECORDS = 80
"""Records before one of which a run is killed, if its command was built for that."""

Key = tuple[object, ...]
"""What the result of a task depends on."""


class Node(NamedTuple):
    """A function, or a command if nothing can be beneath it."""

    is_command: bool
    word: int
    children: tuple[int, ...]
    fails: bool = False
    comments: int = 0


Program = list[Node]


def program(chance: random.Random) -> Program:
    """A program whose first function reaches some of the others."""
    count = chance.randint(4, 8)
    nodes = []
    for number in range(count):
        below = range(number + 1, count)
        children = tuple(child for child in below if chance.random() < 0.4)
        is_command = number > 0 and (not children or chance.random() < 0.3)
        word = chance.randrange(1000)
        nodes.append(Node(is_command, word, () if is_command else children))
    return nodes


def edited(nodes: Program, chance: random.Random) -> Program:
    """Changes one thing."""
    at = chance.randrange(len(nodes))
    node = nodes[at]
    kind = chance.randrange(5)
    if kind == 0:
        node = node._replace(word=node.word + 1)
    elif kind == 1:
        node = node._replace(comments=node.comments + 1)
    elif kind == 2 and node.is_command:
        node = node._replace(fails=True)
    elif kind == 3 and not node.is_command and at + 1 < len(nodes):
        node = node._replace(children=(*node.children, chance.randrange(at + 1, len(nodes))))
    else:
        return [one._replace(fails=False) for one in nodes]
    return [*nodes[:at], node, *nodes[at + 1 :]]


def shell(node: Node) -> str:
    end = "exit 1" if node.fails else "true"
    return f"echo said {node.word}; echo {node.word} > {{out}}; {end}"


def in_python(nodes: Program) -> str:
    lines = ["import ciel"]
    for number, node in enumerate(nodes):
        if node.is_command:
            continue
        lines += ["", "", "# A function.", *["# One more line."] * node.comments, "@ciel.task"]
        lines += [f"def f{number}(x: int) -> int:", f'    print("f{number}", x, {node.word})']
        terms = [str(node.word)]
        for place, child in enumerate(node.children):
            if nodes[child].is_command:
                lines.append(f"    a{place} = ciel.sh({shell(nodes[child])!r})")
            else:
                lines.append(f"    a{place} = f{child}.spawn(x + {place})")
            terms.append(f"int(a{place}.result())")
        lines.append(f"    return {' + '.join(terms)}")
    return "\n".join([*lines, "", "", "def main() -> int:", "    return f0.spawn(0).result()", ""])


def in_skywriting(nodes: Program) -> str:
    lines = []
    for number, node in [*enumerate(nodes)][::-1]:
        if node.is_command:
            continue
        lines += ["// One more line.", ""] * node.comments
        lines += [f"function f{number}(x) {{", f'    print("f{number}", x, {node.word});']
        terms = [str(node.word)]
        for place, child in enumerate(node.children):
            if nodes[child].is_command:
                command = json.dumps(shell(nodes[child]).replace("{out}", "{out.o}"))
                task = f'{{"command": {command}, "outputs": ["o"]}}, 1, {{"name": "f{child}"}}'
                lines.append(f'    a{place} = spawn_exec("shell", {task})[0];')
                terms.append(f"int(trim(text(a{place})))")
            else:
                lines.append(f"    a{place} = spawn(f{child}, [x + {place}]);")
                terms.append(f"*a{place}")
        lines += [f"    return {' + '.join(terms)};", "}"]
    return "\n".join([*lines, "return *spawn(f0, [0]);", ""])


def keys_of(nodes: Program, number: int, x: int) -> Key:
    """What the result of a task of that function depends on."""
    node = nodes[number]
    if node.is_command:
        return ("command", node.word, node.fails)
    children = (keys_of(nodes, child, x + place) for place, child in enumerate(node.children))
    return (number, x, node.word, *children)


def all_keys(nodes: Program, number: int = 0, x: int = 0) -> set[Key]:
    """Those of a task and of all beneath it."""
    found = {keys_of(nodes, number, x)}
    for place, child in enumerate(nodes[number].children):
        found |= all_keys(nodes, child, x + place)
    return found


def may_run(nodes: Program, kept: set[Key], number: int = 0, x: int = 0) -> Counter[str]:
    """How many tasks of each function may run, by name, if these results are kept."""
    if keys_of(nodes, number, x) in kept:
        return Counter()
    counts = Counter([f"f{number}"])
    for place, child in enumerate(nodes[number].children):
        counts += may_run(nodes, kept, child, x + place)
    return counts


class Project:
    """A folder with a program in one of the languages."""

    def __init__(self, folder: Path, language: str) -> None:
        """Makes the folder."""
        folder.mkdir()
        self.folder = folder
        self.name = "job.py" if language == "python" else "job.sw"
        self.written = in_python if language == "python" else in_skywriting

    def run(self, nodes: Program, die_at: int | None = None) -> tuple[int, str]:
        """How a run of the program ends, and what it prints."""
        (self.folder / self.name).write_text(self.written(nodes))
        environment = dict(os.environ)
        if die_at is not None:
            environment["CIEL_DIE_AT_RECORD"] = str(die_at)
        ended = subprocess.run(
            [command(), "run", "--kept", "--python", sys.executable, self.name],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        return ended.returncode, ended.stdout

    def ran(self) -> tuple[Counter[str], bool]:
        """How many tasks of each name ran in the last run, and whether that was resumed."""
        words = [command(), "ps", "--json", "--all"]
        told = subprocess.run(
            words, cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout
        last = max(map(json.loads, told.splitlines()), key=lambda one: str(one["run"]["run"]))
        is_kept = "took the result that an earlier run kept"
        ran = Counter(task["what"] for task in last["tasks"] if is_kept not in task["reasons"])
        return ran, last["run"]["resumed"]


def command() -> str:
    found = os.environ.get("CIEL_COMMAND") or shutil.which("ciel")
    if found is None:
        pytest.skip("the command ciel is not installed")
    return found


def agrees(one: tuple[int, str], other: tuple[int, str]) -> bool:
    """Whether two runs end alike; one that fails shows less or more of what is before that."""
    if one[0] == 0:
        return one == other
    shorter, longer = sorted((one[1], other[1]), key=len)
    return one[0] == other[0] and longer.startswith(shorter)


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("language", ["python", "skywriting"])
def test_run_after_edits_failures_and_kills_is_as_one_from_nothing(
    language: str, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    nodes = program(chance)
    project = Project(tmp_path / "project", language)
    kept: set[Key] = set()
    for number in range(ROUNDS):
        die_at = chance.randrange(RECORDS) if chance.random() < 0.3 else None
        ended = project.run(nodes, die_at)
        if ended[0] >= 0:
            fresh = Project(tmp_path / f"fresh{number}", language)
            expected = fresh.run(nodes)
            assert agrees(ended, expected), f"seed {seed}, round {number}: {ended}, {expected}"
        if ended[0] == 0:
            allowed = may_run(nodes, kept)
            ran, is_resumed = project.ran()
            names = ["f0"] if language == "python" else [f"f{n}" for n in range(len(nodes))]
            # A child of a Python task may run as a call of its parent, and is kept with that only.
            excess = {name: ran[name] for name in names if ran[name] > allowed[name]}
            assert not excess, f"seed {seed}, round {number}: {excess}"
            # What is replayed there, or had ended before, need not be kept.
            kept |= set() if is_resumed else all_keys(nodes)
        nodes = edited(nodes, chance)
