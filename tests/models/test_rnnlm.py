"""The recurrent language model: parameter counts, conditions, and the hidden state between windows."""

import pytest
import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models import PRESETS
from regard.models.base import parameters
from regard.models.rnnlm import RNNLMConfig
from regard.sequence import Tokens
from regard.spaces import Classes, Gaussian, Values, Words

NO_SOURCE = Tokens.pad([[], []])
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
def test_zarembas_models_have_the_parameters_of_their_equations(name, count):
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
    weights = dict(theirs.named_parameters())
    with torch.no_grad():
        for p in weights.values():
            p.zero_()
        for name, p in ours.decoder.stack.named_parameters():
            _, layer, _, weight = name.split(".")
            weights[f"{weight[:-1]}{layer}"].copy_(p)
    ids = torch.tensor([[2, 5, 6, 7], [2, 8, 8, 4]])
    expected = theirs(ours.decoder.embed(ids).transpose(0, 1))[0].transpose(0, 1) @ ours.readout.weight.T
    torch.testing.assert_close(ours.readout(ours(NO_SOURCE, Tokens.full(ids))), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_stateful_windows_equal_one_long_row(cell):
    lm, ids = model(cell=cell), torch.randint(4, 9, (2, 12), generator=torch.Generator().manual_seed(3))
    whole = lm(NO_SOURCE, Tokens.full(ids))
    state, parts = lm.start(NO_SOURCE), []
    for window in ids.split(4, 1):
        features, state = lm.decoder(Tokens.full(window), state)
        parts.append(features)
        state = state.map(Tensor.detach)
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-6, rtol=1e-5)
    carried = lm.decoder.hidden_state(state)
    assert len(carried) == 2
    torch.testing.assert_close(carried.hypothesis.layers[-1][0], whole[:, -1].detach(), atol=1e-6, rtol=1e-5)


def test_a_carried_hidden_state_has_no_gradient():
    lm, ids = model(), torch.tensor([[4, 5, 6, 7], [7, 6, 5, 4]])
    features, state = lm.decoder(Tokens.full(ids), lm.start(NO_SOURCE))
    assert all(t.requires_grad for layer in state.hypothesis.layers for t in layer)
    detached = state.map(Tensor.detach)
    assert not any(t.requires_grad for layer in detached.hypothesis.layers for t in layer)
    lm.decoder(Tokens.full(ids), detached)[0].sum().backward()
    full = [p.grad.clone() for p in lm.parameters() if p.grad is not None]
    lm.zero_grad()
    lm.decoder(Tokens.full(ids), state)[0].sum().backward()
    whole = [p.grad for p in lm.parameters() if p.grad is not None]
    assert any(not torch.allclose(a, b) for a, b in zip(full, whole, strict=True))
    assert features.requires_grad


@pytest.mark.parametrize("condition", ["start", "every"])
@pytest.mark.parametrize("cell", CELLS)
@torch.no_grad()
def test_a_condition_vector_changes_the_output(cell, condition):
    lm, target = model(cell=cell, condition=condition), Tokens.full(torch.tensor([[2, 5, 6], [2, 5, 6]]))
    x = Tokens.full(torch.tensor([[[1.0, 0.0, -1.0]], [[0.5, 0.5, 0.5]]]))
    out = lm(x, target)
    assert out.shape == (2, 3, 6) and not torch.allclose(out[0], out[1], atol=1e-3)


@torch.no_grad()
def test_every_input_is_the_condition_concatenated_with_the_previous_output():
    """[x; y_{t-1}], written out with torch's own cell."""
    lm = model(cell="gru", layers=1, condition="every")
    x, ids = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[2, 7]])
    c = lm.encoder.embed(x)
    state, states = torch.tanh(lm.decoder.bridge.linear(c)), []
    cell = nn.GRUCell(12, 6)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).copy_(getattr(lm.decoder.stack.layers[0].rnn, f"{name}_l0"))
    for y in ids[0]:
        state = cell(torch.cat([lm.decoder.embed(y)[None], c], 1), state)
        states.append(state)
    found = lm(Tokens.full(x[:, None]), Tokens.full(ids))
    torch.testing.assert_close(found, torch.stack(states, 1), atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_classes_and_words_can_be_conditions_too():
    lm = RNNLMConfig(layers=1, width=6, dropout=0.0, condition="start").build(Classes(4), Words(9)).eval()
    features = lm(Tokens.pad([[0], [3]]), Tokens.full(torch.tensor([[2], [2]])))
    assert not torch.allclose(features[0], features[1])


@pytest.mark.parametrize("space", [Values(2), Gaussian(2)], ids=["values", "gaussian"])
def test_real_numbers_can_be_generated(space):
    lm = model(cell="gru", target=space)
    series = Tokens.full(torch.randn(2, 5, 2))
    read, targets, real = series.shift()
    loss = space.loss(lm.readout(lm(NO_SOURCE, read))[real], targets[real])
    loss.backward()
    assert loss.isfinite() and all(p.grad is not None for p in lm.parameters())
    assert space.mode(lm.readout(lm(NO_SOURCE, read))).shape == (2, 4, 2)


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
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ConfigError) as error:
        RNNLMConfig(**settings)
    assert str(error.value) == message


def test_it_cannot_translate():
    with pytest.raises(ConfigError) as error:
        RNNLMConfig().check_shared_vocab(shared=True)
    assert str(error.value) == (
        'model.kind = "rnnlm" reads no source, so it cannot translate; use transformer or seq2seq'
    )
