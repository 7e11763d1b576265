"""Published model sizes and worked examples, against the numbers of the papers."""

import math
import re
import resource

import pytest
import torch
from torch import nn

from language_models import llama_shell
from regard.lessons import teach
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
        ("gpt-1", 40_478, 116_534_784),
        ("gpt-2", 50_257, 124_439_808),
        ("gpt-2-medium", 50_257, 354_823_168),
        ("gpt-2-large", 50_257, 774_030_080),
        ("gpt-2-xl", 50_257, 1_557_611_200),
        ("gpt-3-175b", 50_257, 174_604_259_328),
        ("gpt-3", 50_257, 174_604_259_328),
        ("llama-7b", 32_000, 6_738_415_616),
        ("llama-2-70b", 32_000, 68_976_648_192),
        ("llama-3-8b", 128_256, 8_030_261_248),
        ("mistral-7b", 32_000, 7_241_732_096),
        ("qwen2-0.5b", 151_936, 494_032_768),
        ("smollm2-135m", 49_152, 134_515_008),
        ("tinyllama", 32_000, 1_100_048_384),
    ],
)
def test_a_preset_has_exactly_as_many_parameters_as_the_paper_implies(name, vocabulary, count):
    assert PRESETS[name].words == (vocabulary, vocabulary)
    assert PRESETS[name].parameters == count


def gpt3(layers, width, heads, head_width, words=50_257, context=2048):
    inner = heads * head_width
    attention = width * 3 * inner + 3 * inner + inner * width + width
    ffn = 2 * width * 4 * width + 5 * width
    return (words + context) * width + layers * (attention + ffn + 4 * width) + 2 * width


@pytest.mark.parametrize(
    ("name", "shape", "quoted"),
    [
        ("gpt-3-small", (12, 768, 12, 64), 125e6),
        ("gpt-3-medium", (24, 1024, 16, 64), 350e6),
        ("gpt-3-large", (24, 1536, 16, 96), 760e6),
        ("gpt-3-xl", (24, 2048, 24, 128), 1.3e9),
        ("gpt-3-2.7b", (32, 2560, 32, 80), 2.7e9),
        ("gpt-3-6.7b", (32, 4096, 32, 128), 6.7e9),
        ("gpt-3-13b", (40, 5140, 40, 128), 13e9),
        ("gpt-3-175b", (96, 12_288, 96, 128), 175e9),
    ],
)
def test_a_gpt_3_of_the_papers_table_has_the_parameters_that_its_equations_have_near_the_quoted_number(
    name, shape, quoted
):
    assert PRESETS[name].parameters == gpt3(*shape)
    # XL's 24 heads of 128, as printed, are wider than its model: 1.3 B are quoted, which 16 heads would have
    assert PRESETS[name].parameters == pytest.approx(quoted, rel=0.17 if name == "gpt-3-xl" else 0.02)


@pytest.mark.parametrize("name", ["llama-7b", "llama-3-8b", "mistral-7b", "qwen2-0.5b", "smollm2-135m", "tinyllama"])
def test_a_llama_preset_has_as_many_parameters_as_transformers_model_of_that_shape(name):
    with torch.device("meta"):
        theirs = llama_shell(PRESETS[name].config, PRESETS[name].words[0])
    assert PRESETS[name].parameters == sum(p.numel() for p in theirs.parameters())


def test_the_lessons_count_of_gpt_neox_20b_is_that_of_transformers_model():
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    with torch.device("meta"):
        theirs = GPTNeoXForCausalLM(GPTNeoXConfig())  # its defaults are the shape of 20B
    counts = teach("sizes").value("counts")
    assert counts.data[counts.labels["model"].index("GPT-NeoX-20B")][0] == sum(p.numel() for p in theirs.parameters())


def test_gpt_3_xl_with_16_heads_would_have_what_is_quoted():
    assert gpt3(24, 2048, 16, 128) == pytest.approx(1.3e9, rel=0.02)


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
