"""The contract of decoding, tested on every model of the zoo."""

import itertools
import math

import pytest
import torch

from regard.decode import (
    Beam,
    ConstrainedBeam,
    Ensemble,
    Sampling,
    align,
    ban,
    collect,
    decode,
    force_prefix,
    min_length,
    no_repeat_ngram,
    power_penalty,
    repetition_penalty,
    score,
    search,
    temperature,
    top_k,
    wu_penalty,
)
from regard.errors import ConfigError, DataError
from regard.sequence import EOS, SOS, Tokens
from regard.trace import record
from zoo import ZOO, V, build, sharpen, single_row

ATTENTIVE = [name for name, animal in ZOO.items() if animal.attends]


@pytest.fixture(params=ZOO)
def animal(request):
    model = build(request.param)
    sharpen(model)
    return model, ZOO[request.param].source()


@pytest.fixture(params=ATTENTIVE)
def attentive(request):
    model = build(request.param)
    sharpen(model)
    return model, ZOO[request.param].source()


def prompts(batch=3):
    return Tokens.full(torch.full((batch, 1), SOS))


def run(model, source, strategy, longest=6, prompt=None, exact=False, numbers=None):
    prompt = prompts(len(source)) if prompt is None else prompt
    limits = torch.full((len(prompt),), longest)
    if numbers is not None:
        return collect(decode(model, source, prompt, strategy, limits, torch.tensor(numbers)), strategy.n_best)
    return search(model, source, prompt, strategy, limits, exact)


def same(found, expected):
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    for a, b in zip(found, expected, strict=True):
        assert abs(a.value - b.value) < 1e-5 and a.complete == b.complete
        assert a.score == pytest.approx(b.score, rel=1e-6, abs=1e-5)  # a sum of many: its own rounding is 1e-6 of it


def attention_rows(trace):
    """(B, T, S): the last layer's cross-attention weights; recurrent decoders have one record per position."""
    found = trace.find("*.cross.weights")
    return torch.cat([r.data for r in found if r.name == found[-1].name], 2).mean(1)


def logits(model, source, target):
    return model.readout(model(source, target))


@torch.no_grad()
def greedily(model, source, longest):
    """Greedy search without a cache: whole sentences are read again at every step."""
    ids = [SOS]
    while len(ids) <= longest and ids[-1] != EOS:
        ids.append(int(logits(model, source, Tokens.pad([ids]))[0, -1].argmax()))
    return tuple(ids[1:])


@pytest.mark.parametrize(
    "penalty", [power_penalty(0.0), wu_penalty(0.6), power_penalty(1.0)], ids=["none", "wu", "power"]
)
def test_beam_of_one_is_greedy(animal, penalty):
    model, source = animal
    for i, (found,) in enumerate(run(model, source, Beam(1, penalty), 9)):
        assert found.tokens == greedily(model, single_row(source, i), 9)
        assert found.complete == (found.tokens[-1] == EOS)


@torch.no_grad()
def every_sentence(model, source, longest):
    """All sentences of at most `longest` words with their log-probs, by brute force."""
    others = [v for v in range(V) if v != EOS]
    sequences = [(*body, EOS) for n in range(longest) for body in itertools.product(others, repeat=n)]
    sequences += list(itertools.product(others, repeat=longest))
    found = {}
    for length in range(1, longest + 1):
        group = [s for s in sequences if len(s) == length]
        ids = torch.tensor([[SOS, *s] for s in group])
        many = source.select(torch.zeros(len(group), dtype=torch.long))
        log = logits(model, many, Tokens.full(ids[:, :-1])).double().log_softmax(-1)
        found |= dict(zip(group, log.gather(2, ids[:, 1:, None]).sum((1, 2)).tolist(), strict=True))
    return found


@pytest.mark.parametrize(
    "penalty", [power_penalty(0.0), wu_penalty(2.0), power_penalty(1.5)], ids=["none", "wu", "power"]
)
@pytest.mark.parametrize("n", [1, 5])
def test_a_beam_as_wide_as_the_space_finds_the_n_best_sentences(animal, penalty, n):
    model, source = animal
    one = single_row(source, 0)
    (found,) = run(model, one, Beam(V**3, penalty, n_best=n), 3)
    values = {s: score / float(penalty(torch.tensor(len(s)))) for s, score in every_sentence(model, one, 3).items()}
    expected = sorted(values, key=lambda s: -values[s])[:n]
    assert [h.tokens for h in found] == expected
    assert all(abs(h.value - values[s]) < 1e-5 for h, s in zip(found, expected, strict=True))


