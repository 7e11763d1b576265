"""Lesson: ELMo: one word in two sentences, two directions, and a mix of layers by hand."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.lessons.engine.small_elmo import STACKS, direction_states, package_encoder, package_layers

WEIGHTS = ("E", "F1", "F2", "B1", "B2", "w", "gamma")
LAYERS = ["word", "layer 1", "layer 2"]
GATES = "rows for the gates i, f, g and o; columns for what is read, the state and the bias"

INPUTS = (
    Input("first", "boats line the bank of water", "a sentence"),
    Input("second", "clients trust the bank with cash", "another one"),
    Input("word", "bank", "a word of both"),
    Input("vocabulary", [".", "boats", "clients", "line", "trust", "the", "bank", "of", "with", "water", "cash"],
          "all words; the first is read before a sentence, as the end of another", ("token",)),
    Input(
        "E",
        [[-0.5, -0.4], [-0.2, 1.4], [0.4, 1.3], [0.5, -0.1], [0.8, -0.4], [-0.5, 1.9], [3.1, -2.6],
         [3.5, 4], [-4, 0.2], [1, 4], [1.6, 1.2]],
        "word vectors, in the place of a character CNN", ("token", "width"),
    ),
    Input(
        "F1",
        [[0.4, 1.3, -0.2, -1.6, 3.6], [1.4, 0.5, -2.7, -1.6, 3.5], [-2.3, -1.4, -0.5, 0.4, -3.5],
         [-0.6, 0.7, -0.8, -4, 1.1], [-1, -2.4, -4, -1.5, 0.8], [-4, -0.4, 0.2, 0.8, -0.2],
         [-1.9, -0.3, 0.9, -3.2, 4], [-0.2, 3.6, -2.5, -4, 3.8]],
        f"forward LSTM, layer 1: {GATES}", ("gate", "in"), "F_1",
    ),
    Input(
        "F2",
        [[0.4, -2.4, -1.2, 0.2, 4], [1.5, -1.4, -2.8, -0.2, 4], [0.6, 3.4, 2.4, 4, -0.2],
         [-3.8, 4, -3.5, -1.7, -0.1], [4, -4, 0.2, 0.9, -1.9], [-2.7, -0.7, 2, -2.9, 4],
         [-2.8, -4, -2.7, 2.4, 3.6], [1.6, 4, -4, 4, 2.1]],
        "forward LSTM, layer 2", ("gate", "in"), "F_2",
    ),
    Input(
        "B1",
        [[-1.2, 1.5, -0.3, -0.7, 3.6], [3.1, 2.7, 4, -4, 3.1], [1.8, 0.5, 0.5, -1.6, 0.8],
         [1.9, -4, -3.6, 0.7, -1.2], [1.6, -2.8, 1.7, 1, 1.8], [-0.6, 1, 1.7, -3.9, -1.6],
         [-1.3, 2.1, 1.1, -0.7, 4], [1.9, 1.9, -3.7, 0.3, 2.1]],
        "backward LSTM, layer 1", ("gate", "in"), "B_1",
    ),
    Input(
        "B2",
        [[-0.5, 0.6, -1.4, -2.3, 4], [-2.9, 2.4, 2.4, -2.7, 4], [4, -3.1, 2.8, 4, -2.9],
         [-0.5, -1.1, -4, -3.8, 0.7], [4, 0.8, -2.7, -1, 1], [1.1, 4, -1.1, -0.3, 0.4],
         [-0.1, -0.8, 0.9, -0.2, 4], [-4, 0.4, -1.2, -0.4, 3.5]],
        "backward LSTM, layer 2", ("gate", "in"), "B_2",
    ),
    Input(
        "O",
        [[-4.4, -9], [3.9, 8.6], [4, 8.4], [-6.9, 4.5], [-9, 0.3], [4.2, -9], [-9, -4.6], [-2.1, 9],
         [9, 4.9], [7.7, -3.8], [9, -1.8]],
        "output layer of both language models", ("token", "width"),
    ),
    Input("w", [0.0, 1.0, 2.0], "weights of the layers before the softmax; a task learns them", ("layer",)),
    Input("gamma", 0.5, "scale of the mix, learned too", symbol=r"\gamma", bounds=(-100, 100)),
)  # fmt: skip


def compute(page: LessonBuilder) -> None:
    """The word in both sentences, direction by direction and layer by layer, then the mix."""
    sentences = [page.words("first"), page.words("second")]
    weights = {name: page.tensor(name) for name in WEIGHTS}
    rows = [_ids(page, name, words) for name, words in zip(("first", "second"), sentences, strict=True)]
    at = [words.index(page.data("word")) for words in sentences]
    states = [{side: direction_states(weights, ids, side) for side in STACKS} for ids in rows]
    _same_vector(page, weights["E"], rows, at)
    _directions(page, states, sentences)
    layers = [_layers_at(weights["E"], *one) for one in zip(rows, states, at, strict=True)]
    _side_by_side(page, layers)
    _one_side(page, weights, rows, at)
    _mix(page, layers, weights["w"], weights["gamma"])
    _predictions(page, states, at)
    encoder = package_encoder(weights)
    for name, ids, own, place in zip(("first", "second"), rows, layers, at, strict=True):
        found, mixed = package_layers(encoder, ids)
        page.compare(
            f"layers at the word of the {name} sentence: formulas and the package's ELMo", own, found[:, place]
        )
        page.compare(f"mix of the {name} sentence: by hand and the package's", page.tensor(f"{name}_mix"), mixed[place])
    page.expect("cosine of the word vectors", 1.0, "cosine_word")
    page.expect("cosines of both layers", [0.8757, 0.6598], "cosines_above")
    page.expect("next words", ["of", "with"], "best_forward", 0)
    page.expect("cosine of the mixes", 0.7994, "cosine_mix")


def _ids(page: LessonBuilder, name: str, words: Sequence[str]) -> list[int]:
    """Rows of the embedding table; an error where the inputs do not fit each other."""
    vocabulary, word = page.data("vocabulary"), page.data("word")
    E, F1, F2, B1, B2, readout, w = page.tensors("E F1 F2 B1 B2 O w")
    if unknown := [one for one in words if one not in vocabulary]:
        raise page.error(f'{name}: expected words of {", ".join(vocabulary)}, got "{unknown[0]}"')
    if word not in words:
        raise page.error(f'{name}: expected a sentence with the word "{word}", got "{" ".join(words)}"')
    width = E.shape[1]
    for key, rows in (("F1", F1), ("F2", F2), ("B1", B1), ("B2", B2)):
        if rows.shape != (4 * width, 2 * width + 1):
            raise page.error(f"{key}: expected {4 * width} rows of {2 * width + 1} numbers, got {len(rows)} rows")
    if readout.shape[1] != width:
        raise page.error(f"O: expected rows of {width} numbers, as wide as E, got {readout.shape[1]}")
    if len(w) != len(LAYERS):
        raise page.error(f"w: expected {len(LAYERS)} numbers, one per layer, got {len(w)}")
    return [vocabulary.index(one) for one in words]


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of the angle between two vectors."""
    return torch.nn.functional.cosine_similarity(a, b, dim=-1)


