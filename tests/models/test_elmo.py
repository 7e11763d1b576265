"""ELMo: its two language models, their loss, and its vectors."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from regard.errors import ConfigError
from regard.models.elmo import ELMoConfig
from regard.models.presets import PRESETS
from regard.nn.character_cnn import CharacterCNN
from regard.nn.spelling import spelling_table
from regard.objective import Batch, Objective
from regard.sequence import Tokens
from regard.spaces import SpelledWords, Words
from regard.tasks import Recipe
from regard.tasks.generate.directions import BidirectionalNextToken

SMALL = ELMoConfig(width=8, cells=8, characters=5, filters=(4, 6, 3), highways=1, dropout=0.0)
close = {"atol": 1e-5, "rtol": 1e-5}


def model(**changes):
    torch.manual_seed(0)
    return replace(SMALL, **changes).build(Words(9), Words(9))


def test_the_paper_has_93_6_million_parameters_without_its_softmax():
    words = PRESETS["elmo"].words[1]
    assert PRESETS["elmo"].parameters - words * 512 == 93_600_864


@pytest.mark.parametrize("cells", [8, 12])
@torch.no_grad()
def test_the_backward_model_is_the_forward_one_on_reversed_text(cells):
    lm, text = model(cells=cells).eval(), Tokens.full(torch.tensor([[4, 5, 6, 7]]))
    lm.backward_decoder.stack.load_state_dict(lm.decoder.stack.state_dict())
    backward, _ = lm.backward_decoder(text.reverse(), lm.start(Tokens.pad([[]])))
    torch.testing.assert_close(backward, lm(Tokens.pad([[]]), text.reverse()), rtol=0, atol=0)


@torch.no_grad()
def test_a_direction_does_not_see_what_it_has_not_read():
    elmo = SMALL.build_encoder(Words(9)).eval()
    before, after = (elmo(Tokens.full(torch.tensor([row]))).layers for row in ([4, 5, 6, 7], [4, 5, 8, 7]))
    for one, two in zip(before[1:], after[1:], strict=True):
        torch.testing.assert_close(one[:, :2, :8], two[:, :2, :8], **close)  # forward, before the change
        torch.testing.assert_close(one[:, 3:, 8:], two[:, 3:, 8:], **close)  # backward, after it
        assert (one[:, 3, :8] - two[:, 3, :8]).abs().max() > 1e-4 < (one[:, 1, 8:] - two[:, 1, 8:]).abs().max()


@torch.no_grad()
def test_the_layers_equal_torch_alone():
    elmo, ids = SMALL.build_encoder(Words(9)).eval(), torch.tensor([[4, 5, 6, 7]])
    words, edge = elmo.embed(ids), elmo.embed(elmo.edge)
    for direction, (stack, x) in enumerate([(elmo.stack, words), (elmo.backward_stack, words.flip(1))]):
        x = torch.cat([edge, x], 1)
        for i, layer in enumerate(stack.layers):
            plain = nn.LSTM(8, 8, batch_first=True)
            plain.load_state_dict(layer.rnn.state_dict())
            x = plain(x)[0] + (x if i else 0)
            found = elmo(Tokens.full(ids)).layers[i + 1][..., 8 * direction : 8 * direction + 8]
            torch.testing.assert_close(found, x[:, 1:].flip(1) if direction else x[:, 1:], **close)


@torch.no_grad()
def test_a_word_vector_equals_torch_alone():
    embed = CharacterCNN(spelling_table(["<PAD>", "bank", "a"], 3), 4, (3, 5), 1, 6)
    ids = embed.spellings[1:2, :6].long()
    x = nn.functional.embedding(ids, embed.table).transpose(1, 2)
    parts = [conv(nn.functional.pad(x, (0, k))).relu().amax(2) for k, conv in enumerate(embed.convolutions)]
    x = torch.cat(parts, 1)
    new, gate = embed.highways[0].linear(x).chunk(2, 1)
    expected = embed.project(gate.sigmoid() * new.relu() + (1 - gate.sigmoid()) * x)
    torch.testing.assert_close(embed(torch.tensor([[2, 1]]))[:, 1], expected, **close)


@pytest.mark.parametrize("samples", [0, 4])
def test_the_loss_is_the_mean_of_both_directions_and_every_parameter_learns(samples):
    space = SpelledWords(9)
    objective = Objective(model(samples=samples, softmax_words=7).train(), BidirectionalNextToken(space))
    text = Tokens.full(torch.tensor([[2, 4, 5, 8, 7]]))
    batch = Batch(text.reverse(), text)
    loss, hidden_state = objective(batch)
    counts = objective.task.counts(batch)
    assert list(loss.totals) == ["forward", "backward"] and len(hidden_state) == 2
    loss.mean(counts).backward()
    assert [n for n, p in objective.model.named_parameters() if p.grad is None or p.grad.abs().max() == 0] == []
    plain, _ = objective.eval()(batch)
    lm = objective.model
    features, _ = lm.backward_decoder(text.reverse().shift()[0], lm.start(Tokens.pad([[]])))
    nll = space.nll(lm.readout(features)[0], text.reverse().shift()[1][0])
    torch.testing.assert_close(plain.totals["backward"], nll / 2)


def test_settings_that_do_not_fit_are_named():
    least = ["task.kind=generate", "model.kind=elmo"]
    with pytest.raises(ConfigError, match=r"cells = 8 must be at least width = 512"):
        Recipe.read(None, [*least, "model.cells=8"])
    with pytest.raises(ConfigError, match="the data are numbers; use rnnlm"):
        Recipe.read(None, [*least, "data.kind=numbers", "data.train=a.csv"])
    with pytest.raises(ConfigError, match=r"label_smoothing = 0\.1 .* model\.samples = 5"):
        Recipe.read(None, [*least, "model.samples=5", "train.label_smoothing=0.1"])
