"""One source of a formula, two readings."""

import xml.etree.ElementTree as ElementTree

import pytest

from regard.lessons import CONTENTS
from regard.lessons.engine.formula import mathml, plain

READ = {
    r"h_t = f(V h_{t-1} + U x_t + b)": "hₜ = f(V hₜ₋₁ + U xₜ + b)",
    r"e_s = v \cdot \tanh(W_1 s_{t-1} + W_2 \bar{h}_s)": "eₛ = v · tanh(W₁ sₜ₋₁ + W₂ h̄ₛ)",
    r"\frac{q K^\top}{\sqrt{d}}": "(q Kᵀ) / √d",
    r"\frac{\partial h_t}{\partial h_{t-1}} = \diag(1 - h_t^2) W": "∂hₜ/∂hₜ₋₁ = diag(1 - hₜ²) W",
    r"\sum_{i<t} x_i": "Σ_{i<t} xᵢ",
    r"\text{units}^2": "units²",
    r"\tilde{h}_t = \tanh(W_c [c_t; h_t])": "h̃ₜ = tanh(W_c [cₜ; hₜ])",
    r"\|a\|": "‖a‖",
}


@pytest.mark.parametrize("tex", READ)
def test_a_formula_as_text(tex):
    assert plain(tex) == READ[tex]


def test_a_formula_as_mathml():
    wanted = "<math><mfrac><mi>a</mi><msqrt><mi>d</mi></msqrt></mfrac></math>"
    assert mathml(r"\frac{a}{\sqrt{d}}") == wanted
    assert "<munder><mo>Σ</mo><mi>t</mi></munder>" in mathml(r"\sum_t x")
    assert "<msubsup><mi>h</mi><mi>t</mi><mn>2</mn></msubsup>" in mathml("h_t^2")
    assert "<mo>&lt;</mo>" in mathml("i<t")


@pytest.mark.parametrize("name", CONTENTS)
def test_every_formula_of_a_lesson_can_be_read_both_ways(name, taught):
    for step in taught(name).steps:
        assert "\\" not in plain(step.formula)
        if step.formula:
            assert ElementTree.fromstring(mathml(step.formula)).tag == "math"


@pytest.mark.parametrize(("tex", "said"), [
    (r"\wrong x", r"formula: \wrong is not known"),
    ("{a", "formula: a brace is not closed"),
    ("a}", "formula 'a}': a brace too many"),
    ("x_", "formula: something is missing at its end"),
])  # fmt: skip
def test_what_is_no_formula_is_refused(tex, said):
    with pytest.raises(ValueError) as error:
        plain(tex)
    assert str(error.value) == said
