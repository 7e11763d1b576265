"""GGUF files (llama.cpp) of Llama models: metadata, tokenizer and quantized tensors, dequantized to float32.

The package gguf reads the file. llama.cpp rotates neighboring numbers of a head, Hugging Face and the model here the
two halves of it, so the rows of queries and keys are put in the other order.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
from torch import Tensor

from regard.errors import ConfigError, InputError, ModelError
from regard.exchange.foreign_tokenizer import ForeignTokenizer, chatml_system
from regard.exchange.settings import ForeignSettings
from regard.exchange.weight_table import TensorSource
from regard.files import open_regular

INSTALL = 'GGUF files are read by the package gguf; install it with: pip install "regard[gguf]", or pip install gguf'
MAGIC = b"GGUF"
MAX_COUNT = 1 << 16
"""most tensors, and most values of metadata"""
SETTINGS = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "context_length": "max_position_embeddings",
    "rope.freq_base": "rope_theta",
}
"""metadata under the name of the architecture -> settings of Hugging Face's config.json"""
TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""names of tensors without their layer -> those of Hugging Face"""
CONTROL = 3
"""type of a special token"""
DIGITS = ("smollm",)
"""pre-tokenizers that keep each digit apart"""
PATTERNS = {
    "qwen2": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""pre-tokenizers with a pattern of their own; the others have GPT-2's"""
KNOWN = ("default", "gpt-2", *DIGITS, *PATTERNS)


