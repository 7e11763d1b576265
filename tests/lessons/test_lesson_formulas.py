"""Formulas as text and as MathML."""

import xml.etree.ElementTree as ElementTree

import pytest

from regard.lessons import LESSONS
from regard.lessons.engine.formula import mathml, plain_text

FORMULAS = {
    r"h_t = f(V h_{t-1} + U x_t + b)": "hₜ = f(V hₜ₋₁ + U xₜ + b)",
    r"e_s = v \cdot \tanh(W_1 s_{t-1} + W_2 \bar{h}_s)": "eₛ = v · tanh(W₁ sₜ₋₁ + W₂ h̄ₛ)",
    r"\frac{q K^\top}{\sqrt{d}}": "(q Kᵀ) / √d",
    r"\frac{\partial h_t}{\partial h_{t-1}} = \diag(1 - h_t^2) W": "∂hₜ/∂hₜ₋₁ = diag(1 - hₜ²) W",
    r"\sum_{i<t} x_i": "Σ_{i<t} xᵢ",
    r"\text{units}^2": "units²",
    r"\tilde{h}_t = \tanh(W_c [c_t; h_t])": "h̃ₜ = tanh(W_c [cₜ; hₜ])",
    r"\|a\|": "‖a‖",
}


@pytest.mark.parametrize("tex", FORMULAS)
def test_a_formula_as_text(tex):
    assert plain_text(tex) == FORMULAS[tex]


def test_a_formula_as_mathml():
    expected = "<math><mfrac><mi>a</mi><msqrt><mi>d</mi></msqrt></mfrac></math>"
    assert mathml(r"\frac{a}{\sqrt{d}}") == expected
    assert "<munder><mo>Σ</mo><mi>t</mi></munder>" in mathml(r"\sum_t x")
    assert "<msubsup><mi>h</mi><mi>t</mi><mn>2</mn></msubsup>" in mathml("h_t^2")
    assert "<mo>&lt;</mo>" in mathml("i<t")


@pytest.mark.parametrize("name", LESSONS)
def test_every_formula_of_a_lesson_converts_to_text_and_mathml(name, compute_lesson):
    for step in compute_lesson(name).steps:
        assert "\\" not in plain_text(step.formula)
        if step.formula:
            assert ElementTree.fromstring(mathml(step.formula)).tag == "math"


@pytest.mark.parametrize(("tex", "message"), [
    (r"\wrong x", r"formula: \wrong is not supported"),
    ("{a", "formula: unmatched {"),
    ("a}", "formula 'a}': unmatched }"),
    ("x_", "formula: an argument is missing at the end"),
])  # fmt: skip
def test_an_invalid_formula_is_refused(tex, message):
    with pytest.raises(ValueError) as error:
        plain_text(tex)
    assert str(error.value) == message
