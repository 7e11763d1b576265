"""A screened greedy search says what a beam of one says, with the same scores; a screen never loses the likeliest."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from regard.decode import Beam, banned, collect, decode, search, wu
from regard.nn import int8_argmax as screening
from regard.nn.inference import ReadyLinear, prepare
from regard.nn.int8_argmax import Screen
from regard.sequence import SOS, Tokens
from regard.trace import record
from zoo import ZOO, build, sharpen

PROMPT = Tokens.of([[SOS]])


@pytest.fixture
def counted(monkeypatch):
    """Screens serve small matrices too; how often they are asked."""
    calls, likeliest = [], Screen.likeliest

    def counting(self, x):
        calls.append(likeliest(self, x))
        return calls[-1]

    monkeypatch.setattr(screening, "SMALLEST", 0)
    monkeypatch.setattr(Screen, "likeliest", counting)
    return calls


@pytest.fixture(params=ZOO)
def ready(request):
    model = build(request.param)
    sharpen(model)
    return prepare(model), ZOO[request.param].source()


def plain(model, source, beam, limit):
    return collect(decode(model, source, PROMPT, beam, torch.tensor([limit])))[0][0]


@pytest.mark.parametrize("beam", [Beam(1), Beam(1, wu(0.6))], ids=["bare", "wu"])
def test_a_screened_search_says_what_a_beam_of_one_says(ready, beam, counted):
    model, sources = ready
    for row, limit in ((0, 6), (1, 20), (2, 1)):
        source = sources.select(torch.tensor([row]))
        wanted = plain(model, source, beam, limit)
        assert not counted
        [[found]] = search(model, source, PROMPT, beam, torch.tensor([limit]))
        assert (found.tokens, found.complete) == (wanted.tokens, wanted.complete)
        assert (found.score, found.value) == pytest.approx((wanted.score, wanted.value), abs=1e-5)
        assert len(counted) == len(found.tokens)
        counted.clear()


def test_exact_searches_are_screened_and_keep_their_bits_in_any_order(ready, counted):
    model, sources = ready
    prompt, limits, order = Tokens.of([[SOS]] * 3), torch.tensor([9, 9, 9]), [2, 0, 1]
    found = search(model, sources, prompt, Beam(1), limits, exact=True)
    turned = search(model, sources.select(torch.tensor(order)), prompt, Beam(1), limits, exact=True)
    assert counted and turned == [found[i] for i in order]


def test_whoever_looks_at_the_logits_sees_those_that_were_used(ready, counted):
    model, sources = ready
    source = sources.select(torch.tensor([0]))
    with record(model) as trace:
        [[found]] = search(model, source, PROMPT, Beam(1), torch.tensor([6]))
    assert not counted
    assert [int(r.data.argmax()) for r in trace.find("logits")] == list(found.tokens)


@pytest.mark.parametrize("rows,beam", [(2, Beam(1)), (1, Beam(2)), (1, Beam(1, rules=(banned(4),)))])
def test_what_needs_all_logits_gets_them(rows, beam, counted):
    model = prepare(build("transformer"))
    search(model, Tokens.of([[5, 6]] * rows), Tokens.of([[SOS]] * rows), beam, torch.tensor([4] * rows))
    assert not counted


def test_small_matrices_and_those_with_a_bias_are_not_screened():
    assert ReadyLinear(torch.nn.Linear(8, 64, bias=False)).screen() is None
    assert ReadyLinear(torch.nn.Linear(256, 8192)).screen() is None
    linear = ReadyLinear(torch.nn.Linear(256, 8192, bias=False))
    assert linear.screen() is not None and linear.screen() is linear.screen()


def made(seed, V=3000, D=96):
    """A matrix with rows of all lengths, twins and a row of zeros, and vectors with an outlier, of any size."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(V, D, generator=generator) * torch.rand(V, 1, generator=generator) ** 3
    weight[7], weight[V // 2 :: 97], weight[3] = 0.0, weight[5], weight[11] * (1 + 1e-4)
    x = torch.randn(24, D, generator=generator) * torch.logspace(-6, 4, 24)[:, None]
    x[::5, 0] *= 30
    x[3::5] = weight[5] + 0.1 * x[3::5]
    return weight, x


@pytest.mark.parametrize("seed", range(20))
def test_a_screen_never_loses_the_likeliest(seed):
    weight, x = made(seed)
    screen = Screen(weight)
    kept = 0
    for row in x:
        truth = weight.double() @ row.double()
        near, found = screen.near(row[None]), int(screen.likeliest(row[None]))
        assert int(truth.argmax()) in near.tolist()
        assert truth[found] >= truth.max() - 1e-6 * float(row.norm()) * float(weight.norm(dim=1).max())
        kept += len(near)
    assert kept < 0.05 * len(x) * len(weight)  # else it would be of no use


@pytest.mark.parametrize("D", [96, 100, 313, 512])
@pytest.mark.parametrize("twins", [1, 3, 16, 38])
def test_the_lowest_of_twins_is_found(D, twins):
    weight = torch.nn.functional.normalize(torch.randn(500, D, generator=torch.Generator().manual_seed(D)))
    weight[torch.arange(twins) * 11 + 30] = weight[20].clone()
    assert int(Screen(weight).likeliest(weight[20:21])) == 20


@pytest.mark.parametrize("size", [1e-33, 1e-30, 1e-24, 1e-18, 1e-12])
def test_small_numbers_are_told_apart(size):
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(200, 64, generator=generator)
    weight[100:] = weight[:100] * (1 + 1e-3)  # the later twin is always the larger, or the smaller
    screen = Screen(weight)
    for row in torch.randn(40, 64, generator=generator):
        x = (row * size)[None]
        assert int(screen.likeliest(x)) == int((weight.double() @ x[0].double()).argmax())


@pytest.mark.parametrize("x", [0.0, float("nan"), float("inf"), 1e-38, 1e30])
def test_strange_vectors_are_answered_as_by_the_matrix(x):
    weight, _ = made(1)
    vector = torch.full((1, weight.shape[1]), x)
    assert int(Screen(weight).likeliest(vector)) == int((vector @ weight.T).argmax())


def test_screens_that_are_made_at_once_leave_torch_and_warnings_as_they_were():
    before = torch.backends.quantized.engine, list(warnings.filters)
    weight = torch.randn(8192, 64)
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(lambda _: Screen(weight), range(24)))) == 24
    assert (torch.backends.quantized.engine, list(warnings.filters)) == before
