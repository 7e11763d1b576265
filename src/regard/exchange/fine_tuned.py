"""BERT and DistilBERT that were fine-tuned to classify texts or to label words, as runs of these tasks.

A BertForSequenceClassification reads the state of [CLS] through BERT's pooler (tanh), DistilBERT's through a layer of
its own (ReLU). A token classifier gives a tag to every piece; the tag of a word here is that of its first piece.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from torch import nn

from regard.errors import ModelError
from regard.exchange.bert import BertFamily
from regard.exchange.exported_model import render_json
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
from regard.exchange.vision import read_labels
from regard.exchange.weight_table import TensorSource, WeightRow, linear
from regard.metrics.spans import OUTSIDE, Scheme, is_span_tag
from regard.models.bert import BertConfig
from regard.tasks import Recipe
from regard.tasks.classify.config import ClassifyConfig
from regard.tasks.classify.labels import LABELS, Labels
from regard.tasks.classify.prepare import LabeledTextPreparation
from regard.tasks.classify.recipe import ClassifyRecipe
from regard.tasks.classify.sources import ImportedLabeledTexts
from regard.tasks.label import baseline, targets, vocab
from regard.tasks.label.baseline import MostFrequentTag
from regard.tasks.label.config import LabelConfig
from regard.tasks.label.recipe import LabelArtifacts, LabelRecipe
from regard.tasks.label.sources import ImportedTags
from regard.tasks.label.subwords import MAX_PIECES, SubwordEncoder
from regard.tasks.label.targets import TagTarget
from regard.tasks.label.vocab import WordVocab
from regard.text import Tokenizer, TokenizerConfig

HEAD = "classifier"
"""the projection on the labels there"""
AROUND = 2
"""positions that [CLS] and [SEP] take"""


@dataclass(frozen=True)
class HeadParts:
    """What a fine-tuned folder says about its head."""

    found: ForeignSettings
    labels: Labels
    words: Tokenizer
    text: TokenizerConfig
    origin: Origin


class FineTunedFamily(ModelFamily):
    """An encoder of BERT's family with a head of labels."""

    ending: ClassVar[str]
    """ends the name of the architecture"""

    def __init__(self, body: BertFamily) -> None:
        self.body, self.model_types, self.prefix = body, body.model_types, body.prefix
        self.architectures = (body.name + self.ending,)

    def read_config(self, found: ForeignSettings) -> BertConfig:
        return self.body.read_config(found)

    def is_unused(self, name: str) -> bool:
        return self.body.is_unused(name)

    def import_model(
        self, found: ForeignSettings, source: TensorSource, folder: Path, origin: Origin
    ) -> tuple[ImportedModel, Iterable[WeightRow]]:
        model = self.read_config(found)
        check_layers(found.path, model.layers, source)
        tokenizer = ForeignTokenizer.read(folder, found)
        size = embedding_rows(source, self.body.embedding)
        words = tokenizer.fill(size)
        if not words.has_cls:
            raise ModelError(f"{tokenizer.path}: expected a tokenizer that puts [CLS] and [SEP] around a text")
        labels = head_labels(found, embedding_rows(source, f"{HEAD}.weight"))
        text = TokenizerConfig(kind=tokenizer.kind, vocab_size=max(size, 300), normalization="none")
        recipe, module, artifacts = self.make_run(model, HeadParts(found, labels, words, text, origin))
        artifacts = {"tokenizer.json": words.json.encode(), **artifacts}
        result = ImportedModel(recipe, module, artifacts, tokenizer.notes(size), self.body.constants(model))
        return result, self.rows(model)

    @abstractmethod
    def make_run(self, model: BertConfig, parts: HeadParts) -> tuple[Recipe, nn.Module, dict[str, bytes]]:
        """The recipe, its network on the meta device, and its artifacts beside the tokenizer."""


