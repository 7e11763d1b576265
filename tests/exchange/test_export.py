"""Exported folders: transformers loads them and says the same, and an import gives the same weights to the bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import regard
from foreign_models import LANGUAGE_MODELS, TEXT, bert
from helpers import TINY_TRANSLATOR
from regard.cli import invoke
from regard.errors import ModelError
from regard.exchange.export import check_gpt, export_run
from regard.exchange.huggingface import import_folder
from regard.models.gpt import GPTConfig
from regard.sequence import Tokens
from regard.tasks import Recipe
from regard.tasks.generate.loader import empty_source


def check_same_weights(first: Any, second: Any) -> None:
    mine, others = first.module.state_dict(), second.module.state_dict()
    assert mine.keys() == others.keys()
    for name, tensor in mine.items():
        assert torch.equal(tensor, others[name]), name


@torch.no_grad()
def check_language_model(run: Path, folder: Path, texts: list[str]) -> None:
    model: Any = regard.load(run)
    theirs, words = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    for text in texts:
        ids = words(text)["input_ids"]
        assert ids == model.generator().encode_prompt(text)[0].data[0].tolist()
        found = model.module.readout(model.module(empty_source(1), Tokens.full(torch.tensor([ids]))))
        torch.testing.assert_close(found, theirs(torch.tensor([ids])).logits, atol=1e-4, rtol=0)
    assert words.convert_tokens_to_ids(words.eos_token) == model.modality.tokenizer.eos == theirs.config.eos_token_id


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_an_imported_language_model_comes_back_to_the_bit(name: str, tmp_path: Path) -> None:
    _, saved = LANGUAGE_MODELS[name](tmp_path / "saved")
    import_folder(saved, tmp_path / "first")
    export_run(tmp_path / "first", tmp_path / "exported")
    check_language_model(tmp_path / "first", tmp_path / "exported", TEXT)
    import_folder(tmp_path / "exported", tmp_path / "second")
    check_same_weights(regard.load(tmp_path / "first"), regard.load(tmp_path / "second"))


SETTINGS = {
    "gpt": ["model.kind=gpt", "model.max_positions=16"],
    "gpt-lines": [
        "model.kind=gpt",
        "model.max_positions=16",
        "data.unit=line",
        "data.valid_share=0.5",
    ],  # <EOS> begins texts, too
    "llama": ["model.kind=llama", "model.kv_heads=1", "model.ffn_width=24", "model.max_positions=16"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_model_that_was_trained_here_says_the_same_in_transformers(name: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(TEXT) * 4, encoding="utf-8")
    common = ["task.kind=generate", "task.window=16", "task.samples=0", "data.kind=text", "text.kind=byte-bpe"]
    size = ["model.layers=2", "model.width=16", "model.heads=2", "text.vocab_size=280", "train.steps=3"]
    file = [f"data.train={tmp_path / 'text.txt'}", "train.batch_tokens=64"]
    recipe = Recipe.read(None, [*common, *size, *file, *SETTINGS[name]])
    regard.Run(tmp_path / "run").train(recipe)
    export_run(tmp_path / "run", tmp_path / "exported")
    check_language_model(tmp_path / "run", tmp_path / "exported", ["The quick", "She sells sea"])
    import_folder(tmp_path / "exported", tmp_path / "again")
    mine, others = regard.load(tmp_path / "run"), regard.load(tmp_path / "again")
    check_same_weights(mine, others)
    prompts = [model.generator().encode_prompt("The quick")[0].data.tolist() for model in (mine, others)]
    assert prompts[0] == prompts[1]


@torch.no_grad()
def test_an_encoder_with_its_head_comes_back_to_the_bit(tmp_path: Path) -> None:
    theirs, saved = bert(tmp_path / "saved")
    import_folder(saved, tmp_path / "first")
    export_run(tmp_path / "first", tmp_path / "exported")
    again, words = AutoModelForMaskedLM.from_pretrained(tmp_path / "exported"), AutoTokenizer.from_pretrained(saved)
    exported = AutoTokenizer.from_pretrained(tmp_path / "exported")
    for text in TEXT:
        batch = words(text, return_tensors="pt")
        assert exported(text)["input_ids"] == batch["input_ids"][0].tolist()
        torch.testing.assert_close(again.eval()(batch["input_ids"]).logits, theirs(batch["input_ids"]).logits)
    assert exported.mask_token == "[MASK]"
    import_folder(tmp_path / "exported", tmp_path / "second")
    check_same_weights(regard.load(tmp_path / "first"), regard.load(tmp_path / "second"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": False}, "model.bias = false; the layers of pre-norm GPTs there have biases"),
        ({"norm": "post", "activation": "gelu"}, 'model.activation = "gelu"; OpenAI GPT there has "gelu-tanh"'),
    ],
)
def test_a_layout_that_transformers_does_not_have_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        check_gpt(GPTConfig(layers=1, width=8, heads=2, **changes), Path("run"))


def test_a_model_that_transformers_does_not_have_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = (
        TINY_TRANSLATOR.replace('"transformer"', '"seq2seq"').replace("heads = 2\n", "").replace("ffn_width = 32\n", "")
    )
    (tmp_path / "tiny.toml").write_text(f"{recipe}[train]\nsteps = 1\nbatch_tokens = 256\n", encoding="utf-8")
    assert invoke(["train", str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert invoke(["export", str(tmp_path / "run"), "--to", "huggingface", "-o", str(tmp_path / "out")]) == 3
    message = (
        f'{tmp_path / "run"}: model.kind = "seq2seq" of the task translate cannot be written as a Hugging Face '
        "folder; there are gpt and llama of the task generate, bert of the tasks fill, classify and label, resnet and "
        "vit of classify, and transformer of the task translate"
    )
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
