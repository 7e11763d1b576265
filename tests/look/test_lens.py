"""Logit lens and candidates: the last layer is the model's own output, and views, files and pages show one number."""

import numpy as np
import pytest
import torch

import zoo
from regard.decode.beam import Beam, power_penalty
from regard.decode.hypothesis import collect
from regard.decode.loop import decode
from regard.errors import ConfigError, ModelError
from regard.look import Recording, TeacherForcedPass
from regard.look.lens import lens_records
from regard.sequence import Tokens
from regard.tasks.lens_head import lens_head
from regard.trace import record, tap, trace_context

SPELL = {"target": lambda i: f"t{i}", "source": lambda i: f"s{i}"}
LAYERED = [name for name in zoo.ZOO if zoo.build(name).decoder.lens_features(torch.zeros(1, zoo.D)) is not None]
"""models whose end can read each of their layers"""


def read(name, save=None):
    """The first target of the zoo, read by a model with teacher forcing."""
    model = zoo.build(name)
    zoo.sharpen(model)
    source, target = (zoo.single_row(rows, 0) for rows in (zoo.ZOO[name].source(), zoo.TARGET))
    words = {"target": [[f"t{i}" for i in target.data[0].tolist()]]}
    if source.data.shape[1]:
        words["source"] = [[f"s{i}" for i in source.data[0].tolist()]]
    with record(model) as trace:
        TeacherForcedPass(source, target, zoo.words, words).run(model)
    with torch.no_grad():
        plain = model.readout(model(source, target))[0].double().softmax(-1)
    return model, Recording(trace, SPELL, lens_head(model, SPELL)), plain, target.data[0].tolist()


@pytest.mark.parametrize("name", LAYERED)
def test_the_last_layer_of_the_lens_is_the_models_own_output(name):
    _, recording, plain, ids = read(name)
    view, depth = recording.lens(), len(recording.lens().layers)
    best = plain.topk(zoo.V)
    assert view.candidates[-1] == [[f"t{i}" for i in row] for row in best.indices.tolist()]
    np.testing.assert_allclose(view.probabilities[-1], best.values, atol=1e-6)
    np.testing.assert_allclose(view.probabilities.sum(-1), 1, atol=1e-6)  # all V tokens are among the candidates
    assert view.tokens == [f"t{i}" for i in ids] and view.actual == [*view.tokens[1:], ""]
    assert view.layers[-1] == f"layer {depth - 1 - (view.layers[0] == 'embedding')}"
    lower = recording.lens(0)
    assert lower.layers == ["layer 0"] and lower.candidates[0] == view.candidates[view.layers.index("layer 0")]


def test_each_layer_of_the_lens_is_its_residual_stream_through_the_last_norm_and_projection():
    model, recording, _, _ = read("gpt")
    view = recording.lens()
    assert view.layers == ["embedding", "layer 0", "layer 1"]
    names = ("decoder.residual", "decoder.layers.0.residual", "decoder.layers.1.residual")
    for row, name in enumerate(names):
        x = recording.find(name)[0].data[0].double().numpy()
        norm, weight = model.decoder.norm, model.decoder.readout.weight.detach().double().numpy()
        centered = x - x.mean(-1, keepdims=True)
        scaled = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + norm.eps)
        logits = (scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()) @ weight.T
        chances = np.exp(logits - logits.max(-1, keepdims=True))
        chances /= chances.sum(-1, keepdims=True)
        np.testing.assert_allclose(view.probabilities[row], -np.sort(-chances), atol=1e-5)
        assert [best[0] for best in view.candidates[row]] == [f"t{i}" for i in chances.argmax(-1)]


@pytest.mark.parametrize("name", ["rnnsearch", "luong", "gnmt"])
def test_a_model_without_such_layers_says_which_have_a_lens(name):
    _, recording, _, _ = read(name)
    with pytest.raises(ModelError, match="no logit lens: it needs a model whose layers share one width"):
        recording.lens()


def test_an_unknown_layer_is_refused():
    with pytest.raises(ConfigError, match="layer: the lens has embedding, layer 0, layer 1, got 7"):
        read("gpt")[1].lens(7)


