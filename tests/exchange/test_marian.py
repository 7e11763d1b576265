"""Marian folders against transformers: ids, logits, translations; use as any run; export and back; damaged folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import regard
from foreign_models import ENGLISH, FRENCH, marian
from helpers import TINY_TRANSLATOR, refusal
from regard.cli import invoke
from regard.errors import InputError, ModelError, RegardError
from regard.exchange.export import export_run
from regard.exchange.huggingface import import_folder
from regard.exchange.sentencepiece import SentencePieceModel
from regard.exchange.sentencepiece_tokenizer import to_sentencepiece
from regard.sequence import Tokens

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
ODD = [
    "",
    "kw",
    "le chat k w kwk",
    "ykyk 中k",
    "deux  espaces",
    "中国 x",
    "ﬁn ½",
    "l’été",
    "a\u00a0b",
    "le chat </s> noir",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian folder, and the run that it was imported as beside it."""
    home = tmp_path_factory.mktemp("marian")
    marian(home / "saved")
    import_folder(home / "saved", home / "run")
    return home / "saved"


@torch.no_grad()
def check_same(run: Path, folder: Path, texts: list[str], targets: list[str]) -> None:
    """Ids, logits within 1e-4, and translations of both."""
    model: Any = regard.load(run, "cpu")
    theirs, words = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    ours, start = model.vocabularies, theirs.config.decoder_start_token_id
    theirs.generation_config.forced_eos_token_id = None
    for text, target in zip(texts, targets, strict=True):
        source = model.translator().pad_source([ours.source.encode(text).ids])
        ids = words(text, return_tensors="pt")["input_ids"]
        assert source.data.tolist() == ids.tolist()
        labels = words(text_target=target)["input_ids"]
        assert [*ours.target.encode(target).ids, ours.target.eos] == labels
        before = torch.tensor([[start, *labels[:-1]]])
        logits = model.module.readout(model.module(source, Tokens.full(before)))
        expected = theirs(input_ids=ids, decoder_input_ids=before).logits
        assert expected.std() > 0.3
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=0)
        out = theirs.generate(ids, early_stopping=True, max_new_tokens=ids.shape[1] + 50)[0, 1:]
        kept = [id for id in out.tolist() if id not in (ours.target.eos, ours.target.pad)]
        assert list(model.translate([text], n_best=1)[0][0].tokens) == ours.target.tokens(kept)


def test_an_imported_marian_translates_as_in_transformers(folder: Path) -> None:
    run = folder.parent / "run"
    check_same(run, folder, FRENCH, ENGLISH)
    recipe: Any = regard.load(run).recipe
    assert (recipe.model.layers, recipe.model.decoder_layers, recipe.decode.beam) == (2, 1, 3)
    assert recipe.model.positions == "sinusoidal-halves"


def test_texts_are_cut_as_by_sentencepiece(folder: Path) -> None:
    words, ours = AutoTokenizer.from_pretrained(folder), regard.load(folder.parent / "run").vocabularies  # type: ignore
    for text in [*ODD[:-1], *ENGLISH, *FRENCH]:
        assert [*ours.source.encode(text).ids, 0] == words(text)["input_ids"], text
    assert ours.target.decode(ours.target.encode(ENGLISH[2]).ids) == ENGLISH[2]
    assert 0 not in ours.source.encode(ODD[-1]).ids  # the name of a special token is text here


