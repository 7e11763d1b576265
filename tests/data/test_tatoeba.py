"""Tatoeba's pairs on made data: no leak, the same splits every time, plain spaces, clear messages."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.splits import SPLITS, connected_components, normalize_sentence, partition
from regard.data.tatoeba import Tatoeba
from regard.errors import ConfigError, DataError, InputError


def made(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Pairs where a sentence has several translations, which translate other sentences too."""
    draw = random.Random(seed)
    return [(f"number {draw.randrange(count)} is here.", f"voici le {draw.randrange(count)} !") for _ in range(count)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "fra.txt"
    path.write_text("".join(f"{en}\t{fr}\tby nobody\n" for en, fr in made(2000)), encoding="utf-8")
    return path


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_sentence_of_either_side_is_in_two_splits(corpus, side, seed):
    source = Tatoeba(path=str(corpus), valid_share=0.2, seed=seed)
    sentences = {split: {normalize_sentence(pair[side]) for pair in source.pairs(split)} for split in source.splits()}
    assert all(sentences.values())
    for one, other in itertools.combinations(SPLITS, 2):
        assert not sentences[one] & sentences[other]


def test_splitting_by_english_alone_would_leak():
    pairs = made(2000)
    held_out = {en for en, _ in pairs if int(en.split()[1]) % 10 == 0}
    french = [{fr for en, fr in pairs if (en in held_out) == is_held_out} for is_held_out in (True, False)]
    assert len(french[0] & french[1]) > len(french[0]) / 2


def test_every_pair_is_in_exactly_one_split(corpus):
    source = Tatoeba(path=str(corpus), valid_share=0.2)
    found = sorted(pair for split in source.splits() for pair in source.pairs(split))
    assert found == sorted({(fr, en) for en, fr in made(2000)})


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("ijklmnop")), max_size=20))
def test_connected_components_equal_a_graph_search(pairs):
    def reached(start: int) -> set[int]:
        found, new = set(), {start}
        while new:
            found |= new
            sides = {side for i in found for side in pairs[i]}
            new = {i for i, pair in enumerate(pairs) if set(pair) & sides} - found
        return found

    assert connected_components(pairs) == [min(reached(i)) for i in range(len(pairs))]


def test_the_splits_do_not_depend_on_the_order_of_the_pairs():
    pairs = list(dict.fromkeys(made(1000)))
    mixed = random.Random(3).sample(pairs, len(pairs))
    before = dict(zip(pairs, partition(pairs, 0.1, 0.1, seed=1)))
    assert dict(zip(mixed, partition(mixed, 0.1, 0.1, seed=1))) == before


