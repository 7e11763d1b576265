"""Token labeling: the recipe, validation during training, and the trained model."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
import torch
from torch import Tensor

from regard.data.lines import text_list
from regard.device import module_device
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.look import Saliency
from regard.look.saliency import log_odds, token_saliency
from regard.models import EncoderOnlyConfig
from regard.models.base import Tagger
from regard.models.crf_tagger import CRFTagger
from regard.models.subword_tagger import SubwordCRFTagger, SubwordTagger
from regard.objective import Objective, PerToken
from regard.progress import Progress
from regard.sequence import Tokens
from regard.tasks.base import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate, ScoredExample, with_weights
from regard.tasks.contextual import ContextualText, encoder_layers, require_text
from regard.tasks.label import baseline, stats, subwords, targets, vocab
from regard.tasks.label.baseline import TagBaseline, load_baseline
from regard.tasks.label.chains import FoldingChains
from regard.tasks.label.config import LabelConfig, NoCharEncoder, check_char_width, check_spellings, input_space
from regard.tasks.label.loader import LabelLoader
from regard.tasks.label.predict import LabeledText, LabelPredictor, TaggerSentences
from regard.tasks.label.prepare import REPAIRED, LabelPreparation
from regard.tasks.label.restore import RestoreText
from regard.tasks.label.sources import ConllFiles, EvalSource, ImportedTags, TaggedSentence, TaggedTsv
from regard.tasks.label.subwords import SubwordEncoder, check_tokens
from regard.tasks.label.targets import CRFTask, TagTarget, TargetKind, load_target
from regard.tasks.label.vocab import WordTypes, WordVocab
from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import TokenStrings
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import CosineDecay
from regard.train.validation import validation_loss

DataConfig = ConllFiles | TaggedTsv | RestoreText | FoldingChains | ImportedTags
CHUNK = 1024
"""Sentences that are scored together."""


@dataclass(frozen=True)
class LabelRecipe(Recipe):
    """Recipe of a tagger."""

    verb: ClassVar[str] = "label"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "accuracy", "f1", "words", "mae")
    scores: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "precision", "recall", "words", "mae", "baseline")

    data: DataConfig
    """source of the sentences"""
    model: EncoderOnlyConfig
    """the encoder"""
    task: LabelConfig = LabelConfig()
    """tag scheme, CRF, character encoder, vocabulary"""
    text: TokenizerConfig = TokenizerConfig()
    """the tokenizer of a subword input (task.tokens = "subwords")"""
    train: TrainConfig = TrainConfig(label_smoothing=0.0, batch_tokens=2048, schedule=CosineDecay(lr=2e-3, warmup=100))
    """training"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        check_label_type(self.data, self.task, self.train)
        check_tokens(self.task, self.data, self.text)
        check_spellings(self.model, self.task)
        limit, special = self.model.position_limit, 2 if self.subwords and self.text.kind == "wordpiece" else 0
        if limit is not None and limit < self.task.max_length + special:
            fits = f"set task.max_length to {limit - special}, for [CLS] and [SEP]" if special else "make them equal"
            raise ConfigError(
                f"task.max_length = {self.task.max_length} allows longer sentences than model.max_positions = {limit} "
                f"has learned positions for; {fits}"
            )
        if self.task.char_encoder.width:
            check_char_width(self.task.char_encoder.width, self.model.width)
        self.check()

    @property
    def subwords(self) -> bool:
        """Whether the encoder reads the pieces of words."""
        return self.task.tokens == "subwords"

    @property
    def artifacts(self) -> tuple[str, ...]:  # type: ignore[override]
        """Prepared files that the model needs later."""
        return (vocab.FILE, targets.FILE, baseline.FILE, *([subwords.FILE] if self.subwords else []))

    @classmethod
    def reads_text(cls, table: Mapping[str, Any]) -> bool:
        task = table.get("task")
        return isinstance(task, dict) and task.get("tokens") == "subwords"

    def preparation(self) -> LabelPreparation:
        return LabelPreparation(self.data, self.task, self.text, self.model.reads_spellings)

    def load_artifacts(self, run: Path) -> LabelArtifacts:
        """The vocabulary, targets and baseline that preparation stored."""
        name = self.data.label_type
        target = load_target(run, name, self.data.unit, self.task.span_scheme, self.task.crf == "linear")
        pieces = SubwordEncoder(Tokenizer.load(run / subwords.FILE)) if self.subwords else None
        return LabelArtifacts(WordVocab.load(run / vocab.FILE), target, load_baseline(run, name), pieces)

    def build(self, found: LabelArtifacts) -> Tagger | CRFTagger:
        """The model with initial weights drawn from the seed."""
        torch.manual_seed(self.seed)
        target, pieces = found.target, found.subwords
        space = input_space(found.vocab, self.task.char_encoder) if pieces is None else pieces.space()
        encoder = self.model.build_encoder(space)
        if isinstance(target, TagTarget) and self.task.crf == "linear":
            if pieces is not None:
                return SubwordCRFTagger(encoder, target.space(), encoder.width, pieces.special_ids)
            return CRFTagger(encoder, target.space(), encoder.width)
        if pieces is not None:
            return SubwordTagger(encoder, target.space(), encoder.width, pieces.special_ids)
        return Tagger(encoder, target.space(), encoder.width)

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        found = self.load_artifacts(run)
        words, chars = found.vocab.token_strings()
        rows = {"encoder.embed.weight": words, "encoder.embed.words.weight": words}
        rows["encoder.embed.chars.embed.weight"] = chars
        if found.subwords is not None:
            rows = {"encoder.embed.weight": found.subwords.token_strings()}
        if isinstance(found.target, TagTarget):
            rows |= dict.fromkeys(("readout.weight", "readout.bias"), TokenStrings(found.target.names))
        return rows

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> LabelLoader:  # noqa: B008
        """The loader of the prepared data."""
        target = self.load_artifacts(run).target
        return LabelLoader.open(run / "data", target, self.train.batch_tokens, self.seed, group, self.subwords)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, LabelLoader, LabelValidation]:
        loader, found = self.loader(run, group), self.load_artifacts(run)
        model, space = self.build(found), loader.target.space(self.train.label_smoothing)
        objective = Objective(model, CRFTask(space) if self.task.crf == "linear" else PerToken(space))
        predictor = self.predictor(model, found)
        return objective, loader, LabelValidation(objective, loader, predictor, self.task.samples)

    def predictor(self, model: Any, found: LabelArtifacts) -> LabelPredictor:
        """The predictor of a model."""
        data, with_spans, window = self.data, self.task.span_scheme is not None, self.task.max_length
        labels = data.unit, data.label_type, with_spans
        return LabelPredictor(model, found.vocab, found.target, *labels, window, subwords=found.subwords)

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> LabelModel:
        found = self.load_artifacts(run)
        return LabelModel(with_weights(self.build(found), saved), found, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("tags have no language; --source-lang and --target-lang are for translate")
        kinds = {"data": "conll", "model": "recurrent", "task.char_encoder": "convolution"}
        files = {f"data.{split}": f"data/{split}.conll" for split in ("train", "valid", "test")}
        return RecipeTemplate(
            "a tag for each word",
            kinds | {"train.optimizer": "adam", "train.schedule": "cosine"},
            files | STARTING,
            commented_out=("data.valid", "data.test"),
            hints=["data/train.conll has one word per line, its tag in the last column, a blank line after a sentence"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.statistics(run, self.loader(run), self.load_artifacts(run).vocab)

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics, self.data.unit, self.task.scheme)

    def summary(self, run: Path) -> str:
        loader, vocab = self.loader(run), self.load_artifacts(run).vocab
        words = f"{len(vocab.words):,} {self.data.unit}s"
        tags = f", {len(loader.target.names)} tags" if isinstance(loader.target, TagTarget) else ""
        counts = f"{len(loader.train):,} train, {len(loader.valid):,} valid sentences{stats.format_issues(run)}"
        return f"{counts}       {words}{tags}"


STARTING: dict[str, Any] = {"model.width": 200, "model.dropout": 0.4, "task.min_count": 2, "train.epochs": 10.0}
"""Settings of a new recipe that differ from the defaults."""
METRICS = {"tags": {"loss", "accuracy"}, "text": {"loss", "accuracy", "words"}}
"""Validation metrics of each label type; loss and mae of all others."""


def check_label_type(data: DataConfig, task: LabelConfig, train: TrainConfig) -> None:
    """Refuse settings that do not fit the labels of the data."""
    labels = {"tags": "tags", "text": "the forms of characters"}.get(data.label_type, data.label_type)
    if data.label_type in ("numbers", "angles") and task.crf != "none":
        raise ConfigError(f'task.crf = "linear" needs tags, and the labels here are {labels}; use task.crf = "none"')
    if data.label_type != "tags" and task.scheme != "none":
        raise ConfigError(
            f'task.scheme = "{task.scheme}" reads spans from tags, and the labels here are {labels}; use '
            'task.scheme = "none"'
        )
    if data.unit == "character" and not isinstance(task.char_encoder, NoCharEncoder):
        raise ConfigError(
            f'task.char_encoder.kind = "{task.char_encoder.kind}": the tokens here are single characters; use "none"'
        )
    if task.crf == "linear" and train.label_smoothing:
        raise ConfigError(
            f"train.label_smoothing = {train.label_smoothing}: a CRF scores whole tag sequences, which have no label "
            "smoothing; set it to 0"
        )
    metrics = METRICS.get(data.label_type, {"loss", "mae"}) | ({"f1"} if task.scheme != "none" else set())
    if train.best_metric in LabelRecipe.metrics and train.best_metric not in metrics:
        hint = "; task.scheme says how tags encode spans" if train.best_metric == "f1" else ""
        raise ConfigError(
            f"train.best_metric: validation measures {', '.join(sorted(metrics))} here, got {train.best_metric!r}{hint}"
        )


@dataclass(frozen=True)
class LabelValidation:
    """Loss and metrics on the validation data, and sample predictions."""

    objective: Objective
    loader: LabelLoader
    predictor: LabelPredictor
    samples: int

    @torch.no_grad()
    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        loader, group, metric = self.loader, self.loader.group, self.loader.target.metric
        loss = validation_loss(self.objective, loader, group)["loss"]  # first: it refuses damaged weights
        sums, empty = Counter[str](), metric.tally((), (), ())
        rows = np.arange(len(loader.valid))[group.rank :: group.size]
        for start in range(0, len(rows), CHUNK):
            for sentence in zip(*self.predict(rows[start : start + CHUNK]), strict=True):
                sums.update(metric.tally(*sentence))
        total = group.sum({name: torch.tensor(float(sums[name]), dtype=torch.double) for name in empty})
        metrics = {"loss": loss, **metric.metrics({name: float(value) for name, value in total.items()})}
        return metrics, self.sample_predictions() if group.is_main else ()

    def predict(self, rows: np.ndarray) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
        """The words, predicted labels and correct labels of validation sentences."""
        words = self.loader.words(self.loader.valid, rows)
        outputs = [[one.label for one in row] for row in self.predictor.predict_tokens(words)]
        return words, outputs, self.loader.references(self.loader.valid, rows)

    def sample_predictions(self) -> list[dict[str, str]]:
        """Predictions of evenly spaced sentences, since many files begin with their shortest."""
        size = len(self.loader.valid)
        rows = np.arange(min(size, self.samples)) * size // max(1, min(size, self.samples))
        join = ("" if self.predictor.unit == "character" and self.predictor.label_type == "text" else " ").join
        return [
            {"text": join(words), "output": join(output), "reference": join(reference)}
            for words, output, reference in zip(*self.predict(rows), strict=True)
        ]


@dataclass(frozen=True)
class LabelArtifacts:
    """Prepared files that a model needs."""

    vocab: WordVocab
    target: TargetKind
    baseline: TagBaseline
    subwords: SubwordEncoder | None = None
    """what cuts words into pieces, if the encoder reads these"""


class LabelModel(TaggerSentences, Model):
    """Trained tagger: a text in, a label for each token out."""

    module: Tagger | CRFTagger
    recipe: LabelRecipe

    def __init__(
        self,
        module: Tagger | CRFTagger,
        artifacts: LabelArtifacts,
        recipe: LabelRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.vocab, self.target, self.baseline = artifacts.vocab, artifacts.target, artifacts.baseline
        self.artifacts = artifacts

    @overload
    def label(self, text: str) -> LabeledText: ...  # type: ignore[overload-overlap]  # a str is a sequence of str

    @overload
    def label(self, text: Sequence[str]) -> list[LabeledText]: ...

    def label(self, text: str | Sequence[str]) -> Any:
        """Label a text or a list of texts: tokens with offsets and probabilities, and spans."""
        texts = text_list(text)
        found = self.predictor().label(texts)
        return found[0] if isinstance(text, str) else found

    def predictor(self) -> LabelPredictor:
        """The predictor behind `label`, for whole files and for tokenized sentences."""
        return self.recipe.predictor(self.inference_module, self.artifacts)

    def predict_text(self, text: str) -> str:
        return self.label(text).output

    def predict_parts(self, text: str) -> tuple[str, dict[str, Any]]:
        """The labeled text; and each token with its label and the probability of the label."""
        found = self.label(text)
        tokens = [{"text": one.text, "label": one.tag, "probability": one.probability} for one in found.tokens]
        return found.output, {"tokens": tokens, "is_chain": isinstance(self.module, CRFTagger)}

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        pieces = self.artifacts.subwords
        return {"source": self.vocab.word if pieces is None else pieces.tokenizer.token}

    def saliency(self, text: str) -> Saliency:
        """Attribution of each predicted label to the words: of the tag's log-odds, or of the predicted number."""
        predictor = self.predictor()
        words = [token.text for token in predictor.tokenize(text)]
        if not words:
            raise DataError("the text is empty; there is no prediction to explain")
        if len(words) > stats.MAX_SALIENCY_TOKENS:
            raise DataError(
                f"the text has {len(words):,} tokens, and at most {stats.MAX_SALIENCY_TOKENS} can be drawn; shorten it"
            )
        labels = [one.label for one in predictor.predict_tokens([words])[0]]
        types = WordTypes.encode(words, predictor.word_encoder)
        source = types.collate([np.arange(len(words))]).to(module_device(self.module))

        def scores(source: Tokens) -> Tensor:
            out_LC = self.module.readout(self.module(source))[0]
            if not isinstance(self.target, TagTarget):
                return self.target.space().mode(out_LC)[:, 0]
            at_L = torch.tensor([self.target.names.index(label) for label in labels], device=out_LC.device)
            return log_odds(out_LC).gather(1, at_L[:, None]).squeeze(1)

        found = token_saliency(scores, self.module.encoder.embeddings(), source)
        rows = [f"{word} {label}" for word, label in zip(words, labels, strict=True)]
        read = words if predictor.subwords is None else predictor.subwords.tokens(words)
        return Saliency("each label", read, found, rows, ("label", "read"))

    def contextual_layers(self, text: str) -> ContextualText:
        predictor = self.predictor()
        tokens = predictor.tokenize(require_text(text))
        spans = [(token.start, token.end) for token in tokens]
        if predictor.subwords is None:
            types = WordTypes.encode([token.text for token in tokens], predictor.word_encoder)
            source = types.collate([np.arange(len(tokens))])
        else:
            source, counts = predictor.subwords.collate([token.text for token in tokens])
            spans = [(0, 0) if at is None else spans[at] for at in counts]
        return ContextualText(text, spans, encoder_layers(self, self.module.encoder, source))

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """Accuracy, span F1, word accuracy or absolute error, next to the baseline's."""
        name, sentences, issues = self.eval_sentences(request)
        predictor, outputs = self.predictor(), list[list[str]]()
        began = time.perf_counter()
        for start in range(0, len(sentences), CHUNK):
            chunk = predictor.predict_tokens([sentence.words for sentence in sentences[start : start + CHUNK]])
            outputs += [[one.label for one in row] for row in chunk]
            progress("labeling", len(outputs), len(sentences))
        seconds = time.perf_counter() - began
        words, references = [s.words for s in sentences], [s.tags for s in sentences]
        metric = self.target.metric
        scores = metric.scores(words, outputs, references, [self.baseline.predict(row) for row in words])
        rows = list(zip(words, outputs, references, strict=True))
        per_unit = [metric.part(metric.tally(*row)) for row in rows]
        examples = [ScoredExample(*map(" ".join, row)) for row in rows]
        lines, detail = stats.evaluation_details(outputs, references, self.recipe.task.span_scheme, issues)
        return Evaluation(name, scores, examples, seconds, lines, detail, per_unit=per_unit)

    def eval_sentences(self, request: EvalRequest) -> tuple[str, list[TaggedSentence], stats.DataIssues]:
        """The name and sentences of the data to score, and its repaired and unseen tags."""
        file, counts, unseen = request.one_file(), Counter[str](), Counter[str]()
        data: EvalSource = self.recipe.data.scored_on(file) if file else self.recipe.data
        split = "test" if file else request.choose_split(data.splits())
        name, preparation = str(file) if file else split, self.recipe.preparation()
        sentences = [preparation.repair(sentence, counts) for sentence in data.sentences(split)]
        if not sentences:
            raise DataError(f"{name}: there is no sentence to score")
        if isinstance(self.target, TagTarget):
            for sentence in sentences:
                preparation.has_unseen_tag(sentence, self.target)  # refuses, if the task is strict
                unseen.update(tag for tag in sentence.tags if tag not in self.target)
        return name, sentences, stats.DataIssues(counts[REPAIRED], unseen)
