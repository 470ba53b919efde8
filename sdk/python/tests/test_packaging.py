"""The wheel: one file with the module and the native command, for every CPython that is allowed.

The wheel is that of `CIEL_WHEELS` if it is set, otherwise it is built here, unoptimised. What the
package does is the business of the other tests.
"""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

import ciel
from ciel import _interpreter

ROOT = Path(__file__).resolve().parents[3]
VERSIONS = ["3.11", "3.12", "3.13"]
RUNNING = "%d.%d" % sys.version_info[:2]
# What depends most on the interpreter; the whole suite runs with the one that runs this.
LANGUAGE_TESTS = ["test_language.py", "test_values.py", "test_worker.py", "test_reached.py"]
EXECUTOR_TESTS = "test_executor_cpython.py"
COMMAND = "data/scripts/ciel"
# How long a program of a test may take, in seconds.
DEADLINE_S = 300.0

SMOKE = """\
import sys
import ciel
from ciel import _native
position = _native.position_of_root(b"job")
assert _native.label_of("job", position).startswith("job@")
print("%d.%d" % sys.version_info[:2], ciel.__version__)
"""


def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pinned(name: str) -> dict[str, str]:
    """The exact versions of a list of packages."""
    lines = (ROOT / "sdk/python" / name).read_text(encoding="utf-8").splitlines()
    return {line.split("==")[0]: line.split("==")[1] for line in lines}