class SequenceClassifierFamily(FineTunedFamily):
    """A classifier of texts, and of pairs of texts."""

    ending = "ForSequenceClassification"

    def rows(self, model: BertConfig) -> Iterable[WeightRow]:
        return [*self.body.rows(model), *self.body.pooler_rows(), *linear("readout", HEAD)]

    def make_run(self, model: BertConfig, parts: HeadParts) -> tuple[Recipe, nn.Module, dict[str, bytes]]:
        parts.found.require("problem_type", "single_label_classification")
        dropout = parts.found.number(self.body.head_dropout, model.dropout)
        data = ImportedLabeledTexts(source=parts.origin.name, license=parts.origin.license)
        recipe = ClassifyRecipe(
            data=data,
            model=model,
            task=ClassifyConfig(pool=self.body.pool, dropout=dropout, max_length=text_positions(model, parts.found)),
            text=parts.text,
        )
        preparation = LabeledTextPreparation(data, recipe.text, recipe.task)
        module = build_on_meta(recipe.build, preparation.make_encoder(parts.words), parts.labels)
        return recipe, module, {LABELS: render_json(asdict(parts.labels))}


class TokenClassifierFamily(FineTunedFamily):
    """A tagger of subwords."""

    ending = "ForTokenClassification"

    def rows(self, model: BertConfig) -> Iterable[WeightRow]:
        return [*self.body.rows(model), *linear("readout", HEAD)]

    def is_unused(self, name: str) -> bool:
        """Also a pooler, which a tagger does not read and earlier versions of transformers stored."""
        return name.startswith("bert.pooler.") or super().is_unused(name)

    def make_run(self, model: BertConfig, parts: HeadParts) -> tuple[Recipe, nn.Module, dict[str, bytes]]:
        longest, tags = text_positions(model, parts.found), parts.labels.names
        if longest < MAX_PIECES:
            raise ModelError(
                f"{parts.found.path}: it has {model.max_positions} positions, and taggers here need "
                f"{MAX_PIECES + AROUND} or more: a word may have {MAX_PIECES} pieces"
            )
        recipe = LabelRecipe(
            data=ImportedTags(source=parts.origin.name, license=parts.origin.license),
            model=model,
            task=LabelConfig(scheme=tag_scheme(tags) or "none", tokens="subwords", max_length=longest),
            text=parts.text,
        )
        target, usual = TagTarget(tags), MostFrequentTag(OUTSIDE if OUTSIDE in tags else tags[0], {})
        pieces, words = SubwordEncoder(parts.words), WordVocab((), ())
        module = build_on_meta(recipe.build, LabelArtifacts(words, target, usual, pieces))
        files = {vocab.FILE: asdict(words), targets.FILE: target.to_dict(), baseline.FILE: usual.to_dict()}
        return recipe, module, {name: json.dumps(data, ensure_ascii=False).encode() for name, data in files.items()}


def head_labels(found: ForeignSettings, rows: int) -> Labels:
    """The labels of a config.json; transformers leaves out the names LABEL_0 and LABEL_1 of two."""
    if found.get("id2label") is not None:
        return read_labels(found)
    if rows < 2:
        raise ModelError(f"{found.path}: its head has {rows} output; expected a classifier with two labels or more")
    return Labels(tuple(f"LABEL_{i}" for i in range(rows)), (0,) * rows)


def text_positions(model: BertConfig, found: ForeignSettings) -> int:
    """Positions of a text between [CLS] and [SEP]."""
    if model.max_positions <= AROUND:
        raise ModelError(f"{found.path}: it has {model.max_positions} positions; a text needs {AROUND + 1} or more")
    return model.max_positions - AROUND


def tag_scheme(tags: Iterable[str]) -> Scheme | None:
    """How tags encode spans, by their names; None if they do not.

    >>> tag_scheme(["O", "B-PER", "I-PER"]), tag_scheme(["O", "S-PER", "B-PER"]), tag_scheme(["NOUN", "VERB"])
    ('bio', 'bioes', None)
    """
    names = list(tags)
    schemes: tuple[Scheme, ...] = ("bio", "bioes")
    return next((one for one in schemes if all(is_span_tag(tag, one) for tag in names)), None)
