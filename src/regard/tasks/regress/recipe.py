"""Regression: the recipe, validation during training, and the trained model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
import torch
from torch import Tensor

from regard.data import Shards
from regard.data.images import image_names
from regard.data.scaling import SCALE_FILE, StandardScaler
from regard.device import module_device
from regard.distributed import ProcessGroup
from regard.errors import ConfigError
from regard.look import PixelSaliency
from regard.metrics.regression import NumberPredictions
from regard.models import ClassifierConfig
from regard.models.base import Classifier
from regard.models.pooling import make_pooling
from regard.objective import Objective, PerSequence
from regard.plurals import count_noun
from regard.program import quote_path
from regard.progress import Progress
from regard.spaces import Values
from regard.tasks.base import (
    EvalRequest,
    Evaluation,
    Model,
    Recipe,
    RecipeTemplate,
    ScoredExample,
    read_counts,
    with_weights,
)
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.pixel_saliency import pixel_saliency
from regard.tasks.regress.config import RegressConfig, check_reader
from regard.tasks.regress.loader import RegressLoader
from regard.tasks.regress.predict import NumberPrediction, Regressor
from regard.tasks.regress.prepare import IMAGE, TARGETS, RegressPreparation
from regard.tasks.regress.sources import RegressData
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import CosineDecay
from regard.train.validation import validation_loss

CHUNK = 1024
"""examples that are scored between two progress reports"""


@dataclass(frozen=True)
class RegressRecipe(Recipe):
    """Recipe of a regression model."""

    verb: ClassVar[str] = "regress"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "mae", "rmse")
    scores: ClassVar[tuple[str, ...]] = ("mae", "rmse", "r2")
    artifacts: ClassVar[tuple[str, ...]] = (SCALE_FILE, TARGETS)

    data: RegressData
    """source of the images or clips and their numbers"""
    model: ClassifierConfig
    """the encoder"""
    task: RegressConfig = RegressConfig()
    """pooling"""
    train: TrainConfig = TrainConfig(
        label_smoothing=0.0, batch_tokens=64, best_metric="mae", schedule=CosineDecay(lr=1e-3, warmup=100)
    )
    """training; batch_tokens counts images or clips"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        check_reader(self.model, self.data.shape())
        if self.train.label_smoothing:
            raise ConfigError(
                f"train.label_smoothing = {self.train.label_smoothing}: numbers have no labels to smooth; set it to 0"
            )
        self.check()

    def preparation(self) -> RegressPreparation:
        return RegressPreparation(self.data)

    def build(self, image_input: ImageInput, targets: StandardScaler) -> Classifier:
        """The model with initial weights drawn from the seed."""
        torch.manual_seed(self.seed)
        encoder = self.model.build_encoder(image_input.space())  # type: ignore[arg-type]
        pool = make_pooling(self.task.pool, encoder, self.task.dropout)
        return Classifier(encoder, pool, Values(len(targets.names)), encoder.width)

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> RegressLoader:  # noqa: B008
        """The loader of the prepared data."""
        train, valid = (Shards.open(run / "data" / split) for split in ("train", "valid"))
        image_input = self.preparation().load_input(run)
        return RegressLoader(train, valid, image_input, self.train.batch_tokens, self.seed, group)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, RegressLoader, RegressValidation]:
        loader, targets = self.loader(run, group), StandardScaler.load(run / TARGETS)
        model = self.build(loader.image_input, targets)
        objective = Objective(model, PerSequence(Values(len(targets.names))))
        return objective, loader, RegressValidation(objective, loader, targets, self.task.samples)

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> RegressionModel:
        image_input, targets = self.preparation().load_input(run), StandardScaler.load(run / TARGETS)
        module = with_weights(self.build(image_input, targets), saved)
        return RegressionModel(module, image_input, targets, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("a number has no language; --source-lang and --target-lang are for translate")
        kinds = {"data": "table", "model": "cnn", "train.optimizer": "adamw", "train.schedule": "cosine"}
        files = {f"data.{split}": f"data/{split}.csv" for split in ("train", "valid", "test")}
        return RecipeTemplate(
            "numbers for an image or a clip",
            kinds,
            files | {"data.size": 64, "train.epochs": 20.0},
            commented_out=("data.valid", "data.test"),
            hints=["data/train.csv has a header; its column file names images, the other columns hold numbers"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        loader, targets, counts = self.loader(run), StandardScaler.load(run / TARGETS), read_counts(run)
        columns = zip(targets.names, targets.mean, targets.scale, strict=True)
        found: dict[str, Any] = {"images": vars(loader.image_input.shape), "unit": loader.image_input.unit}
        found["numbers"] = {name: {"mean": mean, "deviation": deviation} for name, mean, deviation in columns}
        for split, shards in (("train", loader.train), ("valid", loader.valid)):
            found[split] = {**counts[split], "kept": len(shards), "batches": loader.plan(shards).count()}
        return found

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        lines = [
            f"number      {name}: mean {column['mean']:.4g}, deviation {column['deviation']:.4g}"
            for name, column in statistics["numbers"].items()
        ]
        for split in ("train", "valid"):
            kept, batches = statistics[split]["kept"], statistics[split]["batches"]
            lines.append(
                f"{split:<10}  {kept:,} {statistics['unit']} in {batches:,} batch{'' if batches == 1 else 'es'}"
            )
        return lines

    def speed_unit(self) -> str:
        return "clips" if self.data.shape().frames else "images"

    def summary(self, run: Path) -> str:
        loader, targets = self.loader(run), StandardScaler.load(run / TARGETS)
        counts = f"{len(loader.train):,} train, {len(loader.valid):,} valid {loader.image_input.unit}"
        return f"{counts}, {', '.join(targets.names)}       {loader.image_input.summary()}"

    def data_warnings(self, run: Path) -> list[str]:
        animated = sum(counts.get("animated", 0) for counts in read_counts(run).values())
        return [f"{count_noun(animated, 'image')} with several frames: the first was read"] if animated else []

    def usage(self, run: Path) -> str:
        return f"regard regress {quote_path(run)} {'clip.gif' if self.data.shape().frames else 'photo.png'}"


@dataclass(frozen=True)
class RegressValidation:
    """Loss, MAE and RMSE on the validation data, in the units of the data, and sample predictions."""

    objective: Objective
    loader: RegressLoader
    targets: StandardScaler
    samples: int = 4

    @torch.no_grad()
    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        model, loader = self.objective.model, self.loader
        loss = validation_loss(self.objective, loader, loader.group)["loss"]
        scale_F = torch.tensor(self.targets.scale, dtype=torch.double)
        sums = torch.zeros(3, dtype=torch.double)
        for batch in loader.valid_batches():
            if len(batch):
                out_BF: Tensor = model.readout(model(batch.source.to(module_device(model))))  # type: ignore[operator]
                error_BF = (out_BF.cpu().double() - batch.target.double()) * scale_F
                sums += torch.stack([error_BF.abs().sum(), error_BF.square().sum(), torch.tensor(error_BF.numel())])
        loader.group.all_reduce_(sums)
        absolute, squared, count = sums.tolist()
        metrics = {"loss": loss, "mae": absolute / count, "rmse": (squared / count) ** 0.5}
        return metrics, self.sample_predictions() if loader.group.is_main else ()

    def sample_predictions(self) -> list[dict[str, str]]:
        """Predictions of evenly spaced examples."""
        loader, size = self.loader, len(self.loader.valid)
        rows = np.arange(min(size, self.samples)) * size // max(1, min(size, self.samples))
        regressor = Regressor(self.objective.model, loader.image_input, self.targets)
        encoded = [loader.image_input.encode_pixels(row) for row in loader.valid.take(rows, IMAGE)]
        outputs = [one.numbers for one in regressor.predict_encoded(encoded)]
        references = self.targets.inverse_transform(loader.numbers(loader.valid, rows).double().numpy())
        names = self.targets.names
        return [
            {"text": text, "output": format_numbers(names, output), "reference": format_numbers(names, reference)}
            for text, output, reference in zip(loader.valid_names(rows), outputs, references, strict=True)
        ]


def format_numbers(names: Sequence[str], numbers: np.ndarray | None) -> str:
    """Numbers with their names on one line.

    >>> format_numbers(("x", "y"), np.array([12.3456, 7.0]))
    'x 12.35, y 7'
    """
    return "" if numbers is None else ", ".join(f"{n} {v:.4g}" for n, v in zip(names, numbers.tolist(), strict=True))


class RegressionModel(Model):
    """A trained regression model: `regard.load(run).regress("clip.gif")`."""

    module: Classifier
    recipe: RegressRecipe

    def __init__(
        self,
        module: Classifier,
        image_input: ImageInput,
        targets: StandardScaler,
        recipe: RegressRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.targets, self._image_input = targets, image_input

    @overload
    def regress(self, image: str | PathLike[str]) -> dict[str, float]: ...  # type: ignore[overload-overlap]

    @overload
    def regress(self, image: Sequence[str | PathLike[str]]) -> list[dict[str, float]]: ...

    def regress(self, image: Any) -> Any:
        """The numbers of an image or a clip, or of each of a list, by their names; empty for an empty name."""
        is_one = isinstance(image, str | PathLike)
        estimates = self.regressor().predict(image_names(image))
        found = [estimate.by_name(self.targets.names) for estimate in estimates]
        return found[0] if is_one else found

    def regressor(self) -> Regressor:
        """The predictor behind `regress`, for whole files."""
        return Regressor(self.inference_module, self._image_input, self.targets)

    def predict_text(self, text: str) -> str:
        return format_numbers(self.targets.names, self.regressor().predict([text])[0].numbers)

    def predict_pixels(self, pixels: np.ndarray) -> str:
        """The numbers of an image or a clip of the model's shape, with pixels from 0 to 255."""
        encoded = self._image_input.encode_pixels(pixels)
        return format_numbers(self.targets.names, self.regressor().predict_encoded([encoded])[0].numbers)

    def image_input(self) -> ImageInput:
        """The encoder of images."""
        return self._image_input

    def pixel_saliency(self, pixels: np.ndarray) -> PixelSaliency:
        """Attribution of each number, in units of the data, to the pixels of an image or a clip."""
        names = self.targets.names

        def outputs(out_1F: Tensor) -> tuple[list[str], Tensor]:
            scale_F = torch.tensor(self.targets.scale, dtype=out_1F.dtype, device=out_1F.device)
            numbers = self.targets.inverse_transform(out_1F.detach().cpu().double().numpy())[0]
            return [format_numbers([name], numbers[i : i + 1]) for i, name in enumerate(names)], out_1F[0] * scale_F

        return pixel_saliency(self.module, self._image_input, pixels, outputs)

    def saliency(self, text: str) -> PixelSaliency:
        return self.pixel_saliency(self._image_input.read(text))

    def input_warning(self, text: str) -> str:
        return self._image_input.encode([text])[0].warning

    def untrained_module(self) -> Classifier:
        return self.recipe.build(self._image_input, self.targets).eval()

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """MAE, RMSE and R2 in the units of the data."""
        file, names, preparation = request.one_file(), self.targets.names, self.recipe.preparation()
        name = str(file) if file else request.choose_split(self.recipe.data.splits())
        data = preparation.examples(name) if file is None else preparation.scored_on(file, names)
        regressor, found = self.regressor(), list[NumberPrediction]()
        began = time.perf_counter()
        for start in range(0, len(data.rows), CHUNK):
            found += regressor.predict([row.reference for row in data.rows[start : start + CHUNK]], start + 1)
            progress("predicting", len(found), len(data.rows))
        seconds = time.perf_counter() - began
        predicted, target = np.array([one.numbers for one in found]), np.array([row.numbers for row in data.rows])
        predictions = NumberPredictions(names, predicted, target)
        rows = zip(data.rows, predicted, target, strict=True)
        examples = [ScoredExample(r.reference, format_numbers(names, p), format_numbers(names, t)) for r, p, t in rows]
        per_unit = [(error, 1) for error in np.abs(predictions.errors).mean(1).tolist()]
        lines, unit = predictions.format_lines(), self._image_input.unit
        return Evaluation(name, predictions.scores(), examples, seconds, lines, {}, unit, per_unit)
