import pytest
import torch

from regard.config import parse, settings
from regard.decode import Beam, ConstrainedBeam, DecodeConfig, Ensemble, Sampling, search
from regard.errors import ConfigError, DataError, ModelError
from regard.models.gpt import GPTConfig
from regard.sequence import EOS, SOS, Images, Tokens
from regard.spaces import Words
from zoo import ZOO, build, sharpen

WRONG = {
    "beam = 0 must be between 1 (greedy) and 1000": {"beam": 0},
    "beam = 1000000 must be between 1 (greedy) and 1000": {"beam": 10**6},
    "n_best = 5 is more than beam = 4; a beam finds no more than that": {"n_best": 5},
    "n_best = 0 must be between 1 and 1000": {"n_best": 0},
    "alpha = -0.5 must be at least 0": {"alpha": -0.5},
    "coverage_penalty = -1.0 must be at least 0": {"coverage_penalty": -1.0},
    "max_extra_tokens = 0 must be at least 1": {"max_extra_tokens": 0},
    "min_length = -1 must be at least 0": {"min_length": -1},
    "temperature = 0.0 must be above 0": {"temperature": 0.0},
    "top_p = 0.0 must be above 0 and at most 1": {"top_p": 0.0},
    "top_p = 1.5 must be above 0 and at most 1": {"top_p": 1.5},
    "min_p = 2.0 must be between 0 and 1": {"min_p": 2.0},
    "repetition_penalty = 0.5 must be at least 1 (no penalty)": {"repetition_penalty": 0.5},
    "top_k = -1 must be at least 0": {"top_k": -1},
    "no_repeat_ngram = -1 must be at least 0": {"no_repeat_ngram": -1},
    "seed = -1 must be at least 0": {"seed": -1},
}


@pytest.mark.parametrize("message", WRONG)
def test_a_setting_out_of_bounds_is_an_error(message):
    with pytest.raises(ConfigError) as error:
        DecodeConfig(**WRONG[message])
    assert str(error.value) == message


def test_not_a_number_is_out_of_bounds():
    for name in ("alpha", "coverage_penalty", "temperature", "top_p", "min_p", "repetition_penalty"):
        with pytest.raises(ConfigError):
            DecodeConfig(**{name: float("nan")})


def test_every_setting_has_documentation():
    assert all(setting.doc for setting in settings(DecodeConfig))
    assert parse(DecodeConfig, {"beam": 2, "alpha": 1}, "decode") == DecodeConfig(beam=2, alpha=1.0)


def test_the_settings_define_the_search():
    beam = DecodeConfig(
        beam=3, length_penalty="power", alpha=2.0, n_best=2, min_length=1, no_repeat_ngram=2, repetition_penalty=1.1
    ).strategy(9)
    assert isinstance(beam, Beam) and (beam.width, beam.n_best, beam.eos, len(beam.processors)) == (3, 2, 9, 3)
    assert float(beam.penalty(torch.tensor(3.0))) == 9
    sample = DecodeConfig(sample=True, n_best=7, top_k=5, top_p=0.9, min_p=0.1, temperature=0.7, seed=4).strategy()
    assert isinstance(sample, Sampling) and (sample.width, sample.seed, len(sample.processors)) == (7, 4, 4)
    assert isinstance(DecodeConfig().strategy(constraints=[[[5]]]), ConstrainedBeam)
    assert isinstance(DecodeConfig().strategy(constraints=[[], []]), Beam)
    assert len(DecodeConfig().strategy(prefixes=Tokens.pad([[5]])).processors) == 1


def test_limits_follow_the_source():
    assert DecodeConfig(max_extra_tokens=7).limits(Tokens.pad([[5, 6], []])).tolist() == [9, 7]
    assert DecodeConfig(max_extra_tokens=7).limits(Images(torch.zeros(2, 1, 4, 4))).tolist() == [7, 7]


def test_constraints_need_a_beam():
    with pytest.raises(ConfigError) as error:
        DecodeConfig(sample=True).strategy(constraints=[[[5]]])
    assert str(error.value) == "constraints need a beam; they cannot be met by sampling (sample = true)"


IMPOSSIBLE = {
    "source 1: its constraints need 5 tokens with <EOS>, but at most 4 are allowed; "
    "raise the limit, or require fewer words": [[], [[5, 6], [7, 4]]],
    "source 0: id 8 of a constraint is not in the vocabulary of 8 words; it cannot appear in an output": [[[8]], []],
    "source 0: id 3 of a constraint ends a sentence; it cannot appear in an output": [[[5, EOS]], []],
}


@pytest.mark.parametrize("message", IMPOSSIBLE)
def test_a_constraint_that_cannot_be_met_is_an_error(message):
    model, prompt = build("transformer"), Tokens.pad([[SOS], [SOS]])
    strategy = DecodeConfig().strategy(constraints=IMPOSSIBLE[message])
    with pytest.raises(DataError) as error:
        search(model, Tokens.pad([[4, 5], [6]]), prompt, strategy, torch.tensor([4, 4]))
    assert str(error.value) == message


def test_a_constraint_given_twice_is_met_once():
    model = build("transformer")
    sharpen(model)
    strategy = DecodeConfig().strategy(constraints=[[[5, 6], [5, 6]]])
    ((found,),) = search(model, Tokens.pad([[4, 5]]), Tokens.pad([[SOS]]), strategy, torch.tensor([3]))
    assert (5, 6) in (found.tokens[:2], found.tokens[1:])


def test_models_with_other_vocabularies_make_no_ensemble():
    models = [GPTConfig(layers=1, width=8, heads=2, max_positions=9).build(Words(n), Words(n)).eval() for n in (8, 9)]
    with pytest.raises(ModelError) as error:
        Ensemble(models)(Tokens.pad([[]]), Tokens.pad([[SOS]]))
    assert str(error.value) == "an ensemble needs models with one vocabulary; theirs have [8, 9] words"
    with pytest.raises(ModelError) as error:
        Ensemble([])
    assert str(error.value) == "an ensemble needs at least one model, got none"


def test_defaults_decode_every_model():
    for name in ZOO:
        source, config = ZOO[name].source(), DecodeConfig(max_extra_tokens=5)
        prompt = Tokens.full(torch.full((3, 1), SOS))
        found = search(build(name), source, prompt, config.strategy(), config.limits(source), config.exact)
        assert [len(h) for h in found] == [1, 1, 1]