@torch.no_grad()
def test_a_beam_as_wide_as_the_space_finds_the_best_sentence_that_covers_its_source(attentive):
    model, source = attentive
    one, beta = single_row(source, 0), 0.7
    (found,) = run(model, one, Beam(V**3, power_penalty(1.0), n_best=3, coverage_penalty=beta), 3)
    values, logs = {}, every_sentence(model, one, 3)
    for length in (1, 2, 3):
        group = [s for s in logs if len(s) == length]
        with record(model) as trace:
            many = one.select(torch.zeros(len(group), dtype=torch.long))
            model(many, Tokens.pad([[SOS, *s[:-1]] for s in group]))
        covered = attention_rows(trace).sum(1).clamp(max=1).log().sum(1)
        for s, penalty in zip(group, covered.tolist(), strict=True):
            values[s] = logs[s] / length + beta * penalty
    expected = sorted(values, key=lambda s: -values[s])[:3]
    assert [h.tokens for h in found] == expected
    assert all(abs(h.value - values[s]) < 1e-5 for h, s in zip(found, expected, strict=True))


BEAMS = {
    "greedy": Beam(1),
    "beam 3": Beam(3, wu_penalty(0.6), n_best=3),
    "beam 4 with rules": Beam(4, power_penalty(1.0), (min_length(2), no_repeat_ngram(2), repetition_penalty(1.3)), 2),
    "constraints": ConstrainedBeam.from_lists(Beam(4, wu_penalty(0.6), n_best=2), [[[5, 6], [7]], [], [[4]]]),
    "samples": Sampling(7, (temperature(1.5), top_k(5)), width=3),
}


@pytest.mark.parametrize("strategy", BEAMS.values(), ids=BEAMS)
def test_a_batch_decodes_as_its_rows_alone(animal, strategy):
    model, source = animal
    for i, found in enumerate(run(model, source, strategy, 12)):
        assert 1 <= len(found) <= strategy.n_best
        same(found, run(model, single_row(source, i), strategy, 12, numbers=[i])[0])


def test_coverage_does_not_depend_on_padding(attentive):
    model, source = attentive
    strategy = Beam(3, wu_penalty(0.6), n_best=2, coverage_penalty=0.4)
    for i, found in enumerate(run(model, source, strategy, 12)):
        same(found, run(model, single_row(source, i), strategy, 12)[0])


@pytest.mark.parametrize(
    "strategy", [Beam(1), Beam(3, wu_penalty(0.6), n_best=2), Sampling(3)], ids=["greedy", "beam", "sample"]
)
def test_exact_decoding_gives_the_same_bits_in_any_batch_and_order(animal, strategy):
    model, _ = animal
    rows = [[4, 5, 6], [5], [7, 7, 4, 5, 6], [6, 4], [4, 4, 4, 4], [], [5, 6]]
    whole, seen = list(range(7)), {}
    for order in (whole, whole[::-1], [3, 0, 5], [1, 6, 2], *[[i] for i in whole]):
        source = Tokens.pad([rows[i] for i in order])
        limits, numbers = torch.full((len(order),), 9), torch.tensor(order)
        found = search(model, source, prompts(len(order)), strategy, limits, exact=True, numbers_B=numbers)
        for i, hypotheses in zip(order, found, strict=True):
            bits = torch.tensor([[h.score, h.value] for h in hypotheses], dtype=torch.double)
            tokens, before = seen.setdefault(i, ([h.tokens for h in hypotheses], bits))
            assert tokens == [h.tokens for h in hypotheses] and torch.equal(before, bits)


def test_prompts_of_different_length_decode_as_alone(animal):
    model, source = animal
    prompt = Tokens.pad([[SOS, 4, 5, 6], [SOS], [SOS, 7]])
    for strategy in (Beam(3, wu_penalty(0.6), n_best=2), Beam(1)):
        for i, found in enumerate(run(model, source, strategy, 8, prompt)):
            same(found, run(model, single_row(source, i), strategy, 8, single_row(prompt, i))[0])


def test_a_sample_repeats_with_its_seed_and_another_seed_draws_another(animal):
    model, source = animal
    processors = (temperature(3.0), top_k(6))
    first, again, other = (run(model, source, Sampling(seed, processors, 4), 8) for seed in (5, 5, 6))
    assert first == again != other
    assert len({h.tokens for found in first for h in found}) > 3


