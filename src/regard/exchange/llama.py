"""Llama and its kin (Llama 1 to 3, Mistral, Qwen2, SmolLM2, TinyLlama) as the model `llama`, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from regard.errors import ModelError
from regard.exchange.family import DecoderFamily
from regard.exchange.settings import ForeignSettings
from regard.exchange.weight_table import WeightRow, linear, same
from regard.models.llama import LlamaConfig


class LlamaFamily(DecoderFamily):
    """Decoders with rotary positions, RMSNorm, SwiGLU and grouped queries."""

    model_types = ("llama", "mistral", "qwen2")
    architecture = "LlamaForCausalLM"
    kind = "llama"
    prefix = "model."
    embedding = "model.embed_tokens.weight"

    def read_config(self, found: ForeignSettings) -> LlamaConfig:
        """The model of a config.json."""
        found.require("hidden_act", "silu")
        found.require("attention_bias", False)
        found.require("mlp_bias", False)
        found.require("use_sliding_window", False)
        positions, is_qwen = found.whole("max_position_embeddings", 2048), found.get("model_type") == "qwen2"
        window = None if is_qwen else found.get("sliding_window")
        if window is not None and window < positions:  # up to there, no position is hidden
            positions = found.whole("sliding_window")
        return LlamaConfig(
            layers=found.whole("num_hidden_layers"), width=found.whole("hidden_size"),
            ffn_width=found.whole("intermediate_size"), heads=found.whole("num_attention_heads"),
            kv_heads=found.get("num_key_value_heads"), head_width=found.get("head_dim"),
            rope_theta=rotary_base(found), qkv_bias=is_qwen, norm_eps=found.number("rms_norm_eps", 1e-6),
            tie=bool(found.get("tie_word_embeddings", False)), max_positions=positions,
        )  # fmt: skip

    def write_config(self, model: LlamaConfig, vocabulary: int) -> dict[str, Any]:
        """The config.json of a model."""
        rotary = {"rope_theta": model.rope_theta, "rope_parameters": rope_parameters(model.rope_theta)}
        name = "Qwen2ForCausalLM" if model.qkv_bias else self.architecture
        return {
            "architectures": [name], "model_type": "qwen2" if model.qkv_bias else "llama", "hidden_act": "silu",
            "num_hidden_layers": model.layers, "hidden_size": model.width, "intermediate_size": model.ffn_width,
            "num_attention_heads": model.heads, "num_key_value_heads": model.kv_count, "head_dim": model.head_size,
            "rms_norm_eps": model.norm_eps, "tie_word_embeddings": model.tie, "vocab_size": vocabulary,
            "max_position_embeddings": model.max_positions, "attention_dropout": 0.0, **rotary,
        }  # fmt: skip

    def rows(self, model: LlamaConfig) -> Iterator[WeightRow]:
        """The weight table."""
        yield from same("decoder.embed.weight", "model.embed_tokens.weight")
        for number in range(model.layers):
            yield from self._layer(number, model)
        yield from same("decoder.norm.weight", "model.norm.weight")
        if not model.tie:
            yield from same("decoder.readout.weight", "lm_head.weight")

    def _layer(self, number: int, model: LlamaConfig) -> Iterator[WeightRow]:
        ours, theirs = f"decoder.layers.{number}", f"model.layers.{number}"
        projections = tuple(f"{theirs}.self_attn.{letter}_proj" for letter in "qkv")
        sizes = tuple(heads * model.head_size for heads in (model.heads, model.kv_count, model.kv_count))
        weight, bias = linear(f"{ours}.attention.qkv", *projections, sizes=sizes)
        yield from (weight, bias) if model.qkv_bias else (weight,)
        yield from same(f"{ours}.attention.out.weight", f"{theirs}.self_attn.o_proj.weight")
        for name in ("gate", "up", "down"):
            yield from same(f"{ours}.ffn.{name}.weight", f"{theirs}.mlp.{name}_proj.weight")
        yield from same(f"{ours}.norm1.weight", f"{theirs}.input_layernorm.weight")
        yield from same(f"{ours}.norm2.weight", f"{theirs}.post_attention_layernorm.weight")

    def is_unused(self, name: str) -> bool:
        """Tensors that are no weights: tables of the rotation, and the head, where it is the embedding."""
        return name.endswith("rotary_emb.inv_freq") or name == "lm_head.weight"


def rope_parameters(theta: float) -> dict[str, Any]:
    """Rotary positions without scaling, as transformers 5 writes them."""
    return {"rope_type": "default", "rope_theta": theta}


def rotary_base(found: ForeignSettings) -> float:
    """The base of the rotary positions; positions that are scaled are refused."""
    given = found.get("rope_parameters") or found.get("rope_scaling") or {}
    if not isinstance(given, dict):
        raise ModelError(f"{found.path}: rope_parameters = {given!r}, expected an object")
    kind = given.get("rope_type", given.get("type", "default"))
    if kind != "default":
        raise ModelError(f"{found.path}: rope_type = {kind!r}, and the model here has rotary positions without scaling")
    return ForeignSettings(found.path, {**found.values, **given}).number("rope_theta", 10_000.0)
