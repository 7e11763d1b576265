"""Lesson: Luong's scores beside one another, the attention vector, and input feeding."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import tensor
from regard.lessons.engine.lesson import Value
from regard.models.luong import Looked, LuongConfig, LuongDecoder
from regard.nn.alignment import ScoreName
from regard.sequence import Padded
from regard.spaces import Words
from regard.trace import record

value = Page.value
SOURCE = ["je", "suis", "étudiant", "<EOS>"]
KINDS: tuple[ScoreName, ...] = ("dot", "general", "concat", "cosine")

INPUTS = (
    Input(
        "H",
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [0.0, -2.0]],
        "the encoder's states, one a word",
        ("source", "unit"),
        r"\bar{h}_s",
        {"source": SOURCE},
    ),
    Input("h", [1.0, 0.5], "the decoder's state, after its step", ("unit",), "h_t"),
    Input("W", [[1.0, 1.0], [0.0, 1.0]], "for general", ("unit", "other")),
    Input("Wa", [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], "for concat", ("inner", "both"), "W_a"),
    Input("v", [1.0, 1.0], "for concat", ("inner",)),
    Input("sharpness", 1.0, "for cosine: the cosine is multiplied by it", symbol=r"\beta", bounds=(1e-3, 1e3)),
    Input("score", "general", "which of them goes on", choices=KINDS),
    Input("Wc", [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], "makes the attention vector", ("unit", "both"), "W_c"),
    Input("e", [0.5, -0.5], "the vector of the word that was said", ("word",)),
)
FORMULAS: dict[ScoreName, tuple[str, str, str]] = {
    "dot": (
        "A plain product: state and states must be of one width, and nothing is learnt.",
        r"e_s = h_t \cdot \bar{h}_s",
        "h H",
    ),
    "general": (
        "A matrix between them learns what belongs together.",
        r"e_s = h_t^\top W \bar{h}_s",
        "h W H",
    ),
    "concat": (
        "Bahdanau's small network, with both matrices side by side.",
        r"e_s = v \cdot \tanh(W_a [h_t; \bar{h}_s])",
        "v Wa h H",
    ),
    "cosine": (
        "The angle alone, whatever the length; a factor makes it as sharp as is wanted, since a cosine is never above "
        "1.",
        r"e_s = \beta \frac{h_t \cdot \bar{h}_s}{\|h_t\| \|\bar{h}_s\|}",
        "sharpness h H",
    ),
}


def _work(given: Mapping[str, Value]) -> Work:
    """Each score through the package's decoder; the chosen one goes on to context and attention vector."""
    page = Page(given)
    _check(given)
    numbers = {name: tensor(put) for name, put in given.items() if name != "score"}
    along, seen = dict(given["H"].labels), {}
    for kind in KINDS:
        seen[kind] = looked(kind, numbers)
        text, formula, using = FORMULAS[kind]
        page.step(
            f"The score: {kind}",
            text,
            formula,
            using,
            value(f"scores_{kind}", seen[kind]["scores"], "source", "e_s", along),
            value(f"weights_{kind}", seen[kind]["weights"], "source", r"\alpha_s", along, "weights"),
        )
    chosen = given["score"].data
    _goes_on(page, chosen, seen[chosen], numbers)
    by_hand = _by_hand(numbers)
    for kind in KINDS:
        page.agree(f"the formula and the package's scores, {kind}", by_hand[kind], seen[kind]["scores"])
    context, h, Wc = seen[chosen]["context"], numbers["h"], numbers["Wc"]
    vector = torch.tanh(Wc @ torch.cat([context, h]))
    page.agree("the formula and the package's attention vector", vector, seen[chosen]["attended"])
    return page.work()


def _check(given: Mapping[str, Value]) -> None:
    units = len(given["h"].data)
    for name, size, wanted in (
        ("W", len(given["W"].data[0]), units),
        ("Wa", len(given["Wa"].data[0]), 2 * units),
        ("Wc", len(given["Wc"].data[0]), 2 * units),
    ):
        if size != wanted:
            raise ConfigError(f"{name}: expected rows of {wanted} numbers for {units} units, got {size}")


def _goes_on(page: Page, chosen: str, seen: Mapping[str, Tensor], numbers: Mapping[str, Tensor]) -> None:
    page.step(
        f"The context, by {chosen}",
        "The encoder's states, each as much as its weight says.",
        r"c_t = \sum_s \alpha_s \bar{h}_s",
        f"score weights_{chosen} H",
        value("context", seen["context"], "unit", "c_t"),
    )
    page.step(
        "The attention vector",
        "Context and state side by side, through one layer: this is what the softmax over the words sees.",
        r"\tilde{h}_t = \tanh(W_c [c_t; h_t])",
        "Wc context h",
        value("attended", seen["attended"], "unit", r"\tilde{h}_t"),
    )
    page.step(
        "Input feeding",
        "The next step reads the word that was said and this vector, so that it knows where was looked before.",
        r"x_{t+1} = [e; \tilde{h}_t]",
        "e attended",
        value("fed", torch.cat([numbers["e"], seen["attended"]]), "both", "x_{t+1}"),
    )


def looked(kind: ScoreName, numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What the package's Luong decoder shows with these weights: scores, weights, context, attention vector.

    >>> numbers = {"H": torch.eye(2).double(), "h": torch.tensor([1.0, 2.0]).double(), "Wc": torch.ones(2, 4).double()}
    >>> looked("dot", numbers)["scores"].tolist()
    [1.0, 2.0]
    """
    H, h, units = numbers["H"], numbers["h"], len(numbers["h"])
    decoder = _decoder(kind, units, numbers)
    states = Padded(H[None], torch.tensor([len(H)]), ragged=False)
    source = Looked(decoder.cross.annotate(states), decoder.context_said(states.data))
    with record(decoder) as trace, torch.no_grad():
        attended = decoder.look(h[None, None], source)[0, 0]
    found = {seen.name.removeprefix("cross."): seen.data[0, 0, 0] for seen in trace.records}
    return {**found, "attended": attended}


def _decoder(kind: ScoreName, units: int, numbers: Mapping[str, Tensor]) -> LuongDecoder:
    model = LuongConfig(layers=1, width=units, score=kind, dropout=0.0).build(Words(5), Words(5)).double()
    decoder: LuongDecoder = model.requires_grad_(False).decoder  # type: ignore[assignment]
    given = {"context_said.weight": numbers["Wc"][:, :units], "hidden_said.weight": numbers["Wc"][:, units:]}
    match kind:
        case "general":
            given["cross.score.key.weight"] = numbers["W"]
        case "concat":
            given["cross.score.query.weight"] = numbers["Wa"][:, :units]
            given["cross.score.key.weight"] = numbers["Wa"][:, units:]
            given["cross.score.v.weight"] = numbers["v"][None]
        case "cosine":
            given["cross.score.log_sharpness"] = numbers["sharpness"].log()
    for name, weight in given.items():
        at = decoder.get_parameter(name)
        at.data = weight.clone()  # concat's inner width is free here
    return decoder


def _by_hand(numbers: Mapping[str, Tensor]) -> dict[str, Tensor]:
    H, h = numbers["H"], numbers["h"]
    both = torch.cat([h.expand(len(H), -1), H], 1)
    lengths = (H.norm(dim=1) * h.norm()).clamp(min=1e-12)
    return {
        "dot": H @ h,
        "general": H @ numbers["W"].T @ h,
        "concat": torch.tanh(both @ numbers["Wa"].T) @ numbers["v"],
        "cosine": numbers["sharpness"] * (H @ h) / lengths,
    }


PLAN = Plan(INPUTS, _work)
