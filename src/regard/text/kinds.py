"""The kinds of tokenizer: how text is made normal, cut into pre-tokens, learnt from, and put together again.

Letters, digits and other signs never share a pre-token, so no pre-token, and hence no piece that is learnt, can be
spelled like a special token: "<EOS>" in a text is "<", "EOS", ">" and never the end of a sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, assert_never, get_args

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from regard.errors import ConfigError, DataError
from regard.text.unigram import learn_pieces

Kind = Literal["char", "word", "bpe", "byte-bpe", "unigram"]

SPECIAL = ("<PAD>", "<UNK>", "<SOS>", "<EOS>")
BYTES = 256


@dataclass(frozen=True)
class TokenizerConfig:
    """How a tokenizer is trained; nothing of it is needed afterwards, except that `dropout` is given to `Dropout`.

    >>> TokenizerConfig(kind="char", size=100).lowercase
    False
    """

    kind: Kind = "bpe"
    """char, word, bpe (pieces of words), byte-bpe (pieces of bytes: nothing is unknown) or unigram"""
    size: int = 8000
    """largest vocabulary, the four special tokens included; little text gives a smaller one"""
    normal: Literal["nfkc", "none"] = "nfkc"
    """nfkc writes equal-looking characters in one way; none keeps the text as it is"""
    lowercase: bool = False
    """forget capital letters"""
    dropout: float = 0.0
    """share of merges left out at random while a model is trained (bpe and byte-bpe)"""
    longest: int = 64
    """longest run of characters that is cut into tokens as one"""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ConfigError(f"tokenizer.kind: expected one of {', '.join(get_args(Kind))}, got {self.kind!r}.")
        if self.normal not in ("nfkc", "none"):
            raise ConfigError(f"tokenizer.normal: expected nfkc or none, got {self.normal!r}.")
        least = len(SPECIAL) + (BYTES if self.kind == "byte-bpe" else 1)
        if self.size < least:
            raise ConfigError(f"tokenizer.size: {self.kind} needs at least {least}, got {self.size}.")
        if not 0 <= self.dropout <= 1:
            raise ConfigError(f"tokenizer.dropout: expected a share from 0 to 1, got {self.dropout}.")
        if self.dropout and self.kind not in ("bpe", "byte-bpe"):
            raise ConfigError(
                f"tokenizer.dropout: {self.kind} has no merges to leave out, got {self.dropout}; "
                "set it to 0, or kind to bpe or byte-bpe."
            )
        if not 1 <= self.longest <= 1000:
            raise ConfigError(f"tokenizer.longest: expected from 1 to 1000 characters, got {self.longest}.")


def train(lines: Iterable[str], config: TokenizerConfig) -> tokenizers.Tokenizer:
    """A tokenizer learnt from lines that are read once and not kept.

    >>> train(["a b"], TokenizerConfig(kind="char")).get_vocab_size()
    7
    """
    trained = _untrained(config, models.WordLevel(unk_token="<UNK>"))
    read = _checked(lines)
    match config.kind:
        case "bpe" | "byte-bpe":
            model = _merges(read, config)
        case "word":
            trainer = trainers.WordLevelTrainer(
                vocab_size=config.size, min_frequency=1, special_tokens=list(SPECIAL), show_progress=False
            )
            trained.train_from_iterator(read, trainer)
            model = trained.model
        case "char":
            model = _characters(read, config, trained)
        case "unigram":
            model = _pieces(read, config, trained)
        case _:
            assert_never(config.kind)
    return with_special(_untrained(config, model), [token for token in SPECIAL if token != "<UNK>"])


def with_special(tokenizer: tokenizers.Tokenizer, special: list[str]) -> tokenizers.Tokenizer:
    """The tokenizer with tokens that decoding leaves out. <UNK> is none of them: what is unknown is to be seen.

    >>> with_special(train(["a"], TokenizerConfig(kind="char")), ["<PAD>"]).decode([0, 4])
    'a'
    """
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def _untrained(config: TokenizerConfig, model: models.Model) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(model)
    steps: list[normalizers.Normalizer] = []
    if config.normal == "nfkc":
        steps.append(normalizers.NFKC())
    if config.lowercase:
        steps.append(normalizers.Lowercase())
    cut = pre_tokenizers.Split(Regex(_pattern(config.longest)), "isolated")
    match config.kind:
        case "char":
            tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(rf"[\s\S]{{1,{config.longest}}}"), "isolated")
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


def _pattern(longest: int) -> str:
    """A space and letters, digits or other signs, or white space; no run is longer than `longest`."""
    joiner = r"\x{200C}\x{200D}"
    letter = rf"(?:[\p{{L}}\p{{M}}{joiner}]|(?<=\p{{L}})['\x{{2019}}](?=\p{{L}}))"
    other = rf"[^\s\p{{L}}\p{{M}}\p{{N}}{joiner}]"
    run = f"{{1,{longest}}}"
    return rf" ?{letter}{run}| ?\p{{N}}{run}| ?{other}{run}|\s{run}(?!\S)|\s{run}"


def _checked(lines: Iterable[str]) -> Iterator[str]:
    something = False
    for number, line in enumerate(lines, 1):
        check_characters(line, f"line {number} of the text to train on")
        something = something or bool(line.strip())
        yield line
    if not something:
        raise DataError("A tokenizer needs text to train on, and every line was empty; check the paths of the data.")


def check_characters(text: str, where: str) -> None:
    """Refuses half of a surrogate pair: it is no character, and no encoding can write it.

    >>> check_characters("ok", "here")
    """
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}: character {error.start + 1} is U+{ord(text[error.start]):04X}, half of a surrogate pair and "
            "no character; decode the text as UTF-8 or UTF-16 again, or leave it out."
        ) from None


def _merges(lines: Iterator[str], config: TokenizerConfig) -> models.Model:
    as_bytes = config.kind == "byte-bpe"
    learner = _untrained(config, models.BPE() if as_bytes else models.BPE(unk_token="<UNK>"))
    trainer = trainers.BpeTrainer(
        vocab_size=config.size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()) if as_bytes else [],
        show_progress=False,
    )
    learner.train_from_iterator(lines, trainer)
    _check_room(sum(len(token) == 1 for token in learner.get_vocab()), config)
    return learner.model


def _characters(lines: Iterator[str], config: TokenizerConfig, cut: tokenizers.Tokenizer) -> models.Model:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(_normal(cut, line))
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    vocabulary = [*SPECIAL, *ranked[: config.size - len(SPECIAL)]]
    return models.BPE({token: i for i, token in enumerate(vocabulary)}, [], unk_token="<UNK>")


def _pieces(lines: Iterator[str], config: TokenizerConfig, cut: tokenizers.Tokenizer) -> models.Model:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(word for word, _ in cut.pre_tokenizer.pre_tokenize_str(_normal(cut, line)))
    _check_room(len(set().union(*counts)), config)
    pieces = learn_pieces(counts, config.size - len(SPECIAL))
    return models.Unigram([*((token, 0.0) for token in SPECIAL), *pieces], unk_id=SPECIAL.index("<UNK>"))


def _normal(tokenizer: tokenizers.Tokenizer, line: str) -> str:
    return tokenizer.normalizer.normalize_str(line) if tokenizer.normalizer else line


def _check_room(characters: int, config: TokenizerConfig) -> None:
    least = characters + len(SPECIAL)
    if least > config.size:
        raise ConfigError(
            f"tokenizer.size: {config.size} is too small for the {characters} different characters of the text; "
            f"give at least {least}, or set kind to byte-bpe."
        )
