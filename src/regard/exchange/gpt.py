"""GPT-2 and OpenAI GPT (Hugging Face's GPT2LMHeadModel, OpenAIGPTLMHeadModel) as the model `gpt`, and back.

Their linear layers are stored transposed (a layer called Conv1D there).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from regard.exchange.family import DecoderFamily
from regard.exchange.settings import ForeignSettings
from regard.exchange.weight_table import WeightRow, expand, linear, same
from regard.models.gpt import GPTConfig

ACTIVATIONS: dict[str, Literal["gelu-tanh", "gelu"]] = {
    "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "gelu": "gelu"
}  # fmt: skip
"""activation functions of GPT-2 by their names there"""


class GPT2Family(DecoderFamily):
    """GPT-2: pre-norm."""

    model_types = ("gpt2",)
    architecture = "GPT2LMHeadModel"
    kind = "gpt"
    prefix = "transformer."
    embedding = "transformer.wte.weight"

    def read_config(self, found: ForeignSettings) -> GPTConfig:
        """The model of a config.json."""
        found.require("activation_function", *ACTIVATIONS)
        found.require("layer_norm_epsilon", 1e-5)
        found.require("scale_attn_weights", True)
        found.require("scale_attn_by_inverse_layer_idx", False)
        found.require("tie_word_embeddings", True)
        found.require("add_cross_attention", False)
        width, inner = found.whole("n_embd", 768), found.get("n_inner")
        return GPTConfig(
            layers=found.whole("n_layer", 12), width=width, heads=found.whole("n_head", 12), norm="pre",
            ffn_width=None if inner in (None, 4 * width) else found.whole("n_inner"),
            activation=ACTIVATIONS[str(found.get("activation_function", "gelu_new"))],
            dropout=found.number("resid_pdrop", 0.1), max_positions=found.whole("n_positions", 1024),
        )  # fmt: skip

    def write_config(self, model: GPTConfig, vocabulary: int) -> dict[str, Any]:
        """The config.json of a model."""
        return {
            "model_type": "gpt2", "activation_function": "gelu_new" if model.activation == "gelu-tanh" else "gelu",
            "layer_norm_epsilon": 1e-5,
            "n_layer": model.layers, "n_embd": model.width, "n_head": model.heads, "n_inner": model.ffn_width,
            "n_positions": model.max_positions, "vocab_size": vocabulary, "tie_word_embeddings": True,
            **{f"{name}_pdrop": model.dropout for name in ("resid", "embd")}, "attn_pdrop": 0.0,
        }  # fmt: skip

    def rows(self, model: GPTConfig) -> Iterator[WeightRow]:
        """The weight table."""
        yield from same("decoder.embed.weight", "transformer.wte.weight")
        yield from same("decoder.positions.table.weight", "transformer.wpe.weight")
        yield from expand(model.layers, self._layer)
        yield from linear("decoder.norm", "transformer.ln_f")

    def _layer(self, number: int) -> Iterator[WeightRow]:
        ours, theirs = f"decoder.layers.{number}", f"transformer.h.{number}"
        yield from linear(f"{ours}.norm1", f"{theirs}.ln_1")
        yield from linear(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", transposed=True)
        yield from linear(f"{ours}.attention.out", f"{theirs}.attn.c_proj", transposed=True)
        yield from linear(f"{ours}.norm2", f"{theirs}.ln_2")
        yield from linear(f"{ours}.ffn.up", f"{theirs}.mlp.c_fc", transposed=True)
        yield from linear(f"{ours}.ffn.down", f"{theirs}.mlp.c_proj", transposed=True)

    def is_unused(self, name: str) -> bool:
        """Tensors that are no weights: masks, and the head, which is the embedding."""
        return name.endswith((".attn.bias", ".attn.masked_bias", "lm_head.weight"))


class OpenAIGPTFamily(GPT2Family):
    """OpenAI GPT, the first: post-norm, without a last normalization."""

    model_types = ("openai-gpt",)
    architecture = "OpenAIGPTLMHeadModel"
    embedding = "transformer.tokens_embed.weight"

    def read_config(self, found: ForeignSettings) -> GPTConfig:
        found.require("afn", "gelu")  # which is GPT-2's gelu_new there
        found.require("layer_norm_epsilon", 1e-5)
        found.require("tie_word_embeddings", True)
        return GPTConfig(
            layers=found.whole("n_layer", 12), width=found.whole("n_embd", 768), heads=found.whole("n_head", 12),
            norm="post", dropout=found.number("resid_pdrop", 0.1), max_positions=found.whole("n_positions", 512),
        )  # fmt: skip

    def write_config(self, model: GPTConfig, vocabulary: int) -> dict[str, Any]:
        own = super().write_config(model, vocabulary)
        left_out = ("activation_function", "n_inner")
        return {name: value for name, value in own.items() if name not in left_out} | {
            "model_type": "openai-gpt", "afn": "gelu"
        }  # fmt: skip

    def rows(self, model: GPTConfig) -> Iterator[WeightRow]:
        yield from same("decoder.embed.weight", "transformer.tokens_embed.weight")
        yield from same("decoder.positions.table.weight", "transformer.positions_embed.weight")
        yield from expand(model.layers, self._layer)
