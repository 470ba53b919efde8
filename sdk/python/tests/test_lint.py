"""The lint of task code: what it finds, what it leaves alone, its command, and its warnings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ciel
import jobs
from ciel import testing
from ciel.lint import lint, main

ROOT = Path(__file__).resolve().parents[3]
IMPORTS = """
import datetime as dates
import os
import os as system
import random
import secrets
import time
import linecache, uuid
from datetime import date, datetime
from os import environ, getenv as variable
from random import choice as pick, Random
from time import time as clock
from uuid import uuid4

import ciel
import ciel as engine
import numpy
import numpy as np
import numpy.random as chance
from ciel import task
from numpy.random import default_rng

"""

BAD = [
    ("time.time()", "time.time()"),
    ("clock()", "time.time()"),
    ("time.time_ns() // 1000", "time.time_ns()"),
    ("time.monotonic()", "time.monotonic()"),
    ("time.localtime()", "time.localtime()"),
    ("time.asctime()", "time.asctime()"),
    ("datetime.now()", "datetime.datetime.now()"),
    ("dates.datetime.utcnow()", "datetime.datetime.utcnow()"),
    ("datetime.today()", "datetime.datetime.today()"),
    ("date.today().year", "datetime.date.today()"),
    ("random.random()", "random.random()"),
    ("random.seed(3)", "random.seed()"),
    ("pick([1, 2])", "random.choice()"),
    ("Random()", "random.Random()"),
    ("random.Random(None)", "random.Random()"),
    ("random.SystemRandom().random()", "random.SystemRandom()"),
    ("np.random.normal(0, 1)", "numpy.random.normal()"),
    ("numpy.random.rand(3)", "numpy.random.rand()"),
    ("chance.shuffle([1])", "numpy.random.shuffle()"),
    ("default_rng()", "numpy.random.default_rng()"),
    ("np.random.RandomState()", "numpy.random.RandomState()"),
    ("uuid.uuid1()", "uuid.uuid1()"),
    ("linecache.getline('f', 1)", "linecache.getline()"),
    ("str(uuid4())", "uuid.uuid4()"),
    ("sorted([1], key=lambda _: random.random())", "random.random()"),
    ("list(map(uuid.uuid4, []))", "uuid.uuid4"),
    ("[time.time() for _ in range(3)]", "time.time()"),
    ("os.urandom(4)", "os.urandom()"),
    ("secrets.token_hex()", "secrets.token_hex()"),
    ("os.environ['HOME']", "os.environ"),
    ("environ.get('HOME')", "os.environ"),
    ("dict(system.environ)", "os.environ"),
    ("variable('HOME')", "os.getenv"),
    ("os.path.expandvars('$HOME')", "os.path.expandvars()"),
    ("f'{time.time()}'", "time.time()"),
]


@pytest.mark.parametrize("expression,what", BAD)
def test_what_asks_the_outside_is_found_in_a_task(expression: str, what: str) -> None:
    text = f"{IMPORTS}@ciel.task\ndef work(n):\n    return {expression}\n"
    found = lint(text, "job.py")
    assert [finding.what for finding in found] == [what]
    assert (found[0].function, found[0].task, found[0].line) == ("work", "work", 25)
    assert found[0].column > len("    return") and found[0].instead


GOOD = [
    "ciel.now()",
    "ciel.task_rng().random()",
    "random.Random(7).random()",
    "Random(ciel.entropy(8))",
    "np.random.default_rng(3)",
    "default_rng(seed=n)",
    "np.random.Generator(np.random.PCG64(1))",
    "time.perf_counter()",
    "time.sleep(1)",
    "time.gmtime(n)",
    "time.asctime(n)",
    "datetime.fromtimestamp(n)",
    "uuid.UUID(bytes=ciel.entropy(16), version=4)",
    "secrets.compare_digest(b'a', b'b')",
    "os.environ['CIEL_TASK_SEED']",
    "os.environ.get('CIEL_CORES', '1')",
    "variable('CIEL_CORES')",
    "os.environ.setdefault('OMP_NUM_THREADS', '1')",
    "subprocess.run(['ls'], env=os.environ)",
    "n.time()",
    "time.time()  # ciel: ok",
    "[  # a list\n        time.time(),  # ciel: ok, only a stamp\n    ]",
    "'time.time()'",
]


@pytest.mark.parametrize("expression", GOOD)
def test_what_is_the_same_every_time_is_left_alone(expression: str) -> None:
    assert lint(f"{IMPORTS}@ciel.task\ndef work(n):\n    return {expression}\n", "job.py") == []


@pytest.mark.parametrize(
    "head", ["@ciel.task", "@engine.task", "@task", "@ciel.task(cores=2)", "@task(pure=True)"]
)
def test_decorator_under_any_name_makes_a_task(head: str) -> None:
    assert len(lint(f"{IMPORTS}{head}\ndef work():\n    return time.time()\n", "job.py")) == 1


IMPORTED = "import glob, os, tempfile\nimport ciel\nclass Node:\n    pass\n"

EFFECTS = [
    ("if os.path.exists('f'): return", "os.path.exists()"),
    ("names = os.listdir('.')", "os.listdir()"),
    ("names = glob.glob('*')", "glob.glob()"),
    ("folder = tempfile.mkdtemp()", "tempfile.mkdtemp()"),
    ("with tempfile.TemporaryDirectory() as folder: pass", "tempfile.TemporaryDirectory()"),
    ("with open('log', 'a') as log: log.write('x')", "open() for appending"),
    ("open('log', mode='ab').close()", "open() for appending"),
    ("for node in {Node(), Node()}: print(node)", "the order of a set of objects"),
    ("nodes = {Node() for _ in 'ab'}; [print(n) for n in nodes]",
     "the order of a set of objects"),
    ("for node in set([Node() for _ in 'ab']): print(node)", "the order of a set of objects"),
]  # fmt: skip


@pytest.mark.parametrize("statement,what", EFFECTS)
def test_what_a_replay_would_do_or_find_differently_is_found(statement: str, what: str) -> None:
    """``ciel lint`` found none of four programs that failed after a replay: they iterated over a
    set of objects, looked for a file, made a folder, and appended to a file.
    """
    spawn = "    return work.spawn().result()\n"
    for head in ("@ciel.task\ndef parent():\n", "def main():\n"):
        found = lint(f"{IMPORTED}{head}    {statement}\n{spawn}", "job.py")
        assert [finding.what for finding in found] == [what]
        assert found[0].instead
    for head, last in (
        ("@ciel.task(pure=False)\ndef parent():\n", spawn),
        ("@ciel.task\ndef leaf():\n", "    return 1\n"),
    ):
        assert lint(f"{IMPORTED}{head}    {statement}\n{last}", "job.py") == []


NO_EFFECTS = [
    "for name in {'a', 'b'}: print(name)",
    "with open('f', 'w') as file: file.write('x')",
    "with open('a') as file: file.read()",
    "path = os.path.join('a', 'b')",
    "open = print; open('log', 'a')",
    "os.path.exists('f')  # ciel: ok",
]


@pytest.mark.parametrize("statement", NO_EFFECTS)
def test_effects_that_are_the_same_again_are_left_alone(statement: str) -> None:
    text = f"{IMPORTED}@ciel.task\ndef parent():\n    {statement}\n    work.spawn()\n"
    assert lint(text, "job.py") == []


LEFT_ALONE = [
    "def work():\n    return time.time()\n",
    "@ciel.task(pure=False)\ndef work():\n    return time.time()\n",
    "@task(cores=1, pure=False)\ndef work():\n    return helper()\ndef helper():\n    uuid4()\n",
    "@ciel.task\ndef work(time, random):\n    return time.time() + random.random()\n",
    "@ciel.task\ndef work():\n    time = now()\n    return time.time()\n",
    "@ciel.task\ndef work():\n    return [random.random() for random in ()]\n",
    "@ciel.task\ndef work():\n    return (lambda time: time.time())(3)\n",
    "@ciel.task\ndef work(n: time.time = time.time()):\n    m: time.time = n\n    return m\n",
    "@ciel.task\ndef work():\n    import job.time as time\n    return time.time()\n",
    "@ciel.task\ndef work():\n    from . import time\n    return time.time()\n",
    "@other.task\ndef work():\n    return time.time()\n",
    "@ciel.task\ndef work():\n    os.environ['A'] = '1'\n    del os.environ['B']\n",
    "@ciel.task\ndef work():\n    return impure.spawn()\n"
    "@ciel.task(pure=False)\ndef impure():\n    return time.time()\n",
    "def main():\n    print(time.time())\nif __name__ == '__main__':\n    main()\n",
]


@pytest.mark.parametrize("program", LEFT_ALONE)
def test_other_code_is_left_alone(program: str) -> None:
    assert lint(IMPORTS + program, "job.py") == []


FOUND_THROUGH = [
    ("@task\ndef work():\n    return one()\ndef one():\n    return two()\n"
     "def two():\n    return time.time()\n", "two", "work"),
    ("@task\ndef work():\n    return list(map(one, []))\ndef one(_):\n    return time.time()\n",
     "one", "work"),
    ("class Job:\n    @task\n    def work(self):\n        return self.helper()\n"
     "    def helper(self):\n        return time.time()\n", "helper", "work"),
    ("@task\ndef work():\n    return Job().value\nclass Job:\n    def __init__(self):\n"
     "        self.value = uuid4()\n", "__init__", "work"),
    ("@task\ndef work():\n    return Job.make()\nclass Job:\n    @staticmethod\n    def make():\n"
     "        return uuid4()\n", "make", "work"),
    ("@task\ndef work():\n    def inner():\n        return time.time()\n    return inner()\n",
     "inner", "work"),
    ("def maker():\n    @task\n    def work():\n        import time as t\n"
     "        return t.time()\n    return work\n", "work", "work"),
    ("def work():\n    return time.time()\nwork_task = ciel.task(work)\n", "work", "work"),
    ("def root():\n    return time.time()\nprint(ciel.run(root))\n", "root", "root"),
    ("def main():\n    return time.time()\n", "main", "main"),
    ("if True:\n    @task\n    def work():\n        try:\n            pass\n        finally:\n"
     "            time.time()\n", "work", "work"),
]  # fmt: skip


@pytest.mark.parametrize("program,function,task", FOUND_THROUGH)
def test_code_that_a_task_reaches_is_looked_at(program: str, function: str, task: str) -> None:
    found = lint(IMPORTS + program, "job.py")
    assert [(finding.function, finding.task) for finding in found] == [(function, task)]
    assert (function in found[0].message) and (task in found[0].message)


def test_column_counts_characters() -> None:
    program = "@task\ndef work():\n    return 'é', time.time()\n"
    assert [finding.column for finding in lint(IMPORTS + program, "job.py")] == [17]


def test_function_used_by_two_tasks_is_reported_once() -> None:
    program = "@task\ndef a():\n    c()\n@task\ndef b():\n    c()\ndef c():\n    uuid4()\n"
    assert len(lint(IMPORTS + program, "job.py")) == 1


def test_examples_and_programs_of_the_pages_are_clean() -> None:
    folders = [ROOT / "examples", ROOT / "bench"]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    texts = [(path.read_text(encoding="utf-8"), str(path)) for path in files]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        blocks = re.findall(r"^```py(?:thon)?\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
        texts += [(block, str(page)) for block in blocks]
    assert len(files) > 5 and len(texts) > len(files) + 5
    assert [finding for text, name in texts for finding in lint(text, name)] == []


JOB = """import time
import ciel

