"""Names of Python whose results depend on the environment, and what a task uses instead.

Tables and the rules to read them; names are whole, as `numpy.random.normal`. This module knows
neither source text nor tasks. Read next: `_lint.py`.
"""

from __future__ import annotations

NOW = "ciel.now() is recorded"
STREAM = "ciel.task_rng() gives the same numbers every time"
SEEDED = "give it a seed, for example from ciel.task_rng() or ciel.entropy(8)"
ENTROPY = "ciel.entropy(n) is recorded"
VARIABLE = "ciel.environ(NAME) is recorded"
OPENED = "it keeps what it has read before: open the file"

_ANY_USE = {
    "datetime.date.today": NOW,
    "datetime.datetime.now": NOW,
    "datetime.datetime.today": NOW,
    "datetime.datetime.utcnow": NOW,
    "linecache.getline": OPENED,
    "linecache.getlines": OPENED,
    "os.environ": VARIABLE,
    "os.environb": VARIABLE,
    "os.getenv": VARIABLE,
    "os.getenvb": VARIABLE,
    "os.getrandom": ENTROPY,
    "os.path.expandvars": VARIABLE,
    "os.urandom": ENTROPY,
    "random.SystemRandom": ENTROPY,
    "time.monotonic": NOW,
    "time.monotonic_ns": NOW,
    "time.time": NOW,
    "time.time_ns": NOW,
    "uuid.uuid1": "uuid.UUID(bytes=ciel.entropy(16), version=4) is recorded",
    "uuid.uuid4": "uuid.UUID(bytes=ciel.entropy(16), version=4) is recorded",
}

_CALLED_WITHOUT_ARGUMENTS = {
    "numpy.random.MT19937": SEEDED,
    "numpy.random.PCG64": SEEDED,
    "numpy.random.PCG64DXSM": SEEDED,
    "numpy.random.Philox": SEEDED,
    "numpy.random.RandomState": SEEDED,
    "numpy.random.SFC64": SEEDED,
    "numpy.random.SeedSequence": SEEDED,
    "numpy.random.default_rng": SEEDED,
    "random.Random": SEEDED,
    "time.asctime": NOW,
    "time.ctime": NOW,
    "time.gmtime": NOW,
    "time.localtime": NOW,
}

_ANY_FUNCTION_OF = {
    "numpy.random": "make a generator with a seed of ciel.task_rng()",
    "random": STREAM,
    "secrets": ENTROPY,
}
_HARMLESS = {"secrets.compare_digest"}

VARIABLES = ("os.environ", "os.environb")
SETTING_METHODS = frozenset({"clear", "pop", "setdefault", "update"})
"""Methods that change a mapping of variables."""

OWN_VARIABLES = "CIEL_"
"""Prefix of the variables that are the same in every run of a task."""

MODULES = frozenset({
    "datetime", "linecache", "numpy", "os", "posixpath", "random", "secrets", "time", "uuid",
})  # fmt: skip
WORDS = frozenset(
    {name.rpartition(".")[2] for name in [*_ANY_USE, *_CALLED_WITHOUT_ARGUMENTS]}
    | {"random", "secrets"}
)
"""Code that uses one of these names without renaming it contains at least one of these words."""


def instead_of_use(name: str) -> str | None:
    """What a task uses instead of `name`; `None` if `name` may be used."""
    found = _ANY_USE.get(name)
    if found is not None or name in _CALLED_WITHOUT_ARGUMENTS or name in _HARMLESS:
        return found
    module, _, last = name.rpartition(".")
    is_function = last[:1].islower()
    return _ANY_FUNCTION_OF.get(module) if is_function else None


def instead_of_bare_call(name: str) -> str | None:
    """What a task uses instead of calling `name` without arguments; `None` if it may be called."""
    return _CALLED_WITHOUT_ARGUMENTS.get(name)
