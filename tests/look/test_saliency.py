"""Saliency: exact where a model is linear, signed, drawn in the terminal and as SVG in any script."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from torch import nn

from regard.look import Saliency
from regard.look.saliency import feature_saliency, gradient_x_input, log_odds, token_saliency
from regard.models.base import Classifier
from regard.models.convolution import ConvolutionConfig
from regard.models.mlp import MLPConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.transformer import TransformerConfig
from regard.sequence import Tokens, mean
from regard.spaces import Classes, FactorizedWords, Values, Words

READERS = [
    RecurrentConfig(width=8, dropout=0.0),
    RecurrentConfig(cell="tanh", width=8, bidirectional=False),
    ConvolutionConfig(layers=1, width=8),
    TransformerConfig(layers=1, width=8, ffn_width=16, heads=2),
    MLPConfig(width=8),
]


def reader(config, space=None) -> Classifier:
    torch.manual_seed(0)
    encoder = config.build_encoder(space or Words(9))
    return Classifier(encoder, mean, Classes(3), encoder.width).eval().requires_grad_(False)


def test_saliency_of_a_linear_model_sums_to_its_score() -> None:
    torch.manual_seed(0)
    embed, weight = nn.Embedding(9, 4), torch.randn(4)
    text = Tokens.pad([[4, 5, 6, 4]])
    found = token_saliency(lambda source: (embed(source.data) @ weight).sum(1), [embed], text)
    assert found.sum() == pytest.approx((embed(text.data) @ weight).sum().item(), rel=1e-5)
    assert found[0, 0] == pytest.approx(found[0, 3])
    np.testing.assert_allclose(found[0], (embed(text.data[0]) @ weight).detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("config", READERS, ids=lambda config: config.kind)
def test_saliency_is_the_slope_of_the_score_along_the_input(config) -> None:
    """d/da of s(x_i scaled by a) at a = 1 is the saliency of word i."""
    model, text = reader(config).double(), Tokens.pad([[4, 5, 6]])
    odds = lambda source: log_odds(model.readout(model(source)))[:, 1]  # noqa: E731
    found = token_saliency(odds, model.encoder.embeddings(), text)
    for i in range(3):
        values = []
        for factor in (1 + 1e-5, 1 - 1e-5):
            scale = torch.ones(1, 3, 1, dtype=torch.double)
            scale[0, i] = factor
            hook = model.encoder.embed.register_forward_hook(lambda m, g, out, s=scale: out * s)
            values.append(float(odds(text)))
            hook.remove()
        assert found[0, i] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-6)


def test_a_projected_embedding_is_one_token_and_no_hook_remains() -> None:
    model = reader(RecurrentConfig(width=8), FactorizedWords(9, table=5))
    found = token_saliency(lambda s: model.readout(model(s))[:, 0], model.encoder.embeddings(), Tokens.pad([[4, 5]]))
    assert found.shape == (1, 2)
    assert not model.encoder.embed._forward_hooks
    with pytest.raises(IndexError):
        token_saliency(lambda s: model.readout(model(s))[:, 7], model.encoder.embeddings(), Tokens.pad([[4, 5]]))
    assert not model.encoder.embed._forward_hooks


def test_each_input_number_has_a_saliency_per_answer() -> None:
    model = reader(MLPConfig(width=8), Values(4))
    row = Tokens.full(torch.randn(1, 1, 4))
    found = feature_saliency(lambda source: model.readout(model(source))[0], row)
    assert found.shape == (3, 1, 4)
    single = feature_saliency(lambda source: model.readout(model(source))[:, 2], row)
    np.testing.assert_allclose(found[2:], single, rtol=1e-6)
    assert row.data.grad is None and not row.data.requires_grad


def test_unused_inputs_have_saliency_zero() -> None:
    x = torch.tensor([[1.0, 5.0]], requires_grad=True)
    assert gradient_x_input(x[:, 0] * 2, x).tolist() == [[2.0, 0.0]]
    y = torch.ones(1, 2, requires_grad=True)
    assert gradient_x_input((x * 0).sum(1), y).tolist() == [[0.0, 0.0]]


def test_log_odds_are_those_of_softmax_and_ignore_a_shift() -> None:
    out = torch.tensor([[1.0, 2.0, -1.0]], dtype=torch.double)
    share = out.softmax(-1)
    torch.testing.assert_close(log_odds(out), (share / (1 - share)).log())
    torch.testing.assert_close(log_odds(out + 7), log_odds(out))


WORDS = ["این", " فیلم", " <b>", " عالی"]


def test_one_answer_is_drawn_as_highlighted_text() -> None:
    found = Saliency("positive 0.98", ["so", "great"], np.array([[-0.5, 2.0]]))
    plain = found.text(width=60, color="none")
    assert "positive 0.98: gradient x input" in plain and "+2.00" in plain and "-0.50" in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", found.text(width=60, color="24-bit")).splitlines()[1] == "so great"
    assert json.loads(json.dumps(found.to_dict()))["scores"] == [[-0.5, 2.0]]
    assert found._repr_html_() == found.svg() and repr(found) == "Saliency('positive 0.98', 1 x 2)"


def test_several_answers_are_drawn_as_a_matrix() -> None:
    found = Saliency("tags", ["a", "dog"], np.array([[1.0, 0.0], [-1.0, 3.0]]), ["DET", "NOUN"], ("tag", "word"))
    plain = found.text(width=60, color="none")
    assert "DET" in plain and "tag \\ word" in plain and "+3.00" in plain
    assert found.strongest(1) == "dog"
    ElementTree.fromstring(found.svg())


def test_any_script_is_drawn_and_no_token_is_executed() -> None:
    found = Saliency("مثبت", WORDS, np.array([[0.1, 0.2, -0.3, 1.0]]))
    svg = found.svg()
    ElementTree.fromstring(svg)
    assert "<b>" not in svg and "عالی" in svg
    assert "عالی" in found.text(width=80, color="none")


def test_scores_of_another_shape_than_the_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="x: 1 x 2 labels for 1 x 3 numbers"):
        Saliency("x", ["a", "b"], np.zeros((1, 3)))


def test_a_saliency_of_zeros_can_be_drawn() -> None:
    assert "0.00" in Saliency("x", ["a"], np.zeros((1, 1))).text(width=40, color="none")


def test_small_numbers_keep_their_digits():
    found = Saliency("yes, 0.51", ["so", "great"], np.array([[-0.00041, 0.0032]]))
    assert found.text(width=60, color="none").splitlines()[-1].endswith("smallest -4e-4, largest +3e-3")
    assert "great: 0.0032" in found.svg() and "so: -0.00041" in found.svg()
    both = Saliency("both", ["so", "great"], np.array([[-0.00041, 0.0032], [0.0, 0.001]]), rows=("yes", "no"))
    lines = both.text(width=60, color="none").splitlines()
    assert [cell.strip("░▒▓█") for cell in lines[3].split()[1:]] == ["-4e-4", "+3e-3"]
    assert [cell.strip("░▒▓█") for cell in lines[4].split()[1:]] == ["0", "+1e-3"]


def test_narrow_cells_of_small_numbers_name_their_unit():
    columns = [str(i) for i in range(24)]
    text = Saliency("s", columns, np.full((2, 24), 0.0032), rows=("a", "b")).text(width=60, color="none")
    assert "in units of 1e-4" in text and "32" in text and "-0" not in text
