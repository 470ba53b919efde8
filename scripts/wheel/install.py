"""Installs the wheel, optimised, into the environment whose Python runs this; not again if nothing
of what it is made of has changed.

It knows which files a wheel is made of, not how; read `backend.py` for that.
Usage: .venv/bin/python scripts/wheel/install.py
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# What the wheel is made of, from the root of the source tree.
SOURCES = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "crates",
    "pyproject.toml",
    "scripts/wheel",
    "sdk/python/ciel",
]
# Made by tools beside the sources.
MADE = {".so", ".pyc"}


def files() -> Iterator[Path]:
    """All files that the wheel is made of, in a fixed order."""
    for source in SOURCES:
        path = ROOT / source
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (one for one in inside if one.is_file() and one.suffix not in MADE)


def digest() -> str:
    """What stands for the content of all those files and for the tools that read them."""
    tools = [sys.version, os.environ.get("CIEL_WHEEL_PROFILE", "")]
    tools.append(subprocess.check_output(["cargo", "--version"], text=True))
    total = hashlib.sha256("\n".join(tools).encode())
    for path in files():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{content} {path.relative_to(ROOT)}\n".encode())
    return total.hexdigest()


def main() -> int:
    """Installs if needed; gives the exit code."""
    command = Path(sys.prefix) / "bin" / "ciel"
    stamp = Path(sys.prefix) / ".installed"
    current = digest()
    if command.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == current:
        return 0
    stamp.unlink(missing_ok=True)
    # The lists of packages have the dependencies, and maturin, in exact versions.
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install += ["--no-build-isolation", "--no-deps", "--force-reinstall", str(ROOT)]
    code = subprocess.run(install, check=False).returncode
    if code == 0:
        stamp.write_text(current, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
