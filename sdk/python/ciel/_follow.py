"""`ciel.follow`: what a run appends to an ordered file, as it comes.

`ciel tail` follows the file in a process of its own. Read next: `_engine.py`, which finds the
command.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from ciel._engine import find_command
from ciel._errors import CielError

PART_BYTES_MAX = 1 << 16


async def follow(path: str | os.PathLike[str]) -> AsyncIterator[bytes]:
    """The bytes of an ordered file from its beginning on, until the run that writes it has ended.

    What was received at any moment is the beginning of the final file. A file that nobody writes is
    given as it is. The iterator may be left at any time.

    Raises:
        CielError: the file cannot be read.
    """
    command = find_command()
    process = await asyncio.create_subprocess_exec(
        command, "tail", "--", os.fspath(path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        while part := await process.stdout.read(PART_BYTES_MAX):
            yield part
        talk = (await process.stderr.read()).decode(errors="replace")
        if await process.wait() != 0:
            raise CielError(talk.removeprefix("error: ").strip())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