def test_the_splits_are_the_same_in_another_process():
    code = (
        "from regard.data.splits import partition\n"
        "pairs = [(f'{n} cats', f'{n} chats') for n in range(300)]\n"
        "print(partition(pairs, 0.1, 0.1, 7))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert "valid" in runs[0]


def test_another_seed_draws_other_splits(corpus):
    one, two = (set(Tatoeba(path=str(corpus), valid_share=0.2, seed=seed).pairs("test")) for seed in (1, 2))
    assert one != two


def test_the_split_sizes_are_close_to_the_shares():
    pairs = [(f"{n} cats", f"{n} chats") for n in range(10_000)]
    splits = partition(pairs, 0.02, 0.05, seed=1)
    assert 150 < splits.count("valid") < 250
    assert 425 < splits.count("test") < 575


@pytest.mark.parametrize("seed", range(20))
def test_a_giant_component_is_in_train(seed):
    pairs = [("Yes.", f"oui {n}") for n in range(30)] + [(f"{n} cats", f"{n} chats") for n in range(970)]
    assert set(partition(pairs, 0.2, 0.2, seed)[:30]) == {"train"}


def test_sentences_that_differ_in_case_or_final_punctuation_stay_together():
    pairs = [(f"Cat {n}", f"chat {n}") for n in range(200)] + [(f"cat {n}!", f"Le chat {n}.") for n in range(200)]
    splits = partition(pairs, 0.3, 0.3, seed=1)
    assert splits[:200] == splits[200:]
    assert set(splits) == set(SPLITS)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def everything(source: Tatoeba) -> list[tuple[str, str]]:
    return [pair for split in source.splits() for pair in source.pairs(split)]


MANY = "".join(f"Cat {n}.\tChat {n}.\tx\n" for n in range(100))


def test_spaces_and_accents_are_normalized_and_repetitions_dropped(tmp_path):
    lines = "Go!\tVa\u00a0!\tx\nGo!\tVa\u202f!\tx\nCoffee?\tDu cafe\u0301\u202f?\tx\nEmpty.\t \tx\n"
    source = Tatoeba(path=write(tmp_path / "fra.txt", lines + MANY), valid_share=0.3, direction="en-fr")
    found = everything(source)
    assert found.count(("Go!", "Va !")) == 1
    assert ("Coffee?", "Du café ?") in found
    assert len(found) == 102


def test_the_direction_says_which_side_is_the_source(corpus):
    there = list(Tatoeba(path=str(corpus), direction="en-fr").pairs("valid"))
    back = list(Tatoeba(path=str(corpus), direction="fr-en").pairs("valid"))
    assert there[0][0].startswith("number ")
    assert back == [(target, source) for source, target in there]


def test_long_english_sentences_are_left_out_of_every_split(tmp_path):
    lines = "".join(f"{'very ' * (n % 5)}good {n}\tbon {n}\tx\n" for n in range(500))
    source = Tatoeba(path=write(tmp_path / "fra.txt", lines), max_words=3, valid_share=0.2, direction="en-fr")
    assert max(len(en.split()) for en, _ in everything(source)) == 3
    assert len(everything(source)) == 200


def test_a_limit_samples_from_all_of_train_and_leaves_other_splits_whole(corpus):
    whole, few = (Tatoeba(path=str(corpus), valid_share=0.1, limit=limit) for limit in (None, 100))
    train = list(whole.pairs("train"))
    sample = list(few.pairs("train"))
    assert len(sample) == 100
    assert sample == [pair for pair in train if pair in set(sample)]
    assert sample != train[:100]
    assert list(few.pairs("test")) == list(whole.pairs("test"))


def test_a_file_that_changes_is_split_again(tmp_path):
    path = tmp_path / "fra.txt"
    assert len(everything(Tatoeba(path=write(path, MANY), valid_share=0.3))) == 100
    assert len(everything(Tatoeba(path=write(path, MANY + "Dog.\tChien.\tx\n"), valid_share=0.3))) == 101


def test_invalid_files_are_reported_with_the_line(tmp_path):
    path = tmp_path / "fra.txt"
    with pytest.raises(DataError) as caught:
        everything(Tatoeba(path=write(path, "Go.\tVa !\tx\nnothing\n")))
    assert str(caught.value) == (
        f"{path}, line 2: expected English, the other language and a credit with tabs between, found 1 column"
    )
    with pytest.raises(DataError) as caught:
        everything(Tatoeba(path=write(path, "Go.\tVa !\tx\n")))
    assert str(caught.value) == (
        f"{path}: no pair is left for train; allow longer sentences, or hold out larger shares"
    )
    with pytest.raises(InputError):
        everything(Tatoeba(path=str(tmp_path / "none.txt")))


def test_bad_settings_are_refused():
    for changes, message in (
        ({"valid_share": 0.5}, "valid_share: expected a share between 0 and 0.5, got 0.5"),
        ({"limit": 0}, "limit: expected a number from 1 on, got 0"),
        ({"max_words": -1}, "max_words: expected a number from 1 on, got -1"),
    ):
        with pytest.raises(ConfigError) as caught:
            Tatoeba(**changes)
        assert str(caught.value) == message
    with pytest.raises(ConfigError) as caught:
        next(Tatoeba().pairs("dev"))
    assert str(caught.value) == "no split is called 'dev'; there are: train, valid, test"
