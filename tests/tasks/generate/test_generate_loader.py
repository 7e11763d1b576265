"""The generate task: encoding of running text, and streams of windows."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from regard.data import Shards
from regard.data.texts import TextFiles
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.tasks.generate.config import GenerateConfig
from regard.tasks.generate.loader import ShuffledWindowLoader, StreamLoader, stream_windows
from regard.tasks.generate.prepare import COLUMN, TextPreparation, chunk_text, encode_text
from regard.text import Tokenizer, TokenizerConfig

TEXT = "".join(f"The {i}. wind  blew;\n and the sea\tsaid nothing, nothing.\n" for i in range(40))
IDS = np.arange(4, 304, dtype=np.uint16)


def tokenizer(kind: str) -> Tokenizer:
    return Tokenizer.train([TEXT], TokenizerConfig(kind=kind, vocab_size=330, normalization="none"))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["char", "bpe", "byte-bpe", "unigram"])
def test_chunking_does_not_change_the_tokens_of_a_text(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_text, "__defaults__", (64,))
    words = tokenizer(kind)
    lines = [line + "\n" for line in TEXT.split("\n")[:-1]]
    counts: Counter[str] = Counter()
    ids = list(chain.from_iterable(encode_text(lines, words, counts)))
    assert len(list(chunk_text(lines))) > 20
    assert words.decode(ids) == TEXT
    assert ids == words.encode(TEXT).ids
    assert counts == {"characters": len(TEXT), "bytes": len(TEXT), "tokens": len(ids), "texts": 0, "unknown": 0}


def test_a_script_without_spaces_is_cut_too() -> None:
    assert [chunk.text for chunk in chunk_text(["天地玄黃", "宇宙洪荒"], size=4)] == ["天地玄黃", "宇宙洪荒"]


def test_texts_that_are_lines_end_with_eos_and_their_ends_count_as_characters_and_bytes() -> None:
    words, counts = tokenizer("char"), Counter[str]()
    ids = list(chain.from_iterable(encode_text(["The", None, "s♥a", None], words, counts)))
    assert words.tokens(ids) == ["T", "h", "e", "<EOS>", "s", "<UNK>", "a", "<EOS>"]
    assert counts == {"texts": 2, "characters": 8, "bytes": 10, "tokens": 8, "unknown": 1}


def test_preparation_writes_one_long_row_per_split_and_counts_unknown_tokens(tmp_path: Path) -> None:
    strange = len(TEXT) // 20
    (tmp_path / "book.txt").write_text(TEXT + "Q" * strange + "\n")
    stages: list[str] = []
    preparation = TextPreparation(
        TextFiles(train=f"{tmp_path}/book.txt"), TokenizerConfig(kind="char", normalization="none")
    )
    counts = preparation.run(tmp_path / "data", lambda what, done, total: stages.append(what))
    words = Tokenizer.load(tmp_path / "data/tokenizer.json")
    train, valid = (Shards.open(tmp_path / "data" / split).flat(COLUMN) for split in ("train", "valid"))
    decoded = words.decode(train.tolist()) + words.decode(valid.tolist())
    assert decoded == TEXT + "<UNK>" * strange + "\n"
    assert counts["train"]["characters"] == counts["train"]["tokens"] == len(train)
    assert counts["valid"]["unknown"] == strange
    assert list(dict.fromkeys(stages)) == ["tokenizer", "encoding train", "encoding valid"]


def test_windows_are_consecutive_and_predict_each_position_once() -> None:
    loader = StreamLoader(IDS, IDS[:20], window=4, rows=5, seed=3)
    epoch = list(islice(loader.train_batches(None), loader.batches_per_epoch()))
    for (before, _), (after, _) in pairwise(epoch):
        assert before.target.data[:, -1].tolist() == after.target.data[:, 0].tolist()
        assert not after.resets_state
    assert epoch[0][0].resets_state
    assert epoch[-1][1] == {"epoch": 1, "batch": 0}
    predicted = [id for batch, _ in epoch for id in batch.target.data[:, 1:].flatten().tolist()]
    assert len(predicted) == len(set(predicted)) == 5 * 4 * loader.batches_per_epoch()


def test_the_next_epoch_is_cut_elsewhere_and_starts_from_a_reset_state() -> None:
    loader = StreamLoader(IDS, IDS[:20], window=8, rows=2)
    firsts = [loader.batch(epoch, 0) for epoch in range(6)]
    assert len({int(batch.target.data[0, 0]) for batch in firsts}) > 1
    assert all(batch.resets_state for batch in firsts)


def test_a_position_gives_what_comes_after_it() -> None:
    loader = StreamLoader(IDS, IDS[:20], window=16, rows=3)
    batches = list(islice(loader.train_batches(None), 20))
    for i in (0, 4, 5, 6, 18):
        (batch, after) = next(loader.train_batches(batches[i][1]))
        assert after == batches[i + 1][1]
        assert batch.target.data.tolist() == batches[i + 1][0].target.data.tolist()


def test_each_process_keeps_its_own_rows() -> None:
    whole = StreamLoader(IDS, IDS[:50], window=4, rows=5)
    parts = [StreamLoader(IDS, IDS[:50], window=4, rows=5, group=ProcessGroup(rank, 2)) for rank in range(2)]
    for batches in zip(*(islice(loader.train_batches(None), 40) for loader in (whole, *parts)), strict=True):
        rows = [batch.target.data.tolist() for batch, _ in batches]
        assert rows[0][::2] == rows[1] and rows[0][1::2] == rows[2]
    for both in zip(*(loader.valid_batches() for loader in (whole, *parts)), strict=True):
        assert int(both[0].target.lengths.sum()) == sum(int(batch.target.lengths.sum()) for batch in both[1:])


@pytest.mark.parametrize("size", [2, 3, 5, 17, 64, 65, 100, 299])
@pytest.mark.parametrize("rows", [1, 2, 3, 64])
def test_validation_predicts_every_position_but_the_first_exactly_once(size: int, rows: int) -> None:
    predicted: list[int] = []
    for batch in stream_windows(IDS[:size], window=8, rows=rows):
        _, targets, real = batch.target.shift()
        predicted += targets[real].tolist()
    assert sorted(predicted) == IDS[1:size].tolist()


def test_a_corpus_shorter_than_a_batch_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        StreamLoader(IDS[:100], IDS[:20], window=64, rows=64)
    assert str(caught.value) == (
        "the training data has 100 positions, and one batch takes 4,160: 64 streams with windows of 64; "
        "lower train.batch_tokens or task.window, or give more data"
    )
    with pytest.raises(DataError) as caught:
        StreamLoader(IDS, IDS[:1], window=4, rows=2)
    assert str(caught.value) == (
        "the validation data has 1 positions, and two are needed; raise data.valid_share, or give more data"
    )


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        GenerateConfig(window=0)
    assert str(caught.value) == "window = 0 and length = 200 must be at least 1"


def test_shuffled_windows_cover_an_epoch_once_in_another_order_each_epoch() -> None:
    loader = ShuffledWindowLoader(IDS, IDS, window=7, rows=4, seed=3)
    batches = [[loader.batch(epoch, n) for n in range(loader.epoch_size(epoch))] for epoch in (0, 1)]
    starts = [[int(row[0]) for batch in epoch for row in batch.target.data] for epoch in batches]
    for found in starts:
        assert len(set(found)) == len(found) and len({start % 7 for start in found}) == 1
        assert found != sorted(found) and len(found) * 7 > len(IDS) - 5 * 7
    assert starts[0] != starts[1]
    assert all(batch.resets_state for epoch in batches for batch in epoch)


def test_shuffled_windows_of_two_processes_are_those_of_one() -> None:
    one = ShuffledWindowLoader(IDS, IDS, window=7, rows=4, seed=3).batch(1, 2)
    groups = (ProcessGroup(rank, 2) for rank in range(2))
    two = [ShuffledWindowLoader(IDS, IDS, window=7, rows=4, seed=3, group=group).batch(1, 2) for group in groups]
    assert sorted(one.target.data.tolist()) == sorted(row for part in two for row in part.target.data.tolist())
