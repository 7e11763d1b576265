"""Attribution of an output to the tokens that were read: gradient x input, and integrated gradients beside it.

Both explain the log-probability of one output by the embeddings of the tokens. Gradient x input is the first-order
estimate at the input. Integrated gradients (Sundararajan et al. 2017) average the gradient along the straight line from
embeddings of zero, so their sum is the difference of the log-probability between input and zero (completeness); what
the sum misses, because the line is cut into steps, is the completeness error. Positions stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import ModelError
from regard.look.color_scales import DivergingScale
from regard.look.matrix import Matrix
from regard.look.replay import Replay
from regard.look.tokens import token_label
from regard.look.view import MatrixView

STEPS, ROWS = 128, 16
"""points on the line, and how many of them are in one pass"""


@dataclass(frozen=True, eq=False)
class InputAttribution(MatrixView):
    """Effect of each token on the log-probability of one output, by both methods."""

    title: str
    tokens: list[str]
    sides: list[str]
    """of each token: "source" or "target\""""
    gradient: np.ndarray
    """gradient x input, one number per token"""
    integrated: np.ndarray
    """integrated gradients, one number per token"""
    score: float
    """log-probability of the output"""
    baseline: float
    """the same with embeddings of zero"""

    @property
    def error(self) -> float:
        """Completeness error: the sum of the integrated gradients minus the difference that they explain."""
        return float(self.integrated.sum()) - (self.score - self.baseline)

    @property
    def matrix(self) -> Matrix:
        numbers = np.stack([self.gradient, self.integrated])
        scale = DivergingScale(float(np.abs(numbers).max(initial=0.0)))
        return Matrix(
            numbers, ("gradient x input", "integrated gradients"), tuple(self.tokens), self.title, "method", "read",
            color_scale=scale, summary_words=("numbers", "depends most on"),
        )  # fmt: skip

    def text(self, *args: Any, **options: Any) -> str:
        """Both methods as a heat map, and what integrated gradients sum to."""
        total, difference = float(self.integrated.sum()), self.score - self.baseline
        note = f"log-probability {self.score:.4f}, with embeddings of zero {self.baseline:.4f}, difference "
        note += f"{difference:.4f}; integrated gradients sum to {total:.4f}, completeness error {self.error:+.1e}"
        return f"{super().text(*args, **options)}\n{note}"

    def to_dict(self) -> dict[str, Any]:
        labels = {"labels": [token_label(token) for token in self.tokens]}
        fields = self._fields("title", "tokens", "sides", "gradient", "integrated", "score", "baseline", "error")
        return fields | labels


def input_attribution_steps(replay: Replay, at: int = 0) -> Iterator[tuple[int, int] | InputAttribution]:
    """(points done, points in all) after each pass, and the view at the end."""
    output = replay.check(at)
    line = EmbeddingLine(replay, at)
    score, gradients, vectors = line.point(torch.ones(1))
    products = [gradient[0] * vector for gradient, vector in zip(gradients, vectors, strict=True)]
    baseline, *_ = line.point(torch.zeros(1))
    sums = [torch.zeros_like(vector, device="cpu") for vector in vectors]
    for start in range(0, STEPS, ROWS):
        # midpoints of t in share = t^3: close to zero, where norms make the function steep, points are dense
        t_N = (torch.arange(start, start + ROWS) + 0.5) / STEPS
        _, found, _ = line.point(t_N**3)
        weights_N11 = (3 * t_N**2).double().view(-1, 1, 1)
        sums = [total + (gradient.cpu() * weights_N11).sum(0) for total, gradient in zip(sums, found, strict=True)]
        yield start + ROWS, STEPS
    integrated = [total / STEPS * vector.cpu() for total, vector in zip(sums, vectors, strict=True)]
    sides, tokens = line.labels(vectors)
    gradient, mean = (torch.cat([part.sum(-1) for part in parts]).cpu().numpy() for parts in (products, integrated))
    title = f"log-probability of {token_label(output.token)}: what each token contributes"
    yield InputAttribution(title, tokens, sides, gradient, mean, float(score[0]), float(baseline[0]))


class EmbeddingLine:
    """Log-probability of an output as a function of the embeddings, on the line from zero to those of the input."""

    def __init__(self, replay: Replay, at: int) -> None:
        self.replay, self.at = replay, at
        module = replay.module
        parts: dict[nn.Module, str] = {}
        if replay.tokens.get("source"):
            parts |= dict.fromkeys(module.encoder.embeddings(), "source")
        if replay.read is not None:
            parts[module.decoder.embed] = "target"
        self.parts = parts

    def point(self, shares_N: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Scores (N,) at shares of the embeddings, their gradients (N, L, D) and the whole embeddings (L, D)."""
        scaled: dict[nn.Module, Tensor] = {}
        whole: dict[nn.Module, Tensor] = {}

        def scale(part: nn.Module, inputs: Any, out: Tensor) -> Tensor:
            whole[part] = out[0].detach().double()
            share = shares_N.to(out).view(-1, *[1] * (out.ndim - 1))
            scaled[part] = (out.detach() * share).requires_grad_()
            return scaled[part]

        hooks = [part.register_forward_hook(scale) for part in self.parts]
        try:
            with torch.enable_grad(), self.replay.run_changed() if self.replay.changes else nullcontext():
                logits_NPV = self.replay.logits(len(shares_N)).double()
                scores_N = self.replay.output_values(logits_NPV.log_softmax(-1))[:, self.at]
                if not scaled:
                    raise ModelError("no embeddings of tokens are read, so nothing can be attributed to tokens")
                found = torch.autograd.grad(scores_N.sum(), list(scaled.values()), materialize_grads=True)
        finally:
            for hook in hooks:
                hook.remove()
        return scores_N.detach(), [gradient.double() for gradient in found], list(whole.values())

    def labels(self, vectors: list[Tensor]) -> tuple[list[str], list[str]]:
        """Side and token of each embedding."""
        sides, tokens = list[str](), list[str]()
        for side, vector in zip(self.parts.values(), vectors, strict=True):
            known = list(self.replay.tokens.get(side, ()))[: len(vector)]
            tokens += known + [str(i + 1) for i in range(len(known), len(vector))]
            sides += [side] * len(vector)
        return sides, tokens
