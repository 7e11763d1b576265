"""Rows of an embedding for another vocabulary: tokens are matched by their strings, new ones start from their pieces.

Tokenizers of different kinds write the same text differently (" like", "like", "Ġlike", "##ing"), so tokens are
compared in one form, in which a leading space marks the beginning of a word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import decoders, pre_tokenizers

from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_training import MASK, SPECIAL

if TYPE_CHECKING:
    from torch import Tensor

NOT_TEXT = "\0"
"""marks a token of byte-bpe that is a part of a character"""


def no_pieces(string: str) -> list[int]:
    """No pieces: of labels and characters, which are not cut."""
    return []


@dataclass(frozen=True)
class TokenStrings:
    """The entries of a vocabulary in a comparable form, and how it cuts other strings into its entries."""

    strings: Sequence[str]
    """one per id, in order; special tokens are <PAD>, <UNK>, <SOS> and <EOS>, whatever the vocabulary calls them"""
    segment: Callable[[str], list[int]] = no_pieces
    """ids of the known pieces of a string that is not an entry"""


@dataclass(frozen=True)
class RowCounts:
    """Where the rows of an embedding or an output projection come from."""

    copied: int
    """tokens that both vocabularies have"""
    from_pieces: int
    """new tokens: the mean of the rows of their pieces in the old vocabulary"""
    fresh: int
    """new tokens without a known piece: initial weights"""


def tokenizer_strings(tokenizer: Tokenizer) -> TokenStrings:
    """The entries of a tokenizer in a comparable form.

    >>> from regard.text import TokenizerConfig
    >>> words = Tokenizer.train(["we like it"], TokenizerConfig(kind="word"))
    >>> pieces = Tokenizer.train(["like it"] * 3, TokenizerConfig(vocab_size=20))
    >>> tokenizer_strings(words).strings[4:], tokenizer_strings(pieces).strings[-2:]
    ([' it', ' like', ' we'], [' lik', ' like'])
    """
    content, inner = json.loads(tokenizer.json), tokenizers.Tokenizer.from_str(tokenizer.json)
    kind, as_bytes = content["model"]["type"], isinstance(inner.decoder, decoders.ByteLevel)
    special = dict(zip((tokenizer.pad, tokenizer.unk, tokenizer.sos, tokenizer.eos), SPECIAL, strict=True))
    special |= {} if tokenizer.mask is None else {tokenizer.mask: MASK[0]}
    prepends_space = "".join(tokenizer.encode("a").tokens).startswith(" ")

    def string(number: int, token: str) -> str:
        if number in special:
            return special[number]
        if kind in ("WordLevel", "WordPiece"):
            return token.removeprefix("##") if kind == "WordPiece" and token.startswith("##") else f" {token}"
        return _bytes_as_text(token) if as_bytes else token

    def segment(string: str) -> list[int]:
        if string.startswith(NOT_TEXT):
            text = string.removeprefix(NOT_TEXT) if as_bytes else ""
        else:
            text = tokenizer.normalize(string)
            text = text[1:] if prepends_space else text.removeprefix(" ") if kind.startswith("Word") else text
            text = _text_as_bytes(text) if as_bytes else text
        pieces = inner.model.tokenize(text) if text else []
        return [piece.id for piece in pieces if piece.id != tokenizer.unk]

    return TokenStrings([string(i, token) for i, token in enumerate(tokenizer.vocabulary)], segment)


def _bytes_as_text(token: str) -> str:
    """The text of a token of byte-bpe; a part of a character is marked."""
    text: str = decoders.ByteLevel().decode([token])
    return NOT_TEXT + token if "\N{REPLACEMENT CHARACTER}" in text else text


def _text_as_bytes(text: str) -> str:
    """A text in the alphabet of byte-bpe, one character per byte."""
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(part for part, _ in as_bytes.pre_tokenize_str(text))


def map_rows(weight_VD: Tensor, source: TokenStrings, initial_WD: Tensor, target: TokenStrings) -> RowCounts:
    """Fill the rows of another vocabulary in place: copies by string, means over pieces; other rows stay as they are.

    >>> import torch
    >>> rows, known = torch.tensor([[1.0], [2.0], [3.0]]), TokenStrings(["<PAD>", "b", "a"])
    >>> wanted = torch.zeros(3, 1)
    >>> map_rows(rows, known, wanted, TokenStrings(["<PAD>", "a", "c"])), wanted.tolist()
    (RowCounts(copied=2, from_pieces=0, fresh=1), [[1.0], [3.0], [0.0]])
    """
    known = {string: number for number, string in reversed(list(enumerate(source.strings)))}
    copied = from_pieces = 0
    for row, string in enumerate(target.strings):
        if string in known:
            initial_WD[row] = weight_VD[known[string]]
            copied += 1
        elif string not in (*SPECIAL, *MASK) and (pieces := source.segment(string)):
            initial_WD[row] = weight_VD[pieces].mean(0)
            from_pieces += 1
    return RowCounts(copied, from_pieces, len(target.strings) - copied - from_pieces)
