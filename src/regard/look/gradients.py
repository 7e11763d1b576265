"""Gradients through time: the norm of dL_t/dh_s for every pair of positions, for any model.

L_t is the loss of the t-th target token, h_s the state after the s-th input token. By default h_s is the lowest state:
a recurrent layer's hidden state, or the residual stream that enters a Transformer's first layer. All that a token
passes on to later tokens starts there, whatever path it takes, so models can be compared; in a higher layer a
Transformer's stream has passed part of it on already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.device import module_device
from regard.errors import ConfigError, DataError
from regard.look import decoding_path, states
from regard.look.color_scales import LogScale
from regard.look.decay import GradientDecay
from regard.look.matrix import Matrix
from regard.look.terminal import ColorDepth
from regard.look.view import MatrixView
from regard.sequence import Images, Padded, Tokens
from regard.spaces import Space
from regard.trace import record, row_gradient_norms, trace_context

MAX_TOKENS = 512
"""longest target: each token needs a backward pass through everything before it"""
TokenRows = Mapping[str, Sequence[Sequence[str]]]
"""Per side ("source", "target"): the tokens of each row."""


@dataclass(frozen=True, eq=False, repr=False)
class GradientsView(MatrixView):
    """|dL_t/dh_s| per target token t (rows) and input token s (columns)."""

    name: str
    """of the states, such as "decoder.stack.layers.0.hidden\""""
    norms: np.ndarray
    """(targets, inputs); geometric mean over the rows of a batch"""
    rows: list[str]
    """target tokens"""
    columns: list[str]
    """input tokens, one per state"""
    side: str = "target"
    """sequence of the states; "start": the initial state of the decoder"""
    backwards: bool = False
    """whether the states were computed from the last token to the first"""

    @property
    def title(self) -> str:
        return f"|dL/dh|, h = {self.name}"

    @property
    def distances(self) -> np.ndarray:
        """(targets, inputs): tokens read between a state and a loss; negative: the state is in the future."""
        target, read = np.arange(len(self.rows))[:, None], np.arange(len(self.columns))[None]
        if self.side == "start":  # before the first token
            return target - read + 1
        if self.side == "target":
            return target - read
        order = read if not self.backwards else len(self.columns) - 1 - read
        return target + len(self.columns) - order  # the source is read first, then the target

    def decay(self, label: str = "") -> GradientDecay:
        """Mean log-norm per distance, over the pairs with a gradient."""
        return GradientDecay.from_norms(label or self.name, self.norms, self.distances)

    @property
    def matrix(self) -> Matrix:
        return Matrix(
            self.norms, tuple(self.rows), tuple(self.columns), self.title, "target: its loss",
            f"{self.side}: its state", color_scale=LogScale.fit(self.norms), summary_words=("norms", "depends most on"),
        )  # fmt: skip

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The matrix in characters, and the decay in one line."""
        return f"{super().text(width, color)}\n{self.decay().summary()}"

    def to_dict(self) -> dict[str, Any]:
        return self._fields("name", "side", "rows", "columns", "norms") | {"decay": self.decay().to_dict()}


def gradients_through_time(
    model: nn.Module,
    source: Padded | Images,
    target: Tokens,
    space: Space,
    name: str | None = None,
    layer: int | None = None,
    tokens: TokenRows | None = None,
) -> GradientsView:
    """Norm of dL_t/dh_s for every pair, with the model's current weights.

    `target` is read with teacher forcing, `space` computes the loss. h_s are the decoder's states, or those that the
    pattern `name` selects: "encoder.*" for the source tokens. Put the model in eval() for reproducible numbers. All
    rows of a batch must have the same length; norms are geometric means over them. `tokens` are labels.
    """
    _check(source, target)
    source, target = source.to(module_device(model)), target.to(module_device(model))
    read, wanted, _ = target.shift()
    labels = tokens or {}
    facts = {"source": labels.get("source"), "target": [row[:-1] for row in labels.get("target", ())]}
    with torch.enable_grad():
        context = trace_context(**{side: rows for side, rows in facts.items() if rows})
        with record(model, gradients=True) as trace, context:
            out: Any = model.readout(model(source, read))  # type: ignore[operator]
        losses = [space.nll(out[:, t], wanted[:, t]) for t in range(wanted.shape[1])]
        chosen, gate = states.choose_state(trace.records, name, layer, "target", 0)
        if gate is not None:
            why = "is a gate, and gradients are those of states; try hidden, cell or residual"
            raise ConfigError(f"name: {name!r} {why}")
        records = [r for r in trace.records if r.name == chosen]
        norms = _mean(row_gradient_norms(torch.stack(losses), records))
    initial, backwards = states.is_initial(records[0]), states.is_backwards(records[0])
    side = "start" if initial else decoding_path.input_side(records[0])
    columns = [states.START] if initial else _labels(labels, side, norms.shape[1])
    rows = _labels(labels, "target", norms.shape[0] + 1)[1:] if tokens else _labels({}, "target", norms.shape[0])
    norms = norms[:, ::-1] if backwards else norms
    return GradientsView(chosen, norms, rows, columns[: norms.shape[1]], side, backwards)


def _check(source: Padded | Images, target: Tokens) -> None:
    length = target.data.shape[1]
    if length < 2:
        raise DataError(f"the target has {length} tokens; gradients through time need two: one input, one target")
    if length > MAX_TOKENS:
        most = f"gradients through time take at most {MAX_TOKENS}"
        raise DataError(f"the target has {length:,} tokens; {most}: give a shorter text")
    for what, rows in (("source", source), ("target", target)):
        lengths = set(rows.lengths.tolist()) if isinstance(rows, Padded) else set()  # images have one size
        if len(lengths) > 1:
            raise ValueError(f"the rows of the {what} have {sorted(lengths)} tokens; give one length")


def _mean(norms_TBS: Tensor) -> np.ndarray:
    """(T, S): the norms of a single row, else their geometric mean over the rows where they are not 0."""
    norms = norms_TBS.detach().cpu().double().numpy()
    if norms.shape[1] == 1:
        return norms[:, 0]
    positive = norms > 0
    logs = np.log(np.where(positive, norms, 1.0)).sum(1) / np.maximum(positive.sum(1), 1)
    return np.where(positive.any(1), np.exp(logs), 0.0)


def _labels(tokens: TokenRows, side: str, count: int) -> list[str]:
    rows = tokens.get(side, ())
    return list(rows[0]) if len(rows) == 1 else [str(i + 1) for i in range(count)]
