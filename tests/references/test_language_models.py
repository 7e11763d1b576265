"""GPT and Llama against Hugging Face with the same random weights: logits, greedy text, perplexity."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from language_models import randomize, to_transformers
from regard.decode import Beam, power_penalty, search
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.nn.inference import optimize_for_inference
from regard.nn.rotary import Rotary, rotate, rotation
from regard.sequence import EOS, Tokens
from regard.spaces import Words
from regard.trace import record

V, CLOSE = 61, {"atol": 1e-5, "rtol": 1e-5}
"""the aim is 1e-4; rounding stays a tenth of it"""
_GPT = GPTConfig(layers=3, width=24, heads=4, dropout=0.0, max_positions=48)
_LLAMA = LlamaConfig(layers=3, width=24, ffn_width=40, heads=4, max_positions=48)
CONFIGS = {
    "openai-gpt": replace(_GPT, norm="post"),
    "gpt-2": _GPT,
    "gpt-2-narrow": replace(_GPT, ffn_width=32, activation="gelu"),
    "llama": _LLAMA,
    "llama-grouped": replace(_LLAMA, kv_heads=2, tie=True, rope_theta=500_000.0, norm_eps=1e-6),
    "llama-multi-query": replace(_LLAMA, kv_heads=1, head_width=10),
    "qwen2": replace(_LLAMA, kv_heads=2, qkv_bias=True),
}


@pytest.fixture(params=CONFIGS, scope="module")
def pair(request):
    torch.manual_seed(1)
    config = CONFIGS[request.param]
    model = randomize(config.build(Words(V), Words(V)))
    return model, to_transformers(model, config).to(torch.float32)


def texts(count: int, longest: int = 14) -> list[list[int]]:
    draw = torch.Generator().manual_seed(7)
    lengths = torch.randint(1, longest, (count,), generator=draw).tolist()
    return [torch.randint(4, V, (n,), generator=draw).tolist() for n in lengths]


def empty(rows: int) -> Tokens:
    return Tokens.pad([[]] * rows)


@torch.no_grad()
def test_logits_of_padded_batches_are_equal_recorded_or_not(pair):
    model, theirs = pair
    tokens = Tokens.pad(texts(9))
    expected = theirs(input_ids=tokens.data, attention_mask=tokens.mask.long()).logits
    found = model.readout(model(empty(9), tokens))
    torch.testing.assert_close(found[tokens.mask], expected[tokens.mask], **CLOSE)
    with record(model):
        watched = model.readout(model(empty(9), tokens))
    torch.testing.assert_close(watched[tokens.mask], expected[tokens.mask], **CLOSE)
    assert expected.std() > 0.3  # not all alike


@torch.no_grad()
def test_a_gpt_without_biases_is_one_whose_biases_are_zero():
    without, biased = (replace(_GPT, bias=bias).build(Words(V), Words(V)) for bias in (False, True))
    randomize(without)
    for name, weight in biased.named_parameters():
        weight.copy_(dict(without.named_parameters()).get(name, torch.zeros_like(weight)))
    names = {name for name, _ in biased.named_parameters()} - {name for name, _ in without.named_parameters()}
    assert len(names) == 3 * 6 + 1 and all(name.endswith(".bias") for name in names)
    tokens = Tokens.pad(texts(9))
    torch.testing.assert_close(without(empty(9), tokens), biased(empty(9), tokens), **CLOSE)


def test_gradients_are_equal(pair):
    model, theirs = pair
    tokens = Tokens.pad(texts(5))
    ours, other = (m.zero_grad() or m for m in (model, theirs))
    read, target, real = tokens.shift()
    F.cross_entropy(ours.readout(ours(empty(5), read))[real], target[real]).backward()
    logits = other(input_ids=tokens.data, attention_mask=tokens.mask.long()).logits[:, :-1]
    F.cross_entropy(logits[real], target[real]).backward()
    total = sum(float(p.grad.double().square().sum()) for p in model.parameters()) ** 0.5
    expected = sum(float(p.grad.double().square().sum()) for p in theirs.parameters()) ** 0.5
    assert total == pytest.approx(expected, rel=1e-5) and total > 0.1
    grads = [dict(m.named_parameters())[name].grad for m, name in zip((model, theirs), embeddings(theirs), strict=True)]
    torch.testing.assert_close(*grads, **CLOSE)


def embeddings(theirs) -> tuple[str, str]:
    weight = theirs.get_input_embeddings().weight
    return "decoder.embed.weight", next(name for name, p in theirs.named_parameters() if p is weight)


@torch.no_grad()
def test_perplexity_is_equal(pair):
    model, theirs = pair
    tokens = Tokens.full(torch.tensor(texts(40, 30)[3] + texts(9)[1])[None])
    read, target, _ = tokens.shift()
    loss = Words(V).nll(model.readout(model(empty(1), read))[0], target[0]) / target.numel()
    expected = theirs(input_ids=tokens.data, labels=tokens.data).loss
    assert float(loss.exp()) == pytest.approx(float(expected.exp()), rel=1e-5)


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "optimized"])
def test_greedy_texts_of_a_hundred_prompts_in_padded_batches_are_identical(pair, fast):
    model, theirs = pair
    ours = optimize_for_inference(model) if fast else model
    prompts, length, size = texts(100), 12, 20
    strategy = Beam(1, power_penalty(0.0))
    mine, expected = [], []
    for start in range(0, 100, size):
        rows = prompts[start : start + size]
        found = search(ours, empty(size), Tokens.pad(rows), strategy, torch.full((size,), length))
        mine += [list(best[0].tokens) for best in found]
        expected += generate(theirs, rows, length)
    assert mine == expected
    assert len({tuple(text) for text in mine}) > 10


def generate(theirs, rows: list[list[int]], length: int) -> list[list[int]]:
    """Greedy continuations by Hugging Face, padded on the left; OpenAI GPT would count padding as positions."""
    parts, found = [[row] for row in rows] if theirs.config.model_type == "openai-gpt" else [rows], []
    for part in parts:
        widest = max(map(len, part))
        ids = torch.tensor([[0] * (widest - len(row)) + row for row in part])
        mask = torch.tensor([[0] * (widest - len(row)) + [1] * len(row) for row in part])
        out = theirs.generate(input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=length)
        found += [cut(row) for row in out[:, widest:].tolist()]
    return found


def cut(ids: list[int]) -> list[int]:
    """Up to and with <EOS>."""
    return ids[: ids.index(EOS) + 1] if EOS in ids else ids


def test_only_the_distance_between_two_rotated_positions_matters():
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.double)

    def product(at: int, to: int) -> float:
        angles = Rotary(8)(torch.tensor([[at], [to]], dtype=torch.double))
        turned = [rotate(x, rotation(a[None], torch.double)) for x, a in zip((query, key), angles, strict=True)]
        return float((turned[0] * turned[1]).sum())

    assert product(3, 1) == pytest.approx(product(1003, 1001), abs=1e-9)
    assert product(3, 1) != pytest.approx(product(3, 2), abs=1e-3)
    assert product(5, 5) == pytest.approx(float((query * key).sum()), abs=1e-12)
