"""The LSTM encoder-decoder against torch.nn.LSTM with the same weights, and the watched loop against the kernel."""

import itertools

import pytest
import torch
from torch import nn

from regard.models.seq2seq import Seq2SeqConfig
from regard.nn.recurrent import StackedLSTM
from regard.sequence import Padded, Tokens
from regard.spaces import Words
from regard.trace import record

CLOSE = {"atol": 1e-6, "rtol": 1e-5}
LENGTHS = {"unequal": (4, 7, 1), "equal": (7, 7, 7)}


def ours_and_theirs(layers=3, inputs=5, width=6):
    torch.manual_seed(2)
    ours, theirs = StackedLSTM([inputs, *[width] * layers]), nn.LSTM(inputs, width, layers, batch_first=True)
    theirs.load_state_dict(torch_names(dict(ours.named_parameters())), strict=True)
    return ours, theirs


def torch_names(named):
    """layers.1.rnn.weight_ih_l0 -> weight_ih_l1"""
    return {name.split(".")[3][:-1] + name.split(".")[1]: tensor for name, tensor in named.items()}


def sentences(kind, inputs=5):
    torch.manual_seed(3)
    lengths = torch.tensor(LENGTHS[kind])
    return Padded(torch.randn(len(lengths), 7, inputs), lengths, ragged=kind == "unequal")


def read(theirs, x, states=None):
    """torch.nn.LSTM over sequences of unequal length: outputs, hidden and cell of every layer."""
    packed = nn.utils.rnn.pack_padded_sequence(x.data, x.lengths, batch_first=True, enforce_sorted=False)
    out, (hidden, cell) = theirs(packed, states)
    return nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.data.shape[1])[0], hidden, cell


def judged(out, ends, x):
    """A number that every output and every last state moves in its own way."""
    values = torch.cat([out[x.mask].flatten(), *(state.flatten() for state in itertools.chain(*ends))])
    return (values * torch.linspace(-1, 1, len(values))).sum()


def gradients(module):
    return {name: p.grad for name, p in module.named_parameters()}


@pytest.mark.parametrize("kind", LENGTHS)
def test_stacked_layers_are_torchs_in_outputs_states_and_gradients(kind):
    (ours, theirs), x = ours_and_theirs(), sentences(kind)
    starts = torch.randn(2, 3, 3, 6)  # hidden and cell, layer, batch, width
    outs, ends = ours(x, tuple(zip(*starts, strict=True)))
    out, hidden, cell = read(theirs, x, tuple(starts))
    torch.testing.assert_close(outs[-1][x.mask], out[x.mask], **CLOSE)
    for end, h, c in zip(ends, hidden, cell, strict=True):
        torch.testing.assert_close(end, (h, c), **CLOSE)
    judged(outs[-1], ends, x).backward()
    judged(out, zip(hidden, cell, strict=True), x).backward()
    for name, grad in torch_names(gradients(ours)).items():
        torch.testing.assert_close(grad, gradients(theirs)[name], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", LENGTHS)
def test_the_watched_loop_is_the_fused_kernel_in_outputs_states_and_gradients(kind):
    (ours, _), x = ours_and_theirs(), sentences(kind)
    fused, ends = ours(x)
    judged(fused[-1], ends, x).backward()
    wanted = {name: grad.clone() for name, grad in gradients(ours).items()}
    ours.zero_grad()
    with record(ours, gradients=True) as trace:
        watched, seen = ours(x)
    judged(watched[-1], seen, x).backward()
    assert len(trace.find("layers.*.gates")) == 3 * 7  # it was the loop that ran
    for a, b in zip(watched, fused, strict=True):
        torch.testing.assert_close(a[x.mask], b[x.mask], **CLOSE)
    torch.testing.assert_close(seen, ends, **CLOSE)
    for name, grad in gradients(ours).items():
        torch.testing.assert_close(grad, wanted[name], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_encoder_decoder_is_two_of_torchs_stacks_joined_at_their_states(reverse):
    config = Seq2SeqConfig(layers=2, width=6, reverse=reverse)
    torch.manual_seed(4)
    model = config.build(Words(9), Words(9))
    stacks = {}
    for side in ("encoder", "decoder"):
        stacks[side] = nn.LSTM(6, 6, 2, batch_first=True)
        stacks[side].load_state_dict(torch_names(dict(model.get_submodule(side).stack.named_parameters())))
    rows = [[4, 5, 6, 7], [8, 3], [5]]
    backwards = Tokens.of([row[::-1] if reverse else row for row in rows])
    target = Tokens.of([[2, 4], [2, 5, 6, 7], [2, 8, 3]])
    _, hidden, cell = read(stacks["encoder"], backwards.like(model.encoder.embed(backwards.data)))
    wanted, _, _ = read(stacks["decoder"], target.like(model.decoder.embed(target.data)), (hidden, cell))
    found = model(Tokens.of(rows), target)
    torch.testing.assert_close(found[target.mask], wanted[target.mask], **CLOSE)
