"""The tokenizer: text to ids and back, kept in one JSON file that transformers loads as well."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from regard.errors import DataError, InputError, ModelError, OutputError
from regard.text import kinds
from regard.text.kinds import TokenizerConfig, check_characters

PAD, UNK, SOS, EOS, MASK = ("<PAD>", "[PAD]"), ("<UNK>", "[UNK]"), ("<SOS>", "[CLS]"), ("<EOS>", "[SEP]"), ("[MASK]",)
"""what a special token is called: in vocabularies made here, in those of BERT"""


@dataclass(frozen=True)
class Encoded:
    """A text as ids, and where in the text each of them comes from.

    >>> Encoded([7], ["hi"], [(0, 2)]).tokens
    ['hi']
    """

    ids: list[int]
    """numbers in the vocabulary"""
    tokens: list[str]
    """what the vocabulary holds at these numbers"""
    offsets: list[tuple[int, int]]
    """first and last + 1 character of the text as it was given, before it was made normal"""


@final
class Tokenizer:
    """Text to ids and back; it never changes, and is equal to another with the same content.

    `encode` adds no <SOS> or <EOS>, and none that is written in a text is taken for the special token. What decoding
    gives back: byte-bpe any text, exactly; char, bpe and unigram any text of characters that were seen; word puts one
    space between words and signs, whatever was there. Each up to what `normal` and `lowercase` change.

    >>> tokenizer = Tokenizer.train(["like a lamb", "like a line"], TokenizerConfig(size=300))
    >>> tokenizer.encode("like a lamb").tokens
    [' like', ' a', ' l', 'a', 'm', 'b']
    >>> tokenizer.decode(tokenizer.encode("like a lamb").ids)
    'like a lamb'
    """

    def __init__(self, json: str) -> None:
        try:
            inner = tokenizers.Tokenizer.from_str(json)
        except Exception as error:  # the library raises nothing narrower
            raise ModelError(f"Expected the JSON of a tokenizer: {error}.") from None
        inner.encode_special_tokens = True  # "<EOS>" in a text is text; the file cannot say so
        inner.no_padding()
        inner.no_truncation()
        self._inner = inner
        self._json = inner.to_str()
        self.pad, self.unk, self.sos, self.eos = (self._special(names) for names in (PAD, UNK, SOS, EOS))

    @classmethod
    def train(cls, lines: Iterable[str], config: TokenizerConfig) -> Tokenizer:
        """Learns a vocabulary from lines, read once and not kept; equal lines give an equal tokenizer, anywhere."""
        return cls(kinds.train(lines, config).to_str())

    @classmethod
    def from_wordpiece(cls, path: Path | str, lowercase: bool) -> Tokenizer:
        """The tokenizer of a BERT from its vocab.txt: [CLS] is `sos` and [SEP] is `eos`."""
        entries = _read(Path(path)).splitlines()
        vocabulary = {token: i for i, token in enumerate(entries)}
        if len(vocabulary) < len(entries):
            again = next(i for i, token in enumerate(entries) if vocabulary[token] != i)
            raise ModelError(f"{path}: line {again + 1} holds {entries[again]!r}, and so does a later one.")
        missing = [name for _, name in (PAD, UNK, SOS, EOS) if name not in vocabulary]
        if missing:
            raise ModelError(f"{path}: expected a WordPiece vocabulary, one token a line; {missing[0]} is not in it.")
        inner = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        inner.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        inner.decoder = decoders.WordPiece()
        special: list[str] = [name for name in ("[PAD]", "[CLS]", "[SEP]", "[MASK]") if name in vocabulary]
        return cls(kinds.with_special(inner, special).to_str())

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Reads a tokenizer.json."""
        text = _read(Path(path))
        try:
            return cls(text)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None

    def save(self, path: Path | str) -> None:
        """Writes a tokenizer.json; what was there stays whole until the new file is."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        try:
            partial.write_text(self._json, encoding="utf-8", newline="\n")
            partial.replace(path)
        except OSError as error:
            raise OutputError(f"{path}: the tokenizer cannot be written: {error.strerror}.") from None

    def encode(self, text: str) -> Encoded:
        """Ids, tokens, and the characters of `text` that each stands for."""
        check_characters(text, "The text")
        found = self._inner.encode(text, add_special_tokens=False)
        return Encoded(found.ids, self.tokens(found.ids), found.offsets)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """The ids of many texts, on all cores."""
        for number, text in enumerate(texts, 1):
            check_characters(text, f"text {number}")
        return [found.ids for found in self._inner.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without <PAD>, <SOS> and <EOS>; what is unknown stays as <UNK>."""
        return self._inner.decode(self._checked(ids), skip_special_tokens=True)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """What the vocabulary holds at these ids."""
        vocabulary = self.vocabulary
        return [vocabulary[i] for i in self._checked(ids)]

    @property
    def size(self) -> int:
        """Number of ids, special tokens included."""
        return len(self.vocabulary)

    @cached_property
    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
        numbers = self._inner.get_vocab()
        return sorted(numbers, key=lambda token: numbers[token])

    @property
    def mask(self) -> int | None:
        """Id of BERT's [MASK], where the vocabulary has one."""
        return self._inner.token_to_id(MASK[0])

    @property
    def json(self) -> str:
        """What the file holds."""
        return self._json

    def fingerprint(self) -> str:
        """SHA-256 of the file: equal fingerprints, equal tokenizers."""
        return hashlib.sha256(self._json.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        return f"<Tokenizer of {self.size:,} tokens, {self.fingerprint()[:8]}>"

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[str]]:
        return Tokenizer, (self._json,)  # the library forgets on the way that special tokens in a text are text

    def _special(self, names: tuple[str, ...]) -> int:
        for name in names:
            number = self._inner.token_to_id(name)
            if number is not None:
                return number
        raise ModelError(f"Expected a vocabulary with {' or '.join(names)}, found neither among its tokens.")

    def _checked(self, ids: Sequence[int]) -> list[int]:
        whole = [int(i) for i in ids]
        if whole and (min(whole) < 0 or max(whole) >= self.size):
            wrong = next(i for i in whole if not 0 <= i < self.size)
            raise DataError(f"Expected ids from 0 to {self.size - 1}, got {wrong}: another vocabulary made them.")
        return whole


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: the tokenizer cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: expected a tokenizer in UTF-8, byte {error.start + 1} is not.") from None
