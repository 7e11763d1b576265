"""Lesson: a translation model resolves "it" correctly, and the attention of that word does not show how."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache

import torch
from torch import Tensor

from regard.decode import Beam, Hypothesis, collect, score, search
from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.cached_models import train_missing
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.lessons.engine.translator import LessonTranslator, load_translator
from regard.lessons.pronouns import PronounSentence, sentences
from regard.sequence import Tokens
from regard.tasks.translate.recipe import TranslationModel
from regard.trace import record

WEIGHTS = "encoder.layers.*.attention.weights"
LIMIT, MAX_LENGTH = 40, 16
"""most words to generate for any sentence, and for a sentence of pronouns.py"""

INPUTS = (
    Input("first", PronounSentence("animal", "street", "tired").english, "what is tired?"),
    Input("second", PronounSentence("animal", "street", "wide").english, "one word differs: what is wide?"),
    Input("word", "it", "the word whose attention is shown"),
    Input("layer", 2, "encoder layer, from 1", bounds=(1, 64)),
    Input("model", "", "a run of your own; default: a small model for such sentences, trained once"),
)


def compute(page: LessonBuilder) -> None:
    """Both sentences: attention of the word; then its attention is removed; then held-out sentences."""
    word, layer, path = (page.data(name) for name in ("word", "layer", "model"))
    readers = {name: LessonTranslator.load(path, "pronoun", page.data(name)) for name in ("first", "second")}
    layers = len(readers["first"].model.module.encoder.layers)  # type: ignore[arg-type]
    if layer > layers:
        raise ConfigError(f"layer: expected one from 1 to {layers}, got {layer}")
    for name, reader in readers.items():
        if word not in reader.words:
            raise ConfigError(f'word: expected a word of both sentences, and "{word}" is not in {name}')
        _attention(page, name, reader, reader.words.index(word), layer - 1)
    for name, reader in readers.items():
        _mask_word(page, name, reader, reader.words.index(word))
    _mask_each(page, readers["first"])
    if all(_knows_vocabulary(reader.model) for reader in readers.values()) and word == "it":
        _held_out(page, path)


def _attention(page: LessonBuilder, name: str, reader: LessonTranslator, at: int, layer: int) -> None:
    choices, trace = reader.search(Beam(1, eos=reader.model.vocabularies.target.eos), LIMIT)
    weights = torch.stack([seen.data[0] for seen in trace.find(WEIGHTS)])  # (layer, head, query, key)
    mean, words = weights[layer].mean(0), reader.words
    heads = [f"layer {i + 1}, head {j + 1}" for i in range(len(weights)) for j in range(weights.shape[1])]
    page.step(
        f"The {name} sentence in the encoder",
        "Arcs from each word to the words it attends to: the mean of all heads of a layer. Choose a word to see its "
        "own."
        if name == "first"
        else "The same words except one, and the pronoun refers to something else.",
        r"A = \softmax(\frac{Q K^\top}{\sqrt{d}})" if name == "first" else "",
        f"{name} layer model",
        value(f"A_{name}", mean, "query key", "A", {"query": words, "key": words}, "arcs"),
        value(f"output_{name}", reader.text(collect(choices)[0][0].tokens), "", r"\text{translation}"),
    )
    page.step(
        f"Attention of the word, the {name} sentence",
        "Its row of that matrix, then its row in every head of every layer. A head may attend to a noun, to the "
        "adjective that decides, or to words without any meaning here."
        if name == "first"
        else "",
        "",
        f"A_{name} {name} word model",
        value(f"row_{name}", mean[at], "key", r"\text{its row}", {"key": words}, "weights"),
        value(f"heads_{name}", weights[:, :, at].flatten(0, 1), "head key", r"\text{every head}",
              {"head": heads, "key": words}, "weights"),
    )  # fmt: skip
    wrong = float((weights.sum(-1) - 1).abs().max())
    page.compare(f"the sum of each row of weights and 1, the {name} sentence", 0.0, wrong, 1e-5)


def attend_to_itself(at: int | Tensor) -> Callable[[Tensor], Tensor]:
    """Replacement of attention weights: the word at a position (of each row) attends only to itself.

    >>> attend_to_itself(1)(torch.full((1, 1, 2, 2), 0.5))[0, 0].tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """

    def change(weights_NHSS: Tensor) -> Tensor:
        changed = weights_NHSS.clone()
        rows = torch.arange(len(changed))
        places = torch.as_tensor(at).expand(len(changed))
        changed[rows, :, places] = 0.0
        changed[rows, :, places, places] = 1.0
        return changed

    return change


def _greedy(reader: LessonTranslator) -> Hypothesis:
    target = reader.model.vocabularies.target
    beam, prompt = Beam(1, eos=target.eos), Tokens.pad([[target.sos]])
    return search(reader.model.module, reader.source, prompt, beam, torch.tensor([LIMIT]))[0][0]


def _mask_word(page: LessonBuilder, name: str, reader: LessonTranslator, at: int) -> None:
    module, plain = reader.model.module, _greedy(reader)
    answer = Tokens.pad([[reader.model.vocabularies.target.sos, *plain.tokens]])
    with record(module, {WEIGHTS: attend_to_itself(at)}):
        masked = _greedy(reader)
        masked_log_p = float(score(module, reader.source, answer).totals[0])
    page.step(
        f"Without its attention, the {name} sentence",
        "Attention weights alone do not show whether they matter. So the word is isolated in all encoder layers: it "
        "attends only to itself. The output, and the probability of the previous answer, show whether its attention "
        "was needed; other words, and the decoder, may still resolve the pronoun."
        if name == "first"
        else "",
        "",
        f"{name} word model",
        value(f"masked_{name}", reader.text(masked.tokens), "", r"\text{isolated}"),
        value(f"log_p_{name}", plain.score, "", r"\text{log p before}"),
        value(f"masked_log_p_{name}", masked_log_p, "", r"\text{log p isolated}"),
    )
    forced = float(score(module, reader.source, answer).totals[0])
    about = f"the answer's log-probability, decoded and teacher-forced, the {name} sentence"
    page.compare(about, forced, plain.score, 1e-4)


def _mask_each(page: LessonBuilder, reader: LessonTranslator) -> None:
    size = len(reader.words)
    sources = Tokens.full(reader.source.data.expand(size, -1).contiguous())
    answers = Tokens.pad([[reader.model.vocabularies.target.sos, *_greedy(reader).tokens]] * size)
    with record(reader.model.module, {WEIGHTS: attend_to_itself(torch.arange(size))}):
        totals = score(reader.model.module, sources, answers).totals
    page.step(
        "Each word isolated in turn, the first sentence",
        "The log-probability of the answer when a single word attends only to itself. The lower, the more the answer "
        "depends on the attention of that word: this is where the pronoun is resolved.",
        r"\log p(\text{answer} \mid \text{one word isolated})",
        "first log_p_first model",
        value("in_turn", totals, "word", r"\text{log p}", {"word": reader.words}),
        value("most_needed", reader.words[int(totals.argmin())], "", r"\text{needed most}"),
    )


def _knows_vocabulary(model: TranslationModel) -> bool:
    """Whether all words of these sentences are in the model's vocabulary."""
    tokenizer = model.vocabularies.source
    ids = tokenizer.encode_batch([one.english for one in sentences()])
    return not any(tokenizer.unk in row for row in ids)


