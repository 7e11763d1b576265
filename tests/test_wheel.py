"""Wheel and source archive built from this checkout are complete, and the wheel installs into a new environment."""

from __future__ import annotations

import email
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from helpers import child_environment

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "regard"
FILES = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]

pytestmark = pytest.mark.slow


def run(*command: str | Path, **options: object) -> str:
    """The output of a command that must not fail."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


EXCHANGE = ("gguf", "ctranslate2", "onnx")
"""extras that exchange models with other libraries"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and source archive, built as `make build` does."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def test_twine_finds_nothing_to_complain_about(dist: Path) -> None:
    assert len(list(dist.iterdir())) == 2
    assert run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir()).count("PASSED") == 2


def test_wheel_and_source_archive_hold_every_file_of_the_package(dist: Path, wheel: Path) -> None:
    names = {path.relative_to(PACKAGE).as_posix() for path in FILES}
    assert {"py.typed", "demo.toml", "look/page/index.html"} <= names
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == {f"regard/{n}" for n in names}
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/regard/{name}" for name in names} | {"pyproject.toml", "README.md", "LICENSE", "Makefile"} <= members


def test_requirements_of_every_extra_can_be_read_and_those_of_the_tests_are_installed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    extras = metadata.get_all("Provides-Extra", [])
    assert {"studio", "picture", "tensorboard", *EXCHANGE, "docs", "release", "test", "bench"} == set(extras)
    for extra in ("", "studio", "picture", "tensorboard", *EXCHANGE, "test"):
        chosen = [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": extra})]
        assert len(chosen) >= 10
        for requirement in chosen:
            version = importlib.metadata.version(requirement.name)
            assert requirement.specifier.contains(version, prereleases=True), (extra, str(requirement), version)


def test_the_wheel_installs_into_a_new_environment_and_works(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python, program = (tmp_path / "venv" / "bin" / name for name in ("python", "regard"))
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # the dependencies of this environment, behind its own packages; a .pth file in there, such as that of an editable
    # installation, is not read
    folders = dict.fromkeys([*(p for p in sys.path if "site-packages" in p), sysconfig.get_path("purelib")])
    (site / "dependencies.pth").write_text("\n".join(folders) + "\n", encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", "--force-reinstall", wheel)
    environment = {name: value for name, value in child_environment().items() if name != "PYTHONPATH"}
    environment |= {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    options = {"cwd": tmp_path, "env": environment}
    where = run(python, "-c", "import regard; print(regard.__file__)", **options)
    assert where.startswith(str(site))
    assert run(program, "--version", **options).startswith("regard ")
    assert "All numbers are those of the lesson" in run(program, "lesson", "rnn", **options)
    assert "kind" in run(program, "config", "explain", "model.kind", **options)