@ciel.task
def stamp(n):
    return time.time()

@ciel.task
def twice(n):
    return [stamp.spawn(n).result(), time.time_ns(), time.monotonic()]

def main():
    return len(ciel.gather([twice.spawn(n) for n in range(8)]))
"""


def test_command_prints_places_and_exits_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = jobs.write(tmp_path, JOB)
    assert main([str(job)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in printed] == [
        f"{job}:6:12", f"{job}:10:38", f"{job}:10:54"
    ]  # fmt: skip
    assert printed[0].endswith("; ciel.now() is recorded")
    assert main(["--json", str(tmp_path)]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found[0] == {
        "file": str(job), "line": 6, "column": 12, "function": "stamp", "task": "stamp",
        "what": "time.time()", "instead": "ciel.now() is recorded",
    }  # fmt: skip


def test_command_exits_with_zero_for_clean_files_and_two_for_unreadable_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = jobs.write(tmp_path, "import ciel\n", "clean.py")
    broken = jobs.write(tmp_path, "def broken(:\n", "broken.py")
    bad = jobs.write(tmp_path, JOB)
    command = [sys.executable, "-m", "ciel.lint", str(clean)]
    assert subprocess.run(command, check=False, timeout=jobs.DEADLINE_S).returncode == 0
    assert main([str(broken), str(bad)]) == 2
    said = capsys.readouterr()
    assert f"{broken}: cannot be read" in said.err and f"{bad}:6" in said.out
    assert main([str(tmp_path / "missing")]) == 2


def test_run_warns_once_for_each_function(tmp_path: Path) -> None:
    ended = jobs.run(tmp_path, JOB, options=("-j3",))
    assert ended.value == 8
    warned = [line for line in ended.talk.splitlines() if "CielWarning" in line]
    assert len(warned) == 2
    assert "job.py:6: CielWarning: task stamp uses time.time()" in warned[0]
    assert "job.py:10: CielWarning: task twice uses time.time_ns()" in warned[1]
    assert "1 more" in warned[1]


def test_run_of_clean_or_silenced_code_does_not_warn(tmp_path: Path) -> None:
    silenced = JOB.replace("@ciel.task\ndef stamp", "@ciel.task(pure=False)\ndef stamp")
    silenced = silenced.replace("time.monotonic()]", "time.monotonic()]  # ciel: ok")
    ended = jobs.run(tmp_path, silenced)
    assert ended.value == 8 and "CielWarning" not in ended.talk


def test_root_of_a_job_is_warned_of(tmp_path: Path) -> None:
    job = "import random, ciel\ndef main():\n    return random.random() < 2\n"
    ended = jobs.run(tmp_path, job)
    assert ended.value is True
    assert "job.py:3: CielWarning: task main uses random.random()" in ended.talk


def test_function_of_a_test_is_warned_of() -> None:
    import time

    @ciel.task
    def stamp() -> float:
        return time.time()

    with testing.serial(), pytest.warns(ciel.CielWarning, match=r"task stamp uses time\.time"):
        stamp.spawn().result()


def test_imported_function_under_another_name_is_warned_of(tmp_path: Path) -> None:
    head = "from random import random as dice\nimport ciel\n"
    work = "@ciel.task\ndef f():\n    return dice()\n"
    root = "def main():\n    return f.spawn().result() < 2\n"
    ended = jobs.run(tmp_path, head + work + root)
    assert ended.value is True and "task f uses random.random()" in ended.talk
