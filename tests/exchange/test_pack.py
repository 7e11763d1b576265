"""Packs: every verb takes one, equal runs give equal files, a damaged or hostile one is refused before it is used."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import regard
from helpers import TINY_TRANSLATOR, check_refused, child_environment, refusal
from regard import packs
from regard.cli import invoke
from regard.errors import ModelError, OutputError
from regard.exchange.pack import pack_run, unpack_run
from regard.manifest import parse_manifest, render_manifest
from regard.packs import LISTING, is_pack, pack_folder
from regard.tasks import Recipe

TINY = f"""{TINY_TRANSLATOR}
[train]
steps = 20
validate_every = 10
batch_tokens = 512
[task]
bleu_sentences = 3
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run; tests must not change it."""
    folder = tmp_path_factory.mktemp("packed")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    assert invoke(["train", str(folder / "tiny.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def pack(run: Path) -> Path:
    pack_run(run, run.parent / "model.regard")
    return run.parent / "model.regard"


def members(pack: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(pack) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rewrite(
    pack: Path, out: Path, files: dict[str, bytes], compression: int = zipfile.ZIP_STORED, mode: int = stat.S_IFREG
) -> Path:
    """A zip of these files; `mode` is the kind of the last of them."""
    with zipfile.ZipFile(out, "w", compression) as archive:
        for number, (name, data) in enumerate(files.items(), 1):
            info = zipfile.ZipInfo(name)
            info.external_attr = ((mode if number == len(files) else stat.S_IFREG) | 0o644) << 16
            archive.writestr(info, data, compression)
    return out


def relisted(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with a pack.json that lists them as they are."""
    from regard.files import digest_bytes
    from regard.manifest import files_to_dict

    listed = {name: digest_bytes(data) for name, data in files.items() if name != LISTING}
    body = {"files": files_to_dict(listed), "format": 1, "regard": regard.__version__}
    return {LISTING: render_manifest(body), **{name: files[name] for name in listed}}


def test_a_pack_holds_the_model_and_neither_data_nor_training_state(pack: Path) -> None:
    assert sorted(members(pack)) == [
        "MODEL_CARD.md", "best", "checkpoints/00000020/manifest.json", "checkpoints/00000020/model.safetensors",
        "checkpoints/00000020/state.json", "environment.json", "last", "manifest.json", "pack.json", "recipe.toml",
        "tokenizer.json",
    ]  # fmt: skip
    state = json.loads(members(pack)["checkpoints/00000020/state.json"])["state"]
    assert set(state) <= {"step", "steps", "best", "device", "threads", "processes"}


def test_a_packed_model_has_the_same_weights_and_says_the_same(run: Path, pack: Path) -> None:
    first, second = regard.load(run), regard.load(pack)
    for name, tensor in first.module.state_dict().items():
        assert torch.equal(tensor, second.module.state_dict()[name]), name
    assert first.predict_text("je suis étudiant") == second.predict_text("je suis étudiant")
    assert second.step == 20


def test_equal_runs_give_equal_packs_and_an_unpacked_run_gives_the_same_pack(
    run: Path, pack: Path, tmp_path: Path
) -> None:
    pack_run(run, tmp_path / "again.regard")
    unpack_run(pack, tmp_path / "unpacked")
    pack_run(tmp_path / "unpacked", tmp_path / "third.regard")
    assert pack.read_bytes() == (tmp_path / "again.regard").read_bytes() == (tmp_path / "third.regard").read_bytes()


def test_every_verb_that_takes_a_run_takes_a_pack(
    run: Path, pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    verbs = [
        ["translate", pack, "je suis"],
        ["eval", pack],
        ["look", pack, "je suis"],
        ["runs", "show", pack],
        ["runs", "diff", pack, run],
        ["compare", pack, run],
        ["vectors", "neighbors", pack, "j"],
        ["config", "show", pack],
        ["cost", pack],
        ["data", "stats", pack],
        ["train", pack, "--from", pack, "train.steps=2", "--out", "tuned", "--quiet"],
    ]
    for verb in verbs:
        code = invoke([str(word) for word in verb])
        assert code == 0, (verb, capsys.readouterr().err)
    assert json.loads((tmp_path / "tuned" / "init.json").read_text())["origin"]["path"] == pack.as_posix()
    assert not list(tmp_path.glob("*-average"))


def test_an_opened_pack_is_read_only_checked_again_when_it_changes_and_removed_at_the_end(
    pack: Path, tmp_path: Path
) -> None:
    own = shutil.copy(pack, tmp_path / "own.regard")
    folder = pack_folder(own)
    assert pack_folder(own) == folder and folder.name == "own.regard"
    for path in (folder, *folder.rglob("*")):
        assert not path.stat().st_mode & 0o222, path
    Path(own).write_bytes(pack.read_bytes()[:-40])
    assert "cut off" in refusal(ModelError, lambda: pack_folder(own))
    code = "import sys; from regard.packs import pack_folder; print(pack_folder(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(pack)], env=child_environment(), capture_output=True, text=True, check=True
    )
    assert not Path(done.stdout.strip()).parent.exists() and not done.stderr


