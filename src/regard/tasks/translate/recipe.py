"""The translate task: recipe, validation, and the trained model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
import torch

from regard.data import Shards
from regard.data.lines import text_list
from regard.decode import DecodeConfig
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.metrics import Score, chrf, perplexity, ter
from regard.metrics import bleu as bleu_score
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder
from regard.objective import NextToken, Objective
from regard.progress import Progress
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.base import (
    EvalRequest,
    Evaluation,
    Model,
    Recipe,
    RecipeTemplate,
    ScoredExample,
    check_max_positions,
    with_weights,
)
from regard.tasks.contextual import ContextualText, encoder_layers, require_text
from regard.tasks.translate import stats
from regard.tasks.translate.config import TranslateConfig
from regard.tasks.translate.filters import FilterConfig
from regard.tasks.translate.loader import PairLoader
from regard.tasks.translate.predict import SearchEngine, Translation, Translator
from regard.tasks.translate.prepare import TranslatePreparation, Vocabularies
from regard.tasks.translate.sources import FilePairs, ImportedPairs, TranslateData, read_pairs
from regard.text import TokenizerConfig
from regard.text.token_rows import TokenStrings, tokenizer_strings
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.validation import validation_loss

if TYPE_CHECKING:
    from regard.look import Recording, TeacherForcedPass

CHUNK = 256
"""sentences that are translated between two progress reports of an evaluation"""


@dataclass(frozen=True)
class TranslateRecipe(Recipe):
    """Recipe of a translation model."""

    verb: ClassVar[str] = "translate"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "bleu")
    scores: ClassVar[tuple[str, ...]] = ("bleu", "chrf", "ter", "perplexity")

    data: TranslateData
    """source of the sentence pairs"""
    model: ModelConfig
    """the model"""
    task: TranslateConfig = TranslateConfig()
    """the task"""
    filter: FilterConfig = FilterConfig()
    """which pairs are kept"""
    text: TokenizerConfig = TokenizerConfig()
    """the tokenizer"""
    train: TrainConfig = TrainConfig()
    """training"""
    decode: DecodeConfig = DecodeConfig()
    """the search for translations"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        self.model.check_shared_vocab(self.task.share_vocab)
        check_max_positions(self.model, self.filter.max_tokens)
        if self.train.best_metric == "bleu" and not self.task.bleu_sentences:
            raise ConfigError('train.best_metric = "bleu" needs sentences to score, and task.bleu_sentences is 0')
        self.check()

    def preparation(self) -> TranslatePreparation:
        return TranslatePreparation(self.data, self.filter, self.text, self.task)

    def build(self, vocabularies: Vocabularies) -> EncoderDecoder:
        """The model with its initial weights, which depend on the seed."""
        torch.manual_seed(self.seed)
        return self.model.build(*self.spaces(vocabularies))

    def spaces(self, vocabularies: Vocabularies) -> tuple[Words, Words]:
        """Input and output space of the model."""
        smoothing = self.train.label_smoothing
        return Words(vocabularies.source.size, smoothing), Words(vocabularies.target.size, smoothing)

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        both = Vocabularies.load(run)
        source, target = tokenizer_strings(both.source), tokenizer_strings(both.target)
        readout = {f"decoder.readout.{name}": target for name in ("weight", "bias")}
        return {"encoder.embed.weight": source, "decoder.embed.weight": target, **readout}

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> PairLoader:  # noqa: B008
        """The loader of the prepared data."""
        shards = Shards.open(run / "data" / "train"), Shards.open(run / "data" / "valid")
        return PairLoader(*shards, Vocabularies.load(run), self.train.batch_tokens, self.seed, self.text.dropout, group)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, PairLoader, TranslateValidation]:
        loader = self.loader(run, group)
        model = self.build(loader.vocabularies)
        objective = Objective(model, NextToken(self.spaces(loader.vocabularies)[1]))
        translator = Translator(model, loader.vocabularies, self.decode, max_positions=self.model.position_limit)
        validation = TranslateValidation(objective, loader, translator.greedy(), self.task, self.text.lowercase)
        return objective, loader, validation

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> TranslationModel:
        vocabularies = Vocabularies.load(run)
        return TranslationModel(with_weights(self.build(vocabularies), saved), vocabularies, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        source, target = languages or ("source", "target")
        files = {
            f"data.{split}": [f"data/{split}.{language}" for language in (source, target)]
            for split in ("train", "valid", "test")
        }
        return RecipeTemplate(
            f"{source} to {target}",
            {"data": "files", "model": "transformer", "train.optimizer": "adam", "train.schedule": "inverse-sqrt"},
            files | TEMPLATE_SETTINGS,
            commented_out=("data.valid", "data.test"),
            hints=[f"line i of data/train.{target} is the translation of line i of data/train.{source}"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.collect_statistics(run, self.loader(run), self.text.kind)

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics)

    def summary(self, run: Path) -> str:
        loader = self.loader(run)
        both = loader.vocabularies
        words = stats.format_sizes(both.source.size, both.target.size, both.is_shared)
        return f"{len(loader.train):,} train, {len(loader.valid):,} valid pairs       tokens  {self.text.kind} {words}"

    def data_credit(self) -> str:
        if isinstance(self.data, FilePairs | ImportedPairs):
            return super().data_credit()
        return f"{self.data.kind} {self.data.direction}. {self.data.credit()}"


TEMPLATE_SETTINGS: dict[str, Any] = {
    "model.layers": 3,
    "model.width": 256,
    "model.ffn_width": 1024,
    "model.heads": 4,
    "train.epochs": 20.0,
    "train.schedule.warmup": 1000,
}
"""Smaller than the defaults, which are those of papers with eight GPUs"""


@dataclass(frozen=True)
class TranslateValidation:
    """Loss, perplexity, and BLEU of the translations of some validation sentences."""

    objective: Objective
    loader: PairLoader
    translator: Translator
    task: TranslateConfig
    lowercase: bool = False
    """score without case, since the tokenizer lowercases"""

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = validation_loss(self.objective, self.loader, self.loader.group)
        size, scored = len(self.loader.valid), self.task.bleu_sentences
        # evenly spaced: many files begin with their shortest sentences
        rows = np.arange(size) if size <= scored else np.arange(scored) * size // scored
        translated = self.translate_inputs() if self.loader.group.is_main else []
        if not len(rows):
            return metrics, translated
        bleu, samples = torch.zeros(()), []
        if self.loader.group.is_main:
            sources, references = self.loader.texts(rows)
            outputs = [found[0].text for found in self.translator.translate(sources)]
            bleu = torch.tensor(bleu_score(outputs, references, lowercase=self.lowercase).value)
            triples = zip(sources, outputs, references, strict=True)
            samples = [{"source": a, "output": b, "reference": c} for a, b, c in triples][: self.task.samples]
        self.loader.group.wait_for_main()  # it translates alone
        # all ranks must decide the same from the same numbers
        return {**metrics, "bleu": float(self.loader.group.sum({"bleu": bleu})["bleu"])}, [*samples, *translated]

    def translate_inputs(self) -> list[Mapping[str, str]]:
        """The sentences of task.sample_inputs with their translations."""
        inputs = self.task.sample_inputs
        outputs = self.translator.translate(inputs)
        return [{"sample_input": text, "output": out[0].text} for text, out in zip(inputs, outputs, strict=True)]


class TranslationModel(Model):
    """A trained translation model: `regard.load(run).translate("je suis étudiant")`."""

    module: EncoderDecoder
    recipe: TranslateRecipe

    def __init__(
        self,
        module: EncoderDecoder,
        vocabularies: Vocabularies,
        recipe: TranslateRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.vocabularies = vocabularies
        self.engine: SearchEngine | None = None  # another library's search, see regard.engines

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self, text: str, beam: int | None = ..., n_best: None = ...
    ) -> str: ...

    @overload
    def translate(self, text: Sequence[str], beam: int | None = ..., n_best: None = ...) -> list[str]: ...

    @overload
    def translate(
        self, text: str | Sequence[str], beam: int | None = ..., *, n_best: int
    ) -> list[list[Translation]]: ...

    def translate(self, text: str | Sequence[str], beam: int | None = None, n_best: int | None = None) -> Any:
        """Translate a text or a list of texts; `n_best`: return that many translations of each, with scores."""
        texts = text_list(text)
        found = self.translator(beam, n_best or 1).translate(texts)
        if n_best is not None:
            return found
        best = [translations[0].text for translations in found]
        return best[0] if isinstance(text, str) else best

    def translator(self, beam: int | None = None, n_best: int = 1) -> Translator:
        """The translator behind `translate`, for prefixes, constraints and whole files."""
        beam = beam if beam is not None else max(self.recipe.decode.beam, n_best)
        config = replace(self.recipe.decode, beam=beam, n_best=n_best)
        limit = self.recipe.model.position_limit
        return Translator(self.inference_module, self.vocabularies, config, max_positions=limit, engine=self.engine)

    @contextmanager
    def record(
        self, replace: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None
    ) -> Iterator[Recording]:
        """Record all tapped tensors of forward passes inside the block; an engine computes where none are seen."""
        if self.engine is not None:
            raise ConfigError(
                f"nothing inside the engine {self.engine.name} can be recorded; load the run without an engine"
            )
        with super().record(replace) as recording:
            yield recording

    def predict_text(self, text: str) -> str:
        return self.translate(text)

    def teacher_forced(self, text: str, output: str | None = None) -> TeacherForcedPass:
        """A teacher-forced pass over a text and its translation, or over `output`, to compare models."""
        from regard.look import TeacherForcedPass

        source_tokenizer, tokenizer = self.vocabularies.source, self.vocabularies.target
        translator = self.translator()
        source = source_tokenizer.encode(text.strip()).ids
        best = translator.translate([text])[0][0].text if output is None else output
        target = [tokenizer.sos, *tokenizer.encode(best).ids, tokenizer.eos]
        words = {"source": [[*source_tokenizer.tokens(source), "<EOS>"]], "target": [tokenizer.tokens(target)]}
        space = self.recipe.spaces(self.vocabularies)[1]
        return TeacherForcedPass(translator.pad_source([source]), Tokens.pad([target]), space, words)

    def contextual_layers(self, text: str) -> ContextualText:
        found = self.vocabularies.source.encode(require_text(text))
        layers = encoder_layers(self, self.module.encoder, self.translator().pad_source([found.ids]))
        return ContextualText(text, [*found.offsets, (0, 0)], layers)

    def untrained_module(self) -> EncoderDecoder:
        return self.recipe.build(self.vocabularies).eval()

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """Ids of the source language, <EOS> at the end."""
        return [[*ids, self.vocabularies.source.eos] for ids in self.vocabularies.source.encode_batch(list(texts))]

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        sides = {"source": self.vocabularies.source, "target": self.vocabularies.target}
        return {side: tokenizer.token for side, tokenizer in sides.items()}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """BLEU, chrF and TER by sacrebleu, and the perplexity of the references."""
        name, sources, references = self.eval_pairs(request)
        translator = self.translator(request.beam)
        outputs: list[str] = []
        began = time.perf_counter()
        for start in range(0, len(sources), CHUNK):
            found = translator.translate(sources[start : start + CHUNK], first_line=start + 1)
            outputs += [best[0].text for best in found]
            progress("translating", len(outputs), len(sources))
        seconds = time.perf_counter() - began
        lower = self.recipe.text.lowercase  # a lowercasing tokenizer cannot produce capitals
        scores = [
            bleu_score(outputs, references, lowercase=lower),
            chrf(outputs, references, lowercase=lower),
            ter(outputs, references),
            reference_perplexity(translator, sources, references),
        ]
        examples = [ScoredExample(*texts) for texts in zip(sources, outputs, references, strict=True)]
        return Evaluation(name, scores, examples, seconds)

    def eval_pairs(self, request: EvalRequest) -> tuple[str, list[str], list[str]]:
        """The data to score: its name, sources and references."""
        preparation = self.recipe.preparation()
        request.refuse_stride()
        if request.files:
            if len(request.files) != 2:
                raise ConfigError(f"--data: expected two files, sources and references, got {len(request.files)}")
            name, found = " ".join(map(str, request.files)), list(read_pairs(*request.files))
        else:
            name = request.choose_split(preparation.data.splits())
            found = list(preparation.pairs(name))
        if not found:
            raise DataError(f"{name}: there is no sentence pair to score")
        sources, references = zip(*found, strict=True)
        return name, list(sources), list(references)


def reference_perplexity(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> Score:
    """The perplexity of the references; pairs with an empty side are left out."""
    pairs = [pair for pair in zip(sources, references, strict=True) if all(side.strip() for side in pair)]
    if not pairs:
        raise DataError("every sentence pair has an empty side; there is nothing to score")
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    counts = [len(ids) + 1 for ids in translator.vocabularies.target.encode_batch(references)]
    return perplexity([-total for total in translator.score(sources, references)], counts)