def _held_out(page: LessonBuilder, path: str) -> None:
    found = evaluate_pronouns(str(path or train_missing(["pronoun"])[0]))
    layers = [f"layer {i + 1}" for i in range(len(found["attends"]))]
    page.step(
        "On held-out sentences",
        "Over all held-out sentences of this kind: how often il or elle is correct; how often with the word isolated; "
        "and how often the word attends more to its antecedent than to the other noun, by the mean of a layer's heads. "
        f"One half would be chance. {verdict(found['right'][0], max(found['attends']))}",
        "",
        "model word",
        value("right", found["right"][0], "", r"\text{correct}"),
        value("right_masked", found["right_masked"][0], "", r"\text{correct, isolated}"),
        value("attends", found["attends"], "layer", r"\text{attends to its antecedent}", {"layer": layers}),
        value("sentences", len([one for one in sentences() if one.held_out]), "", r"\text{sentences}"),
    )


def verdict(right: float, attends: float) -> str:
    """Summary: is the model correct, and does the pronoun attend to its antecedent?"""
    if right < 0.9:
        return "This model is often wrong, so its attention says little."
    if attends >= 0.75:
        return "This model is correct, and its pronoun attends to its antecedent."
    return (
        "This model is correct, and its pronoun does not attend to its antecedent: other words and the decoder resolve "
        "it. Attention is not an explanation."
    )


@cache
def evaluate_pronouns(path: str) -> dict[str, list[float]]:
    """On held-out sentences: accuracy of the pronoun, also isolated, and how often it attends to its antecedent."""
    model = load_translator(path)
    kept = [one for one in sentences() if one.held_out]
    target, words = model.vocabularies.target, [one.english.split() for one in kept]
    source = model.translator().pad_source(model.vocabularies.source.encode_batch([one.english for one in kept]))
    it = torch.tensor([row.index("it") for row in words])
    antecedent = torch.tensor([row.index(one.antecedent) for row, one in zip(words, kept)])
    other = torch.tensor([row.index(one.other_noun) for row, one in zip(words, kept)])
    prompt, limits = Tokens.full(torch.full((len(kept), 1), target.sos)), torch.full((len(kept),), MAX_LENGTH)
    with record(model.module) as trace, torch.no_grad():
        model.module.encoder(source)
    rows = torch.arange(len(kept))
    attends = []
    for seen in trace.find(WEIGHTS):
        mean = seen.data.mean(1)[rows, it]
        attends.append(float((mean[rows, antecedent] > mean[rows, other]).double().mean()))
    shares = {}
    for name, replace in (("right", {}), ("right_masked", {WEIGHTS: attend_to_itself(it)})):
        with record(model.module, replace) if replace else nullcontext():
            found = search(model.module, source, prompt, Beam(1, eos=target.eos), limits)
        pronouns = [set(target.tokens(best[0].tokens)) & {"il", "elle"} for best in found]
        shares[name] = [sum(p == {one.pronoun} for p, one in zip(pronouns, kept)) / len(kept)]
    return {**shares, "attends": attends}


FIGURE = "first > A_first > row_first; first > output_first; second > A_second > row_second; second > output_second"
EXERCISES = (
    Exercise(
        "What do the attention weights of the word over the first sentence sum to?",
        lambda lesson: sum(lesson.value("row_first").data),
        hint="they come from a softmax, and so does their mean over heads",
    ),
    Exercise(
        "Which word decides whether the pronoun is the animal or the street: the word that differs between the first "
        "and the second sentence? Give the one of the second.",
        lambda lesson: lesson.value("second").data.split()[-1],
        hint="the last word",
    ),
)
READING = Reading(
    "Attention is not an explanation: a pronoun that is resolved elsewhere",
    ("coreference (anaphora) resolution", "antecedent", "ablation", "attention is not explanation"),
    (
        "Jain and Wallace 2019, Attention is not explanation",
        "Wiegreffe and Pinter 2019, Attention is not not explanation",
        "Vaswani et al. 2017, Attention is all you need, appendix: attention visualizations",
    ),
)
