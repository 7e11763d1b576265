"""Tokenizer training and use: text to ids and back, stored in one JSON file that transformers can load as well.

Letters, digits and other signs never share a pre-token, so no pre-token, and hence no learned piece, can be spelled
like a special token: "<EOS>" in a text is "<", "EOS", ">" and never the end of a sequence.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, assert_never, final, get_args

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import ConfigError, DataError, InputError, ModelError
from regard.files import write_text_atomically
from regard.manifest import read_kept
from regard.text.unigram import learn_pieces

TokenizerKind = Literal["char", "word", "bpe", "byte-bpe", "unigram"]
SPECIAL = ("<PAD>", "<UNK>", "<SOS>", "<EOS>")
BYTES = 256
PAD, UNK, SOS, EOS, MASK = ("<PAD>", "[PAD]"), ("<UNK>", "[UNK]"), ("<SOS>", "[CLS]"), ("<EOS>", "[SEP]"), ("[MASK]",)
"""names of the special tokens: in vocabularies made here, in those of BERT"""
MAX_SIZE = 64 << 20
"""bytes of the largest tokenizer.json; the library takes seconds to parse a larger one"""
TRAIN_CHARACTERS = 30_000_000
"""characters that a tokenizer is trained on: more would take memory and change little"""


@dataclass(frozen=True)
class TokenizerConfig:
    """Settings of tokenizer training; only `dropout` is used afterwards, by `BPEDropout`."""

    kind: TokenizerKind = "bpe"
    """char, word, bpe (pieces of words), byte-bpe (pieces of bytes: nothing is unknown) or unigram"""
    vocab_size: int = 8000
    """largest vocabulary, the four special tokens included; little text gives a smaller one"""
    normalization: Literal["nfkc", "none"] = "nfkc"
    """Unicode normalization: nfkc writes equal-looking characters in one way; none keeps the text as it is"""
    lowercase: bool = False
    """convert the text to lower case"""
    dropout: float = 0.0
    """BPE-dropout: share of merges skipped at random during training (bpe and byte-bpe)"""
    tokenizer: Path | None = None
    """take the tokenizer of this run, or of this tokenizer.json, instead of training one"""
    max_pretoken: int = 64
    """most characters of a pre-token, which is cut into tokens on its own"""

    def __post_init__(self) -> None:
        if self.kind not in get_args(TokenizerKind):
            raise ConfigError(f"kind: expected one of {', '.join(get_args(TokenizerKind))}, got {self.kind!r}")
        if self.normalization not in ("nfkc", "none"):
            raise ConfigError(f"normalization: expected nfkc or none, got {self.normalization!r}")
        least = len(SPECIAL) + (BYTES if self.kind == "byte-bpe" else 1)
        if self.vocab_size < least:
            raise ConfigError(f'vocab_size = {self.vocab_size} must be at least {least} for kind = "{self.kind}"')
        if not 0 <= self.dropout <= 1:
            raise ConfigError(f"dropout = {self.dropout} must be from 0 to 1")
        if self.dropout and self.kind not in ("bpe", "byte-bpe"):
            raise ConfigError(
                f'dropout = {self.dropout} needs merges to skip, and kind = "{self.kind}" has none; set dropout = 0, '
                "or kind to bpe or byte-bpe"
            )
        if not 1 <= self.max_pretoken <= 1000:
            raise ConfigError(f"max_pretoken = {self.max_pretoken} must be from 1 to 1000 characters")


@dataclass(frozen=True)
class Encoded:
    """Token ids of a text, and the characters that each id comes from."""

    ids: list[int]
    tokens: list[str]
    """entries of the vocabulary at these ids"""
    offsets: list[tuple[int, int]]
    """first and last + 1 character, in the text before normalization"""


@final
class Tokenizer:
    """Text to ids and back; immutable, and equal to another one with the same content.

    `encode` adds no <SOS> or <EOS>, and a text that contains such a name is not taken for the special token. Decoding
    restores: byte-bpe any text, exactly; char, bpe and unigram any text of known characters; word puts one space
    between words and signs, whatever was there. Each up to what `normalization` and `lowercase` change.

    >>> tokenizer = Tokenizer.train(["like a lamb", "like a line"], TokenizerConfig(vocab_size=300))
    >>> tokenizer.encode("like a lamb").tokens
    [' like', ' a', ' l', 'a', 'm', 'b']
    >>> tokenizer.decode(tokenizer.encode("like a lamb").ids)
    'like a lamb'
    """

    def __init__(self, json: str) -> None:
        try:
            inner = tokenizers.Tokenizer.from_str(json)
        except Exception as error:  # the library raises nothing narrower
            raise ModelError(f"Expected the JSON of a tokenizer: {error}") from None
        inner.encode_special_tokens = True  # "<EOS>" in a text is text; the file cannot say so
        inner.no_padding()
        inner.no_truncation()
        self._inner = inner
        self._json = inner.to_str()
        self.pad, self.unk, self.sos, self.eos = (self._special_id(names) for names in (PAD, UNK, SOS, EOS))

    @classmethod
    def train(cls, lines: Iterable[str], config: TokenizerConfig) -> Tokenizer:
        """Train a tokenizer on lines, which are read once and not kept; deterministic on every machine."""
        return cls(_train(lines, config).to_str())

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
        inner = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        inner.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        inner.decoder = decoders.WordPiece()
        special: list[str] = [name for name in ("[PAD]", "[CLS]", "[SEP]", "[MASK]") if name in vocabulary]
        return cls(_add_special(inner, special).to_str())

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
        found = self._inner.encode(text, add_special_tokens=False)
        return Encoded(found.ids, self.tokens(found.ids), found.offsets)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Ids of many texts, on all cores."""
        for number, text in enumerate(texts, 1):
            check_characters(text, f"text {number}")
        return [found.ids for found in self._inner.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, without <PAD>, <SOS> and <EOS>; unknown tokens stay as <UNK>."""
        return self._inner.decode(self._check_ids(ids), skip_special_tokens=True)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Entries of the vocabulary at these ids."""
        vocabulary = self.vocabulary
        return [vocabulary[i] for i in self._check_ids(ids)]

    @property
    def size(self) -> int:
        """Size of the vocabulary, special tokens included."""
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
        """Content of the file."""
        return self._json

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

    def _special_id(self, names: tuple[str, ...]) -> int:
        for name in names:
            number = self._inner.token_to_id(name)
            if number is not None:
                return number
        raise ModelError(f"Expected a vocabulary with {' or '.join(names)}, found neither among its tokens")

    def _check_ids(self, ids: Sequence[int]) -> list[int]:
        whole = [int(i) for i in ids]
        if whole and (min(whole) < 0 or max(whole) >= self.size):
            wrong = next(i for i in whole if not 0 <= i < self.size)
            raise DataError(f"Expected ids from 0 to {self.size - 1}, got {wrong}: another vocabulary made them")
        return whole


def _read_text(path: Path) -> str:
    try:
        return read_kept(path, MAX_SIZE).decode()
    except OSError as error:
        raise InputError(f"{path}: the tokenizer cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: expected a tokenizer in UTF-8, byte {error.start + 1} is not") from None


def _train(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Train a tokenizer of the tokenizers library on lines, which are read once and not kept."""
    learner = _build_tokenizer(config, models.WordLevel(unk_token="<UNK>"))
    checked = _checked_lines(lines)
    match config.kind:
        case "bpe" | "byte-bpe":
            model = _train_bpe(checked, config)
        case "word":
            trainer = trainers.WordLevelTrainer(
                vocab_size=config.vocab_size, min_frequency=1, special_tokens=list(SPECIAL), show_progress=False
            )
            learner.train_from_iterator(checked, trainer)
            model = learner.model
        case "char":
            model = _train_char(checked, config, learner)
        case "unigram":
            model = _train_unigram(checked, config, learner)
        case _:
            assert_never(config.kind)
    return _add_special(_build_tokenizer(config, model), [token for token in SPECIAL if token != "<UNK>"])


def _add_special(tokenizer: tokenizers.Tokenizer, special: list[str]) -> tokenizers.Tokenizer:
    """Mark tokens that decoding leaves out. <UNK> is not one of them: unknown tokens are to be seen."""
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def _build_tokenizer(config: TokenizerConfig, model: models.Model) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(model)
    steps: list[normalizers.Normalizer] = []
    if config.normalization == "nfkc":
        steps.append(normalizers.NFKC())
    if config.lowercase:
        steps.append(normalizers.Lowercase())
    cut = pre_tokenizers.Split(Regex(_pretoken_pattern(config.max_pretoken)), "isolated")
    match config.kind:
        case "char":
            tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(rf"[\s\S]{{1,{config.max_pretoken}}}"), "isolated")
            tokenizer.decoder = decoders.Fuse()
        case "word":
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), cut])
        case "byte-bpe":
            as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, as_bytes])
            tokenizer.decoder = decoders.ByteLevel()
        case "bpe" | "unigram":
            # A word is the same piece at the start of a line as after a space: one space goes in front, and off again.
            steps.append(normalizers.Prepend(" "))
            tokenizer.pre_tokenizer = cut
            tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        case _:
            assert_never(config.kind)
    if steps:
        tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def _pretoken_pattern(longest: int) -> str:
    """A space and letters, digits or other signs, or white space; no run is longer than `longest`."""
    joiner = r"\x{200C}\x{200D}"
    letter = rf"(?:[\p{{L}}\p{{M}}{joiner}]|(?<=\p{{L}})['\x{{2019}}](?=\p{{L}}))"
    other = rf"[^\s\p{{L}}\p{{M}}\p{{N}}{joiner}]"
    run = f"{{1,{longest}}}"
    return rf" ?{letter}{run}| ?\p{{N}}{run}| ?{other}{run}|\s{run}(?!\S)|\s{run}"


def _checked_lines(lines: Iterable[str]) -> Iterator[str]:
    empty = True
    for number, line in enumerate(lines, 1):
        check_characters(line, f"line {number} of the text to train on")
        empty = empty and not line.strip()
        yield line
    if empty:
        raise DataError("A tokenizer needs text to train on, and every line was empty; check the paths of the data")


def check_characters(text: str, where: str) -> None:
    """Refuse half of a surrogate pair: it is no character, and no encoding can write it."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: character {error.start + 1} is U+{ord(text[error.start]):04X}, half of a surrogate pair and "
            "no character; decode the text as UTF-8 or UTF-16 again, or leave it out"
        ) from None


def _train_bpe(lines: Iterator[str], config: TokenizerConfig) -> models.Model:
    as_bytes = config.kind == "byte-bpe"
    learner = _build_tokenizer(config, models.BPE() if as_bytes else models.BPE(unk_token="<UNK>"))
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()) if as_bytes else [],
        show_progress=False,
    )
    learner.train_from_iterator(lines, trainer)
    _check_vocab_size(sum(len(token) == 1 for token in learner.get_vocab()), config)
    return learner.model


