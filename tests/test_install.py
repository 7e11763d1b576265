"""Installing: the front page's block, the Makefile's variables, and a name that calls the program."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from helpers import PATIENCE
from regard.program import program_name, runnable

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def make(*arguments, **variables):
    """Run make in the checkout, outside of CI unless `variables` say so."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "MAKEFLAGS", "MAKELEVEL")}
    command = ["make", "--no-print-directory", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.mark.parametrize("index", ["", "https://example.org/whl/cpu"])
def test_the_block_of_the_front_page_installs_what_the_package_declares(index, tmp_path):
    (block,) = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)
    block = re.sub("^TORCH_INDEX=.*", f"TORCH_INDEX={index}", block)
    for name in ("python3", "pip"):  # print their arguments instead of working for minutes
        (tmp_path / name).write_text('#!/bin/sh\nprintf "%s|" "$0" "$@"; echo\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").write_text("echo activated", encoding="utf-8")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", "-e"], input=block, cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    venv, activated, torch, package = done.stdout.replace(f"{tmp_path}/", "").splitlines()
    assert (venv, activated) == ("python3|-m|venv|.venv|", "activated")
    (needed,) = (line for line in PROJECT["dependencies"] if line.startswith("torch"))
    assert torch == f"pip|install|{needed}|" + (f"--index-url={index}|" if index else "")
    assert package == "pip|install|.[studio]|" and "studio" in PROJECT["optional-dependencies"]


def test_torch_alone_comes_from_the_index_that_make_is_given(tmp_path):
    index = "https://example.org/whl/cpu"
    (tmp_path / "pyproject.toml").touch()
    stamp = tmp_path / "venv" / ".user"
    lines = make("-n", f"VENV={stamp.parent}", f"TORCH_INDEX={index}", stamp).stdout.splitlines()
    assert [line.endswith(f'"torch>=2.10,<2.14" --index-url {index}') for line in lines if index in line] == [True]
    assert any("--editable ." in line for line in lines)
    assert "--index-url" not in make("-n", f"VENV={stamp.parent}", stamp).stdout


def test_make_test_says_what_it_installs_before_anything_else():
    done = make("-n", "test")
    assert done.returncode == 0 and "announce" not in done.stdout
    said = make("announce")
    assert said.returncode == 0
    for name in (
        "chromium-headless-shell",
        "fonts-noto-core",
        "axe-core@",
        "typescript@5 and prettier@3",
        "apt-get",
        "SYSTEM=0",
    ):
        assert name in said.stdout, name
    assert done.stdout.index("make test installs") < done.stdout.index("pytest")


def test_without_system_packages_make_lists_what_is_not_tested_and_ci_refuses():
    done = make("announce", "SYSTEM=0")
    assert done.returncode == 0
    for name in ("studio's page in a browser", "accessibility", "types and format", "nothing is installed"):
        assert name in done.stdout, name
    plan = make("-n", "test", "SYSTEM=0").stdout
    assert 'if [ "0" = 0 ]' in plan  # npx is not called
    refused = make("announce", "SYSTEM=0", CI="true")
    assert refused.returncode == 2
    assert "CI is set, and CI leaves nothing out: use SYSTEM=1" in refused.stdout


def scripts(folder):
    """A folder with a python and a regard."""
    folder.mkdir(parents=True)
    for name in ("python", "regard"):
        (folder / name).write_text("#!/bin/sh\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def test_the_program_is_called_by_name_where_the_shell_finds_it_and_by_path_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own, other = scripts(tmp_path / ".venv" / "bin"), scripts(tmp_path / "other")
    monkeypatch.setattr(sys, "executable", str(own / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert runnable("regard eval runs/demo") == ".venv/bin/regard eval runs/demo"
    monkeypatch.setenv("PATH", str(own))
    assert runnable("regard eval runs/demo") == "regard eval runs/demo"
    monkeypatch.setenv("PATH", f"{other}{os.pathsep}{own}")  # the name leads to another installation
    assert program_name() == ".venv/bin/regard"
    monkeypatch.chdir(other)
    assert program_name() == str(own / "regard")
    (own / "regard").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert program_name() == f"{own / 'python'} -m regard"
