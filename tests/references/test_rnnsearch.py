"""RNNsearch against the equations of Bahdanau et al. 2015, appendix A, row by row and position by position."""

import math

import pytest
import torch
from torch import nn

from regard.decode import Beam, align, search, wu_penalty
from regard.errors import ConfigError
from regard.look.recording import Recording
from regard.models.base import EmptyEncoder
from regard.models.rnnsearch import GatedUnit, RNNsearchConfig
from regard.nn.rnnsearch_loop import rnnsearch_loop
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words
from regard.trace import record, trace_context

CLOSE = {"atol": 1e-6, "rtol": 1e-6}
SHAPE = RNNsearchConfig(embedding=5, width=6, alignment=7, maxout=4)
SOURCE = Tokens.pad([[4, 5, 6, 7], [8, 3], [5]])
TARGET = Tokens.pad([[2, 4], [2, 5, 6, 7], [2, 8, 3]])


@pytest.fixture
def model():
    torch.manual_seed(3)
    return SHAPE.build(Words(9), Words(9)).double()


def naive_memory(encoder, ids):
    """torch.nn.GRU, both directions, over one sentence."""
    theirs = nn.GRU(5, 6, batch_first=True, bidirectional=True).double()
    for name, parameter in encoder.layer.forward_layer.rnn.named_parameters():
        theirs.get_parameter(name).data = parameter.data
    for name, parameter in encoder.layer.backward_layer.rnn.named_parameters():
        theirs.get_parameter(f"{name}_reverse").data = parameter.data
    out, ends = theirs(encoder.embed(torch.tensor([ids])))
    return out[0], ends[1, 0]


