"""GNMT against torch.nn.LSTM layers, assembled as in the paper's section 3."""

import pytest
import torch

from regard.errors import ConfigError
from regard.models.base import EmptyEncoder
from regard.models.gnmt import GNMTConfig
from regard.sequence import Tokens
from regard.spaces import Words
from regard.trace import record

CLOSE = {"atol": 1e-6, "rtol": 1e-6}
SOURCE = Tokens.pad([[4, 5, 6, 7], [8, 3], [5]])
TARGET = Tokens.pad([[2, 4], [2, 5, 6, 7], [2, 8, 3]])


@pytest.fixture
def model():
    torch.manual_seed(3)
    return GNMTConfig(layers=4, width=6, dropout=0.0).build(Words(9), Words(9)).double()


def read(layer, x, backwards=False):
    """One sentence through torch's own LSTM with a layer's weights."""
    out = layer.rnn((x.flip(0) if backwards else x)[None])[0][0]
    return out.flip(0) if backwards else out


def naive_encoder(encoder, ids):
    x = encoder.embed.weight[ids]
    x = torch.cat([read(encoder.first.forward_layer, x), read(encoder.first.backward_layer, x, backwards=True)], 1)
    second, third, fourth = encoder.stack.layers
    x = read(second, x)
    x = x + read(third, x)
    return x + read(fourth, x)


def naive(model, source, ids):
    memory, decoder = naive_encoder(model.encoder, source), model.decoder
    x = read(decoder.first, decoder.embed.weight[ids])
    W, U, v = (getattr(decoder.cross.score, name).weight for name in ("query", "key", "v"))
    contexts = []
    for q in x:
        weights = torch.stack([(v @ torch.tanh(W @ q + U @ s)).squeeze() for s in memory]).softmax(0)
        contexts.append(weights @ memory)
    context = torch.stack(contexts)
    second, third, fourth = decoder.stack.layers
    x = read(second, torch.cat([x, context], 1))
    x = x + read(third, torch.cat([x, context], 1))
    return x + read(fourth, torch.cat([x, context], 1))


def rows(tokens):
    return [row[:n].tolist() for row, n in zip(tokens.data, tokens.lengths, strict=True)]


def gradients(model, features):
    names, ps = zip(*((n, p) for n, p in model.named_parameters() if not n.startswith("decoder.readout")), strict=True)
    weighted_sum = (features * torch.linspace(-1, 1, features.numel()).view_as(features)).sum()
    return dict(zip(names, torch.autograd.grad(weighted_sum, ps), strict=True))


def test_features_and_gradients_are_those_of_torchs_layers_put_together(model):
    found = model(SOURCE, TARGET)[TARGET.mask]
    expected = torch.cat([naive(model, s, t) for s, t in zip(rows(SOURCE), rows(TARGET), strict=True)])
    torch.testing.assert_close(found, expected, **CLOSE)
    equations = gradients(model, expected)
    for name, gradient in gradients(model, found).items():
        assert equations[name].abs().max() > 1e-8, name
        torch.testing.assert_close(gradient, equations[name], **CLOSE)


def test_only_the_lowest_layer_attends_and_all_above_read_its_context(model):
    with record(model) as plain:
        model(SOURCE, TARGET)
    with record(model, replace={"decoder.cross.context": torch.zeros_like}) as without_context:
        model(SOURCE, TARGET)
    assert len(plain.find("decoder.cross.weights")) == 1  # all words at once
    for name, reads_context in (
        ("decoder.first.hidden", False),
        *((f"decoder.stack.layers.{i}.hidden", True) for i in range(3)),
    ):
        a, b = (torch.stack([r.data for r in trace.find(name)]) for trace in (plain, without_context))
        assert torch.allclose(a, b) != reads_context, name


def test_a_decoder_with_attention_needs_a_source():
    with pytest.raises(ConfigError) as error:
        GNMTConfig(layers=2, width=6).build_decoder(Words(9), EmptyEncoder())
    assert str(error.value) == "gnmt attends to a source, and this encoder reads none; use an encoder that does"
