"""Numbers of the lesson on sizes and costs, against computations of their own and the quoted figures."""

import pytest

from regard.lessons.engine.formatting import format_numbers
from regard.lessons.engine.terminal import lesson_text
from regard.models.presets import PRESETS

QUOTED = {
    "GPT-1": ("117 million", "BookCorpus 4.5 GB 7,000", "June 11, 2018", "30 days 8 P600 1 petaflop/s-day"),
    "GPT-2": ("1.5 billion", "WebText 40 GB 8 million", "February 14, 2019 November 5, 2019", "tens 1.5 × 10²¹ FLOP"),
    "GPT-3": ("175 billion", "499 billion 570 GB WebText Wikipedia two", "May 28, 2020", "3,640 3.1 × 10²³ FLOP"),
    "GPT-3.5": ("175 billion", "undisclosed", "March 15, 2022", "undisclosed"),
    "GPT-4": ("undisclosed", "undisclosed", "March 14, 2023", "estimated 2.1 × 10^? FLOP exponent missing slide"),
    "GPT-NeoX-20B": ("20 billion", "Pile 825 GiB", "February 9, 2022", "not quoted"),
}
SHAPES = {
    "gpt-1": (12, 768, 40_478, 512),
    "gpt-2": (12, 768, 50_257, 1024),
    "gpt-2-xl": (48, 1600, 50_257, 1024),
    "gpt-3": (96, 12_288, 50_257, 2048),
}
DAY = 8.64e19


def count_tensors(layers, width, vocabulary, context):
    """Parameters tensor by tensor: embeddings, then weights and biases of each layer, then the last norm."""
    layer = [(width, width), width] * 4 + [(4 * width, width), 4 * width, (width, 4 * width), width] + [width] * 4
    sizes = [size if isinstance(size, int) else size[0] * size[1] for size in layer]
    return vocabulary * width + context * width + layers * sum(sizes) + 2 * width


def column(lesson, value, label):
    found = lesson.value(value)
    at = found.labels["column"].index(label)
    return dict(zip(found.labels[found.axes[0]], (row[at] for row in found.data)))


def test_every_quoted_figure_is_in_the_table(compute_lesson):
    lesson = compute_lesson("sizes")
    quoted = lesson.value("quoted")
    assert quoted.labels == {
        "model": list(QUOTED),
        "column": ["architecture", "parameters", "training data", "release", "training cost"],
    }
    for name, row in zip(QUOTED, quoted.data):
        for expected, text in zip(QUOTED[name], row[1:], strict=True):
            assert [word for word in expected.split() if word not in text] == []
            assert ("undisclosed" in text) == (expected == "undisclosed")
    architectures = column(lesson, "quoted", "architecture")
    for name, words in (
        ("GPT-1", "12 levels 12 heads decoder without encoder linear softmax"),
        ("GPT-2", "GPT-1 normalization modified"),
        ("GPT-3", "GPT-2 modifications larger scaling"),
        ("GPT-3.5", "undisclosed"),
        ("GPT-4", "text prediction RLHF images"),
        ("GPT-NeoX-20B", "open GPT-3 rotary"),
    ):
        assert [word for word in words.split() if word not in architectures[name]] == []


def test_one_model_of_the_table_can_be_shown_alone(compute_lesson):
    lesson = compute_lesson("sizes", show="GPT-4")
    assert lesson.value("quoted").labels["model"] == ["GPT-4"]
    assert lesson.value("counts").data == compute_lesson("sizes").value("counts").data
    lines = [line.strip() for line in lesson_text(lesson, 80, step=1).splitlines()]
    at = lines.index("GPT-4")
    assert lines[at + 3 : at + 6] == [
        "parameters: undisclosed",
        "training data: undisclosed",
        "release: March 14, 2023",
    ]


@pytest.mark.parametrize("preset", ["gpt-2", "gpt-2-xl", "gpt-3"])
def test_the_parameter_formula_counts_the_preset(preset, compute_lesson):
    shape = dict(zip(("layers", "width", "vocabulary", "context"), SHAPES[preset]))
    total = compute_lesson("sizes", **shape).value("total").data
    assert total == PRESETS[preset].parameters == count_tensors(*SHAPES[preset])


def test_the_parts_of_the_count(compute_lesson):
    lesson = compute_lesson("sizes", layers=2, width=8, vocabulary=30, context=16)
    assert lesson.value("layer").data == 12 * 64 + 13 * 8 == 872
    assert lesson.value("parts").data == [240, 128, 1744, 16]
    assert lesson.value("total").data == 2128 == count_tensors(2, 8, 30, 16)
    assert lesson.value("share").data == 1744 / 2128
    assert compute_lesson("sizes").value("share").data == pytest.approx(0.9963, abs=5e-5)


