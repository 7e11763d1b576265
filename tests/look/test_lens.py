"""Logit lens and candidates: the last layer is the model's own output, and views, files and pages show one number."""

import numpy as np
import pytest
import torch

import zoo
from helpers import refusal
from regard.decode.beam import Beam, power_penalty
from regard.decode.hypothesis import collect
from regard.decode.loop import decode
from regard.errors import ConfigError, ModelError
from regard.look import Recording, TeacherForcedPass
from regard.models.base import Classifier
from regard.models.cnn import CNNConfig
from regard.models.crf_tagger import CRFTagger
from regard.models.forecaster import Forecaster, ForecasterShape
from regard.models.mlp import MLPConfig
from regard.models.pooling import make_pooling
from regard.models.subword_tagger import SubwordTagger
from regard.sequence import Tokens, last
from regard.spaces import Classes, Gaussian, Pixels, Values
from regard.tasks.label.targets import ViterbiDecoding
from regard.tasks.lens_head import lens_head
from regard.trace import record, tap, trace_context, tracing

SPELL = {"target": lambda i: f"t{i}", "source": lambda i: f"s{i}"}
DECODERS = zoo.ZOO | zoo.CAPTIONERS
LABELS = ("NO", "YES", "MAYBE")


def read(name):
    """The first target of the zoo, read by a model with teacher forcing."""
    model = zoo.build(name)
    zoo.sharpen(model)
    source, target = (zoo.single_row(rows, 0) for rows in (DECODERS[name].source(), zoo.TARGET))
    words = {"target": [[f"t{i}" for i in target.data[0].tolist()]]}
    if isinstance(source, Tokens) and source.data.shape[1]:
        words["source"] = [[f"s{i}" for i in source.data[0].tolist()]]
    with record(model) as trace:
        TeacherForcedPass(source, target, zoo.words, words).run(model)
    with torch.no_grad():
        plain = model.readout(model(source, target))[0].double().softmax(-1)
    return model, Recording(trace, SPELL, lens_head(model, SPELL)), plain, target.data[0].tolist()


def read_labels(model, source, rows=None, words=None):
    """Texts that a classifier or a tagger of the zoo reads, recorded as its task records them."""
    zoo.sharpen(model)
    rows = rows or [[f"s{i}" for i in range(size)] for size in source.lengths.tolist()]
    side, facts = ("word", {"word": words}) if words else ("source", {})
    with torch.no_grad(), record(model) as trace, trace_context(source=rows, label=LABELS, **facts):
        out = model.readout(model(source))
        out = tap(model, "logits", out, "batch label:label" if out.ndim == 2 else f"batch position:{side} label:label")
        if hasattr(model, "crf"):
            ViterbiDecoding(LABELS)(source.like(out), model)
    return Recording(trace, SPELL, lens_head(model, SPELL)), out[0].double().reshape(-1, zoo.C)


def last_logits(recording):
    """Logits of the last layer of a lens."""
    head, records = recording.lens_head, recording.condense().records
    with torch.no_grad():
        return head.logits(head.layers(records).features[-1]).double()


