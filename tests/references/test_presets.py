"""Published model sizes and worked examples, against the numbers of the papers."""

import math
import re
import resource

import pytest
import torch
from torch import nn

from regard.models import PRESETS
from regard.nn.attention import KeysValues, attend
from regard.nn.positions import Sinusoids
from regard.trace import record
from regard.train.schedule import Noam


@pytest.mark.parametrize(
    ("name", "vocabulary", "count"),
    [
        ("transformer-base", 37_000, 63_082_496),
        ("transformer-big", 37_000, 214_245_376),
        ("transformer-tiny", 10_000, 2_605_056),
        ("gpt-2", 50_257, 124_439_808),
    ],
)
def test_a_preset_has_exactly_as_many_parameters_as_the_paper_implies(name, vocabulary, count):
    assert PRESETS[name].words == (vocabulary, vocabulary)
    assert PRESETS[name].parameters == count


def test_a_preset_names_its_paper_and_allocates_nothing_to_count_itself():
    for name, preset in PRESETS.items():
        assert re.match(r"[A-Z]\w+ et al\. 20\d\d, ", preset.provenance), name
    before = peak()
    assert sum(preset.parameters for preset in PRESETS.values()) > 1e9  # in float32 more than 4 GB
    assert peak() - before < 200e6


def peak() -> float:
    """Peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def lstm(inputs, width):
    """Four gates, torch's two biases."""
    return 4 * width * (inputs + width) + 8 * width


def gru(inputs, width):
    return 3 * width * (inputs + width) + 6 * width


def additive(query, memory, inner):
    return inner * (query + memory) + inner


def rnnsearch(words, width=1000, word=620, maxout=500):
    embeddings, encoder, bridge = 2 * words * word, 2 * gru(word, width), width * width + width
    gates = 3 * width * (word + width + 2 * width) + 3 * width  # W, U, C and one bias
    readout = 2 * maxout * (word + width + 2 * width) + 2 * maxout  # V_o, U_o, C_o and one bias
    return embeddings + encoder + bridge + additive(width, 2 * width, width) + gates + readout + words * maxout


def luong(words, layers=4, width=1000):
    feed_weights = 4 * width * width  # the lowest layer reads the attentional vector beside the word
    combined = 2 * width * width  # Wc
    return 3 * words * width + 2 * layers * lstm(width, width) + feed_weights + width * width + combined


def gnmt(words, layers=8, width=1024):
    encoder = 2 * lstm(width, width) + lstm(2 * width, width) + (layers - 2) * lstm(width, width)
    decoder = lstm(width, width) + (layers - 1) * lstm(2 * width, width)  # the context beside what is below
    return 3 * words * width + encoder + decoder + additive(width, width, width)


@pytest.mark.parametrize(
    ("name", "formula", "vocabulary", "count"),
    [
        ("rnnsearch-50", rnnsearch, 30_000, 80_418_000),
        ("luong", luong, 50_000, 221_064_000),
        ("gnmt", gnmt, 32_000, 276_702_208),
    ],
)
def test_a_preset_with_attention_has_the_parameters_that_its_equations_have(name, formula, vocabulary, count):
    assert PRESETS[name].words == (vocabulary, vocabulary)
    assert PRESETS[name].parameters == formula(vocabulary) == count


@pytest.mark.parametrize(("name", "peak"), [("transformer-base", 6.99e-4), ("transformer-big", 4.94e-4)])
def test_the_learning_rate_of_the_paper_peaks_at_step_4000(name, peak):
    noam = Noam(width=PRESETS[name].config.width)
    rates = {step: noam.rate(step, 100_000) for step in (1, 3999, 4000, 4001, 100_000)}
    assert max(rates, key=rates.get) == 4000
    assert f"{rates[4000]:.3g}" == f"{peak:.3g}"
    assert rates[1] == pytest.approx(noam.width**-0.5 * 4000**-1.5)


def test_one_query_over_three_keys_gives_the_worked_weights_and_context():
    x = torch.eye(4)[[0, 1, 0]]
    y = torch.tensor([1.0, -1.0, 0.0])
    to_query = torch.tensor([[0.0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, -1]])
    to_value = torch.tensor([[1.0, 0, 0, 0], [0, 1, 1, 0]])
    q = to_query @ y
    assert q.tolist() == [-1, 1, 0, 1]
    memory = KeysValues(x[None, None], (x @ to_value.T)[None, None])
    layer = nn.Identity()
    with record(layer) as trace:
        z = attend(layer, q[None, None, None], memory, "full", "query key")
    scores, weights = trace.find("scores")[0].data, trace.find("weights")[0].data
    assert (scores.flatten() * math.sqrt(4)).tolist() == [-1, 1, -1]
    assert [round(w, 4) for w in weights.flatten().tolist()] == [0.2119, 0.5761, 0.2119]
    assert [round(v, 4) for v in z.flatten().tolist()] == [0.4239, 0.5761]
    unseen = attend(layer, q[None, None, None], memory, "full", "query key")
    assert [round(v, 4) for v in unseen.flatten().tolist()] == [0.4239, 0.5761]


def test_scores_of_112_and_96_in_heads_of_width_64_become_weights_of_88_and_12_percent():
    q = torch.zeros(1, 1, 1, 64)
    q[..., 0] = 1
    k = torch.zeros(1, 1, 2, 64)
    k[..., 0] = torch.tensor([112.0, 96.0])
    v = torch.zeros(1, 1, 2, 64)
    v[..., :2] = torch.eye(2)
    layer = nn.Identity()
    with record(layer) as trace:
        attend(layer, q, KeysValues(k, v), "full", "query key")
    assert trace.find("scores")[0].data.flatten().tolist() == [14, 12]
    assert [round(w, 2) for w in trace.find("weights")[0].data.flatten().tolist()] == [0.88, 0.12]
    assert [round(w, 2) for w in attend(layer, q, KeysValues(k, v), "full", "query key").flatten()[:2].tolist()] == [
        0.88,
        0.12,
    ]


def test_the_60_by_32_table_of_sinusoids_is_the_formula():
    found = Sinusoids(32)(torch.arange(60))
    assert found.shape == (60, 32)
    for place in range(60):
        for i in range(16):
            angle = place / 10_000 ** (2 * i / 32)
            assert found[place, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert found[place, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)