def test_it_is_a_run_like_any_other(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(folder.parent / "run")
    for name, lines in (("fr", FRENCH), ("en", ENGLISH)):
        (tmp_path / name).write_text("\n".join(lines * 20) + "\n", encoding="utf-8")
    pair = json.dumps([str(tmp_path / "fr"), str(tmp_path / "en")])
    (tmp_path / "mine.toml").write_text(
        f'data = {{kind = "files", train = {pair}, valid = {pair}}}\n'
        "task = {bleu_sentences = 0}\ntrain = {steps = 2, batch_tokens = 256}\nfilter = {duplicates = false}\n"
    )
    assert invoke(["translate", run, FRENCH[0], "--n-best", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["translations"]
    assert invoke(["eval", run, "--data", str(tmp_path / "fr"), str(tmp_path / "en")]) == 0
    assert invoke(["eval", run]) == 2
    assert "the pairs that it was trained on are not here; name your own" in capsys.readouterr().err
    assert invoke(["pack", run, "-o", str(tmp_path / "m.regard")]) == 0
    start = ["--from", str(tmp_path / "m.regard"), "--out", str(tmp_path / "tuned"), "--quiet"]
    assert invoke(["train", str(tmp_path / "mine.toml"), *start]) == 0
    tuned: Any = regard.load(tmp_path / "tuned")
    assert tuned.vocabularies == regard.load(run).vocabularies  # type: ignore[attr-defined]
    with regard.record(tuned) as recording:
        tuned.translate(FRENCH[0])
    assert recording.trace.find("encoder.layers.0.ffn.activations")
    assert export_run(tmp_path / "tuned", tmp_path / "exported")
    check_same(tmp_path / "tuned", tmp_path / "exported", FRENCH[:1], ENGLISH[:1])


def check_same_weights(first: Path, second: Path) -> None:
    one, two = (regard.load(path).module.state_dict() for path in (first, second))
    assert one.keys() == two.keys()
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


def test_an_import_comes_back_to_the_bit(folder: Path, tmp_path: Path) -> None:
    run = folder.parent / "run"
    assert export_run(run, tmp_path / "exported") == []
    check_same(run, tmp_path / "exported", FRENCH, ENGLISH)
    import_folder(tmp_path / "exported", tmp_path / "again")
    check_same_weights(run, tmp_path / "again")
    assert regard.load(run).vocabularies == regard.load(tmp_path / "again").vocabularies  # type: ignore[attr-defined]
    path = tmp_path / "exported" / "source.spm"
    assert to_sentencepiece(regard.load(run).vocabularies.source) == path.read_bytes()  # type: ignore[attr-defined]
    assert set(SentencePieceModel.read(path).pieces) <= set(SentencePieceModel.read(folder / "source.spm").pieces)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Transformer that was trained here."""
    home = tmp_path_factory.mktemp("trained")
    recipe = f"{TINY_TRANSLATOR}[train]\nsteps = 30\nbatch_tokens = 512\n[train.schedule]\nlr = 0.01\nwarmup = 5\n"
    (home / "tiny.toml").write_text(recipe + '[decode]\nlength_penalty = "power"\nalpha = 1.0\n', encoding="utf-8")
    assert invoke(["train", str(home / "tiny.toml"), "--out", str(home / "run"), "--quiet"]) == 0
    return home / "run"


@torch.no_grad()
def test_a_transformer_that_was_trained_here_is_a_marian(trained: Path, tmp_path: Path) -> None:
    assert export_run(trained, tmp_path / "exported") == []
    check_same(trained, tmp_path / "exported", ["je suis étudiant", "le chat dort"], ["i am a student", "the cat"])
    import_folder(tmp_path / "exported", tmp_path / "again")
    check_same_weights(trained, tmp_path / "again")
    model, again = regard.load(trained, "cpu"), regard.load(tmp_path / "again", "cpu")
    tokens = Tokens.pad([[5, 6, 7, 3], [8, 3]]), Tokens.pad([[2, 9, 10], [2, 4]])
    assert torch.equal(model.module(*tokens), again.module(*tokens))


REFUSED = {
    "model.norm=pre": 'model.norm = "pre", and MarianMTModel is post-norm; train with model.norm = "post", or write',
    "model.positions=learned": 'model.positions = "learned", and those of MarianMTModel are sinusoidal; train with',
    "model.tie=none": 'model.tie = "none", and the output projection of MarianMTModel is its embedding; train with',
}


@pytest.mark.parametrize("setting", REFUSED)
def test_what_marian_does_not_have_is_refused_by_name(setting: str, tmp_path: Path) -> None:
    from regard.exchange.marian_export import check_marian
    from regard.tasks import Recipe

    shape = Recipe.read(None, ["data.kind=phrases", "model.preset=transformer-tiny", setting]).model
    assert REFUSED[setting] in refusal(ModelError, lambda: check_marian(shape, tmp_path))


def edit(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def apply(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return apply


def rename(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


FAULTS: dict[str, tuple[Callable[[Path], object], type[RegardError], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), InputError, "there is no config.json"),
    "weights that run code": (rename, InputError, "pytorch_model.bin may run code when it is read"),
    "a layer more": (
        edit("config.json", lambda config: config.update(decoder_layers=2)),
        ModelError,
        "26 missing ('model.decoder.layers.1.self_attn.q_proj.weight', ",
    ),
    "a layer less": (
        edit("config.json", lambda config: config.update(encoder_layers=1)),
        ModelError,
        "16 that the model does not have ('model.encoder.layers.1.fc1.bias', ",
    ),
    "another width": (
        edit("config.json", lambda config: config.update(d_model=32)),
        ModelError,
        "'model.shared.weight' is [41, 24], expected [41, 32]",
    ),
    "pre-norm": (
        edit("config.json", lambda config: config.update(normalize_before=True)),
        ModelError,
        "normalize_before = True, and the model here computes as with False only",
    ),
    "a token too many": (
        edit("vocab.json", lambda tokens: tokens.update(more=len(tokens))),
        ModelError,
        "the tokenizer has 42 tokens, and the embedding 41 rows; they are not of one model",
    ),
    "weights cut off": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-99]),
        ModelError,
        "it is damaged or was cut off",
    ),
    "a tokenizer cut off": (
        lambda folder: (folder / "source.spm").write_bytes((folder / "source.spm").read_bytes()[:-99]),
        ModelError,
        "it is damaged or was cut off",
    ),
    "no tokenizer": (
        lambda folder: (folder / "target.spm").unlink(),
        InputError,
        "expected source.spm, target.spm and vocab.json, or a tokenizer.json; there is no target.spm",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_folder_is_refused_and_nothing_is_left(fault: str, folder: Path, tmp_path: Path) -> None:
    break_it, kind, expected = FAULTS[fault]
    shutil.copytree(folder, tmp_path / "bad")
    break_it(tmp_path / "bad")
    message = refusal(kind, lambda: import_folder(tmp_path / "bad", tmp_path / "run"))
    assert expected in message, message
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


def test_a_language_code_is_cut_out_of_the_text_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "many")
    words = json.loads((tmp_path / "many" / "vocab.json").read_text())
    unused = next(token for token in words if token[0] == "▁" and len(token) > 2)
    edit("vocab.json", lambda tokens: tokens.update({">>de<<": tokens.pop(unused)}))(tmp_path / "many")
    import_folder(tmp_path / "many", tmp_path / "run")
    found: Any = regard.load(tmp_path / "run").vocabularies.source  # type: ignore[attr-defined]
    theirs = AutoTokenizer.from_pretrained(tmp_path / "many")
    for text in (">>de<< le chat", "＞＞de＜＜ le chat", ">>de<<＞＞de＜＜ﬁn"):
        assert [*found.encode(text).ids, found.eos] == theirs(text)["input_ids"], text
        assert found.encode_batch([text]) == [found.encode(text).ids]
