"""Imported language models against transformers on the same folder: ids, logits, greedy text, and use as any run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedModel

import regard
from foreign_models import LANGUAGE_MODELS, TEXT
from regard.cli import invoke
from regard.exchange.huggingface import import_folder
from regard.sequence import Tokens
from regard.tasks.generate.loader import empty_source

PROMPTS = ["The quick brown", "She sells", "Many hands make light work", "où est", "a", "Dog? 日本 🙂"]


@pytest.fixture(params=LANGUAGE_MODELS, scope="module")
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PreTrainedModel, Path, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    theirs, saved = LANGUAGE_MODELS[request.param](folder / "saved")
    import_folder(saved, folder / "run")
    return theirs, saved, folder / "run"


def ids_of(model: regard.Model, prompt: str) -> list[int]:
    return model.generator().encode_prompt(prompt)[0].data[0].tolist()  # type: ignore[attr-defined]


def test_texts_have_the_same_ids(pair: tuple[PreTrainedModel, Path, Path]) -> None:
    _, saved, run = pair
    model, words = regard.load(run), AutoTokenizer.from_pretrained(saved)
    for prompt in [*PROMPTS[:-1], *TEXT]:
        assert ids_of(model, prompt) == words(prompt)["input_ids"], prompt


@torch.no_grad()
def test_logits_are_within_1e_4_of_theirs(pair: tuple[PreTrainedModel, Path, Path]) -> None:
    theirs, saved, run = pair
    model, words = regard.load(run), AutoTokenizer.from_pretrained(saved)
    for prompt in [*PROMPTS[:-1], *TEXT]:
        ids = torch.tensor([words(prompt)["input_ids"]])
        found = model.module.readout(model.module(empty_source(1), Tokens.full(ids)))
        expected = theirs(ids).logits
        assert expected.std() > 0.3
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_greedy_text_is_theirs(pair: tuple[PreTrainedModel, Path, Path]) -> None:
    theirs, saved, run = pair
    model, words = regard.load(run), AutoTokenizer.from_pretrained(saved)
    for prompt in PROMPTS[:-1]:
        ids = words(prompt, return_tensors="pt")["input_ids"]
        end = theirs.config.eos_token_id
        out = theirs.generate(ids, do_sample=False, max_new_tokens=24, pad_token_id=0, eos_token_id=end)
        new = out[0, ids.shape[1] :].tolist()
        found = model.generator(temperature=0).generate(prompt, 24)[0]  # type: ignore[attr-defined]
        own = model.modality.tokenizer  # type: ignore[attr-defined]
        expected = [id for id in new if id != end]
        assert list(found.tokens) == own.tokens(expected), prompt
        assert found.complete == (end in new)


def test_an_imported_model_is_used_evaluated_looked_into_packed_and_fine_tuned(
    pair: tuple[PreTrainedModel, Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _, _, run = pair
    Path("text.txt").write_text("\n".join(TEXT) * 9, encoding="utf-8")
    Path("tune.toml").write_text(
        'task = {kind = "generate", window = 16, samples = 0}\ndata = {kind = "text", train = "text.txt"}\n'
        "train = {steps = 2, batch_tokens = 32}\n",
        encoding="utf-8",
    )
    for verb in (
        ["generate", run, "The quick", "--length", "5", "--seed", "1"],
        ["eval", run, "--data", "text.txt"],
        ["look", run, "The quick"],
        ["look", run, "The quick", "--view", "lens"],
        ["runs", "show", run],
        ["vectors", "neighbors", run, "e"],
        ["pack", run, "-o", "model.regard"],
        ["generate", "model.regard", "The quick", "--length", "5"],
        ["train", "tune.toml", "--from", run, "--out", "tuned", "--quiet"],
        ["generate", "tuned", "The quick", "--length", "5"],
    ):
        assert invoke([str(word) for word in verb]) == 0, (verb, capsys.readouterr().err)
    assert "fine-tuned from" in Path("tuned/MODEL_CARD.md").read_text()


def test_an_imported_model_has_no_training_text(
    pair: tuple[PreTrainedModel, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, run = pair
    assert invoke(["eval", str(run)]) != 0
    assert "error:" in capsys.readouterr().err
    assert invoke(["train", str(run), "train.steps=1"]) == 3
    assert "no optimizer state to resume from" in capsys.readouterr().err
