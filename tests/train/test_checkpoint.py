"""Checkpoints are read back exactly; a damaged one is refused by name, and the newest good one is used."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers import PATIENCE
from regard.errors import ConfigError, ModelError, OutputError
from regard.files import FileDigest
from regard.train.checkpoint import Checkpoint, average, best, newest, read, save
from regard.train.manifest import Manifest, parse

STATE = {"epoch": 3, "index": 17, "best": 0.1, "schedule": {"kind": "noam", "warmup": 400}, "note": "été", "none": None}


def groups(seed: int = 0) -> dict[str, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(8, 4, generator=generator)
    model = {"embed.weight": shared, "bias": torch.randn(4, generator=generator), "readout.weight": shared}
    return {"model": model, "optimizer": {"0.exp_avg": shared * 2}, "rng": {"torch": generator.get_state()}}


def save_two(run: Path) -> Path:
    """A run with two checkpoints; returns the newer one."""
    save(run, 800, groups(1), STATE)
    return save(run, 1600, groups(2), STATE)


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read(path)
    return str(caught.value)


def test_a_checkpoint_is_read_back_exactly(tmp_path: Path) -> None:
    saved = groups()
    path = save(tmp_path, 800, saved, STATE)
    checkpoint = read(path)
    assert (checkpoint.path, checkpoint.step, checkpoint.state, checkpoint.regard) == (path, 800, STATE, "0.1.0")
    assert set(checkpoint.groups) == {"model", "optimizer", "rng"}
    for group, tensors in saved.items():
        back = checkpoint.tensors(group)
        assert back.keys() == tensors.keys()
        assert all(torch.equal(back[name], tensor) for name, tensor in tensors.items())


def test_tied_names_come_back_as_one_tensor_and_are_listed_in_the_manifest(tmp_path: Path) -> None:
    path = save(tmp_path, 800, groups(), STATE)
    tensors = read(path).tensors("model")
    assert tensors["readout.weight"] is tensors["embed.weight"]
    assert json.loads((path / "manifest.json").read_text())["tied"] == {"model": {"readout.weight": "embed.weight"}}


def test_equal_states_have_equal_digests_and_others_do_not(tmp_path: Path) -> None:
    def digest(run: str, seed: int, state: dict[str, Any]) -> str:
        return read(save(tmp_path / run, 800, groups(seed), state)).digest

    same = digest("a", 0, STATE)
    assert digest("b", 0, dict(reversed(STATE.items()))) == same
    assert digest("c", 1, STATE) != same
    assert digest("d", 0, STATE | {"best": 0.1 + 2**-56}) != same


def test_a_saved_generator_continues_its_sequence(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    path = save(tmp_path, 1, {"rng": {"torch": generator.get_state()}}, {})
    expected = torch.rand(3, generator=generator)
    other = torch.Generator()
    other.set_state(read(path).tensors("rng")["torch"])
    assert torch.equal(torch.rand(3, generator=other), expected)


def test_files_are_plain_json_and_safetensors(tmp_path: Path) -> None:
    path = save(tmp_path, 800, groups(), STATE)
    assert sorted(file.name for file in path.iterdir()) == [
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "rng.safetensors",
        "state.json",
    ]
    assert json.loads((path / "state.json").read_text()) == {"regard": "0.1.0", "state": STATE}
    assert json.loads((path / "manifest.json").read_text())["format"] == 2


@pytest.mark.parametrize("state", [{1: 2}, {"a": (1, 2)}, {"a": float("nan")}, {"a": float("inf")}, {"a": {1, 2}}])
def test_a_state_that_json_would_change_is_refused(tmp_path: Path, state: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        save(tmp_path, 1, {}, state)
    assert newest(tmp_path).checkpoint is None


def test_fewer_than_two_checkpoints_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        save(tmp_path, 1, {}, {}, keep=1)
    assert str(caught.value) == "keep: expected at least 2 checkpoints, in case one is damaged, got 1"


def test_names_that_would_leave_the_directory_are_refused(tmp_path: Path) -> None:
    for group in ("../model", "", "Model", "a.b"):
        with pytest.raises(ValueError, match="groups named like 'model'"):
            save(tmp_path, 1, {group: {}}, {})
    manifest = Manifest(1, {"../../secret.json": FileDigest(1, "00")}, {})
    (tmp_path / "manifest.json").write_bytes(manifest.render())
    assert refusal(tmp_path) == (
        f"{tmp_path}/manifest.json: '../../secret.json' is not the name of a file of a checkpoint; "
        "do not trust where it came from"
    )


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no directory": (shutil.rmtree, "{}: there is no checkpoint; expected a directory with a manifest.json"),
    "no manifest": (lambda p: (p / "manifest.json").unlink(), "{} is not a checkpoint: manifest.json is missing"),
    "no file": (
        lambda p: (p / "optimizer.safetensors").unlink(),
        "{}: optimizer.safetensors is missing; this checkpoint is damaged, use another",
    ),
    "truncated": (
        lambda p: os.truncate(p / "rng.safetensors", 100),
        "{}/rng.safetensors: expected 5,160 bytes, found 100; this checkpoint is damaged, use another",
    ),
    "empty manifest": (
        lambda p: os.truncate(p / "manifest.json", 0),
        "{}/manifest.json: is not valid JSON; this checkpoint is damaged, use another",
    ),
    "not an object": (
        lambda p: (p / "manifest.json").write_text("[1]"),
        "{}/manifest.json: names no checkpoint format; this checkpoint is damaged, use another",
    ),
    "nested": (
        lambda p: (p / "manifest.json").write_text("[" * 100_000),
        "{}/manifest.json: is not valid JSON; this checkpoint is damaged, use another",
    ),
    "an earlier version": (
        lambda p: (p / "manifest.json").write_text('{"format": 1}'),
        "{run} was saved by an earlier version of regard (checkpoint format 1; this one reads 2); train it again",
    ),
    "a later version": (
        lambda p: (p / "manifest.json").write_text('{"format": 3}'),
        "{run} was saved by a later version of regard (checkpoint format 3; this one reads 2); upgrade regard",
    ),
    "one space more": (
        lambda p: (p / "manifest.json").write_bytes((p / "manifest.json").read_bytes() + b" "),
        "{}/manifest.json: its content and its digest do not agree; this checkpoint is damaged, use another",
    ),
    "a huge manifest": (
        lambda p: os.truncate(p / "manifest.json", 1 << 30),
        "{}/manifest.json: cannot be read (it has 1,073,741,824 bytes, expected at most 16,777,216)",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named_and_the_older_checkpoint_is_used(tmp_path: Path, what: str) -> None:
    newer = save_two(tmp_path)
    damage, message = DAMAGE[what]
    damage(newer)
    assert refusal(newer) == message.format(newer, run=tmp_path)
    found = newest(tmp_path)
    assert found.checkpoint and found.checkpoint.step == 800
    assert found.refused == (() if what == "no directory" else (message.format(newer, run=tmp_path),))


def test_a_changed_byte_is_named_with_its_file(tmp_path: Path) -> None:
    path = save_two(tmp_path)
    data = bytearray((path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (path / "model.safetensors").write_bytes(data)
    message = refusal(path)
    assert message.startswith(f"{path}/model.safetensors: its bytes have changed (SHA-256 ")
    assert message.endswith(" found); this checkpoint is damaged, use another")


def mutate(path: Path, generator: random.Random) -> str:
    file = generator.choice(sorted(path.iterdir()))
    data = bytearray(file.read_bytes())
    place = generator.randrange(len(data))
    kind = generator.choice(["flip", "set", "cut", "drop", "insert", "delete", "zero", "swap"])
    if kind == "flip":
        data[place] ^= 1 << generator.randrange(8)
    elif kind == "set":
        data[place] = (data[place] + generator.randrange(1, 256)) % 256
    elif kind == "cut":
        del data[place:]
    elif kind == "drop":
        del data[place]
    elif kind == "insert":
        data.insert(place, generator.choice(b' \n\t0"}'))
    elif kind == "zero":
        data[place:] = bytes(x ^ 0xFF if x == 0 else 0 for x in data[place:])
    elif kind == "swap":
        other = generator.choice([one for one in sorted(path.iterdir()) if one != file])
        data = bytearray(other.read_bytes())
    if kind == "delete":
        file.unlink()
    else:
        file.write_bytes(data)
    return f"{kind} {file.name} at {place}"


def test_of_250_mutated_checkpoints_each_is_refused_and_the_good_one_used(tmp_path: Path) -> None:
    newer = save_two(tmp_path / "run")
    shutil.copytree(newer, tmp_path / "good")
    generator = random.Random(0)
    for _ in range(250):
        what = mutate(newer, generator)
        found = newest(tmp_path / "run")
        assert found.checkpoint and found.checkpoint.step == 800, what
        assert len(found.refused) == 1 and found.refused[0].startswith(str(tmp_path / "run")), what
        shutil.rmtree(newer)
        shutil.copytree(tmp_path / "good", newer)
    found = newest(tmp_path / "run")
    assert found.checkpoint and found.checkpoint.step == 1600


def test_every_single_bit_of_the_manifest_is_protected(tmp_path: Path) -> None:
    path = save(tmp_path, 1, {"model": groups()["model"]}, {}) / "manifest.json"
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ModelError):
            parse(bytes(changed), path)
    for length in range(len(data)):
        with pytest.raises(ModelError):
            parse(data[:length], path)


def test_a_file_that_is_not_in_the_manifest_is_ignored(tmp_path: Path) -> None:
    path = save_two(tmp_path)
    (path / "notes.txt").write_text("mine")
    assert read(path).step == 1600


def test_foreign_files_with_a_fitting_manifest_are_refused(tmp_path: Path) -> None:
    """A checkpoint made by hand may have fitting digests; its content must still be checked."""
    path = save_two(tmp_path)
    for content in (b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"state": 1}'):
        (path / "state.json").write_bytes(content)
        save_manifest(path, ["state.json"])
        assert refusal(path) == f"{path}/state.json: expected an object with 'regard' and 'state', found something else"
    (path / "state.json").write_text('{"regard": "0.1.0", "state": {}}')
    (path / "model.safetensors").write_bytes(b"\xff" * 64)
    save_manifest(path, ["state.json", "model.safetensors"])
    with pytest.raises(ModelError, match="cannot be read as safetensors"):
        read(path).tensors("model")
    save_manifest(path, [])
    assert refusal(path) == f"{path}/manifest.json: does not list state.json; this is not a checkpoint of regard"


def save_manifest(path: Path, names: list[str]) -> None:
    data = {name: (path / name).read_bytes() for name in names}
    files = {name: FileDigest(len(content), hashlib.sha256(content).hexdigest()) for name, content in data.items()}
    (path / "manifest.json").write_bytes(Manifest(1600, files, {}).render())


def test_when_no_checkpoint_is_good_every_reason_is_given(tmp_path: Path) -> None:
    save_two(tmp_path)
    for path in (tmp_path / "checkpoints").iterdir():
        (path / "state.json").unlink()
    found = newest(tmp_path)
    assert found.checkpoint is None
    assert [message.split(": ")[0][-8:] for message in found.refused] == ["00001600", "00000800"]


def test_a_run_with_checkpoints_of_an_earlier_version_only_is_refused_in_one_sentence(tmp_path: Path) -> None:
    save_two(tmp_path)
    for path in (tmp_path / "checkpoints").iterdir():
        (path / "manifest.json").write_text('{"format": 1}')
    with pytest.raises(ModelError) as caught:
        newest(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} was saved by an earlier version of regard (checkpoint format 1; this one reads 2); train it again"
    )


def test_a_run_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    run = tmp_path / ("x" * 300)
    for open_run in (newest, best):
        with pytest.raises(ModelError) as caught:
            open_run(run)
        assert str(caught.value) == f"{run}: cannot be read (File name too long)"


def test_a_group_that_was_not_saved_is_refused_by_name(tmp_path: Path) -> None:
    path = save_two(tmp_path)
    with pytest.raises(ModelError) as caught:
        read(path).tensors("ema")
    assert str(caught.value) == f"{path}: there is no ema.safetensors; it holds model, optimizer, rng"


def test_the_best_is_found_and_a_damaged_best_is_refused(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        save(tmp_path, step, groups(), STATE, best=step == 1)
    found = best(tmp_path)
    assert isinstance(found, Checkpoint) and found.step == 1
    (found.path / "state.json").unlink()
    with pytest.raises(ModelError, match=r"state\.json is missing"):
        best(tmp_path)


def test_checkpoints_are_averaged_in_double_precision(tmp_path: Path) -> None:
    paths = [save(tmp_path, step, groups(step), STATE, keep=3) for step in (1, 2, 3)]
    averaged = average(paths)
    expected = sum(groups(step)["model"]["embed.weight"].double() for step in (1, 2, 3)) / 3
    assert torch.equal(averaged["embed.weight"], expected.float())
    assert averaged["readout.weight"] is averaged["embed.weight"]


FAILED_SAVE = """
import os, resource, signal, sys
from pathlib import Path
import torch
from regard.errors import OutputError
from regard.train.checkpoint import newest, save
run = Path(sys.argv[2])
save(run, 800, {"model": {"w": torch.ones(10)}}, {})
if sys.argv[1] == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
else:
    for folder in (run, run / "checkpoints"):
        folder.chmod(0o555)
    if os.geteuid() == 0:
        os.setuid(65534)
