"""Running text as tokens, and tokens as streams of windows."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from regard.data import Shards
from regard.data.texts import Texts
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.tasks.generate.prepare import COLUMN, GenerateConfig, StreamFeed, TextPreparation, chunked, encoded, through
from regard.text import Tokenizer, TokenizerConfig

TEXT = "".join(f"The {i}. wind  blew;\n and the sea\tsaid nothing, nothing.\n" for i in range(40))
IDS = np.arange(4, 304, dtype=np.uint16)


def tokenizer(kind: str) -> Tokenizer:
    return Tokenizer.train([TEXT], TokenizerConfig(kind=kind, size=330, normal="none"))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["char", "bpe", "byte-bpe", "unigram"])
def test_a_text_that_was_cut_into_chunks_is_spelled_as_it_was(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "__defaults__", (64,))
    words = tokenizer(kind)
    lines = [line + "\n" for line in TEXT.split("\n")[:-1]]
    counts: Counter[str] = Counter()
    ids = list(chain.from_iterable(encoded(lines, words, counts)))
    assert len(list(chunked(lines))) > 20
    assert words.decode(ids) == TEXT
    assert ids == words.encode(TEXT).ids
    assert counts == {"characters": len(TEXT), "tokens": len(ids), "texts": 0, "unknown": 0}


def test_a_script_without_spaces_is_cut_too() -> None:
    assert [chunk.text for chunk in chunked(["天地玄黃", "宇宙洪荒"], size=4)] == ["天地玄黃", "宇宙洪荒"]


def test_texts_that_are_lines_end_with_eos_and_their_ends_count_as_characters() -> None:
    words, counts = tokenizer("char"), Counter[str]()
    ids = list(chain.from_iterable(encoded(["The", None, "sea", None], words, counts)))
    assert words.tokens(ids) == ["T", "h", "e", "<EOS>", "s", "e", "a", "<EOS>"]
    assert counts == {"texts": 2, "characters": 8, "tokens": 8, "unknown": 0}


def test_preparation_writes_one_long_row_a_split_and_counts_what_validation_does_not_know(tmp_path: Path) -> None:
    strange = len(TEXT) // 20
    (tmp_path / "book.txt").write_text(TEXT + "Q" * strange + "\n")
    told: list[str] = []
    preparation = TextPreparation(Texts(train=f"{tmp_path}/book.txt"), TokenizerConfig(kind="char", normal="none"))
    counts = preparation.run(tmp_path / "data", lambda what, done, total: told.append(what))
    words = Tokenizer.load(tmp_path / "data/tokenizer.json")
    train, valid = (Shards.open(tmp_path / "data" / split).flat(COLUMN) for split in ("train", "valid"))
    spelled = words.decode(train.tolist()) + words.decode(valid.tolist())
    assert spelled == TEXT + "<UNK>" * strange + "\n"
    assert counts["train"]["characters"] == counts["train"]["tokens"] == len(train)
    assert counts["valid"]["unknown"] == strange
    assert list(dict.fromkeys(told)) == ["tokenizer", "encoding train", "encoding valid"]


def test_windows_go_on_from_one_another_and_ask_each_place_once() -> None:
    feed = StreamFeed(IDS, IDS[:20], window=4, rows=5, seed=3)
    epoch = list(islice(feed.stream(None), feed.epoch()))
    for (before, _), (after, _) in pairwise(epoch):
        assert before.target.data[:, -1].tolist() == after.target.data[:, 0].tolist()
        assert not after.begins
    assert epoch[0][0].begins
    assert epoch[-1][1] == {"epoch": 1, "batch": 0}
    asked = [id for batch, _ in epoch for id in batch.target.data[:, 1:].flatten().tolist()]
    assert len(asked) == len(set(asked)) == 5 * 4 * feed.epoch()


def test_the_next_epoch_is_cut_elsewhere_and_begins_anew() -> None:
    feed = StreamFeed(IDS, IDS[:20], window=8, rows=2)
    firsts = [feed.batch(epoch, 0) for epoch in range(6)]
    assert len({int(batch.target.data[0, 0]) for batch in firsts}) > 1
    assert all(batch.begins for batch in firsts)


def test_a_position_gives_what_comes_after_it() -> None:
    feed = StreamFeed(IDS, IDS[:20], window=16, rows=3)
    taken = list(islice(feed.stream(None), 20))
    for i in (0, 4, 5, 6, 18):
        (batch, after) = next(feed.stream(taken[i][1]))
        assert after == taken[i + 1][1]
        assert batch.target.data.tolist() == taken[i + 1][0].target.data.tolist()


def test_processes_have_rows_of_their_own_that_stay_theirs() -> None:
    whole = StreamFeed(IDS, IDS[:50], window=4, rows=5)
    parts = [StreamFeed(IDS, IDS[:50], window=4, rows=5, world=World(rank, 2)) for rank in range(2)]
    for batches in zip(*(islice(feed.stream(None), 40) for feed in (whole, *parts)), strict=True):
        rows = [batch.target.data.tolist() for batch, _ in batches]
        assert rows[0][::2] == rows[1] and rows[0][1::2] == rows[2]
    for both in zip(*(feed.valid() for feed in (whole, *parts)), strict=True):
        assert int(both[0].target.lengths.sum()) == sum(int(batch.target.lengths.sum()) for batch in both[1:])


@pytest.mark.parametrize("size", [2, 3, 5, 17, 64, 65, 100, 299])
@pytest.mark.parametrize("rows", [1, 2, 3, 64])
def test_validation_asks_every_place_but_the_first_exactly_once(size: int, rows: int) -> None:
    asked: list[int] = []
    for batch in through(IDS[:size], window=8, rows=rows):
        _, wanted, real = batch.target.shifted()
        asked += wanted[real].tolist()
    assert sorted(asked) == IDS[1:size].tolist()


def test_a_corpus_shorter_than_a_batch_is_told() -> None:
    with pytest.raises(DataError) as caught:
        StreamFeed(IDS[:100], IDS[:20], window=64, rows=64)
    assert str(caught.value) == (
        "there are 100 places to learn from, and one batch takes 4,160: 64 streams with windows of 64; "
        "lower train.tokens or task.window, or give more data"
    )
    with pytest.raises(DataError) as caught:
        StreamFeed(IDS, IDS[:1], window=4, rows=2)
    assert str(caught.value) == (
        "there are 1 places to validate on, and two are needed; raise data.held_out, or give more data"
    )


def test_settings_out_of_range_are_told() -> None:
    with pytest.raises(ConfigError) as caught:
        GenerateConfig(window=0)
    assert str(caught.value) == "window = 0 must be at least 1"
