"""Classification: the recipe, validation during training, and the trained model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
import torch
from torch import Tensor

from regard.data import Shards
from regard.device import module_device
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.look import PixelSaliency, Saliency
from regard.look.saliency import feature_saliency, log_odds, token_saliency
from regard.metrics.classification import ClassPredictions
from regard.models import ClassifierConfig
from regard.models.base import Classifier
from regard.models.pooling import make_pooling
from regard.objective import Objective, PerSequence
from regard.program import quote_path
from regard.progress import Progress
from regard.sequence import Tokens
from regard.tasks.base import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate, ScoredExample, with_weights
from regard.tasks.classify import stats
from regard.tasks.classify.config import ClassifyConfig, check_images, check_pool, check_positions, check_spellings
from regard.tasks.classify.image_sources import ImageSource
from regard.tasks.classify.images import ImageInput, LabeledImagePreparation
from regard.tasks.classify.inputs import InputEncoder, PairInput, TableInput, TextInput
from regard.tasks.classify.labels import Labels, WeightedClasses
from regard.tasks.classify.loader import ExampleLoader
from regard.tasks.classify.pairs import join_pair
from regard.tasks.classify.pixel_saliency import pixel_saliency
from regard.tasks.classify.predict import ClassifierPredictor, ClassifierSentences, ClassProbs, Prediction
from regard.tasks.classify.prepare import LabeledTablePreparation, LabeledTextPreparation
from regard.tasks.classify.sources import DataConfig, LabeledColumns, LabeledTable
from regard.tasks.classify.validation import ClassifyValidation
from regard.tasks.contextual import ContextualText, encoder_layers, require_text
from regard.text import TokenizerConfig
from regard.text.token_rows import TokenStrings
from regard.text.word_vectors import PretrainedVectorsConfig, WordVectors
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import CosineDecay

CHUNK = 1024
"""Examples that are scored together."""


@dataclass(frozen=True)
class ClassifyRecipe(Recipe):
    """Recipe of a classifier."""

    verb: ClassVar[str] = "classify"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "accuracy", "macro_f1")
    scores: ClassVar[tuple[str, ...]] = ("accuracy", "top5", "macro_f1", "micro_f1", "ece", "loss")

    data: DataConfig
    """source of the examples"""
    model: ClassifierConfig
    """the encoder"""
    task: ClassifyConfig = ClassifyConfig()
    """pooling, class weights, truncation"""
    text: TokenizerConfig = TokenizerConfig(kind="word", vocab_size=20_000, lowercase=True)
    """the tokenizer"""
    vectors: PretrainedVectorsConfig = PretrainedVectorsConfig()
    """pretrained word vectors"""
    train: TrainConfig = TrainConfig(
        label_smoothing=0.0, batch_tokens=2048, best_metric="accuracy", schedule=CosineDecay(lr=1e-3, warmup=100)
    )
    """training"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        is_text = not isinstance(self.data, LabeledTable | ImageSource)
        check_images(self.data, self.model, self.task)
        if is_text:
            check_pool(self.model, self.task.pool)
            check_positions(self.model, self.task, self.special_tokens)
            check_spellings(self.model, self.text.kind, self.is_pair, bool(self.vectors.path))
            if self.is_pair and self.task.max_length < 2:
                raise ConfigError(
                    f"task.max_length = {self.task.max_length}: a pair needs at least one token for each text"
                )
        if self.vectors.path and not (is_text and self.text.kind == "word"):
            what = f'text.kind = "{self.text.kind}" splits them' if is_text else f"{self.data.kind} has none"
            raise ConfigError(f'vectors.path: the file holds whole words, and {what}; use text.kind = "word"')
        if self.vectors.path and self.init:
            raise ConfigError("vectors.path and model.init both give the embedding its first weights; leave one out")
        if self.vectors.path and self.text.tokenizer:
            raise ConfigError(
                "vectors.path adds the words of its file to the vocabulary, and text.tokenizer has a fixed one; "
                "leave one out"
            )
        if self.text.dropout:
            raise ConfigError(
                f"text.dropout = {self.text.dropout}: texts are tokenized once, in preparation; set it to 0"
            )
        self.check()

    @property
    def special_tokens(self) -> int:
        """Special tokens that are added to each text: [CLS] and one or two [SEP]."""
        return 3 if self.is_pair else 2 if self.text.kind == "wordpiece" else int(self.task.reads_first)

    @property
    def is_pair(self) -> bool:
        """Whether pairs of texts are classified."""
        return isinstance(self.data, LabeledColumns) and self.data.second is not None

    @property
    def artifacts(self) -> tuple[str, ...]:  # type: ignore[override]
        """Prepared files that the model needs later: texts and tables have different ones."""
        return self.preparation().artifacts

    def preparation(self) -> LabeledTextPreparation | LabeledTablePreparation | LabeledImagePreparation:
        if isinstance(self.data, ImageSource):
            return LabeledImagePreparation(self.data, self.task.augment)
        if isinstance(self.data, LabeledTable):
            return LabeledTablePreparation(self.data)
        return LabeledTextPreparation(self.data, self.text, self.task, self.vectors, self.model.reads_spellings)

    def build(self, input_encoder: InputEncoder, labels: Labels) -> Classifier:
        """The model with initial weights drawn from the seed."""
        torch.manual_seed(self.seed)
        encoder = self.model.build_encoder(input_encoder.space())
        pool = make_pooling(self.task.pool, encoder, self.task.dropout)
        return Classifier(encoder, pool, self.space(labels), encoder.width)

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        encoder, labels = self.preparation().load_encoder(run), TokenStrings(Labels.load(run).names)
        found = {"readout.weight": labels, "readout.bias": labels}
        if not isinstance(encoder, TextInput):
            return found
        return found | dict.fromkeys(("encoder.embed.weight", "encoder.embed.words.weight"), encoder.token_strings())

    def space(self, labels: Labels) -> WeightedClasses:
        """Output space: one of the labels."""
        return WeightedClasses(len(labels.names), self.train.label_smoothing, self.task.weights.per_label(labels))

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> ExampleLoader:  # noqa: B008
        """The loader of the prepared data."""
        train, valid = (Shards.open(run / "data" / split) for split in ("train", "valid"))
        encoder, tokens = self.preparation().load_encoder(run), self.train.batch_tokens
        return ExampleLoader(train, valid, encoder, tokens, self.seed, group, self.task.word_dropout)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, ExampleLoader, ClassifyValidation]:
        loader, labels = self.loader(run, group), Labels.load(run)
        model = self.build(loader.input_encoder, labels)
        if self.vectors.path:
            init_embedding(model, WordVectors.load(run / "data"), self.vectors.scale)
        objective = Objective(model, PerSequence(self.space(labels)))
        return objective, loader, ClassifyValidation(objective, loader, labels, self.task.samples)

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> ClassificationModel:
        encoder, labels = self.preparation().load_encoder(run), Labels.load(run)
        module = with_weights(self.build(encoder, labels), saved)
        return ClassificationModel(module, encoder, labels, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("a label has no language; --source-lang and --target-lang are for translate")
        kinds = {"data": "tsv", "model": "recurrent", "task.weights": "none"}
        return RecipeTemplate(
            "a label for a text",
            kinds | {"train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/train.tsv", "data.valid": "data/valid.tsv", "data.test": "data/test.tsv"} | STARTING,
            commented_out=("data.valid", "data.test"),
            hints=['data/train.tsv is tab-separated, with a header that names the columns "text" and "label"'],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.statistics(run, self.loader(run))

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics, self.task.max_length)

    def speed_unit(self) -> str:
        if not isinstance(self.data, ImageSource):
            return "examples"
        return "clips" if self.data.shape().frames else "images"

    def usage(self, run: Path) -> str:
        if not isinstance(self.data, ImageSource):
            return super().usage(run)
        return f"regard classify {quote_path(run)} {'clip.gif' if self.data.shape().frames else 'photo.png'}"

    def summary(self, run: Path) -> str:
        loader, labels = self.loader(run), Labels.load(run)
        encoder = loader.input_encoder
        counts = f"{len(loader.train):,} train, {len(loader.valid):,} valid {encoder.unit}, {len(labels.names)} labels"
        return f"{counts}       {encoder.summary()}"

    def data_warnings(self, run: Path) -> list[str]:
        return stats.image_warnings(run, self.loader(run)) if isinstance(self.data, ImageSource) else []


STARTING: dict[str, Any] = {"train.epochs": 10.0}
"""Settings of a new recipe that differ from the defaults."""


def init_embedding(model: Classifier, vectors: WordVectors, scale: float) -> None:
    """Start the embedding of a fresh model from pretrained word vectors; other words keep their random rows."""
    embed: Any = model.encoder.embed
    weight_VD = (embed if isinstance(embed, torch.nn.Embedding) else embed[0]).weight.data
    weight_VD.copy_(torch.from_numpy(vectors.insert_into(weight_VD.numpy(), scale)))


Inputs = str | PathLike[str] | Sequence[str] | Sequence[PathLike[str]] | Sequence[tuple[str, str]]


class ClassificationModel(ClassifierSentences, Model):
    """Trained classifier: a text or a table row in, a label out."""

    module: Classifier
    recipe: ClassifyRecipe

    def __init__(
        self,
        module: Classifier,
        input_encoder: InputEncoder,
        labels: Labels,
        recipe: ClassifyRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.input_encoder, self.labels = input_encoder, labels

    @overload
    def classify(self, text: str | PathLike[str], top: None = ...) -> str: ...  # type: ignore[overload-overlap]

    @overload
    def classify(self, text: Sequence[str] | Sequence[PathLike[str]], top: None = ...) -> list[str]: ...

    @overload
    def classify(self, text: Sequence[tuple[str, str]], top: None = ...) -> list[str]: ...

    @overload
    def classify(self, text: Inputs, top: int) -> list[list[Prediction]]: ...

    def classify(self, text: Any, top: int | None = None) -> Any:
        """The label of a text, or of each text of a list; with `top`, that many labels with their probabilities.

        An empty text gets an empty label and no probabilities. A model of pairs takes a tuple of two texts, a line with
        a tab or [SEP] between them, or a list of either; a model of images takes paths of files.
        """
        if top is not None and top < 1:
            raise ConfigError(f"top = {top} must be at least 1")
        is_one = isinstance(text, str | PathLike) or self.is_text_pair(text) or not isinstance(text, Iterable)
        texts = [self.line(one) for one in ([text] if is_one else text)]
        predictions = [probs.top(top or 1, self.labels) for probs in self.predictor().predict(texts)]
        if top is not None:
            return predictions
        best = [row[0].label if row else "" for row in predictions]
        return best[0] if is_one else best

    def is_text_pair(self, text: object) -> bool:
        """Whether a value is one input of a model of pairs: a tuple of two texts."""
        is_tuple = isinstance(text, tuple) and len(text) == 2 and all(isinstance(half, str) for half in text)
        return is_tuple and isinstance(self.input_encoder, PairInput)

    def line(self, text: Any) -> str:
        """One input as a line: a text as it is, a pair with a tab between its texts, the path of an image."""
        if isinstance(text, str):
            return text
        expected = {PairInput: "a text or a tuple of two", ImageInput: "the path of an image"}
        if isinstance(self.input_encoder, ImageInput) and isinstance(text, PathLike):
            return fspath(text)
        if not self.is_text_pair(text):
            raise DataError(f"classify: expected {expected.get(type(self.input_encoder), 'a text')}, got {text!r:.80}")
        return join_pair(*text)

    def predictor(self) -> ClassifierPredictor:
        """The predictor behind `classify`, for whole files."""
        return ClassifierPredictor(self.inference_module, self.input_encoder, self.labels)

    def predict_text(self, text: str) -> str:
        predictions = self.classify(text, top=1)[0]
        return f"{predictions[0].label} {predictions[0].probability:.2f}" if predictions else ""

    def contextual_layers(self, text: str) -> ContextualText:
        encoder = self.input_encoder
        if not isinstance(encoder, TextInput):
            return super().contextual_layers(text)
        source, offsets = encoder.read_whole(require_text(text))
        return ContextualText(text, offsets, encoder_layers(self, self.module.encoder, source))

    def predict_pixels(self, pixels: np.ndarray) -> str:
        """Label and probability of an image or a clip of the model's shape, with pixels from 0 to 255."""
        encoded = self.image_input().encode_pixels(pixels)
        best = self.predictor().predict_encoded([encoded])[0].top(1, self.labels)[0]
        return f"{best.label} {best.probability:.2f}"

    def image_input(self) -> ImageInput:
        """The encoder of a model that reads images."""
        if not isinstance(self.input_encoder, ImageInput):
            raise ConfigError("this model reads no images; give it a text")
        return self.input_encoder

    def pixel_saliency(self, pixels: np.ndarray) -> PixelSaliency:
        """Attribution of the predicted label's log-odds to the pixels of an image or a clip of the model's shape."""

        def outputs(out_1C: Tensor) -> tuple[list[str], Tensor]:
            best = int(out_1C.argmax())
            title = f"{self.labels.names[best]} {float(out_1C.detach().softmax(-1)[0, best]):.2f}"
            return [title], log_odds(out_1C)[:, best]

        return pixel_saliency(self.module, self.image_input(), pixels, outputs)

    def saliency(self, text: str) -> Saliency | PixelSaliency:
        """Attribution of the predicted label's log-odds to words, columns of a row, or pixels."""
        if isinstance(self.input_encoder, ImageInput):
            return self.pixel_saliency(self.input_encoder.read(text))
        row = self.input_encoder.encode([text])[0].row
        if not len(row):
            raise DataError("the text is empty; there is no prediction to explain")
        source = self.input_encoder.collate([row]).to(module_device(self.module))
        with torch.no_grad():
            out_C = self.module.readout(self.module(source))[0]
        best = int(out_C.argmax())

        def odds(source: Tokens) -> Tensor:
            return log_odds(self.module.readout(self.module(source)))[:, best]

        title = f"{self.labels.names[best]} {float(out_C.softmax(-1)[best]):.2f}"
        if isinstance(self.input_encoder, TableInput):
            names = list(self.input_encoder.scaler.names)
            return Saliency(title, names, feature_saliency(odds, source).reshape(1, -1))
        found = token_saliency(odds, self.module.encoder.embeddings(), source)
        return Saliency(title, self.input_encoder.token_texts(row), found)

    def untrained_module(self) -> Classifier:
        return self.recipe.build(self.input_encoder, self.labels).eval()

    def input_warning(self, text: str) -> str:
        is_image = isinstance(self.input_encoder, ImageInput)
        return self.input_encoder.encode([text])[0].warning if is_image else ""

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        encoder = self.input_encoder
        return {"source": encoder.tokenizer.token} if isinstance(encoder, TextInput) else {}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """Accuracy, F1, calibration and the confusion matrix; empty texts are left out and reported."""
        file = request.one_file()
        name = str(file) if file else request.choose_split(self.recipe.data.splits())
        data = self.recipe.preparation().eval_set(self.input_encoder, name, file)
        targets = [self.labels.index(label, data.location(i)) for i, label in enumerate(data.labels)]
        predictor, probs = self.predictor(), list[ClassProbs]()
        began = time.perf_counter()
        for start in range(0, len(targets), CHUNK):
            probs += predictor.predict(data.inputs[start : start + CHUNK], start + 1)
            progress("classifying", len(probs), len(targets))
        seconds = time.perf_counter() - began
        scored = [i for i, one in enumerate(probs) if one.probs_C is not None]
        if not scored:
            raise DataError(f"{data.file}: every text is empty; there is nothing to score")
        empty = len(targets) - len(scored)
        name += f" ({empty:,} empty left out)" if empty else ""
        predictions = ClassPredictions(
            self.labels.names, np.array([targets[i] for i in scored]), np.array([probs[i].probs_C for i in scored])
        )
        outputs = predictions.predicted_N
        examples = [
            ScoredExample(data.inputs[i], self.labels.names[output], data.labels[i])
            for i, output in zip(scored, outputs, strict=True)
        ]
        confusion, unit = predictions.confusion(), self.input_encoder.unit
        detail = {"confusion": confusion.to_dict()}
        per_unit = [(100.0 * right, 1) for right in (outputs == predictions.target_N).tolist()]
        lines = confusion.format_lines()
        return Evaluation(name, predictions.scores(), examples, seconds, lines, detail, unit, per_unit)