def _layers_at(E: Tensor, ids: Sequence[int], states: dict[str, Tensor], place: int) -> Tensor:
    """(3, 2 x width): the word vector twice, then both directions of each layer, at one position."""
    both = torch.cat([states["forward"][:, place], states["backward"][:, place]], 1)
    return torch.cat([E[ids[place]].repeat(2)[None], both])


def _same_vector(page: LessonBuilder, E: Tensor, rows: Sequence[Sequence[int]], at: Sequence[int]) -> None:
    one, two = (E[ids[place]] for ids, place in zip(rows, at, strict=True))
    page.step(
        "One word, one vector",
        "A table of word vectors knows one row for bank, whatever the sentence: the bank of a river and the bank that "
        "keeps cash are the same point. ELMo starts from such a vector too, computed from the characters of the word.",
        r"x = E_{\text{word}}",
        "first second word vocabulary E",
        value("x_first", one, "width", r"x, \text{ first}"),
        value("x_second", two, "width", r"x, \text{ second}"),
        value("cosine_word", cosine(one, two), "", r"\cos"),
    )


def _directions(page: LessonBuilder, states: Sequence[dict[str, Tensor]], sentences: Sequence[list[str]]) -> None:
    texts = {
        "forward": (
            "Forward: what is to the left",
            "An LSTM reads each sentence from left to right, after the end of another one. Its state at a word depends "
            "on that word and everything before it: at the bank the two sentences have become different. Layer 2 reads "
            "the states of layer 1, which are added to its own.",
        ),
        "backward": (
            "Backward: what is to the right",
            "A second LSTM with weights of its own reads from the end to the beginning. Its state at a word depends on "
            "that word and everything after it.",
        ),
    }
    for side, (title, text) in texts.items():
        key = side[0]
        results = []
        for name, found, words in zip(("first", "second"), states, sentences, strict=True):
            for number in (1, 2):
                symbol = rf"h_{number}^{key}, \text{{ {name}}}"
                labels = {"position": list(words)}
                results.append(
                    value(f"{key}{number}_{name}", found[side][number - 1], "position width", symbol, labels, "signed")
                )
        formula = r"h_1 = \text{LSTM}_1(x) \quad h_2 = \text{LSTM}_2(h_1) + h_1"
        page.step(title, text, formula, f"first second vocabulary E {' '.join(STACKS[side])}", *results)


