"""The job of translating: its recipe, how it is tried while it trains, and the model that is used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
import torch

from regard.data import Shards
from regard.data.phrases.corpus import Phrases
from regard.data.tatoeba import Tatoeba
from regard.decode import DecodeConfig
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.look import Reading
from regard.metrics import Score, chrf, perplexity, ter
from regard.metrics import bleu as bleu_score
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder
from regard.objective import Continue, Objective, Tell
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.base import Answer, Asked, Evaluation, Fetching, Model, Recipe, Starter, check_reach, filled
from regard.tasks.translate import stats
from regard.tasks.translate.filters import Filter
from regard.tasks.translate.predict import Translation, Translator
from regard.tasks.translate.prepare import PairFeed, Preparation, TranslateConfig, Vocabularies
from regard.tasks.translate.sources import Files, Jsonl, Tsv, read_pairs
from regard.text import TokenizerConfig
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.trainer import surprise

DataConfig = Files | Tsv | Jsonl | Tatoeba | Phrases
CHUNK = 256
"""sentences that are translated together while a model is scored"""


@dataclass(frozen=True)
class TranslateRecipe(Recipe):
    """Everything that decides how a translator learns.

    >>> TranslateRecipe.kind()
    'translate'
    """

    verb: ClassVar[str] = "translate"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "bleu")
    scores: ClassVar[tuple[str, ...]] = ("bleu", "chrf", "ter", "perplexity")

    data: DataConfig
    """where the sentence pairs come from"""
    model: ModelConfig
    """what learns"""
    task: TranslateConfig = TranslateConfig()
    """what is asked"""
    filter: Filter = Filter()
    """which pairs are kept"""
    text: TokenizerConfig = TokenizerConfig()
    """how text becomes tokens"""
    train: TrainConfig = TrainConfig()
    """how it learns"""
    decode: DecodeConfig = DecodeConfig()
    """how outputs are found"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        self.model.check_translates(self.task.joint)
        check_reach(self.model, self.filter.tokens)
        if self.train.select == "bleu" and not self.task.scored:
            raise ConfigError('train.select = "bleu" needs sentences to score; task.scored = 0 asks for none')
        self.check()

    def preparation(self) -> Preparation:
        return Preparation(self.data, self.filter, self.text, self.task)

    def build(self, vocabularies: Vocabularies) -> EncoderDecoder:
        """The model with fresh weights, drawn by the seed."""
        torch.manual_seed(self.seed)
        return self.model.build(*self.spaces(vocabularies))

    def spaces(self, vocabularies: Vocabularies) -> tuple[Words, Words]:
        """What is read and what is said."""
        smoothing = self.train.smoothing
        return Words(vocabularies.source.size, smoothing), Words(vocabularies.target.size, smoothing)

    def feed(self, run: Path, world: World = World()) -> PairFeed:  # noqa: B008
        """The batches of data that is prepared."""
        shards = Shards.open(run / "data" / "train"), Shards.open(run / "data" / "valid")
        return PairFeed(*shards, Vocabularies.load(run), self.train.tokens, self.seed, self.text.dropout, world)

    def parts(self, run: Path, world: World) -> tuple[Objective, PairFeed, Validation]:
        feed = self.feed(run, world)
        model = self.build(feed.vocabularies)
        objective = Objective(model, Continue(self.spaces(feed.vocabularies)[1]))
        translator = Translator(model, feed.vocabularies, self.decode, places=self.model.reach).greedy()
        return objective, feed, Validation(objective, feed, translator, self.task, self.text.lowercase)

    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> TranslationModel:
        vocabularies = Vocabularies.load(run)
        return TranslationModel(filled(self.build(vocabularies), saved), vocabularies, self, saved.step, refused)

    @classmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        source, target = languages or ("source", "target")
        files = {
            f"data.{split}": [f"data/{split}.{language}" for language in (source, target)]
            for split in ("train", "valid", "test")
        }
        return Starter(
            f"{source} to {target}",
            {"data": "files", "model": "transformer", "train.optimizer": "adam", "train.schedule": "inverse-sqrt"},
            files | STARTING,
            later=("data.valid", "data.test"),
            hints=[f"line i of data/train.{target} is the translation of line i of data/train.{source}"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.counted(run, self.feed(run), self.text.kind)

    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.told(statistics)

    def described(self, run: Path) -> str:
        feed = self.feed(run)
        words = stats.sizes(feed.vocabularies)
        return f"{len(feed.train):,} train, {len(feed.held_out):,} valid pairs       tokens  {self.text.kind} {words}"

    def origin(self) -> str:
        if isinstance(self.data, Tatoeba | Phrases):
            return f"{self.data.kind} {self.data.direction}. {self.data.attribution()}"
        return f"{self.data.kind}: {self.data.train}; its licence is for whoever gave it to tell"

    def fetch(self, progress: Fetching | None = None) -> None:
        if isinstance(self.data, Tatoeba):
            self.data.fetch(progress)


STARTING: dict[str, Any] = {
    "model.layers": 3,
    "model.width": 256,
    "model.inner": 1024,
    "model.heads": 4,
    "train.epochs": 20.0,
    "train.schedule.warmup": 1000,
}
"""Where a new recipe leaves the defaults, which are those of papers with eight GPUs."""


@dataclass(frozen=True)
class Validation:
    """Loss, perplexity, and the scores of translations of some validation sentences.

    >>> import tempfile, regard
    >>> settings = ["data.kind=phrases", "data.count=300", "model.kind=seq2seq", "model.layers=1", "model.width=8"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run, recipe = regard.Run(Path(folder)), regard.Recipe.read(None, [*settings, "task.scored=2"])
    ...     run.prepare(recipe)
    ...     metrics, samples = run.parts(recipe)[2]()
    >>> list(metrics), len(samples)
    (['loss', 'ppl', 'bleu'], 2)
    """

    objective: Objective
    feed: PairFeed
    translator: Translator
    task: TranslateConfig
    lowercase: bool = False
    """whether capitals do not count, since the tokenizer forgets them"""

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = surprise(self.objective, self.feed, self.feed.world)
        size = len(self.feed.held_out)
        # from all over: many files begin with their shortest sentences
        rows = np.arange(size) if size <= self.task.scored else np.arange(self.task.scored) * size // self.task.scored
        tried = self.tried() if self.feed.world.leads else []
        if not len(rows):
            return metrics, tried
        bleu, samples = torch.zeros(()), []
        if self.feed.world.leads:
            sources, references = self.feed.texts(rows)
            outputs = [found[0].text for found in self.translator.translate(sources)]
            bleu = torch.tensor(bleu_score(outputs, references, lowercase=self.lowercase).value)
            told = zip(sources, outputs, references, strict=True)
            samples = [{"source": a, "output": b, "reference": c} for a, b, c in told][: self.task.samples]
        # all ranks decide the same from the same numbers
        return {**metrics, "bleu": float(self.feed.world.sum({"bleu": bleu})["bleu"])}, [*samples, *tried]

    def tried(self) -> list[Mapping[str, str]]:
        """The sentences that the recipe names, and what is made of them now."""
        outputs = self.translator.translate(self.task.tried)
        return [{"tried": text, "output": out[0].text} for text, out in zip(self.task.tried, outputs, strict=True)]


class TranslationModel(Model):
    """A trained translator: text in, text out.

    >>> import tempfile, regard
    >>> settings = ["data.kind=phrases", "data.count=300", "model.kind=seq2seq", "model.layers=1", "model.width=8"]
    >>> with tempfile.TemporaryDirectory() as run:
    ...     _ = regard.Run(Path(run)).train(regard.Recipe.read(None, [*settings, "train.steps=1"]))
    ...     model = regard.load(run)
    >>> model
    Model(seq2seq, 33,744 parameters, step 1; translate)
    >>> len(model.translate(["je suis", ""]))
    2
    """

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

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self, text: str, beam: int | None = ..., nbest: None = ...
    ) -> str: ...

    @overload
    def translate(self, text: Sequence[str], beam: int | None = ..., nbest: None = ...) -> list[str]: ...

    @overload
    def translate(
        self, text: str | Sequence[str], beam: int | None = ..., *, nbest: int
    ) -> list[list[Translation]]: ...

    def translate(self, text: str | Sequence[str], beam: int | None = None, nbest: int | None = None) -> Any:
        """A text, or each text of a list; with `nbest`, that many translations of each, with their scores."""
        texts = [text] if isinstance(text, str) else list(text)
        found = self.translator(beam, nbest or 1).translate(texts)
        if nbest is not None:
            return found
        best = [translations[0].text for translations in found]
        return best[0] if isinstance(text, str) else best

    def translator(self, beam: int | None = None, nbest: int = 1) -> Translator:
        """The translator behind `translate`, for prefixes, constraints and whole files."""
        beam = beam if beam is not None else max(self.recipe.decode.beam, nbest)
        config = replace(self.recipe.decode, beam=beam, n_best=nbest)
        return Translator(self.ready, self.vocabularies, config, places=self.recipe.model.reach)

    def answer(self, text: str) -> str:
        return self.translate(text)

    def reading(self, text: str, said: str | None = None) -> Reading:
        """A text and the translation that the model gives it, or what is `said`, so that models can be compared."""
        ours, theirs, translator = self.vocabularies.source, self.vocabularies.target, self.translator()
        source = ours.encode(text.strip()).ids
        best = translator.translate([text])[0][0].text if said is None else said
        target = [theirs.sos, *theirs.encode(best).ids, theirs.eos]
        words = {"source": [[*ours.tokens(source), "<EOS>"]], "target": [theirs.tokens(target)]}
        space = self.recipe.spaces(self.vocabularies)[1]
        return Reading(translator.source([source]), Tokens.of([target]), space, words)

    def initial(self) -> EncoderDecoder:
        return self.recipe.build(self.vocabularies).eval()

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        sides = {"source": self.vocabularies.source, "target": self.vocabularies.target}
        return {side: tokenizer.vocabulary.__getitem__ for side, tokenizer in sides.items()}

    def evaluate(self, asked: Asked, tell: Tell) -> Evaluation:
        """BLEU, chrF and TER by sacrebleu, and the perplexity of the references."""
        name, sources, references = self.asked_pairs(asked)
        translator = self.translator(asked.beam)
        outputs: list[str] = []
        began = time.perf_counter()
        for start in range(0, len(sources), CHUNK):
            found = translator.translate(sources[start : start + CHUNK], first_line=start + 1)
            outputs += [best[0].text for best in found]
            tell("translating", len(outputs), len(sources))
        seconds = time.perf_counter() - began
        lower = self.recipe.text.lowercase  # a tokenizer that forgets capitals is not asked for them
        scores = [
            bleu_score(outputs, references, lowercase=lower),
            chrf(outputs, references, lowercase=lower),
            ter(outputs, references),
            surprise_of(translator, sources, references),
        ]
        answers = [Answer(*texts) for texts in zip(sources, outputs, references, strict=True)]
        return Evaluation(name, scores, answers, seconds)

    def asked_pairs(self, asked: Asked) -> tuple[str, list[str], list[str]]:
        """What is scored: its name, the sources, the references."""
        preparation = self.recipe.preparation()
        if asked.files:
            if len(asked.files) != 2:
                raise ConfigError(
                    f"--data: expected two files, one to read and one to compare with, got {len(asked.files)}"
                )
            name, found = " ".join(map(str, asked.files)), list(read_pairs(*asked.files))
        else:
            name = asked.split or ("test" if "test" in preparation.data.splits() else "valid")
            found = list(preparation.pairs(name))
        if not found:
            raise DataError(f"{name}: there is no sentence pair to score")
        sources, references = zip(*found, strict=True)
        return name, list(sources), list(references)


def surprise_of(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> Score:
    """The perplexity of the references; a source or a reference without words says nothing.

    >>> from regard.models.seq2seq import Seq2SeqConfig
    >>> from regard.text import Tokenizer
    >>> both = Tokenizer.train(["je suis", "I am"], TokenizerConfig(size=40))
    >>> model = Seq2SeqConfig(layers=1, width=8).build(Words(both.size), Words(both.size)).eval()
    >>> surprise_of(Translator(model, Vocabularies(both, both), DecodeConfig()), ["je suis", ""], ["I am", "I"]).n
    1
    """
    kept = [pair for pair in zip(sources, references, strict=True) if all(side.strip() for side in pair)]
    if not kept:
        raise DataError("every sentence pair has an empty side; there is nothing to score")
    ours, theirs = [pair[0] for pair in kept], [pair[1] for pair in kept]
    counts = [len(ids) + 1 for ids in translator.vocabularies.target.encode_batch(theirs)]
    return perplexity([-total for total in translator.score(ours, theirs)], counts)
