"""Installs the wheel and the packages that it needs into the environment whose Python runs this;
not again if nothing of what they are made of has changed.

The packages are installed while cargo compiles the command, then maturin builds the module. It
knows which files a wheel is made of, not how one is built: read `backend.py` for that, and
`progress.py` for what it prints meanwhile.

CIEL_WHEEL_PROFILE is the profile of cargo, `release` if unset. With `quick`, an installed wheel of
`release` is good enough.
Usage: .venv/bin/python scripts/wheel/install.py [LIST-OF-PACKAGES...]
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from progress import Progress, Reporter, run  # noqa: E402

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
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
# Builds the wheel with the packages of the lists, maturin among them.
BUILD_WHEEL = "import sys, backend; backend.build_wheel(sys.argv[1])"


def files() -> Iterator[Path]:
    """All files that the wheel is made of, in a fixed order."""
    for source in SOURCES:
        path = ROOT / source
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (one for one in inside if one.is_file() and one.suffix not in MADE)


def digest(profile: str) -> str:
    """What stands for the content of all those files and for the tools that read them."""
    tools = [sys.version, profile]
    tools.append(subprocess.check_output(["cargo", "--version"], text=True))
    total = hashlib.sha256("\n".join(tools).encode())
    for path in files():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{content} {path.relative_to(ROOT)}\n".encode())
    return total.hexdigest()


class Packages:
    """The installation of the listed Python packages, which runs beside the compiler."""

    def __init__(self, lists: list[str]) -> None:
        self.stamp = Path(sys.prefix) / ".packages"
        self.lists = [Path(one) for one in lists]
        self.content = "".join(one.read_text(encoding="utf-8") for one in self.lists)
        self.output = ""
        self.code = 0
        self.thread = threading.Thread(target=self._install)
        self.thread.start()

    def is_installing(self) -> bool:
        """Whether pip still works."""
        return self.thread.is_alive()

    def status(self) -> str:
        """What a progress line says about it."""
        return "installing Python packages" if self.is_installing() else ""

    def wait(self) -> int:
        """Waits for pip and gives its exit code, after its messages if it failed."""
        with Reporter(Progress("2/4 Python packages")):
            self.thread.join()
        if self.code != 0:
            print(self.output, file=sys.stderr)
        return self.code

    def _install(self) -> None:
        if self.stamp.exists() and self.stamp.read_text(encoding="utf-8") == self.content:
            return
        command = [*PIP, *(word for one in self.lists for word in ("-r", str(one)))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.code, self.output = done.returncode, done.stdout + done.stderr
        if self.code == 0:
            self.stamp.write_text(self.content, encoding="utf-8")


def crates(*packages: str) -> int:
    """How many crates cargo compiles for packages of ours, with the packages themselves.

    Downloads those that are missing.
    """
    tree = ["cargo", "tree", "--locked", "--edges", "normal,build", "--prefix", "none"]
    tree += ["--format", "{p}", *(word for one in packages for word in ("--package", one))]
    found = subprocess.run(tree, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return len({line.removesuffix(" (*)") for line in found.splitlines() if line})


def compile_command(profile: str, packages: Packages) -> int:
    """Compiles the command; gives the exit code."""
    with Reporter(Progress("2/4 downloading crates", packages.status)):
        total = crates("ciel-cli")
    title = f"2/4 compiling the command `ciel`, profile {profile}"
    progress = Progress(title, packages.status, crates_max=total)
    build = ["cargo", "build", "--locked", "--profile", profile, "--package", "ciel-cli"]
    return run(build, progress, ROOT)


def build_wheel() -> int:
    """Builds and installs the wheel, with the command that is compiled already."""
    # The backend asks cargo for the command once more, so its crates are counted here, too.
    total = crates("ciel-cli", "ciel-python")
    progress = Progress("3/4 compiling the Python module", crates_max=total)
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent)
    with tempfile.TemporaryDirectory() as folder:
        code = run([sys.executable, "-c", BUILD_WHEEL, folder], progress, ROOT)
        if code != 0:
            return code
        wheels = map(str, Path(folder).glob("*.whl"))
        # The lists of packages have the dependencies in exact versions.
        install = [*PIP, "--no-deps", "--no-index", "--force-reinstall", *wheels]
        return subprocess.run(install, check=False).returncode


def main() -> int:
    """Installs if needed; gives the exit code."""
    profile = os.environ.get("CIEL_WHEEL_PROFILE", "release")
    packages = Packages(sys.argv[1:])
    command = Path(sys.prefix) / "bin" / "ciel"
    stamp = Path(sys.prefix) / ".installed"
    enough = {digest(profile), *([digest("release")] if profile == "quick" else [])}
    if command.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") in enough:
        return packages.wait() if packages.is_installing() else packages.code
    stamp.unlink(missing_ok=True)
    code = compile_command(profile, packages)
    if packages.is_installing() or packages.code != 0:
        code = packages.wait() or code
    code = code or build_wheel()
    if code == 0:
        stamp.write_text(digest(profile), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
