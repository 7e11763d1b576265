"""Our language models as Hugging Face's with the same weights: references for tests and benchmarks."""

from __future__ import annotations

import torch
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

from regard.exchange.gpt import GPT2Family, OpenAIGPTFamily
from regard.exchange.llama import LlamaFamily
from regard.exchange.weight_table import to_theirs
from regard.models.base import EncoderDecoder
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.sequence import EOS, PAD, SOS

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
    is_llama = isinstance(config, LlamaConfig)
    theirs = llama_shell(config, vocabulary) if is_llama else gpt_shell(config, vocabulary)
    family = LlamaFamily() if is_llama else OpenAIGPTFamily() if config.norm == "post" else GPT2Family()
    weights = to_theirs(family.rows(config), named) | {"lm_head.weight": named["decoder.readout.weight"]}
    theirs.load_state_dict(weights, strict=True)
    return theirs.eval()


def gpt_shell(config: GPTConfig, vocabulary: int) -> PreTrainedModel:
    """OpenAI GPT (post-norm) or GPT-2 (pre-norm) in the shape of a config."""
    sizes = {"n_layer": config.layers, "n_embd": config.width, "n_head": config.heads}
    common = {"vocab_size": vocabulary, "n_positions": config.max_positions} | sizes | QUIET | IDS
    if config.norm == "post":
        return OpenAIGPTLMHeadModel(OpenAIGPTConfig(**common))
    return GPT2LMHeadModel(GPT2Config(**GPT2Family().write_config(config, vocabulary) | common))


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


def randomize(model: EncoderDecoder, scale: float = 0.15) -> EncoderDecoder:
    """Random numbers on all weights, biases and norms too: a wrong mapping must not hide behind zeros and ones."""
    torch.manual_seed(5)
    for p in model.parameters():
        p.data += torch.randn_like(p) * scale
    return model.eval()
