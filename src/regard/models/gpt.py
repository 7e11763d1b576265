"""GPT: Radford et al. 2018 and 2019, "Improving Language Understanding", "Language Models are Unsupervised ...".

New against the Transformer: the decoder alone, without a source, trained on nothing but the next token. Learned
positions and GELU, by the tanh formula unless chosen otherwise; the softmax shares the embedding. GPT-1 normalizes
after each residual sum as the Transformer does, GPT-2 before each sublayer and once more at the end, and starts the
layers that write into the residual stream smaller the more of them there are. GPT-3 (Brown et al. 2020) is GPT-2 with
heads whose width is chosen freely. Different here: GPT-3's every other layer is sparse, ours are all dense; attention
weights are not dropped out.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Decoder, EmptyEncoder, EncoderDecoder, Layer, ModelConfigBase, RecordedValues, State
from regard.nn.attention import AttentionMask, KeysValues, SelfAttention, check_heads
from regard.nn.feedforward import GELUFeedForward
from regard.nn.kv_cache import KVCache
from regard.nn.norm import LayerNorm
from regard.nn.positions import LearnedPositions
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import Space
from regard.trace import tap

AXES = "batch position:target width"
INIT_STD = 0.02
"""of all weights and embeddings at the start (Radford et al. 2018, 4.1)"""


@dataclass(frozen=True)
class GPTConfig(ModelConfigBase):
    """Config of a GPT; the defaults are GPT-2's smallest.

    >>> GPTConfig(width=64, heads=24, head_width=128).ffn_size
    256
    """

    kind: Literal["gpt"] = "gpt"
    """Radford et al. 2019"""
    layers: int = 12
    """number of stacked blocks"""
    width: int = 768
    """model width: embeddings and hidden states"""
    ffn_width: int | None = None
    """width of the feed-forward network; by default four times the model width"""
    heads: int = 12
    """attention heads"""
    head_width: int | None = None
    """width of a head; by default the heads share the model width"""
    norm: Literal["pre", "post"] = "pre"
    """layer normalization before each sublayer as in GPT-2 and GPT-3, or after each residual sum as in GPT-1"""
    activation: Literal["gelu-tanh", "gelu"] = "gelu-tanh"
    """of the feed-forward network: GELU by the tanh formula as in GPT-1 to GPT-3, or exact"""
    bias: bool = True
    """biases of linear layers and norms; small models of today, such as nanoGPT's, leave them out"""
    dropout: float = 0.1
    """share of numbers dropped from each sublayer's output and from the embeddings"""
    max_positions: int = 1024
    """size of the table of learned positions: the context length"""

    def __post_init__(self) -> None:
        given = [name for name in ("ffn_width", "head_width") if getattr(self, name) is not None]
        check_at_least(self, 1, "layers", "width", "heads", "max_positions", *given)
        check_heads(self.width, self.heads, self.head_width)
        check_share(self, "dropout")

    def check_shared_vocab(self, shared: bool) -> None:
        raise ConfigError('model.kind = "gpt" reads no source, so it cannot translate; use transformer or seq2seq')

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        layout = ", post-norm" if self.norm == "post" else ""
        return f"gpt {count_noun(self.layers, 'layer')}, {count_noun(self.heads, 'head')}, width {self.width}{layout}"

    @property
    def position_limit(self) -> int | None:
        return self.max_positions

    @property
    def ffn_size(self) -> int:
        """Width of the feed-forward network."""
        return 4 * self.width if self.ffn_width is None else self.ffn_width

    @property
    def head_size(self) -> int:
        """Width of a head."""
        return self.width // self.heads if self.head_width is None else self.head_width

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """The language model, with fresh weights; `source` is not used."""
        return EncoderDecoder(EmptyEncoder(), GPT(self, target))


