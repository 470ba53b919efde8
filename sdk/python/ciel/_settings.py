"""What a user or a machine has set for all programs and code asks for: home folder, time zone.

`os.path.expanduser("~/data")` and `datetime.fromtimestamp(0)` name no variable, and give the same
for every call in one process; another user, or another machine, gets something else. The names that
code uses say whether it may ask. This module knows no code. Read next: `_reached.py`.
"""

from __future__ import annotations

import os
import time

_ASKING = {
    "HOME": frozenset({"expanduser", "home"}),
    "TZ": frozenset({
        "altzone", "astimezone", "ctime", "daylight", "fromtimestamp", "localtime", "mktime",
        "strftime", "timestamp", "timezone", "tzname",
    }),
}  # fmt: skip
"""Names of functions and variables of Python by what they depend on."""


def settings_asked(used: frozenset[str]) -> dict[str, str]:
    """The settings that code may ask for which uses these names, each with its value as text."""
    return {name: _value(name) for name, asking in _ASKING.items() if not asking.isdisjoint(used)}


def _value(name: str) -> str:
    if name == "HOME":
        return os.path.expanduser("~")
    return repr((time.tzname, time.timezone, time.altzone, os.environ.get("TZ")))
