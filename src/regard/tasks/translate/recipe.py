"""The translate task: recipe, validation, and the trained model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import torch

from regard.data import Shards
from regard.data.lines import text_list
from regard.decode import DecodeConfig
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError, ModelError
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder
from regard.objective import NextToken, Objective
from regard.program import quote_path
from regard.progress import Progress
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.base import (
    EvalRequest,
    Evaluation,
    Model,
    Recipe,
    RecipeTemplate,
    check_max_positions,
    with_weights,
)
from regard.tasks.contextual import ContextualText, encoder_layers, require_text
from regard.tasks.init_weights import ModelOrigin
from regard.tasks.translate import stats
from regard.tasks.translate.backtranslate import BackTranslation, BackTranslator, open_back_translation
from regard.tasks.translate.config import TranslateConfig
from regard.tasks.translate.evaluation import EvalPart, evaluate_parts
from regard.tasks.translate.filters import FilterConfig
from regard.tasks.translate.loader import PairLoader
from regard.tasks.translate.mix import MixedPairs, TranslateData
from regard.tasks.translate.predict import SearchEngine, Translation, Translator
from regard.tasks.translate.prepare import TranslatePreparation, Vocabularies
from regard.tasks.translate.sources import describe_corpus, read_pairs
from regard.tasks.translate.synthetic_record import BackTranslationConfig, SyntheticRecord
from regard.tasks.translate.tags import SourceTags
from regard.tasks.translate.validation import TranslateValidation
from regard.text import TokenizerConfig
from regard.text.token_rows import TokenStrings, tokenizer_strings
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig

if TYPE_CHECKING:
    from regard.look import TeacherForcedPass


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
        tokens, weights = self.train.batch_tokens, self.data.weights if isinstance(self.data, MixedPairs) else ()
        return PairLoader(*shards, Vocabularies.load(run), tokens, self.seed, self.text.dropout, group, weights)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, PairLoader, TranslateValidation]:
        loader = self.loader(run, group)
        model = self.build(loader.vocabularies)
        objective = Objective(model, NextToken(self.spaces(loader.vocabularies)[1]))
        translator = self.translator(model, loader.vocabularies, self.decode)
        validation = TranslateValidation(objective, loader, translator.greedy(), self.task, self.text.lowercase)
        return objective, loader, validation

    @property
    def tags(self) -> SourceTags:
        """The tags of the sources; none unless the data is a mix with tags."""
        return self.data.tags if isinstance(self.data, MixedPairs) else SourceTags()

    def translator(self, module: EncoderDecoder, vocabularies: Vocabularies, search: DecodeConfig) -> Translator:
        """A translator with these settings of the search."""
        limit = self.model.position_limit
        return Translator(module, vocabularies, search, max_positions=limit, tags=self.tags)

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> TranslationModel:
        vocabularies = Vocabularies.load(run)
        origin = ModelOrigin(run.as_posix(), self.kind(), self.model.kind, saved.step, saved.digest)
        module = with_weights(self.build(vocabularies), saved)
        return TranslationModel(module, vocabularies, self, saved.step, refused, origin)

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
        found, loader = stats.collect_statistics(run, self.loader(run), self.text.kind), self.loader(run)
        return found | ({"parts": stats.count_parts(loader, self.data)} if isinstance(self.data, MixedPairs) else {})

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics)

    def summary(self, run: Path) -> str:
        loader = self.loader(run)
        both = loader.vocabularies
        words = stats.format_sizes(both.source.size, both.target.size, both.is_shared)
        return f"{len(loader.train):,} train, {len(loader.valid):,} valid pairs       tokens  {self.text.kind} {words}"

    def usage(self, run: Path) -> str:
        tags = self.tags
        return f'regard {self.verb} {quote_path(run)} "{"" if tags.optional else tags.names[0] + " "}..."'

    def data_credit(self) -> str:
        return self.data.credit() if isinstance(self.data, MixedPairs) else describe_corpus(self.data)


TEMPLATE_SETTINGS: dict[str, Any] = {
    "model.layers": 3,
    "model.width": 256,
    "model.ffn_width": 1024,
    "model.heads": 4,
    "train.epochs": 20.0,
    "train.schedule.warmup": 1000,
}
"""Smaller than the defaults, which are those of papers with eight GPUs"""


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
        origin: ModelOrigin | None = None,
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.vocabularies = vocabularies
        self.origin = origin  # the checkpoint; None: it was built by other code
        self.engine: SearchEngine | None = None  # another library's search, see regard.engines

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self, text: str, beam: int | None = ..., n_best: None = ..., tag: str | None = ...
    ) -> str: ...

    @overload
    def translate(
        self, text: Sequence[str], beam: int | None = ..., n_best: None = ..., tag: str | None = ...
    ) -> list[str]: ...

    @overload
    def translate(
        self, text: str | Sequence[str], beam: int | None = ..., *, n_best: int, tag: str | None = ...
    ) -> list[list[Translation]]: ...

    def translate(
        self, text: str | Sequence[str], beam: int | None = None, n_best: int | None = None, tag: str | None = None
    ) -> Any:
        """Translate a text or a list of texts; `n_best`: return that many translations of each, with scores.

        `tag`: one of the tags of the model, such as "<2de>", unless each text starts with its own.
        """
        texts = text_list(text)
        found = self.translator(beam, n_best or 1, tag).translate(texts)
        if n_best is not None:
            return found
        best = [translations[0].text for translations in found]
        return best[0] if isinstance(text, str) else best

    def translator(self, beam: int | None = None, n_best: int = 1, tag: str | None = None) -> Translator:
        """The translator behind `translate`, for prefixes, constraints and whole files."""
        if tag is not None:
            self.recipe.tags.check(tag)
        beam = beam if beam is not None else max(self.recipe.decode.beam, n_best)
        search = replace(self.recipe.decode, beam=beam, n_best=n_best)
        found = self.recipe.translator(self.inference_module, self.vocabularies, search)
        return replace(found, tag=tag, engine=self.engine)

    def predict_text(self, text: str) -> str:
        return self.translate(text)

    def teacher_forced(self, text: str, output: str | None = None) -> TeacherForcedPass:
        """A teacher-forced pass over a text and its translation, or over `output`, to compare models."""
        from regard.look import TeacherForcedPass

        source_tokenizer, tokenizer = self.vocabularies.source, self.vocabularies.target
        translator = self.translator()
        source = translator.encode_sources([text])[0]
        best = translator.translate([text])[0][0].text if output is None else output
        target = [tokenizer.sos, *tokenizer.encode(best).ids, tokenizer.eos]
        words = {"source": [[*source_tokenizer.tokens(source), "<EOS>"]], "target": [tokenizer.tokens(target)]}
        space = self.recipe.spaces(self.vocabularies)[1]
        return TeacherForcedPass(translator.pad_source([source]), Tokens.pad([target]), space, words)

    def contextual_layers(self, text: str) -> ContextualText:
        translator, (tag, rest) = self.translator(), self.recipe.tags.split(require_text(text))
        ids = self.recipe.tags.encode_batch(self.vocabularies.source, [text])
        start = len(text) - len(rest)
        spans = [(start + a, start + b) for a, b in self.vocabularies.source.encode(rest).offsets]
        layers = encoder_layers(self, self.module.encoder, translator.pad_source(ids))
        return ContextualText(text, [*([(0, len(tag))] if tag else []), *spans, (0, 0)], layers)

    def untrained_module(self) -> EncoderDecoder:
        return self.recipe.build(self.vocabularies).eval()

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """Ids of the source language, <EOS> at the end."""
        source = self.vocabularies.source
        return [[*ids, source.eos] for ids in self.recipe.tags.encode_batch(source, texts)]

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        sides = {"source": self.vocabularies.source, "target": self.vocabularies.target}
        return {side: tokenizer.token for side, tokenizer in sides.items()}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """BLEU, chrF and TER by sacrebleu, and the perplexity of the references; of a mix also by part."""
        name, parts = self.eval_parts(request)
        return evaluate_parts(name, parts, self.translator(request.beam), self.recipe.text.lowercase, progress)

    def eval_parts(self, request: EvalRequest) -> tuple[str, list[EvalPart]]:
        """The data to score, each source with its tag: its name, and its parts, of which a mix may have several."""
        request.refuse_stride()
        tags = self.recipe.tags
        if request.tag is not None:
            tags.check(request.tag)
        if request.files:
            if len(request.files) != 2:
                raise ConfigError(f"--data: expected two files, sources and references, got {len(request.files)}")
            name, pairs = " ".join(map(str, request.files)), list(read_pairs(*request.files))
            return name, [EvalPart("", [(tags.join(request.tag, source), target) for source, target in pairs])]
        preparation = self.recipe.preparation()
        name = request.choose_split(preparation.data.splits())
        found = list(preparation.part_pairs(name))
        if request.tag is not None:
            found = [(part, pairs) for part, pairs in found if preparation.splits.tag(part) == request.tag]
        labels = {part: f"part {part + 1} {preparation.splits.tag(part) or ''}".strip() for part, _ in found}
        if not found:
            raise DataError(f"{name}: there is no sentence pair to score")
        return name, [EvalPart(labels[part], pairs) for part, pairs in found]

    def eval_pairs(self, request: EvalRequest) -> tuple[str, list[str], list[str]]:
        """The data to score: its name, sources and references."""
        name, parts = self.eval_parts(request)
        sources, references = zip(*(pair for part in parts for pair in part.pairs), strict=True)
        return name, list(sources), list(references)

    def back_translate(
        self, monolingual: str | Path, output: str | Path, config: BackTranslationConfig | None = None
    ) -> SyntheticRecord:
        """Back-translate a file of monolingual text into synthetic pairs; a job that was interrupted goes on."""
        with self.back_translation(Path(monolingual), Path(output), config or BackTranslationConfig()) as job:
            for _ in job.run():
                pass
            return job.record

    def back_translation(
        self, monolingual: Path, output: Path, config: BackTranslationConfig
    ) -> AbstractContextManager[BackTranslation]:
        """Context of an open back-translation, which runs chunk by chunk."""
        if self.origin is None:
            raise ModelError("the model has no checkpoint, by which its synthetic pairs could be recorded; load a run")
        maker = BackTranslator.build(self.translator(config.beam, tag=config.tag), self.recipe.filter, config)
        return open_back_translation(maker, self.origin, monolingual, output, config)