def naive_features(decoder, h_SM, h_1, ids):
    """A.2.2 and A.1.2, term by term; h_1 is the final state of the backward encoder."""
    W_a, U_a, v_a = (getattr(decoder.cross.score, name).weight for name in ("query", "key", "v"))
    W, W_z, W_r = (decoder.word_gates.weight.chunk(3)[i] for i in (2, 1, 0))
    b, b_z, b_r = (decoder.word_gates.bias.chunk(3)[i] for i in (2, 1, 0))
    C, C_z, C_r = (decoder.context_gates.weight.chunk(3)[i] for i in (2, 1, 0))
    U, (U_r, U_z) = decoder.unit.candidate.weight, decoder.unit.gates.weight.chunk(2)
    U_o, V_o, C_o = (getattr(decoder, f"{name}_readout").weight for name in ("hidden", "word", "context"))
    s = torch.tanh(decoder.bridge.linear.weight @ h_1 + decoder.bridge.linear.bias)
    features = []
    for y in ids:
        Ey = decoder.embed.weight[y]
        e = torch.stack([(v_a @ torch.tanh(W_a @ s + U_a @ h)).squeeze() for h in h_SM])
        alpha = e.exp() / e.exp().sum()
        c = sum(a * h for a, h in zip(alpha, h_SM, strict=True))
        t = U_o @ s + V_o @ Ey + decoder.word_readout.bias + C_o @ c
        features.append(torch.stack([torch.maximum(t[2 * j], t[2 * j + 1]) for j in range(len(t) // 2)]))
        z = torch.sigmoid(W_z @ Ey + b_z + U_z @ s + C_z @ c)
        r = torch.sigmoid(W_r @ Ey + b_r + U_r @ s + C_r @ c)
        s = (1 - z) * s + z * torch.tanh(W @ Ey + b + U @ (r * s) + C @ c)
    return torch.stack(features)


def rows(tokens):
    return [row[:n].tolist() for row, n in zip(tokens.data, tokens.lengths, strict=True)]


def naive(model):
    """(all real positions, D), from our encoder's memory, sentence by sentence."""
    found = []
    for source, target in zip(rows(SOURCE), rows(TARGET), strict=True):
        memory = model.encoder(Tokens.pad([source]))
        found.append(naive_features(model.decoder, memory.states.data[0], memory.final[0][0][0], target))
    return torch.cat(found)


def weighted_sum(features):
    """A number that depends on every feature."""
    return (features * torch.linspace(-1, 1, features.numel()).view_as(features)).sum()


def gradients(model, loss):
    names, ps = zip(*((n, p) for n, p in model.named_parameters() if not n.startswith("decoder.readout")), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, ps), strict=True))


def test_the_encoder_is_torchs_bidirectional_gru_with_the_final_backward_state(model):
    memory = model.encoder(SOURCE)
    for i, ids in enumerate(rows(SOURCE)):
        states, back = naive_memory(model.encoder, ids)
        torch.testing.assert_close(memory.states.data[i, : len(ids)], states, **CLOSE)
        torch.testing.assert_close(memory.final[0][0][i], back, **CLOSE)


def test_features_and_gradients_are_the_papers(model):
    found, expected = model(SOURCE, TARGET)[TARGET.mask], naive(model)
    torch.testing.assert_close(found, expected, **CLOSE)
    written_out, equations = gradients(model, weighted_sum(found)), gradients(model, weighted_sum(expected))
    assert len(written_out) == 24
    for name, gradient in equations.items():
        assert gradient.abs().max() > 1e-6, name
        torch.testing.assert_close(written_out[name], gradient, **CLOSE)


def test_the_loop_without_gradients_and_the_traced_loop_are_equal(model):
    expected = model(SOURCE, TARGET)[TARGET.mask]
    with torch.no_grad():
        torch.testing.assert_close(model(SOURCE, TARGET)[TARGET.mask], expected, **CLOSE)
    with record(model, gradients=True):
        watched = model(SOURCE, TARGET)[TARGET.mask]
    torch.testing.assert_close(watched, expected, **CLOSE)
    for a, b in zip(*(gradients(model, weighted_sum(f)).values() for f in (watched, expected)), strict=True):
        torch.testing.assert_close(a, b, **CLOSE)


@pytest.mark.parametrize("padded", [False, True])
def test_the_gradients_that_are_written_out_are_those_of_the_forward(padded):
    torch.manual_seed(1)
    N, T, S, A, D = 3, 3, 4, 5, 2
    shapes = [(N, T, 3 * D), (N, S, A), (N, S, 3 * D), (N, D), (A, D), (1, A), (2 * D, D), (D, D)]
    query, keys, values, hidden, *weights = (torch.randn(s, dtype=torch.double, requires_grad=True) for s in shapes)
    lengths = torch.tensor([4, 2, 0])
    real = (torch.arange(S) < lengths[:, None])[:, None] if padded else None

    def run(query, keys, values, hidden, *weights):
        return rnnsearch_loop(query, keys, values, real, hidden, *weights)

    assert torch.autograd.gradcheck(run, (query, keys, values, hidden, *weights))


def test_the_unit_resets_before_the_recurrent_product_and_torchs_after():
    """r = (1/2, 3/4), z = 1/2, h = (1, 0), U swaps: U (r h) = (0, 1/2), r (U h) = (0, 3/4)."""
    swap, query = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[0.0, math.log(3), 0, 0, 0, 0]])
    hidden = torch.tensor([[1.0, 0.0]])
    unit = GatedUnit(2)
    unit.gates.weight.data.zero_()
    unit.candidate.weight.data = swap
    with record(unit) as trace:
        found = unit(query, hidden)
    assert [round(v, 4) for v in found.flatten().tolist()] == [0.5, 0.2311] == [0.5, round(math.tanh(0.5) / 2, 4)]
    gates = trace.find("gates")[0]
    assert gates.labels["gate"] == ("reset", "update")
    torch.testing.assert_close(gates.data[0], torch.tensor([[0.5, 0.75], [0.5, 0.5]]))
    torch.testing.assert_close(trace.find("candidate")[0].data, torch.tensor([[0.0, math.tanh(0.5)]]))
    shut = torch.tensor([[[0.0], [1.0]]])  # of reset and update
    with record(unit, {"gates": lambda gates: gates * shut}):
        found = unit(query, hidden)
    assert found.flatten().tolist() == [0.5, 0.0]  # nothing is left of what U would have swapped
    torchs = nn.GRUCell(6, 2, bias=False)
    torchs.weight_ih.data, torchs.weight_hh.data = torch.eye(6), torch.cat([torch.zeros(4, 2), swap])
    assert [round(v, 4) for v in torchs(query, hidden).flatten().tolist()] == [0.5, round(math.tanh(0.75) / 2, 4)]