def test_finished_sources_leave_the_batch_at_their_own_limit(animal):
    model, source = animal
    limits, strategy = torch.tensor([2, 6, 4]), Beam(2, processors=(ban(EOS),))
    choices = list(decode(model, source, prompts(), strategy, limits))
    assert [sorted(set(c.sources.tolist())) for c in choices] == [[0, 1, 2], [0, 1, 2], [1, 2], [1, 2], [1], [1]]
    found = collect(choices)
    assert [len(h.tokens) for (h,) in found] == limits.tolist() and not any(h.complete for (h,) in found)


def test_processors_are_obeyed(animal):
    model, source = animal
    prefixes = [[4, 4], [5], [6, 6, 4]]
    processors = force_prefix(Tokens.pad(prefixes)), min_length(4), no_repeat_ngram(2), ban(0, 1)
    for found, prefix in zip(run(model, source, Beam(3, processors=processors, n_best=3), 9), prefixes, strict=True):
        assert len(found) == 3
        for h in found:
            pairs = list(itertools.pairwise(h.tokens))
            assert list(h.tokens[: len(prefix)]) == prefix and not {0, 1} & set(h.tokens)
            assert len(set(pairs)) == len(pairs) and EOS not in h.tokens[:4]


def holds(tokens, ids):
    return any(tokens[i : i + len(ids)] == tuple(ids) for i in range(len(tokens)))


@pytest.mark.parametrize("width", [1, 4, 8])
def test_constraints_are_met_in_every_answer(animal, width):
    model, source = animal
    constraints = [[[5, 5, 6], [7, 4]], [[0]], []]
    found = run(
        model, source, ConstrainedBeam.from_lists(Beam(width, wu_penalty(0.6), n_best=min(width, 2)), constraints), 12
    )
    for hypotheses, required in zip(found, constraints, strict=True):
        assert hypotheses and all(holds(h.tokens, ids) for h in hypotheses for ids in required)
    same(found[2], run(model, source, Beam(width, wu_penalty(0.6), n_best=min(width, 2)), 12)[2])


def test_a_constrained_beam_as_wide_as_the_space_finds_the_best_sentence_with_its_words(animal):
    model, source = animal
    one = single_row(source, 0)
    (found,) = run(model, one, ConstrainedBeam.from_lists(Beam(V**3, power_penalty(1.0), n_best=3), [[[5], [6]]]), 3)
    values = {s: log / len(s) for s, log in every_sentence(model, one, 3).items() if holds(s, [5]) and holds(s, [6])}
    assert [h.tokens for h in found] == sorted(values, key=lambda s: -values[s])[:3]


def test_constraints_that_other_processors_forbid_are_an_error(animal):
    model, source = animal
    strategy = ConstrainedBeam.from_lists(Beam(3, processors=(ban(5),)), [[], [[5]], []])
    message = (
        "source 1: no output of at most 6 tokens satisfies all its constraints and the other decoding settings; "
        "raise the limit, or relax the settings"
    )
    with pytest.raises(DataError) as error:
        run(model, source, strategy)
    assert str(error.value) == message


def test_the_n_best_are_sorted_and_distinct(animal):
    model, source = animal
    for found in run(model, source, Beam(5, wu_penalty(1.0), n_best=5), 10):
        values = [h.value for h in found]
        assert values == sorted(values, reverse=True) and len({h.tokens for h in found}) == len(found) == 5


def test_scores_of_a_search_equal_forced_scores(animal):
    model, source = animal
    found = run(model, source, Beam(3, wu_penalty(0.6)), 8)
    scored = score(model, source, Tokens.pad([[SOS, *h.tokens] for (h,) in found]), chunk=4)
    for (h,), total, length in zip(found, scored.totals.tolist(), scored.lengths.tolist(), strict=True):
        assert abs(h.score - total) < 1e-5 and length == len(h.tokens)


def test_an_ensemble_of_one_model_twice_equals_the_model(animal):
    model, source = animal
    for strategy in (Beam(1), Beam(3, wu_penalty(0.6), n_best=2)):
        both = run(Ensemble([model, model]).eval(), source, strategy, 9)
        for found, expected in zip(both, run(model, source, strategy, 9), strict=True):
            same(found, expected)


