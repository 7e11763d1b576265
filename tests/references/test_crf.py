"""The linear-chain CRF against a sum over all label sequences."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from regard.nn.crf import LinearChainCRF, TransitionMask
from regard.sequence import Padded

C = 3
LENGTHS = [4, 1, 3, 0]


def chain_of(seed: int, size: int = C) -> LinearChainCRF:
    torch.manual_seed(seed)
    chain = LinearChainCRF(size).double()
    for weights in chain.parameters():
        torch.nn.init.normal_(weights, std=2.0)
    return chain


def emissions_of(seed: int, size: int = C) -> Padded:
    draw = torch.Generator().manual_seed(seed)
    data = torch.randn(len(LENGTHS), max(LENGTHS), size, generator=draw, dtype=torch.double) * 2
    return Padded(data, torch.tensor(LENGTHS))


def sequences(length: int, size: int = C) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(size), repeat=length)


def written_out(chain: LinearChainCRF, at_LC: Tensor, labels: tuple[int, ...]) -> Tensor:
    """s(labels), term by term."""
    if not labels:
        return at_LC.new_zeros(())
    total = chain.start[labels[0]] + chain.end[labels[-1]]
    total = total + sum(at_LC[t, label] for t, label in enumerate(labels))
    return total + sum((chain.transitions[a, b] for a, b in itertools.pairwise(labels)), at_LC.new_zeros(()))


@pytest.mark.parametrize("seed", range(5))
def test_the_partition_is_the_sum_over_every_sequence(seed: int) -> None:
    chain, emissions = chain_of(seed), emissions_of(seed)
    for row, length in enumerate(LENGTHS):
        every = torch.stack([written_out(chain, emissions.data[row], labels) for labels in sequences(length)])
        torch.testing.assert_close(chain.log_partition(emissions)[row], every.logsumexp(0))


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_written_out_and_probabilities_sum_to_one(seed: int) -> None:
    chain, emissions = chain_of(seed), emissions_of(seed)
    for row, length in enumerate(LENGTHS):
        total = torch.zeros((), dtype=torch.double)
        for labels in sequences(length):
            labels_BL = torch.full((len(LENGTHS), max(LENGTHS)), 2)
            labels_BL[row, :length] = torch.tensor(labels, dtype=torch.long)
            torch.testing.assert_close(
                chain.score(emissions, labels_BL)[row], written_out(chain, emissions.data[row], labels)
            )
            total += (-chain.nll(emissions, labels_BL)[row]).exp()
        torch.testing.assert_close(total, torch.ones((), dtype=torch.double))


@pytest.mark.parametrize("seed", range(10))
def test_viterbi_finds_the_sequence_of_the_highest_score(seed: int) -> None:
    chain, emissions = chain_of(seed), emissions_of(seed)
    found = chain.viterbi(emissions)
    for row, length in enumerate(LENGTHS):
        best = max(sequences(length), key=lambda labels: written_out(chain, emissions.data[row], labels).item())
        assert found[row].tolist() == [*best, *[0] * (max(LENGTHS) - length)]


@pytest.mark.parametrize("seed", range(10))
def test_viterbi_takes_only_allowed_transitions(seed: int) -> None:
    chain, emissions = chain_of(seed), emissions_of(seed)
    draw = torch.Generator().manual_seed(100 + seed)
    start, step, end = (torch.rand(shape, generator=draw) < 0.7 for shape in ((C,), (C, C), (C,)))
    start[0] = step[0, 0] = end[0] = True  # so that there is a way
    found = chain.viterbi(emissions, TransitionMask(start, step, end))

    def may(labels: tuple[int, ...]) -> bool:
        steps = all(step[a, b] for a, b in itertools.pairwise(labels))
        return not labels or bool(start[labels[0]] and end[labels[-1]] and steps)

    for row, length in enumerate(LENGTHS):
        ways = filter(may, sequences(length))
        best = max(ways, key=lambda labels: written_out(chain, emissions.data[row], labels).item())
        assert found[row, :length].tolist() == list(best)


def test_marginals_are_the_probabilities_of_a_label_at_a_position() -> None:
    chain, emissions = chain_of(1), emissions_of(1)
    found = chain.marginals(emissions)
    for row, length in enumerate(LENGTHS):
        for t, label in itertools.product(range(length), range(C)):
            every = list(sequences(length))
            shares = torch.stack([written_out(chain, emissions.data[row], labels) for labels in every]).softmax(0)
            expected = sum(share for share, labels in zip(shares, every, strict=True) if labels[t] == label)
            torch.testing.assert_close(found[row, t, label], expected)
        assert found[row, length:].abs().max() == 0 if length < max(LENGTHS) else True


def test_the_gradients_are_right() -> None:
    chain, emissions = chain_of(2), emissions_of(2)
    labels = torch.tensor([[0, 1, 2, 0], [2, 0, 0, 0], [1, 1, 2, 0], [0, 0, 0, 0]])
    step, start, end = (p.detach().clone().requires_grad_() for p in (chain.transitions, chain.start, chain.end))

    def nll(data: Tensor, *weights: Tensor) -> Tensor:
        for own, labels_BL in zip(("transitions", "start", "end"), weights, strict=True):
            delattr(chain, own)
            setattr(chain, own, labels_BL)
        return chain.nll(emissions.like(data), labels)

    assert torch.autograd.gradcheck(nll, (emissions.data.requires_grad_(), step, start, end))


def test_padding_is_never_read() -> None:
    chain, emissions = chain_of(3), emissions_of(3)
    loud = replace(emissions, data=torch.where(emissions.mask[..., None], emissions.data, torch.inf))
    labels = torch.ones(len(LENGTHS), max(LENGTHS), dtype=torch.long)
    noisy = torch.where(emissions.mask, labels, 2)
    assert torch.equal(chain.nll(emissions, labels), chain.nll(loud, noisy))
    assert torch.equal(chain.viterbi(emissions), chain.viterbi(loud))


def test_an_untrained_crf_is_a_softmax_at_each_position() -> None:
    chain, emissions = LinearChainCRF(C).double(), emissions_of(4)
    torch.testing.assert_close(chain.log_partition(emissions), (emissions.data.logsumexp(2) * emissions.mask).sum(1))
    assert torch.equal(chain.viterbi(emissions), emissions.data.argmax(2) * emissions.mask)


def test_a_batch_without_positions_scores_zero() -> None:
    chain, nothing = LinearChainCRF(C), Padded(torch.zeros(2, 0, C), torch.tensor([0, 0]))
    assert chain.nll(nothing, torch.zeros(2, 0, dtype=torch.long)).tolist() == [0.0, 0.0]
    assert chain.viterbi(nothing).shape == (2, 0)


def test_long_sequences_and_large_scores_stay_finite() -> None:
    chain = chain_of(5).float()
    emissions = Padded(torch.randn(2, 2000, C) * 50, torch.tensor([2000, 1500]))
    labels = torch.zeros(2, 2000, dtype=torch.long)
    loss = chain.nll(emissions, labels).sum()
    loss.backward()
    assert loss.isfinite() and all(p.grad.isfinite().all() for p in chain.parameters())
