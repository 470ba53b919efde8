"""Refuses interpreters that cannot run tasks, with the reason, before anything else is loaded.

It imports no other module of this package, and uses nothing newer than Python 3.6, so that the user
sees the reason.
`scripts/wheel/backend.py` makes the same check at build time.
"""

import os
import sys
from typing import Optional, Tuple

VERSION_MIN = (3, 11)


def refusal(
    is_free_threaded: bool, version: Tuple[int, int] = sys.version_info[:2]
) -> Optional[str]:
    """Why this kind of interpreter is refused, and which to use; None if it is supported."""
    if version < VERSION_MIN:
        return "ciel needs CPython {}.{} or newer, this is {}.{}".format(*VERSION_MIN, *version)
    if not is_free_threaded:
        return None
    return (
        "ciel does not work on free-threaded CPython yet: a strand waits on a stack of its own, "
        "which is safe only under the interpreter's lock. Use the ordinary build of the same "
        "version; ciel runs tasks in several processes, so it keeps all cores busy there too"
    )


def check() -> None:
    """Raises ImportError with the reason if this interpreter is refused."""
    # `sysconfig` knows it, too, after it has read all that the interpreter was built with.
    reason = refusal("t" in sys.abiflags)
    if reason is not None and "CIEL_FD" in os.environ:
        sys.exit(reason)  # a worker: the engine shows the last line to the user
    if reason is not None:
        raise ImportError(reason, name="ciel")
