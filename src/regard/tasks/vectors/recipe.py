"""The vectors task: recipe, validation, and the trained word vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from regard.data import Shards
from regard.data.lines import read_lines
from regard.device import module_device
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.metrics import Score, UnitSums
from regard.metrics.analogies import answer_questions, read_questions
from regard.metrics.perplexity import mean_loss
from regard.models.word2vec import Word2Vec, Word2VecConfig
from regard.objective import Objective
from regard.program import quote_path
from regard.progress import Progress
from regard.sequence import Memory, Tokens
from regard.spaces import Words
from regard.tasks.base import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate, read_counts, with_weights
from regard.tasks.generate.prepare import COLUMN, encode_split
from regard.tasks.vectors import stats
from regard.tasks.vectors.config import SEGMENT, VectorsConfig
from regard.tasks.vectors.loader import ContextLoader
from regard.tasks.vectors.predict import table_from_embedding
from regard.tasks.vectors.prepare import FREQUENCIES_FILE, VectorsPreparation, WordFrequencies
from regard.tasks.vectors.sources import ReviewTexts, VectorsData
from regard.tasks.vectors.word2vec import METHODS, NegativeSampling
from regard.tasks.vectors.word_table import Neighbor, WordMap, WordTable
from regard.text import Tokenizer, TokenizerConfig
from regard.text.token_rows import TokenStrings, tokenizer_strings
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.optim import Adam
from regard.train.schedule import CosineDecay
from regard.train.validation import validation_loss

SHOWN_NEIGHBORS = 5
"""neighbors per word shown at validation"""
SHOWN_RANKS = (100, 200, 400, 800)
"""frequency ranks of the words whose neighbors are shown if task.sample_inputs names none"""


@dataclass(frozen=True)
class VectorsRecipe(Recipe):
    """Recipe of word vectors."""

    verb: ClassVar[str] = "vectors"
    metrics: ClassVar[tuple[str, ...]] = ("loss",)
    scores: ClassVar[tuple[str, ...]] = ("loss", "analogies")
    artifacts: ClassVar[tuple[str, ...]] = ("tokenizer.json", FREQUENCIES_FILE)

    data: VectorsData = field(default_factory=ReviewTexts)
    """source of the text; by default, film reviews"""
    model: Word2VecConfig = Word2VecConfig()
    """the model"""
    task: VectorsConfig = VectorsConfig()
    """the task"""
    text: TokenizerConfig = TokenizerConfig(kind="word", vocab_size=20_000, lowercase=True)
    """the tokenizer"""
    train: TrainConfig = TrainConfig(
        label_smoothing=0.0,
        batch_tokens=4096,
        optimizer=Adam(betas=(0.9, 0.999), eps=1e-8),
        schedule=CosineDecay(lr=1e-2, warmup=100),
    )
    """training"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        if self.train.batch_tokens < SEGMENT:
            raise ConfigError(f"train.batch_tokens = {self.train.batch_tokens}: a batch has at least {SEGMENT} words")
        if self.text.dropout:
            raise ConfigError(
                f"text.dropout = {self.text.dropout}: a word has one vector, so it is tokenized in one way; set it to 0"
            )
        if self.train.probe is not None:
            raise ConfigError(
                "train.probe: word vectors read no sentence; name words to show in task.sample_inputs instead"
            )
        if self.train.label_smoothing:
            smoothing = f"train.label_smoothing = {self.train.label_smoothing}"
            raise ConfigError(f"{smoothing}: negative sampling has no label smoothing; set it to 0")
        self.check()

    def preparation(self) -> VectorsPreparation:
        return VectorsPreparation(self.data, self.text)

    def build(self, size: int) -> Word2Vec:
        """The model with its initial weights, which depend on the seed."""
        torch.manual_seed(self.seed)
        return self.model.build(Words(size))

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        words = tokenizer_strings(Tokenizer.load(run / "tokenizer.json"))
        return {"embed.weight": words, "readout.weight": words}

    def training_task(self, size: int) -> NegativeSampling:
        """Skip-gram or CBOW, for a vocabulary of `size`."""
        return METHODS[self.task.method](Words(size), self.task.negatives)

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> ContextLoader:  # noqa: B008
        """The loader of the prepared data."""
        train, valid = (Shards.open(run / "data" / split).flat(COLUMN) for split in ("train", "valid"))
        rows = self.train.batch_tokens // SEGMENT
        return ContextLoader(train, valid, WordFrequencies.load(run), self.task, rows, self.seed, group)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, ContextLoader, VectorsValidation]:
        tokenizer, loader = Tokenizer.load(run / "tokenizer.json"), self.loader(run, group)
        objective = Objective(self.build(tokenizer.size), self.training_task(tokenizer.size))
        validation = VectorsValidation(objective, loader, tokenizer, self.task.sample_inputs)
        validation.words(validation.table())  # refuses unknown sample_inputs before training
        return objective, loader, validation

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> VectorsModel:
        tokenizer, frequencies = Tokenizer.load(run / "tokenizer.json"), WordFrequencies.load(run)
        module = with_weights(self.build(tokenizer.size), saved)
        return VectorsModel(module, tokenizer, frequencies, self, saved.step, refused)

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("vectors has one language; --source-lang and --target-lang are for translate")
        return RecipeTemplate(
            "word vectors",
            {"data": "text", "train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/book.txt", "train.epochs": 5.0},
            hints=["data/book.txt is the training text; its last tenth is held out for validation"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.collect_statistics(self.text.kind, self.loader(run), read_counts(run))

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics)

    def speed_unit(self) -> str:
        return "predictions"

    def summary(self, run: Path) -> str:
        loader = self.loader(run)
        size = int(np.count_nonzero(loader.frequencies.counts))
        return f"{len(loader.train):,} train, {len(loader.valid):,} valid words       {size:,} in the vocabulary"

    def usage(self, run: Path) -> str:
        return f'regard vectors neighbors {quote_path(run)} "..."'


@dataclass(frozen=True)
class VectorsValidation:
    """Loss on the validation text, and the nearest neighbors of some words."""

    objective: Objective
    loader: ContextLoader
    tokenizer: Tokenizer
    sample_inputs: Sequence[str] = ()

    def words(self, table: WordTable) -> list[str]:
        """The words whose neighbors are shown."""
        chosen = [table.index(word) for word in self.sample_inputs]
        whole = table.whole_words or range(len(table))
        ranked = dict.fromkeys(whole[min(rank, len(whole) - 1)] for rank in SHOWN_RANKS)
        return [table.display_word(at) for at in chosen or ranked]

    def table(self) -> WordTable:
        """The current word vectors."""
        return table_from_embedding(self.objective.model.embed, self.tokenizer.vocabulary)  # type: ignore[arg-type]

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = {"loss": validation_loss(self.objective, self.loader, self.loader.group)["loss"]}
        if not self.loader.group.is_main:
            return metrics, ()
        table = self.table()
        neighbors = {word: table.neighbors(word, SHOWN_NEIGHBORS) for word in self.words(table)}
        return metrics, [
            {"word": word, "output": " ".join(neighbor.word for neighbor in found)} for word, found in neighbors.items()
        ]


class VectorsModel(Model):
    """Trained word vectors: neighbors, analogies and maps, as in `regard.load(run).neighbors("sea", 3)`."""

    module: Word2Vec
    recipe: VectorsRecipe

    def __init__(
        self,
        module: Word2Vec,
        tokenizer: Tokenizer,
        frequencies: WordFrequencies,
        recipe: VectorsRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.tokenizer, self.frequencies = tokenizer, frequencies

    @cached_property
    def table(self) -> WordTable:
        """The words with their vectors, the most frequent first."""
        return table_from_embedding(self.module.embed, self.tokenizer.vocabulary)

    def neighbors(self, word: str, count: int = 10) -> list[Neighbor]:
        """The nearest words by cosine similarity."""
        return self.table.neighbors(word, count)

    def analogy(self, sum_of_words: str, count: int = 10) -> list[Neighbor]:
        """The words nearest to a sum such as "king - man + woman"."""
        return self.table.analogy(sum_of_words, count)

    def map(self, words: Sequence[str] = ()) -> WordMap:
        """Words in two dimensions, by principal component analysis."""
        return self.table.pca_map(words)

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """Ids of the words of each text."""
        return [list(ids) for ids in self.tokenizer.encode_batch(list(texts))]

    def sentence_memory(self, rows: Sequence[Any]) -> Memory:
        """The vectors of the words: their mean is a sentence vector."""
        tokens = Tokens.pad(rows).to(module_device(self.module))
        return Memory(tokens.like(self.module.embed(tokens.data)))

    def predict_text(self, text: str) -> str:
        found = self.neighbors(text.strip()) if len(text.split()) == 1 else self.analogy(text)
        return " ".join(neighbor.word for neighbor in found)

    def run_for_trace(self, text: str) -> str:
        raise ConfigError(
            "word vectors read no sentence, so there is no pass to look into; use regard vectors neighbors, analogy or "
            "map"
        )

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {"source": self.tokenizer.vocabulary.__getitem__}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """Accuracy on a file of analogy questions; without a file, the loss on a split."""
        file = request.one_file()
        if file is None:
            split = request.choose_split(self.recipe.data.splits())
            score, per_unit = self._split_loss(split, progress)
            return Evaluation(split, [score], unit="segments", per_unit=per_unit)
        questions = read_questions(read_lines(file), str(file))
        table, total = self.table, len(questions)
        found = answer_questions(
            questions, table.find, lambda q: table.solve_analogies(q, lambda done: progress("answering", done, total))
        )
        detail = {"sections": {section: list(counts) for section, counts in found.sections().items()}}
        return Evaluation(
            str(file), [found.score()], summary_lines=found.summary_lines(), detail=detail, unit="questions"
        )

    @torch.no_grad()
    def _split_loss(self, split: str, progress: Progress) -> tuple[Score, UnitSums]:
        """The loss of a split, with windows and negative samples as in validation; and that of each segment."""
        ids, recipe, sums = encode_split(self.recipe.data, split, self.tokenizer)[0], self.recipe, []
        if len(ids) < SEGMENT:
            raise DataError(f"{split}: there are {len(ids):,} words to score; at least {SEGMENT} are needed")
        rows = recipe.train.batch_tokens // SEGMENT
        loader = ContextLoader(ids, ids, self.frequencies, recipe.task, rows, recipe.seed)
        objective = Objective(self.module, recipe.training_task(self.tokenizer.size)).eval()
        for number, batch in enumerate(loader.valid_batches()):
            for segment in (batch.select(torch.tensor([row])) for row in range(len(batch))):
                count = int(objective.task.counts(segment)["context"])
                sums.append((float(objective(segment)[0].totals["context"]), count))
            progress("scoring", number + 1, -(-len(ids) // SEGMENT // loader.rows))
        if not sums:
            raise DataError(
                f"{split}: no two words of the vocabulary occur together; evaluate on text like the training data"
            )
        task = recipe.task
        settings = f"method:{task.method}|window:{task.window}|negatives:{task.negatives}|subsample:{task.subsample:g}"
        return mean_loss(sums, f"unit:prediction|{settings}"), sums
