"""A trained language model: generation, scoring, and what the views need of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from regard import config
from regard.data.lines import text_list
from regard.decode import DecodeConfig
from regard.device import module_device
from regard.errors import ConfigError, DataError
from regard.look import TeacherForcedPass
from regard.loss import chunked_loss
from regard.metrics import perplexity
from regard.models.base import EncoderDecoder
from regard.models.elmo import BidirectionalLM
from regard.nn.spelling import spell_all, spell_text
from regard.objective import Batch, NextToken, StatefulNextToken
from regard.progress import Progress
from regard.sequence import UNK, Tokens
from regard.tasks.base import EvalRequest, Evaluation, Model
from regard.tasks.contextual import ContextualText, decoder_layers, encoder_layers, require_text
from regard.tasks.generate.config import GenerateOptions
from regard.tasks.generate.loader import empty_source, sliding_windows, stream_windows
from regard.tasks.generate.modality import Modality, TextModality
from regard.tasks.generate.packing import TokenRow, target_count
from regard.tasks.generate.predict import ContinuationEngine, Generator, TextGenerator
from regard.tasks.generate.sentences import LanguageModelSentences

OTHER_NAMES = {
    "max_new_tokens": "length",
    "max_length": "length",
    "min_new_tokens": "min_length",
    "num_beams": "beam",
    "no_repeat_ngram_size": "no_repeat_ngram",
    "num_return_sequences": "n of generator().generate()",
    "stop_strings": "stop",
    "do_sample": "sample",
}
"""Names of other libraries -> the name here."""


class GenerationModel(LanguageModelSentences, Model):
    """A trained language model, or model of a series: `regard.load(run).generate("the", length=40, seed=1)`."""

    module: EncoderDecoder
    recipe: Any
    """a GenerateRecipe"""

    def __init__(
        self, module: EncoderDecoder, modality: Modality, recipe: Any, step: int, refused: Sequence[str] = ()
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.modality = modality
        self.engine: ContinuationEngine | None = None  # another library's search, see regard.engines

    @overload
    def generate(self, prompt: str = "", length: int | None = None, *args: Any, **settings: Any) -> str: ...

    @overload
    def generate(self, prompt: Sequence[str], length: int | None = None, *args: Any, **settings: Any) -> list[str]: ...

    def generate(self, prompt: str | Sequence[str] = "", length: int | None = None, *args: Any, **settings: Any) -> Any:
        """A continuation of at most `length` positions; of a list of prompts, a list of continuations.

        `settings` are those of `generator`: temperature, top_k, top_p, seed, stop, condition, any of [decode], ... What
        is not given is the recipe's.
        """
        generator, length = self.generator(*args, **settings), length or self.recipe.task.length
        if isinstance(prompt, str):
            return generator.generate(text_list([prompt])[0], length)[0].text
        return [found[0].text for found in generator.generate_batch(text_list(prompt), length)]

    def stream(self, prompt: str = "", length: int | None = None, *args: Any, **settings: Any) -> Iterator[str]:
        """The continuation of one prompt, piece by piece, as it is generated."""
        return self.generator(*args, **settings).stream(text_list([prompt])[0], length or self.recipe.task.length)

    def generator(
        self,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
        sliding_window: bool = False,
        condition: Any = None,
        chat: bool = False,
        **settings: Any,
    ) -> Generator:
        """The generator behind `generate`, for several samples and their scores; temperature 0 is greedy.

        `settings` are others of [decode], such as min_p, repetition_penalty, no_repeat_ngram, or beam, which searches
        instead of sampling. `condition` is that of a Vec2Seq model: the name of a class, or numbers. `chat`: the prompt
        is a message, which a model that was trained on conversations answers.
        """
        given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, **settings}
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        options = GenerateOptions(decode_config(self.recipe.decode, given), stops, sliding_window, condition, chat)
        self.modality.check_decode(options.decode)
        found: Generator = self.recipe.generator(self.inference_module, self.modality, options)
        if self.engine is None:
            return found
        self.engine.check(options.decode)
        assert isinstance(found, TextGenerator)  # an engine is given to a model of texts only
        return replace(found, engine=self.engine)

    def predict_text(self, text: str) -> str:
        return self.generate(text)

    def teacher_forced(self, text: str) -> TeacherForcedPass:
        """A teacher-forced pass over a text; nothing is generated."""
        tokens, words = self.generator().encode_prompt(text)
        return TeacherForcedPass(empty_source(1), tokens, self.modality.space(), {"target": [words]})

    def contextual_layers(self, text: str) -> ContextualText:
        """Layers of both language models of an ELMo, which reads any word by its characters; else of the decoder."""
        if not isinstance(self.modality, TextModality):
            return super().contextual_layers(text)
        found = self.modality.tokenizer.encode(require_text(text))
        if isinstance(self.module, BidirectionalLM):
            words = self.modality.tokenizer.known_and_unknown(found, text)
            spelled_LC = np.insert(spell_all(words, spell_text), 0, UNK, axis=1)  # a word id first, which is not read
            source = Tokens.full(torch.from_numpy(spelled_LC).long()[None])
            return ContextualText(text, found.offsets, encoder_layers(self, self.module.contextual_encoder(), source))
        layers = decoder_layers(self, text)
        before = len(next(iter(layers.values()))) - len(found.ids)
        return ContextualText(text, [*[(0, 0)] * before, *found.offsets], layers)

    def run_for_trace(self, text: str) -> str:
        self.teacher_forced(text).run(self.inference_module)
        return text

    def generate_for_trace(self, text: str, length: int) -> tuple[str, int]:
        """Continue a text by at most `length` tokens, to be recorded; returns the continuation and the tokens recorded.

        It ends when the context is full: a later token would be predicted from a text that is read again in part.
        """
        if length < 1:
            raise ConfigError(f"the number of tokens to generate must be at least 1, got {length}")
        generator, limit = self.generator(), self.recipe.model.position_limit
        read = generator.encode_prompt(text)[0].data.shape[1]
        room = length if limit is None else min(length, min(limit, self.recipe.task.window) + 1 - read)
        return generator.generate(text, max(room, 1))[0].text, max(room, 1)

    def untrained_module(self) -> EncoderDecoder:
        return self.recipe.build(self.modality).eval()

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return self.modality.id_to_token()

    @torch.no_grad()
    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """Perplexity, bits per character and per byte of text, nats per position of numbers; as validation reads them.

        With a stride, the window slides by so many positions and scores only those, so that each has more context.
        """
        file, stride = replace(request, stride=None).one_file(), self.check_stride(request.stride)
        data = self.recipe.data.scored_on(file) if file else self.recipe.data
        split = request.choose_split(data.splits())
        name = str(file or split)
        sequence, counts = self.modality.read_split(data, split)
        if len(sequence) < 2:
            raise DataError(f"{name}: there are {len(sequence)} positions to score; at least 2 are needed")
        notes = self.modality.unknown_token_notes(name, counts, sequence)
        per_unit = self._score_windows(self.recipe.token_row(sequence, self.modality), stride, progress)
        score = perplexity([nats for nats, _ in per_unit], [count for _, count in per_unit])
        if stride is not None:
            score = replace(score, signature=f"{score.signature}|window:{self.recipe.task.window}|stride:{stride}")
        scores = self.modality.eval_scores(score, counts)
        detail = {"unknown": counts["unknown"]} if notes else {}
        return Evaluation(name, scores, summary_lines=notes, detail=detail, unit="windows", per_unit=per_unit)

    def check_stride(self, stride: int | None) -> int | None:
        """A stride of evaluation that fits the model; raises if it does not."""
        window = self.recipe.task.window
        if stride is not None and has_hidden_state(self.module):
            raise ConfigError(
                f"--stride: a sliding window is for models that read each window alone, and {self.recipe.model.kind} "
                "carries its hidden state from window to window, so every token has the whole text before it as "
                "context; leave --stride out"
            )
        if stride is not None and not 1 <= stride <= window:
            raise ConfigError(f"--stride: expected from 1 to task.window = {window}, got {stride}")
        return stride

    def _score_windows(self, sequence: TokenRow, stride: int | None, progress: Progress) -> list[tuple[float, int]]:
        """Negative log-likelihood and predictions of each window's targets, in the order of the text.

        The targets of a sliding window are summed over whole windows, so that all strides have the same units.
        """
        window, rows, total = self.recipe.task.window, self.recipe.rows, target_count(sequence)
        task, hidden_state, done = StatefulNextToken(self.modality.space()), None, 0
        batches: Iterable[tuple[Batch, Tensor | None]] = (
            ((batch, None) for batch in stream_windows(sequence, window, rows))
            if stride is None
            else sliding_windows(sequence, window, stride, rows)
        )
        sums: dict[tuple[int, int], tuple[float, int]] = {}
        for number, (batch, context) in enumerate(batches):
            found, hidden_state = window_nll(self.module, task, batch, hidden_state, context)
            for row, (nats, count) in found.items():
                unit = row, number * (stride or window) // window
                before = sums.get(unit, (0.0, 0))
                sums[unit] = before[0] + nats, before[1] + count
                done += count
            progress("scoring", done, total)
        return [sums[unit] for unit in sorted(sums)]


@torch.no_grad()
def window_nll(
    model: Any, task: NextToken, batch: Batch, hidden_state: Any, context: Tensor | None = None
) -> tuple[dict[int, tuple[float, int]], Any]:
    """Negative log-likelihood and predictions of each row of a batch that has any, and the next hidden state.

    `context` (B,): leading targets of each row that are not scored.
    """
    batch = batch.to(module_device(model))
    features, hidden_state = task.features(model, batch, hidden_state)
    real_BT, targets_BT = task.targets(batch)["next"]
    if context is not None:
        number_T = torch.arange(real_BT.shape[1], device=real_BT.device)
        real_BT = real_BT & (number_T >= context.to(real_BT.device)[:, None])
    found = {}
    for row, (features_TD, targets_T, real_T) in enumerate(zip(features["next"], targets_BT, real_BT, strict=True)):
        if count := int(real_T.sum()):
            nats = chunked_loss(model.readout, task.space.nll, features_TD[real_T], targets_T[real_T])
            found[row] = float(nats), count
    return found, hidden_state


def has_hidden_state(model: Any) -> bool:
    """Whether a model carries a hidden state from window to window, and so reads texts of any length."""
    return model.decoder.hidden_state(model.start(empty_source(1).to(module_device(model)))) is not None


def decode_config(recipe: DecodeConfig, given: Mapping[str, Any]) -> DecodeConfig:
    """The decoding settings of a recipe with those that are given (not None); a beam searches, temperature 0 is greedy.

    >>> decode_config(DecodeConfig(sample=True, beam=1), {"beam": 3}).sample
    False
    >>> decode_config(DecodeConfig(), {"num_beams": 3})
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no setting "num_beams" of generate; it is called beam here
    """
    for name in given:
        if name in OTHER_NAMES:
            raise ConfigError(f'there is no setting "{name}" of generate; it is called {OTHER_NAMES[name]} here')
    chosen = {name: value for name, value in given.items() if value is not None}
    temperature = chosen.get("temperature")
    if isinstance(temperature, int | float) and not temperature >= 0:
        raise ConfigError(f"temperature = {temperature} must be at least 0, which is greedy decoding")
    if temperature == 0:
        chosen = {name: value for name, value in chosen.items() if name != "temperature"} | {"sample": False}
    elif chosen.get("beam", 1) != 1:
        chosen = {"sample": False} | chosen
    elif "temperature" in chosen or "top_k" in chosen or "top_p" in chosen or "min_p" in chosen:
        chosen = {"sample": True} | chosen
    own = {field.name: getattr(recipe, field.name) for field in fields(DecodeConfig)}
    checked = config.parse(DecodeConfig, own | chosen, "decode")
    return replace(recipe, **{name: getattr(checked, name) for name in chosen})  # which may be a subclass
