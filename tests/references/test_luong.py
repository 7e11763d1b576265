"""Luong's decoder against its equations, row by row and position by position: scores, input feeding."""

import pytest
import torch

from regard.errors import ConfigError
from regard.look.recording import Recording
from regard.models.base import EmptyEncoder
from regard.models.luong import LuongConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.nn.alignment import SCORES
from regard.sequence import Tokens
from regard.spaces import Words
from regard.trace import record, trace_context

CLOSE = {"atol": 1e-6, "rtol": 1e-6}
SOURCE = Tokens.pad([[4, 5, 6, 7], [8, 3], [5]])
TARGET = Tokens.pad([[2, 4], [2, 5, 6, 7], [2, 8, 3]])
SHAPES = [(score, feeding) for score in SCORES for feeding in ("input", "none")]


def build(score="general", feeding="input", reverse=True):
    torch.manual_seed(3)
    config = LuongConfig(layers=2, width=6, score=score, feeding=feeding, dropout=0.0, reverse=reverse)
    return config.build(Words(9), Words(9)).double()


def cell(layer, x, state, more=0.0):
    rnn, (h, c) = layer.rnn, state
    i, f, g, o = (rnn.weight_ih_l0 @ x + rnn.bias_ih_l0 + rnn.weight_hh_l0 @ h + rnn.bias_hh_l0 + more).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def naive_score(name, score, h, s):
    """Luong et al. 2015, eq. 8, and the cosine."""
    if name == "dot":
        return h @ s
    if name == "general":
        return h @ (score.key.weight @ s)
    if name == "concat":
        W = torch.cat([score.query.weight, score.key.weight], 1)
        return score.v.weight[0] @ torch.tanh(W @ torch.cat([h, s]))
    return score.log_sharpness.exp() * (h @ s) / (h @ h).sqrt() / (s @ s).sqrt()


def naive_features(decoder, name, feeding, memory, ids):
    states = [(h[0], c[0]) for h, c in memory.final]
    attended, features = torch.zeros(6, dtype=torch.double), []
    W_c = torch.cat([decoder.context_projection.weight, decoder.hidden_projection.weight], 1)
    for y in ids:
        x = decoder.embed.weight[y]
        for i, layer in enumerate(decoder.stack.layers):
            feed = decoder.input_feed.weight @ attended if feeding == "input" and i == 0 else 0.0
            states[i] = cell(layer, x, states[i], feed)
            x = states[i][0]
        scores = torch.stack([naive_score(name, decoder.cross.score, x, s) for s in memory.states.data[0]])
        weights = scores.exp() / scores.exp().sum()
        context = sum(w * s for w, s in zip(weights, memory.states.data[0], strict=True))
        attended = torch.tanh(W_c @ torch.cat([context, x]))
        features.append(attended)
    return torch.stack(features)


def rows(tokens):
    return [row[:n].tolist() for row, n in zip(tokens.data, tokens.lengths, strict=True)]


def naive(model, name, feeding):
    pairs = zip(rows(SOURCE), rows(TARGET), strict=True)
    return torch.cat(
        [naive_features(model.decoder, name, feeding, model.encoder(Tokens.pad([s])), t) for s, t in pairs]
    )


def gradients(model, features):
    names, ps = zip(*((n, p) for n, p in model.named_parameters() if not n.startswith("decoder.readout")), strict=True)
    weighted_sum = (features * torch.linspace(-1, 1, features.numel()).view_as(features)).sum()
    return dict(zip(names, torch.autograd.grad(weighted_sum, ps), strict=True))


@pytest.mark.parametrize(("score", "feeding"), SHAPES)
def test_features_and_gradients_are_the_papers(score, feeding):
    model = build(score, feeding)
    found, expected = model(SOURCE, TARGET)[TARGET.mask], naive(model, score, feeding)
    torch.testing.assert_close(found, expected, **CLOSE)
    equations = gradients(model, expected)
    for name, gradient in gradients(model, found).items():
        assert equations[name].abs().max() > 1e-7, name
        torch.testing.assert_close(gradient, equations[name], **CLOSE)


@pytest.mark.parametrize(("score", "feeding"), SHAPES)
def test_one_word_at_a_time_equals_all_at_once_and_tracing_changes_nothing(score, feeding):
    model = build(score, feeding)
    at_once = model(SOURCE, TARGET)
    state, steps = model.start(SOURCE, max_tokens=4), []
    for ids in TARGET.data.split(1, 1):
        features, state = model.decoder(Tokens.full(ids), state)
        steps.append(features)
    torch.testing.assert_close(torch.cat(steps, 1)[TARGET.mask], at_once[TARGET.mask], **CLOSE)
    with record(model, gradients=True):
        watched = model(SOURCE, TARGET)
    torch.testing.assert_close(watched[TARGET.mask], at_once[TARGET.mask], **CLOSE)
    for a, b in zip(*(gradients(model, f[TARGET.mask]).values() for f in (watched, at_once)), strict=True):
        torch.testing.assert_close(a, b, **CLOSE)


def test_attention_reaches_the_next_step_only_with_input_feeding():
    for feeding, reaches in (("input", True), ("none", False)):
        model = build(feeding=feeding)
        with record(model) as plain:
            model(SOURCE, TARGET)
        with record(model, replace={"decoder.cross.weights": torch.zeros_like}) as blind:
            model(SOURCE, TARGET)
        a, b = (torch.stack([r.data for r in t.find("decoder.stack.layers.1.hidden")]) for t in (plain, blind))
        assert torch.allclose(a[0], b[0]) and torch.allclose(a, b) != reaches


@pytest.mark.parametrize("feeding", ["input", "none"])
def test_an_alignment_is_labeled_by_the_source_also_when_it_is_reversed(feeding):
    """With all weight on position 0 the context is the first word's state."""
    model = build(feeding=feeding)
    with record(model) as trace, trace_context(source=rows(SOURCE), target=rows(TARGET)):
        model(SOURCE, TARGET)
    view = Recording(trace).attention(row=0)
    assert view.name == "decoder.cross.weights" and view.columns == ["4", "5", "6", "7"]
    assert view.weights.shape == (2, 4) and abs(view.weights.sum(1) - 1).max() < 1e-6
    memory = model.encoder(SOURCE)
    _, ends = model.encoder.stack(Tokens.pad([[7, 6, 5, 4]]).like(model.encoder.embed(torch.tensor([[7, 6, 5, 4]]))))
    torch.testing.assert_close(memory.states.data[0, 0], ends[-1][0][0], **CLOSE)  # read last, stands first


def test_a_dot_product_with_an_encoder_twice_as_wide_is_refused():
    encoder = RNNsearchConfig(embedding=5, width=6, alignment=7, maxout=4).build_encoder(Words(9))
    with pytest.raises(ConfigError) as error:
        LuongConfig(layers=1, width=6, score="dot").build_decoder(Words(9), encoder)
    assert str(error.value) == (
        'a dot product needs vectors of one width; the query has 6, the source 12: use score = "general"'
    )


def test_a_decoder_with_attention_needs_a_source():
    with pytest.raises(ConfigError) as error:
        LuongConfig(layers=1, width=6).build_decoder(Words(9), EmptyEncoder())
    assert str(error.value) == "luong attends to a source, and this encoder reads none; use an encoder that does"
