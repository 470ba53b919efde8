"""What an alignment is worth: declared once, for the blocks and for the plain program.

It does not know sequences. Read next: block.py, plain.py.
"""

MATCH = 2
"""For a letter beside its equal."""

MISMATCH = -1
"""For a letter beside another."""

GAP = 2
"""Taken off for each letter that stands alone."""
