"""A minimal task without text, copying numbers: for tests of what all tasks have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from regard.decode import Beam, search
from regard.distributed import ProcessGroup
from regard.errors import ConfigError
from regard.metrics import perplexity
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder
from regard.objective import NextToken, Objective
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words
from regard.tasks import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate
from regard.tasks.base import with_weights
from regard.tasks.copying import CopyTask
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.validation import validation_loss


@dataclass(frozen=True)
class ParrotConfig:
    """Copy numbers."""

    kind: Literal["parrot"] = "parrot"
    """numbers in, the same numbers out"""
    size: int = 8
    """how many numbers there are"""


@dataclass(frozen=True)
class ParrotPreparation:
    """Preparation that writes one artifact."""

    size: int

    def identity(self) -> dict[str, Any]:
        return {"size": self.size}

    def run(self, folder: Path, progress: Callable[[str, int, int], None]) -> dict[str, dict[str, int]]:
        folder.mkdir(parents=True, exist_ok=True)
        progress("nesting", 1, 1)
        (folder / "seeds.txt").write_text(str(self.size), encoding="utf-8")
        return {"train": {"read": self.size}}


@dataclass(frozen=True)
class ParrotRecipe(Recipe):
    """Recipe without data, text, filter and decode sections."""

    verb: ClassVar[str] = "squawk"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "accuracy")
    scores: ClassVar[tuple[str, ...]] = ("perplexity",)
    artifacts: ClassVar[tuple[str, ...]] = ("seeds.txt",)

    model: ModelConfig
    """the model"""
    task: ParrotConfig = ParrotConfig()
    """the task"""
    train: TrainConfig = TrainConfig()
    """training"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        self.check()

    def preparation(self) -> ParrotPreparation:
        return ParrotPreparation(self.task.size)

    def build(self) -> EncoderDecoder:
        torch.manual_seed(self.seed)
        return self.model.build(Words(self.task.size), Words(self.task.size))

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, CopyTask, Any]:
        size = int((run / "seeds.txt").read_text(encoding="utf-8"))
        loader, objective = CopyTask(size, seed=self.seed, group=group), Objective(self.build(), NextToken(Words(size)))

        def validate() -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
            samples = [{"heard": "4 5", "said": ParrotModel(objective.model, self, 0).predict_text("4 5")}]
            return {**validation_loss(objective, loader, group), "accuracy": 50.0}, samples

        return objective, loader, validate

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> ParrotModel:
        return ParrotModel(with_weights(self.build(), saved), self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages:
            raise ConfigError("parrots know no languages")
        return RecipeTemplate("a parrot", {"model": "seq2seq"}, {"model.width": 16}, hints=["talk to it"])

    def statistics(self, run: Path) -> dict[str, Any]:
        return {"seeds": self.task.size}

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return [f"seeds  {statistics['seeds']}"]

    def summary(self, run: Path) -> str:
        return f"{self.task.size} seeds"

    def data_credit(self) -> str:
        return "the jungle"


class ParrotModel(Model):
    """A model that copies numbers."""

    recipe: ParrotRecipe

    def predict_text(self, text: str) -> str:
        source = Tokens.pad([[int(word) for word in text.split()]])
        with torch.no_grad():
            found = search(
                self.inference_module.eval(), source, Tokens.pad([[SOS]]), Beam(1, eos=EOS), torch.tensor([6])
            )
        return " ".join(map(str, found[0][0].tokens))

    def evaluate(self, request: EvalRequest, progress: Callable[[str, int, int], None]) -> Evaluation:
        return Evaluation("jungle", [perplexity([1.0, 2.0], [1, 2])])

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {"source": str, "target": str}
