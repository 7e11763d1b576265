"""The recurrent language model: counts, conditions, and a state that can be carried from window to window."""

import pytest
import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models import PRESETS
from regard.models.base import parameters
from regard.models.rnnlm import RNNLMConfig
from regard.sequence import Tokens
from regard.spaces import Classes, Gaussian, Values, Words

NOBODY = Tokens.of([[], []])
CELLS = ["tanh", "relu", "lstm", "gru"]


def model(**settings):
    torch.manual_seed(2)
    target = settings.pop("target", Words(9))
    shape = {"layers": 2, "width": 6, "dropout": 0.0, **settings}
    return RNNLMConfig(**shape).build(settings.pop("source", Values(3)), target).eval()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # embedding and softmax of 10,000 words, and of each layer four gates: units x (inputs + units + two biases)
        ("lstm-medium", 2 * 10_000 * 650 + 2 * 4 * 650 * (650 + 650 + 2)),
        ("lstm-large", 2 * 10_000 * 1500 + 2 * 4 * 1500 * (1500 + 1500 + 2)),
    ],
)
def test_zarembas_models_have_as_many_parameters_as_their_shape_implies(name, count):
    assert PRESETS[name].words == (10_000, 10_000)
    assert PRESETS[name].parameters == count
    assert round(count / 1e6) == {"lstm-medium": 20, "lstm-large": 66}[name]  # as the paper gives them


def test_a_tied_softmax_is_the_embedding_and_counts_once():
    tied, free = model(tie=True), model()
    assert tied.readout.weight is tied.decoder.embed.weight
    assert parameters(free) - parameters(tied) == 9 * 6


@pytest.mark.parametrize("cell", CELLS)
def test_it_is_torchs_stack_between_an_embedding_and_a_softmax(cell):
    ours = model(cell=cell)
    kinds = {"lstm": nn.LSTM, "gru": nn.GRU}
    theirs = kinds[cell](6, 6, 2) if cell in kinds else nn.RNN(6, 6, 2, nonlinearity=cell)
    given = dict(theirs.named_parameters())
    with torch.no_grad():
        for p in given.values():
            p.zero_()
        for name, p in ours.decoder.stack.named_parameters():
            _, layer, _, weight = name.split(".")
            given[f"{weight[:-1]}{layer}"].copy_(p)
    ids = torch.tensor([[2, 5, 6, 7], [2, 8, 8, 4]])
    wanted = theirs(ours.decoder.embed(ids).transpose(0, 1))[0].transpose(0, 1) @ ours.readout.weight.T
    torch.testing.assert_close(ours.readout(ours(NOBODY, Tokens.full(ids))), wanted, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_windows_that_carry_the_state_on_read_what_one_long_row_reads(cell):
    lm, ids = model(cell=cell), torch.randint(4, 9, (2, 12), generator=torch.Generator().manual_seed(3))
    whole = lm(NOBODY, Tokens.full(ids))
    state, parts = lm.start(NOBODY), []
    for window in ids.split(4, 1):
        features, state = lm.decoder(Tokens.full(window), state)
        parts.append(features)
        state = state.map(Tensor.detach)
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-6, rtol=1e-5)
    carried = lm.decoder.carry(state)
    assert len(carried) == 2
    torch.testing.assert_close(carried.hypothesis.layers[-1][0], whole[:, -1].detach(), atol=1e-6, rtol=1e-5)


def test_a_carried_state_stops_the_gradient_at_the_border_of_the_window():
    lm, ids = model(), torch.tensor([[4, 5, 6, 7], [7, 6, 5, 4]])
    features, state = lm.decoder(Tokens.full(ids), lm.start(NOBODY))
    assert all(t.requires_grad for layer in state.hypothesis.layers for t in layer)
    cut = state.map(Tensor.detach)
    assert not any(t.requires_grad for layer in cut.hypothesis.layers for t in layer)
    lm.decoder(Tokens.full(ids), cut)[0].sum().backward()
    full = [p.grad.clone() for p in lm.parameters() if p.grad is not None]
    lm.zero_grad()
    lm.decoder(Tokens.full(ids), state)[0].sum().backward()
    whole = [p.grad for p in lm.parameters() if p.grad is not None]
    assert any(not torch.allclose(a, b) for a, b in zip(full, whole, strict=True))
    assert features.requires_grad


@pytest.mark.parametrize("condition", ["start", "every"])
@pytest.mark.parametrize("cell", CELLS)
@torch.no_grad()
def test_a_vector_given_as_condition_changes_what_is_said(cell, condition):
    lm, target = model(cell=cell, condition=condition), Tokens.full(torch.tensor([[2, 5, 6], [2, 5, 6]]))
    x = Tokens.full(torch.tensor([[[1.0, 0.0, -1.0]], [[0.5, 0.5, 0.5]]]))
    out = lm(x, target)
    assert out.shape == (2, 3, 6) and not torch.allclose(out[0], out[1], atol=1e-3)


@torch.no_grad()
def test_every_input_is_the_condition_beside_what_was_said_before():
    """[x; y_{t-1}], written out with torch's own cell."""
    lm = model(cell="gru", layers=1, condition="every")
    x, ids = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[2, 7]])
    c = lm.encoder.embed(x)
    state, said = torch.tanh(lm.decoder.bridge.linear(c)), []
    cell = nn.GRUCell(12, 6)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).copy_(getattr(lm.decoder.stack.layers[0].rnn, f"{name}_l0"))
    for y in ids[0]:
        state = cell(torch.cat([lm.decoder.embed(y)[None], c], 1), state)
        said.append(state)
    found = lm(Tokens.full(x[:, None]), Tokens.full(ids))
    torch.testing.assert_close(found, torch.stack(said, 1), atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_classes_and_words_can_be_conditions_too():
    lm = RNNLMConfig(layers=1, width=6, dropout=0.0, condition="start").build(Classes(4), Words(9)).eval()
    said = lm(Tokens.of([[0], [3]]), Tokens.full(torch.tensor([[2], [2]])))
    assert not torch.allclose(said[0], said[1])


@pytest.mark.parametrize("space", [Values(2), Gaussian(2)], ids=["values", "gaussian"])
def test_real_numbers_can_be_said(space):
    lm = model(cell="gru", target=space)
    series = Tokens.full(torch.randn(2, 5, 2))
    read, wanted, real = series.shifted()
    loss = space.loss(lm.readout(lm(NOBODY, read))[real], wanted[real])
    loss.backward()
    assert loss.isfinite() and all(p.grad is not None for p in lm.parameters())
    assert space.next(lm.readout(lm(NOBODY, read))).shape == (2, 4, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers = 0 and width = 650 must be at least 1"),
        ({"dropout": 1.0}, "dropout = 1.0 must be at least 0 and below 1"),
        (
            {"cell": "tanh", "forget_bias": 1.0},
            'forget_bias = 1.0 needs a forget gate, and cell = "tanh" has none; use cell = "lstm"',
        ),
    ],
)
def test_a_shape_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ConfigError) as error:
        RNNLMConfig(**settings)
    assert str(error.value) == message


def test_it_cannot_translate():
    with pytest.raises(ConfigError) as error:
        RNNLMConfig().check_translates(joint=True)
    assert str(error.value) == (
        'model.kind = "rnnlm" reads no source, so it cannot translate; use transformer or seq2seq'
    )
