import pytest
import torch

from regard.decode import align, score
from regard.errors import ConfigError, DataError
from regard.sequence import EOS, SOS, Tokens
from zoo import build


@torch.no_grad()
def test_scores_are_sums_of_log_probs_whatever_the_chunk():
    model, source = build("transformer"), Tokens.pad([[4, 5], [6]])
    target = Tokens.pad([[SOS, 4, 5, EOS], [SOS, EOS]])
    log = model.readout(model(source, target.shift()[0])).log_softmax(-1)
    expected = [float(log[0, 0, 4] + log[0, 1, 5] + log[0, 2, EOS]), float(log[1, 0, EOS])]
    for chunk in (1, 2, 1024):
        scored = score(model, source, target, chunk)
        assert scored.totals.tolist() == pytest.approx(expected, abs=1e-5)
        assert scored.tokens[1, 1:].tolist() == [0, 0] and scored.lengths.tolist() == [3, 1]


def test_an_output_without_words_cannot_be_scored():
    with pytest.raises(DataError) as error:
        score(build("transformer"), Tokens.pad([[4], [5]]), Tokens.pad([[SOS, EOS], [SOS]]))
    assert str(error.value) == "output 1 has 1 tokens; it must start with <SOS> and hold at least one more"


def test_an_alignment_of_a_missing_layer_is_an_error():
    with pytest.raises(ConfigError) as error:
        align(build("transformer"), Tokens.pad([[4]]), Tokens.pad([[SOS, EOS]]), layer=2)
    assert str(error.value) == "layer = 2 does not exist: 2 layers attend to the source"


def test_an_empty_source_has_no_alignment():
    pairs = align(build("transformer"), Tokens.pad([[4, 5], []]), Tokens.pad([[SOS, 4, EOS], [SOS, 4, EOS]]))
    assert len(pairs[0]) == 2 and pairs[1] == []


def test_a_threshold_of_zero_aligns_all_real_words():
    pairs = align(
        build("transformer"), Tokens.pad([[4, 5], [6]]), Tokens.pad([[SOS, EOS], [SOS, 4, EOS]]), threshold=0.0
    )
    assert pairs == [[(0, 0), (1, 0)], [(0, 0), (0, 1)]]
