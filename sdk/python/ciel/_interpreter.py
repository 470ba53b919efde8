"""Refuses interpreters that cannot run tasks, with the reason, before anything else is loaded.

It imports no other module of this package, so that the user sees the reason.
`scripts/wheel/backend.py` makes the same check at build time.
"""

import sysconfig


def refusal(is_free_threaded: bool) -> str | None:
    """Why this kind of interpreter is refused, and which to use; None if it is supported."""
    if not is_free_threaded:
        return None
    return (
        "ciel does not work on free-threaded CPython yet: a strand waits on a stack of its own, "
        "which is safe only under the interpreter's lock. Use the ordinary build of the same "
        "version; ciel runs tasks in several processes, so it keeps all cores busy there too"
    )


def check() -> None:
    """Raises ImportError with the reason if this interpreter is refused."""
    reason = refusal(bool(sysconfig.get_config_var("Py_GIL_DISABLED")))
    if reason is not None:
        raise ImportError(reason, name="ciel")
