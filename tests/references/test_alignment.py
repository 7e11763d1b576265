"""Attention over a source: worked numbers, padding, empty sources, and hypotheses that share one copy."""

import math

import pytest
import torch

from regard.errors import ConfigError
from regard.nn import alignment
from regard.nn.alignment import SCORES, Additive, Alignment, Cosine, Dot, General, weighted_sum
from regard.sequence import Padded
from regard.trace import record

STATES = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]])
QUERY = torch.tensor([[[0.6, 0.8]]])


def rounded(x):
    return [round(v, 4) for v in x.flatten().tolist()]


def test_a_dot_product_scores_by_length_and_direction():
    score = Dot(2, 2)
    assert rounded(score(QUERY, score.keys(STATES))) == [0.6, 1.6, 5.0]


def test_the_general_score_is_the_dot_product_through_a_matrix():
    score = General(2, 2)
    score.key.weight.data = torch.tensor([[0.0, 1.0], [1.0, 0.0]])  # swaps the two numbers
    assert rounded(score(QUERY, score.keys(STATES))) == [0.8, 1.2, 4.8]


def test_the_additive_score_is_v_tanh_of_the_sum():
    score = Additive(2, 2, 2)
    score.query.weight.data, score.key.weight.data = torch.eye(2), 0.5 * torch.eye(2)
    score.v.weight.data = torch.tensor([[1.0, -1.0]])
    expected = [math.tanh(0.6 + h / 2) - math.tanh(0.8 + k / 2) for h, k in STATES[0].tolist()]
    assert rounded(score(QUERY, score.keys(STATES))) == [round(w, 4) for w in expected] == [0.1365, -0.4098, -0.0222]


def test_additive_scores_by_query_have_the_same_values_and_gradients(monkeypatch):
    torch.manual_seed(1)
    score, query, keys = (
        Additive(3, 4, 5).double(),
        *(torch.randn(s, dtype=torch.double) for s in ((2, 6, 3), (2, 4, 5))),
    )
    inputs = (query.requires_grad_(), keys.requires_grad_(), score.query.weight, score.v.weight)
    judge, found = torch.randn(2, 6, 4, dtype=torch.double), []
    for max_elements in (alignment.MAX_ELEMENTS, 2 * 6 * 4 * 5 - 1):
        monkeypatch.setattr(alignment, "MAX_ELEMENTS", max_elements)
        scores = score(query, keys)
        found.append((scores, *torch.autograd.grad(scores, inputs, judge)))
    assert type(found[0][0].grad_fn) is not type(found[1][0].grad_fn)
    torch.testing.assert_close(*found, atol=1e-12, rtol=1e-12)


def test_the_cosine_score_sees_directions_only_and_its_sharpness_is_a_factor():
    score = Cosine(2, 2)
    for sharpness in (1.0, 8.0):
        score.log_sharpness.data.fill_(math.log(sharpness))
        found = score(QUERY, score.keys(STATES))
        assert rounded(found / sharpness) == [0.6, 0.8, 1.0]
        torch.testing.assert_close(found, score(7 * QUERY, score.keys(0.3 * STATES)))


def test_without_sharpness_a_cosine_is_nearly_uniform():
    """Of ten positions one matches and nine are opposite: its weight is e / (e + 9 / e), 45 %; with 8: 1 - 1e-6."""
    score = Cosine(2, 2)
    keys = score.keys(torch.cat([torch.tensor([[[1.0, 0]]]), -torch.tensor([[[1.0, 0]]]).expand(1, 9, 2)], 1))
    shares = []
    for sharpness in (1.0, 8.0):
        score.log_sharpness.data.fill_(math.log(sharpness))
        shares.append(score(torch.tensor([[[2.0, 0.0]]]), keys).softmax(-1)[0, 0, 0].item())
    assert shares[0] == pytest.approx(math.e / (math.e + 9 / math.e), abs=1e-6)
    assert round(shares[0], 2) == 0.45 and 1 - shares[1] < 2e-6


