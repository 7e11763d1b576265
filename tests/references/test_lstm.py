"""The LSTM encoder-decoder against torch.nn.LSTM with the same weights; names of checkpoints."""

import pytest
import torch
from torch import nn

from regard.models import PRESETS
from regard.models.base import EncoderDecoder, parameters
from regard.models.seq2seq import Seq2SeqConfig
from regard.sequence import Tokens, last
from regard.spaces import Words
from regard.trace import record

CLOSE = {"atol": 1e-6, "rtol": 1e-5}


def torch_names(weights):
    """layers.1.rnn.weight_ih_l0 -> weight_ih_l1"""
    return {name.split(".")[3][:-1] + name.split(".")[1]: tensor for name, tensor in weights.items()}


def read(theirs, x, states=None):
    """torch.nn.LSTM over sequences of unequal length: outputs, hidden and cell of every layer."""
    packed = nn.utils.rnn.pack_padded_sequence(x.data, x.lengths, batch_first=True, enforce_sorted=False)
    out, (hidden, cell) = theirs(packed, states)
    return nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.data.shape[1])[0], hidden, cell


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
    backwards = Tokens.pad([row[::-1] if reverse else row for row in rows])
    target = Tokens.pad([[2, 4], [2, 5, 6, 7], [2, 8, 3]])
    _, hidden, cell = read(stacks["encoder"], backwards.like(model.encoder.embed(backwards.data)))
    expected, _, _ = read(stacks["decoder"], target.like(model.decoder.embed(target.data)), (hidden, cell))
    found = model(Tokens.pad(rows), target)
    torch.testing.assert_close(found[target.mask], expected[target.mask], **CLOSE)


def test_sutskevers_model_has_the_384_million_parameters_of_the_paper():
    """160,000 words in, 80,000 out; of the weights 64 million are recurrent, half of them in the encoder."""
    with torch.device("meta"):
        model = PRESETS["seq2seq"].config.build(Words(160_000), Words(80_000))
    recurrent = parameters(model.encoder.stack), parameters(model.decoder.stack)
    assert recurrent == (32_032_000, 32_032_000)
    assert parameters(model) == PRESETS["seq2seq"].parameters == 384_064_000


def test_the_weights_have_the_names_of_checkpoints():
    model: EncoderDecoder = Seq2SeqConfig(layers=2, width=4).build(Words(9), Words(7))
    layers = [
        f"{side}.stack.layers.{i}.rnn.{weight}_{kind}_l0"
        for side in ("encoder", "decoder")
        for i in range(2)
        for weight in ("weight", "bias")
        for kind in ("ih", "hh")
    ]
    others = ["encoder.embed.weight", "decoder.embed.weight", "decoder.readout.weight"]
    assert sorted(model.state_dict()) == sorted([*layers, *others])


@torch.no_grad()
def test_states_are_aligned_with_their_words_also_when_reversed():
    torch.manual_seed(5)
    encoder = Seq2SeqConfig(layers=2, width=6).build_encoder(Words(9)).eval()
    source = Tokens.pad([[4, 5, 6, 7], [8, 3]])
    memory = encoder(source)
    for i in range(2):  # what has read everything stands at the first word, which was read last
        torch.testing.assert_close(memory.states.data[i, 0], memory.final[-1][0][i], **CLOSE)
        single = encoder(Tokens.pad([source.data[i, -1 if i == 0 else 1 :][:1].tolist()]))
        torch.testing.assert_close(last(memory)[i], single.states.data[0, 0], **CLOSE)
    torch.testing.assert_close(memory.layers[0], encoder.embed(source.data), **CLOSE)


@torch.no_grad()
def test_a_record_has_the_side_and_the_order_of_its_tokens():
    model = Seq2SeqConfig(layers=1, width=6).build(Words(9), Words(9)).eval()
    with record(model) as trace:
        model(Tokens.pad([[4, 5, 6]]), Tokens.pad([[2, 7]]))
    read, written_records = trace.find("encoder.stack.layers.0.cell"), trace.find("decoder.stack.layers.0.cell")
    assert [(r.context["reads"], r.context["backwards"], r.context["position"]) for r in read] == [
        ("source", True, t) for t in range(3)
    ]
    assert [(r.context["reads"], r.context["position"]) for r in written_records] == [("target", 0), ("target", 1)]
