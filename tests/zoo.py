"""One tiny instance of every family and what it reads. A law that holds in the zoo holds for the product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from regard.models.base import EncoderDecoder
from regard.models.gpt import GPTConfig
from regard.models.seq2seq import LSTMEncoder, Seq2SeqConfig
from regard.models.transformer import TransformerConfig, TransformerDecoder
from regard.sequence import SOS, Rows, Tokens
from regard.spaces import Words

V, D = 8, 16
words = Words(V)


def text(batch: int = 3) -> Tokens:
    """Sources of 5, 3 and 1 words."""
    return Tokens.of([[4, 5, 6, 7, 5][: 5 - 2 * i] for i in range(batch)])


def nothing(batch: int = 3) -> Tokens:
    return Tokens(torch.zeros(batch, 0, dtype=torch.long), torch.zeros(batch, dtype=torch.long), ragged=False)


@dataclass(frozen=True)
class Animal:
    make: Callable[[], EncoderDecoder]
    source: Callable[..., Rows]


def _transformer(**changes: object) -> TransformerConfig:
    return replace(TransformerConfig(layers=2, width=D, inner=32, heads=4, dropout=0.1, longest=32), **changes)


def _crossed() -> EncoderDecoder:
    """Any encoder with any decoder."""
    encoder = LSTMEncoder(Seq2SeqConfig(layers=1, width=D, reverse=False), words)
    return EncoderDecoder(encoder, TransformerDecoder(_transformer(layers=1), words))


ZOO = {
    "transformer": Animal(lambda: _transformer().build(words, words), text),
    "transformer-pre": Animal(lambda: _transformer(norm="pre", tie="none").build(words, words), text),
    "transformer-learned": Animal(lambda: _transformer(positions="learned", tie="target").build(words, words), text),
    "gpt": Animal(lambda: GPTConfig(layers=2, width=D, heads=4, longest=32).build(words, words), nothing),
    "seq2seq": Animal(lambda: Seq2SeqConfig(layers=2, width=D, dropout=0.1).build(words, words), text),
    "lstm-transformer": Animal(_crossed, text),
}

TARGET = Tokens.full(torch.tensor([[SOS, 4, 5, 6, 7], [SOS, 7, 6, 5, 4], [SOS, 4, 4, 4, 4]]))
RAGGED = Tokens.of([[SOS, 4, 5, 6, 3], [SOS, 7, 3], [SOS, 3]])


def build(name: str) -> EncoderDecoder:
    torch.manual_seed(0)
    return ZOO[name].make().eval()


def alone(rows: Rows, i: int) -> Rows:
    """Row i without its neighbours, and so without padding."""
    one = rows.select(torch.tensor([i]))
    if isinstance(one, Tokens):
        one = replace(one.map(lambda t: t if t.ndim == 1 else t[:, : int(one.lengths)]), ragged=False)
    return one


def sharpen(model: nn.Module) -> None:
    """Untrained models say the same everywhere: make them decided, so that they end at different times."""
    torch.manual_seed(3)
    for p in model.parameters():
        p.data += torch.randn_like(p) * 0.4
