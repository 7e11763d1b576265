"""Lesson: attention as a soft look-up in a table of keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.lessons.attention import single_query_attention
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item, largest
from regard.lessons.engine.reading import Reading

NAMES = ["lamb", "smoke", "late", "fire"]
SHARPNESS = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]

INPUTS = (
    Input("K", [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8]], "keys", ("entry", "width"), labels={"entry": NAMES}),
    Input("V", [[10.0], [20.0], [30.0], [40.0]], "values", ("entry", "out"), labels={"entry": NAMES}),
    Input("q", [0.0, 1.0], "query", ("width",)),
    Input("sharpness", 4.0, "factor of the products before the softmax", bounds=(0, 1000), symbol="s"),
)


def compute(page: LessonBuilder) -> None:
    """A look-up by equality, by the nearest key, and by a softmax over all keys."""
    K, V, q = page.tensors("K V q")
    labels = {"entry": page.labels("K").get("entry") or [str(i + 1) for i in range(len(K))]}
    found = [i for i, key in enumerate(K) if torch.equal(key, q)]
    page.step(
        "A look-up in a dictionary",
        "A dictionary compares the query with each key for equality: one entry, or none. Nothing in it has a gradient.",
        r"\text{value of the key that equals } q",
        "K V q",
        value("equal", [float(i in found) for i in range(len(K))], "entry", r"k = q", labels, "weights"),
        value("hard", V[found[0]].tolist() if found else ["not found"], "out", r"\text{found}"),
    )
    products = K @ q
    page.step(
        "Similarity instead of equality",
        "A dot product says how well each key fits. The best one could be taken: but which one is best changes by "
        "jumps, again without a gradient.",
        r"q \cdot k_i",
        "K q",
        value("products", products, "entry", r"q \cdot k_i", labels),
        value("nearest", labels["entry"][int(products.argmax())], "", r"\text{nearest}"),
    )
    scale = page.data("sharpness") * len(q) ** 0.5  # the package divides by the root of the width
    seen = single_query_attention(q * scale, K, V)
    page.step(
        "A soft look-up",
        "The softmax of the products: every entry is read, by its share. All shares sum to 1, and all of them change "
        "smoothly with the query and the keys, so both can be learned.",
        r"\alpha_i = \softmax_i(s \, q \cdot k_i)",
        "K q sharpness",
        value("weights", seen["weights"], "entry", r"\alpha", labels, "weights"),
    )
    page.step(
        "The answer is a mixture",
        "The values, weighted by the shares: this is attention. In a Transformer s is one over the square root of the "
        "width; query, keys and values are computed from words.",
        r"z = \sum_i \alpha_i v_i",
        "weights V",
        value("z", seen["context"], "out"),
    )
    _sweep(page, products, labels)
    page.compare(
        "the formula and the package's attention", (page.data("sharpness") * products).softmax(0) @ V, seen["context"]
    )
    page.compare("the sum of the weights", 1.0, float(seen["weights"].sum()))


def _sweep(page: LessonBuilder, products: Tensor, labels: dict[str, list[str]]) -> None:
    """Weights and entropy by sharpness."""
    rows = torch.stack([(s * products).softmax(0) for s in SHARPNESS])
    entropy = -(rows * rows.clamp_min(1e-300).log()).sum(1)
    ticks = {"entry": labels["entry"], "s": [f"{s:g}" for s in SHARPNESS]}
    page.step(
        "From a mean to a dictionary",
        "The weights for growing s: at 0 the plain mean of all values, for large s the entry of the nearest key alone. "
        "Below them the entropy: how many entries take part, in nats.",
        r"s \to \infty",
        "products",
        value("sweep", rows.T, "entry s", r"\alpha", ticks, "weights"),
        value("entropy", entropy, "s", r"\text{entropy}", {"s": ticks["s"]}, "line"),
    )


FIGURE = "q > products > weights > z; K > products; sharpness > weights; V > z; q > equal; K > equal > hard"
EXERCISES = (
    Exercise(
        "With a sharpness of 0, which value does the look-up give?",
        item("z", 0),
        {"sharpness": 0.0},
        hint="the mean of 10, 20, 30 and 40",
    ),
    Exercise(
        "With the query (-1, 0), which entry has the largest weight?",
        largest("weights"),
        {"q": [-1.0, 0.0]},
        hint="the key that points in the same direction",
    ),
)
READING = Reading(
    "Attention as a soft look-up",
    ("soft look-up (content-based addressing)", "query, key, value", "kernel regression", "temperature"),
    (
        "Graves, Wayne and Danihelka 2014, Neural Turing machines, section 3.3.1",
        "Bahdanau, Cho and Bengio 2015, Neural machine translation by jointly learning to align and translate",
        "Vaswani et al. 2017, Attention is all you need, section 3.2",
    ),
)
