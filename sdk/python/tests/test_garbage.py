"""Strands and futures in cycles, which only the garbage collector can free."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from ciel._engine_strand import EngineStrand
from ciel._future import Future

class Strand(EngineStrand):
    def __init__(self):
        self.own = None
        self.itself = self

Strand.__abstractmethods__ = frozenset()

# From then on there is no room for another name beside those that all instances share.
for _ in range(40):
    Strand()
Strand().extra = None

def leave():
    strand = Strand()
    strand.own = [Future(strand, number, None) for number in (1, 2)]
    taken = Strand()
    for number in (3, 4):
        Future(taken, number, None)
    return taken

for _ in range(10):
    taken = leave()
    gc.collect()
print(*taken.take_released(), *taken.take_released())
"""


def test_strand_that_the_collector_clears_hears_of_its_futures() -> None:
    """The collector cleared the attributes of a strand. Futures among them told the strand that
    they were gone, which made an attribute for that, and CPython read from address zero: now and
    then a worker died so in a healthy run, and its task ran twice. The strand counts natively now.
    """
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "3 4\n"), ended.stderr
