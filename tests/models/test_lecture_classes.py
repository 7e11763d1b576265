"""The lecture's EncoderRNN and AutoRegressiveDecoder, composed of ours, against plain torch with the same weights."""

import pytest
import torch
from torch import nn

from regard.decode import Beam, search
from regard.models.base import Decoder, Encoder
from regard.models.seq2seq import Seq2SeqConfig
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words

WORDS, WIDTH, LONGEST = 11, 12, 9
KINDS = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class EncoderRNN:
    """Embedding and RNN; returns the output at every position and the final hidden state."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __call__(self, ids_BS):
        memory = self.encoder(Tokens.full(ids_BS))
        return memory.states.data, memory.final[0][0]


class AutoRegressiveDecoder:
    """From a start token until the stop token or a limit; returns ids and stacked logits."""

    def __init__(self, decoder: Decoder, start: int, stop: int, longest: int) -> None:
        self.decoder, self.begin, self.stop, self.longest = decoder, start, stop, longest

    def __call__(self, memory):
        state, output, logits = self.decoder.start(memory, self.longest), torch.tensor([[self.begin]]), []
        for _ in range(self.longest):
            features, state = self.decoder(Tokens.full(output[:, -1:]), state)
            logits.append(self.decoder.readout(features[:, -1]))
            output = torch.cat([output, logits[-1].argmax(-1, keepdim=True)], 1)
            if output[0, -1] == self.stop:
                break
        return output[:, 1:], torch.stack(logits, 1)


def model(cell):
    torch.manual_seed(17)
    built = Seq2SeqConfig(layers=1, width=WIDTH, cell=cell, reverse=False).build(Words(WORDS), Words(WORDS)).eval()
    for p in built.parameters():  # decided, so that some sentences end before the limit
        p.data += torch.randn_like(p)
    return built


def plain(rnn, kind):
    """torch's layer with the weights of ours."""
    theirs = KINDS[kind](WIDTH, WIDTH, batch_first=True)
    weights = dict(rnn.named_parameters())
    theirs.load_state_dict({n: weights.get(n, torch.zeros_like(p)) for n, p in theirs.named_parameters()})
    return theirs


@pytest.mark.parametrize("cell", KINDS)
@torch.no_grad()
def test_the_lectures_classes_equal_plain_torch(cell):
    ours = model(cell)
    encode = EncoderRNN(ours.encoder)
    generate = AutoRegressiveDecoder(ours.decoder, SOS, EOS, LONGEST)
    reads = plain(ours.encoder.stack.layers[0].rnn, cell)
    speaks = plain(ours.decoder.stack.layers[0].rnn, cell)
    lengths = set()
    for row in ([4, 5, 6, 7], [8, 4], [9], [10, 10, 5], [6, 9, 4, 4, 5]):
        ids = torch.tensor([row])
        outputs, state = reads(ours.encoder.embed(ids))
        found, hidden = encode(ids)
        torch.testing.assert_close(found, outputs, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(hidden, (state[0] if cell == "lstm" else state)[0], atol=1e-6, rtol=1e-5)
        output, logits, y = [], [], SOS
        while len(output) < LONGEST and y != EOS:
            out, state = speaks(ours.decoder.embed(torch.tensor([[y]])), state)
            logits.append(ours.readout(out[:, 0]))
            y = int(logits[-1].argmax())
            output.append(y)
        answer, stacked = generate(ours.encoder(Tokens.full(ids)))
        assert answer.tolist() == [output] and stacked.shape == (1, len(output), WORDS)
        torch.testing.assert_close(stacked, torch.stack(logits, 1), atol=1e-5, rtol=1e-5)
        ((greedy,),) = search(ours, Tokens.full(ids), Tokens.pad([[SOS]]), Beam(1), torch.tensor([LONGEST]))
        assert list(greedy.tokens) == output  # and equal to our greedy search
        lengths.add(len(output))
    assert len(lengths) > 1  # some stopped by themselves
