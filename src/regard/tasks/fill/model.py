"""A trained masked language model: filling, evaluation, and what the views need of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from regard.data import Shards
from regard.data.lines import text_list
from regard.errors import ConfigError, DataError, ModelError
from regard.models.bert import BertPretraining
from regard.progress import Progress
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.base import EvalRequest, Evaluation, Model
from regard.tasks.contextual import ContextualText, encoder_layers, require_text
from regard.tasks.fill.loader import FillLoader
from regard.tasks.fill.objective import MaskedTokens
from regard.tasks.fill.predict import MASK, SEP, FilledText, MaskedText, MaskFiller
from regard.tasks.fill.prepare import write_sequences
from regard.tasks.fill.scoring import FillTally, eval_scores, most_frequent, tally_batch
from regard.tasks.vectors.prepare import WordFrequencies
from regard.text import Tokenizer


class FillModel(Model):
    """A trained masked language model: `regard.load(run).fill("a [MASK] film")`."""

    module: BertPretraining
    recipe: Any
    """a FillRecipe"""

    def __init__(
        self,
        module: BertPretraining,
        tokenizer: Tokenizer,
        frequencies: WordFrequencies,
        recipe: Any,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.tokenizer, self.frequencies = tokenizer, frequencies

    @overload
    def fill(self, text: str, k: int = 5) -> FilledText: ...  # type: ignore[overload-overlap]  # a str is a sequence

    @overload
    def fill(self, text: Sequence[str], k: int = 5) -> list[FilledText]: ...

    def fill(self, text: str | Sequence[str], k: int = 5) -> Any:
        """A text with a word for each [MASK], and the `k` most probable ones; of a list of texts, a list.

        [SEP] stands between the two segments of a pair. All masks of a text are filled at once, each by itself.
        """
        if k < 1:
            raise ConfigError(f"k = {k} must be at least 1")
        texts = text_list([text] if isinstance(text, str) else text)
        found = self.filler().fill(texts, k=k)
        return found[0] if isinstance(text, str) else found

    def filler(self) -> MaskFiller:
        """The filler behind `fill`, for whole files."""
        self.check_head()
        found: MaskFiller = self.recipe.filler(self.inference_module, self.tokenizer)
        return found

    def check_head(self) -> None:
        """Refuse what needs a masked-LM head if the model was imported without one."""
        if "readout" in self.recipe.missing_parts:
            raise ModelError(
                f"{self.recipe.data.source} was imported without a masked-LM head, so it cannot fill masks; fine-tune "
                "it: regard train RECIPE --from RUN, or use its states: regard vectors sentence RUN TEXT"
            )

    def omitted_scores(self) -> set[str]:
        """Scores that say nothing about an imported model: it has no counts of tokens, or its head is random."""
        found = set() if self.frequencies.counts.any() else {"baseline"}
        return found | ({"next_sentence"} if {"pooler", "next_sentence"} & set(self.recipe.missing_parts) else set())

    def predict_text(self, text: str) -> str:
        return self.fill(text).text

    @property
    def sentence_limit(self) -> int | None:
        limit: int = self.recipe.task.length
        return limit

    def sentence_rows(self, texts: Sequence[str]) -> list[Any]:
        """[CLS], the ids of a text, and [SEP]; a longer text is cut before its [SEP]."""
        words, room = self.tokenizer, self.recipe.task.room
        return [[words.sos, *ids[:room], words.eos] for ids in words.encode_batch(list(texts))]

    def contextual_layers(self, text: str) -> ContextualText:
        words, room = self.tokenizer, self.recipe.task.room
        found = words.encode(require_text(text))
        if len(found.ids) > room:
            raise DataError(f"the text has {len(found.ids)} tokens, and this model reads at most {room}; shorten it")
        source = Tokens.pad([found.ids], (words.sos,), (words.eos,))
        layers = encoder_layers(self, self.module.encoder, source)
        return ContextualText(text, [(0, 0), *found.offsets, (0, 0)], layers)

    def untrained_module(self) -> BertPretraining:
        found: BertPretraining = self.recipe.build(self.tokenizer).eval()
        return found

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {"source": self.tokenizer.vocabulary.__getitem__}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """Accuracy and perplexity at the masks of held-out text, drawn as in validation, beside a unigram guess."""
        self.check_head()
        file = request.one_file()
        data = self.recipe.data.scored_on(file) if file else self.recipe.data
        split = request.choose_split(data.splits())
        name, frequent = str(file or split), most_frequent(self.frequencies)
        task = MaskedTokens(Words(self.tokenizer.size))
        tallies, order = list[FillTally](), list[np.ndarray]()
        with tempfile.TemporaryDirectory() as folder:
            encoding = self.tokenizer, self.recipe.task.room
            counts = write_sequences(
                data, split, encoding, Path(folder, "rows"), lambda done: progress("encoding", done, 0)
            )
            shards = Shards.open(Path(folder, "rows"))
            loader: FillLoader = self.recipe.loader_of(shards, shards, self.tokenizer)
            done = 0
            for rows in loader.plan(shards).epoch(0):
                tallies.append(tally_batch(self.module, task, loader.batch(shards, rows), frequent))
                order.append(rows)
                progress("scoring", done := done + len(rows), len(shards))
        omitted = self.omitted_scores()
        scores = eval_scores(tallies, self.tokenizer.vocabulary[frequent])
        scores = [score for score in scores if score.name not in omitted]
        back = np.argsort(np.concatenate(order))  # in the order of the text: for paired tests
        right, masks = (np.concatenate([getattr(tally, key) for tally in tallies])[back] for key in ("right", "masks"))
        per_unit = [(100.0 * float(r), int(n)) for r, n in zip(right, masks, strict=True)]
        notes, unknown = [], counts["unknown"]
        if unknown:
            share = 100 * unknown / max(1, counts["tokens"])
            notes = [f"{unknown:,} of {counts['tokens']:,} tokens ({share:.1f} %) are unknown to the model"]
        detail = {"unknown": unknown, "tokens": counts["tokens"]}
        return Evaluation(name, scores, summary_lines=notes, detail=detail, unit="sequences", per_unit=per_unit)


def fill_samples(filler: MaskFiller, loader: FillLoader) -> list[dict[str, str]]:
    """Evenly spaced validation sequences with their masks, and as the model fills them."""
    size = min(len(loader.valid), loader.task.samples)
    rows = np.arange(size) * len(loader.valid) // max(1, size)
    if not size:
        return []
    batch, tokenizer = loader.batch(loader.valid, rows), loader.tokenizer
    ids_BL, masked_BL = batch.target.ids.numpy(), batch.target.masked.numpy()
    read = np.where(masked_BL, tokenizer.mask or 0, ids_BL)
    lengths = batch.source.lengths.tolist()
    texts = [masked_text(tokenizer, row[:length].tolist()) for row, length in zip(read, lengths, strict=True)]
    originals = [masked_text(tokenizer, row[:length].tolist()) for row, length in zip(ids_BL, lengths, strict=True)]
    filled = filler.fill_ids(texts, k=1)
    return [
        {"text": sample_text(text), "output": found.text, "reference": sample_text(original)}
        for text, found, original in zip(texts, filled, originals, strict=True)
    ]


def masked_text(tokenizer: Tokenizer, ids: list[int]) -> MaskedText:
    """[CLS] first [SEP], or [CLS] first [SEP] second [SEP], as it is: encoded again it may have other tokens, because a
    mask inside of a word makes two words of its pieces."""
    parts, signs, segments = [list[int]()], list[str](), [0]
    for i in ids[1:-1]:
        segments.append(signs.count(SEP))
        if i in (tokenizer.mask, tokenizer.eos):
            parts.append([])
            signs.append(MASK if i == tokenizer.mask else SEP)
        else:
            parts[-1].append(i)
    segments.append(signs.count(SEP))
    masks = [at for at, i in enumerate(ids) if i == tokenizer.mask]
    return MaskedText([tokenizer.decode(part) for part in parts], signs, ids, segments, masks)


def sample_text(text: MaskedText) -> str:
    """A text with masks and separators as they are written."""
    after = (f"{sign} {part}".strip() for sign, part in zip(text.signs, text.parts[1:], strict=True))
    return " ".join(filter(None, [text.parts[0], *after]))
