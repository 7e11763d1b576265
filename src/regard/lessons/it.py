"""Lesson: what "it" stands for, and where a small trained translator looks when it reads the word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache

import torch
from torch import Tensor

from regard.decode import Beam, collect, score, search
from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.cached_models import trained
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.lesson import Value
from regard.lessons.engine.views import Reader
from regard.lessons.pronouns import Sentence, sentences
from regard.run import load
from regard.sequence import Tokens
from regard.tasks.translate.recipe import TranslationModel
from regard.trace import record

value = Page.value
WEIGHTS = "encoder.layers.*.attention.weights"
LIMIT, LONGEST = 40, 16
"""words that may be said about a sentence of anybody's, and about one of ours"""

INPUTS = (
    Input("first", Sentence("animal", "street", "tired").english, "what is tired?"),
    Input("second", Sentence("animal", "street", "wide").english, "one word is another: what is wide?"),
    Input("word", "it", "the word whose looks are followed"),
    Input("layer", 2, "of the encoder, from 1 on", bounds=(1, 64)),
    Input("model", "", "a run of your own; nothing: a small one that translates such sentences, trained once"),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Both sentences: arcs, the row of the word, every head; then the word is blinded; then sentences never seen."""
    page = Page(given)
    word, layer, path = (given[name].data for name in ("word", "layer", "model"))
    readers = {name: Reader.of(path, "pronoun", given[name].data) for name in ("first", "second")}
    layers = len(readers["first"].model.module.encoder.layers)  # type: ignore[arg-type]
    if layer > layers:
        raise ConfigError(f"layer: expected one from 1 to {layers}, got {layer}")
    for name, reader in readers.items():
        if word not in reader.words:
            raise ConfigError(f'word: expected a word of both sentences, and "{word}" is not in {name}')
        _sentence(page, name, reader, reader.words.index(word), layer - 1)
    for name, reader in readers.items():
        _blinded(page, name, reader, reader.words.index(word))
    _in_turn(page, readers["first"])
    if all(_knows(reader.model) for reader in readers.values()) and word == "it":
        _held_out(page, path)
    return page.work()


def _sentence(page: Page, name: str, reader: Reader, at: int, layer: int) -> None:
    choices, trace = reader.search(Beam(1, eos=reader.model.vocabularies.target.eos), LIMIT)
    weights = torch.stack([seen.data[0] for seen in trace.find(WEIGHTS)])  # (layer, head, query, key)
    chosen, words = weights[layer].mean(0), reader.words
    heads = [f"layer {i + 1}, head {j + 1}" for i in range(len(weights)) for j in range(weights.shape[1])]
    page.step(
        f"The {name} sentence, read by the encoder",
        "Arcs from each word to those it looks at: the mean of all heads of a layer. Choose a word to see its own."
        if name == "first"
        else "The same words but one, and another thing is meant.",
        r"A = \softmax(\frac{Q K^\top}{\sqrt{d}})" if name == "first" else "",
        f"{name} layer model",
        value(f"A_{name}", chosen, "query key", "A", {"query": words, "key": words}, "arcs"),
        value(f"said_{name}", reader.text(collect(choices)[0][0].tokens), "", r"\text{translated}"),
    )
    page.step(
        f"Where the word looks, the {name} sentence",
        "Its row of that picture, then its row in every head of every layer. A head may look at a noun, at the "
        "adjective that tells, or at nothing that means anything."
        if name == "first"
        else "",
        "",
        f"A_{name} {name} word model",
        value(f"row_{name}", chosen[at], "key", r"\text{its row}", {"key": words}, "weights"),
        value(f"heads_{name}", weights[:, :, at].flatten(0, 1), "head key", r"\text{every head}",
              {"head": heads, "key": words}, "weights"),
    )  # fmt: skip
    off = float((weights.sum(-1) - 1).abs().max())
    page.agree(f"the sum of each row of weights and 1, the {name} sentence", 0.0, off, 1e-5)


def blinding(at: int | Tensor) -> Callable[[Tensor], Tensor]:
    """Weights with which the word at a place (of each row) sees nothing but itself.

    >>> blinding(1)(torch.full((1, 1, 2, 2), 0.5))[0, 0].tolist()
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


def _blinded(page: Page, name: str, reader: Reader, at: int) -> None:
    module, theirs = reader.model.module, reader.model.vocabularies.target
    beam, prompt, limit = Beam(1, eos=theirs.eos), Tokens.of([[theirs.sos]]), torch.tensor([LIMIT])
    plain = search(module, reader.source, prompt, beam, limit)[0][0]
    answer = Tokens.of([[theirs.sos, *plain.tokens]])
    with record(module, {WEIGHTS: blinding(at)}):
        cut = search(module, reader.source, prompt, beam, limit)[0][0]
        likely = float(score(module, reader.source, answer).totals[0])
    page.step(
        f"Without its looks, the {name} sentence",
        "A picture of weights does not say whether they matter. So the word is blinded in all layers of the encoder: "
        "it sees nothing but itself. What is said then, and how likely the answer of before is, says whether it needed "
        "its looks; other words, and the decoder, may still find out by themselves."
        if name == "first"
        else "",
        "",
        f"{name} word model",
        value(f"cut_{name}", reader.text(cut.tokens), "", r"\text{blinded}"),
        value(f"likely_{name}", plain.score, "", r"\text{log p before}"),
        value(f"unlikely_{name}", likely, "", r"\text{log p blinded}"),
    )
    seen = float(score(module, reader.source, answer).totals[0])
    page.agree(f"the answer's log-probability, searched and read at once, the {name} sentence", seen, plain.score, 1e-4)


def _in_turn(page: Page, reader: Reader) -> None:
    module, theirs, size = reader.model.module, reader.model.vocabularies.target, len(reader.words)
    limit = torch.tensor([LIMIT])
    plain = search(module, reader.source, Tokens.of([[theirs.sos]]), Beam(1, eos=theirs.eos), limit)[0][0]
    many = Tokens.full(reader.source.data.expand(size, -1).contiguous())
    answer = Tokens.of([[theirs.sos, *plain.tokens]] * size)
    with record(module, {WEIGHTS: blinding(torch.arange(size))}):
        totals = score(module, many, answer).totals
    page.step(
        "Every word blinded in turn, the first sentence",
        "How likely the answer is when one word alone may not look around. The lower, the more the answer needs what "
        "that word saw: here is where the work is done.",
        r"\log p(\text{answer} \mid \text{one word blinded})",
        "first likely_first model",
        value("in_turn", totals, "word", r"\text{log p}", {"word": reader.words}),
        value("neediest", reader.words[int(totals.argmin())], "", r"\text{needs it most}"),
    )


def _knows(model: TranslationModel) -> bool:
    """Whether a model has learnt the words of these sentences."""
    tokenizer = model.vocabularies.source
    ids = tokenizer.encode_batch([one.english for one in sentences()])
    return not any(tokenizer.unk in row for row in ids)


def _held_out(page: Page, path: str) -> None:
    found = measured(str(path or trained(["pronoun"])[0]))
    layers = [f"layer {i + 1}" for i in range(len(found["looks"]))]
    page.step(
        "On sentences that it never learnt from",
        "Of all sentences of this kind that were kept aside: how often il or elle is right; how often with the word "
        "blinded; and how often the word looks more at what is meant than at the other noun, by the mean of a layer's "
        f"heads. One half would be chance. {judged(found['right'][0], max(found['looks']))}",
        "",
        "model word",
        value("right", found["right"][0], "", r"\text{right}"),
        value("right_cut", found["right_cut"][0], "", r"\text{right, blinded}"),
        value("looks", found["looks"], "layer", r"\text{looks at what is meant}", {"layer": layers}),
        value("tried", len([one for one in sentences() if one.held_out]), "", r"\text{sentences}"),
    )


def judged(right: float, looks: float) -> str:
    """What a model does, in words: is it right, and does its pronoun look at what is meant?

    >>> judged(0.4, 0.5)
    'This model is not often right, so its looks say little.'
    """
    if right < 0.9:
        return "This model is not often right, so its looks say little."
    if looks >= 0.75:
        return "This model is right, and its pronoun looks where people would."
    return (
        "This model is right, and its pronoun does not look where people would: other words and the decoder find out "
        "by themselves. Attention is not an explanation."
    )


@cache
def measured(path: str) -> dict[str, list[float]]:
    """Over the sentences kept aside: shares of right pronouns, as it is and blinded, and of looks at what is meant.

    >>> measured("runs/none")
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """
    model = load(path)
    assert isinstance(model, TranslationModel)
    kept = [one for one in sentences() if one.held_out]
    ours, theirs = model.vocabularies.source, model.vocabularies.target
    source = model.translator().source(ours.encode_batch([one.english for one in kept]))
    words = [one.english.split() for one in kept]
    places = {
        name: torch.tensor([row.index(name(one)) for row, one in zip(words, kept)]) for name in (_it, _meant, _other)
    }
    prompt, limits = Tokens.full(torch.full((len(kept), 1), theirs.sos)), torch.full((len(kept),), LONGEST)
    with record(model.module) as trace, torch.no_grad():
        model.module.encoder(source)
    rows = torch.arange(len(kept))
    looks = []
    for seen in trace.find(WEIGHTS):
        mean = seen.data.mean(1)[rows, places[_it]]
        looks.append(float((mean[rows, places[_meant]] > mean[rows, places[_other]]).double().mean()))
    shares = {}
    for name, replace in (("right", {}), ("right_cut", {WEIGHTS: blinding(places[_it])})):
        with record(model.module, replace) if replace else nullcontext():
            found = search(model.module, source, prompt, Beam(1, eos=theirs.eos), limits)
        said = [set(theirs.tokens(best[0].tokens)) & {"il", "elle"} for best in found]
        shares[name] = [sum(one == {wanted.pronoun} for one, wanted in zip(said, kept)) / len(kept)]
    return {**shares, "looks": looks}


def _it(one: Sentence) -> str:
    return "it"


def _meant(one: Sentence) -> str:
    return one.meant


def _other(one: Sentence) -> str:
    return one.place if one.meant == one.walker else one.walker


PLAN = Plan(INPUTS, _work)
