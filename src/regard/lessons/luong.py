"""Lesson: Luong's attention scores compared, the attention vector, and input feeding."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.bahdanau import SOURCE
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.reading import Reading
from regard.models.luong import LuongConfig, LuongDecoder, LuongSource
from regard.nn.alignment import ScoreName
from regard.sequence import Padded
from regard.spaces import Words
from regard.trace import record

SCORES: dict[ScoreName, tuple[str, str, str]] = {
    "dot": (
        "A dot product: both states must have the same width, and nothing is learned.",
        r"e_s = h_t \cdot \bar{h}_s",
        "h H",
    ),
    "general": ("A matrix between them learns which components correspond.", r"e_s = h_t^\top W \bar{h}_s", "h W H"),
    "concat": (
        "Bahdanau's small network, with both matrices concatenated.",
        r"e_s = v \cdot \tanh(W_a [h_t; \bar{h}_s])",
        "v Wa h H",
    ),
    "cosine": (
        "The angle alone, independent of the lengths; since a cosine is never above 1, a factor controls how sharp the "
        "softmax is.",
        r"e_s = \beta \frac{h_t \cdot \bar{h}_s}{\|h_t\| \|\bar{h}_s\|}",
        "sharpness h H",
    ),
}
"""text, formula and operands of each score"""

INPUTS = (
    Input(
        "H",
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [0.0, -2.0]],
        "encoder states, one per word",
        ("source", "unit"),
        r"\bar{h}_s",
        {"source": SOURCE},
    ),
    Input("h", [1.0, 0.5], "decoder state, after its step", ("unit",), "h_t"),
    Input("W", [[1.0, 1.0], [0.0, 1.0]], "for general", ("unit", "other")),
    Input("Wa", [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], "for concat", ("inner", "both"), "W_a"),
    Input("v", [1.0, 1.0], "for concat", ("inner",)),
    Input("sharpness", 1.0, "for cosine: factor of the cosine", symbol=r"\beta", bounds=(1e-3, 1e3)),
    Input("score", "general", "the score used for the context", choices=tuple(SCORES)),
    Input("Wc", [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], "attention vector weights", ("unit", "both"), "W_c"),
    Input("e", [0.5, -0.5], "embedding of the generated word", ("word",)),
)


def compute(page: LessonBuilder) -> None:
    """Each score by the package's decoder; the selected one gives context and attention vector."""
    numbers = {one.name: page.tensor(one.name) for one in INPUTS if one.name != "score"}
    units = len(numbers["h"])
    for name, expected in (("W", units), ("Wa", 2 * units), ("Wc", 2 * units)):
        if (size := numbers[name].shape[1]) != expected:
            raise ConfigError(f"{name}: expected rows of {expected} numbers for {units} units, got {size}")
    labels, seen = page.labels("H"), {}
    for kind, (text, formula, using) in SCORES.items():
        seen[kind] = trace_decoder(kind, numbers)
        page.step(
            f"The score: {kind}",
            text,
            formula,
            using,
            value(f"scores_{kind}", seen[kind]["scores"], "source", "e_s", labels),
            value(f"weights_{kind}", seen[kind]["weights"], "source", r"\alpha_s", labels, "weights"),
        )
    selected = page.data("score")
    _attention_vector(page, selected, seen[selected])
    formulas = _by_formula(numbers)
    for kind in SCORES:
        page.compare(f"the formula and the package's scores, {kind}", formulas[kind], seen[kind]["scores"])
    vector = torch.tanh(numbers["Wc"] @ torch.cat([seen[selected]["context"], numbers["h"]]))
    page.compare("the formula and the package's attention vector", vector, seen[selected]["attended"])