class GPTBlock(Layer):
    """Parts of a block: self-attention, feed-forward network, a norm and a residual sum for each."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width, bias = config.width, config.bias
        approximate = "tanh" if config.activation == "gelu-tanh" else "none"
        self.attention = SelfAttention(width, config.heads, head_width=config.head_size, bias=bias)
        self.ffn = GELUFeedForward(width, config.ffn_size, approximate, bias=bias)
        self.norm1, self.norm2 = (LayerNorm(width, bias=bias) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)
        for linear in (self.attention.qkv, self.attention.out, self.ffn.up, self.ffn.down):
            nn.init.normal_(linear.weight, std=INIT_STD)
            if bias:
                nn.init.zeros_(linear.bias)

    @abstractmethod
    def forward(
        self, x_NTD: Tensor, cache: KeysValues, at: int | Tensor, mask: AttentionMask
    ) -> tuple[Tensor, KeysValues]: ...


class GPT1Block(GPTBlock):
    """norm(x + attention(x)), then norm(x + ffn(x))."""

    def forward(
        self, x_NTD: Tensor, cache: KeysValues, at: int | Tensor, mask: AttentionMask
    ) -> tuple[Tensor, KeysValues]:
        attended_NTD, cache = self.attention.read(x_NTD, cache, at, mask)
        x_NTD = self.norm1(tap(self, "attention_residual", x_NTD + self.dropout(attended_NTD), AXES))
        x_NTD = self.norm2(tap(self, "ffn_residual", x_NTD + self.dropout(self.ffn(x_NTD)), AXES))
        return tap(self, "residual", x_NTD, AXES), cache


class GPT2Block(GPTBlock):
    """x + attention(norm(x)), then x + ffn(norm(x))."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        for linear in (self.attention.out, self.ffn.down):  # GPT-2, 2.3: 1 / sqrt(number of residual layers)
            nn.init.normal_(linear.weight, std=INIT_STD / math.sqrt(2 * config.layers))

    def forward(
        self, x_NTD: Tensor, cache: KeysValues, at: int | Tensor, mask: AttentionMask
    ) -> tuple[Tensor, KeysValues]:
        attended_NTD, cache = self.attention.read(self.norm1(x_NTD), cache, at, mask)
        x_NTD = tap(self, "attention_residual", x_NTD + self.dropout(attended_NTD), AXES)
        x_NTD = x_NTD + self.dropout(self.ffn(self.norm2(x_NTD)))
        return tap(self, "residual", x_NTD, AXES), cache


BLOCKS: dict[str, type[GPTBlock]] = {"post": GPT1Block, "pre": GPT2Block}


class GPT(Decoder):
    """Decoder without a source."""

    def __init__(self, config: GPTConfig, space: Space) -> None:
        super().__init__()
        self.heads, self.head_size, self.dropout = config.heads, config.head_size, nn.Dropout(config.dropout)
        self.embed, self.readout = space.embed(config.width), space.head(config.width)
        self.positions = LearnedPositions(config.width, config.max_positions)
        self.norm = LayerNorm(config.width, bias=config.bias) if config.norm == "pre" else nn.Identity()
        self.layers = nn.ModuleList(BLOCKS[config.norm](config) for _ in range(config.layers))
        for table in (self.embed, self.positions.table):
            if isinstance(table, nn.Embedding):  # not where numbers are read
                nn.init.normal_(table.weight, std=INIT_STD)
        space.tie(self.embed, self.readout)

    def start(self, memory: Memory, max_tokens: int) -> State:
        return State(memory.states, KVCache.empty(memory, len(self.layers), self.heads, max_tokens, self.head_size))

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        return self.norm(x_PD)

    def hidden_state(self, state: State) -> None:
        """None: a KV cache grows with the text."""
        return

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        cache: KVCache = state.hypothesis
        at, mask, caches = cache.write_slots(tokens), cache.attention_mask(tokens), []
        positions_NT = cache.positions(tokens) if tokens.positions is None else tokens.positions
        x_NTD = tap(self, "embedding", self.embed(tokens.data), AXES)
        x_NTD = self.dropout(x_NTD + tap(self, "position", self.positions(positions_NT), AXES))
        x_NTD = tap(self, "residual", x_NTD, AXES)
        for layer, own in zip(self.layers, cache.layers, strict=True):
            x_NTD, own = layer(x_NTD, own, at, mask)
            caches.append(own)
        features_NTD = tap(self, "features", self.norm(x_NTD), AXES)
        return features_NTD, replace(state, hypothesis=cache.advance(tokens, caches))
