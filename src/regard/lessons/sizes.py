"""Lesson: sizes and training costs of GPT-1 to GPT-4 as quoted, and what the formulas give beside them."""

from __future__ import annotations

import torch

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.models.base import parameters
from regard.models.gpt import GPTConfig
from regard.models.presets import PRESETS, build_with_words

DAY = 86_400 * 10**15
"""floating-point operations of a petaflop/s-day"""
FIELDS = ["architecture", "parameters", "training data", "release", "training cost"]
UNDISCLOSED = "undisclosed"
ALL = "all"

QUOTED = {
    "GPT-1": [
        "Transformer decoder without encoder: 12 levels of 12 heads, a linear layer and a softmax on top",
        "117 million",
        "BookCorpus: 4.5 GB of text from 7,000 books",
        "June 11, 2018",
        "30 days on 8 P600 GPUs, or 1 petaflop/s-day",
    ],
    "GPT-2": [
        "GPT-1 with its normalization modified",
        "1.5 billion",
        "WebText: 40 GB of text, 8 million documents",
        "February 14, 2019 (initial); November 5, 2019 (full)",
        "tens of petaflop/s-days, or 1.5 × 10²¹ FLOP",
    ],
    "GPT-3": [
        "GPT-2 with modifications that allow larger scaling",
        "175 billion",
        "499 billion tokens: CommonCrawl (570 GB), WebText, English Wikipedia, two book corpora",
        "May 28, 2020",
        "3,640 petaflop/s-days, or 3.1 × 10²³ FLOP",
    ],
    "GPT-3.5": [UNDISCLOSED, "175 billion", UNDISCLOSED, "March 15, 2022", UNDISCLOSED],
    "GPT-4": [
        "trained with text prediction and RLHF; reads text and images",
        UNDISCLOSED,
        UNDISCLOSED,
        "March 14, 2023",
        "estimated 2.1 × 10^? FLOP; the exponent is missing on the slide",
    ],
    "GPT-NeoX-20B": [
        "an open model (Black et al., 2022) much like GPT-3, with rotary positions",
        "20 billion",
        "the Pile: 825 GiB of English text",
        "February 9, 2022 (weights)",
        "not quoted",
    ],
}
"""fields of each model, as the lecture quotes them; the open model's from its paper and its model card"""

SHAPES = {"GPT-1": "gpt-1", "GPT-2": "gpt-2-xl", "GPT-3": "gpt-3"}
"""presets of the models whose shape is published"""
NEOX_LAYERS, NEOX_WIDTH, NEOX_WORDS = 44, 6144, 50_432
"""shape of GPT-NeoX-20B; its 50,257 words are padded to a multiple of 256"""
NEOX_PARAMETERS = 20_554_567_680
"""as its model card says"""
QUOTED_FLOP = {"GPT-1": 1.0 * DAY, "GPT-2": 1.5e21, "GPT-3": 3640.0 * DAY}
DATA_SET = 499e9
"""tokens of GPT-3's data set; it was trained on 300 billion of them"""
GPUS, GPU_DAYS, GPT4_DIGITS = 8, 30, 2.1

INPUTS = (
    Input("show", ALL, "models of the first table", choices=(ALL, *QUOTED)),
    Input("layers", 96, "layers; GPT-3 has 96, the largest GPT-2 48", symbol="L", bounds=(1, 256)),
    Input("width", 12_288, "width of the model; the largest GPT-2 has 1,600", symbol="d", bounds=(1, 65_536)),
    Input("vocabulary", 50_257, "tokens in the vocabulary", symbol="V", bounds=(1, 1_000_000)),
    Input("context", 2048, "positions; GPT-2 has 1,024", symbol="n", bounds=(1, 1_000_000)),
    Input("tokens", 300.0, "tokens read in training, in billions", symbol="D", bounds=(0, 1_000_000)),
    Input("exponents", [23, 24, 25, 26], "possible exponents of GPT-4's cost", ("case",), bounds=(0, 40)),
)  # fmt: skip


def compute(page: LessonBuilder) -> None:
    """The table as quoted, a parameter count part by part, 6 N D, and all quoted costs in one unit."""
    _quote(page)
    _count(page)
    _count_published(page)
    _cost(page)
    _quoted_costs(page)
    _missing_exponent(page)
    page.expect("parameters of GPT-3's shape", 174_604_259_328, "total", 0)
    page.expect("petaflop/s-days of GPT-3, quoted as 3,640", 3638, "days", 0.5)


