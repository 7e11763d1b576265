"""A forecaster: Lai et al. 2018, "Modeling Long- and Short-Term Temporal Patterns with Deep Neural Networks".

New against a recurrent network with a head: a linear skip connection from the window, so that the scale of the input
reaches the output undisturbed and the network learns only the nonlinear part. Rows can be read in patches, several at a
position (Nie et al. 2023). The whole horizon is predicted at once. Different here: any encoder; the skip connection
reads all columns, and training starts at its ridge solution; quantiles of the validation errors are kept with the
weights, and give the intervals (split conformal prediction).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.models.base import Encoder
from regard.sequence import Memory, Tokens
from regard.spaces import Space
from regard.trace import tap

COLUMN_EMBEDDING = 64
"""width of the learned embedding that tells the columns apart"""
BRANCH_SCALE = 0.1
"""initial scale of the network branch: small, so that training starts at the linear solution; not 0: gradients flow"""
LEVELS = 100
"""stored quantiles of the validation errors: 1 %, 2 %, ... 100 %"""


@dataclass(frozen=True)
class ForecasterShape:
    """Input and output sizes of a forecaster."""

    rows: int
    """input rows: the window, and the horizon where future covariates are known"""
    columns: int
    """numbers per row"""
    patch: int
    """rows per patch"""
    outputs: int
    """predicted numbers: the horizon, times the columns that are predicted jointly"""
    channels: int = 1
    """columns that are read independently, with shared weights (channel independence)"""
    linear_columns: int = 0
    """leading numbers of each row that the linear skip connection reads; 0: no skip connection"""
    own_linear: int = 0
    """skip connections of single columns, besides the shared one: one per channel, or none"""

    @property
    def patches(self) -> int:
        """Number of patches, the positions of the encoder."""
        return self.rows // self.patch

    @property
    def embedding(self) -> int:
        """Width of the column embedding; 0 if columns are read jointly."""
        return COLUMN_EMBEDDING if self.channels > 1 else 0

    @property
    def inputs(self) -> int:
        """Numbers per patch."""
        return self.columns * self.patch + self.embedding


class Forecaster(nn.Module):
    """An encoder and a linear skip connection of the window, into one head.

    >>> from regard.models.mlp import MLPConfig
    >>> from regard.sequence import last
    >>> from regard.spaces import Gaussian, Values
    >>> shape = ForecasterShape(rows=6, columns=2, patch=6, outputs=3, linear_columns=2)
    >>> encoder = MLPConfig(width=4).build_encoder(Values(shape.inputs))
    >>> model = Forecaster(encoder, last, Gaussian(3), shape)
    >>> model(Tokens.full(torch.zeros(5, 6, 2))).shape, model.readout
    (torch.Size([5, 16]), Linear(in_features=16, out_features=6, bias=True))
    """

    error_quantiles: Tensor

    def __init__(
        self, encoder: Encoder, pool: Callable[[Memory], Tensor], space: Space, shape: ForecasterShape
    ) -> None:
        super().__init__()
        self.encoder, self.pool, self.shape = encoder, pool, shape
        linear = shape.rows * shape.linear_columns * (1 + shape.own_linear)
        readout = space.head(encoder.width + linear + shape.embedding)
        assert isinstance(readout, nn.Linear)
        self.readout = readout
        self.column_embedding = nn.Embedding(shape.channels, COLUMN_EMBEDDING) if shape.channels > 1 else None
        self.register_buffer("error_quantiles", torch.zeros(LEVELS, shape.outputs * shape.channels))

    @property
    def linear_width(self) -> int:
        """Number of inputs of the head that bypass the network."""
        return self.readout.in_features - self.encoder.width

    def forward(self, source: Tokens) -> Tensor:
        x_BRC, shape = source.data, self.shape
        parts = [x_BRC.reshape(len(x_BRC), shape.patches, -1)]
        if self.column_embedding is not None and source.segments is not None:
            parts.append(self.column_embedding(source.segments[:, :1]).expand(-1, shape.patches, -1))
        pooled_BD = self.pool(self.encoder(Tokens.full(torch.cat(parts, 2))))
        return tap(self, "features", torch.cat([pooled_BD, self.linear_features(source)], 1), "batch width")

    def linear_features(self, source: Tokens) -> Tensor:
        """(B, linear_width): inputs of the head that bypass the network: the window, and the column embedding."""
        x_BN = source.data[..., : self.shape.linear_columns].flatten(1)
        parts = [x_BN]
        if self.column_embedding is not None and source.segments is not None:
            parts.append(self.column_embedding(source.segments[:, 0]))
        if self.shape.own_linear and source.segments is not None:  # a block of features per column, zeros elsewhere
            own_BC = nn.functional.one_hot(source.segments[:, 0], self.shape.own_linear).to(x_BN.dtype)
            parts.append((own_BC[..., None] * x_BN[:, None]).flatten(1))
        return torch.cat(parts, 1)

    @torch.no_grad()
    def init_linear(self, solution_NA: Tensor, errors_A: Tensor) -> None:
        """Initialize the head with a linear solution (bias in its last row) and its errors as predicted scales."""
        outputs, width, weight, bias = self.shape.outputs, self.encoder.width, self.readout.weight, self.readout.bias
        weight[:, :width] *= BRANCH_SCALE
        weight[:, width:] = 0
        weight[:outputs, width:] = solution_NA[:-1].T
        bias[:outputs] = solution_NA[-1]
        bias[outputs:] = errors_A.clamp(min=1e-3).log()[: len(bias) - outputs]

    @torch.no_grad()
    def fit_error_quantiles(self, errors_NA: Tensor) -> None:
        """Store the quantiles of validation errors, in units of the predicted scale (split conformal prediction).

        Each is the error not exceeded by that share of N + 1 forecasts, of which N were seen.
        """
        n = len(errors_NA)
        shares = (
            torch.arange(1, LEVELS + 1, dtype=torch.double, device=errors_NA.device) / LEVELS * (n + 1)
        ).ceil().long().clamp(1, n) - 1
        self.error_quantiles.copy_(errors_NA.sort(0).values.index_select(0, shares))

    def interval_half_width(self, level: float) -> Tensor:
        """(outputs x channels,): half-width of the interval at a level, in units of the predicted scale."""
        at = level * LEVELS - 1
        low = int(min(max(at, 0), LEVELS - 1))
        high = min(low + 1, LEVELS - 1)
        return torch.lerp(self.error_quantiles[low], self.error_quantiles[high], float(min(max(at - low, 0.0), 1.0)))
