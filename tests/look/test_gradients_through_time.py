"""Gradients through time: equal to autograd on loops written by hand, and to the closed form where there is one."""

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import zoo
from helpers import check_refused
from regard.errors import ConfigError, DataError
from regard.look import DecayView, GradientDecay, GradientsView, TeacherForcedPass, gradients_through_time
from regard.look.decay import thin_distances
from regard.models.base import Decoder, EmptyEncoder, EncoderDecoder, State
from regard.sequence import Padded, Tokens
from regard.spaces import Gaussian, Values
from regard.trace import gradient_norms, record, row_gradient_norms, tap, trace_context

SVG = "{http://www.w3.org/2000/svg}"
TARGET = Tokens.pad([[2, 4, 5, 6, 7, 4, 3]])
SOURCE = Tokens.pad([[4, 5, 6, 7, 5]])


def source_of(name):
    return SOURCE if zoo.ZOO[name].source().data.shape[1] else zoo.empty_source(1)


class Linear(Decoder):
    """h_t = W h_t-1 + x_t, o_t = v h_t: everything is known in closed form."""

    def __init__(self, matrix, vector):
        super().__init__()
        self.weight = nn.Parameter(matrix)
        self.readout = nn.Linear(len(vector), 1, bias=False).double()
        self.readout.weight.data = vector[None]

    def start(self, memory, max_tokens):
        return State(memory.states, Padded(self.weight.new_zeros(len(memory), len(self.weight)), torch.ones(1)))

    def forward(self, tokens, state):
        hidden, seen = state.hypothesis.data, []
        for t in range(tokens.data.shape[1]):
            with trace_context(position=t):
                hidden = tap(self, "hidden", hidden @ self.weight.T + tokens.data[:, t], "batch width")
            seen.append(hidden)
        return torch.stack(seen, 1), state


def linear(width=4, radius=0.7, seed=0):
    torch.manual_seed(seed)
    matrix = torch.randn(width, width, dtype=torch.double)
    matrix *= radius / torch.linalg.eigvals(matrix).abs().max()
    return EncoderDecoder(EmptyEncoder(), Linear(matrix, torch.randn(width, dtype=torch.double)))


def test_a_linear_rnn_has_the_gradients_of_the_closed_form():
    model, space = linear(), Values(4)
    values = torch.randn(1, 9, 4, dtype=torch.double)
    series = Tokens(values, torch.tensor([9]), ragged=False)
    one = replace(series, data=values)

    class First(Values):
        """The squared error of the first number alone."""

        def nll(self, out, target):
            return (out[:, 0] - target[:, 0]).square().sum()

    view = gradients_through_time(model, zoo.empty_source(1), one, First(space.features))
    matrix, vector = model.decoder.weight.detach(), model.readout.weight[0].detach()
    hidden, expected = torch.zeros(4, dtype=torch.double), np.zeros((8, 8))
    for t in range(8):
        hidden = matrix @ hidden + values[0, t]
        slope, back = 2 * (vector @ hidden - values[0, t + 1, 0]), vector
        for s in range(t, -1, -1):
            expected[t, s] = (slope * back).norm()  # (W^T)^(t-s) v
            back = matrix.T @ back
    np.testing.assert_allclose(view.norms, expected, rtol=1e-10)
    assert view.name == "decoder.hidden" and view.side == "target"


def test_a_scalar_linear_rnn_decays_by_its_own_weight():
    model = EncoderDecoder(
        EmptyEncoder(), Linear(torch.full((1, 1), 0.6, dtype=torch.double), torch.ones(1, dtype=torch.double))
    )
    values = torch.randn(1, 12, 1, dtype=torch.double)
    view = gradients_through_time(
        model, zoo.empty_source(1), Tokens(values, torch.tensor([12]), ragged=False), Values(1)
    )
    decay = view.decay()  # although each loss has a slope of its own
    np.testing.assert_allclose(decay.norms, [0.6**d for d in range(11)], rtol=1e-10)
    assert decay.rate == pytest.approx(0.6)


