"""One tiny instance of every model family, with its source. A test on the zoo covers all families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from regard.models import EncoderOnlyConfig
from regard.models.base import Classifier, EncoderDecoder, Tagger
from regard.models.bert import BertConfig
from regard.models.cnn import CNNConfig
from regard.models.convolution import ConvolutionConfig
from regard.models.elmo import ELMoConfig
from regard.models.elmo_recurrent import ELMoRecurrentConfig
from regard.models.encoder_decoder import DecoderConfig, EncoderConfig, EncoderDecoderConfig
from regard.models.gnmt import GNMTConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.luong import LuongConfig
from regard.models.mlp import MLPConfig
from regard.models.pooling import make_pooling
from regard.models.recurrent import RecurrentConfig
from regard.models.resnet import ResNetConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.models.vit import ViTConfig
from regard.sequence import SOS, Images, Rows, Tokens
from regard.spaces import Classes, FactorizedWords, Gaussian, Pixels, Words

V, D = 8, 16
words = Words(V)


def text(batch: int = 3) -> Tokens:
    """Sources of 5, 3 and 1 words."""
    return Tokens.pad([[4, 5, 6, 7, 5][: 5 - 2 * i] for i in range(batch)])


def empty_source(batch: int = 3) -> Tokens:
    return Tokens(torch.zeros(batch, 0, dtype=torch.long), torch.zeros(batch, dtype=torch.long), ragged=False)


@dataclass(frozen=True)
class ZooEntry:
    make: Callable[[], EncoderDecoder]
    source: Callable[..., Rows]
    attends: bool = True
    """whether it has cross-attention, so that there are *.cross.weights"""


def _transformer(**changes: object) -> TransformerConfig:
    return replace(
        TransformerConfig(layers=2, width=D, ffn_width=32, heads=4, dropout=0.1, max_positions=32), **changes
    )


def _seq2seq(**changes: object) -> Seq2SeqConfig:
    return replace(Seq2SeqConfig(layers=2, width=D, dropout=0.1), **changes)


def _gpt(**changes: object) -> EncoderDecoder:
    return replace(GPTConfig(layers=2, width=D, heads=4, max_positions=32), **changes).build(words, words)


def _llama(**changes: object) -> EncoderDecoder:
    small = LlamaConfig(layers=2, width=D, ffn_width=24, heads=4, dropout=0.1, max_positions=32)
    return replace(small, **changes).build(words, words)


def _rnnlm(**changes: object) -> RNNLMConfig:
    return replace(RNNLMConfig(layers=1, width=D, dropout=0.1), **changes)


def _luong(**changes: object) -> LuongConfig:
    return replace(LuongConfig(layers=2, width=D, dropout=0.1), **changes)


def _crossed(encoder: EncoderConfig, decoder: DecoderConfig) -> EncoderDecoder:
    """Any encoder with any decoder."""
    return EncoderDecoderConfig(encoder=encoder, decoder=decoder).build(words, words)


_convolution = ConvolutionConfig(layers=2, width=12)
_small = _transformer(layers=1, tie="target")
_rnnsearch = RNNsearchConfig(embedding=12, width=10, alignment=9, maxout=D, dropout=0.1)
_gnmt = GNMTConfig(layers=3, width=D, dropout=0.1)

_elmo = ELMoConfig(width=D, cells=D, characters=5, filters=(4, 6), highways=1)

ZOO = {
    "transformer": ZooEntry(lambda: _transformer().build(words, words), text),
    "transformer-pre": ZooEntry(lambda: _transformer(norm="pre", tie="none").build(words, words), text),
    "transformer-learned": ZooEntry(lambda: _transformer(positions="learned", tie="target").build(words, words), text),
    "gpt": ZooEntry(_gpt, empty_source, False),
    "gpt-post": ZooEntry(lambda: _gpt(norm="post", heads=3, head_width=6, ffn_width=24), empty_source, False),
    "llama": ZooEntry(lambda: _llama(tie=True), empty_source, False),
    "llama-grouped": ZooEntry(lambda: _llama(kv_heads=2, head_width=6, qkv_bias=True), empty_source, False),
    "seq2seq": ZooEntry(lambda: _seq2seq().build(words, words), text, False),
    "seq2seq-tanh": ZooEntry(lambda: _seq2seq(layers=1, cell="tanh").build(words, words), text, False),
    "seq2seq-relu": ZooEntry(lambda: _seq2seq(cell="relu", context="every").build(words, words), text, False),
    "seq2seq-gru": ZooEntry(
        lambda: _seq2seq(cell="gru", context="every", bidirectional=True).build(words, words), text, False
    ),
    "rnnlm": ZooEntry(lambda: _rnnlm(layers=2, tie=True).build(words, words), empty_source, False),
    "rnnlm-every": ZooEntry(lambda: _rnnlm(cell="gru", condition="every").build(words, words), text, False),
    "elmo": ZooEntry(lambda: _elmo.build(words, words), empty_source, False),
    "elmo-projected": ZooEntry(lambda: replace(_elmo, cells=20).build(words, words), empty_source, False),
    "lstm-transformer": ZooEntry(lambda: _crossed(_seq2seq(layers=1, reverse=False), _small), text),
    "both-transformer": ZooEntry(lambda: _crossed(_seq2seq(layers=1, cell="gru", bidirectional=True), _small), text),
    "convolution-luong": ZooEntry(lambda: _crossed(_convolution, LuongConfig(layers=2, width=D, dropout=0.1)), text),
    "convolution-gru": ZooEntry(
        lambda: _crossed(replace(_convolution, units="relu"), _seq2seq(cell="gru", context="every")), text, False
    ),
    "rnnsearch": ZooEntry(lambda: _rnnsearch.build(words, words), text),
    "luong": ZooEntry(lambda: _luong().build(words, words), text),
    "luong-dot": ZooEntry(lambda: _luong(layers=1, score="dot", reverse=False).build(words, words), text),
    "luong-concat": ZooEntry(lambda: _luong(layers=1, score="concat").build(words, words), text),
    "luong-cosine": ZooEntry(lambda: _luong(layers=1, score="cosine").build(words, words), text),
    "luong-unfed": ZooEntry(lambda: _luong(feeding="none").build(words, words), text),
    "gnmt": ZooEntry(lambda: _gnmt.build(words, words), text),
    "transformer-rnnsearch": ZooEntry(lambda: _crossed(_small, _rnnsearch), text),
    "rnnsearch-luong": ZooEntry(lambda: _crossed(_rnnsearch, _luong(layers=1)), text),
}


def images(batch: int = 3) -> Images:
    """Random pixels."""
    return Images(torch.randn(batch, 3, 8, 8, generator=torch.Generator().manual_seed(1)))


def _captioner(encoder: EncoderConfig, decoder: DecoderConfig) -> EncoderDecoder:
    return EncoderDecoderConfig(encoder=encoder, decoder=decoder).build(Pixels(3, 8, 8), words)


_cnn = CNNConfig(channels=(4, 6), convolutions=1)
CAPTIONERS = {
    "cnn-seq2seq": ZooEntry(lambda: _captioner(_cnn, _seq2seq(layers=1)), images, False),
    "cnn-every": ZooEntry(lambda: _captioner(_cnn, _seq2seq(layers=1, context="every")), images, False),
    "cnn-rnnsearch": ZooEntry(lambda: _captioner(_cnn, _rnnsearch), images),
    "resnet-luong": ZooEntry(
        lambda: _captioner(ResNetConfig(width=4, depths=(1, 1), stem="small"), _luong(layers=1)), images
    ),
    "vit-transformer": ZooEntry(lambda: _captioner(ViTConfig(layers=1, width=8, heads=2, patch=4), _small), images),
}
"""encoders of images with decoders of words"""

REAL = {
    "rnnlm-gaussian": ZooEntry(lambda: _rnnlm(cell="gru").build(Gaussian(2), Gaussian(2)), empty_source, False),
}
"""models of real-valued sequences, which are not searched"""

C = 3
POOLS = ("last", "mean", "max", "first")
READING: dict[str, EncoderOnlyConfig] = {
    "lstm": RecurrentConfig(width=D, dropout=0.1),
    "gru-deep": RecurrentConfig(cell="gru", layers=2, width=D, dropout=0.1),
    "tanh": RecurrentConfig(cell="tanh", width=D, bidirectional=False, dropout=0.1),
    "relu": RecurrentConfig(cell="relu", width=D, dropout=0.1),
    "convolution": ConvolutionConfig(layers=2, width=D),
    "transformer": _transformer(norm="pre"),
    "transformer-learned": _transformer(layers=1, positions="learned"),
    "bert": BertConfig(layers=2, width=D, ffn_width=32, heads=4, max_positions=32),
    "elmo": _elmo,
    "elmo-recurrent": ELMoRecurrentConfig(elmo=_elmo, width=D, dropout=0.1, elmo_dropout=0.1),
    "mlp": MLPConfig(layers=2, width=D, dropout=0.1),
}
"""one encoder of every kind"""


def classifier(name: str, pool: str) -> Classifier:
    """One output per text."""
    encoder = READING[name].build_encoder(words)
    return Classifier(encoder, make_pooling(pool, encoder), Classes(C), encoder.width)


def tagger(name: str, table: int = 0) -> Tagger:
    """One output per token; with `table`, from word vectors of another width."""
    encoder = READING[name].build_encoder(FactorizedWords(V, table=table) if table else words)
    return Tagger(encoder, Classes(C), encoder.width)


READERS: dict[str, Callable[[], Classifier | Tagger]] = {
    **{f"{name} {pool}": (lambda n=name, p=pool: classifier(n, p)) for name in READING for pool in POOLS},
    **{f"{name} each": (lambda n=name: tagger(n)) for name in READING},
    "lstm vectors": lambda: tagger("lstm", table=5),
}
"""every encoder as classifier and as tagger"""

TARGET = Tokens.full(torch.tensor([[SOS, 4, 5, 6, 7], [SOS, 7, 6, 5, 4], [SOS, 4, 4, 4, 4]]))
RAGGED = Tokens.pad([[SOS, 4, 5, 6, 3], [SOS, 7, 3], [SOS, 3]])
SERIES = replace(RAGGED, data=torch.linspace(-1, 1, 30).view(3, 5, 2))
"""two numbers per position, of lengths 5, 3 and 2"""


def build(name: str) -> EncoderDecoder:
    torch.manual_seed(0)
    return (ZOO | CAPTIONERS | REAL)[name].make().eval()


def reader(name: str) -> Classifier | Tagger:
    torch.manual_seed(0)
    return READERS[name]().eval()


def single_row(rows: Rows, i: int) -> Rows:
    """Row i alone, without padding."""
    one = rows.select(torch.tensor([i]))
    if isinstance(one, Tokens):
        one = replace(one.map(lambda t: t if t.ndim == 1 else t[:, : int(one.lengths)]), ragged=False)
    return one


def sharpen(model: nn.Module) -> None:
    """Untrained models predict the same everywhere: sharpen them, so that they end at different times."""
    torch.manual_seed(3)
    for name, p in model.named_parameters():
        # a ReLU's state has no bound: with large recurrent weights it would blow up, and rounding with it
        p.data += torch.randn_like(p) * (0.1 if "weight_hh" in name else 0.4)
