"""Captioning: the recipe, validation during training, and the trained model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
import torch

from regard.data import Shards
from regard.data.images import image_names
from regard.data.scaling import SCALE_FILE
from regard.decode import DecodeConfig
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.metrics.captions import caption_bleu, exact_match, is_exact
from regard.models.base import EncoderDecoder
from regard.models.cnn import CNNConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.objective import Objective
from regard.program import quote_path
from regard.progress import Progress
from regard.sequence import Tokens
from regard.spaces import Pixels, Words
from regard.tasks.base import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate, ScoredExample, with_weights
from regard.tasks.caption import stats
from regard.tasks.caption.config import CaptionConfig, check_model, check_positions
from regard.tasks.caption.loader import CaptionLoader
from regard.tasks.caption.predict import Caption, Captioner
from regard.tasks.caption.prepare import IMAGE, CaptionPreparation, load_image_input
from regard.tasks.caption.sources import CaptionData, CaptionedImage
from regard.tasks.caption.word_dropout import HiddenWords
from regard.tasks.classify.images import ImageInput
from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import TokenStrings, tokenizer_strings
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import CosineDecay
from regard.train.validation import validation_loss

if TYPE_CHECKING:
    from regard.look import PixelSaliency, TeacherForcedPass

CHUNK = 256
"""images that are captioned between two progress reports of an evaluation"""


@dataclass(frozen=True)
class CaptionRecipe(Recipe):
    """Recipe of a captioning model."""

    verb: ClassVar[str] = "caption"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "bleu", "exact")
    scores: ClassVar[tuple[str, ...]] = ("exact", "bleu")
    artifacts: ClassVar[tuple[str, ...]] = ("tokenizer.json", SCALE_FILE)

    data: CaptionData
    """source of the captioned images"""
    model: EncoderDecoderConfig = EncoderDecoderConfig(
        encoder=CNNConfig(), decoder=RNNsearchConfig(embedding=64, width=128, alignment=64, maxout=64)
    )
    """an encoder of images with any decoder"""
    task: CaptionConfig = CaptionConfig()
    """the task"""
    text: TokenizerConfig = TokenizerConfig(kind="word", vocab_size=10_000)
    """the tokenizer of the captions"""
    train: TrainConfig = TrainConfig(
        label_smoothing=0.0, batch_tokens=64, best_metric="loss", schedule=CosineDecay(lr=1e-3, warmup=100)
    )
    """training; batch_tokens counts images"""
    decode: DecodeConfig = DecodeConfig()
    """the search for captions"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        check_model(self.model, self.data.shape())
        check_positions(self.model, self.task)
        if self.train.best_metric in ("bleu", "exact") and not self.task.bleu_images:
            raise ConfigError(f'train.best_metric = "{self.train.best_metric}" needs images, and task.bleu_images is 0')
        if self.text.dropout:
            raise ConfigError(
                f"text.dropout = {self.text.dropout}: captions are tokenized once, in preparation; set it to 0"
            )
        self.check()

    def preparation(self) -> CaptionPreparation:
        return CaptionPreparation(self.data, self.text, self.task)

    def build(self, tokenizer: Tokenizer) -> EncoderDecoder:
        """The model with its initial weights, which depend on the seed."""
        torch.manual_seed(self.seed)
        shape = self.data.shape()
        pixels: Any = Pixels(shape.channels, shape.height, shape.width)
        return self.model.build(pixels, self.space(tokenizer))

    def space(self, tokenizer: Tokenizer) -> Words:
        """Output space: the words of captions."""
        return Words(tokenizer.size, self.train.label_smoothing)

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        words = tokenizer_strings(Tokenizer.load(run / "tokenizer.json"))
        return {"decoder.embed.weight": words, "decoder.readout.weight": words}

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> CaptionLoader:  # noqa: B008
        """The loader of the prepared data."""
        shards = Shards.open(run / "data" / "train"), Shards.open(run / "data" / "valid")
        image_input = load_image_input(run, self.data, self.task.augment)
        tokenizer = Tokenizer.load(run / "tokenizer.json")
        return CaptionLoader(*shards, image_input, self.train.batch_tokens, self.seed, group, tokenizer=tokenizer)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, CaptionLoader, CaptionValidation]:
        loader = self.loader(run, group)
        model = self.build(loader.tokenizer)
        task = HiddenWords(self.space(loader.tokenizer), self.task.word_dropout, loader.tokenizer.unk)
        objective = Objective(model, task)
        captioner = Captioner(model, loader.image_input, loader.tokenizer, self.decode, self.model.position_limit)
        validation = CaptionValidation(objective, loader, captioner.greedy(), self.task, self.text.lowercase)
        return objective, loader, validation

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> CaptionModel:
        tokenizer = Tokenizer.load(run / "tokenizer.json")
        image_input = load_image_input(run, self.data, self.task.augment)
        module = with_weights(self.build(tokenizer), saved)
        return CaptionModel(module, image_input, tokenizer, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("an image has no language; --source-lang and --target-lang are for translate")
        kinds = {"data": "tsv", "model": "encoder-decoder", "model.encoder": "cnn", "model.decoder": "rnnsearch"}
        return RecipeTemplate(
            "a caption for an image",
            kinds | {"train.optimizer": "adamw", "train.schedule": "cosine"},
            {"data.train": "data/train.tsv", "data.valid": "data/valid.tsv", "data.test": "data/test.tsv"} | STARTING,
            commented_out=("data.valid", "data.test"),
            hints=["each line of data/train.tsv has an image's file name, a tab and a caption; a name may come again"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.collect_statistics(run, self.loader(run))

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics)

    def speed_unit(self) -> str:
        return "tokens"

    def summary(self, run: Path) -> str:
        loader = self.loader(run)
        counts = f"{len(loader.train):,} train, {len(loader.valid):,} valid images"
        return f"{counts}       {loader.image_input.summary()}       tokens  {self.text.kind} {loader.tokenizer.size:,}"

    def usage(self, run: Path) -> str:
        return f"regard caption {quote_path(run)} photo.png"


STARTING: dict[str, Any] = {
    "data.size": 64,
    "model.decoder.embedding": 64,
    "model.decoder.width": 128,
    "model.decoder.alignment": 64,
    "model.decoder.maxout": 64,
    "train.epochs": 20.0,
}
"""settings of a new recipe that differ from the defaults"""


@dataclass(frozen=True)
class CaptionValidation:
    """Loss, perplexity, and BLEU and exact match of the captions of some validation images."""

    objective: Objective
    loader: CaptionLoader
    captioner: Captioner
    task: CaptionConfig
    lowercase: bool = False
    """score without case, since the tokenizer lowercases"""

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = validation_loss(self.objective, self.loader, self.loader.group)
        size = len(self.loader.valid)
        rows = np.arange(min(size, self.task.bleu_images)) * size // max(1, min(size, self.task.bleu_images))
        if not len(rows):
            return metrics, ()
        scores, samples = torch.zeros(2, dtype=torch.double), []
        if self.loader.group.is_main:
            names, references = self.loader.valid_texts(rows)
            outputs = [found[0].text for found in self.captioner.caption_pixels(self.loader.valid.take(rows, IMAGE))]
            both = (metric(outputs, references, lowercase=self.lowercase) for metric in (caption_bleu, exact_match))
            scores = torch.tensor([score.value for score in both], dtype=torch.double)
            each = zip(names, outputs, references, strict=True)
            samples = [{"image": a, "output": b, "reference": c[0]} for a, b, c in each][: self.task.samples]
        self.loader.group.wait_for_main()  # it captions alone
        self.loader.group.all_reduce_(scores)  # all ranks must decide the same from the same numbers
        return {**metrics, "bleu": float(scores[0]), "exact": float(scores[1])}, samples


class CaptionModel(Model):
    """A trained captioning model: `regard.load(run).caption("photo.png")`."""

    module: EncoderDecoder
    recipe: CaptionRecipe

    def __init__(
        self,
        module: EncoderDecoder,
        image_input: ImageInput,
        tokenizer: Tokenizer,
        recipe: CaptionRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.tokenizer, self._image_input = tokenizer, image_input

    @overload
    def caption(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self, image: str | PathLike[str], beam: int | None = ..., n_best: None = ...
    ) -> str: ...

    @overload
    def caption(
        self, image: Sequence[str | PathLike[str]], beam: int | None = ..., n_best: None = ...
    ) -> list[str]: ...

    @overload
    def caption(
        self, image: str | PathLike[str] | Sequence[str | PathLike[str]], beam: int | None = ..., *, n_best: int
    ) -> list[list[Caption]]: ...

    def caption(self, image: Any, beam: int | None = None, n_best: int | None = None) -> Any:
        """The caption of an image file, or of each of a list; `n_best`: that many captions of each, with scores."""
        is_one = isinstance(image, str | PathLike)
        found, _ = self.captioner(beam, n_best or 1).caption(image_names(image))
        if n_best is not None:
            return found
        best = [captions[0].text for captions in found]
        return best[0] if is_one else best

    def captioner(self, beam: int | None = None, n_best: int = 1) -> Captioner:
        """The captioner behind `caption`, for whole files."""
        beam = beam if beam is not None else max(self.recipe.decode.beam, n_best)
        config = replace(self.recipe.decode, beam=beam, n_best=n_best)
        limit = self.recipe.model.position_limit
        return Captioner(self.inference_module, self._image_input, self.tokenizer, config, limit)

    def image_input(self) -> ImageInput:
        """The encoder of images."""
        return self._image_input

    def predict_pixels(self, pixels_CYX: np.ndarray) -> str:
        """The caption of an image of the model's shape, with pixels from 0 to 255."""
        return self.captioner().caption_pixels([self._image_input.encode_pixels(pixels_CYX).row])[0][0].text

    def pixel_saliency(self, pixels_CYX: np.ndarray) -> PixelSaliency:
        """Refused: a caption is not one output."""
        raise ConfigError("a caption has no single output to attribute to pixels; use attention or gradients")

    def input_warning(self, text: str) -> str:
        return self._image_input.encode([text])[0].warning

    def predict_text(self, text: str) -> str:
        return self.caption(text)

    def teacher_forced(self, text: str) -> TeacherForcedPass:
        """A teacher-forced pass over an image and its caption."""
        if not text.strip():
            raise DataError("the name of the image is empty; there is nothing to caption")
        return self.teacher_forced_pixels(self._image_input.read(text))

    def teacher_forced_pixels(self, pixels_CYX: np.ndarray) -> TeacherForcedPass:
        """A teacher-forced pass over an image of the model's shape, and its caption."""
        from regard.look import TeacherForcedPass

        captioner, tokenizer = self.captioner(), self.tokenizer
        source: Any = self._image_input.collate([self._image_input.encode_pixels(pixels_CYX).row])
        ids = tokenizer.encode(self.predict_pixels(pixels_CYX)).ids
        target = [tokenizer.sos, *ids, tokenizer.eos]
        words = {"source": [captioner.cell_names], "target": [tokenizer.tokens(target)]}
        return TeacherForcedPass(source, Tokens.pad([target]), self.recipe.space(tokenizer), words)

    def untrained_module(self) -> EncoderDecoder:
        return self.recipe.build(self.tokenizer).eval()

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {"target": self.tokenizer.vocabulary.__getitem__}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """BLEU and exact match with any of the captions of each image."""
        name, examples = self.eval_images(request)
        captioner, outputs = self.captioner(request.beam), list[str]()
        began = time.perf_counter()
        for start in range(0, len(examples), CHUNK):
            found, _ = captioner.caption([one.image for one in examples[start : start + CHUNK]], start + 1)
            outputs += [captions[0].text for captions in found]
            progress("captioning", len(outputs), len(examples))
        seconds = time.perf_counter() - began
        references, lower = [one.captions for one in examples], self.recipe.text.lowercase
        scores = [metric(outputs, references, lowercase=lower) for metric in (exact_match, caption_bleu)]
        each = zip(outputs, references, strict=True)
        per_unit = [(100.0 * is_exact(out, refs, lowercase=lower), 1) for out, refs in each]
        shown = [
            ScoredExample(one.image, output, one.captions[0]) for one, output in zip(examples, outputs, strict=True)
        ]
        return Evaluation(name, scores, shown, seconds, unit="images", per_unit=per_unit)

    def eval_images(self, request: EvalRequest) -> tuple[str, list[CaptionedImage]]:
        """The images to score: the name of the data, and its images with captions."""
        request.refuse_stride()
        preparation = self.recipe.preparation()
        if request.files:
            path = replace(request, beam=None).one_file()
            assert path is not None
            return str(path), preparation.data.scored_on(path).examples("test")
        name = request.choose_split(preparation.data.splits())
        return name, preparation.examples(name)
