"""Model families that are exchanged: config, weight table, and the task that a family's models are used for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.data.texts import ImportedText
from regard.errors import ModelError
from regard.exchange.foreign_tokenizer import ForeignTokenizer
from regard.exchange.settings import ForeignSettings
from regard.exchange.weight_table import TensorSource, WeightRow
from regard.spaces import Words
from regard.tasks import Recipe
from regard.tasks.generate.config import GenerateConfig
from regard.tasks.generate.recipe import GenerateRecipe
from regard.text import TokenizerConfig
from regard.train.config import TrainConfig

MAX_WINDOW = 8192
"""positions of a longer context that an imported language model reads at once"""


@dataclass(frozen=True)
class Origin:
    """Where an imported model came from."""

    name: str
    license: str = "not known"


@dataclass(frozen=True)
class ImportedModel:
    """What an import gives: all that a run of this model needs but its weights."""

    recipe: Recipe
    module: nn.Module
    """the network on the meta device: names and shapes of its weights"""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    """files of the run beside the recipe, by name"""
    notes: Sequence[str] = ()
    """what the user should know"""
    given: Mapping[str, Tensor] = field(default_factory=dict)
    """weights that the other model does not have"""
    arrange: Callable[[dict[str, Tensor]], dict[str, Tensor]] = dict
    """what is done with the converted weights, where one there is not one here"""


class ModelFamily(ABC):
    """A family of models: its names elsewhere, its config, its weight table, and the run that an import gives."""

    model_types: tuple[str, ...]
    """values of model_type in config.json"""
    prefix: str
    """begins the names of the body's tensors where a model has a head"""
    architectures: tuple[str, ...] = ()
    """architectures in config.json that it alone reads; none: all that no other family of the type reads"""

    @abstractmethod
    def read_config(self, found: ForeignSettings) -> Any:
        """The model config of a config.json; a setting that the model here cannot follow is refused."""

    @abstractmethod
    def rows(self, model: Any) -> Iterable[WeightRow]:
        """The weight table."""

    def is_unused(self, name: str) -> bool:
        """Whether a tensor of theirs is no weight, or one that is stored twice."""
        return False

    @abstractmethod
    def import_model(
        self, found: ForeignSettings, source: TensorSource, folder: Path, origin: Origin
    ) -> tuple[ImportedModel, Iterable[WeightRow]]:
        """The run of a model, and its weight table."""


class DecoderFamily(ModelFamily):
    """Language models, used by the task generate."""

    embedding: ClassVar[str]
    """name of the embedding there: its rows are the vocabulary"""

    def import_model(
        self, found: ForeignSettings, source: TensorSource, folder: Path, origin: Origin
    ) -> tuple[ImportedModel, Iterable[WeightRow]]:
        tokenizer = ForeignTokenizer.read(folder, found)
        return self.make_run(found, source, tokenizer, origin)

    def make_run(
        self, found: ForeignSettings, source: TensorSource, tokenizer: ForeignTokenizer, origin: Origin
    ) -> tuple[ImportedModel, Iterable[WeightRow]]:
        """The run of a language model with this tokenizer, and its weight table."""
        model = self.read_config(found)
        check_layers(found.path, model.layers, source)
        vocabulary = embedding_rows(source, self.embedding)
        words = tokenizer.fill(vocabulary)
        window = min(model.max_positions, MAX_WINDOW)
        data = ImportedText(
            source=origin.name, license=origin.license, begins=tokenizer.begins, ends=tokenizer.end is not None,
            chat="chatml" if tokenizer.system is not None else "none", system=tokenizer.system or "",
        )  # fmt: skip
        recipe = GenerateRecipe(
            data=data,
            model=model,
            task=GenerateConfig(window=window),
            text=TokenizerConfig(kind=tokenizer.kind, vocab_size=max(vocabulary, 300), normalization="none"),
            train=TrainConfig(label_smoothing=0.0, batch_tokens=max(4096, window)),
        )
        module = build_on_meta(model.build, Words(vocabulary), Words(vocabulary))
        artifacts = {"tokenizer.json": words.json.encode()}
        return ImportedModel(recipe, module, artifacts, tokenizer.notes(vocabulary)), self.rows(model)


def build_on_meta(build: Callable[..., nn.Module], *inputs: object) -> nn.Module:
    """A network on the meta device: the names and shapes of its weights, without memory for them."""
    with torch.device("meta"):
        return build(*inputs)


def check_layers(path: Path, layers: int, source: TensorSource) -> None:
    """Refuse a config with more layers than there are tensors, before a model of that size is built."""
    if layers > len(source.shapes()):
        raise ModelError(
            f"{path}: it describes {layers:,} layers, and {source.path} holds {len(source.shapes()):,} tensors"
        )


def embedding_rows(source: TensorSource, name: str) -> int:
    """Rows of an embedding: the size of the vocabulary."""
    shape = source.shapes().get(name)
    if shape is None or len(shape) != 2:
        found = "there is none" if shape is None else f"found {shape}"
        raise ModelError(f"{source.path}: expected the embedding {name!r} with two axes; {found}")
    return shape[0]