@pytest.mark.parametrize("name", DECODERS)
def test_the_last_layer_of_the_lens_is_the_models_own_output(name):
    model, recording, plain, ids = read(name)
    view, depth = recording.lens(), len(recording.lens().layers)
    best = plain.topk(zoo.V)
    assert view.candidates[-1] == [[f"t{i}" for i in row] for row in best.indices.tolist()]
    np.testing.assert_allclose(view.probabilities[-1], best.values, atol=1e-5)
    features = recording.find("decoder.features")[-1].data[0]
    torch.testing.assert_close(last_logits(recording), model.readout(features).double(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(view.probabilities.sum(-1), 1, atol=1e-6)  # all V tokens are among the candidates
    assert view.tokens == [f"t{i}" for i in ids] and view.actual == [*view.tokens[1:], ""]
    assert view.layers[-1] == f"layer {depth - 1 - (view.layers[0] == 'embedding')}"
    lower = recording.lens(0)
    assert lower.layers == ["layer 0"] and lower.candidates[0] == view.candidates[view.layers.index("layer 0")]
    assert any("one layer" in note for note in view.notes) == (depth == 1)


@pytest.mark.parametrize("name", zoo.READERS)
def test_the_last_layer_of_a_readers_lens_is_its_own_output(name):
    recording, plain = read_labels(zoo.reader(name), zoo.single_row(zoo.text(), 0))
    view, best = recording.lens(), plain.softmax(-1).topk(zoo.C)
    assert view.candidates[-1] == [[LABELS[i] for i in row] for row in best.indices.tolist()]
    np.testing.assert_allclose(view.probabilities[-1], best.values, atol=1e-5)
    torch.testing.assert_close(last_logits(recording), plain, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(view.probabilities.sum(-1), 1, atol=1e-6)
    assert view.actual == [LABELS[i] for i in plain.argmax(-1)] and view.actual_title == "answer"
    each = name.endswith((" each", " vectors"))
    assert view.tokens == ([f"s{i}" for i in range(5)] if each else ["text"]) and view.whole != each
    assert any("one layer" in note for note in view.notes) == (len(view.layers) == 1)


@pytest.mark.parametrize("pool", zoo.POOLS)
def test_a_classifiers_layer_is_read_by_its_own_pooling_and_head(pool):
    model = zoo.reader(f"gru-deep {pool}")
    recording, _ = read_labels(model, zoo.single_row(zoo.text(), 0))
    view = recording.lens()
    forward, backward = (
        recording.condense().find(f"encoder.stack.layers.0.{side}_layer.hidden")[0].data[0]
        for side in ("forward", "backward")
    )
    states = torch.cat([forward, backward], 1)
    pooled = {
        "mean": states.mean(0),
        "max": states.amax(0),
        "first": states[0],
        "last": torch.cat([forward[-1], backward[0]]),
    }
    expected = model.readout(pooled[pool]).detach().double().softmax(-1)
    np.testing.assert_allclose(view.probabilities[0, 0], expected.sort(descending=True).values, atol=1e-6)
    assert view.candidates[0][0][0] == LABELS[int(expected.argmax())] and view.layers == ["layer 0", "layer 1"]


@pytest.mark.parametrize("name", ["gru-deep mean", "gru-deep last", "gru-deep each", "bert mean", "elmo each"])
def test_a_padded_text_has_the_lens_of_the_text_alone(name):
    texts = zoo.text()
    alone, _ = read_labels(zoo.reader(name), zoo.single_row(texts, 1))
    padded, _ = read_labels(zoo.reader(name), texts.select(torch.tensor([1, 0])))
    one, two = alone.lens(), padded.lens()
    np.testing.assert_allclose(two.probabilities, one.probabilities, atol=1e-5)
    assert two.tokens == one.tokens and two.actual == one.actual


def test_a_tagger_with_a_crf_shows_the_marginals_of_each_layers_emissions():
    encoder = zoo.READING["gru-deep"].build_encoder(zoo.words)
    model = CRFTagger(encoder, Classes(zoo.C), encoder.width).eval()
    recording, plain = read_labels(model, zoo.single_row(zoo.text(), 0))
    view, recorded = recording.lens(), recording.find("label_marginals")[0].data[0]
    np.testing.assert_allclose(view.probabilities[-1], recorded.sort(-1, descending=True).values, atol=1e-5)
    decoded = recording.find("decoded_labels")[0].data[0].tolist()
    assert (
        view.actual == [LABELS[i] for i in decoded] and view.title == "logit lens: most probable label after each layer"
    )
    torch.testing.assert_close(last_logits(recording), plain, rtol=1e-5, atol=1e-5)


def test_a_tagger_of_subwords_reads_the_first_piece_of_each_word():
    torch.manual_seed(0)
    encoder = zoo.READING["bert"].build_encoder(zoo.words)
    model = SubwordTagger(encoder, Classes(zoo.C), encoder.width, ((2,), (3,))).eval()
    source = Tokens.pad([[[5, 6], [7, 0], [8, 6]]])
    pieces = [["[CLS]", "a", "##b", "c", "d", "##b", "[SEP]"]]
    recording, plain = read_labels(model, source, pieces, [["ab", "c", "db"]])
    view = recording.lens()
    assert view.tokens == ["ab", "c", "db"] and view.layers == ["embedding", "layer 0", "layer 1"]
    np.testing.assert_allclose(view.probabilities[-1], plain.softmax(-1).sort(-1, descending=True).values, atol=1e-5)
    first = recording.find("encoder.layers.0.residual")[0].data[0][[1, 3, 4]]
    expected = model.readout(first).detach().softmax(-1).sort(-1, descending=True).values
    np.testing.assert_allclose(view.probabilities[1], expected, atol=1e-5)


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


def test_luongs_layers_are_read_with_the_recorded_context():
    model, recording, _, _ = read("luong")
    short = {r.name: r.data[0] for r in recording.condense().records}
    context, hidden = short["decoder.cross.context"][0], short["decoder.stack.layers.0.hidden"]
    weights = [part.weight for part in (model.decoder.context_projection, model.decoder.hidden_projection)]
    attended = torch.tanh(context @ weights[0].T + hidden @ weights[1].T)
    expected = (attended @ model.readout.weight.T).detach().double().softmax(-1).sort(-1, descending=True).values
    view = recording.lens()
    np.testing.assert_allclose(view.probabilities[0], expected, atol=1e-5)
    assert view.notes == ["each state is read with the context vector of its position, which the top layer attended to"]


def test_layers_above_the_first_of_a_residual_stack_are_their_sums():
    model, recording, _, _ = read("gnmt")
    view = recording.lens()
    assert view.layers == ["layer 0", "layer 1", "layer 2"]
    short = {r.name: r.data[0] for r in recording.condense().records}
    for row, name in enumerate(("first.hidden", "stack.layers.0.hidden", "stack.layers.1.residual_sum")):
        expected = (short[f"decoder.{name}"] @ model.readout.weight.T).detach().double().softmax(-1)
        np.testing.assert_allclose(view.probabilities[row], expected.sort(-1, descending=True).values, atol=1e-5)


def test_models_without_a_lens_say_why():
    torch.manual_seed(0)
    shape = ForecasterShape(rows=6, columns=2, patch=6, outputs=3, linear_columns=2)
    forecaster = Forecaster(MLPConfig(width=4).build_encoder(Values(shape.inputs)), last, Gaussian(3), shape)
    with torch.no_grad(), record(forecaster) as trace:
        forecaster(Tokens.full(torch.zeros(1, 6, 2)))
    numbers = "no logit lens: this model predicts numbers, and the lens compares probabilities of tokens or labels; use"
    message = refusal(ModelError, lambda: Recording(trace, {}, lens_head(forecaster, {})).lens())
    assert message.startswith(numbers)
    cnn = CNNConfig(channels=(4, 6), convolutions=1).build_encoder(Pixels(3, 8, 8))
    classifier = Classifier(cnn, make_pooling("mean", cnn), Classes(zoo.C), cnn.width).eval()
    with torch.no_grad(), record(classifier) as trace, trace_context(label=LABELS):
        tap(classifier, "logits", classifier.readout(classifier(zoo.single_row(zoo.images(), 0))), "batch label:label")
    message = refusal(ModelError, lambda: Recording(trace, {}, lens_head(classifier, {})).lens())
    assert message.startswith("no logit lens: the feature maps of a convolutional network differ in channels and size")
    _, recording, _, _ = read("gpt")
    message = refusal(ModelError, lambda: Recording(recording.trace, SPELL).lens())
    assert (
        message
        == "no logit lens: this recording has none; it is computed where a model is recorded: with model.record()"
    )


def test_a_pass_whose_beginning_was_not_recorded_says_what_is_missing():
    model = zoo.build("rnnsearch")
    state = model.start(zoo.single_row(zoo.text(), 0))
    with torch.no_grad(), record(model) as trace, trace_context(target=[["a", "b"]]):
        model.decoder(Tokens.pad([[2, 4]]), state)
    message = refusal(ModelError, lambda: Recording(trace, SPELL, lens_head(model, SPELL)).lens())
    assert message == (
        "no logit lens: decoder.unit.start was not recorded; record the whole prediction, from the encoder on"
    )


def test_a_head_that_reads_more_than_the_last_layer_is_refused():
    model = zoo.reader("lstm mean")
    model.pool.register_forward_hook(lambda part, inputs, out: out * 2 if tracing() else out)
    recording, _ = read_labels(model, zoo.single_row(zoo.text(), 0))
    message = refusal(ModelError, lambda: recording.lens())
    assert message.startswith("no logit lens: the head of this model reads more than its last layer")


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


@pytest.mark.parametrize("name", ["gpt", "transformer", "rnnlm", "elmo", "rnnsearch", "luong", "luong-unfed", "gnmt"])
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


def test_labels_are_drawn_as_text_and_svg():
    recording, _ = read_labels(zoo.reader("transformer mean"), zoo.single_row(zoo.text(), 0))
    view = recording.lens()
    lines = view.text(80, "none").splitlines()
    assert lines[0] == "logit lens: most probable labels after each layer"
    assert [line.split()[0] for line in lines[1:5]] == ["layer", "layer", "layer", "embedding"]
    assert lines[1].split() == ["layer", "1", "2", "3"]
    assert "label is the one that the model chose" in view.svg()
    recording, _ = read_labels(zoo.reader("bert each"), zoo.single_row(zoo.text(), 0))
    lines = recording.lens().text(80, "none").splitlines()
    assert lines[1].split() == ["token", "embedding", "layer", "0", "layer", "1", "answer"] and len(lines) == 2 + 5


def test_nothing_is_recorded_while_the_lens_is_computed():
    model = zoo.build("gpt")
    with record(model) as trace:
        TeacherForcedPass(zoo.empty_source(1), zoo.single_row(zoo.TARGET, 0), zoo.words).run(model)
        before = len(trace.records)
        recording = Recording(trace, SPELL, lens_head(model, SPELL))
        assert recording.lens().layers and len(trace.records) == before
