"""Our language models as Hugging Face's with the same weights: references for tests and benchmarks.

OpenAI GPT and GPT-2 keep linear layers transposed (their Conv1D), Llama keeps queries, keys and values apart.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers import LlamaConfig as TheirLlamaConfig

from regard.models.base import EncoderDecoder
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.sequence import EOS, PAD, SOS

GPT_LAYER = {
    "attention.qkv": "attn.c_attn",
    "attention.out": "attn.c_proj",
    "ffn.up": "mlp.c_fc",
    "ffn.down": "mlp.c_proj",
    "norm1": "ln_1",
    "norm2": "ln_2",
}
"""parts of a block here and in OpenAI GPT and GPT-2; their linear layers are transposed"""
GPT1_TABLES = {
    "decoder.embed.weight": "transformer.tokens_embed.weight",
    "decoder.positions.table.weight": "transformer.positions_embed.weight",
    "decoder.readout.weight": "lm_head.weight",
}
GPT2_TABLES = {
    "decoder.embed.weight": "transformer.wte.weight",
    "decoder.positions.table.weight": "transformer.wpe.weight",
    "decoder.norm.weight": "transformer.ln_f.weight",
    "decoder.norm.bias": "transformer.ln_f.bias",
    "decoder.readout.weight": "lm_head.weight",
}
LLAMA_LAYER = {
    "attention.out": "self_attn.o_proj",
    "ffn.gate": "mlp.gate_proj",
    "ffn.up": "mlp.up_proj",
    "ffn.down": "mlp.down_proj",
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
}
LLAMA_TABLES = {
    "decoder.embed.weight": "model.embed_tokens.weight",
    "decoder.norm.weight": "model.norm.weight",
    "decoder.readout.weight": "lm_head.weight",
}
IDS = {"bos_token_id": SOS, "eos_token_id": EOS, "pad_token_id": PAD}
QUIET = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}


def to_transformers(model: EncoderDecoder, config: GPTConfig | LlamaConfig) -> PreTrainedModel:
    """Hugging Face's model in evaluation mode that gives the same logits as `model`, which `config` has built.

    >>> from regard.spaces import Words
    >>> config = GPTConfig(layers=1, width=8, heads=2, max_positions=16)
    >>> to_transformers(config.build(Words(9), Words(9)), config).config.n_embd
    8
    """
    vocabulary = model.readout.weight.shape[0]
    named = dict(model.named_parameters(remove_duplicate=False))
    if isinstance(config, LlamaConfig):
        theirs, weights = llama_shell(config, vocabulary), to_llama_names(named, config)
    else:
        theirs, weights = gpt_shell(config, vocabulary), to_gpt_names(named, config)
    theirs.load_state_dict(weights, strict=True)
    return theirs.eval()


def gpt_shell(config: GPTConfig, vocabulary: int) -> PreTrainedModel:
    """OpenAI GPT (post-norm) or GPT-2 (pre-norm) in the shape of a config."""
    sizes = {"n_layer": config.layers, "n_embd": config.width, "n_head": config.heads}
    common = {"vocab_size": vocabulary, "n_positions": config.max_positions} | sizes | QUIET | IDS
    if config.norm == "post":
        return OpenAIGPTLMHeadModel(OpenAIGPTConfig(**common))
    return GPT2LMHeadModel(GPT2Config(n_inner=config.ffn_size, **common))


def llama_shell(config: LlamaConfig, vocabulary: int) -> PreTrainedModel:
    """Llama, or Qwen2 where queries, keys and values have biases, in the shape of a config."""
    settings = {
        "vocab_size": vocabulary,
        "hidden_size": config.width,
        "intermediate_size": config.ffn_width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_count,
        "head_dim": config.head_size,
        "rms_norm_eps": config.norm_eps,
        "tie_word_embeddings": config.tie,
        "max_position_embeddings": config.max_positions,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_theta},
    } | IDS
    return (
        Qwen2ForCausalLM(Qwen2Config(**settings)) if config.qkv_bias else LlamaForCausalLM(TheirLlamaConfig(**settings))
    )


def to_gpt_names(weights: Mapping[str, Tensor], config: GPTConfig) -> dict[str, Tensor]:
    """The weights of a GPT under the names, and in the layout, of OpenAI GPT or GPT-2."""
    tables, found = GPT1_TABLES if config.norm == "post" else GPT2_TABLES, {}
    for name, tensor in weights.items():
        if name in tables:
            found[tables[name]] = tensor
            continue
        _, _, layer, part = name.split(".", 3)
        module, _, kind = part.rpartition(".")
        transposed = kind == "weight" and tensor.ndim == 2
        found[f"transformer.h.{layer}.{GPT_LAYER[module]}.{kind}"] = tensor.t() if transposed else tensor
    return found


def to_llama_names(weights: Mapping[str, Tensor], config: LlamaConfig) -> dict[str, Tensor]:
    """The weights of a Llama under Hugging Face's names."""
    sizes, found = [heads * config.head_size for heads in (config.heads, config.kv_count, config.kv_count)], {}
    for name, tensor in weights.items():
        if name in LLAMA_TABLES:
            found[LLAMA_TABLES[name]] = tensor
            continue
        _, _, layer, part = name.split(".", 3)
        module, _, kind = part.rpartition(".")
        stem = f"model.layers.{layer}"
        if module == "attention.qkv":
            for letter, rows in zip("qkv", tensor.split(sizes), strict=True):
                found[f"{stem}.self_attn.{letter}_proj.{kind}"] = rows
        else:
            found[f"{stem}.{LLAMA_LAYER[module]}.{kind}"] = tensor
    return found


def randomize(model: EncoderDecoder, scale: float = 0.15) -> EncoderDecoder:
    """Random numbers on all weights, biases and norms too: a wrong mapping must not hide behind zeros and ones."""
    torch.manual_seed(5)
    for p in model.parameters():
        p.data += torch.randn_like(p) * scale
    return model.eval()
