"""Labeled examples become batches: each once per epoch, the same for any number of processes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data import Shards
from regard.data.scaling import StandardScaler
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.models.pooling import make_pooling
from regard.models.recurrent import RecurrentConfig
from regard.progress import no_progress
from regard.sequence import Memory, Padded, Tokens
from regard.spaces import Classes, Words
from regard.tasks.classify.config import ClassifyConfig
from regard.tasks.classify.inputs import TableInput, TextInput
from regard.tasks.classify.labels import BalancedWeights, CustomWeights, Labels, UniformWeights, WeightedClasses
from regard.tasks.classify.loader import ExampleLoader
from regard.tasks.classify.predict import ClassifierPredictor
from regard.tasks.classify.prepare import LabeledTablePreparation, LabeledTextPreparation
from regard.tasks.classify.sources import LabeledTable, LabeledTsv
from regard.text import Tokenizer, TokenizerConfig
from regard.text.word_vectors import PretrainedVectorsConfig, WordVectors


def example(i: int) -> tuple[str, str]:
    word, label = ("great", "good") if i % 3 else ("bad", "poor")
    return f"film {'very ' * (i % 7)}{word} number {i // 10} {i % 10}", label


TEXTS = [example(i) for i in range(90)]


def tsv(folder: Path, examples=TEXTS, name="train.tsv") -> str:
    path = folder / name
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in examples), encoding="utf-8")
    return str(path)


def prepared(folder: Path, data=None, **changes) -> ExampleLoader:
    task = ClassifyConfig(**changes)
    data = data or LabeledTsv(train=tsv(folder))
    LabeledTextPreparation(data, TokenizerConfig(kind="word"), task).run(folder / "data", no_progress)
    shards = (Shards.open(folder / "data" / split) for split in ("train", "valid"))
    tokenizer = Tokenizer.load(folder / "data" / "tokenizer.json")
    return ExampleLoader(*shards, TextInput(tokenizer, task.max_length, task.keep, task.pool == "first"), tokens=60)


def decode(loader: ExampleLoader, batch) -> list[tuple[str, int]]:
    rows = zip(batch.source.data.tolist(), batch.source.lengths.tolist(), batch.target.tolist(), strict=True)
    return [(loader.input_encoder.tokenizer.decode(ids[:length]), label) for ids, length, label in rows]


def epoch(loader: ExampleLoader):
    return [batch for batch, _ in islice(loader.train_batches(None), loader.batches_per_epoch())]


def test_every_example_comes_once_per_epoch_with_its_own_label(tmp_path):
    loader = prepared(tmp_path)
    labels = Labels.load(tmp_path / "data")
    assert labels == Labels(("good", "poor"), (60, 30))
    seen = [pair for batch in epoch(loader) for pair in decode(loader, batch)]
    held_out = [pair for batch in loader.valid_batches() for pair in decode(loader, batch)]
    assert Counter(seen + held_out) == Counter((text, labels.names.index(label)) for text, label in TEXTS)
    assert 0 < len(held_out) < 30


def test_a_batch_keeps_the_budget_and_holds_texts_of_similar_length(tmp_path):
    loader = prepared(tmp_path)
    padding = []
    for batch in epoch(loader):
        assert batch.source.data.numel() <= 60
        padding.append(1 - float(batch.source.mask.double().mean()))
    assert sum(padding) / len(padding) < 0.1


def test_two_processes_share_the_batches_of_one_and_training_resumes_at_a_position(tmp_path):
    one = prepared(tmp_path)
    parts = [replace(one, group=ProcessGroup(rank, 2)) for rank in range(2)]
    whole = list(islice(one.train_batches(None), 2 * one.batches_per_epoch()))
    halves = zip(*(islice(part.train_batches(None), 2 * one.batches_per_epoch()) for part in parts), strict=True)
    for (batch, after), ((left, after_left), (right, after_right)) in zip(whole, halves, strict=True):
        assert after == after_left == after_right
        assert Counter(decode(one, left) + decode(one, right)) == Counter(decode(one, batch))
    for i in (0, 3, one.batches_per_epoch() - 1, one.batches_per_epoch()):
        resumed = next(one.train_batches(json.loads(json.dumps(whole[i][1]))))
        assert decode(one, resumed[0]) == decode(one, whole[i + 1][0])


def test_word_dropout_differs_in_each_epoch_and_is_off_in_validation(tmp_path):
    loader = replace(prepared(tmp_path), word_dropout=0.3)
    unk = loader.input_encoder.tokenizer.unk
    starts = [{"epoch": number, "pool": 0, "batch": 0} for number in (0, 1)]
    streams = [islice(loader.train_batches(start), loader.batches_per_epoch()) for start in starts]
    first, second = ([batch for batch, _ in stream] for stream in streams)
    shares = [float(torch.cat([(b.source.data == unk)[b.source.mask] for b in some]).double().mean())
              for some in (first, second)]  # fmt: skip
    assert all(0.2 < share < 0.4 for share in shares) and shares[0] != shares[1]
    assert all(
        not (batch.source.data == unk)[batch.source.mask].float().mean() > 0.1 for batch in loader.valid_batches()
    )
    again = [batch for batch, _ in islice(loader.train_batches(None), loader.batches_per_epoch())]
    assert all(torch.equal(a.source.data, b.source.data) for a, b in zip(first, again, strict=True))
    for rank in range(2):  # whatever the number of processes
        part = next(replace(loader, group=ProcessGroup(rank, 2)).train_batches(None))[0].source
        whole = first[0].source.data[rank::2, : part.data.shape[1]]
        assert torch.equal(part.data, whole)


def test_the_held_out_share_depends_on_the_texts_and_not_on_their_order(tmp_path):
    preparation = LabeledTextPreparation(LabeledTsv(train=tsv(tmp_path)))
    backwards = LabeledTextPreparation(LabeledTsv(train=tsv(tmp_path, TEXTS[::-1], "back.tsv")))
    for split in ("train", "valid"):
        assert {e.text for e in preparation.examples(split)} == {e.text for e in backwards.examples(split)}
    with pytest.raises(DataError) as caught:
        list(replace(preparation, data=replace(preparation.data, valid_share=1e-9)).examples("valid"))
    assert str(caught.value) == (
        f"{tmp_path / 'train.tsv'}: none of its 90 examples falls to valid when a share of 1e-09 is held out for "
        "validation; name a file for data.valid, change data.valid_share, or give more examples"
    )


@pytest.mark.parametrize(("keep", "remaining"), [("beginning", "film very very"), ("end", "number 0 6")])
def test_a_long_text_is_truncated_and_counted(keep, remaining, tmp_path):
    loader = prepared(tmp_path, max_length=3, keep=keep)
    found = {text for batch in epoch(loader) for text, _ in decode(loader, batch)}
    assert remaining in found and all(len(text.split()) == 3 for text in found)


def test_empty_texts_are_dropped_and_counted(tmp_path):
    data = LabeledTsv(train=tsv(tmp_path, [*TEXTS, ("  ", "good")]), valid=tsv(tmp_path, TEXTS[:6], "valid.tsv"))
    counts = LabeledTextPreparation(data, TokenizerConfig(kind="word")).run(tmp_path / "data", no_progress)
    assert counts["train"]["read"] == 91 and counts["train"]["empty"] == 1
    assert len(Shards.open(tmp_path / "data/train")) == 90


BAD = [
    ([(text, "good") for text, _ in TEXTS], 'FILE: all 90 examples have the label "good"; a classifier needs two '
     "labels or more to tell apart"),
    ([(label, text) for text, label in TEXTS], "FILE: there are 90 different labels for 90 examples, such as \"film "
     "bad number 0 0\"; is it the column of the label?"),
    ([("", "a"), (" ", "b")] * 30, "FILE: every text is empty; is data.text the right column?"),
]  # fmt: skip


@pytest.mark.parametrize(("examples", "message"), BAD)
def test_data_without_anything_to_learn_is_refused(examples, message, tmp_path):
    path = tsv(tmp_path, examples)
    data = LabeledTsv(train=path, valid=path)
    with pytest.raises(DataError) as caught:
        LabeledTextPreparation(data, TokenizerConfig(kind="word")).run(tmp_path / "data", no_progress)
    assert str(caught.value) == message.replace("FILE", path)


def test_an_unknown_label_in_validation_is_reported_with_its_line(tmp_path):
    data = LabeledTsv(train=tsv(tmp_path), valid=tsv(tmp_path, [("so so", "fair")], "valid.tsv"))
    with pytest.raises(DataError) as caught:
        LabeledTextPreparation(data, TokenizerConfig(kind="word")).run(tmp_path / "data", no_progress)
    assert str(caught.value) == (
        f'{data.valid}, line 2: the label "fair" was never seen in training (labels: good, poor)'
    )


def test_vectors_are_stored_for_the_words_of_the_vocabulary(tmp_path):
    (tmp_path / "glove.txt").write_text("film 1 2\ngreat 3 4\nunheard 5 6\n")
    data, vectors = LabeledTsv(train=tsv(tmp_path)), PretrainedVectorsConfig(path=str(tmp_path / "glove.txt"))
    LabeledTextPreparation(data, TokenizerConfig(kind="word"), vectors=vectors).run(tmp_path / "data", no_progress)
    tokenizer = Tokenizer.load(tmp_path / "data/tokenizer.json")
    found = WordVectors.load(tmp_path / "data")
    assert {tokenizer.vocabulary[i]: row.tolist() for i, row in zip(found.ids, found.vectors, strict=True)} == {
        "film": [1.0, 2.0],
        "great": [3.0, 4.0],
    }
    assert json.loads((tmp_path / "data/vectors.json").read_text()) == {"width": 2, "found": 2, "words": tokenizer.size}


# Rows of numbers


def table(folder: Path, rows, name="train.csv") -> str:
    lines = "".join(f"{a},{b},{label}\n" for a, b, label in rows)
    (folder / name).write_text("width,height,kind\n" + lines, encoding="utf-8")
    return str(folder / name)


ROWS = [(i, 100 + 10 * (i % 5), "big" if i > 30 else "small") for i in range(60)]


def test_the_scaler_of_a_table_is_fitted_to_training_alone(tmp_path):
    data = LabeledTable(train=table(tmp_path, ROWS), valid=table(tmp_path, [(1e9, 1e9, "big")], "v.csv"), label="kind")
    LabeledTablePreparation(data).run(tmp_path / "data", no_progress)
    scale = StandardScaler.load(tmp_path / "data/scale.json")
    assert scale.names == ("width", "height") and scale.mean == pytest.approx((29.5, 120.0))
    loader = ExampleLoader(
        *(Shards.open(tmp_path / "data" / s) for s in ("train", "valid")), TableInput(scale), tokens=16
    )
    rows = torch.cat([batch.source.data for batch in epoch(loader)])
    assert rows.shape == (60, 1, 2)
    torch.testing.assert_close(rows.mean((0, 1)), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(rows.std((0, 1), correction=0), torch.ones(2), atol=1e-5, rtol=0)
    assert all(len(batch) <= 16 for batch in epoch(loader))


def test_a_row_and_its_label_stay_together(tmp_path):
    data = LabeledTable(train=table(tmp_path, ROWS), label="kind")
    LabeledTablePreparation(data).run(tmp_path / "data", no_progress)
    scale, labels = StandardScaler.load(tmp_path / "data/scale.json"), Labels.load(tmp_path / "data")
    loader = ExampleLoader(*(Shards.open(tmp_path / "data" / s) for s in ("train", "valid")), TableInput(scale))
    seen = []
    for batch in [*epoch(loader), *loader.valid_batches()]:
        values = scale.inverse_transform(batch.source.data[:, 0].double().numpy())
        seen += [(*np.round(v).tolist(), labels.names[i]) for v, i in zip(values, batch.target.tolist(), strict=True)]
    assert Counter(seen) == Counter((float(a), float(b), label) for a, b, label in ROWS)


def test_a_table_is_read_in_column_order_or_under_a_header(tmp_path):
    rows = TableInput(StandardScaler(("width", "height"), (0.0, 0.0), (1.0, 1.0)))
    assert [one.row for one in rows.encode(["1,2", "", "3;4", "5\t6"])] == [[1, 2], [], [3, 4], [5, 6]]
    assert rows.with_header("1,2") is None
    under = rows.with_header("kind, height, width")
    assert under.encode(["big,2,1"])[0].row == [1.0, 2.0]
    for line, message in (
        ("1,2,3", "line 7: expected 2 columns, found 3; this model reads width, height"),
        ("1,x", 'line 7: "x" in column height is not a number'),
    ):
        with pytest.raises(DataError) as caught:
            rows.encode([line], first_line=7)
        assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        rows.with_header("kind,width")
    assert str(caught.value) == (
        "line 1: there is no column height (columns: kind, width); this model reads width, height"
    )


# Class weights and pooling


def test_balanced_weights_make_every_label_count_the_same():
    labels = Labels(("a", "b", "c"), (90, 9, 1))
    weights = BalancedWeights().per_label(labels)
    assert [round(w * c, 6) for w, c in zip(weights, labels.counts, strict=True)] == [round(100 / 3, 6)] * 3
    assert UniformWeights().per_label(labels) == (1.0, 1.0, 1.0)
    assert CustomWeights(each=("b = 2", "c=0")).per_label(labels) == (1.0, 2.0, 0.0)


@pytest.mark.parametrize("text", ["b", "b=x", "=3", "b=-1", "b=inf"])
def test_an_invalid_weight_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        CustomWeights(each=(text,))
    assert str(caught.value) == f'each: expected a label and a number such as "positive=2.5", got "{text}"'
    with pytest.raises(DataError, match=r'task\.weights\.each: the label "z" was never seen in training'):
        CustomWeights(each=("z=1",)).per_label(Labels(("a", "b"), (1, 1)))


def test_weighted_examples_count_as_repeated_examples():
    out, targets = torch.randn(3, 2), torch.tensor([0, 1, 0])
    weighed = WeightedClasses(2, weights=(3.0, 1.0))
    again = [0, 0, 0, 1, 2, 2, 2]
    torch.testing.assert_close(weighed.loss(out, targets), Classes(2).loss(out[again], targets[again]))
    torch.testing.assert_close(weighed.nll(out, targets), Classes(2).nll(out, targets))


def test_the_last_state_of_both_directions_has_read_everything():
    torch.manual_seed(0)
    encoder = RecurrentConfig(width=4, dropout=0.0).build_encoder(Words(9)).eval()
    text, other = Tokens.pad([[4, 5, 6], [7, 8]]), Tokens.pad([[4, 5, 7], [5, 8]])
    memory = encoder(text)
    pooled = make_pooling("last", encoder)(memory)
    onward, back = memory.states.data[:, :, :4], memory.states.data[:, :, 4:]
    torch.testing.assert_close(pooled[:, :4], torch.stack([onward[0, 2], onward[1, 1]]))
    torch.testing.assert_close(pooled[:, 4:], back[:, 0])
    changed = make_pooling("last", encoder)(encoder(other))
    assert not torch.isclose(pooled, changed).any()  # each half knows of a word wherever it stands


def test_pooling_ignores_padding_and_gives_zeros_for_empty_rows():
    states = torch.tensor([[[1.0], [5.0], [9.0]], [[2.0], [2.0], [2.0]]])
    memory = Memory(Padded(states, torch.tensor([2, 0])))
    encoder = RecurrentConfig(width=1).build_encoder(Words(4))
    encoder.final = ()
    for name, expected in (("last", 5.0), ("mean", 3.0), ("max", 5.0), ("first", 1.0)):
        assert make_pooling(name, encoder)(memory).tolist() == [[expected], [0.0]], name
        assert make_pooling(name, encoder)(Memory(Padded(torch.zeros(2, 0, 3), torch.zeros(2)))).shape == (2, 3)


# Use


def test_texts_are_classified_in_order_whatever_their_lengths_and_neighbors(tmp_path):
    from regard.models.base import Classifier

    loader = prepared(tmp_path)
    torch.manual_seed(0)
    encoder = RecurrentConfig(width=8).build_encoder(loader.input_encoder.space())
    model = Classifier(encoder, make_pooling("last", encoder), Classes(2), encoder.width).eval()
    predictor = ClassifierPredictor(model, loader.input_encoder, Labels(("good", "poor"), (1, 1)), tokens=30)
    texts = [text for text, _ in TEXTS] + ["", "   "]
    batched = predictor.predict(texts)
    for text, ruling in zip(texts, batched, strict=True):
        single = predictor.predict([text])[0]
        assert (ruling.probs_C is None) == (single.probs_C is None) == (not text.strip())
        if ruling.probs_C is not None:
            np.testing.assert_allclose(ruling.probs_C, single.probs_C, atol=1e-6)
            assert ruling.probs_C.sum() == pytest.approx(1)