def by_hand(cell, model, ids):
    """The layer's equations once more, each state a leaf of the graph after it."""
    layer = model.decoder.stack.layers[0].rnn
    weights = [layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0]
    x = model.decoder.embed(torch.tensor(ids[:-1]))
    hidden = cellular = torch.zeros(1, layer.hidden_size, dtype=x.dtype)
    states, losses = [], []
    for t in range(len(ids) - 1):
        if cell == "lstm":
            hidden, cellular = torch.ops.aten.lstm_cell(x[t : t + 1], [hidden, cellular], *weights)
        elif cell == "gru":
            hidden = torch.gru_cell(x[t : t + 1], hidden, *weights)
        else:
            hidden = torch.rnn_tanh_cell(x[t : t + 1], hidden, *weights)
        states.append(hidden)
        losses.append(nn.functional.cross_entropy(model.readout(hidden), torch.tensor(ids[t + 1 : t + 2])))
    found = np.zeros((len(losses), len(states)))
    for t, loss in enumerate(losses):
        for s in range(t + 1):
            found[t, s] = torch.autograd.grad(loss, states[s], retain_graph=True)[0].norm()
    return found


@pytest.mark.parametrize("cell", ["tanh", "lstm", "gru"])
def test_a_language_model_has_the_gradients_of_a_loop_written_by_hand(cell):
    model = zoo._rnnlm(cell=cell, layers=1).build(zoo.words, zoo.words).double().eval()
    ids = TARGET.data[0].tolist()
    view = gradients_through_time(model, zoo.empty_source(1), TARGET, zoo.words)
    np.testing.assert_allclose(view.norms, by_hand(cell, model, ids), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", zoo.ZOO)
def test_no_loss_depends_on_the_future_and_each_on_the_past(name):
    model = zoo.build(name)
    view = gradients_through_time(model, source_of(name), TARGET, zoo.words)
    assert view.norms.shape == (6, 6) and not np.triu(view.norms, 1).any()
    assert (view.norms[np.tril_indices(6, -1)] > 0).mean() > 0.8  # a ReLU may be dead here and there
    assert view.decay().distances[-1] == 5


@pytest.mark.parametrize("name", [name for name, animal in zoo.ZOO.items() if animal.source().data.shape[1]])
def test_every_loss_depends_on_the_source_states(name):
    model = zoo.build(name)
    try:
        view = gradients_through_time(model, SOURCE, TARGET, zoo.words, "encoder.*")
    except ConfigError:
        assert name == "rnnlm-every"  # a condition is no sequence: it has no states
        return
    assert view.side == "source" and view.norms.shape == (6, 5) and (view.norms > 0).mean() > 0.8


@pytest.mark.parametrize("name", ["transformer", "gpt", "seq2seq", "rnnsearch"])
def test_a_norm_is_the_largest_directional_derivative_of_the_loss(name):
    """The largest change of L_t for a small step of h_s is the step times the norm."""
    model = zoo.build(name).double()
    view = gradients_through_time(model, source_of(name), TARGET, zoo.words)
    read, target, _ = TARGET.shift()
    t, s = 4, 2
    with torch.enable_grad(), record(model, gradients=True) as trace:
        out = model.readout(model(source_of(name), read))
        loss = zoo.words.nll(out[:, t], target[:, t])
    records = [r for r in trace.records if r.name == view.name]
    whole = "position" in records[0].axes
    (gradient,) = torch.autograd.grad(loss, [records[0].data if whole else records[s].data])
    direction = gradient[0, s] if whole else gradient[0]
    step = 1e-5 * direction / direction.norm()
    calls = []

    def moved(tensor):
        calls.append(None)
        if whole:
            moved = tensor.clone()
            moved[0, s] += step
            return moved
        return tensor + step if len(calls) == s + 1 else tensor

    with torch.no_grad(), record(model, replace={view.name: moved}):
        out = model.readout(model(source_of(name), read))
        after = zoo.words.nll(out[:, t], target[:, t])
    assert float(after - loss.detach()) / 1e-5 == pytest.approx(view.norms[t, s], rel=1e-3)


def test_a_model_whose_weights_are_frozen_has_the_same_gradients():
    for name in ("seq2seq", "transformer", "rnnlm"):
        model = zoo.build(name)
        free = gradients_through_time(model, source_of(name), TARGET, zoo.words)
        frozen = gradients_through_time(model.requires_grad_(False), source_of(name), TARGET, zoo.words)
        np.testing.assert_allclose(frozen.norms, free.norms, rtol=1e-6)


def test_gradients_are_computed_inside_no_grad():
    with torch.no_grad():
        view = gradients_through_time(zoo.build("gpt"), zoo.empty_source(1), TARGET, zoo.words)
    assert view.norms[5, 0] > 0


def test_a_transformers_default_states_are_the_stream_before_the_first_layer():
    model = zoo.build("transformer")
    lowest = gradients_through_time(model, SOURCE, TARGET, zoo.words)
    highest = gradients_through_time(model, SOURCE, TARGET, zoo.words, layer=1)
    assert (lowest.name, highest.name) == ("decoder.residual", "decoder.layers.1.residual")
    # above the last attention no word can reach another any more
    assert not highest.norms[~np.eye(6, dtype=bool)].any() and (np.diag(highest.norms) > 0).all()


def test_the_cell_of_an_lstm_can_be_selected():
    view = gradients_through_time(zoo.build("rnnlm"), zoo.empty_source(1), TARGET, zoo.words, "cell")
    assert view.name == "decoder.stack.layers.0.cell" and (view.norms[np.tril_indices(6)] > 0).all()


def test_a_kind_of_both_sides_selects_the_decoders():
    view = gradients_through_time(zoo.build("seq2seq"), SOURCE, TARGET, zoo.words, "cell")
    assert (view.name, view.side, view.norms.shape) == ("decoder.stack.layers.0.cell", "target", (6, 6))


@pytest.mark.parametrize("name", ["seq2seq", "seq2seq-gru", "rnnsearch", "luong", "gnmt"])
def test_every_loss_depends_on_the_decoders_initial_state(name):
    view = gradients_through_time(
        zoo.build(name), SOURCE, TARGET, zoo.words, "start", tokens={"target": [list("abcdefg")]}
    )
    assert view.columns == ["(start)"] and view.norms.shape == (6, 1) and (view.norms > 0).all()
    assert view.distances[:, 0].tolist() == [1, 2, 3, 4, 5, 6]


def test_states_of_a_reversed_source_align_with_its_tokens():
    model = zoo._seq2seq(layers=1, reverse=True).build(zoo.words, zoo.words).eval()
    turned = zoo._seq2seq(layers=1, reverse=False).build(zoo.words, zoo.words).eval()
    turned.load_state_dict(model.state_dict())
    one = gradients_through_time(model, SOURCE, TARGET, zoo.words, "encoder.*")
    other = gradients_through_time(turned, Tokens.pad([[5, 7, 6, 5, 4]]), TARGET, zoo.words, "encoder.*")
    np.testing.assert_allclose(one.norms, other.norms[:, ::-1], rtol=1e-5)
    np.testing.assert_array_equal(one.distances[0], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(other.distances[0], [5, 4, 3, 2, 1])


def test_rows_of_a_batch_are_a_geometric_mean():
    model = zoo.build("gpt")
    targets = [[2, 4, 5, 6, 3], [2, 7, 7, 4, 3]]
    each = [gradients_through_time(model, zoo.empty_source(1), Tokens.pad([t]), zoo.words).norms for t in targets]
    both = gradients_through_time(model, zoo.empty_source(2), Tokens.pad(targets), zoo.words).norms
    lower = np.tril_indices(4)
    np.testing.assert_allclose(both[lower], np.sqrt(each[0] * each[1])[lower], rtol=1e-4)


def test_gradient_norms_combine_row_gradient_norms():
    h = torch.randn(3, 4, 5, requires_grad=True)
    losses = torch.stack([(h[:, : t + 1] ** 2).sum() for t in range(4)])
    with record(module := nn.Identity(), gradients=True) as trace:
        tap(module, "hidden", h, "batch position width")
    rows = row_gradient_norms(losses, trace.records)
    assert rows.shape == (4, 3, 4)
    torch.testing.assert_close(rows[3], (2 * h).norm(dim=2).detach())
    torch.testing.assert_close(gradient_norms(losses, trace.records), rows.norm(dim=1))


def test_series_of_numbers_have_gradients_too():
    series = zoo.single_row(zoo.SERIES, 0)
    view = gradients_through_time(zoo.build("rnnlm-gaussian"), zoo.empty_source(1), series, Gaussian(2))
    assert view.norms.shape == (4, 4) and (view.norms[np.tril_indices(4)] > 0).all()


def test_labels_are_target_and_input_tokens():
    words = {"source": [list("abcde")], "target": [["<SOS>", *"uvwxy", "<EOS>"]]}
    reading = TeacherForcedPass(SOURCE, TARGET, zoo.words, words)
    view = reading.gradients(zoo.build("transformer"))
    assert view.rows == [*"uvwxy", "<EOS>"] and view.columns == ["<SOS>", *"uvwxy"]
    assert reading.gradients(zoo.build("transformer"), "encoder.*").columns == list("abcde")
    plain = gradients_through_time(zoo.build("transformer"), SOURCE, TARGET, zoo.words)
    assert plain.rows == plain.columns == ["1", "2", "3", "4", "5", "6"]


def test_the_decay_is_the_mean_log_of_the_pairs_of_a_distance_relative_to_each_loss():
    norms = np.array([[8.0, 0.0, 0.0], [1.0, 2.0, 0.0], [0.0, 4.0, 4.0]])
    decay = GradientsView("h", norms, list("abc"), list("xyz")).decay("tiny")
    assert decay.label == "tiny" and decay.distances == (0, 1) and decay.counts == (3, 2) and decay.relative
    assert decay.norms == pytest.approx((1.0, 0.5**0.5)) and decay.logs == pytest.approx((0.0, math.log(0.5) / 2))


def test_losses_of_very_different_size_do_not_change_the_decay():
    sizes = np.array([100.0, 10.0, 1.0, 0.1, 0.01])[:, None]
    distances = np.arange(5)[:, None] - np.arange(5)[None]
    norms = np.where(distances >= 0, sizes * 0.94 ** distances.astype(float), 0.0)
    decay = GradientsView("h", norms, list("abcde"), list("vwxyz")).decay("gru")
    assert decay.rate == pytest.approx(0.94) and decay.norms == pytest.approx([0.94**d for d in range(5)])
    tail = "each step further back multiplies the gradient by 0.9400; at 4 steps it is 0.7807 x that at 0"
    assert decay.summary() == f"gru: {tail}"


def test_states_of_the_source_have_a_rate_within_losses_and_norms_as_they_are():
    sizes, read = np.array([1.0, 50.0, 0.02])[:, None], np.arange(4)[None]
    view = GradientsView("e", sizes * 0.5 ** (3.0 - read), list("abc"), list("wxyz"), side="source")
    decay = view.decay()
    assert decay.rate == pytest.approx(0.5) and not decay.relative and decay.norms[0] == pytest.approx(1.0)
    assert decay.summary().startswith("e: each step further back multiplies the gradient by 0.5000; from 1.000 at 1 to")


def test_an_initial_state_has_one_pair_per_loss_and_so_no_rate():
    view = GradientsView("s", np.array([[4.0], [2.0], [1.0]]), list("abc"), ["start"], side="start")
    assert view.decay().summary() == "s: from 4.000 at 1 to 1.000 at 3 steps"


def test_a_rate_needs_two_distances():
    two = GradientDecay.from_norms("a", np.array([[1.0, 0.0], [0.5, 1.0]]), np.array([[0, -1], [1, 0]]))
    assert math.isnan(two.rate) and two.to_dict()["rate"] is None
    assert two.summary() == "a: at 1 step it is 0.5000 x that at 0"
    assert GradientDecay.from_norms("a", np.zeros((2, 2)), np.zeros((2, 2), int)).summary() == "a: no gradient at all"


def test_norms_are_drawn_in_powers_of_ten():
    view = GradientsView("h", np.array([[1.0, 0.0], [1e-5, 0.1]]), ["a", "b"], ["x", "y"])
    root = ElementTree.fromstring(view.svg())
    titles = [g.find(f"{SVG}title").text for g in root.iter(f"{SVG}g")]
    assert titles == ["a → x: 1", "a → y: 0", "b → x: 1e-05", "b → y: 0.1"]
    labels = [t.text for t in root.iter(f"{SVG}text") if "rg-number" in t.get("class")]
    assert labels == ["1e+0", "0", "1e-5", "1e-1"]
    text = view.text(60, "none")
    assert "b    1e-5 ▓▓1e-1" in text and text.splitlines()[-1].startswith("h: at 1 step it is 0.0001000 x that at 0")
    json.dumps(view.to_dict(), allow_nan=False)


def test_no_gradient_is_a_dot_where_numbers_are_powers_of_ten():
    words = [f"w{i}" for i in range(14)]
    text = GradientsView("h", np.tril(np.ones((14, 14))), words, words).text(90, "none")
    assert "as powers of ten" in text
    assert text.splitlines()[4].split()[0] == "w0" and text.splitlines()[4].count("·") == 13


def test_the_common_target_is_in_the_text_and_in_the_chart():
    view = DecayView((GradientDecay("rnn", (0, 1), (1.0, 0.5), (2, 1)),), target="I am a student.")
    assert "common target: I am a student." in view.text(60, "none").splitlines()
    assert "; common target: I am a student.<" in view.svg() and view.to_dict()["target"] == "I am a student."


def test_curves_of_several_models_are_one_chart_and_one_table():
    curves = (
        GradientDecay("rnn", tuple(range(9)), tuple(0.5**d for d in range(9)), (1,) * 9, 0.5, True),
        GradientDecay("lstm", (0, 1), (1.0, 0.9), (1, 1)),
    )
    view = DecayView(curves)
    text = view.text(70, "none")
    assert text.splitlines()[2].split() == ["rnn", "lstm"] and text.splitlines()[5].split()[-1] == "-"
    assert text.splitlines()[-2].startswith("rnn: each step further back multiplies the gradient by 0.5000; ")
    root = ElementTree.fromstring(view.svg())
    assert [t.text for t in root.iter(f"{SVG}text") if "rg-name" in t.get("class")] == ["lstm", "rnn"]
    assert json.loads(json.dumps(view.to_dict(), allow_nan=False))["curves"][1]["norms"] == [1.0, 0.9]


def test_long_names_are_replaced_by_letters():
    view = DecayView(tuple(GradientDecay(f"runs/a-long-name, {i}", (0, 1), (1.0, 0.5), (2, 1)) for i in range(2)))
    lines = view.text(60, "none").splitlines()
    assert lines[2].split() == ["a", "b"]
    assert lines[-2:] == [f"{'ab'[i]}  runs/a-long-name, {i}: from 1.000 at 0 to 0.5000 at 1 step" for i in range(2)]


def test_distances_of_long_texts_are_thinned_out_except_the_last():
    assert thin_distances([0, 1, 2]) == [0, 1, 2]
    rows = thin_distances(list(range(300)))
    assert rows[:6] == [0, 1, 2, 3, 4, 6] and rows[-1] == 299 and len(rows) < 24


def test_targets_without_gradients_are_refused():
    model = zoo.build("rnnlm")
    check_refused(
        DataError,
        "the target has 1 tokens; gradients through time need two: one input, one target",
        lambda: gradients_through_time(model, zoo.empty_source(1), Tokens.pad([[2]]), zoo.words),
    )
    check_refused(
        DataError,
        "the target has 600 tokens; gradients through time take at most 512: give a shorter text",
        lambda: gradients_through_time(model, zoo.empty_source(1), Tokens.pad([[4] * 600]), zoo.words),
    )
    check_refused(
        ConfigError,
        "name: 'forget' is a gate, and gradients are those of states; try hidden, cell or residual",
        lambda: gradients_through_time(model, zoo.empty_source(1), TARGET, zoo.words, "forget"),
    )
    check_refused(
        ValueError,
        "the rows of the target have [3, 4] tokens; give one length",
        lambda: gradients_through_time(model, zoo.empty_source(2), Tokens.pad([[2, 4, 3], [2, 4, 5, 3]]), zoo.words),
    )
