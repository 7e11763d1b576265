"""English text of several datasets: sentences, splits, order, and bad settings."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from helpers import check_refused
from regard.data import english_texts
from regard.data.english_texts import EnglishTexts, split_sentences
from regard.errors import ConfigError

REVIEWS = 'text,label,source\n"Mr. Bean robs a bank. It is funny!",1,imdb\n"so dull",0,rotten_tomatoes\n'
WIKI = " \n = A Title = \n \n The role @-@ playing game sold 1 @,@ 250 copies . It was praised . \n"
PAIRS = "Go.\tVa !\tx\nThe bank is closed.\tLa banque est fermée.\tx\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files in place of the downloaded ones."""
    texts = {"movie-reviews": REVIEWS, "wikitext-2-train": WIKI, "tatoeba-fr-en": PAIRS, "tatoeba-es-en": PAIRS}
    for name, text in texts.items():
        suffix = ".gz" if name.startswith("wiki") else ".txt"
        data = text.encode()
        (tmp_path / f"{name}{suffix}").write_bytes(gzip.compress(data) if suffix == ".gz" else data)

    def fetch(dataset, cache=None, progress=None):  # type: ignore[no-untyped-def]
        return next(tmp_path.glob(f"{dataset.name}.*"))

    monkeypatch.setattr(english_texts, "fetch_dataset", fetch)


def read(source: EnglishTexts, split: str = "train") -> list[str]:
    return [piece for piece in source.pieces(split) if piece is not None]


@pytest.mark.usefixtures("files")
def test_texts_are_cut_into_sentences_and_each_is_there_once() -> None:
    source = EnglishTexts(valid_share=1e-9)
    assert sorted(read(source)) == [
        "Go.", "It is funny!", "It was praised .", "Mr. Bean robs a bank.", "The bank is closed.",
        "The role-playing game sold 1,250 copies .",
    ]  # fmt: skip
    assert read(source) == read(source) and list(source.pieces("train"))[1::2] == [None] * 6
    assert sorted(read(EnglishTexts(parts=("imdb",), sentences=False, valid_share=1e-9))) == [
        "Mr. Bean robs a bank. It is funny!"
    ]


@pytest.mark.usefixtures("files")
def test_every_text_is_in_one_split() -> None:
    source = EnglishTexts(valid_share=0.5)
    train, valid = read(source), read(source, "valid")
    assert train and valid and not {*train} & {*valid} and len(train) + len(valid) == 6
    check_refused(
        ConfigError, "no split is called 'test'; there are: train, valid", lambda: list(source.pieces("test"))
    )


def test_sources_are_credited_with_their_licenses() -> None:
    credit = EnglishTexts().credit()
    assert "Merity" in credit and "Maas" in credit and credit.count("Tatoeba (tatoeba.org)") == 1


def test_no_parts_are_refused() -> None:
    message = "parts is empty; expected at least one of imdb, wikitext-2, tatoeba"
    check_refused(ConfigError, message, lambda: EnglishTexts(parts=()))


def test_initials_and_quotes_do_not_cut_a_sentence() -> None:
    assert split_sentences('He met J. R. Hart. "Go!" he said. I did. 7 men left... A.') == [
        "He met J. R. Hart.", '"Go!" he said.', "I did.", "7 men left...", "A.",
    ]  # fmt: skip
    assert split_sentences("...") == []
