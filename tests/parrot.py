"""A job without text: say again what was read. Small enough to try what all jobs have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from regard.decode import Beam, search
from regard.distributed import World
from regard.errors import ConfigError
from regard.metrics import perplexity
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder
from regard.objective import Continue, Objective
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words
from regard.tasks import Asked, Evaluation, Model, Recipe, Starter
from regard.tasks.base import filled
from regard.tasks.copying import Copying
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.trainer import surprise


@dataclass(frozen=True)
class ParrotConfig:
    """Say it again."""

    kind: Literal["parrot"] = "parrot"
    """numbers in, the same numbers out"""
    size: int = 8
    """how many numbers there are"""


@dataclass(frozen=True)
class Nest:
    """Preparation that writes one file, which the model keeps."""

    size: int

    def identity(self) -> dict[str, Any]:
        return {"size": self.size}

    def run(self, folder: Path, tell: Callable[[str, int, int], None]) -> dict[str, dict[str, int]]:
        folder.mkdir(parents=True, exist_ok=True)
        tell("nesting", 1, 1)
        (folder / "seeds.txt").write_text(str(self.size), encoding="utf-8")
        return {"train": {"read": self.size}}


@dataclass(frozen=True)
class ParrotRecipe(Recipe):
    """How a parrot learns: no data, no text, no filter, no decode."""

    verb: ClassVar[str] = "squawk"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "accuracy")
    scores: ClassVar[tuple[str, ...]] = ("perplexity",)
    kept: ClassVar[tuple[str, ...]] = ("seeds.txt",)

    model: ModelConfig
    """what learns"""
    task: ParrotConfig = ParrotConfig()
    """what is asked"""
    train: TrainConfig = TrainConfig()
    """how it learns"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        self.check()

    def preparation(self) -> Nest:
        return Nest(self.task.size)

    def build(self) -> EncoderDecoder:
        torch.manual_seed(self.seed)
        return self.model.build(Words(self.task.size), Words(self.task.size))

    def parts(self, run: Path, world: World) -> tuple[Objective, Copying, Any]:
        size = int((run / "seeds.txt").read_text(encoding="utf-8"))
        feed, objective = Copying(size, seed=self.seed, world=world), Objective(self.build(), Continue(Words(size)))

        def validate() -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
            samples = [{"heard": "4 5", "said": ParrotModel(objective.model, self, 0).answer("4 5")}]
            return {**surprise(objective, feed, world), "accuracy": 50.0}, samples

        return objective, feed, validate

    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> ParrotModel:
        return ParrotModel(filled(self.build(), saved), self, saved.step, refused)

    @classmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        if languages:
            raise ConfigError("parrots know no languages")
        return Starter("a parrot", {"model": "seq2seq"}, {"model.width": 16}, hints=["talk to it"])

    def statistics(self, run: Path) -> dict[str, Any]:
        return {"seeds": self.task.size}

    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        return [f"seeds  {statistics['seeds']}"]

    def described(self, run: Path) -> str:
        return f"{self.task.size} seeds"

    def origin(self) -> str:
        return "the jungle"


class ParrotModel(Model):
    """A parrot."""

    recipe: ParrotRecipe

    def answer(self, text: str) -> str:
        source = Tokens.of([[int(word) for word in text.split()]])
        with torch.no_grad():
            found = search(self.ready.eval(), source, Tokens.of([[SOS]]), Beam(1, eos=EOS), torch.tensor([6]))
        return " ".join(map(str, found[0][0].tokens))

    def evaluate(self, asked: Asked, tell: Callable[[str, int, int], None]) -> Evaluation:
        return Evaluation("jungle", [perplexity([1.0, 2.0], [1, 2])])

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        return {"source": str, "target": str}
