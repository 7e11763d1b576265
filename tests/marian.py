"""Our Transformer as Hugging Face's MarianMTModel with the same weights: a reference for tests and benchmarks.

Both are the post-norm model of Vaswani et al. 2017; Marian has three matrices for queries, keys and values, and
a table of sinusoids with sines and cosines in two halves: here it gets our table, where they alternate.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from regard.errors import ConfigError
from regard.models.base import EncoderDecoder
from regard.models.transformer import TransformerConfig
from regard.nn.positions import Sinusoids
from regard.sequence import EOS, PAD, SOS

PARTS = {
    "attention_norm.norm": "self_attn_layer_norm",
    "cross_norm.norm": "encoder_attn_layer_norm",
    "ffn_norm.norm": "final_layer_norm",
    "attention.out": "self_attn.out_proj",
    "cross.out": "encoder_attn.out_proj",
    "cross.query": "encoder_attn.q_proj",
    "ffn.up": "fc1",
    "ffn.down": "fc2",
}
"""names of a layer's parts here and in Marian, one to one"""
PACKED = {
    "attention.qkv": tuple(f"self_attn.{part}_proj" for part in "qkv"),
    "cross.kv": tuple(f"encoder_attn.{part}_proj" for part in "kv"),
}
"""one matrix here, several in Marian"""


def to_marian(model: EncoderDecoder, config: TransformerConfig) -> MarianMTModel:
    """A MarianMTModel in evaluation mode that gives the same logits as `model`, which `config` has built.

    >>> from regard.spaces import Words
    >>> config = TransformerConfig(layers=1, width=8, ffn_width=16, heads=2, max_positions=16)
    >>> to_marian(config.build(Words(9), Words(9)), config).config.d_model
    8
    """
    settings = marian_config(config, vocabulary=model.readout.weight.shape[0])
    marian = MarianMTModel(settings).eval()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    table = Sinusoids(config.width)(torch.arange(config.max_positions))
    positions = {f"model.{side}.embed_positions.weight": table for side in ("encoder", "decoder")}
    weights = {**to_marian_names(parameters), **positions, "final_logits_bias": torch.zeros(1, settings.vocab_size)}
    marian.load_state_dict(weights, strict=True)
    return marian


def marian_config(config: TransformerConfig, vocabulary: int) -> MarianConfig:
    """The same architecture as a MarianConfig, without dropout and without forced tokens."""
    if config.norm != "post" or config.positions != "sinusoidal" or config.tie != "all":
        raise ConfigError(
            'Marian has norm = "post", positions = "sinusoidal" and tie = "all"; '
            f'found "{config.norm}", "{config.positions}", "{config.tie}"'
        )
    sizes = {"layers": config.layers, "ffn_dim": config.ffn_width, "attention_heads": config.heads}
    sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}
    return MarianConfig(
        vocab_size=vocabulary,
        d_model=config.width,
        max_position_embeddings=config.max_positions,
        activation_function="relu",
        dropout=0.0,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=SOS,
        eos_token_id=EOS,
        decoder_start_token_id=SOS,
        forced_eos_token_id=None,
        **sides,
    )


def to_marian_names(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors (weights, or their gradients) under Marian's names, packed ones split.

    >>> list(to_marian_names({"encoder.layers.0.ffn.up.bias": torch.zeros(2)}))
    ['model.encoder.layers.0.fc1.bias']
    """
    found: dict[str, Tensor] = {}
    for name, tensor in parameters.items():
        side, _, rest = name.partition(".")
        if rest == "readout.weight":
            found["lm_head.weight"] = tensor
        elif rest == "embed.weight":
            found[f"model.{side}.embed_tokens.weight"] = tensor
            found["model.shared.weight"] = tensor
        else:
            _, number, path = rest.split(".", 2)
            part, _, kind = path.rpartition(".")
            theirs = PACKED.get(part) or (PARTS[part],)
            for one, piece in zip(theirs, tensor.chunk(len(theirs)), strict=True):
                found[f"model.{side}.layers.{number}.{one}.{kind}"] = piece
    return found
