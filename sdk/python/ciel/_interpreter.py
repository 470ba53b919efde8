"""Refuses interpreters that tasks cannot run on, with the reason, before anything else is loaded.

It imports nothing of ours, so that the reason is what the user sees. The same refusal at build time
stands in `scripts/wheel/backend.py`.
"""

import sysconfig


def refusal(is_free_threaded: bool) -> str | None:
    """Why this kind of interpreter is refused, with what to use; None if it is not."""
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
