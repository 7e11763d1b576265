"""States view: the values of a layer after each token, for every model and every kind of pass."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import zoo
from helpers import check_refused
from regard.decode.beam import Beam, power_penalty
from regard.decode.hypothesis import collect
from regard.decode.loop import decode
from regard.decode.processors import ban
from regard.errors import ConfigError, ModelError
from regard.look import Recording, StatesView
from regard.look.color_scales import DivergingScale, LinearScale
from regard.look.states import choose_state
from regard.nn.recurrent import LSTM, Bidirectional
from regard.sequence import PAD, SOS, Padded, Tokens
from regard.trace import Record, Trace, record, tap, trace_context

SPELLING = {"target": lambda i: ["<PAD>", "<UNK>", "<SOS>", "<EOS>", " i", " am", " a", " student"][i]}
SOURCES = [[" je", " suis", " un", " étudiant", " ."], [" من", " یک", " دانشجو"], [" 学"]]
READ = ["<SOS>", " i", " am", " a", " student"]


def forced(name):
    """One forward over the whole target."""
    model, source = zoo.build(name), zoo.ZOO[name].source()
    facts = {"source": SOURCES, "target": [READ] * 3} if source.data.shape[1] else {"target": [READ] * 3}
    with record(model) as trace, trace_context(**facts), torch.no_grad():
        model(source, zoo.TARGET)
    return model, Recording(trace)


def layer_read(layer, lengths=(4, 2), words=None, **facts):
    """A recurrent layer over random inputs."""
    torch.manual_seed(1)
    x = Padded(torch.randn(len(lengths), max(lengths), 4), torch.tensor(lengths))
    words = [[f"w{i}" for i in range(n)] for n in lengths] if words is None else words
    with record(nn.ModuleDict({"encoder": layer})) as trace, trace_context(source=words, **facts), torch.no_grad():
        out = layer(x, layer.zeros(x.data)) if isinstance(layer, LSTM) else layer(x)
    return out[0], Recording(trace)


def test_positions_of_one_pass_are_joined_into_token_by_unit():
    layer = LSTM(4, 3)
    out, recording = layer_read(layer)
    view = recording.states(units=range(3))
    assert view.name == "encoder.hidden" and view.tokens == ["w0", "w1", "w2", "w3"] and view.side == "source"
    np.testing.assert_array_equal(view.values, out[0].numpy())


def test_padding_is_no_token():
    out, recording = layer_read(LSTM(4, 3))
    view = recording.states(units=range(3), row=1)
    assert view.tokens == ["w0", "w1"]
    np.testing.assert_array_equal(view.values, out[1, :2].numpy())


@pytest.mark.parametrize("row", [0, 1])
def test_backward_states_align_with_their_tokens(row):
    out, recording = layer_read(Bidirectional("gru", 4, 3))
    onward = recording.states("encoder.forward_layer.*", units=range(3), row=row)
    back = recording.states("encoder.backward_layer.*", units=range(3), row=row)
    length = len(onward.tokens)
    np.testing.assert_array_equal(np.concatenate([onward.values, back.values], 1), out[row, :length].numpy())
    assert recording.states().name == "encoder.forward_layer.hidden"


@pytest.mark.parametrize("gate", ["input", "forget", "candidate", "output"])
def test_each_gate_is_found_by_its_name(gate):
    _, recording = layer_read(LSTM(4, 3))
    view = recording.states(gate, units=range(3))
    at = ("input", "forget", "candidate", "output").index(gate)
    expected = [r.data[0, at].numpy() for r in recording.find("encoder.gates")]
    np.testing.assert_array_equal(view.values, expected)
    assert view.gate == gate and view.title == f"encoder.gates, {gate} gate, 3 of 3 units"
    assert view.scale == (DivergingScale(1.0) if gate == "candidate" else LinearScale(1.0))


def test_the_cell_follows_from_the_recorded_gates():
    _, recording = layer_read(LSTM(4, 3))
    i, f, g = (recording.states(gate, units=range(3)).values for gate in ("input", "forget", "candidate"))
    cell = recording.states("cell", units=range(3)).values
    np.testing.assert_allclose(cell[1:], f[1:] * cell[:-1] + i[1:] * g[1:], atol=1e-6)


def test_the_residual_stream_of_a_transformer_is_a_state():
    _, recording = forced("transformer")
    view = recording.states(units=range(16), row=1)
    assert (view.name, view.layer, view.side) == ("encoder.layers.1.residual", 1, "source")
    assert view.tokens == SOURCES[1]
    expected = recording.find("encoder.layers.1.residual")[0].data[1, :3].numpy()
    assert np.ascontiguousarray(view.values).tobytes() == np.ascontiguousarray(expected).tobytes()
    assert recording.states("decoder.*", layer=0).name == "decoder.layers.0.residual"


def test_a_language_model_shows_the_text_it_read():
    _, recording = forced("gpt")
    view = recording.states()
    assert view.side == "target" and view.tokens == READ and view.name == "decoder.layers.1.residual"


@pytest.mark.parametrize("name", ["seq2seq", "rnnlm", "rnnsearch", "luong", "transformer", "gpt"])
@pytest.mark.parametrize("width", [1, 3])
def test_states_of_the_best_hypothesis_equal_those_of_teacher_forcing(name, width):
    model = zoo.build(name)
    zoo.sharpen(model)
    source = zoo.ZOO[name].source()
    with record(model) as trace, trace_context(source=SOURCES if source.data.shape[1] else [[], [], []]):
        prompt, limits = Tokens.pad([[SOS]] * 3), torch.tensor([7, 5, 9])
        beam = Beam(
            width, power_penalty(1.0), processors=(ban(PAD),)
        )  # as every search here: an output never contains <PAD>
        found = [best[0] for best in collect(decode(model, source, prompt, beam, limits))]
        with trace_context(sources=torch.arange(3)):
            tap(model, "answer", Tokens.pad([h.tokens for h in found]).data, "batch position")
    for row, best in enumerate(found):
        view = Recording(trace, SPELLING).states("decoder.*", units=range(6), row=row)
        read = [SOS, *best.tokens[:-1]]
        assert view.tokens == [SPELLING["target"](i) for i in read]
        with record(model) as again, torch.no_grad():
            model(zoo.single_row(source, row), Tokens.pad([read]))
        other = Recording(again).states(view.name, units=range(6))
        np.testing.assert_allclose(view.values, other.values, atol=1e-5)


def test_units_that_vary_most_are_the_default():
    values = torch.zeros(1, 5, 20)
    values[0, :, 7] = torch.tensor([1.0, -1, 1, -1, 1])
    values[0, :, 3] = torch.tensor([0.5, -0.5, 0.5, -0.5, 0.5])
    values[0, :, 11] = 9.0  # large and constant
    residual = Record("decoder.residual", ("batch", "position", "width"), values, {}, {})
    view = Recording(Trace(records=[residual])).states()
    assert view.units[:2] == [7, 3] and len(view.units) == 12 and view.width == 20 and view.max_abs == 9.0
    assert Recording(Trace(records=[residual])).states(units=[11, 7]).units == [11, 7]


@pytest.mark.parametrize(("largest", "max_abs"), [(0.9, 1.0), (1.0, 1.0), (0.2, 0.2), (3.0, 3.0)])
def test_the_color_scale_ends_at_the_largest_value(largest, max_abs):
    values = torch.tensor([[[0.1, -largest], [0.0, 0.05]]])
    residual = Record("decoder.residual", ("batch", "position", "width"), values, {}, {})
    assert Recording(Trace(records=[residual])).states(units=[0]).max_abs == pytest.approx(max_abs)


def test_a_view_is_plain_data():
    _, recording = layer_read(LSTM(4, 3))
    view = recording.states("forget", units=[2, 0])
    data = json.loads(json.dumps(view.to_dict()))
    assert data["units"] == [2, 0] and data["width"] == 3 and data["gate"] == "forget" and data["range"] == [0, 1]
    assert data["tokens"] == ["w0", "w1", "w2", "w3"] and np.shape(data["values"]) == (4, 2)


def test_tooltips_have_every_value_with_its_sign():
    view = StatesView("h", np.array([[0.5, -0.25], [-1.0, 0.0]]), ["a", "b"], [4, 9], width=12, max_abs=1.0)
    root = ElementTree.fromstring(view.svg())
    output = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    for cell in ("4 → a: 0.5000", "4 → b: -1.0000", "9 → a: -0.2500", "9 → b: 0.0000"):
        assert cell in output
    rects = [(r.get("class"), r.get("fill-opacity")) for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert rects[1:5] == [
        ("rg-positive", "0.500"), ("rg-negative", "1.000"), ("rg-negative", "0.250"), ("rg-positive", "0.000")
    ]  # fmt: skip


def test_the_terminal_has_a_line_per_token_and_a_legend():
    view = StatesView("h", np.array([[0.5, -0.25], [-1.0, 0.0]]), ["a", "b"], [4, 9], width=12, max_abs=1.0)
    assert view.text(60, "none").splitlines() == [
        "h, 2 of 12 units",
        "target \\ unit",
        "        4      9",
        "a  ▒+0.50 ░-0.25",
        "b  █-1.00  +0.00",
        "-1.00 █▓▒░ ░▒▓█ +1.00   smallest -1.00, largest +0.50",
    ]


def test_a_long_text_of_many_units_fits_any_terminal():
    view = StatesView("h", np.linspace(-1, 1, 40 * 12).reshape(40, 12), ["من"] * 40, list(range(12)), 64, 1.0)
    for width in (30, 80):
        lines = view.text(width, "none").splitlines()
        assert max(map(len, lines[:-1])) <= width + 2  # two marks fence what runs from right to left
        assert "-100" in " ".join(lines) or "-1.00" in " ".join(lines)


def test_a_saved_recording_shows_the_same_states(tmp_path):
    _, recording = layer_read(Bidirectional("lstm", 4, 3))
    recording.save(tmp_path / "a.safetensors")
    for name in ("encoder.backward_layer.hidden", "encoder.forward_layer.gates.forget", "cell"):
        one, other = recording.states(name), Recording.load(tmp_path / "a.safetensors").states(name)
        assert one.to_dict() == other.to_dict()


def test_unknown_states_are_refused_by_name():
    _, recording = layer_read(LSTM(4, 3))
    check_refused(
        ConfigError,
        "name: no state and no gate is called 'reset'; there are encoder.gates.input, encoder.gates.forget, "
        "encoder.gates.candidate, encoder.gates.output, encoder.cell, encoder.hidden",
        lambda: recording.states("reset"),
    )
    check_refused(ConfigError, "unit: encoder.hidden has the units 0 to 2, got 3", lambda: recording.states(units=[3]))
    check_refused(
        ConfigError, "unit: encoder.hidden has the units 0 to 2, got none", lambda: recording.states(units=[])
    )
    check_refused(
        ConfigError,
        "layer: no layer of those states has a number, got 2; leave the layer out",
        lambda: recording.states(layer=2),
    )
    check_refused(ConfigError, "row: 2 sentences were recorded, 0 to 1, got 2", lambda: recording.states(row=2))
    check_refused(
        ModelError,
        "no states were recorded, only 0 other names; did the model run inside the block?",
        lambda: Recording(Trace()).states(),
    )
    check_refused(
        ConfigError,
        "unit: this view has the units 1, got 2",
        lambda: recording.states(units=[1]).highlight(2),
    )


def test_tokens_of_another_pass_are_refused():
    _, recording = layer_read(LSTM(4, 3), words=[["a"] * 9] * 2)
    check_refused(
        ModelError,
        "encoder.hidden: 9 tokens for 4 positions; are they the tokens of this pass?",
        lambda: recording.states(),
    )


@pytest.mark.parametrize("gate", [None, "forget"])
def test_nan_can_be_drawn(gate):
    view = StatesView("h", np.array([[np.nan, np.inf]]), ["a"], [0, 1], 2, 1.0, gate, signed=gate is None)
    assert "nan" in view.text(60, "none")
    ElementTree.fromstring(view.svg())
    assert re.search("nan", view.highlight(0).svg())


def test_text_highlighted_by_one_unit_uses_the_range_of_that_unit():
    values = np.array([[-0.17, 2.0], [0.06, -2.33]])
    view = StatesView("decoder.cell", values, ["je", "suis"], [5, 6], 8, 2.33)
    highlighted = view.highlight(5)
    assert highlighted.scale == DivergingScale(0.17) and view.scale == DivergingScale(2.33)
    for output in (highlighted.text(60, "none"), highlighted.text(60, "24-bit"), highlighted.svg()):
        assert "colors range over the values of this unit, ±0.17" in output
    assert view.highlight(6).scale == DivergingScale(2.33)


def test_tanh_states_and_gates_have_a_scale_up_to_one():
    values = np.array([[0.1, 0.9], [0.2, 0.8]])
    for gate, signed, scale in ((None, True, DivergingScale(1.0)), ("forget", False, LinearScale(1.0))):
        highlighted = StatesView("h", values, ["a", "b"], [0, 1], 2, 1.0, gate, signed=signed).highlight(0)
        assert highlighted.scale == scale and highlighted.note == ""


def test_states_of_the_requested_side_come_first():
    _, recording = forced("seq2seq")
    assert choose_state(recording.records, "cell", None, "target", 0) == ("decoder.stack.layers.0.cell", None)
    assert choose_state(recording.records, "cell") == ("encoder.stack.layers.1.cell", None)
    assert choose_state(recording.records, "encoder.*", 0, "target")[0] == "encoder.stack.layers.0.hidden"
    _, deeper = forced("convolution-luong")
    assert deeper.states("hidden", layer=1).name == "decoder.stack.layers.1.hidden"


def test_a_layer_is_refused_where_there_are_none():
    _, recording = forced("luong")
    check_refused(
        ConfigError,
        "layer: no layer of that attention has a number, got 3; leave the layer out",
        lambda: recording.attention(layer=3),
    )
    check_refused(
        ConfigError, "head: decoder.cross.weights has one head, 0, got 1", lambda: recording.attention(head=1)
    )
