"""BERT: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding".

New against GPT: the encoder alone, which reads to both sides. It is pre-trained to restore masked tokens, and to tell
whether one segment follows another; then a small head is put on it, and all of it is fine-tuned. Word, position and
segment embeddings are summed and normalized; post-norm layers with an exact GELU. Different here: attention weights
are not dropped out, which would rule out the fused kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Encoder, Layer, ModelConfigBase
from regard.nn.attention import AttentionMask, SelfAttention, check_heads, self_attention_mask
from regard.nn.feedforward import GELUFeedForward
from regard.nn.norm import LayerNorm
from regard.nn.positions import LearnedPositions
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import Classes, InputSpace, Space
from regard.trace import tap, tracing

AXES = "batch position:source width"


@dataclass(frozen=True)
class BertConfig(ModelConfigBase):
    """Config of a BERT encoder; the defaults are the paper's base model.

    >>> BertConfig(width=128, heads=5)
    Traceback (most recent call last):
    regard.errors.ConfigError: heads = 5 does not divide width = 128; every head needs an equal share of it
    """

    kind: Literal["bert"] = "bert"
    """Devlin et al. 2019"""
    layers: int = 12
    """number of stacked layers"""
    width: int = 768
    """model width: embeddings and hidden states"""
    ffn_width: int = 3072
    """inner width of the feed-forward network"""
    heads: int = 12
    """attention heads; they share the width"""
    dropout: float = 0.1
    """share of numbers dropped from each sublayer's output and from the embeddings"""
    max_positions: int = 512
    """size of the table of learned positions: the longest text, special tokens included"""
    segments: int = 2
    """segments that are told apart, such as the two texts of a pair"""
    layer_norm_eps: float = 1e-12
    """added to the variance in layer normalization"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width", "ffn_width", "heads", "max_positions", "segments")
        check_heads(self.width, self.heads)
        if not 0 < self.layer_norm_eps < 1:
            raise ConfigError(f"layer_norm_eps = {self.layer_norm_eps} must be above 0 and below 1")
        check_share(self, "dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"bert {count_noun(self.layers, 'layer')}, {count_noun(self.heads, 'head')}, width {self.width}"

    @property
    def position_limit(self) -> int | None:
        return self.max_positions

    def build_encoder(self, source: InputSpace) -> BertEncoder:
        """The encoder, with fresh weights; the caller attaches a head."""
        return BertEncoder(self, source)

    def build(self, source: Space, target: Space) -> BertPretraining:
        """The encoder with its pooler and without output heads; `target` is not used."""
        return BertPretraining(self.build_encoder(source), BertPooler(self.width))


def init_bert(module: nn.Module) -> None:
    """Initial weights of the paper's code: a normal distribution of standard deviation 0.02, and biases of 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


class BertLayer(Layer):
    """norm(x + attention(x)), then norm(x + ffn(x))."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width, eps = config.width, config.layer_norm_eps
        self.attention = SelfAttention(width, config.heads, "query:source key:source")
        self.ffn = GELUFeedForward(width, config.ffn_width, "none", "source")
        self.attention_norm, self.ffn_norm = (LayerNorm(width, "source", eps) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x_BSD: Tensor, mask: AttentionMask) -> Tensor:
        attended_BSD = self.attention(*self.attention.project(x_BSD), mask)
        x_BSD = tap(self, "attention_residual", x_BSD + self.dropout(attended_BSD), AXES)
        x_BSD = self.attention_norm(x_BSD)
        x_BSD = tap(self, "ffn_residual", x_BSD + self.dropout(self.ffn(x_BSD)), AXES)
        return tap(self, "residual", self.ffn_norm(x_BSD), AXES)


class BertEncoder(Encoder):
    """Sum of word, position and segment embeddings, normalized; then bidirectional layers."""

    input_parts = ("embed", "positions", "segments", "norm")

    def __init__(self, config: BertConfig, space: InputSpace) -> None:
        super().__init__()
        self.width, self.dropout = config.width, nn.Dropout(config.dropout)
        self.embed, self.positions = space.embed(config.width), LearnedPositions(config.width, config.max_positions)
        self.segments = nn.Embedding(config.segments, config.width)
        self.norm = LayerNorm(config.width, "source", config.layer_norm_eps)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config.layers))
        init_bert(self)

    def forward(self, source: Tokens) -> Memory:
        counted_1S = torch.arange(source.data.shape[1], device=source.data.device)[None]
        x_BSD = tap(self, "embedding", self.embed(source.data), AXES)
        positions = self.positions(counted_1S if source.positions is None else source.positions)
        one = source.segments is None or self.segments.num_embeddings == 1
        segments = self.segments.weight[0] if one else self.segments(source.segments)
        if tracing():  # one row may serve the whole batch; a record has a row for each text
            positions = tap(self, "position", positions.expand_as(x_BSD), AXES)
            segments = tap(self, "segment", segments.expand_as(x_BSD), AXES)
        x_BSD = self.dropout(self.norm(x_BSD + positions + segments))
        outs, mask = [tap(self, "residual", x_BSD, AXES)], self_attention_mask(source)
        for layer in self.layers:
            outs.append(layer(outs[-1], mask))
        return Memory(source.like(outs[-1]), (), tuple(outs))


class BertPooler(nn.Module):
    """tanh(W h + b) of the state at [CLS]: one vector per text, trained by next-sentence prediction.

    >>> from regard.sequence import Padded
    >>> BertPooler(4)(Memory(Padded(torch.ones(2, 3, 4), torch.tensor([3, 1])))).shape
    torch.Size([2, 4])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        init_bert(self)

    def forward(self, memory: Memory) -> Tensor:
        return tap(self, "pooled", self.dense(memory.states.data[:, 0]).tanh(), "batch width")


class MaskedLMHead(nn.Module):
    """Dense layer, GELU, LayerNorm, and a projection on the vocabulary that shares the word embedding."""

    def __init__(self, width: int, words: Classes, embed: nn.Module, eps: float = 1e-12) -> None:
        super().__init__()
        inner = embed.embedding_dim if isinstance(embed, nn.Embedding) else width
        self.dense, self.norm = nn.Linear(width, inner), nn.LayerNorm(inner, eps)
        self.decoder = nn.Linear(inner, words.size)
        init_bert(self)
        if isinstance(embed, nn.Embedding):
            self.decoder.weight = embed.weight

    def forward(self, states_ND: Tensor) -> Tensor:
        return self.decoder(self.norm(F.gelu(self.dense(states_ND))))


class BertPretraining(nn.Module):
    """An encoder with the parts of BERT's pre-training: pooler, masked-LM head, next-sentence head; each optional.

    >>> from regard.spaces import Words
    >>> config, words = BertConfig(layers=1, width=8, ffn_width=16, heads=2), Words(30)
    >>> encoder = config.build_encoder(words)
    >>> model = BertPretraining(encoder, BertPooler(8), MaskedLMHead(8, words, encoder.embed), nn.Linear(8, 2))
    >>> memory = model.encoder(Tokens.pad([[2, 7, 4, 3]]))
    >>> model.readout(memory.states.data).shape, model.next_sentence(model.pooler(memory)).shape
    (torch.Size([1, 4, 30]), torch.Size([1, 2]))
    """

    def __init__(
        self,
        encoder: Encoder,
        pooler: BertPooler | None = None,
        readout: MaskedLMHead | None = None,
        next_sentence: nn.Linear | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.pooler, self.readout, self.next_sentence = encoder, pooler, readout, next_sentence

    def forward(self, source: Tokens) -> Tensor:
        return self.encoder(source).states.data
