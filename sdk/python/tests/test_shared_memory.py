"""Tasks that declare memory share it with results in memory: there is no more of it than there is.

The jobs declare nearly all memory of this machine, and use none of it. What is tested of a control
group uses its memory, and is skipped where no group can be made. It knows nothing of who decides.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import jobs
import pytest

MIB = 1 << 20

LENT = 64 * MIB
"""What results may have in memory."""


def least(limits: Iterator[Path]) -> int:
    """The least of these limits; files that are not there are none."""
    found = [path.read_text().strip() for path in limits if path.is_file()]
    return min((int(text) for text in found if text != "max"), default=1 << 63)


def groups() -> Iterator[Path]:
    """The files with the limits of the control groups of this process."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for group in (path.strip("/"), ""):
            if not controllers:
                yield Path("/sys/fs/cgroup", group, "memory.max")
            elif "memory" in controllers.split(","):
                yield Path("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes")


def machine() -> int:
    """Bytes of memory that tasks may declare here."""
    total = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    assert total
    return min(int(total[1]) << 10, least(groups()))


def has_room() -> bool:
    """Whether results can be in memory here."""
    there = os.path.ismount("/dev/shm") and os.access("/dev/shm", os.W_OK)
    return there and os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize > 2 * LENT


pytestmark = pytest.mark.skipif(
    not has_room(), reason="/dev/shm has no room for results in memory"
)

JOB = f"""
from pathlib import Path

import ciel
import numpy

ALL = {machine()}
MIB = 1 << 20

@ciel.task(keep=False, retries=1)
def made(mebibytes, number):
    return numpy.full(mebibytes * MIB, number, dtype=numpy.uint8)

@ciel.task(keep=False, retries=1)
def total(array):
    return int(array[0]) * len(array)

@ciel.task(keep=False)
def needs():
    return "had it"

@ciel.task(keep=False)
def holds(path):
    Path(path + ".begun").write_bytes(b"1")
    with open(path, "rb", buffering=0) as gate:
        gate.read(1)

def all_but(mebibytes):
    return needs.options(memory=ALL - mebibytes * MIB)

def main(way, *words):
    return globals()[way](*words)
"""

OPTIONS = ("-j2", "--json", f"--store-memory={LENT}")


def store_of(ended: jobs.Ended) -> dict[str, int]:
    found = [json.loads(line) for line in ended.talk.splitlines()][-1]["store"]
    assert isinstance(found, dict)
    return found


def test_results_are_written_back_for_a_task_that_declares_their_memory(tmp_path: Path) -> None:
    """Task and results together exceeded the memory of the machine, whose kernel killed them."""
    text = JOB + """
def written():
    arrays = [made.spawn(16, number) for number in range(3)]
    ciel.wait(arrays)
    had = all_but(20).spawn().result()
    return [had, [total.spawn(array).result() for array in arrays]]
"""
    ended = jobs.run(tmp_path, text, "written", options=OPTIONS)
    assert ended.value == ["had it", [0, 16 * MIB, 32 * MIB]]
    store = store_of(ended)
    assert store["memory_peak_bytes"] >= 48 * MIB, "they were in memory"
    assert store["written_back_bytes"] >= 32 * MIB
    assert store["memory_bytes"] == 0 and store["mapped_bytes"] == 0


def test_results_stay_in_memory_when_the_task_fits_beside_them(tmp_path: Path) -> None:
    text = JOB + """
def beside():
    array = made.spawn(16, 1)
    ciel.wait([array])
    had = all_but(128).spawn().result()
    return [had, total.spawn(array).result()]
"""
    ended = jobs.run(tmp_path, text, "beside", options=OPTIONS)
    assert ended.value == ["had it", 16 * MIB]
    assert store_of(ended)["written_back_bytes"] == 0


def test_task_that_cannot_fit_beside_what_is_mapped_is_refused_at_once(tmp_path: Path) -> None:
    """Nothing could free the memory: the program that waits for the task has the result mapped."""
    text = JOB + """
def mapped():
    array = made.spawn(48, 1).result()
    try:
        all_but(20).spawn().result()
    except ciel.Refused as error:
        return [str(error), int(array[-1])]
"""
    ended = jobs.run(tmp_path, text, "mapped", options=OPTIONS)
    words, last = ended.value
    assert last == 1
    assert re.search(
        r"needs \S+ [GM]iB of memory, this machine offers \S+ [GM]iB, of which 48.\d MiB are "
        "results in memory that others still use or the disk has no room for",
        words,
    ), words
    assert "hint: request less" in words


