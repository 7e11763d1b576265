"""The generate task: recipe, validation, and the trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from regard.config import plain
from regard.data import Shards
from regard.data.conditioned_texts import ConditionedTexts
from regard.data.texts import Shakespeare
from regard.decode import DecodeConfig
from regard.distributed import ProcessGroup
from regard.errors import ConfigError
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder
from regard.objective import Loader, NextToken, Objective, StatefulNextToken
from regard.program import quote_path
from regard.spaces import Words
from regard.tasks.base import Recipe, RecipeTemplate, read_counts, with_weights
from regard.tasks.generate import stats
from regard.tasks.generate.conditioned import (
    ConditionedLoader,
    ConditionedModality,
    ConditionedValidation,
    check_condition,
)
from regard.tasks.generate.conditioned_model import ConditionedModel
from regard.tasks.generate.config import GenerateConfig, GenerateOptions
from regard.tasks.generate.directions import (
    BidirectionalNextToken,
    BidirectionalStreamLoader,
    bidirectional_validation,
    check_bidirectional,
)
from regard.tasks.generate.loader import ShuffledWindowLoader, StreamLoader
from regard.tasks.generate.modality import Modality, NumberModality, TextModality
from regard.tasks.generate.model import GenerationModel, has_hidden_state
from regard.tasks.generate.packing import PackedDocuments, TokenRow, check_packing
from regard.tasks.generate.predict import Generator
from regard.tasks.generate.prepare import NumberPreparation, TextPreparation
from regard.tasks.generate.sources import GenerateData, NumberFiles
from regard.text import TokenizerConfig
from regard.text.token_rows import TokenStrings
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.trainer import Validate
from regard.train.validation import validation_loss


@dataclass(frozen=True)
class GenerateRecipe(Recipe):
    """Recipe of a language model, or of a model of a series of numbers."""

    verb: ClassVar[str] = "generate"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "bits")
    scores: ClassVar[tuple[str, ...]] = ("perplexity", "bits", "bits_per_byte", "loss")

    data: GenerateData = field(default_factory=Shakespeare)
    """source of the text or the series; by default, Shakespeare's plays"""
    model: ModelConfig = field(kw_only=True)
    """the model"""
    task: GenerateConfig = GenerateConfig()
    """the task"""
    text: TokenizerConfig = TokenizerConfig(kind="char", normalization="none")
    """the tokenizer"""
    train: TrainConfig = TrainConfig(label_smoothing=0.0)
    """training"""
    decode: DecodeConfig = DecodeConfig(sample=True, beam=1)
    """sampling"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        window, tokens, most = self.task.window, self.train.batch_tokens, self.model.position_limit
        if self.model.reads_images:
            raise ConfigError('a model that reads images writes captions: use task.kind = "caption"')
        if tokens < window:
            raise ConfigError(
                f"train.batch_tokens = {tokens} is less than task.window = {window}: not one stream fits into a batch"
            )
        if most is not None and most < window:
            raise ConfigError(f"task.window = {window} is more than model.max_positions = {most}; make them equal")
        if self.text.dropout:
            raise ConfigError(f"text.dropout = {self.text.dropout}: running text is tokenized once; set it to 0")
        modality = self.modality()
        modality.check_best_metric(self.train.best_metric)
        modality.check_decode(self.decode)
        check_condition(self.condition, self.data)
        if self.model.bidirectional_lm:
            check_bidirectional(self.model, self.data.kind, self.task.order, self.train.label_smoothing)
        with torch.device("meta"):
            model = self.model.build(Words(8), Words(8))
        is_recurrent = self.condition != "none" or has_hidden_state(model)
        check_packing(self.task.packing, self.data, self.model.kind, is_recurrent)
        if model.encoder.width and self.condition == "none":
            raise ConfigError(
                f'model.kind = "{self.model.kind}" reads a source, and generate has none; use rnnlm, gpt or llama'
            )
        self.check()

    @property
    def condition(self) -> str:
        """How the model gets a condition: "none", "start" or "every"."""
        return str(plain(self.model).get("condition", "none"))

    def modality(self, run: Path = Path()) -> Modality:
        """Text, texts with conditions, or numbers; `run` holds the prepared artifacts."""
        if self.condition != "none" and isinstance(self.data, ConditionedTexts):
            return ConditionedModality(self.data, self.text, run)
        if isinstance(self.data, NumberFiles):
            return NumberModality(self.data, run)
        return TextModality(self.data, self.text, run)

    @property
    def artifacts(self) -> tuple[str, ...]:  # type: ignore[override]
        """Prepared files that the model needs later: text and numbers have different ones."""
        return self.preparation().artifacts

    def preparation(self) -> TextPreparation | NumberPreparation:
        return self.modality().preparation()

    def build(self, modality: Modality) -> EncoderDecoder:
        """The model with its initial weights, which depend on the seed."""
        torch.manual_seed(self.seed)
        space = modality.space(self.train.label_smoothing)
        return self.model.build(modality.source_space() if self.condition != "none" else space, space)

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        tokens = self.modality(run).vocabulary()
        return {} if tokens is None else {"decoder.embed.weight": tokens, "decoder.readout.weight": tokens}

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> StreamLoader | ConditionedLoader:  # noqa: B008
        """The loader of the prepared data."""
        modality, window = self.modality(run), self.task.window
        if isinstance(modality, ConditionedModality):
            return modality.loader(self.train.batch_tokens, self.seed, group)
        shards = (Shards.open(run / "data" / split) for split in ("train", "valid"))
        train, valid = (self.token_row(modality.sequence(split), modality) for split in shards)
        loader = ShuffledWindowLoader if self.task.order == "shuffled" else StreamLoader
        if self.model.bidirectional_lm:
            loader = BidirectionalStreamLoader
        return loader(train, valid, window, self.rows, self.seed, group)

    def token_row(self, sequence: np.ndarray, modality: Modality) -> TokenRow:
        """The text of a split as training reads it: running on, or as packed documents."""
        if self.task.packing == "blocks":
            return sequence
        assert isinstance(modality, TextModality)
        return PackedDocuments(sequence, modality.tokenizer.eos)

    @property
    def rows(self) -> int:
        """Parallel streams of a batch."""
        return self.train.batch_tokens // self.task.window

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, Loader, Validate]:
        modality, loader = self.modality(run), self.loader(run, group)
        counts = read_counts(run)["valid"]
        if isinstance(modality, ConditionedModality) and isinstance(loader, ConditionedLoader):
            objective = Objective(self.build(modality), NextToken(modality.space(self.train.label_smoothing)))
            options = GenerateOptions(self.decode)
            return objective, loader, ConditionedValidation(objective, loader, modality, options, self.task, counts)
        assert isinstance(loader, StreamLoader)
        next_token = BidirectionalNextToken if self.model.bidirectional_lm else StatefulNextToken
        objective = Objective(self.build(modality), next_token(modality.space(self.train.label_smoothing)))
        options = GenerateOptions(self.decode)
        if self.task.prompt:  # else the error would come after the first epoch
            self.generator(objective.model, modality, options).check_prompt(self.task.prompt)
        generator = self.generator(objective.model, modality, replace(options, sliding_window=True))
        return objective, loader, GenerateValidation(objective, loader, modality, generator, self.task, counts)

    def generator(self, model: Any, modality: Modality, options: GenerateOptions) -> Generator:
        """Generates with a model; one without a hidden state reads contexts as long as the training windows."""
        is_unlimited = self.condition != "none" or has_hidden_state(model)
        return modality.generator(model, options, None if is_unlimited else self.task.window)

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> GenerationModel:
        modality = self.modality(run)
        model = ConditionedModel if isinstance(modality, ConditionedModality) else GenerationModel
        return model(with_weights(self.build(modality), saved), modality, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("generate has one language; --source-lang and --target-lang are for translate")
        return RecipeTemplate(
            "text generation",
            {"data": "text", "model": "rnnlm", "train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/book.txt"} | TEMPLATE_SETTINGS,
            hints=["data/book.txt is the training text; its last tenth is held out for validation"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        loader, modality, counts = self.loader(run), self.modality(run), read_counts(run)
        if isinstance(loader, ConditionedLoader):
            return stats.conditioned_statistics(modality, loader, counts)
        return stats.collect_statistics(modality, loader, counts)

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics)

    def usage(self, run: Path) -> str:
        if self.condition == "none":
            return super().usage(run)
        return f'regard {self.verb} {quote_path(run)} "" --condition ...'

    def speed_unit(self) -> str:
        return "numbers" if self.data.kind == "numbers" else "tokens"

    def summary(self, run: Path) -> str:
        loader, modality = self.loader(run), self.modality(run)
        unit = "texts" if isinstance(loader, ConditionedLoader) else "positions"
        sizes = f"{len(loader.train):,} train, {len(loader.valid):,} valid {unit}"
        return f"{sizes}       tokens  {modality.unit} {modality.size_label}"


TEMPLATE_SETTINGS: dict[str, Any] = {
    "model.width": 256,
    "model.dropout": 0.2,
    "train.epochs": 20.0,
    "train.schedule.lr": 2e-3,
    "train.schedule.warmup": 100,
}


@dataclass(frozen=True)
class GenerateValidation:
    """Loss per token, perplexity, bits per character, and generated samples."""

    objective: Objective
    loader: StreamLoader
    modality: Modality
    generator: Generator
    task: GenerateConfig
    counts: Mapping[str, int]

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        is_bidirectional = isinstance(self.loader, BidirectionalStreamLoader)
        measure = bidirectional_validation if is_bidirectional else validation_loss
        loss = measure(self.objective, self.loader, self.loader.group)
        metrics = self.modality.validation_metrics(loss, self.counts)
        if not self.loader.group.is_main or not self.task.samples:
            return metrics, ()
        valid = self.loader.valid
        prompt = self.task.prompt or self.modality.default_prompt(
            valid.ids if isinstance(valid, PackedDocuments) else valid
        )
        samples = self.generator.generate(prompt, self.task.length, self.task.samples)
        return metrics, [{"prompt": prompt, "output": sample.text} for sample in samples]
