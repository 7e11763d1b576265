import math

import pytest
import torch

from regard.decode import History, Sampling, ban, min_p, no_repeat_ngram, repetition_penalty, temperature, top_k, top_p
from regard.decode.sampling import gumbel_noise


def after(*rows):
    history = History.start(torch.zeros(len(rows), dtype=torch.long), torch.full((len(rows),), 99), 1, 1)
    return History(torch.tensor(rows), *list(vars(history).values())[1:])


def allowed(rule, history, size=8):
    log = rule(torch.full((len(history.tokens), size), -1.0), history)
    return [[v for v in range(size) if row[v] > -math.inf] for row in log]


def test_no_n_gram_occurs_twice():
    history = after([4, 5, 6, 4, 5], [4, 4, 4, 4, 4], [1, 2, 3, 4, 5])
    assert allowed(no_repeat_ngram(3), history) == [[0, 1, 2, 3, 4, 5, 7], [0, 1, 2, 3, 5, 6, 7], list(range(8))]
    assert allowed(no_repeat_ngram(1), history)[0] == [0, 1, 2, 3, 7]
    assert allowed(no_repeat_ngram(9), history)[0] == list(range(8))


def test_the_repetition_penalty_multiplies_a_log_prob_once():
    log = repetition_penalty(2.0)(torch.full((1, 4), -1.5), after([1, 2, 1]))
    assert log.tolist() == [[-1.5, -3.0, -3.0, -1.5]]


def test_processors_do_not_modify_their_input():
    log = torch.full((1, 8), -1.0)
    for rule in (no_repeat_ngram(1), repetition_penalty(2.0), temperature(2.0), top_k(2), top_p(0.5), min_p(0.5)):
        rule(log, after([1, 2]))
        assert torch.equal(log, torch.full((1, 8), -1.0))


def test_top_p_keeps_the_most_probable_token_for_any_p():
    log = torch.tensor([[0.1, 0.7, 0.2]]).log()
    assert allowed(lambda _, h: top_p(1e-9)(log, h), after([0]), 3) == [[1]]
    assert allowed(lambda _, h: top_p(0.75)(log, h), after([0]), 3) == [[1, 2]]


def sample_many(out, strategy, N=20_000):
    """How often each token is drawn, by one batch of N sources."""
    history = History.start(torch.arange(N), torch.full((N,), 9), 1, 1)
    return torch.bincount(strategy.choose(out.expand(N, -1), history)[0].tokens, minlength=len(out))


def chi_square(counts, probabilities):
    expected = probabilities.double() * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("seed", range(5))
def test_samples_follow_the_probabilities_of_many_tokens(seed):
    probabilities = torch.rand(100, generator=torch.Generator().manual_seed(seed)).pow(4).softmax(0)
    counts = sample_many(probabilities.log(), Sampling(seed))
    assert chi_square(counts, probabilities) < 148.2  # 99 degrees of freedom: exceeded with probability 0.001


def test_unlikely_tokens_are_drawn_as_often_as_they_should_be():
    probabilities = torch.tensor([0.97, *[0.01 / 10] * 10, 0.02])
    assert chi_square(sample_many(probabilities.log(), Sampling(4), 50_000), probabilities) < 31.3  # 11 degrees


def test_samples_follow_the_processed_probabilities():
    out = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()
    counts = sample_many(out, Sampling(3, (top_k(2), temperature(0.5))))
    assert counts[2:].tolist() == [0, 0]
    assert chi_square(counts[:2], torch.tensor([0.8, 0.2])) < 10.9


def test_scores_of_samples_are_log_probabilities_of_the_model_whatever_shaped_them():
    out = torch.randn(50, 12, generator=torch.Generator().manual_seed(1)) * 3
    history = History.start(torch.arange(50), torch.full((50,), 9), 1, 1)
    choice, _ = Sampling(3, (temperature(2.0), top_k(4), ban(5))).choose(out, history)
    assert torch.equal(choice.scores.float(), out.log_softmax(1).gather(1, choice.tokens[:, None])[:, 0])


def test_noise_is_standard_gumbel_and_streams_are_independent():
    sources = torch.arange(4000)
    steps = torch.stack([gumbel_noise(1, sources, sources * 0, step, 3)[:, 0] for step in range(5)])
    slots = torch.stack([gumbel_noise(1, sources, sources * 0 + slot, 0, 3)[:, 1] for slot in range(5)])
    seeds = torch.stack([gumbel_noise(seed, sources, sources * 0, 0, 3)[:, 2] for seed in (1, 2, 3, -1, 1 << 70)])
    words = gumbel_noise(1, sources, sources * 0, 0, 5).T
    for noise in (steps, slots, seeds, words):
        assert torch.isfinite(noise).all()
        assert torch.allclose(noise.mean(1), torch.full((5,), 0.5772), atol=0.07)  # Euler's constant
        assert torch.allclose(noise.var(1), torch.full((5,), math.pi**2 / 6), atol=0.2)
        assert float((torch.corrcoef(noise) - torch.eye(5)).abs().max()) < 0.06
    # the numbers of a row depend on its source, slot and step alone, and each on its place, not on the vocabulary
    assert torch.equal(gumbel_noise(1, torch.tensor([7]), torch.tensor([0]), 3, 9)[0, :1], steps[3, 7:8])


@pytest.mark.parametrize("p", [0.0001, 0.5, 1.0])
def test_min_p_keeps_the_most_probable_token(p):
    log = torch.tensor([[0.1, 0.7, 0.2]]).log()
    assert 1 in allowed(lambda _, h: min_p(p)(log, h), after([0]), 3)[0]
