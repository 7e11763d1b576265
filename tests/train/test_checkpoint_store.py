"""A checkpoint is complete or absent, whenever the writer dies; so are links, copies, pruning and cleaning up."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import PATIENCE, child_environment, wait_until
from regard.train import checkpoint_store
from regard.train.checkpoint import best, newest, read, save

DOOMED = Path(__file__).parent / "doomed.py"


def kill_writers(*arguments: object) -> list[dict[str, Any]]:
    command = [sys.executable, str(DOOMED), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, env=child_environment())
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def save_value(run: Path, step: int, value: float = 0.0, **options: Any) -> Path:
    return save(run, step, {"model": {"w": torch.full((10,), value)}}, {"value": value}, **options)


def names(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("scenario", "old", "new"),
    [
        pytest.param("first", (None, None, None), (800, 1000, None), id="first", marks=SLOW),
        pytest.param("second", (800, 1000, None), (1600, 1000, None), id="second"),
        pytest.param("pruning", (2400, 1000, 800), (3200, 1000, 3200), id="pruning", marks=SLOW),
        pytest.param("again", (800, 1000, None), (800, 999, None), id="again", marks=SLOW),
        pytest.param("copied", (1600, 1000, 1600), (2400, 1000, 2400), id="copied", marks=SLOW),
    ],
)
def test_a_writer_killed_before_any_call_leaves_the_old_checkpoint_or_the_new_one(
    tmp_path: Path, scenario: str, old: tuple[Any, ...], new: tuple[Any, ...]
) -> None:
    kills = kill_writers("each", scenario, tmp_path)
    assert len(kills) > 10 and kills[-1]["call"] == "done"
    found = [(kill["step"], kill["size"]) for kill in kills]
    assert found[0] == old[:2] and found[-1] == new[:2]
    switch = found.index(new[:2])
    assert found == [old[:2]] * switch + [new[:2]] * (len(found) - switch)
    for kill in kills:
        assert kill["refused"] == [] and kill["complete"], kill
        # A copied directory cannot be replaced by a link atomically: for a moment there is no best.
        assert kill["best"] in ((old[2], new[2], None) if scenario == "copied" else (old[2], new[2])), kill
        after = kill["after"]
        assert (after["step"], after["size"], after["best"], after["refused"], kill["left"]) == (*new, [], []), kill


def test_everything_is_flushed_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: set[int] = set()
    waiting: list[int] = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def checked_fsync(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        flushed.add(inode)
        if inode in waiting:
            waiting.remove(inode)
        fsync(descriptor)

    def checked_rename(source: Path, target: Path) -> None:
        assert not waiting, "the folder of an earlier rename was not flushed before this one"
        inside = [source, *source.iterdir()]
        assert len(inside) == 4 and {path.stat().st_ino for path in inside} <= flushed
        rename(source, target)
        waiting.append(target.parent.stat().st_ino)

    def checked_replace(source: Path, target: Path) -> None:
        assert not waiting, "a link was moved before the rename of its target was flushed"
        replace(source, target)
        waiting.append(target.parent.stat().st_ino)

    run = tmp_path / "run"
    save_value(run, 1)
    monkeypatch.setattr(os, "fsync", checked_fsync)
    monkeypatch.setattr(os, "rename", checked_rename)
    monkeypatch.setattr(os, "replace", checked_replace)
    save_value(run, 2, best=True)
    assert not waiting


@pytest.mark.slow
def test_twenty_writers_killed_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    kills = kill_writers("random", 20, tmp_path)
    assert len(kills) == 20
    for kill in kills:
        assert kill["step"] >= kill["before"] and kill["size"] == 300_000
        assert kill["complete"] and not kill["refused"]
    assert kills[-1]["step"] > 1


@pytest.mark.slow
def test_a_reader_beside_a_writer_always_finds_a_good_checkpoint(tmp_path: Path) -> None:
    run = tmp_path / "run"
    steps: list[int] = []

    def reads_enough() -> bool:
        found = newest(run)
        assert not found.refused
        if found.checkpoint:
            steps.append(found.checkpoint.step)
        else:
            assert not steps
        return len(set(steps)) == 30

    with subprocess.Popen([sys.executable, DOOMED, "write", "1", tmp_path]) as writer:
        try:
            wait_until(reads_enough, "30 different checkpoints are read", writer, pause=0)
        finally:
            writer.kill()
    assert steps == sorted(steps)


def test_a_reader_whose_checkpoint_is_pruned_during_the_read_takes_the_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_value(tmp_path, 100)
    save_value(tmp_path, 200)
    file_digest, later = hashlib.file_digest, [300, 400]

    def slow_digest(*arguments: Any) -> Any:
        while later:
            save_value(tmp_path, later.pop(0))
        return file_digest(*arguments)

    monkeypatch.setattr(hashlib, "file_digest", slow_digest)
    found = newest(tmp_path)
    assert found.checkpoint and found.checkpoint.step == 400 and found.refused == ()


def test_the_newest_the_best_and_the_steps_to_keep_stay(tmp_path: Path) -> None:
    for step in (100, 200, 300, 400, 500):
        save_value(tmp_path, step, best=step == 200, keep_steps=(100,))
    assert names(tmp_path) == ["00000100", "00000200", "00000400", "00000500"]
    save_value(tmp_path, 600, best=True, keep=3)
    assert names(tmp_path) == ["00000400", "00000500", "00000600"]
    assert (tmp_path / "last").readlink() == (tmp_path / "best").readlink() == Path("checkpoints/00000600")


def test_a_checkpoint_that_lost_a_file_does_not_count_as_kept(tmp_path: Path) -> None:
    save_value(tmp_path, 100)
    damaged = save_value(tmp_path, 200)
    (damaged / "model.safetensors").unlink()
    save_value(tmp_path, 300)
    assert names(tmp_path) == ["00000100", "00000200", "00000300"]
    save_value(tmp_path, 400)
    assert names(tmp_path) == ["00000300", "00000400"]


def test_a_step_saved_again_with_the_same_content_is_skipped(tmp_path: Path) -> None:
    save_value(tmp_path, 100)
    path = save_value(tmp_path, 200)
    before = (path.stat().st_ino, (path / "model.safetensors").stat().st_mtime_ns)
    assert save_value(tmp_path, 200) == path
    assert before == (path.stat().st_ino, (path / "model.safetensors").stat().st_mtime_ns)
    assert names(tmp_path) == ["00000100", "00000200"]


def test_a_step_saved_again_with_other_content_replaces_the_old_one(tmp_path: Path) -> None:
    save_value(tmp_path, 100)
    for value in (0.0, 1.0, 2.0):
        save_value(tmp_path, 200, value)
        found = newest(tmp_path)
        assert found.checkpoint and found.checkpoint.state == {"value": value}
    assert names(tmp_path) == ["00000100", "00000200-3"]


def test_a_damaged_checkpoint_is_not_taken_for_the_same_step_saved_again(tmp_path: Path) -> None:
    path = save_value(tmp_path, 100)
    data = bytearray((path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (path / "model.safetensors").write_bytes(data)
    assert save_value(tmp_path, 100) != path
    assert newest(tmp_path).refused == ()


def test_steps_of_more_than_eight_digits_come_after_the_others(tmp_path: Path) -> None:
    for step in (99_999_999, 100_000_000, 2_000_000_000):
        save_value(tmp_path, step)
    assert names(tmp_path) == ["100000000", "2000000000"]
    found = newest(tmp_path)
    assert found.checkpoint and found.checkpoint.step == 2_000_000_000


def test_a_run_without_links_is_read_by_its_steps(tmp_path: Path) -> None:
    for step in (100, 200):
        save_value(tmp_path, step, best=True)
    (tmp_path / "last").unlink()
    (tmp_path / "best").unlink()
    found = newest(tmp_path)
    assert found.checkpoint and found.checkpoint.step == 200
    assert best(tmp_path) is None


def test_a_link_that_became_a_text_file_is_followed(tmp_path: Path) -> None:
    for step in (100, 200):
        save_value(tmp_path, step, best=step == 100)
    for name in ("last", "best"):
        target = str((tmp_path / name).readlink())
        (tmp_path / name).unlink()
        (tmp_path / name).write_text(target)
    checkpoint = best(tmp_path)
    assert checkpoint and checkpoint.step == 100
    save_value(tmp_path, 300)
    assert (tmp_path / "last").is_symlink()


def test_a_link_file_with_invalid_content_is_ignored(tmp_path: Path) -> None:
    save_value(tmp_path, 100)
    for content in (b"", b"\x00\x01", b"\xff" * 5000, b"checkpoints/../..", b"/etc"):
        (tmp_path / "last").unlink()
        (tmp_path / "last").write_bytes(content)
        found = newest(tmp_path)
        assert found.checkpoint and found.checkpoint.step == 100 and not found.refused


def test_a_copy_with_directories_for_links_is_read_and_resumed(tmp_path: Path) -> None:
    run, copy = tmp_path / "run", tmp_path / "copy"
    for step in (100, 200, 300):
        save_value(run, step, best=step == 100)
    shutil.copytree(run, copy, symlinks=False)
    assert not (copy / "last").is_symlink()
    found, best_one = newest(copy), best(copy)
    assert found.checkpoint and found.checkpoint.path == copy / "last" and best_one and best_one.step == 100
    save_value(copy, 400)
    assert (copy / "last").is_symlink() and not (copy / "best").is_symlink()
    save_value(copy, 500, best=True)
    assert (copy / "best").readlink() == Path("checkpoints/00000500")
    assert names(copy) == ["00000400", "00000500"]


def test_a_copy_of_last_alone_is_read_and_kept_when_the_run_resumes(tmp_path: Path) -> None:
    save_value(tmp_path / "run", 100)
    shutil.copytree(tmp_path / "run" / "last", tmp_path / "copy" / "last")
    found = newest(tmp_path / "copy")
    assert found.checkpoint and found.checkpoint.step == 100
    save_value(tmp_path / "copy", 200)
    assert names(tmp_path / "copy") == ["00000100", "00000200"]


def test_a_run_that_went_through_a_zip_file_is_read(tmp_path: Path) -> None:
    save_value(tmp_path / "run", 100)
    archive = shutil.make_archive(str(tmp_path / "run"), "zip", tmp_path / "run")
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path / "out")
    found = newest(tmp_path / "out")
    assert found.checkpoint and found.checkpoint.step == 100


def test_where_links_are_impossible_a_text_file_takes_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)
    for step in (100, 200):
        save_value(tmp_path, step, best=step == 100)
    assert (tmp_path / "last").read_text() == "checkpoints/00000200"
    checkpoint = best(tmp_path)
    assert checkpoint and checkpoint.step == 100


def test_files_of_a_living_writer_are_not_removed(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        checkpoint_store.remove_stale(tmp_path)
        assert folder.is_dir()

    checkpoint_store.commit(tmp_path, 1, write)


def test_files_of_dead_writers_are_removed_by_the_next_save(tmp_path: Path) -> None:
    save_value(tmp_path, 100)
    (tmp_path / "checkpoints" / f".tmp-00000200-{os.getpid()}-abcd").mkdir()
    (tmp_path / "checkpoints" / ".tmp-00000300-1-abcd").mkdir()
    (tmp_path / "checkpoints" / ".tmp-00000300-1-abcd" / "model.safetensors").write_bytes(b"half")
    (tmp_path / ".tmp-last-1-abcd").symlink_to("checkpoints/00000200")
    save_value(tmp_path, 200)
    assert names(tmp_path) == ["00000100", "00000200"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "last"]


def test_an_exception_in_the_writer_leaves_no_file(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "half").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checkpoint_store.commit(tmp_path, 1, write)
    assert names(tmp_path) == []


def test_after_a_rollback_the_run_resumes_there_and_later_checkpoints_are_not_the_newest(tmp_path: Path) -> None:
    for step in (100, 200, 300):
        save_value(tmp_path, step, keep=3, best=step == 300)
    checkpoint_store.discard_after(tmp_path, 100)
    assert names(tmp_path) == ["00000100", "00000300"]
    found = newest(tmp_path)
    assert found.checkpoint and found.checkpoint.step == 100
    save_value(tmp_path, 150)
    found = newest(tmp_path)
    assert found.checkpoint and found.checkpoint.step == 150
    assert names(tmp_path) == ["00000100", "00000150", "00000300"]


def test_strange_names_among_the_checkpoints_are_left_alone(tmp_path: Path) -> None:
    save_value(tmp_path, 100)
    (tmp_path / "checkpoints" / "notes.txt").write_text("mine")
    (tmp_path / "checkpoints" / "00000050.old").mkdir()
    (tmp_path / "checkpoints" / "00000999").write_text("a file")
    save_value(tmp_path, 200)
    save_value(tmp_path, 300)
    assert names(tmp_path) == ["00000050.old", "00000200", "00000300", "00000999", "notes.txt"]
    assert read(tmp_path / "last").step == 300
