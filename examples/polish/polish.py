"""Assembles a genome from long reads, and polishes it until a round changes nothing.

Usage: ciel run polish.py [READS] [--files]

READS is a compressed FASTQ file; by default the reads of the phage lambda in Debian's package
bowtie2-examples. Alignments go from tool to tool as streams: they are larger than the reads, and
have one reader, so they need not touch the disk. With --files they are written and read instead.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import ciel

READS = Path("/usr/share/doc/bowtie2/examples/reads/longreads.fq.gz")

ROUNDS_MAX = 8
"""Rounds of polishing, at most."""

# The reads are short for long reads, so less must overlap than miniasm expects.
ASSEMBLE = """
miniasm -s 200 -m 100 -c 3 -e 1 -n 1 -f {reads} - 2>/dev/null |
    awk '/^S/ {{ print ">" $2; print $3 }}'
"""

# racon tells formats by the names of files.
POLISH = """
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
ln -s {reads} "$folder/reads.fq"
ln -s {draft} "$folder/draft.fa"
ln -s /dev/stdin "$folder/overlaps.paf"
racon -t 1 "$folder/reads.fq" "$folder/overlaps.paf" "$folder/draft.fa" 2>/dev/null
"""

COVERAGE = "samtools sort - 2>/dev/null | samtools coverage - | cut -f 3,4,6,7"


def spelling(fasta: bytes) -> bytes:
    """The bases of the first sequence."""
    return fasta.split(b"\n", 2)[1]


def describe(name: str, fasta: bytes) -> None:
    """Prints a line about a draft: how long it is, and a digest of its bases."""
    bases = spelling(fasta)
    print(f"{name}: {len(bases)} bases, {hashlib.sha256(bases).hexdigest()[:12]}")


def main(*words: str) -> None:
    """Overlaps, draft, rounds of polishing, and how well the reads cover the result."""
    paths = [word for word in words if word != "--files"]
    alignments = None if "--files" in words else ciel.stream(single_consumer=True)
    packed = Path(paths[0]) if paths else READS
    reads = ciel.sh("gunzip -c {packed}", packed=packed)
    overlaps = ciel.sh(
        "minimap2 -t 1 -x ava-ont {reads} {reads} 2>/dev/null", reads=reads, stdout=alignments
    )
    draft = ciel.sh(ASSEMBLE, reads=reads, stdin=overlaps)
    if not draft.result():
        sys.exit("polish: the reads give no draft: too few of them overlap")
    describe("draft", draft.result())
    for number in range(1, ROUNDS_MAX + 1):
        aligned = ciel.sh(
            "minimap2 -t 1 -x map-ont {draft} {reads} 2>/dev/null",
            draft=draft,
            reads=reads,
            stdout=alignments,
        )
        better = ciel.sh(POLISH, reads=reads, draft=draft, stdin=aligned)
        if spelling(better.result()) == spelling(draft.result()):
            print(f"round {number}: nothing changed")
            break
        draft = better
        describe(f"round {number}", draft.result())
    mapped = ciel.sh(
        "minimap2 -t 1 -a -x map-ont {draft} {reads} 2>/dev/null",
        draft=draft,
        reads=reads,
        stdout=alignments,
    )
    print(ciel.sh(COVERAGE, stdin=mapped).result().decode(), end="")