class GGUFModel(TensorSource):
    """A GGUF file of a Llama model under Hugging Face's names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = open_reader(path)
        self.architecture = self.value("general.architecture")
        if self.architecture not in ("llama", "qwen2"):
            raise ModelError(
                f"{path}: general.architecture = {self.architecture!r} is not among the GGUF models that can be "
                "imported: llama, qwen2"
            )
        self._tensors = {theirs_name(tensor.name, path): tensor for tensor in self._reader.tensors}

    def value(self, name: str, default: Any = None) -> Any:
        """A value of the metadata."""
        field = self._reader.get_field(name)
        try:
            return default if field is None else field.contents()
        except (ValueError, IndexError, UnicodeDecodeError) as error:
            raise ModelError(f"{self.path}: {name} cannot be read ({error})") from None

    @cached_property
    def settings(self) -> ForeignSettings:
        """The metadata as the settings of a config.json."""
        found = {theirs: self.value(f"{self.architecture}.{own}") for own, theirs in SETTINGS.items()}
        scaling = self.value(f"{self.architecture}.rope.scaling.type", "none")
        kinds = {"model_type": self.architecture, "tie_word_embeddings": "lm_head.weight" not in self._tensors}
        rope = {"rope_parameters": {"rope_type": "default" if scaling == "none" else scaling}}
        values = {name: value for name, value in found.items() if value is not None} | kinds | rope
        if "rms_norm_eps" in values:  # stored in float32: 1e-5 is the number that was meant
            values["rms_norm_eps"] = float(f"{values['rms_norm_eps']:.6g}")
        return ForeignSettings(self.path, values)

    @property
    def license(self) -> str:
        """The license of the model."""
        return str(self.value("general.license", "not known"))[:100]

    def shapes(self) -> Mapping[str, list[int]]:
        return {name: [int(size) for size in reversed(tensor.shape)] for name, tensor in self._tensors.items()}

    def read(self, name: str) -> Tensor:
        from gguf import quants

        tensor = self._tensors[name]
        try:
            values = np.array(quants.dequantize(tensor.data, tensor.tensor_type), np.float32)
        except (NotImplementedError, ValueError) as error:
            raise ModelError(
                f"{self.path}: {tensor.name} ({tensor.tensor_type.name}) cannot be read ({error})"
            ) from None
        found = torch.from_numpy(values.reshape(self.shapes()[name]))
        if self.architecture == "llama" and ".self_attn.q_proj." in name:
            return halves_first(found, self.settings.whole("num_attention_heads"))
        if self.architecture == "llama" and ".self_attn.k_proj." in name:
            heads = self.settings.whole("num_attention_heads")
            return halves_first(found, self.settings.whole("num_key_value_heads", heads))
        return found

    def tokenizer(self) -> ForeignTokenizer:
        """The byte-level BPE in the metadata."""
        kind = self.value("tokenizer.ggml.model")
        before = self.value("tokenizer.ggml.pre", "default")
        if kind != "gpt2" or before not in KNOWN:
            raise ModelError(
                f"{self.path}: its tokenizer is {kind!r} with {before!r}; byte-level BPE (gpt2) with "
                f"{', '.join(KNOWN)} can be read"
            )
        tokens, merges = self.value("tokenizer.ggml.tokens"), self.value("tokenizer.ggml.merges")
        if not isinstance(tokens, list) or not isinstance(merges, list) or len(set(tokens)) < len(tokens):
            raise ModelError(f"{self.path}: expected the tokens and the merges of a tokenizer, each token once")
        pairs = [tuple(merge.split(" ", 1)) for merge in merges]
        try:
            inner = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, pairs))
        except Exception as error:  # the library raises nothing narrower
            raise ModelError(f"{self.path}: its tokenizer cannot be read ({error})") from None
        inner.pre_tokenizer, inner.decoder = pre_tokenizer(before), decoders.ByteLevel()
        types = self.value("tokenizer.ggml.token_type", [])
        special = [token for token, kind in zip(tokens, types, strict=False) if kind == CONTROL]
        inner.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
        begin, end = (self._token(f"tokenizer.ggml.{name}_token_id", tokens) for name in ("bos", "eos"))
        begins = bool(self.value("tokenizer.ggml.add_bos_token", False)) and begin is not None
        system = chatml_system(self.value("tokenizer.chat_template"))
        return ForeignTokenizer(self.path, inner, begin, end, begins, system)

    def _token(self, name: str, tokens: list[str]) -> str | None:
        id = self.value(name)
        return tokens[int(id)] if id is not None and 0 <= int(id) < len(tokens) else None


def open_reader(path: Path) -> Any:
    """The reader of a GGUF file; the number of its tensors and values is bounded before they are read."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ConfigError(INSTALL) from None
    try:
        with open_regular(path) as file:
            head = file.read(24)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    counts = [int.from_bytes(head[start : start + 8], "little") for start in (8, 16)]
    if len(head) < 24 or head[:4] != MAGIC or max(counts) > MAX_COUNT:
        raise ModelError(f"{path}: expected a GGUF file; its first bytes are not those of one")
    try:
        return GGUFReader(path)
    except (ValueError, KeyError, IndexError, OverflowError, MemoryError, UnicodeDecodeError, OSError) as error:
        raise ModelError(f"{path}: cannot be read as GGUF ({error}); it is damaged or was cut off") from error


def theirs_name(name: str, path: Path) -> str:
    """Hugging Face's name of a tensor.

    >>> theirs_name("blk.3.attn_q.weight", Path("a.gguf")), theirs_name("output_norm.weight", Path("a.gguf"))
    ('model.layers.3.self_attn.q_proj.weight', 'model.norm.weight')
    """
    *layer, part, kind = name.split(".")
    if part not in TENSORS or (layer and (len(layer) != 2 or layer[0] != "blk")):
        return name  # reported as a tensor that the model does not have
    return ".".join([*(("model", "layers", layer[1]) if layer else ()), TENSORS[part], kind])


def halves_first(weight: Tensor, heads: int) -> Tensor:
    """The rows of a projection whose rotated pairs are neighbors, with those of the pairs in two halves of each head.

    >>> halves_first(torch.arange(8.0)[:, None], heads=2).flatten().tolist()
    [0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0]
    """
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape)


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    """The pre-tokenizer that a GGUF file names."""
    if name in PATTERNS:
        cut = pre_tokenizers.Split(Regex(PATTERNS[name]), "isolated")
        return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name in DIGITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), by_bytes])
    return by_bytes