def _train_char(lines: Iterator[str], config: TokenizerConfig, learner: tokenizers.Tokenizer) -> models.Model:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(_normalize(learner, line))
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    vocabulary = [*SPECIAL, *ranked[: config.vocab_size - len(SPECIAL)]]
    return models.BPE({token: i for i, token in enumerate(vocabulary)}, [], unk_token="<UNK>")


def _train_unigram(lines: Iterator[str], config: TokenizerConfig, learner: tokenizers.Tokenizer) -> models.Model:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(word for word, _ in learner.pre_tokenizer.pre_tokenize_str(_normalize(learner, line)))
    _check_vocab_size(len(set().union(*counts)), config)
    pieces = learn_pieces(counts, config.vocab_size - len(SPECIAL))
    return models.Unigram([*((token, 0.0) for token in SPECIAL), *pieces], unk_id=SPECIAL.index("<UNK>"))


def _normalize(tokenizer: tokenizers.Tokenizer, line: str) -> str:
    return tokenizer.normalizer.normalize_str(line) if tokenizer.normalizer else line


def _check_vocab_size(characters: int, config: TokenizerConfig) -> None:
    least = characters + len(SPECIAL)
    if least > config.vocab_size:
        raise ConfigError(
            f"text.vocab_size = {config.vocab_size} is too small for the {characters} different characters of the text;"
            f' set it to at least {least}, or text.kind to "byte-bpe"'
        )
