"""The words inside any model: what its embeddings make of them, as a table to look things up in."""

from __future__ import annotations

from tokenizers.decoders import ByteLevel
from torch import nn

from regard.config import plain
from regard.errors import ConfigError
from regard.tasks.base import Model
from regard.tasks.vectors.recipe import table_of
from regard.text.word_table import WordTable

BYTES = ByteLevel()
"""What reads the letters that byte-level BPE has for bytes"""
HOMES = {"source": ("embed", "encoder.embed"), "target": ("decoder.embed",)}
"""Where models keep the vectors of what they read and of what they say."""


def embeddings(model: Model, side: str | None = None) -> WordTable:
    """The vectors of a model's words; of one with two sides, what it reads unless the other is asked for.

    >>> import tempfile, regard
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as run:
    ...     shape = ["model.kind=seq2seq", "model.layers=1", "model.width=8", "train.steps=1"]
    ...     recipe = regard.Recipe.read(None, ["data={kind='phrases', count=200}", "text.kind=word", *shape])
    ...     _ = regard.Run(Path(run)).train(recipe)
    ...     table = embeddings(regard.load(run), "target")
    >>> "the" in table.places, table.numbers.shape[1]
    (True, 8)
    """
    tables = tables_of(model)
    if side is not None and side not in tables:
        raise ConfigError(f"--side {side}: this model has only its {', '.join(tables)}")
    return tables[side or next(iter(tables))]


def tables_of(model: Model) -> dict[str, WordTable]:
    """The same by side: what a model reads (source), and what it says (target).

    >>> import tempfile, regard
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as run:
    ...     shape = ["model.kind=seq2seq", "model.layers=1", "model.width=8", "train.steps=1"]
    ...     _ = regard.Run(Path(run)).train(regard.Recipe.read(None, ["data={kind='phrases', count=200}", *shape]))
    ...     tables = tables_of(regard.load(run))
    >>> list(tables)
    ['source', 'target']
    """
    tables, bytewise = {}, plain(model.recipe).get("text", {}).get("kind") == "byte-bpe"
    for name, spell in model.spell().items():
        found = _embedding(model.module, HOMES[name] if name == "target" else (*HOMES["source"], *HOMES["target"]))
        if found is not None:
            words = [spell(i) for i in range(found.num_embeddings)]
            tables[name] = table_of(found, [BYTES.decode([word]) for word in words] if bytewise else words)
    if not tables:
        raise ConfigError(f"a model that was trained to {model.recipe.kind()} on these data has no vectors of words")
    return tables


def _embedding(module: nn.Module, homes: tuple[str, ...]) -> nn.Embedding | None:
    """The first table of vectors that stands at one of these places, or inside it."""
    for home in homes:
        for name, part in module.named_modules():
            if isinstance(part, nn.Embedding) and (name == home or name.startswith(f"{home}.")):
                return part
    return None
