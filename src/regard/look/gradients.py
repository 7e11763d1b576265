"""Gradients through time: how much the loss at one place would change with the state at another, for any model.

L_t is the loss of the t-th wanted word, h_s what the model held after the s-th word it read. Unless told, h_s is the
lowest state: a recurrent layer's hidden state, or the residual stream that enters a Transformer's first layer. All that
a word gives to later words begins there, whatever path it takes, so that models can be compared; in a higher layer a
Transformer's stream has given part of it away already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import ConfigError, DataError
from regard.look import decoding_path, states, svg, terminal
from regard.look.color_scales import Powers
from regard.look.decay import Decay
from regard.look.matrix import Matrix
from regard.look.terminal import Colour
from regard.sequence import Padded, Tokens
from regard.spaces import Space
from regard.trace import record, row_gradients, scene

LONGEST = 512
"""tokens of a target: each needs a pass backwards through all that was read before it"""
Words = Mapping[str, Sequence[Sequence[str]]]
"""Of "source" and "target": the tokens of each row."""


@dataclass(frozen=True, eq=False)
class GradientsView:
    """|dL_t/dh_s| for each wanted word t (rows) and each word s that was read (columns).

    >>> view = GradientsView("decoder.hidden", np.array([[1.0, 0.0], [0.1, 1.0]]), ["a", "b"], ["<SOS>", "a"])
    >>> [round(norm, 6) for norm in view.decay("tiny").norms]
    [1.0, 0.1]
    """

    name: str
    """of the states, such as "decoder.stack.layers.0.hidden\""""
    norms: np.ndarray
    """(wanted, read); the geometric mean over the rows of a batch"""
    rows: list[str]
    """the words that were wanted"""
    columns: list[str]
    """the words after which the states stood"""
    side: str = "target"
    """whose states these are; "start": what the decoder begins from"""
    backwards: bool = False
    """whether the states were made from the last word to the first"""

    @property
    def title(self) -> str:
        return f"|dL/dh|, h = {self.name}"

    @property
    def distances(self) -> np.ndarray:
        """(wanted, read): how many words were read between a state and a loss; below 0 it lies in the future."""
        wanted, read = np.arange(len(self.rows))[:, None], np.arange(len(self.columns))[None]
        if self.side == "start":  # before the first word
            return wanted - read + 1
        if self.side == "target":
            return wanted - read
        order = read if not self.backwards else len(self.columns) - 1 - read
        return wanted + len(self.columns) - order  # the source is read first, then the target

    def decay(self, label: str = "") -> Decay:
        """The mean log-norm of the pairs of each distance; a pair without any gradient has none and is left out."""
        return Decay.of(label or self.name, self.norms, self.distances)

    @property
    def matrix(self) -> Matrix:
        """What pictures are drawn from."""
        return Matrix(
            self.norms, tuple(self.rows), tuple(self.columns), self.title, "target: its loss",
            f"{self.side}: its state", given=Powers.of(self.norms), spoken=("norms", "depends most on"),
        )  # fmt: skip

    def svg(self) -> str:
        """The matrix as one SVG text, in powers of ten."""
        return svg.picture(self.matrix)

    def text(self, width: int | None = None, colour: Colour | None = None) -> str:
        """The matrix in characters, and how fast it fades."""
        drawn = terminal.heat_map(self.matrix, width, colour)
        return f"{drawn}\n{self.decay().told()}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "name": self.name,
            "side": self.side,
            "rows": list(self.rows),
            "columns": list(self.columns),
            "norms": self.norms.tolist(),
            "decay": self.decay().to_dict(),
        }

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"GradientsView({self.title!r}, {len(self.rows)} x {len(self.columns)})"


def gradients_through_time(
    model: nn.Module,
    source: Padded,
    target: Tokens,
    space: Space,
    name: str | None = None,
    layer: int | None = None,
    words: Words | None = None,
) -> GradientsView:
    """The norm of dL_t/dh_s for every pair, as it flows in this model with these weights.

    `target` is read as it is given (teacher forcing), `space` says what a loss is. h_s are the decoder's states, or
    what the pattern `name` says: "encoder.*" are those of the source's words. The model must be in eval() for numbers
    that can be had again. Rows of a batch must have one length; norms are then geometric means over them.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words as Vocabulary
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=8).build(Vocabulary(9), Vocabulary(9)).eval()
    >>> view = gradients_through_time(model, Tokens.of([[]]), Tokens.of([[2, 5, 6, 3]]), Vocabulary(9))
    >>> view.name, view.norms.shape, bool(view.norms[0, 1] == 0)
    ('decoder.residual', (3, 3), True)
    """
    _check(source, target)
    read, wanted, _ = target.shifted()
    told = {"source": (words or {}).get("source"), "target": [row[:-1] for row in (words or {}).get("target", ())]}
    with torch.enable_grad():
        with record(model, gradients=True) as trace, scene(**{side: rows for side, rows in told.items() if rows}):
            out: Any = model.readout(model(source, read))  # type: ignore[operator]
        losses = [space.surprise(out[:, t], wanted[:, t]) for t in range(wanted.shape[1])]
        chosen, gate = states.choose(trace.records, name, layer, "target", 0)
        if gate is not None:
            raise ConfigError(
                f"name: {name!r} is a gate, and gradients are those of states; try hidden, cell or residual"
            )
        records = [r for r in trace.records if r.name == chosen]
        norms = _mean(row_gradients(torch.stack(losses), records))
    begins, backwards = states.begins(records[0]), states.backwards(records[0])
    side = "start" if begins else decoding_path.reader(records[0])
    columns = [states.START] if begins else _labels(words, side, norms.shape[1])
    rows = _labels(words, "target", norms.shape[0] + 1)[1:] if words else _labels(None, "target", norms.shape[0])
    return GradientsView(
        chosen, norms[:, ::-1] if backwards else norms, rows, columns[: norms.shape[1]], side, backwards
    )


def _check(source: Padded, target: Tokens) -> None:
    if target.data.shape[1] < 2:
        raise DataError(
            f"the target has {target.data.shape[1]} tokens; gradients through time need two: one to read, one to want"
        )
    if target.data.shape[1] > LONGEST:
        raise DataError(
            f"the target has {target.data.shape[1]:,} tokens; gradients through time take at most {LONGEST}: give a "
            "shorter text"
        )
    for what, rows in (("source", source), ("target", target)):
        if len(set(rows.lengths.tolist())) > 1:
            raise ValueError(
                f"the rows of the {what} have {sorted(set(rows.lengths.tolist()))} tokens; give one length"
            )


def _mean(norms_TBS: Tensor) -> np.ndarray:
    """(T, S): of one row its own numbers, of many their geometric mean over those that are not 0."""
    norms = norms_TBS.detach().cpu().double().numpy()
    if norms.shape[1] == 1:
        return norms[:, 0]
    there = norms > 0
    logs = np.log(np.where(there, norms, 1.0)).sum(1) / np.maximum(there.sum(1), 1)
    return np.where(there.any(1), np.exp(logs), 0.0)


def _labels(words: Words | None, side: str, count: int) -> list[str]:
    given = (words or {}).get(side, ())
    return list(given[0]) if len(given) == 1 else [str(i + 1) for i in range(count)]
