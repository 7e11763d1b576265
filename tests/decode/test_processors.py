import math

import pytest
import torch

from regard.decode import History, Sampling, min_p, no_repeat_ngram, repetition_penalty, temperature, top_k, top_p
from regard.decode.sampling import uniform


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


def test_samples_follow_the_processed_probabilities():
    probabilities = torch.tensor([0.5, 0.25, 0.15, 0.1])
    N = 20_000
    history = History.start(torch.arange(N), torch.full((N,), 9), 1, 1)
    out = probabilities.log().expand(N, -1)
    tokens = Sampling(3).choose(out, history)[0].tokens
    shares = torch.bincount(tokens, minlength=4) / N
    assert torch.allclose(shares, probabilities, atol=0.015)
    tokens = Sampling(3, (top_k(2), temperature(0.5))).choose(out, history)[0].tokens
    shares = torch.bincount(tokens, minlength=4) / N
    assert torch.allclose(shares, torch.tensor([0.8, 0.2, 0, 0]), atol=0.015)


def test_random_streams_are_uniform_and_independent():
    sources = torch.arange(4000)
    steps = torch.stack([uniform(1, sources, sources * 0, step) for step in range(5)])
    slots = torch.stack([uniform(1, sources, sources * 0 + slot, 0) for slot in range(5)])
    seeds = torch.stack([uniform(seed, sources, sources * 0, 0) for seed in (1, 2, 3, -1, 1 << 70)])
    for numbers in (steps, slots, seeds):
        assert float(numbers.min()) >= 0 and float(numbers.max()) < 1
        assert torch.allclose(numbers.mean(1), torch.full((5,), 0.5, dtype=torch.double), atol=0.02)
        off_diagonal = torch.corrcoef(numbers) - torch.eye(5)
        assert float(off_diagonal.abs().max()) < 0.06
    assert torch.equal(uniform(1, torch.tensor([7]), torch.tensor([0]), 3), steps[3, 7:8])


@pytest.mark.parametrize("p", [0.0001, 0.5, 1.0])
def test_min_p_keeps_the_most_probable_token(p):
    log = torch.tensor([[0.1, 0.7, 0.2]]).log()
    assert 1 in allowed(lambda _, h: min_p(p)(log, h), after([0]), 3)[0]