def _side_by_side(page: LessonBuilder, layers: Sequence[Tensor]) -> None:
    labels = {"layer": LAYERS}
    found = cosine(layers[0], layers[1])
    page.step(
        "Both directions side by side",
        "The vectors of the word in a layer are those of both directions, one after the other; the word vector itself "
        "stands there twice. The two sentences agree in the word and differ in every layer above it.",
        r"h_j = [h_j^f; h_j^b]",
        "word x_first x_second f1_first f2_first b1_first b2_first f1_second f2_second b1_second b2_second",
        value("h_first", layers[0], "layer width", r"h, \text{ first}", labels),
        value("h_second", layers[1], "layer width", r"h, \text{ second}", labels),
        value("cosines", found, "layer", r"\cos", labels, "line"),
        value("cosines_above", found[1:], "layer", r"\cos \text{ above the word}", {"layer": LAYERS[1:]}),
    )


def _one_side(
    page: LessonBuilder, weights: dict[str, Tensor], rows: Sequence[Sequence[int]], at: Sequence[int]
) -> None:
    table = []
    for cut in ("whole", "left", "right"):
        line = []
        for side in STACKS:
            tops = []
            for ids, place in zip(rows, at, strict=True):
                start, end = (place if cut == "right" else 0), (place + 1 if cut == "left" else len(ids))
                tops.append(direction_states(weights, ids[start:end], side)[1, place - start])
            line.append(float(cosine(*tops)))
        table.append(line)
    labels = {"read": ["the whole sentences", "only up to the word", "only from the word on"], "side": list(STACKS)}
    page.step(
        "Each direction sees one side",
        "If the sentences end at the word, the backward LSTM has read the same in both: cosine 1. If they begin at the "
        "word, the forward LSTM has. Only together do they know the whole sentence.",
        r"\cos(h_2, h_2')",
        "first second word vocabulary E F1 F2 B1 B2",
        value("sides", table, "read side", r"\cos \text{ in layer 2}", labels),
    )
    page.compare("backward, up to the word: the same state in both sentences", 1.0, table[1][1])
    page.compare("forward, from the word on: the same state in both sentences", 1.0, table[2][0])


def _mix(page: LessonBuilder, layers: Sequence[Tensor], w: Tensor, gamma: Tensor) -> None:
    share = w.softmax(0)
    parts = [share[:, None] * found for found in layers]
    mixes = [gamma * found.sum(0) for found in parts]
    labels = {"layer": LAYERS}
    page.step(
        "The mix of layers",
        "Peters et al., 2018: a task does not take the top layer but a mean of all, with weights that it learns: a "
        "softmax over three numbers, and a scale. A tagger may rely on the lower layers, a question about the sense of "
        "a word on the upper ones.",
        r"s = \softmax(w) \quad \text{ELMo} = \gamma \sum_j s_j h_j",
        "w gamma h_first h_second",
        value("s", share, "layer", "s", labels, "weights"),
        value("parts_first", parts[0], "layer width", r"s_j h_j, \text{ first}", labels),
        value("first_mix", mixes[0], "width", r"\text{ELMo, first}"),
        value("second_mix", mixes[1], "width", r"\text{ELMo, second}"),
        value("cosine_mix", cosine(*mixes), "", r"\cos"),
    )
    page.compare("the weights of the layers sum to 1", 0.0, max_difference(share.sum(), torch.ones(()).double()))


def _predictions(page: LessonBuilder, states: Sequence[dict[str, Tensor]], at: Sequence[int]) -> None:
    readout, vocabulary = page.tensor("O"), page.data("vocabulary")
    results = []
    for side, what in (("forward", "next word"), ("backward", "word before")):
        rows = torch.stack(
            [(readout @ found[side][1, place]).softmax(0) for found, place in zip(states, at, strict=True)]
        )
        labels = {"sentence": ["first", "second"], "token": vocabulary}
        results.append(value(f"p_{side}", rows, "sentence token", rf"p(\text{{{what}}})", labels, "weights"))
        best = [vocabulary[int(row.argmax())] for row in rows]
        results.append(value(f"best_{side}", best, "sentence", rf"\text{{{what}}}", {"sentence": ["first", "second"]}))
    page.step(
        "Where the states come from",
        "Both LSTMs were trained as language models, on nothing but text: the forward one predicts the next word, the "
        "backward one the word before. To know what follows bank, the state has to remember which bank it is. The "
        "weights here were found so, on these two sentences, and rounded to tenths.",
        r"p = \softmax(O h_2)",
        "O vocabulary word first second f2_first f2_second b2_first b2_second",
        *results,
    )


FIGURE = (
    "first > x_first > f1_first > f2_first > h_first > first_mix; x_first > b1_first > b2_first > "
    "h_first; w > s > first_mix"
)
EXERCISES = (
    Exercise(
        "What is the cosine of the two vectors of bank before any layer has read its context?",
        "cosine_word",
        hint="the same row of the same table",
    ),
    Exercise(
        "With w = [0, 0, 0], what is the weight of each layer in the mix? Three numbers.",
        "s",
        {"w": [0, 0, 0]},
        hint="a softmax of equal numbers",
    ),
)
READING = Reading(
    'ELMo: two LSTM language models over character CNNs; "bank" twice, layer by layer',
    ("contextual word representation", "bidirectional language model", "scalar mix of layers"),
    ("Peters et al. 2018, Deep contextualized word representations, section 3",),
)
