"""BERT and its smaller kin (MiniLM, DistilBERT) as the encoder `bert` of the task fill, and back.

An encoder without a masked-LM head becomes the same run: its head has initial weights, so that it cannot fill masks,
but it is fine-tuned and looked into as any. DistilBERT has no segments; their embedding is zero here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.data.texts import ImportedText
from regard.exchange.family import (
    ImportedModel,
    ModelFamily,
    Origin,
    build_on_meta,
    check_layers,
    embedding_rows,
)
from regard.exchange.foreign_tokenizer import ForeignTokenizer
from regard.exchange.settings import ForeignSettings
from regard.exchange.weight_table import TensorSource, WeightRow, expand, linear, same
from regard.models.bert import BertConfig
from regard.tasks.fill.config import FillConfig
from regard.tasks.fill.recipe import FillRecipe
from regard.tasks.vectors.prepare import FREQUENCIES_FILE
from regard.text import Tokenizer, TokenizerConfig
from regard.train.config import TrainConfig

READOUT, NEXT_SENTENCE, POOLER = "readout", "next_sentence", "pooler"
"""parts of BERT's pre-training beside the encoder"""


class BertFamily(ModelFamily):
    """BERT and MiniLM, with or without the heads of pre-training."""

    model_types = ("bert",)
    prefix = "bert."
    name = "Bert"
    """begins the names of its architectures"""
    pool: Literal["first", "first-relu"] = "first"
    """pooling of its classifiers of texts"""
    head_dropout = "classifier_dropout"
    """setting of the dropout before the head of such a classifier"""
    embedding = "bert.embeddings.word_embeddings.weight"
    head = "cls.predictions.transform.dense.weight"
    """a tensor of the masked-LM head"""

    def read_config(self, found: ForeignSettings) -> BertConfig:
        """The model of a config.json."""
        found.require("hidden_act", "gelu")
        found.require("position_embedding_type", "absolute")
        found.require("is_decoder", False)
        return BertConfig(
            layers=found.whole("num_hidden_layers", 12), width=found.whole("hidden_size", 768),
            ffn_width=found.whole("intermediate_size", 3072), heads=found.whole("num_attention_heads", 12),
            dropout=found.number("hidden_dropout_prob", 0.1), max_positions=found.whole("max_position_embeddings", 512),
            segments=found.whole("type_vocab_size", 2), layer_norm_eps=found.number("layer_norm_eps", 1e-12),
        )  # fmt: skip

    def write_config(self, model: BertConfig, vocabulary: int) -> dict[str, Any]:
        """The config.json of a model."""
        return {
            "model_type": "bert", "hidden_act": "gelu", "num_hidden_layers": model.layers, "hidden_size": model.width,
            "intermediate_size": model.ffn_width, "num_attention_heads": model.heads, "vocab_size": vocabulary,
            "hidden_dropout_prob": model.dropout, "attention_probs_dropout_prob": 0.0,
            "max_position_embeddings": model.max_positions, "type_vocab_size": model.segments,
            "layer_norm_eps": model.layer_norm_eps,
        }  # fmt: skip

    def rows(self, model: BertConfig) -> Iterator[WeightRow]:
        """The weight table of the encoder."""
        yield from same("encoder.embed.weight", "bert.embeddings.word_embeddings.weight")
        yield from same("encoder.positions.table.weight", "bert.embeddings.position_embeddings.weight")
        yield from same("encoder.segments.weight", "bert.embeddings.token_type_embeddings.weight")
        yield from linear("encoder.norm", "bert.embeddings.LayerNorm")
        yield from expand(model.layers, self._layer)

    def _layer(self, number: int) -> Iterator[WeightRow]:
        ours, theirs = f"encoder.layers.{number}", f"bert.encoder.layer.{number}"
        yield from linear(
            f"{ours}.attention.qkv", *(f"{theirs}.attention.self.{name}" for name in ("query", "key", "value"))
        )
        yield from linear(f"{ours}.attention.out", f"{theirs}.attention.output.dense")
        yield from linear(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm")
        yield from linear(f"{ours}.ffn.up", f"{theirs}.intermediate.dense")
        yield from linear(f"{ours}.ffn.down", f"{theirs}.output.dense")
        yield from linear(f"{ours}.ffn_norm", f"{theirs}.output.LayerNorm")

    def head_rows(self, part: str) -> Iterator[WeightRow]:
        """The weight table of a part beside the encoder; the projection on the vocabulary is the word embedding."""
        if part == POOLER:
            yield from linear("pooler.dense", "bert.pooler.dense")
        elif part == NEXT_SENTENCE:
            yield from linear("next_sentence", "cls.seq_relationship")
        else:
            yield from linear("readout.dense", "cls.predictions.transform.dense")
            yield from linear("readout.norm", "cls.predictions.transform.LayerNorm")
            yield from same("readout.decoder.bias", "cls.predictions.bias")

    def pooler_rows(self) -> Iterator[WeightRow]:
        """The weight table of the pooler in a classifier of texts."""
        yield from linear("pool.pool.dense", "bert.pooler.dense")

    def is_unused(self, name: str) -> bool:
        """Tensors that are no weights, or stored twice."""
        twice = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
        return name.endswith("embeddings.position_ids") or name in twice

    def import_model(
        self, found: ForeignSettings, source: TensorSource, folder: Path, origin: Origin
    ) -> tuple[ImportedModel, Iterable[WeightRow]]:
        model = self.read_config(found)
        check_layers(found.path, model.layers, source)
        vocabulary, theirs = embedding_rows(source, self.embedding), source.shapes()
        tokenizer = ForeignTokenizer.read(folder, found)
        words = tokenizer.fill(vocabulary).with_mask()
        parts = [READOUT] if model.segments < 2 else [READOUT, POOLER, NEXT_SENTENCE]
        present = [part for part in parts if all(name in theirs for row in self.head_rows(part) for name in row.theirs)]
        if not {POOLER, NEXT_SENTENCE} & set(present):
            parts = [READOUT]
        untrained = tuple(part for part in parts if part not in present)
        recipe = FillRecipe(
            data=ImportedText(source=origin.name, license=origin.license, untrained=untrained),
            model=model,
            task=FillConfig(length=model.max_positions, next_sentence=NEXT_SENTENCE in parts),
            text=TokenizerConfig(kind=tokenizer.kind, vocab_size=max(vocabulary, 300), normalization="none"),
            train=TrainConfig(label_smoothing=0.0, batch_tokens=max(4096, model.max_positions)),
        )
        rows = [*self.rows(model), *(row for part in parts if part in present for row in self.head_rows(part))]
        module = build_on_meta(recipe.build, words)
        artifacts = {
            "tokenizer.json": words.json.encode(),
            FREQUENCIES_FILE: json.dumps([0] * words.size).encode(),  # no text was counted
        }
        given = initial_weights(recipe, words, untrained) | self.constants(model)
        notes = [
            *tokenizer.notes(vocabulary),
            *(f"{part}: not in {folder}, it has initial weights" for part in untrained),
        ]
        return ImportedModel(recipe, module, artifacts, notes, given), rows

    def constants(self, model: BertConfig) -> dict[str, Tensor]:
        """Weights that are not in their model and have no effect."""
        return {}

    def join_constants(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights for their model: what it does not have is added to another weight."""
        return weights


class DistilBertFamily(BertFamily):
    """DistilBERT: BERT's layers under other names, without segments and pooler."""

    model_types = ("distilbert",)
    prefix = "distilbert."
    name, pool, head_dropout = "DistilBert", "first-relu", "seq_classif_dropout"
    embedding = "distilbert.embeddings.word_embeddings.weight"

    def read_config(self, found: ForeignSettings) -> BertConfig:
        found.require("activation", "gelu")
        return BertConfig(
            layers=found.whole("n_layers", 6), width=found.whole("dim", 768), ffn_width=found.whole("hidden_dim", 3072),
            heads=found.whole("n_heads", 12), dropout=found.number("dropout", 0.1), segments=1,
            max_positions=found.whole("max_position_embeddings", 512),
        )  # fmt: skip

    def rows(self, model: BertConfig) -> Iterator[WeightRow]:
        yield from same("encoder.embed.weight", "distilbert.embeddings.word_embeddings.weight")
        yield from same("encoder.positions.table.weight", "distilbert.embeddings.position_embeddings.weight")
        yield from linear("encoder.norm", "distilbert.embeddings.LayerNorm")
        yield from expand(model.layers, self._layer)

    def _layer(self, number: int) -> Iterator[WeightRow]:
        ours, theirs = f"encoder.layers.{number}", f"distilbert.transformer.layer.{number}"
        yield from linear(f"{ours}.attention.qkv", *(f"{theirs}.attention.{letter}_lin" for letter in "qkv"))
        yield from linear(f"{ours}.attention.out", f"{theirs}.attention.out_lin")
        yield from linear(f"{ours}.attention_norm", f"{theirs}.sa_layer_norm")
        yield from linear(f"{ours}.ffn.up", f"{theirs}.ffn.lin1")
        yield from linear(f"{ours}.ffn.down", f"{theirs}.ffn.lin2")
        yield from linear(f"{ours}.ffn_norm", f"{theirs}.output_layer_norm")

    def head_rows(self, part: str) -> Iterator[WeightRow]:
        yield from linear("readout.dense", "vocab_transform")
        yield from linear("readout.norm", "vocab_layer_norm")
        yield from same("readout.decoder.bias", "vocab_projector.bias")

    def write_config(self, model: BertConfig, vocabulary: int) -> dict[str, Any]:
        return {
            "model_type": "distilbert", "activation": "gelu", "n_layers": model.layers, "dim": model.width,
            "hidden_dim": model.ffn_width, "n_heads": model.heads, "vocab_size": vocabulary, "dropout": model.dropout,
            "attention_dropout": 0.0, "max_position_embeddings": model.max_positions,
        }  # fmt: skip

    def pooler_rows(self) -> Iterator[WeightRow]:
        yield from linear("pool.pool.dense", "pre_classifier")

    def is_unused(self, name: str) -> bool:
        return name == "vocab_projector.weight"

    def constants(self, model: BertConfig) -> dict[str, Tensor]:
        return {"encoder.segments.weight": torch.zeros(1, model.width)}

    def join_constants(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The embedding of the one segment, which fine-tuning here may have changed, is added to all positions."""
        positions = "encoder.positions.table.weight"
        return {**weights, positions: weights[positions] + weights["encoder.segments.weight"]}


def initial_weights(recipe: FillRecipe, words: Tokenizer, parts: tuple[str, ...]) -> dict[str, Tensor]:
    """Initial weights of the parts that the imported model does not have; a next-sentence head says nothing."""
    if not parts:
        return {}
    built: Any = recipe.build(words)
    if NEXT_SENTENCE in parts:
        nn.init.zeros_(built.next_sentence.weight)
    state = built.state_dict()
    shared = ("readout.decoder.weight",)  # is the word embedding
    return {name: state[name] for name in state if name.split(".")[0] in parts and name not in shared}
