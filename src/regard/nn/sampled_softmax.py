"""Sampled softmax: Bengio and Senecal 2008; Jean et al. 2015, "On Using Very Large Target Vocabulary ..."."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

HIDDEN = -1e9
"""logit of a candidate that is the target itself: it must not count as a wrong word"""


def sampled_softmax_loss(features_ND: Tensor, target_N: Tensor, weight_VD: Tensor, samples: int) -> Tensor:
    """Cross-entropy over the target and some other words, summed: a training loss in a fraction of the time.

    The candidates are drawn from a log-uniform distribution, since ids are ordered by frequency; each logit is
    corrected by the log of the probability that its word was drawn, so that the expected gradient is that of the
    softmax. With all words as candidates it is the softmax.

    >>> x, w, target = torch.randn(2, 3), torch.randn(9, 3), torch.tensor([4, 0])
    >>> exact = F.cross_entropy(x @ w.T, target, reduction="sum")
    >>> torch.allclose(sampled_softmax_loss(x, target, w, 1_000_000), exact, atol=1e-4)
    True
    """
    size = len(weight_VD)
    drawn = torch.rand(samples, device=features_ND.device).mul_(math.log(size + 1)).exp_().long().sub_(1)
    words_S = drawn.clamp_(0, size - 1).unique()
    # taken at once: each backward pass of an index fills a gradient of the size of the softmax
    own_ND, other_SD = weight_VD[torch.cat([target_N, words_S])].split([len(target_N), len(words_S)])
    own_N = (features_ND * own_ND).sum(-1) - _log_expected(target_N, size, samples)
    other_NS = features_ND @ other_SD.T - _log_expected(words_S, size, samples)
    other_NS = other_NS.masked_fill(words_S == target_N[:, None], HIDDEN)
    logits_NS = torch.cat([own_N[:, None], other_NS], 1)
    return F.cross_entropy(logits_NS, torch.zeros_like(target_N), reduction="sum")


def _log_expected(ids: Tensor, size: int, samples: int) -> Tensor:
    """Log of the probability that a word is among the samples."""
    probability = torch.log1p(1 / (ids.double() + 1)) / math.log(size + 1)
    return (-torch.expm1(samples * torch.log1p(-probability))).log().float()