@torch.no_grad()
def test_an_ensemble_averages_probabilities_of_different_families(animal):
    model, source = animal
    source = source if source.data.shape[1] else Tokens.pad([[4, 5], [6], [7]])
    other = build("seq2seq")
    sharpen(other)
    both, target = Ensemble([model, other]).eval(), Tokens.pad([[SOS, 4, 5], [SOS, 6, 7], [SOS, 7, 7]])
    expected = (logits(model, source, target).softmax(-1) + logits(other, source, target).softmax(-1)) / 2
    torch.testing.assert_close(logits(both, source, target).exp(), expected, atol=1e-6, rtol=1e-5)
    for i, found in enumerate(run(both, source, Beam(3, wu_penalty(0.6)), 9)):
        same(found, run(both, single_row(source, i), Beam(3, wu_penalty(0.6)), 9)[0])


@torch.no_grad()
def test_recording_works_inside_the_loop_and_changes_nothing(animal):
    model, source = animal
    strategy = Beam(2, wu_penalty(0.6), n_best=2)
    plain = run(model, source, strategy, 5)
    with record(model) as trace:
        watched = run(model, source, strategy, 5)
    for a, b in zip(plain, watched, strict=True):
        same(a, b)
    seen = trace.find("logits")
    assert [r.context["step"] for r in seen] == list(range(len(seen))) and len(seen) > 1
    assert seen[0].axes == ("batch", "vocabulary") and seen[0].data.shape == (3, V)
    for r in seen[1:]:
        N = len(r.data)
        assert r.context["target"].shape == (N, r.context["step"]) and r.context["hypothesis"].tolist() == [0, 1] * (
            N // 2
        )
        assert r.context["sources"].tolist() == sorted(r.context["sources"].tolist()) and len(r.context["sources"]) == N


@torch.no_grad()
def test_an_intervention_during_a_search_takes_effect(animal):
    model, source = animal
    with record(model, replace={"logits": lambda t: torch.zeros_like(t).index_fill(1, torch.tensor([6]), 1.0)}):
        (first, *_) = run(model, source, Beam(1), 4)
    assert first[0].tokens == (6, 6, 6, 6)


@torch.no_grad()
def test_an_outer_recording_sees_everything_while_attention_is_recorded(attentive):
    model, source = attentive
    strategy = Beam(2, wu_penalty(0.6), coverage_penalty=0.3)
    plain = run(model, source, strategy, 5)
    with record(model) as trace:
        watched = run(model, source, strategy, 5)
    for a, b in zip(plain, watched, strict=True):
        same(a, b)
    assert trace.find("encoder.*") and len(trace.find("logits")) > 1


@pytest.mark.parametrize("name", [name for name, animal in ZOO.items() if not animal.attends])
def test_coverage_of_a_model_that_attends_to_no_source_is_an_error(name):
    model, source = build(name), ZOO[name].source()
    with pytest.raises(ConfigError) as error:
        run(model, source, Beam(2, coverage_penalty=0.2))
    assert str(error.value) == "this needs a model that attends to its source; no *.cross.weights were recorded"


@torch.no_grad()
def test_an_alignment_is_the_position_of_the_highest_weight(attentive):
    model, source = attentive
    target = Tokens.pad([[SOS, 4, 5, EOS], [SOS, 6, EOS], [SOS, EOS]])
    with record(model) as trace:
        model(source, target.shift()[0])
    weights = attention_rows(trace)
    for i, pairs in enumerate(align(model, source, target)):
        length = int(target.lengths[i]) - 1
        assert pairs == [(int(weights[i, t].argmax()), t) for t in range(length)]
    for i, pairs in enumerate(align(model, source, target, threshold=0.2)):
        assert all((float(weights[i, t, s]) >= 0.2) == ((s, t) in pairs) for t in range(2) for s in range(1)) or i


def test_an_empty_batch_gives_no_output(animal):
    model, _ = animal
    empty = Tokens(torch.zeros(0, 1, dtype=torch.long), torch.zeros(0, dtype=torch.long), ragged=False)
    assert run(model, empty, Beam(2), prompt=empty) == []


def test_an_empty_source_gets_an_output(animal):
    model, _ = animal
    source = Tokens.pad([[4, 5], [], [6]])
    for found, exact in zip(run(model, source, Beam(2), 5), run(model, source, Beam(2), 5, exact=True), strict=True):
        same(found, exact)
        assert math.isfinite(found[0].score)


def test_double_precision_finds_the_same(animal):
    model, source = animal
    single = run(model, source, Beam(3, wu_penalty(0.6), n_best=2), 9)
    double = run(model.double(), source, Beam(3, wu_penalty(0.6), n_best=2), 9)
    for a, b in zip(single, double, strict=True):
        same(a, b)
