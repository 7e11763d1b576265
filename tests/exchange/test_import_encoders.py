"""Imported BERT, MiniLM and DistilBERT folders against transformers: ids, states, mask fillings; and fine-tuning."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import BertForMaskedLM, BertForPreTraining, BertModel, PreTrainedModel

import regard
from foreign_models import TEXT, bert, distilbert
from helpers import refusal
from regard.cli import invoke
from regard.errors import ModelError
from regard.exchange.huggingface import import_folder
from regard.sequence import Tokens

MODELS: dict[str, Callable[[Path], tuple[PreTrainedModel, Path]]] = {
    "bert-masked": lambda folder: bert(folder, BertForMaskedLM),
    "bert-pretraining": lambda folder: bert(folder, BertForPreTraining),
    "bert-encoder": lambda folder: bert(folder, BertModel),
    "distilbert": distilbert,
}


@pytest.fixture(params=MODELS, scope="module")
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, PreTrainedModel, Path, list[str]]:
    folder = tmp_path_factory.mktemp(request.param)
    theirs, saved = MODELS[request.param](folder / "saved")
    notes = import_folder(saved, folder / "run")
    return request.param, theirs, folder / "run", notes


def rows(model: regard.Model) -> list[list[int]]:
    words = model.tokenizer  # type: ignore[attr-defined]
    return [[words.sos, *words.encode(text).ids, words.eos] for text in TEXT]


@torch.no_grad()
def test_states_and_predictions_are_within_1e_4_of_theirs(pair: tuple[str, PreTrainedModel, Path, list[str]]) -> None:
    name, theirs, run, _ = pair
    model = regard.load(run)
    for row in rows(model):
        ids = torch.tensor([row])
        memory = model.module.encoder(Tokens.full(ids))
        found = theirs(ids, output_hidden_states=True)
        for ours, expected in zip(memory.layers, found.hidden_states, strict=True):
            torch.testing.assert_close(ours, expected, atol=1e-4, rtol=0)
        assert memory.states.data.std() > 0.3
        if name == "bert-encoder":
            torch.testing.assert_close(model.module.pooler(memory), found.pooler_output, atol=1e-4, rtol=0)
            continue
        logits = found.prediction_logits if name == "bert-pretraining" else found.logits
        torch.testing.assert_close(model.module.readout(memory.states.data), logits, atol=1e-4, rtol=0)
        if name == "bert-pretraining":
            next_sentence = model.module.next_sentence(model.module.pooler(memory))
            torch.testing.assert_close(next_sentence, found.seq_relationship_logits, atol=1e-4, rtol=0)


def test_masks_are_filled_as_by_theirs_or_refused_without_a_head(
    pair: tuple[str, PreTrainedModel, Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    name, theirs, run, notes = pair
    model = regard.load(run)
    text = "the quick [MASK] fox"
    if name == "bert-encoder":
        message = "saved was imported without a masked-LM head, so it cannot fill masks; fine-tune it"
        assert message in refusal(ModelError, lambda: model.fill(text))  # type: ignore[attr-defined]
        assert invoke(["fill", str(run), text]) == 3
        assert message in capsys.readouterr().err
        assert [note.split(":")[0] for note in notes] == ["readout", "next_sentence"]
        return
    assert notes == []
    words = model.tokenizer  # type: ignore[attr-defined]
    before, after = (words.encode(part).ids for part in text.split("[MASK]"))
    ids = torch.tensor([[words.sos, *before, words.mask, *after, words.eos]])
    with torch.no_grad():
        found = theirs(ids)
    logits = found.prediction_logits if name == "bert-pretraining" else found.logits
    expected = words.tokens(logits[0, 1 + len(before)].topk(3).indices.tolist())
    candidates = model.fill(text, k=3).masks[0]  # type: ignore[attr-defined]
    assert [candidate.token for candidate in candidates] == expected


def test_evaluation_scores_what_was_imported_and_the_card_names_commands_that_work(
    pair: tuple[str, PreTrainedModel, Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a head there is nothing to score; without token counts there is no guess of the most frequent token."""
    name, _, run, _ = pair
    (tmp_path / "text.txt").write_text("\n".join([*TEXT, *TEXT]), encoding="utf-8")
    code = invoke(["eval", str(run), "--data", str(tmp_path / "text.txt"), "--json"])
    printed, card = capsys.readouterr(), (run / "MODEL_CARD.md").read_text(encoding="utf-8")
    if name == "bert-encoder":
        assert code == 3 and "imported without a masked-LM head" in printed.err
        assert f'regard vectors sentence {run} "..."' in card and f"regard train RECIPE --from {run}" in card
        assert "regard fill" not in card and "regard eval" not in card
        return
    assert code == 0 and f"regard eval {run} --data FILE" in card and "[MASK]" in card
    names = [score["name"] for score in json.loads(printed.out)["scores"]]
    paired = ["next_sentence"] if name == "bert-pretraining" else []
    assert names == ["accuracy", "perplexity", "loss", *paired]


def test_an_imported_encoder_is_looked_into_packed_and_fine_tuned(
    pair: tuple[str, PreTrainedModel, Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    name, _, run, _ = pair
    words = " ".join(TEXT).split()
    texts = [" ".join(words[i * step % len(words)] for step in (1, 3, 7)) for i in range(1, 41)]
    lines = [f"{'good' if i % 2 else 'bad'}\t{text}" for i, text in enumerate(texts)]
    Path("train.tsv").write_text("label\ttext\n" + "\n".join(lines), encoding="utf-8")
    Path("tune.toml").write_text(
        'task = {kind = "classify", pool = "first", max_length = 30}\ndata = {kind = "tsv", train = "train.tsv"}\n'
        "train = {steps = 2, batch_tokens = 128}\n",
        encoding="utf-8",
    )
    verbs = [
        ["runs", "show", run],
        ["vectors", "neighbors", run, "the"],
        ["pack", run, "-o", "model.regard"],
        ["train", "tune.toml", "--from", run, "--out", "tuned", "--quiet"],
        ["classify", "tuned", TEXT[0]],
    ]
    if name != "bert-encoder":
        verbs += [["fill", run, "the [MASK] fox"], ["fill", "model.regard", "the [MASK] fox"]]
    for verb in verbs:
        assert invoke([str(word) for word in verb]) == 0, (verb, capsys.readouterr().err)
    if name in ("bert-encoder", "bert-pretraining"):  # the pooler is taken over too
        loaded = regard.load("tuned")
        assert "pool" in " ".join(dict(loaded.module.named_parameters()))
