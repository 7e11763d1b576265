"""The fill task: recipe of masked language modeling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from regard.data import Shards
from regard.data.texts import ImportedText
from regard.distributed import ProcessGroup
from regard.errors import ConfigError
from regard.models import EncoderOnlyConfig
from regard.models.bert import BertPooler, BertPretraining, MaskedLMHead, init_bert
from regard.objective import Objective
from regard.program import quote_path
from regard.spaces import Words
from regard.tasks.base import Recipe, RecipeTemplate, read_counts, with_weights
from regard.tasks.fill import stats
from regard.tasks.fill.config import FillConfig, check_encoder
from regard.tasks.fill.loader import FillLoader
from regard.tasks.fill.masking import Masking
from regard.tasks.fill.model import FillModel, fill_samples
from regard.tasks.fill.objective import MaskedTokens
from regard.tasks.fill.predict import MASK, MaskFiller
from regard.tasks.fill.prepare import FillPreparation
from regard.tasks.fill.scoring import FillValidation
from regard.tasks.fill.sources import FillData
from regard.tasks.vectors.prepare import FREQUENCIES_FILE, WordFrequencies
from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import TokenStrings, tokenizer_strings
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.optim import AdamW
from regard.train.schedule import LinearDecay


@dataclass(frozen=True)
class FillRecipe(Recipe):
    """Recipe of a masked language model."""

    verb: ClassVar[str] = "fill"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "accuracy", "next_sentence")
    scores: ClassVar[tuple[str, ...]] = ("accuracy", "baseline", "perplexity", "loss", "next_sentence")
    artifacts: ClassVar[tuple[str, ...]] = ("tokenizer.json", FREQUENCIES_FILE)

    data: FillData
    """source of the text"""
    model: EncoderOnlyConfig
    """the encoder"""
    task: FillConfig = FillConfig()
    """masks and segments"""
    text: TokenizerConfig = TokenizerConfig(kind="wordpiece", vocab_size=8000, lowercase=True)
    """the tokenizer"""
    train: TrainConfig = TrainConfig(
        label_smoothing=0.0, optimizer=AdamW(betas=(0.9, 0.999)), schedule=LinearDecay(lr=1e-3, warmup=500)
    )
    """training"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        check_encoder(self.model, self.task)
        if self.train.batch_tokens < self.task.length:
            raise ConfigError(
                f"train.batch_tokens = {self.train.batch_tokens} is less than task.length = {self.task.length}: not "
                "one sequence fits into a batch"
            )
        if self.text.dropout:
            raise ConfigError(f"text.dropout = {self.text.dropout}: texts are tokenized once; set it to 0")
        if self.train.probe is not None and MASK not in self.train.probe:
            raise ConfigError(f'train.probe = "{self.train.probe}" has no {MASK} to fill; write {MASK} for a word')
        if self.train.best_metric == "next_sentence" and not self.task.next_sentence:
            raise ConfigError('train.best_metric = "next_sentence" needs task.next_sentence = true')
        self.check()

    def preparation(self) -> FillPreparation:
        return FillPreparation(self.data, self.text, self.task)

    def build(self, tokenizer: Tokenizer) -> BertPretraining:
        """The model with its initial weights, which depend on the seed."""
        torch.manual_seed(self.seed)
        words = Words(tokenizer.size, self.train.label_smoothing)
        encoder = self.model.build_encoder(words)
        head = MaskedLMHead(encoder.width, words, encoder.embed, getattr(self.model, "layer_norm_eps", 1e-12))
        if not self.task.next_sentence:
            return BertPretraining(encoder, readout=head)
        pooler, next_sentence = BertPooler(encoder.width), nn.Linear(encoder.width, 2)
        init_bert(next_sentence)
        return BertPretraining(encoder, pooler, head, next_sentence)

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        words = tokenizer_strings(Tokenizer.load(run / "tokenizer.json"))
        return dict.fromkeys(("encoder.embed.weight", "readout.decoder.weight", "readout.decoder.bias"), words)

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> FillLoader:  # noqa: B008
        """The loader of the prepared data."""
        train, valid = (Shards.open(run / "data" / split) for split in ("train", "valid"))
        return self.loader_of(train, valid, Tokenizer.load(run / "tokenizer.json"), group)

    def loader_of(
        self,
        train: Shards,
        valid: Shards,
        tokenizer: Tokenizer,
        group: ProcessGroup = ProcessGroup(),  # noqa: B008
    ) -> FillLoader:
        """The loader of any prepared sequences."""
        masking = Masking.build(tokenizer, self.task)
        return FillLoader(train, valid, tokenizer, self.task, masking, self.train.batch_tokens, self.seed, group)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, FillLoader, FillValidation]:
        loader = self.loader(run, group)
        words = Words(loader.tokenizer.size, self.train.label_smoothing)
        objective = Objective(self.build(loader.tokenizer), MaskedTokens(words))
        filler = self.filler(objective.model, loader.tokenizer)
        return objective, loader, FillValidation(objective, loader, partial(fill_samples, filler, loader))

    def filler(self, model: Any, tokenizer: Tokenizer) -> MaskFiller:
        """Fills masks with a model, which has learned positions for no longer text than its sequences."""
        limit = None if self.model.position_limit is None else self.task.length
        return MaskFiller(model, tokenizer, limit, reads_segments=self.task.next_sentence)

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> FillModel:
        tokenizer, frequencies = Tokenizer.load(run / "tokenizer.json"), WordFrequencies.load(run)
        return FillModel(with_weights(self.build(tokenizer), saved), tokenizer, frequencies, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("fill has one language; --source-lang and --target-lang are for translate")
        kinds = {"data": "text", "model": "bert", "train.optimizer": "adamw", "train.schedule": "linear"}
        hint = "data/book.txt is the training text; its last tenth is held out for validation"
        return RecipeTemplate("masked language modeling", kinds, TEMPLATE_SETTINGS, hints=[hint])

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.collect_statistics(self.text.kind, self.loader(run), read_counts(run))

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics)

    def speed_unit(self) -> str:
        return "masks"

    def summary(self, run: Path) -> str:
        loader = self.loader(run)
        sizes = f"{len(loader.train):,} train, {len(loader.valid):,} valid sequences"
        return f"{sizes}       tokens  {self.text.kind} {loader.tokenizer.size:,}"

    def usage(self, run: Path) -> str:
        if "readout" in self.missing_parts:
            return f'regard vectors sentence {quote_path(run)} "..."'
        return super().usage(run).replace('"..."', '"... [MASK] ..."')

    def eval_usage(self, run: Path) -> str:
        if "readout" in self.missing_parts:
            return f"regard train RECIPE --from {quote_path(run)}"
        return super().eval_usage(run)

    @property
    def missing_parts(self) -> tuple[str, ...]:
        """Parts that an imported model does not have: they have initial weights."""
        return self.data.untrained if isinstance(self.data, ImportedText) else ()


TEMPLATE_SETTINGS: dict[str, Any] = {
    "data.train": "data/book.txt",
    "model.layers": 4,
    "model.width": 256,
    "model.ffn_width": 1024,
    "model.heads": 4,
    "model.max_positions": 128,
    "train.epochs": 10.0,
}
