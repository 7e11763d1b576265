"""Greedy search and sampling by Int8Argmax find what the plain paths find, with the same scores, and for the same seeds
the same samples; its candidates hold the argmax, with noise and without.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from regard.decode import (
    Beam,
    History,
    Sampling,
    ban,
    collect,
    decode,
    min_length,
    repetition_penalty,
    search,
    temperature,
    top_k,
    wu_penalty,
)
from regard.decode.int8_search import Int8Search
from regard.decode.sampling import gumbel_noise
from regard.nn import int8_argmax
from regard.nn.inference import InferenceLinear, optimize_for_inference
from regard.nn.int8_argmax import Int8Argmax
from regard.sequence import EOS, SOS, Tokens
from regard.trace import record
from zoo import ZOO, build, sharpen

PROMPT = Tokens.pad([[SOS]])


@pytest.fixture
def count_calls(monkeypatch):
    """Int8Argmax is used for small matrices too; its calls are collected."""
    calls, argmax = [], Int8Argmax.argmax

    def counting(self, x, banned=None, noise=None):
        calls.append(argmax(self, x, banned, noise))
        return calls[-1]

    monkeypatch.setattr(int8_argmax, "MIN_ELEMENTS", 0)
    monkeypatch.setattr(Int8Argmax, "argmax", counting)
    return calls


@pytest.fixture(params=ZOO)
def ready(request):
    model = build(request.param)
    sharpen(model)
    return optimize_for_inference(model), ZOO[request.param].source()


def plain(model, source, beam, limit):
    return collect(decode(model, source, PROMPT, beam, torch.tensor([limit])))[0][0]


BANS = (min_length(3), ban(4, 7), ban(5))


@pytest.mark.parametrize(
    "beam", [Beam(1), Beam(1, wu_penalty(0.6)), Beam(1, processors=BANS)], ids=["bare", "wu", "bans"]
)
def test_int8_greedy_search_finds_what_a_beam_of_one_finds(ready, beam, count_calls):
    model, sources = ready
    for row, limit in ((0, 6), (1, 20), (2, 1)):
        source = sources.select(torch.tensor([row]))
        expected = plain(model, source, beam, limit)
        assert not count_calls
        [[found]] = search(model, source, PROMPT, beam, torch.tensor([limit]))
        assert (found.tokens, found.complete) == (expected.tokens, expected.complete)
        assert (found.score, found.value) == pytest.approx((expected.score, expected.value), abs=1e-5)
        assert len(count_calls) == len(found.tokens)
        count_calls.clear()


SAMPLINGS = {
    "bare": lambda seed: Sampling(seed),
    "cool": lambda seed: Sampling(seed, (temperature(0.5),)),
    "hot, with bans": lambda seed: Sampling(seed, (*BANS, temperature(3.0))),
}


@pytest.mark.parametrize("kind", SAMPLINGS)
def test_int8_sampling_draws_what_plain_sampling_draws(ready, kind, count_calls):
    model, sources = ready
    drawn, least = set(), {"cool": 1, "bare": 2, "hot, with bans": 4}
    for seed in range(6):
        row, strategy = torch.tensor([seed % 3]), SAMPLINGS[kind](seed)
        whole = collect(decode(model, sources, Tokens.pad([[SOS]] * 3), strategy, torch.tensor([9] * 3)))
        assert not count_calls
        expected = whole[seed % 3][0]
        [[found]] = search(model, sources.select(row), PROMPT, strategy, torch.tensor([9]), numbers_B=row)
        assert (found.tokens, found.complete) == (expected.tokens, expected.complete)
        assert (found.score, found.value) == pytest.approx((expected.score, expected.value), abs=2e-5)
        assert len(count_calls) == len(found.tokens)
        count_calls.clear()
        drawn.add(found.tokens)
    assert len(drawn) >= least[kind]


@pytest.mark.parametrize("seed", range(10))
def test_int8_draws_the_same_token_for_any_seed_and_temperature_also_where_two_are_nearly_alike(seed):
    """The same as the plain path draws; where the rounding of float32 decides, one that is as good up to rounding."""
    weight, x = made(seed, V=1000)
    readout = InferenceLinear(torch.nn.Linear(*weight.T.shape, bias=False))
    readout.weight = weight
    fast, ties = Int8Argmax(weight), 0
    for number, row in enumerate(x.clamp(-30, 30)):
        for heat in (0.3, 1.0, 2.0):
            history = History.start(torch.tensor([number]), torch.tensor([9]), 1, 1)
            sampling = Sampling(seed, (temperature(heat), ban(4, 7)))
            noise = sampling.noise(history, len(weight))[0]
            best = (weight.double() @ row.double() / heat + noise).topk(2).indices
            if number % 2:  # the two best become alike, but for one part in 100,000
                weight[best[1]] = weight[best[0]] + (noise[best[0]] - noise[best[1]]) * heat * row / row.dot(row)
                weight[best[1]] *= 1 + 1e-5
                fast, ties = Int8Argmax(weight), ties + 1
            choice, _ = sampling.choose(row[None] @ weight.T, history)
            search = Int8Search(readout, fast, EOS, (ban(4, 7),), sampling, heat)
            found, expected = int(search.choose(row[None], history)[0].tokens), int(choice.tokens)
            if found != expected:
                terms = weight.double() * row.double()
                rounding = 1e-7 * (terms.abs().sum(1)[[found, expected]].max() + terms.sum(1).abs().max())
                values = terms.sum(1) + heat * noise.double()
                assert values[found] == pytest.approx(float(values[expected]), rel=0, abs=float(rounding))
    assert ties == 36


def test_a_recorded_sample_is_the_one_that_int8_draws(ready, count_calls):
    model, sources = ready
    source, strategy = sources.select(torch.tensor([0])), Sampling(5, (temperature(1.5),))
    [[fast]] = search(model, source, PROMPT, strategy, torch.tensor([9]))
    assert len(count_calls) == len(fast.tokens)
    with record(model):
        [[found]] = search(model, source, PROMPT, strategy, torch.tensor([9]))
    assert found.tokens == fast.tokens and len(count_calls) == len(fast.tokens)


def test_exact_searches_use_int8_and_keep_their_bits_in_any_order(ready, count_calls):
    model, sources = ready
    prompt, limits, order = Tokens.pad([[SOS]] * 3), torch.tensor([9, 9, 9]), [2, 0, 1]
    found = search(model, sources, prompt, Beam(1), limits, exact=True)
    turned = search(model, sources.select(torch.tensor(order)), prompt, Beam(1), limits, exact=True)
    assert count_calls and turned == [found[i] for i in order]


def test_recorded_logits_are_those_that_were_used(ready, count_calls):
    model, sources = ready
    source = sources.select(torch.tensor([0]))
    with record(model) as trace:
        [[found]] = search(model, source, PROMPT, Beam(1), torch.tensor([6]))
    assert not count_calls
    assert [int(r.data.argmax()) for r in trace.find("logits")] == list(found.tokens)


@pytest.mark.parametrize(
    "rows,beam",
    [
        (2, Beam(1)),
        (1, Beam(2)),
        (1, Beam(1, processors=(ban(4), repetition_penalty(2.0)))),
        (2, Sampling(1)),
        (1, Sampling(1, width=2)),
        (1, Sampling(1, (temperature(2.0), top_k(5)))),
    ],
)
def test_searches_that_need_all_logits_do_not_use_int8(rows, beam, count_calls):
    model = optimize_for_inference(build("transformer"))
    search(model, Tokens.pad([[5, 6]] * rows), Tokens.pad([[SOS]] * rows), beam, torch.tensor([4] * rows))
    assert not count_calls


def test_small_matrices_and_those_with_a_bias_do_not_use_int8():
    assert InferenceLinear(torch.nn.Linear(8, 64, bias=False)).int8_argmax() is None
    assert InferenceLinear(torch.nn.Linear(256, 8192)).int8_argmax() is None
    linear = InferenceLinear(torch.nn.Linear(256, 8192, bias=False))
    assert linear.int8_argmax() is not None and linear.int8_argmax() is linear.int8_argmax()


def made(seed, V=3000, D=96):
    """A matrix with rows of all norms, equal rows and a row of zeros, and vectors of any size with an outlier."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(V, D, generator=generator) * torch.rand(V, 1, generator=generator) ** 3
    weight[7], weight[V // 2 :: 97], weight[3] = 0.0, weight[5], weight[11] * (1 + 1e-4)
    x = torch.randn(24, D, generator=generator) * torch.logspace(-6, 4, 24)[:, None]
    x[::5, 0] *= 30
    x[3::5] = weight[5] + 0.1 * x[3::5]
    return weight, x


@pytest.mark.parametrize("seed", range(20))
def test_the_candidates_hold_the_argmax(seed):
    weight, x = made(seed)
    fast = Int8Argmax(weight)
    count = 0
    for row in x:
        truth = weight.double() @ row.double()
        rows, found = fast.candidates(row[None]), int(fast.argmax(row[None]))
        assert int(truth.argmax()) in rows.tolist()
        assert truth[found] >= truth.max() - 1e-6 * float(row.norm()) * float(weight.norm(dim=1).max())
        count += len(rows)
    assert count < 0.05 * len(x) * len(weight)  # else it would not be faster


@pytest.mark.parametrize("outlier", [1, 10, 30])
def test_a_vector_with_outliers_leaves_few_candidates(outlier):
    generator = torch.Generator().manual_seed(outlier)
    weight, x = torch.randn(3000, 96, generator=generator), torch.randn(20, 96, generator=generator)
    weight[:, :2] /= outlier  # as in trained models, where the rows are small where the vectors are large
    x[:, :2] *= outlier
    fast = Int8Argmax(weight)
    for row in x:
        noise = gumbel_noise(1, torch.tensor([0]), torch.tensor([0]), 0, 3000)[0]
        rows = fast.candidates(row[None], None, noise).tolist()
        assert int((weight.double() @ row.double() + noise).argmax()) in rows and len(rows) < 3000 / 20


def test_the_candidates_hold_the_argmax_of_half_steps_of_the_rounding():
    """Rows that int8 holds exactly; the operator may round a half to another integer than torch does."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(-127, 128, (3000, 96), generator=generator).float()
    weight[:, -1] = 127  # so that a step of each row is 1
    weight[:, 0] = weight[:, 0].clamp(-1, 1)
    fast = Int8Argmax(weight)
    for step in (0.1, 0.3, 0.7, 1 / 3):
        x = (torch.randint(-3, 3, (20, 96), generator=generator) + 0.5) * step
        x[:, 0] = 63 * step
        for row in x:
            rows = fast.candidates(row[None]).tolist()
            assert int((weight.double() @ row.double()).argmax()) in rows and len(rows) < 3000 / 8


@pytest.mark.parametrize("seed", range(5))
def test_without_the_banned_rows_the_argmax_is_that_of_the_others(seed):
    weight, x = made(seed)
    fast = Int8Argmax(weight)
    for row in x:
        banned = (weight @ row).topk(9).indices
        truth = (weight.double() @ row.double()).index_fill(0, banned, -float("inf"))
        rows, found = fast.candidates(row[None], banned), int(fast.argmax(row[None], banned))
        assert int(truth.argmax()) in rows.tolist() and not set(banned.tolist()) & set(rows.tolist())
        assert truth[found] >= truth.max() - 1e-6 * float(row.norm()) * float(weight.norm(dim=1).max())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_the_candidates_hold_the_argmax_with_noise(seed, scale):
    weight, x = made(seed)
    fast, count = Int8Argmax(weight), 0
    for number, row in enumerate(x):
        noise = scale * gumbel_noise(seed, torch.tensor([number]), torch.tensor([0]), 0, len(weight))[0]
        if number % 3 == 0:  # a near-tie of a row with its twin, whose product is 1e-4 larger: the noise decides
            noise[3] = noise[11] = float(noise.max()) + 1
        truth = weight.double() @ row.double() + noise.double()
        rows, found = fast.candidates(row[None], None, noise), int(fast.argmax(row[None], None, noise))
        assert int(truth.argmax()) in rows.tolist()
        assert truth[found] >= truth.max() - 1e-6 * (float(row.norm() * weight.norm(dim=1).max()) + 10 * scale)
        count += len(rows)
    assert count < 0.1 * len(x) * len(weight)


@pytest.mark.parametrize("x", [0.0, float("inf")])
def test_banned_rows_are_left_out_where_the_bound_says_nothing(x):
    weight, _ = made(1)
    vector, banned = torch.full((1, weight.shape[1]), x), torch.tensor([0, 1, 3])
    expected = (vector @ weight.T).index_fill(1, banned, -float("inf")).argmax()
    assert int(Int8Argmax(weight).argmax(vector, banned)) == int(expected)


def test_a_search_whose_tokens_are_all_banned_ends_as_the_plain_one_does(count_calls):
    model = optimize_for_inference(build("gpt"))
    beam = Beam(1, processors=(ban(*range(len(model.readout.weight))),))
    [[found]] = search(model, Tokens.pad([[]]), PROMPT, beam, torch.tensor([4]))
    assert found == plain(model, Tokens.pad([[]]), beam, 4) and found.complete
    assert not count_calls


@pytest.mark.parametrize("D", [96, 100, 313, 512])
@pytest.mark.parametrize("twins", [1, 3, 16, 38])
def test_the_lowest_of_equal_rows_is_found(D, twins):
    weight = torch.nn.functional.normalize(torch.randn(500, D, generator=torch.Generator().manual_seed(D)))
    weight[torch.arange(twins) * 11 + 30] = weight[20].clone()
    assert int(Int8Argmax(weight).argmax(weight[20:21])) == 20


@pytest.mark.parametrize("size", [1e-33, 1e-30, 1e-24, 1e-18, 1e-12])
def test_small_numbers_are_distinguished(size):
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(200, 64, generator=generator)
    weight[100:] = weight[:100] * (1 + 1e-3)  # the later twin is always the larger, or the smaller
    fast = Int8Argmax(weight)
    for row in torch.randn(40, 64, generator=generator):
        x = (row * size)[None]
        assert int(fast.argmax(x)) == int((weight.double() @ x[0].double()).argmax())


@pytest.mark.parametrize("x", [0.0, float("nan"), float("inf"), 1e-38, 1e30])
def test_extreme_vectors_give_the_argmax_of_the_matrix_product(x):
    weight, _ = made(1)
    vector = torch.full((1, weight.shape[1]), x)
    assert int(Int8Argmax(weight).argmax(vector)) == int((vector @ weight.T).argmax())


def test_concurrent_construction_leaves_torch_and_warnings_as_they_were():
    before = torch.backends.quantized.engine, list(warnings.filters)
    weight = torch.randn(8192, 64)
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(lambda _: Int8Argmax(weight), range(24)))) == 24
    assert (torch.backends.quantized.engine, list(warnings.filters)) == before
