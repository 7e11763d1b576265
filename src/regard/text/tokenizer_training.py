"""Tokenizer training: settings, and the tokenizers of the tokenizers library that they give.

Letters, digits and other signs never share a pre-token, so no pre-token, and hence no learned piece, can be spelled
like a special token: "<EOS>" in a text is "<", "EOS", ">" and never the end of a sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never, get_args

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import ConfigError, DataError
from regard.text.unigram import learn_pieces
from regard.text.wordpiece import learn_wordpieces

TokenizerKind = Literal["char", "word", "bpe", "byte-bpe", "unigram", "wordpiece"]
SPECIAL = ("<PAD>", "<UNK>", "<SOS>", "<EOS>")
BYTES = 256
PAD, UNK, SOS, EOS, MASK = ("<PAD>", "[PAD]"), ("<UNK>", "[UNK]"), ("<SOS>", "[CLS]"), ("<EOS>", "[SEP]"), ("[MASK]",)
"""names of the special tokens: in vocabularies made here, in those of BERT"""
END_OF_TEXT = "<|endoftext|>"
"""GPT-2's only special token: begins and ends texts"""
IMPORTED_PAD, IMPORTED_UNK = "<pad>", "<unk>"
"""names in vocabularies of other models, whose post-processor says what begins and ends a text"""
WORDPIECE_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TRAIN_CHARACTERS = 30_000_000
"""characters that a tokenizer is trained on: more would take memory and change little"""


@dataclass(frozen=True)
class TokenizerConfig:
    """Settings of tokenizer training; only `dropout` is used afterwards, by `BPEDropout`."""

    kind: TokenizerKind = "bpe"
    """char, word, bpe (pieces of words), byte-bpe (pieces of bytes: nothing is unknown), unigram, or wordpiece (as in
    BERT, with its special tokens)"""
    vocab_size: int = 8000
    """largest vocabulary, the four special tokens included; little text gives a smaller one"""
    normalization: Literal["nfkc", "none"] = "nfkc"
    """Unicode normalization: nfkc writes equal-looking characters in one way; none keeps the text as it is"""
    lowercase: bool = False
    """convert the text to lower case"""
    dropout: float = 0.0
    """BPE-dropout: share of merges skipped at random during training (bpe and byte-bpe)"""
    tokenizer: Path | None = None
    """take the tokenizer of this run, of this tokenizer.json, of BERT's vocab.txt, or of a folder with GPT-2's
    encoder.json and vocab.bpe, instead of training one"""
    max_pretoken: int = 64
    """most characters of a pre-token, which is cut into tokens on its own"""

    def __post_init__(self) -> None:
        if self.kind not in get_args(TokenizerKind):
            raise ConfigError(f"kind: expected one of {', '.join(get_args(TokenizerKind))}, got {self.kind!r}")
        if self.normalization not in ("nfkc", "none"):
            raise ConfigError(f"normalization: expected nfkc or none, got {self.normalization!r}")
        least = len(special_tokens(self.kind)) + (BYTES if self.kind == "byte-bpe" else 1)
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


def train_tokenizer(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """Train a tokenizer of the tokenizers library on lines, which are read once and not kept."""
    learner = build_tokenizer(config, models.WordLevel(unk_token="<UNK>"))
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
        case "wordpiece":
            model = _train_wordpiece(checked, config, learner)
        case _:
            assert_never(config.kind)
    special = [token for token in special_tokens(config.kind) if token not in UNK]
    return add_special(build_tokenizer(config, model), special)


def special_tokens(kind: TokenizerKind) -> tuple[str, ...]:
    """The special tokens of a trained vocabulary, in the order of their ids from 0."""
    return WORDPIECE_SPECIAL if kind == "wordpiece" else SPECIAL


def add_special(tokenizer: tokenizers.Tokenizer, special: list[str]) -> tokenizers.Tokenizer:
    """Mark tokens that decoding leaves out. <UNK> is not one of them: unknown tokens are to be seen."""
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def build_tokenizer(config: TokenizerConfig, model: models.Model) -> tokenizers.Tokenizer:
    """A tokenizer of the library with the normalization, pre-tokens and decoder of a kind."""
    tokenizer = tokenizers.Tokenizer(model)
    steps: list[normalizers.Normalizer] = []
    if config.normalization == "nfkc":
        steps.append(normalizers.NFKC())
    if config.lowercase and config.kind != "wordpiece":  # BERT's normalization has it
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
        case "wordpiece":
            steps.append(normalizers.BertNormalizer(lowercase=config.lowercase))
            tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            tokenizer.decoder = decoders.WordPiece()
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
    learner = build_tokenizer(config, models.BPE() if as_bytes else models.BPE(unk_token="<UNK>"))
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


def _train_wordpiece(lines: Iterator[str], config: TokenizerConfig, learner: tokenizers.Tokenizer) -> models.Model:
    counts = _count_pretokens(lines, learner)
    inside = set().union(*(word[1:] for word in counts))
    _check_vocab_size(len(set().union(*counts)) + len(inside), config)  # "a" and "##a" are two
    pieces = learn_wordpieces(counts, config.vocab_size - len(WORDPIECE_SPECIAL))
    vocabulary = {token: i for i, token in enumerate([*WORDPIECE_SPECIAL, *pieces])}
    return models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=config.max_pretoken)


def _count_pretokens(lines: Iterator[str], learner: tokenizers.Tokenizer) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(word for word, _ in learner.pre_tokenizer.pre_tokenize_str(_normalize(learner, line)))
    return counts


def _train_unigram(lines: Iterator[str], config: TokenizerConfig, learner: tokenizers.Tokenizer) -> models.Model:
    counts = _count_pretokens(lines, learner)
    _check_vocab_size(len(set().union(*counts)), config)
    pieces = learn_pieces(counts, config.vocab_size - len(SPECIAL))
    return models.Unigram([*((token, 0.0) for token in SPECIAL), *pieces], unk_id=SPECIAL.index("<UNK>"))


def _normalize(tokenizer: tokenizers.Tokenizer, line: str) -> str:
    return tokenizer.normalizer.normalize_str(line) if tokenizer.normalizer else line


def _check_vocab_size(characters: int, config: TokenizerConfig) -> None:
    least = characters + len(special_tokens(config.kind))
    if least > config.vocab_size:
        raise ConfigError(
            f"text.vocab_size = {config.vocab_size} is too small for the {characters} different characters of the text;"
            f' set it to at least {least}, or text.kind to "byte-bpe"'
        )