def output_of(command: list[str | Path], **extra: str) -> str:
    """What a program prints; it must end well. It sees no packages but its own."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command,
        env=environment | extra,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("CIEL_WHEELS") or tmp_path_factory.mktemp("wheels"))
    if "CIEL_WHEELS" not in os.environ:
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation"]
        build += ["--no-deps", "--wheel-dir", str(folder), str(ROOT)]
        output_of([*build], CIEL_WHEEL_PROFILE="dev")
    wheels = list(folder.glob("ciel-*.whl"))
    assert len(wheels) == 1
    return wheels[0]


@pytest.fixture(scope="session")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("command") / "ciel"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(COMMAND)]
        assert len(names) == 1
        path.write_bytes(archive.read(names[0]))
    path.chmod(0o755)
    return path


def python_of(version: str) -> Path | None:
    """A CPython of that version, on PATH or where pyenv keeps its own."""
    on_path = [Path(found)] if (found := shutil.which(f"python{version}")) else []
    versions = Path.home() / ".pyenv" / "versions"
    candidates = [*on_path, *versions.glob(f"{version}.*/bin/python{version}")]
    asked = "import sys; print('%s %d.%d' % (sys.implementation.name, *sys.version_info[:2]))"
    for path in candidates:
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == f"cpython {version}":
            return path
    return None


def free_threaded_python() -> Path | None:
    """A CPython without the interpreter's lock, on PATH or where pyenv keeps its own."""
    names = ["python3.13t", "python3.14t"]
    on_path = [Path(found) for name in names if (found := shutil.which(name))]
    kept = [*(Path.home() / ".pyenv" / "versions").glob("*t/bin/python3")]
    for path in [*on_path, *kept]:
        if subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def script(name: str) -> ModuleType:
    """A module of `scripts/wheel`, which is no package."""
    folder = str(ROOT / "scripts" / "wheel")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def test_wheel_has_module_types_and_command(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for name in ["ciel/__init__.py", "ciel/_native.abi3.so", "ciel/_native.pyi", "ciel/py.typed"]:
        assert name in names
    assert len([name for name in names if name.endswith("data/share/man/man1/ciel.1")]) == 1
    assert [name for name in names if name.endswith(".so")] == ["ciel/_native.abi3.so"]
    assert not [name for name in names if "tests/" in name]


def test_wheel_is_of_the_version_and_for_every_python_from_the_first(wheel: Path) -> None:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = manifest["workspace"]["package"]["version"]
    assert wheel.name.startswith(f"ciel-{version}-cp311-abi3-")
    assert ciel.__version__ == version


def test_command_in_the_wheel_is_the_program_itself(command: Path, wheel: Path) -> None:
    assert command.read_bytes()[:4] == b"\x7fELF"
    assert output_of([command, "--version"]).startswith("ciel ")
    with zipfile.ZipFile(wheel) as archive:
        entries = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert entries == []


def test_command_of_an_environment_is_the_program_itself(
    command: Path, environments: dict[str, Path]
) -> None:
    """The command that an installer leaves was once a Python script, which took 30 ms more."""
    if not environments:
        pytest.skip("no CPython is here but the one of the tests")
    for environment in environments.values():
        installed = environment / "bin" / "ciel"
        assert installed.read_bytes() == command.read_bytes()
        assert output_of([installed, "--version"]) == output_of([command, "--version"])


@pytest.fixture(scope="session")
def environments(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Virtual environments with the one wheel, by version, for each CPython found."""
    made: dict[str, Path] = {}
    for version in VERSIONS:
        python = python_of(version)
        if python is None:
            continue
        environment = tmp_path_factory.mktemp(f"python-{version}")
        output_of([python, "-m", "venv", "--without-pip", environment])
        pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
        lists = ["-r", str(ROOT / "sdk/python/requirements.txt")]
        options = ["--quiet", "--disable-pip-version-check", "--prefer-binary", *lists]
        output_of([*pip, "install", *options, str(wheel)])
        made[version] = environment
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_one_wheel_works_with_each_python(version: str, environments: dict[str, Path]) -> None:
    if version not in environments:
        pytest.skip(f"no CPython {version} here")
    python = environments[version] / "bin" / "python"
    assert output_of([python, "-c", SMOKE]).split() == [version, ciel.__version__]
    check: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "check"]
    assert "No broken requirements" in output_of(check)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != RUNNING])
def test_language_works_with_each_python(
    version: str, environments: dict[str, Path], tmp_path: Path
) -> None:
    if version not in environments:
        pytest.skip(f"no CPython {version} here")
    run_tests(environments[version], LANGUAGE_TESTS, tmp_path)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != RUNNING])
def test_cpythons_own_tests_of_executors_pass_with_each_python_that_ships_them(
    version: str, environments: dict[str, Path], tmp_path: Path
) -> None:
    if version not in environments:
        pytest.skip(f"no CPython {version} here")
    python = environments[version] / "bin" / "python"
    package = "test.test_concurrent_futures"
    asked = f"import importlib.util as u; print(u.find_spec({package!r}) is not None)"
    if output_of([python, "-c", asked]).strip() != "True":
        pytest.skip(f"CPython {version} comes without its tests here")
    run_tests(environments[version], [EXECUTOR_TESTS], tmp_path)


def run_tests(environment: Path, names: list[str], storage: Path) -> None:
    """Runs files of these tests in another environment; none may fail, and some must pass."""
    python = environment / "bin" / "python"
    versions = pinned("requirements-test.txt")
    tools = [f"{name}=={versions[name]}" for name in ("pytest", "hypothesis")]
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    output_of([*pip, "--disable-pip-version-check", *tools])
    files = [str(ROOT / "sdk/python/tests" / name) for name in names]
    words = ["-m", "pytest", "-q", "-k", "not million", "-p", "no:cacheprovider", *files]
    own = {"PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(storage)}
    own["CIEL_COMMAND"] = str(environment / "bin" / "ciel")
    told = output_of([python, *words], **own)
    assert " passed" in told.splitlines()[-1] and "failed" not in told.splitlines()[-1]


def test_ranges_of_the_wheel_allow_the_pinned_versions() -> None:
    versions = pinned("requirements.txt")
    ranges = [Requirement(one) for one in settings()["project"]["dependencies"]]
    assert {one.name for one in ranges} == versions.keys()
    assert all(one.specifier.contains(versions[one.name]) for one in ranges)


def test_build_needs_exactly_the_pinned_packages() -> None:
    versions = pinned("requirements-build.txt")
    needed = [f"{name}=={version}" for name, version in versions.items()]
    assert settings()["build-system"]["requires"] == needed


def test_wheel_is_installed_again_only_if_its_sources_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = script("install")
    for source in install.SOURCES:
        assert (ROOT / source).exists()
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).write_text(source, encoding="utf-8")
    package = tmp_path / "sdk/python/ciel"
    package.unlink()
    package.mkdir()
    monkeypatch.setattr(install, "ROOT", tmp_path)
    before = install.digest("release")
    (package / "_native.abi3.so").write_bytes(b"made")
    assert install.digest("release") == before
    (package / "new.py").write_text("", encoding="utf-8")
    assert install.digest("release") != before


def test_interpreters_that_cannot_work_are_refused_with_a_reason() -> None:
    backend = script("backend")
    assert backend.refusal("cpython", (3, 11), False) is None
    assert backend.refusal("cpython", (3, 13), False) is None
    for bad in [("cpython", (3, 13), True), ("cpython", (3, 10), False), ("pypy", (3, 11), False)]:
        assert re.search(r"\b[Uu]se\b|newer", backend.refusal(*bad))
    assert backend.refusal("cpython", (3, 13), True) == _interpreter.refusal(True)
    assert backend.refusal("cpython", (3, 10), False) == _interpreter.refusal(False, (3, 10))


def test_wheel_is_for_all_versions_unless_it_is_asked_to_be_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CIEL_WHEEL_PROFILE", raising=False)
    backend = script("backend")
    assert backend.build_args(None) == "--profile release"
    assert backend.build_args({"interface": "stable"}) == "--profile release"
    for_one = backend.build_args({"interface": "version"})
    assert for_one == "--profile release --no-default-features"
    with pytest.raises(SystemExit, match="neither stable, .* nor version"):
        backend.build_args({"interface": "3.11"})


def test_import_by_a_free_threaded_python_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    _interpreter.check()
    monkeypatch.setattr(sys, "abiflags", "t")
    with pytest.raises(ImportError, match="Use the ordinary build"):
        _interpreter.check()


def test_older_python_is_refused_by_a_sentence_when_it_imports_or_runs_tasks(
    command: Path, tmp_path: Path
) -> None:
    """The native half ended the import with `undefined symbol: PyType_GetName`."""
    python = python_of("3.10")
    if python is None:
        pytest.skip("no CPython 3.10 here")
    reason = "ciel needs CPython 3.11 or newer, this is 3.10"
    package = {"PYTHONPATH": str(ROOT / "sdk" / "python")}
    words: list[str | Path] = [python, "-c", "import ciel"]
    done = subprocess.run(words, env=package, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == f"ImportError: {reason}"
    job = tmp_path / "job.py"
    job.write_text("def main():\n    return 1\n", encoding="utf-8")
    words = [command, "run", "--quiet", f"--state={tmp_path / 'state'}", job]
    package["CIEL_PYTHON"] = str(python)
    done = subprocess.run(words, env=package, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "hint: Python tasks need CPython 3.11 or newer" in done.stderr
    assert "Traceback" not in done.stderr


def test_free_threaded_python_is_refused_when_it_imports() -> None:
    python = free_threaded_python()
    if python is None:
        pytest.skip("no free-threaded CPython here")
    package = ROOT / "sdk" / "python"
    done = subprocess.run(
        [python, "-c", "import ciel"],
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Use the ordinary build" in done.stderr
