"""A trained model of p(text | condition): the input of its views is the condition, and after a tab a text or prompt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from regard.errors import ConfigError, DataError
from regard.look import TeacherForcedPass
from regard.metrics import perplexity
from regard.objective import NextToken
from regard.progress import Progress
from regard.sequence import Tokens
from regard.tasks.base import EvalRequest, Evaluation, length_batches
from regard.tasks.generate.conditioned import ConditionedModality, conditioned_batch, read_rows
from regard.tasks.generate.model import GenerationModel, window_nll


class ConditionedModel(GenerationModel):
    """A trained Vec2Seq model: `regard.load(run).generate(condition="question", seed=1)`."""

    modality: ConditionedModality

    def predict_text(self, text: str) -> str:
        condition, prompt = split_condition(text)
        return self.generate(prompt, condition=condition)

    def run_for_trace(self, text: str) -> str:
        """A teacher-forced pass over the text after the tab; without one, a text is generated."""
        if "\t" not in text:
            return self.predict_text(text)
        self.teacher_forced(text).run(self.inference_module)
        return text

    def teacher_forced(self, text: str) -> TeacherForcedPass:
        condition, target = split_condition(text)
        if not target:
            raise ConfigError(
                "this view reads a text with its condition; give both with a tab between them: CONDITION<tab>TEXT"
            )
        tokens, words = self.generator(condition=condition).encode_prompt(target)
        source = self._source(condition)
        return TeacherForcedPass(source, tokens, self.modality.space(), {"target": [words]})

    def generate_for_trace(self, text: str, length: int) -> tuple[str, int]:
        condition, prompt = split_condition(text)
        return self.generate(prompt, length, condition=condition), length

    def _source(self, condition: str) -> Tokens:
        return self.modality.condition.source([self.modality.condition.encode(condition, "the condition", ConfigError)])

    @torch.no_grad()
    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """Perplexity of each text given its condition, bits per character and per byte."""
        file = replace(request, stride=None).one_file()
        self.check_stride(request.stride)
        data = self.recipe.data.scored_on(file) if file else self.recipe.data
        split = request.choose_split(data.splits())
        name = str(file or split)
        rows, counts = read_rows(self.modality, data, split)
        if not rows:
            raise DataError(f"{name}: there is no text to score")
        notes = self.modality.unknown_token_notes(name, counts, np.concatenate([np.array(ids) for ids, _ in rows]))
        per_unit, done = [(0.0, 0)] * len(rows), 0
        task, lengths = NextToken(self.modality.space()), [len(ids) + 1 for ids, _ in rows]
        for chosen in length_batches(lengths, self.recipe.train.batch_tokens):
            ids, conditions = zip(*(rows[i] for i in chosen), strict=True)
            batch = conditioned_batch(ids, conditions, self.modality.tokenizer, self.modality.condition)
            found, _ = window_nll(self.module, task, batch, None)
            for row, scored in found.items():
                per_unit[chosen[row]] = scored
            done += len(chosen)
            progress("scoring", done, len(rows))
        score = perplexity([nats for nats, _ in per_unit], [count for _, count in per_unit])
        detail = {"unknown": counts["unknown"]} if notes else {}
        scores = self.modality.eval_scores(score, counts)
        return Evaluation(name, scores, summary_lines=notes, detail=detail, unit="texts", per_unit=per_unit)

    def check_stride(self, stride: int | None) -> int | None:
        if stride is not None:
            raise ConfigError("--stride: every text is scored as a whole, from <SOS> to <EOS>; leave --stride out")
        return None


def split_condition(text: str) -> tuple[str, str]:
    """The condition, and what follows after the first tab.

    >>> split_condition("question\\twhere"), split_condition("2, 4, 3")
    (('question', 'where'), ('2, 4, 3', ''))
    """
    condition, _, rest = text.partition("\t")
    return condition, rest
