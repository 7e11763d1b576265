"""CTranslate2 folders of language models: GPT-1, GPT-2 and Llama with its kin, for ctranslate2.Generator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.engines.ctranslate2_folder import (
    ACTIVATIONS,
    Precision,
    as_array,
    import_ctranslate2,
    save_spec,
    set_linear,
)
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.progress import Progress, no_progress
from regard.tasks.generate.model import GenerationModel
from regard.text import Tokenizer
from regard.train.weights import weights

GPT_NORM_EPS = 1e-5
"""added to the variance in GPT's layer normalization"""


def write_decoder(
    model: GenerationModel,
    shape: GPTConfig | LlamaConfig,
    folder: Path,
    precision: Precision,
    progress: Progress = no_progress,
) -> None:
    """Write a language model of texts as a CTranslate2 folder, which exists and is empty."""
    words: Tokenizer = model.modality.tokenizer  # type: ignore[attr-defined]
    tensors = {name: as_array(tensor) for name, tensor in weights(model.module).items()}
    spec = describe_llama(shape) if isinstance(shape, LlamaConfig) else describe_gpt(shape)
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = tensors["decoder.embed.weight"]
    if isinstance(shape, GPTConfig):
        decoder.position_encodings.encodings = tensors["decoder.positions.table.weight"]
    if isinstance(shape, LlamaConfig) or shape.norm == "pre":
        set_any_norm(decoder.layer_norm, "decoder.norm", tensors)
    for number, layer in enumerate(decoder.layer):
        set_layer(layer, f"decoder.layers.{number}", tensors)
    set_linear(decoder.projection, "decoder.readout", tensors)
    spec.register_vocabulary(list(words.vocabulary))
    config = spec.config
    config.bos_token, config.eos_token = words.vocabulary[words.sos], words.vocabulary[words.eos]
    config.unk_token = words.vocabulary[words.unk] if words.unk >= 0 else config.eos_token
    config.layer_norm_epsilon = shape.norm_eps if isinstance(shape, LlamaConfig) else GPT_NORM_EPS
    save_spec(spec, folder, precision, progress)


def describe_gpt(shape: GPTConfig) -> Any:
    """The specification of a GPT, without weights."""
    specs = import_ctranslate2().specs
    return specs.TransformerDecoderModelSpec.from_config(
        shape.layers, shape.heads, pre_norm=shape.norm == "pre", head_dim=own_width(shape),
        activation=getattr(specs.Activation, ACTIVATIONS[shape.activation]),
    )  # fmt: skip


def describe_llama(shape: LlamaConfig) -> Any:
    """The specification of a Llama, without weights."""
    specs = import_ctranslate2().specs
    return specs.TransformerDecoderModelSpec.from_config(
        shape.layers, shape.heads, activation=specs.Activation.SWISH, ffn_glu=True, rms_norm=True, rotary_dim=0,
        rotary_interleave=False, rotary_base=shape.rope_theta, head_dim=own_width(shape),
        num_heads_kv=None if shape.kv_count == shape.heads else shape.kv_count,
    )  # fmt: skip


def own_width(shape: GPTConfig | LlamaConfig) -> int | None:
    """The width of a head where the heads do not share the model width."""
    return None if shape.head_size * shape.heads == shape.width else shape.head_size


def set_layer(layer: Any, name: str, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Attention and feed-forward network of a block."""
    set_any_norm(layer.self_attention.layer_norm, f"{name}.norm1", tensors)
    set_linear(layer.self_attention.linear[0], f"{name}.attention.qkv", tensors)
    set_linear(layer.self_attention.linear[1], f"{name}.attention.out", tensors)
    set_any_norm(layer.ffn.layer_norm, f"{name}.norm2", tensors)
    if f"{name}.ffn.gate.weight" in tensors:
        set_linear(layer.ffn.linear_0, f"{name}.ffn.gate", tensors)
        set_linear(layer.ffn.linear_0_noact, f"{name}.ffn.up", tensors)
    else:
        set_linear(layer.ffn.linear_0, f"{name}.ffn.up", tensors)
    set_linear(layer.ffn.linear_1, f"{name}.ffn.down", tensors)


def set_any_norm(spec: Any, name: str, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Scale of an RMSNorm; scale and shift of a layer normalization, whose shift may be left out here."""
    spec.gamma = tensors[f"{name}.weight"]
    if hasattr(spec, "beta"):
        spec.beta = tensors.get(f"{name}.bias", np.zeros_like(spec.gamma))