@pytest.mark.parametrize(("name", "what"), [("dot", "a dot product"), ("cosine", "a cosine")])
def test_vectors_of_two_widths_have_no_product(name, what):
    with pytest.raises(ConfigError) as error:
        SCORES[name](16, 12)
    assert str(error.value) == (
        f'{what} needs vectors of one width; the query has 16, the source 12: use score = "general"'
    )


def test_weights_and_context_of_a_worked_example():
    """Scores 0.6, 1.6, 5: weights e^0.6, e^1.6, e^5 over their sum."""
    aligned = Alignment(Dot(2, 2))
    with record(aligned) as trace:
        context = aligned(QUERY, aligned.annotate(Padded(STATES, torch.tensor([3]), ragged=False)))
    total = sum(math.exp(s) for s in (0.6, 1.6, 5.0))
    weights = [math.exp(s) / total for s in (0.6, 1.6, 5.0)]
    assert rounded(trace.find("weights")[0].data) == [round(w, 4) for w in weights] == [0.0117, 0.0319, 0.9563]
    expected = [weights[0] + 3 * weights[2], 2 * weights[1] + 4 * weights[2]]
    assert rounded(context) == [round(w, 4) for w in expected] == rounded(trace.find("context")[0].data)
    for name in ("scores", "weights"):
        assert trace.find(name)[0].axes == ("batch", "head", "query", "key")
        assert trace.find(name)[0].data.shape == (1, 1, 1, 3)


def made(name, rows=3, places=4, width=6):
    torch.manual_seed(1)
    aligned = Alignment(SCORES[name](width, width))
    return aligned, torch.randn(rows, 2, width), torch.randn(rows, places, width)


@pytest.mark.parametrize("name", SCORES)
def test_padding_has_no_weight_and_an_empty_source_gives_zeros(name):
    aligned, query, states = made(name)
    states[1, 2:] = 1e4
    source = aligned.annotate(Padded(states, torch.tensor([4, 2, 0])))
    weights = aligned.weights(query, source)
    assert weights[0].min() > 0
    assert (weights[1, :, :, 2:] == 0).all() and (weights[2] == 0).all()
    torch.testing.assert_close(weights.sum(-1)[:2], torch.ones(2, 1, 2))
    context = aligned(query, source)
    assert (context[2] == 0).all()
    short = aligned.annotate(Padded(states[1:2, :2], torch.tensor([2]), ragged=False))
    torch.testing.assert_close(context[1:2], aligned(query[1:2], short))


@pytest.mark.parametrize("name", SCORES)
def test_gradients_are_finite_for_an_empty_source(name):
    aligned, query, states = made(name)
    query.requires_grad_(), states.requires_grad_()
    aligned(query, aligned.annotate(Padded(states, torch.tensor([4, 1, 0])))).square().sum().backward()
    for tensor in (query.grad, states.grad, *(p.grad for p in aligned.parameters())):
        assert tensor.isfinite().all()
    assert (states.grad[1, 1:] == 0).all() and (states.grad[2] == 0).all() and (query.grad[2] == 0).all()


def test_no_source_gives_zeros():
    aligned = Alignment(General(6, 6))
    source = aligned.annotate(Padded(torch.zeros(2, 0, 6), torch.tensor([0, 0])))
    assert torch.equal(aligned(torch.randn(4, 1, 6), source), torch.zeros(4, 1, 6))


@pytest.mark.parametrize("name", SCORES)
def test_hypotheses_that_share_a_source_equal_those_with_a_copy(name):
    aligned, _, states = made(name)
    lengths, query = torch.tensor([4, 2, 3]), torch.randn(6, 2, 6)
    shared = aligned(query, aligned.annotate(Padded(states, lengths)))
    copied = aligned.annotate(Padded(states.repeat_interleave(2, 0), lengths.repeat_interleave(2)))
    torch.testing.assert_close(shared, aligned(query, copied))


def test_a_weighted_sum_commutes_with_a_projection():
    """Why the projection of a context can be computed before the context."""
    weights, states, projection = torch.rand(4, 1, 3, 5), torch.randn(2, 5, 6), torch.randn(6, 7)
    torch.testing.assert_close(weighted_sum(weights, states) @ projection, weighted_sum(weights, states @ projection))
