"""The wheel built from this checkout holds every file of the package, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from helpers import child_environment

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_runs_from_anywhere(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        archive.extractall(tmp_path / "site")
    package = ROOT / "src" / "regard"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert names == {f"regard/{path.relative_to(package).as_posix()}" for path in files}
    assert {"regard/py.typed", "regard/demo.toml"} <= names
    points = next((tmp_path / "site").glob("*.dist-info/entry_points.txt")).read_text(encoding="utf-8")
    assert "regard = regard.cli:main" in points
    program = "import regard, regard.cli; print(regard.__file__); regard.cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"],
        capture_output=True,
        text=True,
        env=child_environment(PYTHONPATH=str(tmp_path / "site")),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path}/site/regard/__init__.py\nUsage: regard ")
