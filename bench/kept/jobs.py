"""The jobs that `compare.py` times. Each returns what it found out about itself.

Usage: ciel run jobs.py NAME COUNT [FILE]
"""

import time

import ciel

LAST = 0
"""What the root adds to its result; `compare.py` edits it."""


@ciel.task
def nothing(number: int) -> int:
    """A task that costs no more than being a task."""
    return number


@ciel.task(keep=True)
def squared(number: int) -> int:
    """A task whose result is taken in each run."""
    return number * number


@ciel.task
def rest(number: int) -> int:
    """Takes a millisecond, and of the processor only what being a task costs."""
    time.sleep(0.001)
    return number


def main(name: str, number: str, *files: str) -> dict[str, float]:
    """Runs so many tasks of the named kind, or reads files; a sum, and the seconds that it took."""
    count = int(number)
    began = time.perf_counter()
    if name == "read":
        total = sum(int(ciel.sh(f"head -c 1 {file} | wc -c", keep=True).result()) for file in files)
    else:
        task = {
            "nothing": nothing,
            "squared": squared,
            "kept": rest,
            "not-kept": rest.options(keep=False),
        }[name]
        total = sum(ciel.gather([task.spawn(number) for number in range(count)]))
    return {"total": total + LAST, "seconds": time.perf_counter() - began}
