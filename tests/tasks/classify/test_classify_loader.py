"""Labelled examples become batches: every one once an epoch, the same whatever the number of processes."""

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
from regard.data.labelled import LabelledTsv
from regard.data.tabular import LabelledTable
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.models.pooling import pool_of
from regard.models.recurrent import RecurrentConfig
from regard.objective import silent
from regard.sequence import Memory, Padded, Tokens
from regard.spaces import Classes, Words
from regard.tasks.classify.inputs import Measures, Prose
from regard.tasks.classify.labels import Balanced, Even, Given, Labels, Weighed
from regard.tasks.classify.predict import Judge
from regard.tasks.classify.prepare import ClassFeed, ClassifyConfig, TablePreparation, TextPreparation
from regard.tasks.generate.numbers import Scale
from regard.text import Tokenizer, TokenizerConfig
from regard.text.word_vectors import VectorsConfig, WordVectors


def said(i: int) -> tuple[str, str]:
    word, label = ("great", "good") if i % 3 else ("bad", "poor")
    return f"film {'very ' * (i % 7)}{word} number {i // 10} {i % 10}", label


TEXTS = [said(i) for i in range(90)]


def tsv(folder: Path, examples=TEXTS, name="train.tsv") -> str:
    path = folder / name
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in examples), encoding="utf-8")
    return str(path)


def prepared(folder: Path, data=None, **changes) -> ClassFeed:
    task = ClassifyConfig(**changes)
    data = data or LabelledTsv(train=tsv(folder))
    TextPreparation(data, TokenizerConfig(kind="word"), task).run(folder / "data", silent)
    shards = (Shards.open(folder / "data" / split) for split in ("train", "valid"))
    tokenizer = Tokenizer.load(folder / "data" / "tokenizer.json")
    return ClassFeed(*shards, Prose(tokenizer, task.tokens, task.keep, task.pool == "first"), tokens=60)


def spelled(feed: ClassFeed, batch) -> list[tuple[str, int]]:
    rows = zip(batch.source.data.tolist(), batch.source.lengths.tolist(), batch.target.tolist(), strict=True)
    return [(feed.matter.tokenizer.decode(ids[:length]), label) for ids, length, label in rows]


def epoch(feed: ClassFeed):
    return [batch for batch, _ in islice(feed.stream(None), feed.epoch())]


def test_every_example_comes_once_an_epoch_with_its_own_label(tmp_path):
    feed = prepared(tmp_path)
    labels = Labels.load(tmp_path / "data")
    assert labels == Labels(("good", "poor"), (60, 30))
    seen = [pair for batch in epoch(feed) for pair in spelled(feed, batch)]
    held = [pair for batch in feed.valid() for pair in spelled(feed, batch)]
    assert Counter(seen + held) == Counter((text, labels.names.index(label)) for text, label in TEXTS)
    assert 0 < len(held) < 30


def test_a_batch_keeps_the_budget_and_holds_texts_of_like_length(tmp_path):
    feed = prepared(tmp_path)
    padding = []
    for batch in epoch(feed):
        assert batch.source.data.numel() <= 60
        padding.append(1 - float(batch.source.mask.double().mean()))
    assert sum(padding) / len(padding) < 0.1


def test_two_processes_share_the_batches_of_one_and_a_position_is_where_it_goes_on(tmp_path):
    one = prepared(tmp_path)
    parts = [replace(one, world=World(rank, 2)) for rank in range(2)]
    whole = list(islice(one.stream(None), 2 * one.epoch()))
    halves = zip(*(islice(part.stream(None), 2 * one.epoch()) for part in parts), strict=True)
    for (batch, after), ((left, after_left), (right, after_right)) in zip(whole, halves, strict=True):
        assert after == after_left == after_right
        assert Counter(spelled(one, left) + spelled(one, right)) == Counter(spelled(one, batch))
    for i in (0, 3, one.epoch() - 1, one.epoch()):
        resumed = next(one.stream(json.loads(json.dumps(whole[i][1]))))
        assert spelled(one, resumed[0]) == spelled(one, whole[i + 1][0])


def test_a_share_of_the_words_is_unknown_in_training_others_in_each_epoch_and_none_when_it_is_tried(tmp_path):
    feed = replace(prepared(tmp_path), unknown=0.3)
    unk = feed.matter.tokenizer.unk
    first, second = ([batch for batch, _ in islice(feed.stream({"epoch": e, "pool": 0, "batch": 0}), feed.epoch())]
                     for e in (0, 1))  # fmt: skip
    shares = [float(torch.cat([(b.source.data == unk)[b.source.mask] for b in some]).double().mean())
              for some in (first, second)]  # fmt: skip
    assert all(0.2 < share < 0.4 for share in shares) and shares[0] != shares[1]
    assert all(not (batch.source.data == unk)[batch.source.mask].float().mean() > 0.1 for batch in feed.valid())
    again = [batch for batch, _ in islice(feed.stream(None), feed.epoch())]
    assert all(torch.equal(a.source.data, b.source.data) for a, b in zip(first, again, strict=True))
    for rank in range(2):  # whatever the number of processes
        part = next(replace(feed, world=World(rank, 2)).stream(None))[0].source
        whole = first[0].source.data[rank::2, : part.data.shape[1]]
        assert torch.equal(part.data, whole)


