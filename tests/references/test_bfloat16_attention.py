"""Attention in bfloat16 on the CPU, which computes its products one by one, against the fused kernel in float32."""

import pytest
import torch
from torch import nn

from regard.nn import attention
from regard.nn.attention import FEW_KEYS, KeysValues, attend

HIDDEN_ROW = torch.tensor([[True, True, False, False, True], [False] * 5, [True] * 5])[:, None, None]
MASKS = {"full": "full", "causal": "causal", "padding": HIDDEN_ROW}


def context_and_gradients(tensors, mask):
    """Output of attention, and the gradients of its weighted sum for queries, keys and values."""
    q, k, v = (tensor.clone().requires_grad_() for tensor in tensors)
    out = attend(nn.Identity(), q, KeysValues(k, v), mask, "query key")
    (out.float() * torch.arange(out.shape[-1])).sum().backward()
    return [out.detach().float(), *(tensor.grad.float() for tensor in (q, k, v))]


@pytest.mark.parametrize("name", MASKS)
def test_context_and_gradients_are_close_to_those_of_the_fused_kernel(name):
    torch.manual_seed(1)
    tensors = [torch.randn(3, 2, 5, 8) for _ in range(3)]
    expected = context_and_gradients(tensors, MASKS[name])
    with torch.autocast("cpu", torch.bfloat16):
        found = context_and_gradients(tensors, MASKS[name])
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.03, atol=0.03 * float(theirs.abs().max()))
        assert not torch.equal(ours, theirs)  # bfloat16 it is


def test_a_query_without_visible_keys_gets_zeros_and_no_gradient():
    tensors = [torch.randn(3, 2, 5, 8) for _ in range(3)]
    with torch.autocast("cpu", torch.bfloat16):
        out, *gradients = context_and_gradients(tensors, HIDDEN_ROW)
    assert not out[1].any() and out[0].any()
    assert all(gradient.isfinite().all() and not gradient[1].any() for gradient in gradients)


@pytest.mark.parametrize(("keys", "grad", "products"), [(FEW_KEYS, True, 1), (FEW_KEYS + 1, True, 0), (4, False, 0)])
def test_only_training_on_few_keys_leaves_the_fused_kernel(monkeypatch, keys, grad, products):
    assert count_products(monkeypatch, keys, grad) == products


def test_the_weights_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(attention, "MANY_WEIGHTS", 2 * 7)
    assert [count_products(monkeypatch, keys) for keys in (7, 8)] == [1, 0]


def count_products(monkeypatch, keys, grad=True):
    """How often attention of two queries to so many keys is computed by products."""
    calls = []
    monkeypatch.setattr(attention, "_attend_by_products", lambda q, kv, mask: calls.append(1) or q)
    q, kv = torch.randn(1, 1, 2, 4), KeysValues(torch.randn(1, 1, keys, 4), torch.randn(1, 1, keys, 4))
    with torch.set_grad_enabled(grad), torch.autocast("cpu", torch.bfloat16):
        attend(nn.Identity(), q, kv, "full", "query key")
    return len(calls)
