"""Marian (Hugging Face's MarianMTModel) as the model `transformer` of the task translate, and back.

Its sinusoids have all sines before all cosines. A model with sines and cosines in turn is the same one with its width
in another order, so it is exported in that order; `ORDER` in the config says so, and an import turns it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.decode import DecodeConfig
from regard.errors import InputError, ModelError
from regard.exchange.family import (
    ImportedModel,
    ModelFamily,
    Origin,
    build_on_meta,
    check_layers,
    embedding_rows,
)
from regard.exchange.foreign_tokenizer import ForeignTokenizer, token_of_id
from regard.exchange.sentencepiece import SentencePieceModel, read_vocabulary
from regard.exchange.sentencepiece_tokenizer import make_tokenizer
from regard.exchange.settings import MISSING, ForeignSettings, read_optional
from regard.exchange.weight_table import TensorSource, WeightRow, expand, linear, same
from regard.models.transformer import Activation, TransformerConfig
from regard.nn.positions import SinusoidHalves
from regard.tasks.translate.config import TranslateConfig
from regard.tasks.translate.prepare import Vocabularies
from regard.tasks.translate.recipe import TranslateRecipe
from regard.tasks.translate.sources import ImportedPairs
from regard.text import TokenizerConfig
from regard.train.config import TrainConfig

ORDER = "regard_positions"
"""setting of config.json: the positions of the model that the weights were reordered from"""
ACTIVATIONS: Mapping[str, Activation] = {
    "swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
}  # fmt: skip
"""activations by their names there; the first of several is written"""
LANGUAGE_CODE = re.compile(r">>.+<<")
"""begins a text, and names the language that it is translated into"""
EMBEDDINGS = ("model.shared.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight")
BIAS = "final_logits_bias"
SPM_FILES = ("source.spm", "target.spm")
WIDTH_AXES = {
    "embed.weight": 1, "attention.qkv.weight": 1, "cross.query.weight": 1, "cross.kv.weight": 1, "ffn.up.weight": 1,
    "readout.weight": 1, "out.weight": 0, "out.bias": 0, "down.weight": 0, "down.bias": 0, "norm.weight": 0,
    "norm.bias": 0,
}  # fmt: skip
"""the axis of the model's width, by the end of a weight's name; other weights have none"""


class MarianFamily(ModelFamily):
    """Transformers of Marian: post-norm, sinusoids in two halves, an output bias."""

    model_types = ("marian",)
    prefix = "model."

    def read_config(self, found: ForeignSettings) -> TransformerConfig:
        """The model of a config.json."""
        for name in ("normalize_before", "normalize_embedding", "add_final_layer_norm", "is_decoder"):
            found.require(name, False)
        found.require("static_position_embeddings", True)
        found.require("tie_word_embeddings", True)
        found.require("activation_function", "gelu", *ACTIVATIONS)
        ffn_width, heads = found.whole("encoder_ffn_dim", 4096), found.whole("encoder_attention_heads", 16)
        found.require("decoder_ffn_dim", ffn_width)
        found.require("decoder_attention_heads", heads)
        layers, decoder_layers = found.whole("encoder_layers", 12), found.whole("decoder_layers", 12)
        return TransformerConfig(
            layers=layers, decoder_layers=None if decoder_layers == layers else decoder_layers, heads=heads,
            width=found.whole("d_model", 1024), ffn_width=ffn_width, dropout=found.number("dropout", 0.1),
            positions="sinusoidal" if found.get(ORDER) == "sinusoidal" else "sinusoidal-halves",
            max_positions=found.whole("max_position_embeddings", 1024),
            tie="all" if found.get("share_encoder_decoder_embeddings", True) else "target",
            activation=ACTIVATIONS[found.get("activation_function", "gelu")],
            scale_embedding=bool(found.get("scale_embedding", False)),
        )  # fmt: skip

    def write_config(self, model: TransformerConfig, source: int, target: int) -> dict[str, Any]:
        """The config.json of a model with vocabularies of these sizes."""
        halves = {
            f"{half}_{name}": value
            for half in ("encoder", "decoder")
            for name, value in (("ffn_dim", model.ffn_width), ("attention_heads", model.heads))
        }
        return {
            "architectures": ["MarianMTModel"], "model_type": "marian", "is_encoder_decoder": True,
            "encoder_layers": model.layers, "decoder_layers": model.decoder_depth, "d_model": model.width, **halves,
            "activation_function": next(name for name, own in ACTIVATIONS.items() if own == model.activation),
            "dropout": model.dropout, "attention_dropout": 0.0, "activation_dropout": 0.0,
            "scale_embedding": model.scale_embedding, "max_position_embeddings": model.max_positions,
            "share_encoder_decoder_embeddings": model.tie == "all", "tie_word_embeddings": True,
            "vocab_size": source, "decoder_vocab_size": target, "forced_eos_token_id": None,
            ORDER: model.positions if model.positions == "sinusoidal" else None,
        }  # fmt: skip

    def rows(self, model: TransformerConfig) -> Iterator[WeightRow]:
        """The weight table without the embeddings, whose names depend on what is tied."""
        yield from expand(model.layers, partial(self._layer, "encoder"))
        yield from expand(model.decoder_depth, partial(self._layer, "decoder"))

    def embedding_rows(self, model: TransformerConfig, vocabulary: int) -> Iterator[WeightRow]:
        """The weight table of embeddings and output bias."""
        shared, decoder, encoder = EMBEDDINGS
        yield from same("decoder.embed.weight", shared if model.tie == "all" else decoder)
        if model.tie != "all":
            yield from same("encoder.embed.weight", encoder)
        if model.output_bias:
            yield WeightRow("decoder.readout.bias", (BIAS,), shape=(1, vocabulary))

    def _layer(self, half: str, number: int) -> Iterator[WeightRow]:
        ours, theirs = f"{half}.layers.{number}", f"model.{half}.layers.{number}"
        yield from linear(f"{ours}.attention.qkv", *(f"{theirs}.self_attn.{name}_proj" for name in "qkv"))
        yield from linear(f"{ours}.attention.out", f"{theirs}.self_attn.out_proj")
        yield from linear(f"{ours}.attention_norm.norm", f"{theirs}.self_attn_layer_norm")
        if half == "decoder":
            yield from linear(f"{ours}.cross.query", f"{theirs}.encoder_attn.q_proj")
            yield from linear(f"{ours}.cross.kv", *(f"{theirs}.encoder_attn.{name}_proj" for name in "kv"))
            yield from linear(f"{ours}.cross.out", f"{theirs}.encoder_attn.out_proj")
            yield from linear(f"{ours}.cross_norm.norm", f"{theirs}.encoder_attn_layer_norm")
        yield from linear(f"{ours}.ffn.up", f"{theirs}.fc1")
        yield from linear(f"{ours}.ffn.down", f"{theirs}.fc2")
        yield from linear(f"{ours}.ffn_norm.norm", f"{theirs}.final_layer_norm")

    def is_unused(self, name: str) -> bool:
        """Tensors that are stored twice, and the table of positions, which is computed here."""
        return name.endswith("embed_positions.weight") or name in (*EMBEDDINGS[1:], "lm_head.weight")

    def import_model(
        self, found: ForeignSettings, source: TensorSource, folder: Path, origin: Origin
    ) -> tuple[ImportedModel, Iterable[WeightRow]]:
        shapes = source.shapes()
        model = replace(self.read_config(found), output_bias=BIAS in shapes)
        check_layers(found.path, max(model.layers, model.decoder_depth), source)
        check_positions(source, model)
        shared, decoder, encoder = EMBEDDINGS
        names = [name if model.tie != "all" else shared for name in (encoder, decoder)]
        sizes = [embedding_rows(source, name) for name in names]
        tokenizers = read_tokenizers(folder, found, separate=model.tie != "all")
        words = Vocabularies(*(one.fill(size) for one, size in zip(tokenizers, sizes, strict=True)))
        recipe = TranslateRecipe(
            data=ImportedPairs(source=origin.name, license=origin.license),
            model=model,
            task=TranslateConfig(share_vocab=words.is_shared),
            text=TokenizerConfig(kind=tokenizers[0].kind, vocab_size=max(*sizes, 300), normalization="none"),
            train=TrainConfig(),
            decode=read_search(found, folder),
        )
        module = build_on_meta(recipe.build, words)
        notes = list(
            dict.fromkeys(note for one, size in zip(tokenizers, sizes, strict=True) for note in one.notes(size))
        )
        arrange = partial(reorder_width, order=halves_first(model.width).argsort())
        result = ImportedModel(
            recipe, module, tokenizer_artifacts(words), notes,
            arrange=arrange if model.positions == "sinusoidal" else dict,
        )  # fmt: skip
        return result, [*self.embedding_rows(model, sizes[1]), *self.rows(model)]


def halves_first(width: int) -> Tensor:
    """The order that turns sines and cosines in turn into all sines before all cosines.

    >>> halves_first(5).tolist()
    [0, 2, 4, 1, 3]
    """
    return torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])


def reorder_width(weights: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """The weights of a Transformer that computes the same with its width in another order."""

    def reorder(name: str, tensor: Tensor) -> Tensor:
        axis = next((axis for end, axis in WIDTH_AXES.items() if name.endswith(end)), None)
        return tensor if axis is None else tensor.index_select(axis, order)

    return {name: reorder(name, tensor) for name, tensor in weights.items()}


def check_positions(source: TensorSource, model: TransformerConfig) -> None:
    """Refuse a table of positions that is not the one that is computed here."""
    for name in [name for name in source.shapes() if name.endswith("embed_positions.weight")]:
        table = source.read(name)
        expected = SinusoidHalves(model.width)(torch.arange(len(table)))
        if table.shape != expected.shape or float((table - expected).abs().max()) > 1e-3:
            raise ModelError(
                f"{source.path}: {name!r} is not Marian's table of sines and cosines; it was trained or reordered"
            )


def read_tokenizers(folder: Path, found: ForeignSettings, separate: bool) -> tuple[ForeignTokenizer, ForeignTokenizer]:
    """The tokenizers of source and target: two SentencePiece models, or one tokenizer.json for both."""
    missing = [name for name in (*SPM_FILES, "vocab.json") if not (folder / name).is_file()]
    if missing and (folder / "tokenizer.json").is_file():
        one = ForeignTokenizer.read(folder, found)
        begin, end = (token_of_id(one.inner, found.get(f"{name}_token_id")) for name in ("decoder_start", "eos"))
        one = replace(one, begin=begin or one.begin, end=end or one.end)
        return one, one
    if missing:
        expected = f"expected {', '.join(SPM_FILES)} and vocab.json, or a tokenizer.json"
        raise InputError(f"{folder}: {expected}; there is no {missing[0]}")
    vocabularies = [read_vocabulary(folder / "vocab.json")] * 2
    if separate and (folder / "target_vocab.json").is_file():
        vocabularies[1] = read_vocabulary(folder / "target_vocab.json")
    sides = (read_side(folder / name, words, found) for name, words in zip(SPM_FILES, vocabularies, strict=True))
    source, target = sides
    return source, target


def read_side(path: Path, vocabulary: list[str], found: ForeignSettings) -> ForeignTokenizer:
    """The tokenizer of one side: its SentencePiece model with the ids of its vocabulary."""
    ids = [found.whole("decoder_start_token_id", found.get("pad_token_id", MISSING)), found.whole("eos_token_id", 0)]
    settings = read_optional(path.parent / "tokenizer_config.json")
    unknown = settings.get("unk_token", "<unk>")
    for id in ids:
        if id >= len(vocabulary):
            raise ModelError(
                f"{found.path}: token {id} begins or ends outputs, and the vocabulary has {len(vocabulary):,}"
            )
    if unknown not in vocabulary:
        raise ModelError(f"{path.parent}: the unknown token {unknown!r} is not in the vocabulary")
    start, end = (vocabulary[id] for id in ids)
    model = SentencePieceModel.read(path)
    special = list(dict.fromkeys((start, end, unknown)))
    missing = model.missing_pieces(vocabulary)
    notes = [f"{path.name}: {missing:,} of its pieces are not in the vocabulary; they are cut into others"]
    codes = [token for token in vocabulary if LANGUAGE_CODE.fullmatch(token)]
    inner = make_tokenizer(model, vocabulary, unknown, special, codes)
    return ForeignTokenizer(path, inner, start, end, remarks=tuple(notes if missing else ()))


def read_search(found: ForeignSettings, folder: Path) -> DecodeConfig:
    """Beam and length penalty of a folder's generation_config.json, else of its config.json."""
    given = ForeignSettings(found.path, {**found.values, **read_optional(folder / "generation_config.json").values})
    beam, alpha = given.whole("num_beams", 1), given.number("length_penalty", 1.0)
    return DecodeConfig(beam=max(1, beam), length_penalty="power", alpha=max(0.0, alpha))


def tokenizer_artifacts(words: Vocabularies) -> dict[str, bytes]:
    """The tokenizer files of a run."""
    if words.source == words.target:
        return {"tokenizer.json": words.source.json.encode()}
    return {f"tokenizer.{side}.json": getattr(words, side).json.encode() for side in ("source", "target")}
