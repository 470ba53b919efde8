"""Builds the wheel: maturin's build backend with the native command beside the module.

Maturin packs either a module or a command. This builds the command first and puts it where maturin
looks for a wheel's own scripts, so one wheel has both and `ciel` is an executable file rather than
a Python script around it. It knows neither what is in the crates nor how pip calls it; read
pyproject.toml for the settings.

CIEL_WHEEL_PROFILE is the profile of cargo, `release` if unset. Tests use `dev`. With pip's setting
`-C interface=version` the module is built for the version of the interpreter that builds it, and
for no other; without, it is one for all versions.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = Mapping[str, Any] | None

PYTHON_MIN = (3, 11)
# `data` of pyproject.toml, from the root of the source tree, which is where backends run.
DATA = Path("target/wheel-data")
COMMAND = "ciel"
# Where `man` looks for it beside the folder of the command.
MANUAL = Path("share/man/man1/ciel.1")


def refusal(implementation: str, version: tuple[int, int], is_free_threaded: bool) -> str | None:
    """Why there can be no wheel for such an interpreter, with what to use; None if there can."""
    newer = ".".join(map(str, PYTHON_MIN))
    if implementation != "cpython":
        return f"ciel needs CPython, this is {implementation}; use CPython {newer} or newer"
    if version < PYTHON_MIN:
        return f"ciel needs CPython {newer} or newer, this is {version[0]}.{version[1]}"
    if is_free_threaded:
        return (
            "ciel does not work on free-threaded CPython yet: a strand waits on a stack of its "
            "own, which is safe only under the interpreter's lock. Use the ordinary build of the "
            "same version; ciel runs tasks in several processes, so it keeps all cores busy there "
            "too"
        )
    return None


def check_interpreter() -> None:
    """Ends the build with the reason if the interpreter that runs it is refused."""
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    reason = refusal(sys.implementation.name, sys.version_info[:2], is_free_threaded)
    if reason is not None:
        sys.exit(reason)


def profile() -> str:
    """The profile of cargo to build with."""
    return os.environ.get("CIEL_WHEEL_PROFILE", "release")


def build_command() -> Path:
    """Builds the command and gives the path of the executable file."""
    command = ["cargo", "build", "--locked", "--profile", profile(), "--package", "ciel-cli"]
    command += ["--message-format", "json-render-diagnostics"]
    process = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if process.returncode != 0:
        sys.exit(f"cargo ended with {process.returncode}: the command was not built")
    for line in process.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == COMMAND:
            return Path(message["executable"])
    sys.exit("cargo has built no executable file")


def stage_command() -> None:
    """Puts the command and its manual page where maturin finds them, and nothing else."""
    executable = build_command()
    shutil.rmtree(DATA, ignore_errors=True)
    scripts = DATA / "scripts"
    scripts.mkdir(parents=True)
    shutil.copy2(executable, scripts / COMMAND)
    manual = DATA / "data" / MANUAL
    manual.parent.mkdir(parents=True)
    manual.write_bytes(subprocess.check_output([executable, "man"]))


def build_args(settings: Settings) -> str:
    """What to call maturin with for pip's settings; ends the build for one that is not known."""
    interface = (settings or {}).get("interface", "stable")
    if interface not in ("stable", "version"):
        sys.exit(
            f"interface={interface} is neither stable, a module for all versions of CPython, nor "
            "version, one for that of this interpreter"
        )
    return f"--profile {profile()}" + " --no-default-features" * (interface == "version")


def prepared(settings: Settings) -> Settings:
    """Makes ready for maturin, and gives the settings to call it with, made of those of pip."""
    check_interpreter()
    args = build_args(settings)
    # Maturin's functions start its program, which lies beside an interpreter of its own.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"build-args": args}


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """The metadata of the wheel without building it, as PEP 517 has it."""
    settings = prepared(config_settings)
    DATA.mkdir(parents=True, exist_ok=True)
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """A wheel with the module and the command, as PEP 517 has it; gives its file name."""
    settings = prepared(config_settings)
    stage_command()
    return str(maturin.build_wheel(wheel_directory, settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """A wheel that leads to the source tree, with the command, as PEP 660 has it."""
    settings = prepared(config_settings)
    stage_command()
    return str(maturin.build_editable(wheel_directory, settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """An archive of all files that git knows, as PEP 517 has it; needs a checkout."""
    prepared(config_settings)
    DATA.mkdir(parents=True, exist_ok=True)
    return str(maturin.build_sdist(sdist_directory))
