"""Documents packed into windows: each is read as if it were alone."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.texts import TextFiles
from regard.errors import ConfigError
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.objective import StatefulNextToken
from regard.progress import no_progress
from regard.run import Run, load
from regard.sequence import EOS, Tokens
from regard.spaces import Words
from regard.tasks import EvalRequest, Recipe
from regard.tasks.generate.loader import ShuffledWindowLoader, StreamLoader, empty_source, stream_windows
from regard.tasks.generate.packing import PackedDocuments

DOCUMENTS = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 5, 6], [4, 4], [7, 9]] * 3
ROW = PackedDocuments(np.array([id for document in DOCUMENTS for id in (*document, EOS)], np.uint16), EOS)
MODELS = [
    GPTConfig(layers=2, width=16, heads=2, max_positions=80, dropout=0.0),
    GPTConfig(layers=2, width=16, heads=2, max_positions=80, dropout=0.0, norm="post"),
    LlamaConfig(layers=2, width=16, ffn_width=32, heads=4, kv_heads=2, max_positions=80),
]


def whole_row() -> Tokens:
    """All documents in one window."""
    (batch,) = stream_windows(ROW, len(ROW), 1)
    return batch.target


@pytest.mark.parametrize("config", MODELS, ids=["gpt-2", "gpt-1", "llama"])
def test_the_logits_of_a_packed_document_equal_those_of_the_document_alone(config):
    torch.manual_seed(1)
    model, words = config.build(Words(14), Words(14)).eval(), whole_row()
    with torch.no_grad():
        packed = model.readout(model(empty_source(1), words.shift()[0]))[0]
        for begin, document in zip(ROW.begins.tolist(), DOCUMENTS, strict=True):
            alone = model.readout(model(empty_source(1), Tokens.pad([[EOS, *document]])))[0]
            torch.testing.assert_close(packed[begin : begin + len(alone)], alone, atol=1e-5, rtol=1e-5)


def test_another_document_changes_nothing_and_would_change_blocks():
    torch.manual_seed(1)
    model = MODELS[0].build(Words(14), Words(14)).eval()
    first = whole_row()
    other = Tokens(first.data.clone(), first.lengths, False, None, first.positions, first.documents)
    other.data[0, 1] = 13  # in the first document
    with torch.no_grad():
        one, two = (model(empty_source(1), tokens)[0] for tokens in (first, other))
        plain = [model(empty_source(1), Tokens.full(tokens.data))[0] for tokens in (first, other)]
    second = int(ROW.begins[1])
    assert torch.equal(one[second:], two[second:]) and not torch.allclose(one[:second], two[:second])
    assert not torch.allclose(plain[0][second:], plain[1][second:])


@pytest.mark.parametrize("window", [2, 5, 8, 100])
@pytest.mark.parametrize("rows", [1, 3])
def test_every_token_is_predicted_once_from_its_own_document(window, rows):
    found = []
    for batch in stream_windows(ROW, window, rows):
        tokens = batch.target
        read, targets, real = tokens.shift()
        for row in range(len(tokens)):
            assert read.positions[row, 0] == 0
            found += targets[row][real[row]].tolist()
            assert tokens.documents is not None
            same = tokens.documents[row, 1:] == tokens.documents[row, :-1]
            restarts = tokens.positions[row, 1:] == 0
            assert torch.equal(~same & tokens.mask[row, 1:], restarts & tokens.mask[row, 1:])
    assert sorted(found) == sorted(ROW.ids.tolist())


@pytest.mark.parametrize("loader", [StreamLoader, ShuffledWindowLoader])
def test_training_windows_hold_documents_and_positions(loader):
    batches = loader(ROW, ROW, window=5, rows=2)
    for number in range(batches.epoch_size(0)):
        target = batches.batch(0, number).target
        assert target.documents.shape == target.positions.shape == target.data.shape
        for ids, documents in zip(target.data.tolist(), target.documents.tolist(), strict=True):
            assert all(a == EOS and b == EOS for (a, b), (c, d) in zip(pairwise(ids), pairwise(documents)) if c != d)


def test_a_text_without_an_end_is_a_document_too():
    row = PackedDocuments(np.array([5, 6, EOS, 7]), EOS)
    assert len(row) == 6 and row.at(np.arange(6))[0].tolist() == [EOS, 5, 6, EOS, EOS, 7]


UNITS = "one\ntwo\n\n\nthree\n \nfour\n\n"


@pytest.mark.parametrize(
    ("unit", "texts"),
    [
        ("line", ["one", "two", "three", "four", "five"]),
        ("paragraph", ["one\ntwo", "three", "four", "five"]),
        ("document", ["one\ntwo\n\n\nthree\n \nfour", "five"]),
    ],
)
def test_documents_are_lines_paragraphs_or_files(unit, texts, tmp_path):
    (tmp_path / "a.txt").write_text(UNITS, encoding="utf-8")
    (tmp_path / "b.txt").write_text("\n\nfive", encoding="utf-8")
    (tmp_path / "c.txt").write_text("\n \n", encoding="utf-8")
    data = TextFiles(train=f"{tmp_path}/*.txt", valid=f"{tmp_path}/a.txt", unit=unit)
    found = "".join("|" if piece is None else piece for piece in data.pieces("valid"))
    assert found == "".join(f"{text}|" for text in texts[:-1])
    held_out = TextFiles(train=f"{tmp_path}/*.txt", unit=unit, valid_share=0.5)
    both = ["".join("|" if p is None else p for p in held_out.pieces(split)) for split in ("train", "valid")]
    assert sorted("".join(both).split("|")[:-1]) == sorted(texts)
    assert all(part.endswith("|") for part in both)


SETTINGS = [
    "task={kind = 'generate', window = 16, samples = 1, length = 20, packing = 'documents'}",
    "model={kind = 'llama', layers = 1, width = 32, ffn_width = 64, heads = 2, max_positions = 16}",
    "train={steps = 40, batch_tokens = 128, schedule = {kind = 'constant', lr = 0.01}}",
]


@pytest.fixture(scope="module")
def namer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    names = "".join(f"{a}{b}\n" for a in ("An", "Bo", "Cla", "Do", "E") for b in ("na", "ra", "ri", "lo", "va") * 4)
    (folder / "names.txt").write_text(names, encoding="utf-8")
    data = f"data={{kind = 'text', train = '{folder}/names.txt', unit = 'line'}}"
    Run(folder / "run").train(Recipe.read(None, [*SETTINGS, data]))
    return folder / "run"


def test_a_model_of_packed_documents_begins_and_ends_texts(namer):
    model = load(namer)
    samples = model.generator(seed=1).generate("", 12, 20)
    assert sum(sample.complete for sample in samples) > 12
    assert model.generator(temperature=0).generate("An", 12)[0].text


def test_evaluation_scores_each_document_as_if_alone(namer, tmp_path):
    model = load(namer)
    (tmp_path / "test.txt").write_text("Anna\nBolo\nEva\n", encoding="utf-8")
    words, nats = model.modality.tokenizer, []
    for name in ("Anna", "Bolo", "Eva"):
        ids = [words.eos, *words.encode(name).ids, words.eos]
        with torch.no_grad():
            logits = model.module.readout(model.module(empty_source(1), Tokens.pad([ids[:-1]])))[0].log_softmax(-1)
        nats += [-float(logits[i, id]) for i, id in enumerate(ids[1:])]
    model.recipe = Recipe.read(None, [*SETTINGS, "data={kind='text', train='x', unit='line'}", "task.window=32",
                                      "model.max_positions=32"])  # fmt: skip
    found = model.evaluate(EvalRequest([tmp_path / "test.txt"]), no_progress)
    assert len(nats) == 14 == sum(count for _, count in found.per_unit)
    assert found.scores[0].value == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.unit=file"], 'task.packing = "documents" needs texts that end, and data.kind = "text" is one running '
         'text here; set data.unit = "line", "paragraph" or "document", or task.packing = "blocks"'),
        (["model={kind='rnnlm', width=8}"], 'task.packing = "documents": model.kind = "rnnlm" has a hidden state, '
         "which would run on from one document into the next; use a model that attends (gpt, llama), or task.packing "
         '= "blocks"'),
    ],
)  # fmt: skip
def test_packing_needs_documents_and_attention(settings, message):
    with pytest.raises(ConfigError) as error:
        Recipe.read(None, [*SETTINGS, "data={kind='text', train='x', unit='line'}", *settings])
    assert str(error.value) == message


def test_a_recurrent_decoder_refuses_packed_rows():
    from regard.models.rnnlm import RNNLMConfig

    model = RNNLMConfig(layers=1, width=8).build(Words(14), Words(14))
    (batch,) = stream_windows(ROW, len(ROW), 1)
    with pytest.raises(ValueError, match=r"packing \(documents\) needs attention"):
        StatefulNextToken(Words(14)).features(model, batch, None)