def test_a_replacement_takes_effect(model):
    plain = model(SOURCE, TARGET)
    for name in ("cross.scores", "cross.weights", "cross.context", "unit.gates", "unit.hidden"):
        with record(model, replace={f"decoder.{name}": torch.zeros_like}):
            assert not torch.allclose(model(SOURCE, TARGET)[:, 1:], plain[:, 1:]), name


def test_every_inner_value_has_its_name_and_axes(model):
    with record(model) as trace, trace_context(source=rows(SOURCE), target=rows(TARGET)):
        model(SOURCE, TARGET)
    records = {(r.name, r.axes, tuple(r.data.shape)) for r in trace.records if r.name.startswith("decoder")}
    look = ("batch", "head", "query", "key")
    assert records == {
        ("decoder.embedding", ("batch", "position", "width"), (3, 4, 5)),
        ("decoder.cross.scores", look, (3, 1, 1, 4)),
        ("decoder.cross.weights", look, (3, 1, 1, 4)),
        ("decoder.cross.context", ("batch", "head", "query", "width"), (3, 1, 1, 12)),
        ("decoder.bridge.context", ("batch", "width"), (3, 6)),
        ("decoder.unit.start", ("batch", "width"), (3, 6)),
        ("decoder.unit.gates", ("batch", "gate", "width"), (3, 2, 6)),
        ("decoder.unit.candidate", ("batch", "width"), (3, 6)),
        ("decoder.unit.hidden", ("batch", "width"), (3, 6)),
        ("decoder.features", ("batch", "position", "width"), (3, 4, 4)),
    }
    assert [r.context["position"] for r in trace.find("decoder.cross.weights")] == [0, 1, 2, 3]


@torch.no_grad()
def test_the_alignment_is_available_from_teacher_forcing_and_from_a_search(model):
    with record(model) as trace, trace_context(source=rows(SOURCE), target=rows(TARGET)):
        model(SOURCE, TARGET)
    view = Recording(trace).attention(row=1)
    assert (view.name, view.weights.shape, view.columns) == ("decoder.cross.weights", (4, 2), ["8", "3"])
    assert abs(view.weights.sum(1) - 1).max() < 1e-6
    aligned = align(model, SOURCE, Tokens.pad([[*row, EOS] for row in rows(TARGET)]))
    assert aligned[1] == [(int(w.argmax()), t) for t, w in enumerate(view.weights)]
    prompt = Tokens.full(torch.full((3, 1), SOS))
    with record(model) as trace, trace_context(source=rows(SOURCE)):
        found = search(model, SOURCE, prompt, Beam(3, wu_penalty(0.6), coverage_penalty=0.2), torch.full((3,), 5))
    hypothesis = found[0][0].tokens
    view = Recording(trace).attention(row=0, hypothesis=hypothesis)
    assert view.weights.shape == (len(hypothesis), 4) and view.rows == [str(i) for i in hypothesis]
    forced = align(model, SOURCE, Tokens.pad([[SOS, *h[0].tokens] for h in found]))
    assert forced[0] == [(int(w.argmax()), t) for t, w in enumerate(view.weights)]


def test_gradients_are_finite_when_all_sources_are_empty(model):
    model(Tokens.pad([[], [], []]), TARGET).square().sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if not name.startswith("decoder.readout")}
    assert all(g is None or g.isfinite().all() for g in gradients.values())
    assert gradients["decoder.word_gates.weight"].abs().max() > 0


def test_the_decoder_needs_a_source():
    with pytest.raises(ConfigError) as error:
        SHAPE.build_decoder(Words(9), EmptyEncoder())
    assert str(error.value) == "rnnsearch attends to a source, and this encoder reads none; use an encoder that does"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "embedding = 620, width = 0, alignment = 1000 and maxout = 500 must be at least 1"),
        ({"dropout": 1.0}, "dropout = 1.0 must be at least 0 and below 1"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ConfigError) as error:
        RNNsearchConfig(**settings)
    assert str(error.value) == message
