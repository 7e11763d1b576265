"""Tokenizers: text to ids and back, stored in one JSON file that transformers can load as well."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

import tokenizers
from tokenizers import decoders, models

from regard.errors import DataError, InputError, ModelError
from regard.files import write_text_atomically
from regard.manifest import read_kept
from regard.text.byte_bpe import read_byte_bpe, token_text
from regard.text.charsmap import split_charsmap
from regard.text.charsmap_encoder import CharsmapEncoder
from regard.text.tokenizer_training import (
    END_OF_TEXT,
    EOS,
    IMPORTED_PAD,
    IMPORTED_UNK,
    MASK,
    PAD,
    SOS,
    UNK,
    WORDPIECE_SPECIAL,
    TokenizerConfig,
    add_special,
    build_tokenizer,
    check_characters,
    train_tokenizer,
)

MAX_SIZE = 64 << 20
"""bytes of the largest tokenizer.json; the library takes seconds to parse a larger one"""


@dataclass(frozen=True)
class Encoded:
    """Token ids of a text, and the characters that each id comes from."""

    ids: list[int]
    tokens: list[str]
    """as `Tokenizer.tokens` gives them"""
    offsets: list[tuple[int, int]]
    """first and last + 1 character, in the text before normalization"""


@final
class Tokenizer:
    """Text to ids and back; immutable, and equal to another one with the same content.

    `encode` adds no <SOS> or <EOS>, and a text that contains such a name is not taken for the special token. Decoding
    restores: byte-bpe any text, exactly; char, bpe and unigram any text of known characters; word puts one space
    between words and signs, whatever was there, and wordpiece between words. Each up to what `normalization` and
    `lowercase` change.

    >>> tokenizer = Tokenizer.train(["like a lamb", "like a line"], TokenizerConfig(vocab_size=300))
    >>> tokenizer.encode("like a lamb").tokens
    [' like', ' a', ' l', 'a', 'm', 'b']
    >>> tokenizer.decode(tokenizer.encode("like a lamb").ids)
    'like a lamb'
    """

    def __init__(self, text: str) -> None:
        try:
            inner = tokenizers.Tokenizer.from_str(text)
            inner.no_padding()
            inner.no_truncation()
            self._json = inner.to_str()
            inner, self._charsmap = split_charsmap(inner)
        except Exception as error:  # the library raises nothing narrower
            raise ModelError(f"Expected the JSON of a tokenizer: {error}") from None
        inner.encode_special_tokens = True  # "<EOS>" in a text is text; the file cannot say so
        self._inner = inner
        self._encoder = None if self._charsmap is None else CharsmapEncoder(inner, self._charsmap)
        begin, end = template_tokens(self._json)
        self.sos, self.eos = self._special_id((begin, *SOS)), self._special_id((*EOS, end))
        is_imported = self.vocabulary[self.eos] not in EOS
        self.pad = self._special_id((*PAD, IMPORTED_PAD, end) if is_imported else PAD)
        unknown = inner.token_to_id(IMPORTED_UNK) if is_imported else self._special_id(UNK)
        # -1: every text has an encoding, so that there is no unknown token
        self.unk = -1 if unknown is None or unknown == self.eos else unknown

    @classmethod
    def train(cls, lines: Iterable[str], config: TokenizerConfig) -> Tokenizer:
        """Train a tokenizer on lines, which are read once and not kept; deterministic on every machine."""
        return cls(train_tokenizer(lines, config).to_str())

    @classmethod
    def from_wordpiece(cls, path: Path | str, lowercase: bool) -> Tokenizer:
        """The tokenizer of a BERT model from its vocab.txt: [CLS] is `sos` and [SEP] is `eos`."""
        entries = _read_text(Path(path)).splitlines()
        vocabulary = {token: i for i, token in enumerate(entries)}
        if len(vocabulary) < len(entries):
            again = next(i for i, token in enumerate(entries) if vocabulary[token] != i)
            raise ModelError(f"{path}: line {again + 1} holds {entries[again]!r}, and so does a later one")
        missing = [name for _, name in (PAD, UNK, SOS, EOS) if name not in vocabulary]
        if missing:
            raise ModelError(f"{path}: expected a WordPiece vocabulary, one token per line; {missing[0]} is not in it")
        config = TokenizerConfig("wordpiece", normalization="none", lowercase=lowercase)
        inner = build_tokenizer(config, models.WordPiece(vocabulary, unk_token="[UNK]"))
        special = [name for name in WORDPIECE_SPECIAL if name in vocabulary and name != "[UNK]"]
        return cls(add_special(inner, special).to_str())

    @classmethod
    def from_byte_bpe(cls, vocabulary: Path | str, merges: Path | str) -> Tokenizer:
        """GPT-2's tokenizer from encoder.json and vocab.bpe: <|endoftext|> is `eos`, `sos` and `pad`; `unk` is -1."""
        return cls(read_byte_bpe(Path(vocabulary), Path(merges)).to_str())

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Read a tokenizer.json."""
        text = _read_text(Path(path))
        try:
            return cls(text)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None

    def save(self, path: Path | str) -> None:
        """Write a tokenizer.json, atomically; one that `load` would refuse is not written."""
        if (size := len(self._json.encode())) > MAX_SIZE:
            limit = f"at most {MAX_SIZE:,} are read; lower text.vocab_size"
            raise DataError(f"{path}: the tokenizer would have {size:,} bytes, {limit}")
        write_text_atomically(Path(path), self._json)

    def encode(self, text: str) -> Encoded:
        """Ids and tokens of a text, with their offsets."""
        check_characters(text, "The text")
        if self._encoder is not None:
            ids, offsets = self._encoder.encode(text)
            return Encoded(ids, self.tokens(ids), offsets)
        found = self._inner.encode(text, add_special_tokens=False)
        return Encoded(found.ids, self.tokens(found.ids), found.offsets)

    def known_and_unknown(self, found: Encoded, text: str) -> list[str]:
        """The tokens of an encoded text; in place of an unknown one the characters that it stands for, normalized.

        >>> tokenizer = Tokenizer.train(["the bank"], TokenizerConfig("word", lowercase=True))
        >>> tokenizer.known_and_unknown(tokenizer.encode("The BANJO"), "The BANJO")
        ['the', 'banjo']
        """
        return [
            self.normalize(text[start:end]) if number == self.unk else token
            for number, token, (start, end) in zip(found.ids, found.tokens, found.offsets, strict=True)
        ]

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Ids of many texts, on all cores."""
        for number, text in enumerate(texts, 1):
            check_characters(text, f"text {number}")
        if self._encoder is not None:
            return self._encoder.encode_batch(texts)
        return [found.ids for found in self._inner.encode_batch_fast(texts, add_special_tokens=False)]

    def normalize(self, text: str) -> str:
        """The text after the replacements that come before it is cut into tokens.

        >>> Tokenizer.train(["the bank"], TokenizerConfig("word", lowercase=True)).normalize("The ﬁrst BANK")
        'the first bank'
        """
        text = text if self._charsmap is None else self._charsmap.normalize(text)
        return self._inner.normalizer.normalize_str(text) if self._inner.normalizer else text

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, without <PAD>, <SOS> and <EOS>; unknown tokens stay as <UNK>."""
        return self._inner.decode(self._check_ids(ids), skip_special_tokens=True)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Tokens at these ids: entries of the vocabulary, those of byte-bpe as text.

        >>> tokenizer = Tokenizer.train(["the sea"], TokenizerConfig("byte-bpe", vocab_size=270))
        >>> tokenizer.encode("the sé").tokens
        ['t', 'h', 'e', ' ', 's', '<0xC3>', '<0xA9>']
        """
        return [self.token(i) for i in self._check_ids(ids)]

    def token(self, id: int) -> str:
        """The token at one id, as in `tokens`."""
        return self._texts[id]

    @property
    def size(self) -> int:
        """Size of the vocabulary, special tokens included."""
        return len(self.vocabulary)

    @cached_property
    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
        numbers = self._inner.get_vocab()
        return sorted(numbers, key=lambda token: numbers[token])

    @cached_property
    def _texts(self) -> list[str]:
        is_bytes = isinstance(self._inner.decoder, decoders.ByteLevel)
        return [token_text(token) for token in self.vocabulary] if is_bytes else self.vocabulary

    @property
    def has_cls(self) -> bool:
        """Whether `sos` and `eos` are BERT's [CLS] and [SEP], which its models expect around every text."""
        return self.vocabulary[self.sos] in SOS[1:]

    @property
    def mask(self) -> int | None:
        """Id of BERT's [MASK], where the vocabulary has one."""
        return self._inner.token_to_id(MASK[0])

    @property
    def json(self) -> str:
        """Content of the file."""
        return self._json

    def with_mask(self) -> Tokenizer:
        """The same tokenizer with [MASK] as one more special token; itself if it has one."""
        return self.with_special(MASK)

    def with_special(self, names: Sequence[str]) -> Tokenizer:
        """The same tokenizer with more special tokens, after all others; itself if it has all of them."""
        new = [name for name in names if self._inner.token_to_id(name) is None]
        return Tokenizer(add_special(tokenizers.Tokenizer.from_str(self._json), new).to_str()) if new else self

    def id_of(self, token: str) -> int:
        """Id of a token of the vocabulary, as the vocabulary spells it."""
        number = self._inner.token_to_id(token)
        if number is None:
            raise ModelError(f'Expected a vocabulary with "{token}", which is not among its tokens')
        return number

    def fingerprint(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self._json.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        return f"<Tokenizer of {self.size:,} tokens, {self.fingerprint()[:8]}>"

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[str]]:
        return Tokenizer, (self._json,)  # pickling loses encode_special_tokens, which __init__ sets again

    def _special_id(self, names: tuple[str | None, ...]) -> int:
        known = [name for name in names if name is not None]
        for name in (*known, END_OF_TEXT):
            number = self._inner.token_to_id(name)
            if number is not None:
                return number
        raise ModelError(f"Expected a vocabulary with {' or '.join(known[:2])}, found neither among its tokens")

    def _check_ids(self, ids: Sequence[int]) -> list[int]:
        whole = [int(i) for i in ids]
        if whole and (min(whole) < 0 or max(whole) >= self.size):
            wrong = next(i for i in whole if not 0 <= i < self.size)
            raise DataError(f"Expected ids from 0 to {self.size - 1}, got {wrong}: another vocabulary made them")
        return whole


def template_tokens(text: str) -> tuple[str | None, str | None]:
    """The tokens that the post-processor of a tokenizer.json puts before and after a text; None where it puts none.

    >>> parts = [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]
    >>> template_tokens(json.dumps({"post_processor": {"type": "TemplateProcessing", "single": parts}}))
    ('<s>', None)
    """
    processor = json.loads(text).get("post_processor") or {}
    steps = processor.get("processors", [processor])
    parts: list[dict[str, Any]] = next(
        (step["single"] for step in steps if step.get("type") == "TemplateProcessing"), []
    )
    names = [part.get("SpecialToken", {}).get("id") for part in parts]
    return (names[0], names[-1]) if names else (None, None)


def _read_text(path: Path) -> str:
    try:
        return read_kept(path, MAX_SIZE).decode()
    except OSError as error:
        raise InputError(f"{path}: the tokenizer cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: expected a tokenizer in UTF-8, byte {error.start + 1} is not") from None