def count_parts(layers: int, width: int, vocabulary: int, context: int, final_norm: bool = True) -> list[int]:
    """Parameters of a GPT: words, positions, layers, last normalization; GPT-1, post-norm, has no last one.

    >>> sum(count_parts(12, 768, 50_257, 1024))
    124439808
    """
    return [vocabulary * width, context * width, layers * (12 * width**2 + 13 * width), 2 * width * final_norm]


def preset_parts(name: str) -> list[int]:
    """The same for a preset."""
    config, words = PRESETS[name].config, PRESETS[name].words[0]
    return count_parts(config.layers, config.width, words, config.max_positions, config.norm == "pre")


def _quote(page: LessonBuilder) -> None:
    show = page.data("show")
    models = list(QUOTED) if show == ALL else [show]
    page.step(
        "The models, as quoted",
        "What the lecture's table says, and beside it an open model. From GPT-3.5 on, little is published: fields that "
        "were not disclosed say so. Of GPT-4's cost the slide gives 2.1 times a power of 10, without its exponent.",
        "",
        "show",
        value("quoted", [QUOTED[name] for name in models], "model column", r"\text{quoted}",
              {"model": models, "column": FIELDS}, "records"),
    )  # fmt: skip


def _count(page: LessonBuilder) -> None:
    shape = [page.data(name) for name in ("layers", "width", "vocabulary", "context")]
    parts = count_parts(*shape)
    layer = parts[2] // shape[0]
    page.step(
        "A layer",
        "Four matrices of attention (query, key, value, output) have 4 d^2 weights and 4 d biases. The feed-forward "
        "network widens to 4 d and back: 8 d^2 weights, 5 d biases. Two normalizations have a gain and a bias each: "
        "4 d. The number of heads does not matter, since they share the width.",
        r"(4 d^2 + 4 d) + (8 d^2 + 5 d) + 4 d = 12 d^2 + 13 d",
        "width",
        value("layer", layer, "", r"\text{parameters of a layer}"),
    )
    names = ["words", "positions", "layers", "last norm"]
    page.step(
        "The whole model",
        "A vector per token of the vocabulary, which is also the output layer; a vector per position; the layers; a "
        "last normalization. This is the layout of GPT-2, and of GPT-3. In a large model nearly all is in the layers.",
        r"N = V d + n d + L (12 d^2 + 13 d) + 2 d",
        "layers width vocabulary context layer",
        value("parts", parts, "part", r"\text{parts}", {"part": names}),
        value("total", sum(parts), "", "N"),
        value("share", parts[2] / sum(parts), "", r"\text{share of the layers}"),
    )
    layers, width, words, context = shape
    with torch.device("meta"):  # shapes without numbers
        config = GPTConfig(layers=layers, width=width, heads=1, max_positions=context)
        built = parameters(build_with_words(config, (words, words)))
    page.compare("the formula, and a GPT of this shape built by the package: parameters", built, sum(parts), 0)


def _count_published(page: LessonBuilder) -> None:
    rows = [[sum(parts), QUOTED[name][1], *parts] for name, parts in _published_parts().items()]
    models = list(_published_parts())
    page.step(
        "Exact counts beside the quoted ones",
        "GPT-1 normalizes after each sum and needs no last normalization. GPT-NeoX-20B has rotary positions, which "
        "have no parameters, and an output layer of its own, so that its words count twice. The shapes of GPT-3.5 and "
        "GPT-4 are undisclosed: there is nothing to count.",
        r"N = V d + n d + L (12 d^2 + 13 d) + 2 d",
        "quoted",
        value("counts", rows, "model column", r"\text{parameters}",
              {"model": models, "column": ["total", "quoted", "words", "positions", "layers", "last norm"]}),
    )  # fmt: skip
    built = [PRESETS[name].parameters for name in SHAPES.values()]
    totals = [row[0] for row in rows]
    page.compare("GPT-1, GPT-2 and GPT-3 built by the package: parameters", built, totals[:3], 0)
    page.compare("GPT-NeoX-20B, and the count of its model card", NEOX_PARAMETERS, totals[3], 0)


