"""Training loop of the RNNsearch decoder as one autograd function, equal to what autograd makes of the equations.

Why by hand: the gradient of every weight is one matrix product over all steps, instead of one product per step that is
added up, and saved activations are written in place. Everything outside the loop is left to autograd.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def rnnsearch_loop(
    inputs_NTG: Tensor,
    keys_NSA: Tensor,
    values_NSG: Tensor,
    mask_N1S: Tensor | None,
    hidden_ND: Tensor,
    query_AD: Tensor,
    v_1A: Tensor,
    gates_CD: Tensor,
    candidate_DD: Tensor,
) -> tuple[Tensor, Tensor]:
    """All states s_0 ... s_T (N, T + 1, D) and attention weights (N, 1, T, S) of Bahdanau et al. 2015, A.2.2.

    At each step: weights = softmax(v . tanh(query s + keys)); the input of reset gate, update gate and candidate
    (G = 3 D) is that of the word plus the weighted sum of `values`; then the gated unit.

    >>> draw = lambda *shape: torch.randn(*shape, generator=torch.Generator().manual_seed(1))
    >>> parts = draw(2, 3, 12), draw(2, 5, 6), draw(2, 5, 12), None, draw(2, 4), draw(6, 4), draw(1, 6), draw(8, 4)
    >>> states, weights = rnnsearch_loop(*parts, draw(4, 4))
    >>> states.shape, weights.shape, torch.allclose(weights.sum(-1), torch.ones(2, 1, 3))
    (torch.Size([2, 4, 4]), torch.Size([2, 1, 3, 5]), True)
    """
    padding_NS = None if mask_N1S is None else ~mask_N1S.squeeze(1)
    inputs_TNG = inputs_NTG.transpose(0, 1).contiguous()
    states_LND, weights_TNS = _RNNsearchLoop.apply(
        inputs_TNG, keys_NSA, values_NSG, padding_NS, hidden_ND, query_AD, v_1A, gates_CD, candidate_DD
    )
    return states_LND.transpose(0, 1), weights_TNS.transpose(0, 1)[:, None]


class _RNNsearchLoop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs_TNG: Tensor,
        keys_NSA: Tensor,
        values_NSG: Tensor,
        padding_NS: Tensor | None,
        hidden_ND: Tensor,
        query_AD: Tensor,
        v_1A: Tensor,
        gates_CD: Tensor,
        candidate_DD: Tensor,
    ) -> tuple[Tensor, Tensor]:
        (T, N, _), (_, S, A), D = inputs_TNG.shape, keys_NSA.shape, hidden_ND.shape[1]
        joint_DJ, candidate_T = torch.cat([query_AD, gates_CD]).t(), candidate_DD.t()
        new = hidden_ND.new_empty
        states, weights, fits = new(T + 1, N, D), new(T, N, S), new(T, N, S, A)
        gates, candidates, v_A = new(T, N, 2 * D), new(T, N, D), v_1A.squeeze(0)
        states[0] = hidden_ND
        for t in range(T):
            query_NA, of_state_NC = (states[t] @ joint_DJ).split([A, 2 * D], 1)
            torch.add(query_NA[:, None], keys_NSA, out=fits[t]).tanh_()
            scores_NS = fits[t] @ v_A
            if padding_NS is None:
                weights[t] = scores_NS.softmax(1)
            else:  # an empty source is all padding: its softmax is NaN, its weights are zeros
                weights[t] = scores_NS.masked_fill_(padding_NS, -math.inf).softmax(1).masked_fill_(padding_NS, 0.0)
            inputs_NG = torch.baddbmm(inputs_TNG[t][:, None], weights[t][:, None], values_NSG).squeeze(1)
            torch.add(inputs_NG[:, : 2 * D], of_state_NC, out=gates[t]).sigmoid_()
            r_ND, z_ND = gates[t].chunk(2, 1)
            torch.addmm(inputs_NG[:, 2 * D :], r_ND * states[t], candidate_T, out=candidates[t]).tanh_()
            torch.lerp(states[t], candidates[t], z_ND, out=states[t + 1])
        saved = (states, weights, fits, gates, candidates)
        ctx.save_for_backward(values_NSG, query_AD, v_1A, gates_CD, candidate_DD, *saved)
        return states, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *into: Tensor) -> Any:
        values_NSG, query_AD, v_1A, gates_CD, candidate_DD, states, weights, fits, gates, candidates = ctx.saved_tensors
        (into_states, into_weights), (T, N, S, A), D = into, fits.shape, states.shape[2]
        joint_JD, values_NGS = torch.cat([query_AD, gates_CD]), values_NSG.transpose(1, 2)
        of_inputs, of_joint = states.new_empty(T, N, 3 * D), states.new_empty(T, N, A + 2 * D)
        of_scores, of_squares = states.new_empty(T, N, S), torch.zeros_like(fits[0])
        of_state = into_states[T]
        for t in reversed(range(T)):
            before, n_ND, (r_ND, z_ND) = states[t], candidates[t], gates[t].chunk(2, 1)
            of_r, of_z, of_n = of_inputs[t].chunk(3, 1)
            torch.mul(of_state * z_ND, 1 - n_ND * n_ND, out=of_n)
            of_reset = of_n @ candidate_DD
            torch.mul(of_reset * before, r_ND * (1 - r_ND), out=of_r)
            torch.mul(of_state * (n_ND - before), z_ND * (1 - z_ND), out=of_z)
            of_weights = torch.baddbmm(into_weights[t][:, None], of_inputs[t][:, None], values_NGS).squeeze(1)
            shared = weights[t] * of_weights
            torch.addcmul(shared, weights[t], shared.sum(1, keepdim=True), value=-1, out=of_scores[t])
            # tanh' = 1 - fit^2, and a softmax's gradients add up to 0: the ones fall out for the query
            squares = fits[t] * fits[t]
            of_squares.addcmul_(squares, of_scores[t][:, :, None])
            of_joint[t, :, :A] = torch.bmm(of_scores[t][:, None], squares).squeeze(1) * -v_1A
            of_joint[t, :, A:] = of_inputs[t, :, : 2 * D]
            of_state = torch.addcmul(into_states[t] + of_state, of_state, z_ND, value=-1)
            of_state = torch.addcmul(of_state, of_reset, r_ND).addmm_(of_joint[t], joint_JD)
        of_keys = (of_scores.sum(0)[:, :, None] - of_squares) * v_1A
        of_query, of_gates = (of_joint.flatten(0, 1).t() @ states[:-1].flatten(0, 1)).split([A, 2 * D])
        of_candidate = of_inputs[:, :, 2 * D :].flatten(0, 1).t() @ (gates[:, :, :D] * states[:-1]).flatten(0, 1)
        of_values = weights.permute(1, 2, 0) @ of_inputs.transpose(0, 1)
        of_v = of_scores.view(1, -1) @ fits.view(-1, A)
        return of_inputs, of_keys, of_values, None, of_state, of_query, of_v, of_gates, of_candidate