try:
    save(run, 1600, {"model": {"w": torch.ones(100_000)}}, {})
except OutputError as error:
    print(error)
found = newest(run)
print(found.checkpoint.step, found.refused, sorted(path.name for path in (run / "checkpoints").iterdir()))
"""


def fail_to_save(why: str) -> tuple[Path, list[str]]:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # readable for a user without rights
        run = Path(name) / "run"
        command = [sys.executable, "-c", FAILED_SAVE, why, str(run)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return run, done.stdout.splitlines()


def test_a_full_disk_leaves_the_old_checkpoint_intact_and_says_how_much_is_needed() -> None:
    run, (message, after) = fail_to_save("full")
    assert message.startswith(f"{run}/checkpoints/00001600: needs 400,037 bytes and ")
    assert message.endswith(
        " are free (File too large), but no file may be larger than 50,000 bytes; raise `ulimit -f`"
    )
    assert after == "800 () ['00000800']"


def test_a_folder_without_permission_leaves_the_old_checkpoint_intact() -> None:
    run, (message, after) = fail_to_save("forbidden")
    assert message == (
        f"{run}/checkpoints/00001600: cannot be written (Permission denied); "
        "write to a folder that is yours and not read-only"
    )
    assert after == "800 () ['00000800']"


def test_a_file_in_the_place_of_the_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(OutputError, match=r"run/checkpoints/00000001: cannot be written \(Not a directory\)"):
        save(tmp_path / "run", 1, groups(), STATE)
    assert newest(tmp_path / "run").checkpoint is None