@pytest.mark.parametrize("name", ["gpt", "rnnlm", "transformer", "luong"])
def test_candidates_have_the_probability_and_rank_of_the_token_that_followed(name):
    _, recording, plain, ids = read(name)
    view = recording.candidates()
    assert view.kind == "next" and view.contexts == [f"t{i}" for i in ids] and view.ranks[-1] == 0
    np.testing.assert_allclose(view.probabilities, plain.topk(zoo.V).values, atol=1e-6)
    for t, following in enumerate(ids[1:]):
        assert view.actual[t] == f"t{following}"
        assert view.actual_probabilities[t] == pytest.approx(float(plain[t, following]), abs=1e-6)
        assert view.ranks[t] == 1 + sum(bool(p > plain[t, following]) for p in plain[t])
        assert view.candidates[t][view.ranks[t] - 1] == view.actual[t]


@pytest.mark.parametrize("name", ["gpt", "transformer", "rnnlm"])
def test_lens_and_candidates_follow_the_steps_of_a_search(name):
    model = zoo.build(name)
    zoo.sharpen(model)
    source, prompt = zoo.single_row(zoo.ZOO[name].source(), 0), Tokens.pad([[2, 4]])
    with record(model) as trace:
        [[best, *_]] = collect(decode(model, source, prompt, Beam(2, power_penalty(1.0)), torch.tensor([5])))
        with trace_context(sources=torch.arange(1), target=[[f"t{i}" for i in best.tokens]]):
            tap(model, "answer", Tokens.pad([best.tokens]).data, "batch position:target")
    recording = Recording(trace, SPELL, lens_head(model, SPELL))
    with torch.no_grad():
        plain = model.readout(model(source, Tokens.pad([[2, 4, *best.tokens[:-1]]])))[0].double().softmax(-1)
    lens, view = recording.lens(), recording.candidates()
    assert lens.tokens == [f"t{i}" for i in (2, 4, *best.tokens[:-1])] and lens.actual[-1] == f"t{best.tokens[-1]}"
    np.testing.assert_allclose(lens.probabilities[-1], plain.topk(zoo.V).values, atol=1e-5)
    assert view.kind == "step" and view.actual == [f"t{i}" for i in best.tokens]
    np.testing.assert_allclose(view.actual_probabilities, plain[range(1, len(plain)), best.tokens], atol=1e-5)


def test_views_are_the_same_after_save_and_load(tmp_path):
    _, recording, _, _ = read("gpt")
    recording.save(tmp_path / "a.safetensors")
    loaded = Recording.load(tmp_path / "a.safetensors")
    assert loaded.lens().to_dict() == recording.lens().to_dict() == recording.condense().lens().to_dict()
    assert loaded.candidates().to_dict() == recording.candidates().to_dict()


def test_views_are_drawn_as_text_and_svg():
    _, recording, _, _ = read("gpt")
    lens, found = recording.lens(), recording.candidates()
    assert lens.svg().count("<rect") > 15 and "outlined" in lens.svg()
    first = lens.text(80, "none").splitlines()
    assert first[1].split() == ["token", "embedding", "layer", "0", "layer", "1", "next"] and len(first) == 2 + 5
    assert found.text(100, "none").splitlines()[1].split() == ["after", "1", "2", "3", "4", "5", "actual", "rank"]
    assert max(len(line) for line in lens.text(30, "none").splitlines()) <= 30  # continued below
    assert "\x1b[48;" in lens.text(80, "24-bit") and found.svg()
    assert repr(lens) == "LensView(3 layers, 5 tokens)"


def test_nothing_is_recorded_while_the_lens_is_computed():
    model = zoo.build("gpt")
    with record(model) as trace:
        TeacherForcedPass(zoo.empty_source(1), zoo.single_row(zoo.TARGET, 0), zoo.words).run(model)
        before = len(trace.records)
        recording = Recording(trace, SPELL, lens_head(model, SPELL))
        assert recording.lens().layers and len(trace.records) == before
    assert lens_records(recording.condense().records, None) == []
