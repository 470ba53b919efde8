"""What a large value costs on its way from one task to ten: one write, and no memory of its own.

The root of each job counts what all processes of its run have written by calls of the system, and
each reader how much memory of its own its process has taken while it read. It knows nothing of how
values are stored. `CIEL_COPY_BYTES=1000000000` does the same with as many bytes.
"""

from __future__ import annotations

import os
from pathlib import Path

import jobs
import pytest

BYTES = int(os.environ.get("CIEL_COPY_BYTES", 32 << 20))
"""Bytes of the value; a tenth of them is more than everything else that the job writes."""

READERS = 10

JOB = """
import os
from pathlib import Path

import ciel

BYTES, READERS = {bytes}, {readers}

def fields(path):
    lines = Path(path).read_text().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)

def parent(process):
    return int(fields(f"/proc/{process}/status").get("PPid", "0"))

def written():
    # The engine starts the spawner, which starts the workers.
    engine = int(next(Path("state/runs").glob("*/lock")).read_text())
    total, beneath = 0, {engine}
    for process in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            if process in beneath or parent(process) in beneath:
                beneath.add(process)
                total += int(fields(f"/proc/{process}/io")["wchar"])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total

def own_memory():
    return int(fields("/proc/self/status")["RssAnon"].split()[0]) << 10

def array():
    import numpy
    return numpy.arange(BYTES // 8, dtype=numpy.int64)

def frame():
    import numpy
    import pandas
    table = numpy.arange(BYTES // 8, dtype=float).reshape(-1, 4)
    return pandas.DataFrame(table, columns=list("abcd"))

def nested():
    whole = array()
    return {"parts": [whole[: BYTES // 16], (whole[BYTES // 16 :], "text")]}

def parts_of(value):
    if isinstance(value, dict):
        first, (second, _) = value["parts"]
        return [first, second]
    return [value]

# What is retried is a task of its own, never a call within its caller.
@ciel.task(keep=False, retries=1)
def made(kind):
    return globals()[kind]()

@ciel.task(keep=False, retries=1)
def read(value, number):
    import numpy
    before = own_memory()
    total = sum(float(numpy.asarray(part).sum()) for part in parts_of(value))
    return total, own_memory() - before

def main(kind, way):
    before = written()
    if way == "result":
        value = made.spawn(kind)
    elif way == "put":
        value = ciel.put(globals()[kind]())
    else:
        value = globals()[kind]()
    found = ciel.gather([read.spawn(value, number) for number in range(READERS)])
    totals = {total for total, _ in found}
    return [written() - before, len(totals), max(grown for _, grown in found)]
"""


def costs(folder: Path, kind: str, way: str) -> tuple[int, int]:
    """Bytes that all processes of the run wrote, and the most that a reader took for itself."""
    text = JOB.replace("{bytes}", str(BYTES)).replace("{readers}", str(READERS))
    written, totals, own = jobs.run(folder, text, kind, way).value
    assert totals == 1, "each reader has the same value"
    return written, own


@pytest.mark.parametrize("kind", ["array", "frame", "nested"])
@pytest.mark.parametrize("way", ["result", "put", "argument"])
def test_large_value_is_written_once_and_mapped_by_all_readers(
    kind: str, way: str, tmp_path: Path
) -> None:
    pytest.importorskip("pandas" if kind == "frame" else "numpy")
    written, own = costs(tmp_path, kind, way)
    assert BYTES <= written < BYTES * 1.1, f"{written / BYTES:.2f} times its bytes were written"
    assert own < BYTES / 10, f"a reader took {own} bytes of its own"


SMALL = """
from pathlib import Path

import ciel

def main():
    futures = [ciel.put(bytes([number % 256]) * 900) for number in range(100_000)]
    files = len(list(Path("state/runs").glob("*/objects/*")))
    ends = [future.result() for future in (futures[0], futures[-1])]
    return [files, [[len(end), end[0]] for end in ends]]
"""


def test_hundred_thousand_small_objects_have_no_files(tmp_path: Path) -> None:
    assert jobs.run(tmp_path, SMALL).value == [0, [[900, 0], [900, 99_999 % 256]]]
