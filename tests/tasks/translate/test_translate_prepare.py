"""Preparation of sentence pairs: the validation split, and the texts that it stores."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import Shards, ShardWriter, padding_share
from regard.data.splits import CHUNK, hashes, normalize_sentence, overlap
from regard.errors import DataError, RegardError
from regard.tasks.translate.filters import FilterConfig, format_filter_counts
from regard.tasks.translate.loader import PairLengths, PairLoader
from regard.tasks.translate.prepare import TranslatePreparation, Vocabularies
from regard.tasks.translate.sources import PairTsv
from regard.text import TokenizerConfig

# some sources share a target, and targets come again with other case and punctuation
PAIRS = [(f"le chat numéro {i} dort", f"Cat {i % 240} sleeps{'.!'[i % 2]}") for i in range(300)]


def preparation(
    folder: Path, pairs: list[tuple[str, str]], valid_share: float = 0.2, **parts: object
) -> TranslatePreparation:
    file = folder / "pairs.tsv"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    tokens = TokenizerConfig(vocab_size=120)
    sections = {"text": tokens} | parts
    return TranslatePreparation(PairTsv(train=str(file), valid_share=valid_share), **sections)  # type: ignore[arg-type]


def loader(made: TranslatePreparation, folder: Path) -> PairLoader:
    made.run(folder)
    return PairLoader(Shards.open(folder / "train"), Shards.open(folder / "valid"), Vocabularies.load(folder))


def test_no_sentence_of_either_side_is_in_both_splits(tmp_path: Path) -> None:
    made, counts = preparation(tmp_path, PAIRS), Counter[str]()
    train, valid = list(made.splits.pairs("train", counts)), list(made.splits.pairs("valid", counts))
    for side in (0, 1):
        assert not {normalize_sentence(pair[side]) for pair in train} & {
            normalize_sentence(pair[side]) for pair in valid
        }
    assert len(train) + len(valid) + counts["also in validation"] == len(PAIRS)
    assert len(valid) > 30 and counts["also in validation"] > 5 and not counts["also in training"]


def test_only_pairs_whose_target_is_in_validation_are_dropped_from_training(tmp_path: Path) -> None:
    made = preparation(tmp_path, PAIRS)
    train, valid = set(made.splits.pairs("train")), set(made.splits.pairs("valid"))
    valid_targets = {normalize_sentence(target) for _, target in valid}
    assert all(normalize_sentence(pair[1]) in valid_targets for pair in PAIRS if pair not in train | valid)


def test_a_target_that_much_of_training_shares_stays_there_and_leaves_validation(tmp_path: Path) -> None:
    pairs = [(source, target if i % 3 else "Yes.") for i, (source, target) in enumerate(PAIRS)]
    made, counts = preparation(tmp_path, pairs), Counter[str]()
    train, valid = list(made.splits.pairs("train", counts)), list(made.splits.pairs("valid", counts))
    assert "Yes." in {target for _, target in train} and "Yes." not in {target for _, target in valid}
    assert not {normalize_sentence(target) for _, target in train} & {normalize_sentence(target) for _, target in valid}
    assert (
        counts["also in training"] == sum(1 for _, target in made.splits.candidates("valid") if target == "Yes.") > 10
    )


def test_the_order_of_the_pairs_does_not_change_the_splits(tmp_path: Path) -> None:
    splits = []
    for seed in range(3):
        made = preparation(tmp_path, random.Random(seed).sample(PAIRS, len(PAIRS)))
        splits.append([set(made.splits.pairs(split)) for split in ("train", "valid")])
    assert splits[0] == splits[1] == splits[2]


def test_what_is_dropped_is_counted_under_its_own_name(tmp_path: Path) -> None:
    counts = preparation(tmp_path, PAIRS).run(tmp_path / "data")
    train = len(Shards.open(tmp_path / "data" / "train"))
    dropped = counts["train"]["also in validation"]
    assert format_filter_counts(counts["train"]) == (
        f"read {train + dropped} pairs, kept {train}; dropped: {dropped} also in validation"
    )
    assert not counts["valid"]["also in training"] and dropped > 5


def test_data_whose_every_target_is_common_needs_files_for_validation(tmp_path: Path) -> None:
    made = preparation(tmp_path, [(source, "yes") for source, _ in PAIRS])
    count = sum(1 for _ in made.splits.candidates("valid"))
    with pytest.raises(DataError) as caught:
        list(made.splits.pairs("valid"))
    assert str(caught.value) == (
        f"each of the {count} pairs of valid has a target that is also in training; name files for data.valid"
    )


def test_data_of_which_validation_would_take_every_target_needs_files_too(tmp_path: Path) -> None:
    made = preparation(tmp_path, [(source, "yes") for source, _ in PAIRS[:12]], valid_share=0.5)
    count = sum(1 for _ in made.splits.candidates("train"))
    with pytest.raises(DataError) as caught:
        list(made.splits.pairs("train"))
    assert str(caught.value) == (
        f"each of the {count} pairs of train has a target that is also in validation; name files for data.valid"
    )


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from("abcdefgh")), st.lists(st.sampled_from("efghijkl")))
def test_what_is_in_both_is_found(few: list[str], many: list[str]) -> None:
    found, times = overlap(few, many)
    expected = {int(hashes([text])[0]): many.count(text) for text in set(few) & set(many)}
    assert dict(zip(found.tolist(), times.tolist(), strict=True)) == expected


def test_what_is_in_both_is_found_over_many_chunks() -> None:
    few = [f"sentence {i}" for i in range(3 * CHUNK)]
    many = (f"Sentence {3 * i}!" for i in range(2 * CHUNK))
    found, times = overlap(few, many)
    assert len(found) == CHUNK and set(times.tolist()) == {1}


# Texts


def test_validation_texts_are_those_of_the_files_and_not_what_ids_spell(tmp_path: Path) -> None:
    # ligatures, case and doubled spaces are gone from the ids
    pairs = [(f"Le  ﬁlm №{i} 🙂", f"The  ﬁlm №{i} “ok”") for i in range(100)]
    made = loader(preparation(tmp_path, pairs, text=TokenizerConfig(vocab_size=120, lowercase=True)), tmp_path / "data")
    rows = np.arange(len(made.valid))[::-1]
    sources, references = made.texts(rows)
    assert set(zip(sources, references, strict=True)) <= set(pairs) and len(sources) == len(rows) > 10
    ids = made.valid.take(rows, "target")
    assert [made.vocabularies.target.decode(row.tolist()) for row in ids] != references
    assert [made.vocabularies.target.encode(text).ids for text in references] == [row.tolist() for row in ids]


def test_texts_stay_beside_their_rows_when_pairs_are_dropped_for_their_tokens(tmp_path: Path) -> None:
    pairs = [(f"chat {i}" + " très" * (i % 4 * 8), f"cat {i}") for i in range(200)]
    made = loader(preparation(tmp_path, pairs, filter=FilterConfig(max_tokens=24)), tmp_path / "data")
    sources, _ = made.texts(np.arange(len(made.valid)))
    assert 0 < len(sources) < sum(1 for _ in preparation(tmp_path, pairs).splits.pairs("valid"))
    ids = made.valid.take(np.arange(len(sources)), "source")
    assert [made.vocabularies.source.encode(text).ids for text in sources] == [row.tolist() for row in ids]


def test_training_keeps_no_texts(tmp_path: Path) -> None:
    made = loader(preparation(tmp_path, PAIRS), tmp_path / "data")
    assert made.train.columns == ("source", "target")
    assert made.valid.columns == ("source", "target", "source_text", "target_text")


def test_damaged_texts_are_an_error(tmp_path: Path) -> None:
    preparation(tmp_path, PAIRS).run(tmp_path / "data")
    texts = tmp_path / "data/valid/target_text.text"
    size = texts.stat().st_size
    os.truncate(texts, size - 1)
    with pytest.raises(DataError) as caught:
        Shards.open(tmp_path / "data/valid")
    assert str(caught.value) == f"{texts} has {size - 1} bytes, expected {size}; prepare the data again"
    texts.unlink()
    with pytest.raises(DataError) as caught:
        Shards.open(tmp_path / "data/valid")
    assert str(caught.value) == f"{texts} is missing; prepare the data again"


def test_validation_data_without_texts_is_an_error(tmp_path: Path) -> None:
    made = loader(preparation(tmp_path, PAIRS), tmp_path / "data")
    with ShardWriter(tmp_path / "old", {"source": 120, "target": 120}) as writer:
        writer.append([([5], [6])])
    old = PairLoader(made.train, Shards.open(tmp_path / "old"), made.vocabularies)
    with pytest.raises(DataError) as caught:
        old.texts(np.array([0]))
    assert str(caught.value) == "the validation data was prepared without its texts; prepare the data again"


def test_lengths_and_padding_are_counted_per_side(tmp_path: Path) -> None:
    with ShardWriter(tmp_path / "train", {"source": 9, "target": 9}) as writer:
        writer.append([([4, 5, 6], [7]), ([6], [8])])
    shards = Shards.open(tmp_path / "train")
    assert shards.length_statistics("source") == {"tokens": 4, "mean": 2.0, "p99": 2, "most": 3}
    assert [padding_share(PairLengths(shards, side), [np.array([0, 1])]) for side in (0, 1)] == [0.25, 0.0]


def test_identical_source_and_target_are_refused_as_such_and_not_as_empty(tmp_path: Path) -> None:
    message = r"^no pair is left: read \d+ pairs, kept 0; dropped: \d+ identical sides; source and target are the same"
    with pytest.raises(DataError, match=message):
        preparation(tmp_path, [(f"le chat {i}", f"le chat {i}") for i in range(50)]).run(tmp_path / "run")


@pytest.mark.parametrize(
    ("present", "named"), [((), "tokenizer.json"), (("tokenizer.source.json",), "tokenizer.target")]
)
def test_a_missing_tokenizer_is_named_as_the_run_had_it(tmp_path: Path, present: tuple[str, ...], named: str) -> None:
    preparation(tmp_path, PAIRS).run(tmp_path / "run")
    for name in present:
        (tmp_path / "run/tokenizer.json").rename(tmp_path / "run" / name)
    (tmp_path / "run/tokenizer.json").unlink(missing_ok=True)
    with pytest.raises(RegardError) as caught:
        Vocabularies.load(tmp_path / "run")
    assert named in str(caught.value)