def test_what_a_worker_keeps_beside_its_tasks_lets_go_of_memory(tmp_path: Path) -> None:
    """A worker that nothing used had the result mapped, and the task was refused because of it."""
    text = JOB + """
def itself(array):
    return array

@ciel.task(keep=False, retries=1)
def seen(array: ciel.Future):
    return len(ciel.once(itself, array))

def cached():
    array = made.spawn(48, 1)
    length = seen.spawn(array).result()
    return [length, all_but(20).spawn().result(), total.spawn(array).result()]
"""
    ended = jobs.run(tmp_path, text, "cached", options=OPTIONS)
    assert ended.value == [48 * MIB, "had it", 48 * MIB]
    assert store_of(ended)["written_back_bytes"] >= 48 * MIB


def test_task_larger_than_the_machine_is_refused_with_both_sizes(tmp_path: Path) -> None:
    text = JOB + """
def larger():
    return needs.options(memory=2 * ALL).spawn().result()
"""
    ended = jobs.run(tmp_path, text, "larger", options=("-j2",))
    assert ended.status != 0
    assert re.search(r"needs \S+ \wiB of memory, this machine offers \S+ \wiB", ended.talk)


def test_why_says_who_has_the_memory_that_a_task_waits_for(tmp_path: Path) -> None:
    text = JOB + """
def waits(path):
    first = holds.options(memory=ALL // 2).spawn(path)
    Path(path + ".begun").read_bytes()
    second = needs.options(memory=ALL - ALL // 4).spawn()
    return [first.result(), second.result()]
"""
    gate = tmp_path / "gate"
    for pipe in (gate, tmp_path / "gate.begun"):
        os.mkfifo(pipe)
    opened = os.open(gate, os.O_RDWR)
    live = jobs.start(jobs.write(tmp_path, text), "waits", str(gate), options=OPTIONS)
    try:
        told = ""
        deadline = time.monotonic() + jobs.DEADLINE_S
        while "of memory: holds@" not in told and time.monotonic() < deadline:
            told = jobs.command(tmp_path, "why", "needs").printed.decode()
    finally:
        os.write(opened, b"1")
    size = r"\S+ \wiB"
    assert re.search(
        rf"waiting for {size} of {size} of memory: holds@\S+ has {size}, results have 64.0 MiB",
        told,
    ), told
    assert jobs.end_of(live).value == [None, "had it"]
    os.close(opened)


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of this process's own, with the file of its limit."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    memory = [line.split(":", 2)[2] for line in lines if "memory" in line.split(":")[1].split(",")]
    unified = [line.split(":", 2)[2] for line in lines if line.startswith("0::")]
    roots = [Path("/sys/fs/cgroup/memory", path.strip("/")) for path in memory]
    roots += [Path("/sys/fs/cgroup", path.strip("/")) for path in unified]
    for root in roots:
        folder = root / f"ciel-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            for name in ("memory.limit_in_bytes", "memory.max"):
                if (folder / name).exists():
                    yield folder / name
                    return
        finally:
            folder.rmdir()
    pytest.skip("no control group with a limit of memory can be made here")


def test_tasks_and_results_stay_within_the_limit_of_a_control_group(
    group: Path, tmp_path: Path
) -> None:
    """The kernel kills within a group that exceeds its limit. The task takes what it declares."""
    group.write_text(str(1 << 30))
    text = JOB.replace(f"ALL = {machine()}", "ALL = 1 << 30") + """
@ciel.task(keep=False)
def fills(mebibytes):
    return len(bytearray(b"x") * (mebibytes * MIB)) // MIB

def within():
    arrays = [made.spawn(64, number) for number in range(6)]
    ciel.wait(arrays)
    filled = fills.options(memory=ALL - 300 * MIB).spawn(500).result()
    try:
        needs.options(memory=ALL + 1).spawn().result()
    except ciel.Refused as error:
        return [filled, [total.spawn(array).result() for array in arrays], str(error)]
"""
    job = jobs.write(tmp_path, text)
    inside = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group.with_name("cgroup.procs")))
    options = ("-j2", "--json", "--store-memory=400M")
    ended = jobs.end_of(jobs.start(job, "within", options=options, beneath=inside))
    filled, totals, refused = ended.value
    assert filled == 500 and totals == [number * 64 * MIB for number in range(6)]
    assert "this machine offers 1.0 GiB" in refused
    assert store_of(ended)["written_back_bytes"] > 0
