"""BERT that was fine-tuned to classify or to label, for transformers.

A classifier is a BertForSequenceClassification, or with task.pool = "first-relu" a DistilBertForSequenceClassification;
a tagger of subwords is a BertForTokenClassification.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from regard.errors import ModelError
from regard.exchange.bert import BertFamily, DistilBertFamily
from regard.exchange.exported_model import ExportedModel, fast_tokenizer_files, special_ids
from regard.exchange.vision import label_config
from regard.exchange.weight_table import linear
from regard.models.bert import BertConfig
from regard.tasks.classify.inputs import PairInput, TextInput
from regard.tasks.classify.recipe import ClassificationModel
from regard.tasks.label.recipe import LabelModel
from regard.tasks.label.targets import TagTarget
from regard.text import Tokenizer

SEQUENCE, TOKEN = "BertForSequenceClassification", "BertForTokenClassification"


def describe_classifier(model: ClassificationModel | LabelModel, path: Path) -> ExportedModel:
    """A fine-tuned BERT for transformers."""
    if isinstance(model, LabelModel):
        return describe_token_classifier(model, path)
    return describe_sequence_classifier(model, path)


def describe_sequence_classifier(model: ClassificationModel, path: Path) -> ExportedModel:
    """A classifier of texts; one whose head transformers does not have is refused by name."""
    shape, encoder = require_bert(model, path), model.input_encoder
    if not isinstance(encoder, TextInput):
        raise ModelError(f"{path}: {SEQUENCE} reads texts, and this run reads {encoder.unit}")
    task = model.recipe.task
    if not task.reads_first:
        raise ModelError(
            f'{path}: task.pool = "{task.pool}"; {SEQUENCE} reads the state of [CLS] through the pooler: '
            "train it with task.pool = first"
        )
    family = next(family for family in (BertFamily(), DistilBertFamily()) if family.pool == task.pool)
    if task.pool == DistilBertFamily.pool:
        check_distilbert(shape, path)
    rows = [*family.rows(shape), *family.pooler_rows(), *linear("readout", "classifier")]
    architecture = f"{family.name}ForSequenceClassification"
    config = describe_head(family, shape, encoder.tokenizer, architecture, model.labels.names)
    config[family.head_dropout] = task.dropout
    begin, end = encoder.tokenizer.tokens([encoder.tokenizer.sos, encoder.tokenizer.eos])
    template = " ".join([begin, "$A", *([end] if encoder.add_eos else [])])
    pair = f"{begin} $A {end} $B:1 {end}:1" if isinstance(encoder, PairInput) else None
    names, limit = special_names(encoder.tokenizer), shape.max_positions
    files = fast_tokenizer_files(encoder.tokenizer, template, names, limit, pair)
    return ExportedModel(config, rows, files, family.join_constants)


def describe_token_classifier(model: LabelModel, path: Path) -> ExportedModel:
    """A tagger of subwords; with a CRF, or of whole words, it is refused by name."""
    shape, pieces, target = require_bert(model, path), model.artifacts.subwords, model.target
    if not isinstance(target, TagTarget):
        raise ModelError(f"{path}: the labels are {model.recipe.data.label_type}, and {TOKEN} gives tags only")
    if model.recipe.task.crf != "none":
        raise ModelError(f'{path}: task.crf = "{model.recipe.task.crf}"; {TOKEN} has no CRF: train it with crf = none')
    if pieces is None:
        raise ModelError(
            f'{path}: task.tokens = "words"; {TOKEN} reads the pieces of words: train it with task.tokens = subwords'
        )
    rows = [*BertFamily().rows(shape), *linear("readout", "classifier")]
    config = describe_head(BertFamily(), shape, pieces.tokenizer, TOKEN, target.names)
    before, after = (pieces.tokenizer.tokens(ids) for ids in pieces.special_ids)
    template, names = " ".join([*before, "$A", *after]), special_names(pieces.tokenizer)
    return ExportedModel(config, rows, fast_tokenizer_files(pieces.tokenizer, template, names, shape.max_positions))


def describe_head(
    family: BertFamily, shape: BertConfig, words: Tokenizer, architecture: str, labels: Iterable[str]
) -> dict[str, Any]:
    """The config.json of a BERT with a head of labels."""
    own = {"architectures": [architecture], **label_config(labels), **special_ids(special_names(words))}
    return family.write_config(shape, words.size) | own


def check_distilbert(shape: BertConfig, path: Path) -> None:
    """Refuse what a DistilBERT does not have."""
    for name, found, only in (("segments", shape.segments, 1), ("layer_norm_eps", shape.layer_norm_eps, 1e-12)):
        if found != only:
            raise ModelError(
                f'{path}: model.{name} = {found:g}, and DistilBERT, whose classifier has task.pool = "first-relu", has '
                f"{only:g}; train it so, or with task.pool = first"
            )


def require_bert(model: ClassificationModel | LabelModel, path: Path) -> BertConfig:
    """The config of a run with a BERT encoder and a word embedding of its width."""
    shape, task = model.recipe.model, model.recipe.kind()
    if not isinstance(shape, BertConfig):
        raise ModelError(
            f'{path}: model.kind = "{shape.kind}" of the task {task} cannot be written as a Hugging Face folder; of '
            "texts there is bert"
        )
    if not isinstance(model.module.encoder.embed, nn.Embedding):
        raise ModelError(f"{path}: its word vectors have another width than the model, which {SEQUENCE} does not have")
    return shape


def special_names(words: Tokenizer) -> dict[str, int]:
    """Special tokens of a BERT tokenizer, by their names in tokenizer_config.json."""
    found = {"pad": words.pad, "unk": words.unk, "cls": words.sos, "sep": words.eos, "mask": words.mask}
    return {name: id for name, id in found.items() if id is not None and id >= 0}