def test_an_unpacked_run_is_used_but_not_resumed(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["unpack", str(pack), "-o", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'run'}\n"
    assert os.access(tmp_path / "run" / "recipe.toml", os.W_OK)
    assert invoke(["train", str(tmp_path / "run"), "train.steps=30"]) == 3
    assert "no optimizer state to resume from; use --out for a new run" in capsys.readouterr().err


def test_a_checkpoint_is_packed_by_its_path_and_a_missing_card_is_written(run: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(run, tmp_path / "run", symlinks=True))
    (own / "MODEL_CARD.md").unlink()
    pack_run(own / "checkpoints" / "00000010", tmp_path / "first.regard")
    assert regard.load(tmp_path / "first.regard").step == 10
    assert b"trained with regard" in members(tmp_path / "first.regard")["MODEL_CARD.md"]


def test_nothing_is_overwritten_and_an_interrupted_pack_leaves_nothing(run: Path, pack: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.regard"
    there.write_text("mine")
    check_refused(OutputError, f"{there} exists already; name another with -o", lambda: pack_run(run, there))
    check_refused(OutputError, f"{there} exists already; name another with -o", lambda: unpack_run(pack, there))
    assert there.read_text() == "mine"

    def stop(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    for act in (lambda: pack_run(run, tmp_path / "a", stop), lambda: unpack_run(pack, tmp_path / "b", stop)):
        with pytest.raises(KeyboardInterrupt):
            act()
    assert names(tmp_path) == ["there.regard"]


def test_a_full_disk_is_named_and_leaves_nothing(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "open", full)
    message = refusal(OutputError, lambda: pack_run(run, tmp_path / "a.regard"))
    assert message.startswith(f"{tmp_path / 'a.regard'}: needs ") and "No space left on device" in message
    assert names(tmp_path) == []


HOSTILE: dict[str, tuple[Callable[[dict[str, bytes], Path, Path], object], str]] = {
    "a name that leads out": (
        lambda files, pack, out: rewrite(pack, out, relisted({**files, "../evil": b"x"})),
        "'../evil' is not the name of a file of a run; regard writes no such pack, do not trust where it came from",
    ),
    "an absolute name": (
        lambda files, pack, out: rewrite(pack, out, relisted({**files, "/etc/evil": b"x"})),
        "'/etc/evil' is not the name of a file of a run",
    ),
    "a name with a backslash": (
        lambda files, pack, out: rewrite(pack, out, relisted({**files, "..\\evil": b"x"})),
        "is not the name of a file of a run",
    ),
    "a link": (
        lambda files, pack, out: rewrite(pack, out, relisted({**files, "link": b"/etc/passwd"}), mode=stat.S_IFLNK),
        "link is not a regular file",
    ),
    "a wrong hash": (
        lambda files, pack, out: rewrite(pack, out, {**files, "tokenizer.json": files["tokenizer.json"][:-1] + b"?"}),
        "the bytes of tokenizer.json are not those that pack.json lists; this pack is damaged, copy it again",
    ),
    "another size": (
        lambda files, pack, out: rewrite(pack, out, {**files, "tokenizer.json": b"{}"}),
        "its members are not those that pack.json lists",
    ),
    "one file more": (
        lambda files, pack, out: rewrite(pack, out, {**files, "more.json": b"{}"}),
        "its members are not those that pack.json lists",
    ),
    "one file less": (
        lambda files, pack, out: rewrite(pack, out, {n: d for n, d in files.items() if n != "recipe.toml"}),
        "its members are not those that pack.json lists",
    ),
    "a listing that was changed": (
        lambda files, pack, out: rewrite(pack, out, {**files, LISTING: files[LISTING].replace(b"0", b"1")}),
        "the content of pack.json and its digest do not agree",
    ),
    "a later format": (
        lambda files, pack, out: rewrite(
            pack, out, {**files, LISTING: render_manifest({**parse_manifest(files[LISTING]), "format": 2})}
        ),
        "was saved by a later version of regard (pack format 2; this one reads 1); upgrade regard",
    ),
    "compressed zeros": (
        lambda files, pack, out: rewrite(pack, out, relisted({**files, "zeros": bytes(1 << 24)}), zipfile.ZIP_DEFLATED),
        "is compressed, and members of a pack are stored",
    ),
    "no listing": (
        lambda files, pack, out: rewrite(pack, out, {"recipe.toml": b""}),
        "expected a pack.json of at most 65,536 bytes; it is no pack of regard",
    ),
    "too many members": (
        lambda files, pack, out: rewrite(pack, out, relisted({f"f{i}": b"" for i in range(70)})),
        "expected at most 64 members in 65,536 bytes of directory, found 71",
    ),
    "cut off": (
        lambda files, pack, out: out.write_bytes(pack.read_bytes()[:-1000]),
        "it does not end as a zip archive does: it was cut off, or is no pack of regard",
    ),
    "no zip at all": (lambda files, pack, out: out.write_bytes(b"hello"), "it was cut off, or is no pack of regard"),
    "empty": (lambda files, pack, out: out.write_bytes(b""), "it was cut off, or is no pack of regard"),
    "a directory that claims 10 GB": (
        lambda files, pack, out: out.write_bytes(claim(pack.read_bytes(), files)),
        "claim more bytes than the file has",
    ),
    "a byte that was changed": (
        lambda files, pack, out: out.write_bytes(flip(pack.read_bytes(), files)),
        "it cannot be read as a zip archive (Bad CRC-32 for file 'checkpoints/00000020/model.safetensors')",
    ),
}


def claim(data: bytes, files: dict[str, bytes]) -> bytes:
    """The pack with 3 GB in the sizes of four members of its central directory."""
    at = data.rindex(b"checkpoints/00000020/model.safetensors") - 46
    sizes = (3 << 30).to_bytes(4, "little") * 2
    return data[: at + 20] + sizes + data[at + 28 :]


def flip(data: bytes, files: dict[str, bytes]) -> bytes:
    weights = files["checkpoints/00000020/model.safetensors"]
    at = data.index(weights) + len(weights) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_damaged_or_hostile_pack_is_refused_and_nothing_is_written(fault: str, pack: Path, tmp_path: Path) -> None:
    make, expected = HOSTILE[fault]
    bad = tmp_path / "bad.regard"
    make(members(pack), pack, bad)
    for act in (lambda: unpack_run(bad, tmp_path / "run"), lambda: regard.load(bad)):
        assert expected in refusal(ModelError, act)
    assert names(tmp_path) == ["bad.regard"]


def test_ten_gigabytes_of_zeros_are_refused_before_they_are_read(pack: Path, tmp_path: Path) -> None:
    bad = tmp_path / "zeros.regard"
    with bad.open("wb") as file:  # a sparse file, which ends as a pack does
        file.truncate(10 << 30)
        file.seek(0, io.SEEK_END)
        file.write(pack.read_bytes()[-packs.END.size :])
    assert "the end of the archive does not belong to its content" in refusal(ModelError, lambda: regard.load(bad))


def test_only_packs_are_taken_for_packs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert not is_pack(tmp_path / "notes.txt") and not is_pack(tmp_path) and not is_pack(tmp_path / "none.regard")
    assert invoke(["translate", str(tmp_path / "notes.txt"), "x"]) == 3
    assert "is not a run: it is a file, expected a directory" in capsys.readouterr().err
    assert invoke(["unpack", str(tmp_path / "none.regard")]) == 66
    assert "there is no such file; expected a file that regard pack wrote" in capsys.readouterr().err
    assert invoke(["translate", str(tmp_path / "none.regard"), "x"]) == 3
    assert "is not a run: there is no such directory" in capsys.readouterr().err


def test_a_recipe_in_python_starts_from_a_pack(pack: Path, tmp_path: Path) -> None:
    recipe = Recipe.read(None, ["data.kind=phrases", "data.count=300", f"model.init={pack}", "train.steps=1"])
    assert recipe.model.width == 16
    regard.Run(tmp_path / "run").train(recipe)
    assert regard.load(tmp_path / "run").step == 1
