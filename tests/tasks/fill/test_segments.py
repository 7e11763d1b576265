"""Sequences and segments: filled with whole sentences, cut between them, half of the second ones from elsewhere."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from regard.data import Shards
from regard.data.texts import TextFiles
from regard.errors import DataError
from regard.tasks.fill.config import FillConfig
from regard.tasks.fill.loader import FillLoader
from regard.tasks.fill.masking import Masking
from regard.tasks.fill.prepare import COLUMN, SENTENCES, TEXT, write_sequences
from regard.tasks.fill.segments import SegmentPairLengths, SegmentPairs
from regard.tasks.fill.sentences import fill_sequences, split_sentences
from regard.text import Tokenizer, TokenizerConfig

WORDS = Tokenizer.train([" ".join(f"w{i}" for i in range(50))], TokenizerConfig(kind="word")).with_mask()
TASK = FillConfig(length=16, next_sentence=True)


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Texts of four sentences with words of their own, so that a row shows where it is from."""
    folder = tmp_path_factory.mktemp("segments")
    lines = (f"w{i} a b. w{i} c. w{i} d e f. w{i} g." for i in range(40))
    (folder / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = TextFiles(train=str(folder / "texts.txt"), unit="line", valid=str(folder / "texts.txt"))
    write_sequences(data, "train", (WORDS, TASK.room), folder / "rows", lambda done: None)
    return Shards.open(folder / "rows")


def test_sentences_end_at_their_signs_and_at_blank_lines():
    text = 'It\'s 3.5 m long! "Really?" he said. (Yes.) 終わり。次は！ A title\n\nand a text'
    assert split_sentences(text) == [
        "It's 3.5 m long!", '"Really?"', "he said.", "(Yes.)", "終わり。", "次は！", "A title", "and a text",
    ]  # fmt: skip
    assert split_sentences(" \n ") == []


def test_a_sequence_has_whole_sentences_of_one_text():
    sentences = [([i] * size, text) for i, (size, text) in enumerate([(3, 0), (4, 0), (2, 0), (9, 1), (1, 2)])]
    rows = list(fill_sequences(sentences, room=8))
    assert [row.ids for row in rows] == [[0] * 3 + [1] * 4, [2, 2], [3] * 8, [3], [4]]
    assert [(row.sentences, row.text) for row in rows] == [([3, 4], 0), ([2], 0), ([8], 1), ([1], 1), ([1], 2)]


def test_half_of_the_second_segments_are_from_another_text(shards):
    rows = np.arange(len(shards))
    drawn = [pair for epoch in range(30) for pair in SegmentPairs(shards, TASK.room, (1, epoch)).draw(rows)]
    kinds = Counter(pair.follows for pair in drawn)
    lengths = shards.take(rows, SENTENCES)
    assert kinds[-1] == 30 * sum(len(row) == 1 for row in lengths)
    assert kinds[0] / (kinds[0] + kinds[1]) == pytest.approx(0.5, abs=0.05)
    originals = {tuple(row.tolist()) for row in shards.take(rows, COLUMN)}
    for pair in drawn:
        whole = (*pair.first.tolist(), *pair.second.tolist())
        assert len(whole) <= TASK.room and (whole in originals) == (pair.follows != 0)
        assert len(pair.second) > 0 or pair.follows == -1


def test_segments_depend_on_seed_epoch_and_row_alone(shards):
    rows = np.arange(len(shards))
    drawn = [SegmentPairs(shards, TASK.room, (1, 5)).draw(some) for some in (rows, rows[::-1], rows[7:9])]
    for other, places in ((drawn[1][::-1], rows), (drawn[2], rows[7:9])):
        for place, pair in zip(places, other, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(drawn[0][place], pair, strict=True))


def test_a_batch_has_segments_targets_and_the_planned_length(shards):
    loader = FillLoader(shards, shards, WORDS, TASK, Masking.build(WORDS, TASK), tokens=96, seed=2)
    rows = next(loader.plan(shards, 3).epoch(3))
    batch = loader.batch(shards, rows, 3)
    pairs = SegmentPairs(shards, TASK.room, loader.key(3))
    assert batch.source.lengths.tolist() == SegmentPairLengths(pairs)[rows].tolist()
    assert batch.source.data.numel() <= 96
    for i, pair in enumerate(pairs.draw(rows)):
        first, second = pair.first.tolist(), pair.second.tolist()
        ids = [WORDS.sos, *first, WORDS.eos] + ([*second, WORDS.eos] if second else [])
        assert batch.target.ids[i, : len(ids)].tolist() == ids
        parts = [0] * (len(first) + 2) + ([1] * (len(second) + 1) if second else [])
        assert batch.source.segments[i, : len(ids)].tolist() == parts
        masked = batch.target.masked[i].nonzero().flatten().tolist()
        assert masked and not {WORDS.sos, WORDS.eos} & {ids[place] for place in masked}
        kept = [place for place in range(len(ids)) if place not in masked]
        assert batch.source.data[i, kept].tolist() == [ids[place] for place in kept]
        assert batch.target.follows[i] == pair.follows


def test_validation_has_the_same_masks_every_time_and_epochs_have_others(shards):
    task = FillConfig(length=16)
    loader = FillLoader(shards, shards, WORDS, task, Masking.build(WORDS, task), tokens=96, seed=2)
    once, again = ([batch.source.data for batch in loader.valid_batches()] for _ in range(2))
    assert all(a.equal(b) for a, b in zip(once, again, strict=True))
    rows = np.arange(8)
    assert not loader.batch(shards, rows, 0).target.masked.equal(loader.batch(shards, rows, 1).target.masked)
    assert loader.batch(shards, rows, 0).source.segments is None


def test_the_second_segment_of_another_text_loses_sentences_to_fit(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("a a a a a a. b. c d.\n" + "x. y y y. z z. q.\n" * 3, encoding="utf-8")
    data = TextFiles(train=str(path), unit="line", valid=str(path))
    words = Tokenizer.train(["a b c d x y z q ."], TokenizerConfig(kind="word")).with_mask()
    write_sequences(data, "train", (words, 13), tmp_path / "rows", lambda done: None)
    rows = Shards.open(tmp_path / "rows")
    assert [int(text[0]) for text in rows.take(np.arange(len(rows)), TEXT)] == [0, 1, 2, 3]
    found = [SegmentPairs(rows, 13, (1, epoch)).draw(np.arange(1))[0] for epoch in range(40)]
    cut = [words.decode(pair.second) for pair in found if pair.follows == 0]
    assert cut and all(len(pair.first) + len(pair.second) <= 13 for pair in found)
    assert {text for text in cut if text.count(".") < 3} and all(text.endswith(".") for text in cut)


def test_a_split_without_text_is_refused(tmp_path):
    (tmp_path / "empty.txt").write_text(" \n\n", encoding="utf-8")
    data = TextFiles(train=str(tmp_path / "empty.txt"), unit="line", valid=str(tmp_path / "empty.txt"))
    with pytest.raises(DataError, match="train: there is no text in it; expected sentences"):
        write_sequences(data, "train", (WORDS, 8), tmp_path / "rows", lambda done: None)