def test_what_is_held_out_depends_on_the_texts_alone_and_not_on_their_order(tmp_path):
    preparation = TextPreparation(LabelledTsv(train=tsv(tmp_path)))
    backwards = TextPreparation(LabelledTsv(train=tsv(tmp_path, TEXTS[::-1], "back.tsv")))
    for split in ("train", "valid"):
        assert {e.text for e in preparation.examples(split)} == {e.text for e in backwards.examples(split)}
    with pytest.raises(DataError) as caught:
        list(replace(preparation, task=ClassifyConfig(held_out=1e-9)).examples("valid"))
    assert str(caught.value) == (
        f"{tmp_path / 'train.tsv'}: none of its 90 examples falls to valid when a share of 1e-09 is kept apart for "
        "validation; name a file for data.valid, change task.held_out, or give more examples"
    )


@pytest.mark.parametrize(("keep", "kept"), [("beginning", "film very very"), ("end", "number 0 6")])
def test_a_long_text_is_cut_and_counted(keep, kept, tmp_path):
    feed = prepared(tmp_path, tokens=3, keep=keep)
    found = {text for batch in epoch(feed) for text, _ in spelled(feed, batch)}
    assert kept in found and all(len(text.split()) == 3 for text in found)


def test_empty_texts_are_dropped_and_counted(tmp_path):
    data = LabelledTsv(train=tsv(tmp_path, [*TEXTS, ("  ", "good")]), valid=tsv(tmp_path, TEXTS[:6], "valid.tsv"))
    counts = TextPreparation(data, TokenizerConfig(kind="word")).run(tmp_path / "data", silent)
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
def test_data_that_teaches_nothing_is_refused(examples, message, tmp_path):
    path = tsv(tmp_path, examples)
    data = LabelledTsv(train=path, valid=path)
    with pytest.raises(DataError) as caught:
        TextPreparation(data, TokenizerConfig(kind="word")).run(tmp_path / "data", silent)
    assert str(caught.value) == message.replace("FILE", path)


def test_a_label_of_validation_that_training_has_not_is_told_with_its_line(tmp_path):
    data = LabelledTsv(train=tsv(tmp_path), valid=tsv(tmp_path, [("so so", "fair")], "valid.tsv"))
    with pytest.raises(DataError) as caught:
        TextPreparation(data, TokenizerConfig(kind="word")).run(tmp_path / "data", silent)
    assert str(caught.value) == (
        f'{data.valid}, line 2: the label "fair" was never seen in training (labels: good, poor)'
    )


