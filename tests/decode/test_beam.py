"""Beam search over tables of logits written by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.decode import (
    Beam,
    Choice,
    ConstrainedBeam,
    Sampling,
    ban,
    collect,
    decode,
    min_length,
    power_penalty,
    search,
    wu_penalty,
)
from regard.decode.beam import top_candidates
from regard.errors import ConfigError
from regard.models.base import Decoder, EmptyEncoder, EncoderDecoder, State
from regard.sequence import EOS, SOS, Padded, Tokens


class Parrot(Decoder):
    """A bigram decoder: logits (V, V), by the last word read."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table, self.readout = table, torch.nn.Identity()

    def start(self, memory, max_tokens):
        return State(memory.states, Padded(memory.states.data, memory.states.lengths))

    def forward(self, tokens, state):
        return self.table[tokens.data], state


def says(table, strategy, limits=(5,)):
    model = EncoderDecoder(EmptyEncoder(), Parrot(table))
    prompt = Tokens.full(torch.full((len(limits), 1), SOS))
    return search(model, Tokens.pad([[]] * len(limits)), prompt, strategy, torch.tensor(limits))


def table(size, **likely):
    """All words equally likely, but for `after_2=4`: after word 2 comes word 4."""
    logits = torch.zeros(size, size)
    for after, word in likely.items():
        logits[int(after.removeprefix("after_")), word] = 9.0
    return logits


def test_a_sentence_may_end_at_once_and_is_kept():
    for strategy in (Beam(1), Beam(4), Beam(4, wu_penalty(0.6)), ConstrainedBeam.from_lists(Beam(3), [[]])):
        ((found,),) = says(table(6, after_2=EOS), strategy)
        assert found.tokens == (EOS,) and found.complete and math.isfinite(found.value)


def test_sources_with_empty_outputs_keep_their_place():
    found = says(table(6, after_2=EOS), Beam(3), (5, 1, 5))
    assert [h.tokens for (h,) in found] == [(EOS,)] * 3


@pytest.mark.parametrize("width", [1, 3])
def test_when_everything_is_banned_the_sentence_ends(width):
    ((found,),) = says(table(6), Beam(width, processors=(ban(*range(6)),)))
    assert found.tokens == (EOS,) and found.score == pytest.approx(math.log(1 / 6))


def test_when_sampling_and_everything_is_banned_the_sentence_ends():
    ((found,),) = says(table(6), Sampling(0, (ban(*range(6)),)))
    assert found.tokens == (EOS,) and found.score == pytest.approx(math.log(1 / 6))


@pytest.mark.parametrize("width", [1, 2, 5, 50, 1000])
def test_a_vocabulary_may_be_smaller_than_the_beam(width):
    found = says(table(4), Beam(width, n_best=min(width, 3)), (3, 2))
    assert [len(hypotheses) for hypotheses in found] == [min(width, 3)] * 2
    assert len({h.tokens for h in found[0]}) == len(found[0])


@pytest.mark.parametrize("size", [7, 300, 1009])
def test_among_equals_the_lowest_id_wins(size):
    ((greedy,),) = says(table(size), Beam(1, processors=(min_length(2),)), (3,))
    assert greedy.tokens == (0, 0, 0)
    (found,) = says(table(size), Beam(3, power_penalty(0.0), (min_length(1),), n_best=3), (1,))
    assert [h.tokens for h in found] == [(0,), (1,), (2,)]


def test_another_vocabulary_may_end_with_another_id():
    ((found,),) = says(table(6, after_2=5, after_5=0), Beam(2, eos=0))
    assert found.tokens == (5, 0) and found.complete


def test_a_source_stops_early_only_when_nothing_live_can_win():
    sharp = table(6, after_2=EOS)
    choices = list(
        decode(
            EncoderDecoder(EmptyEncoder(), Parrot(sharp)),
            Tokens.pad([[]]),
            Tokens.pad([[SOS]]),
            Beam(4),
            torch.tensor([50]),
        )
    )
    assert len(choices) == 1  # -0.001 is better than whatever begins with -9
    ((found,),) = says(table(6, after_2=4, after_4=EOS), Beam(2, power_penalty(1.0)), (50,))
    assert found.tokens == (4, EOS)


def test_a_limit_below_one_is_an_error():
    with pytest.raises(ConfigError) as error:
        says(table(5), Beam(1), (3, 0))
    assert str(error.value) == "the longest output of a source is 0 tokens; it must be at least 1"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_best_by_chunks_are_the_best_by_sorting(data):
    width, size = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 400))
    sources, seed = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 10_000))
    k = min(data.draw(st.integers(1, 2 * width)), width * size)
    torch.manual_seed(seed)
    log = torch.randint(-3, 3, (sources * width, size)).float()  # few values: ties everywhere
    log[torch.rand(log.shape) < 0.3] = -math.inf
    before = torch.randint(-2, 1, (sources * width,)).double()
    scores, places = top_candidates(log, before, width, k)
    whole = (log + before[:, None]).view(sources, -1)
    expected, order = whole.sort(dim=1, descending=True, stable=True)
    assert torch.equal(scores, expected[:, :k])
    real = scores > -math.inf
    assert torch.equal(places[real], order[:, :k][real]) and int(places.max()) < width * size


def test_collecting_no_choices_gives_no_hypotheses():
    assert collect([]) == []


def test_a_row_of_score_minus_infinity_is_no_hypothesis():
    columns = torch.tensor([[0, 0], [0, 0], [5, 6]]), torch.tensor([-1.0, -math.inf]), torch.zeros(2, dtype=torch.bool)
    choice = Choice(*columns[0], columns[1], columns[1], columns[2], columns[2])
    assert [[h.tokens for h in found] for found in collect([choice], 2)] == [[(5,)]]