def test_exact_counts_stand_beside_the_quoted_ones(compute_lesson):
    lesson = compute_lesson("sizes")
    totals = column(lesson, "counts", "total")
    assert totals == {
        "GPT-1": 116_534_784,
        "GPT-2": 1_557_611_200,
        "GPT-3": 174_604_259_328,
        "GPT-NeoX-20B": 20_554_567_680,
    }
    assert totals["GPT-1"] == count_tensors(*SHAPES["gpt-1"]) - 2 * 768
    for total, _, *parts in lesson.value("counts").data:
        assert sum(parts) == total
    assert column(lesson, "counts", "last norm")["GPT-1"] == 0
    assert column(lesson, "counts", "positions")["GPT-NeoX-20B"] == 0
    assert column(lesson, "counts", "words")["GPT-NeoX-20B"] == 2 * 50_432 * 6144
    quoted = {name: text for name, (text, *_) in QUOTED.items() if name in totals}
    assert column(lesson, "counts", "quoted") == quoted


def test_the_cost_of_gpt_3_is_that_of_300_billion_tokens(compute_lesson):
    lesson = compute_lesson("sizes")
    assert lesson.value("flop").data == pytest.approx(6 * 174_604_259_328 * 300e9)
    assert round(lesson.value("days").data) == 3638
    assert lesson.value("whole_set").data == round(6 * 174_604_259_328 * 499e9 / DAY, 1) == 6050.5
    assert compute_lesson("sizes", tokens=499).value("days").data == 6050.5


def test_quoted_costs_in_one_unit_and_the_tokens_they_pay_for(compute_lesson):
    lesson = compute_lesson("sizes")
    assert column(lesson, "costs", "petaflop/s-days") == {"GPT-1": 1.0, "GPT-2": 17.4, "GPT-3": 3640.0}
    assert column(lesson, "costs", "FLOP") == pytest.approx({"GPT-1": DAY, "GPT-2": 1.5e21, "GPT-3": 3640 * DAY})
    assert round(column(lesson, "costs", "FLOP")["GPT-3"] / 1e23, 1) == 3.1  # as quoted
    tokens = {
        "GPT-1": DAY / (6 * 116_534_784) / 1e9,
        "GPT-2": 1.5e21 / (6 * 1_557_611_200) / 1e9,
        "GPT-3": 3640 * DAY / (6 * 174_604_259_328) / 1e9,
    }
    assert column(lesson, "costs", "tokens, billions") == pytest.approx(tokens, abs=0.05)
    assert lesson.value("gpu_rate").data == round(1e15 / (8 * 30) / 1e12, 1) == 4.2


def test_each_exponent_gives_another_cost(compute_lesson):
    lesson = compute_lesson("sizes")
    assert lesson.value("cases").labels["case"] == ["10^23", "10^24", "10^25", "10^26"]
    assert column(lesson, "cases", "petaflop/s-days") == {
        "10^23": 2431, "10^24": 24_306, "10^25": 243_056, "10^26": 2_430_556,
    }  # fmt: skip
    ratios = [2.1 * 10**exponent / (3640 * DAY) for exponent in (23, 24, 25, 26)]
    assert list(column(lesson, "cases", "times GPT-3").values()) == pytest.approx(ratios, abs=0.005)
    assert ratios[0] < 1 < ratios[1]  # with 23, cheaper than GPT-3


def test_large_counts_are_shown_in_full(compute_lesson):
    assert format_numbers([174_604_259_328, 5]) == ["174,604,259,328", "5"]
    assert format_numbers([9_999_999]) == ["9999999"]
    assert format_numbers([1e15]) == ["1.0e+15"]
    text = lesson_text(compute_lesson("sizes"), 80)
    assert "→ N = 174,604,259,328\n" in text
    assert "1,557,611,200" in text and "116,534,784" in text


def test_the_records_of_a_narrow_terminal_are_wrapped_and_whole(compute_lesson):
    lesson = compute_lesson("sizes")
    text = " ".join(lesson_text(lesson, 32, step=1).split())
    for name, row in zip(QUOTED, lesson.value("quoted").data):
        assert name in text
        for label, cell in zip(lesson.value("quoted").labels["column"], row):
            assert f"{label}: {cell}" in text