def test_vectors_are_kept_for_the_words_there_are(tmp_path):
    (tmp_path / "glove.txt").write_text("film 1 2\ngreat 3 4\nunheard 5 6\n")
    data, vectors = LabelledTsv(train=tsv(tmp_path)), VectorsConfig(path=str(tmp_path / "glove.txt"))
    TextPreparation(data, TokenizerConfig(kind="word"), vectors=vectors).run(tmp_path / "data", silent)
    tokenizer = Tokenizer.load(tmp_path / "data/tokenizer.json")
    found = WordVectors.load(tmp_path / "data")
    assert {tokenizer.vocabulary[i]: row.tolist() for i, row in zip(found.ids, found.numbers, strict=True)} == {
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


def test_the_scale_of_a_table_is_that_of_training_and_of_nothing_else(tmp_path):
    data = LabelledTable(train=table(tmp_path, ROWS), valid=table(tmp_path, [(1e9, 1e9, "big")], "v.csv"), label="kind")
    TablePreparation(data).run(tmp_path / "data", silent)
    scale = Scale.load(tmp_path / "data/scale.json")
    assert scale.names == ("width", "height") and scale.mean == pytest.approx((29.5, 120.0))
    feed = ClassFeed(*(Shards.open(tmp_path / "data" / s) for s in ("train", "valid")), Measures(scale), tokens=16)
    rows = torch.cat([batch.source.data for batch in epoch(feed)])
    assert rows.shape == (60, 1, 2)
    torch.testing.assert_close(rows.mean((0, 1)), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(rows.std((0, 1), correction=0), torch.ones(2), atol=1e-5, rtol=0)
    assert all(len(batch) <= 16 for batch in epoch(feed))


def test_a_row_and_its_label_stay_together(tmp_path):
    data = LabelledTable(train=table(tmp_path, ROWS), label="kind")
    TablePreparation(data).run(tmp_path / "data", silent)
    scale, labels = Scale.load(tmp_path / "data/scale.json"), Labels.load(tmp_path / "data")
    feed = ClassFeed(*(Shards.open(tmp_path / "data" / s) for s in ("train", "valid")), Measures(scale))
    seen = []
    for batch in [*epoch(feed), *feed.valid()]:
        values = scale.undo(batch.source.data[:, 0].double().numpy())
        seen += [(*np.round(v).tolist(), labels.names[i]) for v, i in zip(values, batch.target.tolist(), strict=True)]
    assert Counter(seen) == Counter((float(a), float(b), label) for a, b, label in ROWS)


def test_a_table_is_read_line_by_line_or_under_its_names(tmp_path):
    measures = Measures(Scale(("width", "height"), (0.0, 0.0), (1.0, 1.0)))
    assert [piece.row for piece in measures.read(["1,2", "", "3;4", "5\t6"])] == [[1, 2], [], [3, 4], [5, 6]]
    assert measures.heading("1,2") is None
    under = measures.heading("kind, height, width")
    assert under.read(["big,2,1"])[0].row == [1.0, 2.0]
    for line, message in (
        ("1,2,3", "line 7: expected 2 columns, found 3; this model reads width, height"),
        ("1,x", 'line 7: "x" in column height is not a number'),
    ):
        with pytest.raises(DataError) as caught:
            measures.read([line], first_line=7)
        assert str(caught.value) == message
    with pytest.raises(DataError) as caught:
        measures.heading("kind,width")
    assert str(caught.value) == (
        "line 1: there is no column height (columns: kind, width); this model reads width, height"
    )


# Weights of labels, and what speaks for a text


def test_balanced_weights_make_every_label_count_the_same():
    labels = Labels(("a", "b", "c"), (90, 9, 1))
    weights = Balanced().of(labels)
    assert [round(w * c, 6) for w, c in zip(weights, labels.counts, strict=True)] == [round(100 / 3, 6)] * 3
    assert Even().of(labels) == (1.0, 1.0, 1.0)
    assert Given(each=("b = 2", "c=0")).of(labels) == (1.0, 2.0, 0.0)


@pytest.mark.parametrize("text", ["b", "b=x", "=3", "b=-1", "b=inf"])
def test_a_weight_that_is_none_is_refused(text):
    with pytest.raises(ConfigError) as caught:
        Given(each=(text,))
    assert str(caught.value) == f'each: expected a label and a number such as "positive=2.5", got "{text}"'
    with pytest.raises(DataError, match=r'task\.weights\.each: the label "z" was never seen in training'):
        Given(each=("z=1",)).of(Labels(("a", "b"), (1, 1)))


def test_weighed_examples_count_as_if_they_came_so_often():
    out, wanted = torch.randn(3, 2), torch.tensor([0, 1, 0])
    weighed = Weighed(2, weights=(3.0, 1.0))
    again = [0, 0, 0, 1, 2, 2, 2]
    torch.testing.assert_close(weighed.loss(out, wanted), Classes(2).loss(out[again], wanted[again]))
    torch.testing.assert_close(weighed.surprise(out, wanted), Classes(2).surprise(out, wanted))


def test_the_last_state_of_both_directions_has_read_everything():
    torch.manual_seed(0)
    encoder = RecurrentConfig(width=4, dropout=0.0).build_encoder(Words(9)).eval()
    text, other = Tokens.of([[4, 5, 6], [7, 8]]), Tokens.of([[4, 5, 7], [5, 8]])
    memory = encoder(text)
    pooled = pool_of("last", encoder)(memory)
    onward, back = memory.states.data[:, :, :4], memory.states.data[:, :, 4:]
    torch.testing.assert_close(pooled[:, :4], torch.stack([onward[0, 2], onward[1, 1]]))
    torch.testing.assert_close(pooled[:, 4:], back[:, 0])
    changed = pool_of("last", encoder)(encoder(other))
    assert not torch.isclose(pooled, changed).any()  # each half knows of a word wherever it stands


def test_pools_look_at_real_places_alone_and_at_nothing_where_there_is_none():
    states = torch.tensor([[[1.0], [5.0], [9.0]], [[2.0], [2.0], [2.0]]])
    memory = Memory(Padded(states, torch.tensor([2, 0])))
    encoder = RecurrentConfig(width=1).build_encoder(Words(4))
    encoder.final = ()
    for name, wanted in (("last", 5.0), ("mean", 3.0), ("max", 5.0), ("first", 1.0)):
        assert pool_of(name, encoder)(memory).tolist() == [[wanted], [0.0]], name
        assert pool_of(name, encoder)(Memory(Padded(torch.zeros(2, 0, 3), torch.zeros(2)))).shape == (2, 3)


# Use


def test_texts_are_ruled_in_order_whatever_their_lengths_and_neighbours(tmp_path):
    from regard.models.base import Classifier

    feed = prepared(tmp_path)
    torch.manual_seed(0)
    encoder = RecurrentConfig(width=8).build_encoder(feed.matter.space())
    model = Classifier(encoder, pool_of("last", encoder), Classes(2), encoder.width).eval()
    judge = Judge(model, feed.matter, Labels(("good", "poor"), (1, 1)), tokens=30)
    texts = [text for text, _ in TEXTS] + ["", "   "]
    together = judge.rule(texts)
    for text, ruling in zip(texts, together, strict=True):
        alone = judge.rule([text])[0]
        assert (ruling.share_C is None) == (alone.share_C is None) == (not text.strip())
        if ruling.share_C is not None:
            np.testing.assert_allclose(ruling.share_C, alone.share_C, atol=1e-6)
            assert ruling.share_C.sum() == pytest.approx(1)
