"""Word vectors of a trained model of any task: its embedding tables, for neighbors, analogies and maps."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers.decoders import ByteLevel
from torch import nn

from regard.config import plain
from regard.errors import ConfigError
from regard.tasks.base import Model
from regard.tasks.vectors.word_table import WordTable
from regard.text.tokenizer_training import SPECIAL

BYTE_DECODER = ByteLevel()
"""Decodes the characters that byte-level BPE uses for bytes"""
EMBEDDING_MODULES = {"source": ("embed", "encoder.embed"), "target": ("decoder.embed",)}
"""Names of the modules that hold the source and the target embeddings"""


def table_from_embedding(embed: nn.Embedding, vocabulary: Sequence[str]) -> WordTable:
    """The vectors of a vocabulary's words; special tokens are left out."""
    chosen = [i for i, word in enumerate(vocabulary) if word not in SPECIAL]
    return WordTable(tuple(vocabulary[i] for i in chosen), embed.weight.detach().float().cpu().numpy()[chosen])


def embedding_table(model: Model, side: str | None = None) -> WordTable:
    """The word vectors of a model's source or target embedding; by default the source's if it has one."""
    tables = embedding_tables(model)
    if side is not None and side not in tables:
        raise ConfigError(f"--side {side}: this model has only its {', '.join(tables)}")
    return tables[side or next(iter(tables))]


def embedding_tables(model: Model) -> dict[str, WordTable]:
    """The word vectors of a model by side ("source", "target")."""
    tables, bytewise = {}, plain(model.recipe).get("text", {}).get("kind") == "byte-bpe"
    source, target = EMBEDDING_MODULES["source"], EMBEDDING_MODULES["target"]
    for side, id_to_token in model.id_to_token().items():
        found = _find_embedding(model.module, target if side == "target" else (*source, *target))
        if found is not None:
            words = [id_to_token(i) for i in range(found.num_embeddings)]
            tables[side] = table_from_embedding(
                found, [BYTE_DECODER.decode([word]) for word in words] if bytewise else words
            )
    if not tables:
        raise ConfigError(f"a model that was trained to {model.recipe.kind()} on these data has no word vectors")
    return tables


def _find_embedding(module: nn.Module, names: tuple[str, ...]) -> nn.Embedding | None:
    """The first embedding that has one of these module names, or is inside such a module."""
    for home in names:
        for name, part in module.named_modules():
            if isinstance(part, nn.Embedding) and (name == home or name.startswith(f"{home}.")):
                return part
    return None