def _published_parts() -> dict[str, list[int]]:
    words, _, layers, norm = count_parts(NEOX_LAYERS, NEOX_WIDTH, NEOX_WORDS, 0)
    return {name: preset_parts(preset) for name, preset in SHAPES.items()} | {
        "GPT-NeoX-20B": [2 * words, 0, layers, norm]
    }


def _cost(page: LessonBuilder) -> None:
    tokens, total = page.data("tokens") * 1e9, page.data("total")
    flop = 6 * total * tokens
    page.step(
        "What training costs",
        "Each parameter takes part in one multiplication and one addition per token: 2 operations forward, and twice "
        "as many backward. A petaflop/s-day is a day at 10^15 operations per second. GPT-3 was trained on 300 billion "
        "tokens, and the result is 3,638, quoted as 3,640; 499 billion is the size of its data set, not what it read.",
        r"C = 6 N D \quad 1 \text{ petaflop/s-day} = 10^{15} \cdot 86400 = 8.64 \cdot 10^{19}",
        "total tokens",
        value("flop", flop, "", "C"),
        value("days", round(flop / DAY, 1), "", r"\text{petaflop/s-days}"),
        value("whole_set", round(6 * total * DATA_SET / DAY, 1), "", r"\text{petaflop/s-days for 499 billion tokens}"),
    )


def _quoted_costs(page: LessonBuilder) -> None:
    totals = {name: sum(parts) for name, parts in _published_parts().items()}
    rows = [
        [flop, round(flop / DAY, 1), round(flop / (6 * totals[name]) / 1e9, 1)] for name, flop in QUOTED_FLOP.items()
    ]
    page.step(
        "The quoted costs in one unit",
        "1.5 x 10^21 operations are 17 petaflop/s-days, which are indeed tens; 3,640 are 3.1 x 10^23. The formula can "
        "also be read backwards: how many tokens, in billions, a quoted cost pays for. And 1 petaflop/s-day in 30 days "
        "on 8 GPUs means that each of them computed 4.2 teraflop/s on average.",
        r"D = \frac{C}{6 N}",
        "counts",
        value("costs", rows, "model column", r"\text{costs}",
              {"model": list(QUOTED_FLOP), "column": ["FLOP", "petaflop/s-days", "tokens, billions"]}),
        value("gpu_rate", round(QUOTED_FLOP["GPT-1"] / (GPUS * GPU_DAYS * 86_400) / 1e12, 1), "",
              r"\text{teraflop/s per GPU, GPT-1}"),
    )  # fmt: skip


def _missing_exponent(page: LessonBuilder) -> None:
    exponents = page.data("exponents")
    flops = [GPT4_DIGITS * 10.0**exponent for exponent in exponents]
    rows = [[flop, round(flop / DAY), round(flop / QUOTED_FLOP["GPT-3"], 2)] for flop in flops]
    page.step(
        "The missing exponent",
        "GPT-4's cost without its exponent says nothing: one more is ten times as much. These would be the costs. With "
        "an exponent of 23 it would have been cheaper to train than GPT-3.",
        r"2.1 \cdot 10^{?}",
        "exponents",
        value("cases", rows, "case column",
              r"\text{cases}", {"case": [f"10^{exponent}" for exponent in exponents],
                                "column": ["FLOP", "petaflop/s-days", "times GPT-3"]}),
    )  # fmt: skip


FIGURE = "layers > layer > total; width > layer; vocabulary > parts > total > flop > days; tokens > flop"
EXERCISES = (
    Exercise(
        "How many parameters has one layer of width 1,600?",
        "layer",
        {"layers": 48, "width": 1600, "context": 1024},
        hint="12 width squared + 13 width",
        tolerance=0.5,
    ),
    Exercise(
        "GPT-3's shape on 150 billion tokens, half of what it was trained on: how many petaflop/s-days?",
        "days",
        {"tokens": 150.0},
        hint="the cost is proportional to the tokens; all 300 billion took 3,638",
        tolerance=1.0,
    ),
)
READING = Reading(
    "GPT-1 to GPT-4 as quoted, the open model of 20 billion, exact counts and 6 N D beside them",
    ("parameter count", "FLOP", "petaflop/s-day", "scaling"),
    (
        "Brown et al. 2020, Language models are few-shot learners, table 2.1 and appendix D",
        "Kaplan et al. 2020, Scaling laws for neural language models, section 2.1",
    ),
)
