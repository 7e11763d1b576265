"""One writer per run: every command that writes is refused while another process writes, and nothing is lost."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import regard
from helpers import PATIENCE, child_environment, says, wait_until
from regard.compare import Comparison, train_family
from regard.errors import RunLocked
from regard.run import Run
from regard.run_lock import FILE, RunLock
from regard.tasks import Recipe
from regard.train import checkpoint

HOLD = "import sys, pathlib, regard.run_lock as r\nwith r.RunLock(pathlib.Path(sys.argv[1])): print(); sys.stdin.read()"


@pytest.fixture(scope="module")
def copied(trained, tmp_path_factory) -> Path:
    """A copy of a trained run, which other tests use as well."""
    return shutil.copytree(trained, tmp_path_factory.mktemp("locked") / "run", symlinks=True)


@pytest.fixture
def locked(copied) -> Iterator[Path]:
    """A trained run that another process writes; it must be as it was in the end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    before = snapshot(copied)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(copied)], env=child_environment(), **pipes) as holder:
        assert holder.stdin and holder.stdout and holder.stdout.readline() == b"\n"
        yield copied
        holder.stdin.close()
    assert snapshot(copied) == before


def snapshot(run: Path) -> dict[str, bytes | None]:
    """Content of all files of a run but its lock."""
    files = [path for path in sorted(run.rglob("*")) if path.name != FILE]
    return {str(path.relative_to(run)): path.read_bytes() if path.is_file() else None for path in files}


@pytest.mark.parametrize(
    "words",
    [
        ["train", "RUN"],
        ["train", "RUN", "--fresh"],
        ["train", "RUN", "train.steps=40", "-q"],
        ["data", "prepare", "RUN"],
        ["runs", "rm", "RUN", "--yes"],
    ],
    ids=lambda words: " ".join(words),
)
def test_a_command_that_writes_is_refused_while_another_process_writes(locked, run_cli, words):
    result = run_cli(*(locked if word == "RUN" else word for word in words))
    assert result.code == 75
    assert result.err.startswith(f"error: {locked} is being written by python (process ")
    assert result.err.endswith("; wait for it or stop it\n")


def test_python_is_refused_as_well(locked):
    run = Run(locked)
    recipe = run.recipe()
    for act in (
        lambda: run.train(recipe),
        lambda: run.train(recipe, fresh=True),
        lambda: run.begin(recipe),
        lambda: run.prepare(recipe),
        lambda: run.share_prepared(Run(locked.with_name("other")), recipe),
        lambda: Run(locked.with_name("other")).share_prepared(run, recipe),
    ):
        with pytest.raises(RunLocked):
            act()


def test_what_only_reads_needs_no_lock(locked, run_cli, tmp_path):
    assert run_cli("translate", locked, typed=b"le chat\n").code == 0
    assert run_cli("average", locked, "--last", 2, "--out", tmp_path / "mean").code == 0
    assert not (tmp_path / "mean" / FILE).exists()
    assert run_cli("train", locked, "--dry-run").code == 0
    assert run_cli("compare", locked, tmp_path / "mean").code == 0
    assert (tmp_path / "mean" / "evaluation.json").exists()  # that of the other could not be stored


def test_a_run_on_a_read_only_disk_is_used_without_a_lock(trained, run_cli, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run", symlinks=True)
    folders = [run, *(path for path in run.rglob("*") if path.is_dir() and not path.is_symlink())]
    for folder in folders:
        folder.chmod(0o555)  # root may write all the same, but then the time of the change differs
    before = [folder.stat().st_mtime_ns for folder in folders]
    try:
        assert regard.load(run).translate("le chat") == regard.load(trained).translate("le chat")
        assert run_cli("runs", "show", run).code == 0
        assert [folder.stat().st_mtime_ns for folder in folders] == before
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert snapshot(run) == snapshot(trained)


def test_the_output_of_an_average_is_locked_while_it_is_written(trained, run_cli, tmp_path, monkeypatch):
    locks, real = [], checkpoint.save

    def save(run: Path, *args: object, **options: object) -> Path:
        locks.append((run / FILE).exists())
        return real(run, *args, **options)

    monkeypatch.setattr(checkpoint, "save", save)
    assert run_cli("average", trained, "--out", tmp_path / "mean").code == 0
    assert locks == [True]


def test_an_average_of_a_run_in_training_reads_again_what_was_pruned_meanwhile(trained, run_cli, tmp_path, monkeypatch):
    run = shutil.copytree(trained, tmp_path / "run", symlinks=True)
    oldest, real = min((run / "checkpoints").iterdir()), checkpoint.average

    def average(paths: list[Path]) -> object:
        if oldest.exists():
            shutil.rmtree(oldest)
        return real(paths)

    monkeypatch.setattr(checkpoint, "average", average)
    result = run_cli("average", run, "--out", tmp_path / "mean")
    assert (result.code, result.err) == (0, "the mean of steps 20, 30\n")


def test_a_family_is_locked_as_a_whole_while_its_members_are_trained(tmp_path):
    model = "{kind = 'transformer', layers = 1, width = 16, heads = 2, ffn_width = 32}"
    settings = ["data={kind = 'phrases', count = 200}", "text.vocab_size=120", "train.steps=1"]
    comparison = Comparison.read(None, [*settings, f"family.a={model}", f"family.b={model}"])
    states: list[list[bool]] = []

    def train(recipe: Recipe, path: Path) -> None:  # as `regard compare --nproc 2` does, in processes of its own
        states.append([(folder / FILE).exists() for folder in (tmp_path, tmp_path / "prepared", path)])

    assert train_family(comparison, tmp_path, train) == {}
    assert states == [[True, False, False]] * 2
    with RunLock(tmp_path), ThreadPoolExecutor(1) as pool, pytest.raises(RunLocked):
        pool.submit(train_family, comparison, tmp_path, train).result(PATIENCE)


def test_runs_unlock_removes_what_another_host_left_and_nothing_else(trained, run_cli, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run", symlinks=True)
    assert run_cli("runs", "unlock", run).err == f"{run} is not locked\n"
    record = '{"host": "elsewhere", "process": 7, "command": "regard train", "since": "2026-11-18 03:50"}'
    (run / FILE).write_text(record)
    assert run_cli("runs", "unlock", run).err == f"removed the lock of {run}\n"
    assert snapshot(run) == snapshot(trained)
    assert run_cli("runs", "unlock", tmp_path / "none").code == 3


@pytest.mark.slow
def test_of_two_trainers_a_fresh_one_and_a_removal_at_once_one_works_and_nothing_is_lost(tiny, start):
    long = ("train.steps=1000000", "train.validate_every=500000", "train.save_every=20")
    first = start("train", tiny, *long)
    wait_until(says(Path("runs/tiny/log.txt"), "device"), "training begins", first)
    others = [
        start("train", tiny, *long),
        start("train", tiny, *long, "--fresh"),
        start("train", tiny, *long, "--nproc", 2),
        start("runs", "rm", "runs/tiny", "--yes"),
    ]
    for other in others:
        _, err = other.communicate(timeout=PATIENCE)
        assert other.returncode == 75, err
        assert f"runs/tiny is being written by regard train (process {first.pid} on host " in err
        assert len(err.splitlines()) == 1, err
    first.send_signal(signal.SIGTERM)
    _, err = first.communicate(timeout=PATIENCE)
    assert first.returncode == 143, err
    found = checkpoint.newest(Path("runs/tiny"))
    assert found.checkpoint is not None and not found.refused
    lines = Path("runs/tiny/metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert sum('"began"' in line for line in lines) == 1
    assert not Path("runs/tiny", FILE).exists()