def _attention_vector(page: LessonBuilder, selected: str, seen: Mapping[str, Tensor]) -> None:
    page.step(
        f"The context, by {selected}",
        "The weighted sum of the encoder states.",
        r"c_t = \sum_s \alpha_s \bar{h}_s",
        f"score weights_{selected} H",
        value("context", seen["context"], "unit", "c_t"),
    )
    page.step(
        "The attention vector",
        "Context and state, concatenated and passed through one layer: this is the input of the softmax over the "
        "vocabulary.",
        r"\tilde{h}_t = \tanh(W_c [c_t; h_t])",
        "Wc context h",
        value("attended", seen["attended"], "unit", r"\tilde{h}_t"),
    )
    page.step(
        "Input feeding",
        "The next step reads the generated word and this vector, so that it has information about previous attention "
        "decisions.",
        r"x_{t+1} = [e; \tilde{h}_t]",
        "e attended",
        value("fed", torch.cat([page.tensor("e"), seen["attended"]]), "both", "x_{t+1}"),
    )


def trace_decoder(kind: ScoreName, numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Scores, weights, context and attention vector of the package's Luong decoder with the given weights."""
    H, h = numbers["H"], numbers["h"]
    decoder = _decoder(kind, len(h), numbers)
    states = Padded(H[None], torch.tensor([len(H)]), ragged=False)
    source = LuongSource(decoder.cross.annotate(states), decoder.context_projection(states.data))
    with record(decoder) as trace, torch.no_grad():
        attended = decoder.attend(h[None, None], source)[0, 0]
    found = {seen.name.removeprefix("cross."): seen.data[0, 0, 0] for seen in trace.records}
    return {**found, "attended": attended}


def _decoder(kind: ScoreName, units: int, numbers: Mapping[str, Tensor]) -> LuongDecoder:
    model = LuongConfig(layers=1, width=units, score=kind, dropout=0.0).build(Words(5), Words(5)).double()
    decoder: LuongDecoder = model.requires_grad_(False).decoder  # type: ignore[assignment]
    weights = {
        "context_projection.weight": numbers["Wc"][:, :units],
        "hidden_projection.weight": numbers["Wc"][:, units:],
    }
    match kind:
        case "general":
            weights["cross.score.key.weight"] = numbers["W"]
        case "concat":
            weights["cross.score.query.weight"] = numbers["Wa"][:, :units]
            weights["cross.score.key.weight"] = numbers["Wa"][:, units:]
            weights["cross.score.v.weight"] = numbers["v"][None]
        case "cosine":
            weights["cross.score.log_sharpness"] = numbers["sharpness"].log()
    for name, weight in weights.items():
        decoder.get_parameter(name).data = weight.clone()  # replaced, since concat's inner width is free here
    return decoder


def _by_formula(numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    H, h = numbers["H"], numbers["h"]
    both = torch.cat([h.expand(len(H), -1), H], 1)
    lengths = (H.norm(dim=1) * h.norm()).clamp(min=1e-12)
    return {
        "dot": H @ h,
        "general": H @ numbers["W"].T @ h,
        "concat": torch.tanh(both @ numbers["Wa"].T) @ numbers["v"],
        "cosine": numbers["sharpness"] * (H @ h) / lengths,
    }


FIGURE = (
    "h > scores_general; H > scores_general; W > scores_general > weights_general > context > attended > "
    "fed; h > attended; e > fed"
)
EXERCISES = (
    Exercise(
        "With h = [0, 1], what are the four dot scores? Four numbers.",
        "scores_dot",
        {"h": [0, 1]},
        hint="the second component of each encoder state",
    ),
    Exercise(
        "A cosine ignores the length of a vector. With h = [2, 0], what is the first cosine score?",
        item("scores_cosine", 0),
        {"h": [2, 0]},
        hint="a cosine ignores length; the first encoder state is [1, 0]",
    ),
)
READING = Reading(
    "Luong: dot, general, concat, input feeding",
    ("multiplicative attention", "global attention", "input feeding", "attentional hidden state"),
    ("Luong, Pham and Manning 2015, Effective approaches to attention-based neural machine translation, section 3",),
)
