"""Cells, stacks and bidirectional layers against torch.nn with the same weights; the lecture's cell by hand."""

import itertools

import pytest
import torch
from torch import nn

from regard.nn.recurrent import GRU, LSTM, RNN, Bidirectional, BidirectionalStack, Stack, recurrent, set_forget_bias
from regard.nn.recurrent import unroll as unrolled
from regard.sequence import Padded
from regard.trace import record

CLOSE = {"atol": 1e-6, "rtol": 0.0}
EXACT = {"atol": 1e-12, "rtol": 0.0}
THEIRS = {
    "tanh": lambda *a, **k: nn.RNN(*a, nonlinearity="tanh", **k),
    "relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
    "lstm": nn.LSTM,
    "gru": nn.GRU,
}
LENGTHS = {"unequal": (4, 7, 1), "equal": (7, 7, 7)}
STACKS = {"one way": (Stack, False), "both ways": (BidirectionalStack, True)}
INPUTS, WIDTH, DEPTH = 5, 6, 3


def torch_name(name):
    """layers.1.rnn.weight_ih_l0 -> weight_ih_l1; layers.1.backward_layer.rnn.weight_ih_l0 -> weight_ih_l1_reverse"""
    _, layer, *way, _, weight = name.split(".")
    return f"{weight[:-1]}{layer}{'_reverse' if way == ['backward_layer'] else ''}"


def pair(cell, ways):
    """Our stack and torch's with the same weights; where ours has one bias, torch's second one is zero."""
    stack, both = STACKS[ways]
    torch.manual_seed(2)
    ours = stack(cell, [INPUTS, *[WIDTH] * DEPTH])
    theirs = THEIRS[cell](INPUTS, WIDTH, DEPTH, batch_first=True, bidirectional=both)
    weights = {torch_name(name): p.detach() for name, p in ours.named_parameters()}
    zeros = {name: torch.zeros_like(p) for name, p in theirs.named_parameters() if name not in weights}
    assert set(zeros) == {n for n, _ in theirs.named_parameters() if "bias_hh" in n and cell in ("tanh", "relu")}
    theirs.load_state_dict(weights | zeros, strict=True)
    return ours, theirs


def sequences(kind):
    torch.manual_seed(3)
    lengths = torch.tensor(LENGTHS[kind])
    return Padded(torch.randn(len(lengths), 7, INPUTS, requires_grad=True), lengths, ragged=kind == "unequal")


def read(theirs, x):
    """torch's, over sequences of unequal length: (outputs, states (tensors, layers x directions, batch, width))."""
    packed = nn.utils.rnn.pack_padded_sequence(x.data, x.lengths, batch_first=True, enforce_sorted=False)
    out, end = theirs(packed)
    return nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=7)[0], end


def weighted_sum(out, ends, x):
    """A number that depends on every output and every final state."""
    values = torch.cat([out[x.mask].flatten(), *(state.flatten() for state in ends)])
    return (values * torch.linspace(-1, 1, len(values), dtype=values.dtype)).sum()


def as_torchs(ends, cell, both):
    """Our last states in torch's order: hidden (and cell), each (layers x directions, batch, width)."""
    stacked = [torch.stack(part) for part in zip(*ends, strict=True)]
    if both:
        stacked = [s.unflatten(2, (2, WIDTH)).transpose(1, 2).flatten(0, 1) for s in stacked]
    return tuple(stacked) if cell == "lstm" else stacked[0]


@pytest.mark.parametrize("learning", [True, False], ids=["learning", "in use"])
@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("ways", STACKS)
@pytest.mark.parametrize("cell", THEIRS)
def test_a_stack_is_torchs_in_outputs_states_and_gradients_to_1e_6(cell, ways, kind, learning):
    (ours, theirs), x, same = pair(cell, ways), sequences(kind), sequences(kind)
    ours.train(learning)
    outs, ends = ours(x)
    out, end = read(theirs, same)
    torch.testing.assert_close(outs[-1][x.mask], out[x.mask], **CLOSE)
    found = as_torchs(ends, cell, STACKS[ways][1])
    torch.testing.assert_close(found, end, **CLOSE)
    flat = (lambda e: list(e)) if cell == "lstm" else (lambda e: [e])
    weighted_sum(outs[-1], flat(found), x).backward()
    weighted_sum(out, flat(end), same).backward()
    theirs_by_name = dict(theirs.named_parameters())
    for name, p in ours.named_parameters():
        torch.testing.assert_close(p.grad, theirs_by_name[torch_name(name)].grad, atol=1e-6, rtol=1e-6, msg=name)
    torch.testing.assert_close(x.data.grad[x.mask], same.data.grad[x.mask], **CLOSE)


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("ways", STACKS)
@pytest.mark.parametrize("cell", THEIRS)
def test_the_traced_loop_equals_the_fused_kernel_in_outputs_states_and_gradients(cell, ways, kind):
    (ours, _), x = pair(cell, ways), sequences(kind)
    ours.double()
    x = x.like(x.data.detach().double())
    fused, ends = ours(x)
    weighted_sum(fused[-1], itertools.chain(*ends), x).backward()
    expected = {name: p.grad.clone() for name, p in ours.named_parameters()}
    ours.zero_grad()
    with record(ours, gradients=True) as trace:
        watched, seen = ours(x)
    weighted_sum(watched[-1], itertools.chain(*seen), x).backward()
    assert len(trace.find("layers.*.hidden")) == DEPTH * 7 * (1 + STACKS[ways][1])  # it was the loop that ran
    for a, b in zip(watched, fused, strict=True):
        torch.testing.assert_close(a[x.mask], b[x.mask], **EXACT)
    torch.testing.assert_close(seen, ends, **EXACT)
    for name, p in ours.named_parameters():
        torch.testing.assert_close(p.grad, expected[name], **EXACT, msg=name)


@pytest.mark.parametrize("cell", THEIRS)
@torch.no_grad()
def test_single_steps_equal_the_whole_with_and_without_projecting_beforehand(cell):
    torch.manual_seed(4)
    layer, x = recurrent(cell, INPUTS, WIDTH).double(), torch.randn(3, 7, INPUTS, dtype=torch.double)
    start = tuple(torch.randn(3, WIDTH, dtype=torch.double) for _ in range(layer.state_tensors))
    out, end = layer(Padded(x, torch.full((3,), 7), ragged=False), start)
    steps, state, projected, hoisted = [], start, layer.project(x), start
    for t in range(7):
        hidden, state = layer.step(x[:, t], state)
        again, hoisted = layer.advance(projected[:, t], hoisted)
        torch.testing.assert_close(hidden, again, **EXACT)
        steps.append(hidden)
    torch.testing.assert_close(torch.stack(steps, 1), out, **EXACT)
    torch.testing.assert_close(state, end, **EXACT)
    torch.testing.assert_close(hoisted, end, **EXACT)


@pytest.mark.parametrize("watched", [False, True], ids=["fused", "watched"])
@pytest.mark.parametrize("cell", THEIRS)
@torch.no_grad()
def test_an_empty_row_and_an_empty_batch_keep_their_states(cell, watched):
    torch.manual_seed(5)
    layer, x = recurrent(cell, INPUTS, WIDTH), torch.randn(3, 4, INPUTS)
    start = tuple(torch.randn(3, WIDTH) for _ in range(layer.state_tensors))
    lengths = torch.tensor([4, 0, 2])

    def run(x, lengths):
        if not watched:
            return layer(Padded(x, lengths), start)
        with record(layer):
            return layer(Padded(x, lengths), start)

    _, end = run(x, lengths)
    for old, new in zip(start, end, strict=True):
        assert torch.equal(old[1], new[1]) and not torch.equal(old[0], new[0])
    single = layer(Padded(x[2:, :2], torch.tensor([2]), ragged=False), tuple(part[2:] for part in start))[1]
    torch.testing.assert_close(tuple(part[2:] for part in end), single, **CLOSE)
    out, end = run(x[:, :0], lengths * 0)
    assert out.shape == (3, 0, WIDTH) and all(map(torch.equal, start, end))


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("ways", STACKS)
@pytest.mark.parametrize("cell", THEIRS)
@torch.no_grad()
def test_a_recurrent_layer_keeps_float32_under_autocast(cell, ways, kind):
    (ours, _), x = pair(cell, ways), sequences(kind)
    expected, ends = ours(x)
    with torch.autocast("cpu", torch.bfloat16):
        found, same = ours(x)
        ours(x.like(x.data.bfloat16()))
    assert torch.equal(found[-1], expected[-1]) and all(map(torch.equal, same[-1], ends[-1]))


@torch.no_grad()
def test_the_cell_at_padding_is_kept_to_the_bit():
    torch.manual_seed(8)
    layer, x = LSTM(INPUTS, WIDTH), torch.randn(1, 500, INPUTS) * 100
    _, short = layer(Padded(x[:, :4], torch.tensor([3])), layer.zeros(x))
    _, long = layer(Padded(x, torch.tensor([3])), layer.zeros(x))
    assert all(map(torch.equal, short, long))


@torch.no_grad()
def test_padding_stays_padding_in_a_reversed_row():
    """The final backward state is that of a row alone: it has not read padding."""
    torch.manual_seed(6)
    layer, x = Bidirectional("gru", INPUTS, WIDTH), torch.randn(2, 6, INPUTS)
    out, (onward, back) = layer(Padded(x, torch.tensor([6, 3])))
    single, (end, beginning) = layer(Padded(x[1:, :3], torch.tensor([3]), ragged=False))
    torch.testing.assert_close(out[1:, :3], single, **CLOSE)
    torch.testing.assert_close((onward[0][1:], back[0][1:]), (end[0], beginning[0]), **CLOSE)


@torch.no_grad()
def test_the_lectures_cell_gives_the_worked_numbers():
    U = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    V = torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    W = torch.tensor([[1.0, 0, -1]])
    h, x = torch.tensor([[1.0, 0, 0]]), torch.tensor([[1.0, 0]])
    cell = RNN(2, 3, "relu")
    cell.rnn.load_state_dict({"weight_ih_l0": U, "weight_hh_l0": V, "bias_ih_l0": torch.zeros(3)})
    assert (h @ V.T).tolist() == [[0, 0, 1]] and cell.project(x).tolist() == [[1, 0, -1]]
    hidden, (state,) = cell.step(x, (h,))
    assert hidden.tolist() == state.tolist() == [[1, 0, 0]]
    assert (hidden @ W.T).tolist() == [[1]]
    out, (fused,) = cell(Padded(x[:, None], torch.tensor([1]), ragged=False), (h,))
    assert out.tolist() == [[[1, 0, 0]]] and fused.tolist() == [[1, 0, 0]]


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("units, inputs", [(3, 2), (128, 32), (1, 1)])
def test_a_layer_has_units_and_units_squared_and_units_times_inputs_parameters(units, inputs):
    one = units + units**2 + units * inputs
    assert count(RNN(inputs, units)) == count(RNN(inputs, units, "relu")) == one
    assert count(nn.RNN(inputs, units)) == one + units  # torch keeps two biases, which add up
    assert count(LSTM(inputs, units)) == count(nn.LSTM(inputs, units)) == 4 * (one + units)
    assert count(GRU(inputs, units)) == count(nn.GRU(inputs, units)) == 3 * (one + units)


@torch.no_grad()
def test_torchs_two_biases_are_our_one_when_they_are_added():
    theirs, ours, x = nn.RNN(INPUTS, WIDTH, batch_first=True), RNN(INPUTS, WIDTH), torch.randn(2, 4, INPUTS)
    weights = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    weights["bias_ih_l0"] += weights.pop("bias_hh_l0")
    ours.rnn.load_state_dict(weights)
    out, _ = ours(Padded(x, torch.tensor([4, 4]), ragged=False), ours.zeros(x))
    torch.testing.assert_close(out, theirs(x)[0], **CLOSE)


@torch.no_grad()
def test_gates_are_tapped_with_their_names_and_can_be_replaced():
    layers = {"lstm": ("input", "forget", "candidate", "output"), "gru": ("reset", "update")}
    for cell, names in layers.items():
        layer, x = recurrent(cell, INPUTS, WIDTH), Padded(torch.randn(2, 3, INPUTS), torch.tensor([3, 2]))
        start = tuple(torch.randn(2, WIDTH) for _ in range(layer.state_tensors))
        with record(layer) as trace:
            layer(x, start)
        seen = trace.find("gates")
        assert [r.context["position"] for r in seen] == [0, 1, 2]
        assert seen[0].axes == ("batch", "gate", "width") and seen[0].labels["gate"] == names
        assert seen[0].data.shape == (2, len(names), WIDTH)
        if cell == "lstm":  # a cell that forgets nothing and lets nothing in stays as it was
            closed = torch.tensor([0.0, 1.0, 0.0, 0.0])[:, None].expand(4, WIDTH)
            with record(layer, replace={"gates": lambda t, c=closed: c.expand_as(t)}):
                _, (hidden, unchanged) = layer(x, start)
            assert torch.equal(unchanged, start[1]) and not hidden.any()
        else:  # a cell that resets and updates all has nothing to go by but its input
            with record(layer, replace={"gates": torch.zeros_like}) as closed:
                _, (hidden,) = layer(x, start)
            b = layer.rnn.bias_ih_l0[2 * WIDTH :]
            expected = torch.tanh(x.data[0, 2] @ layer.rnn.weight_ih_l0[2 * WIDTH :].T + b)
            torch.testing.assert_close(hidden[0], expected, **CLOSE)
            torch.testing.assert_close(closed.find("candidate")[2].data[0], expected, **CLOSE)


@torch.no_grad()
def test_records_of_the_backward_layer_are_marked_and_hidden_states_are_the_outputs():
    layer, x = Bidirectional("lstm", INPUTS, WIDTH), Padded(torch.randn(1, 4, INPUTS), torch.tensor([4]), ragged=False)
    with record(layer) as trace:
        out, _ = layer(x)
    for way, part in (("forward_layer", slice(0, WIDTH)), ("backward_layer", slice(WIDTH, None))):
        seen = trace.find(f"{way}.hidden")
        assert len(seen) == 4 and all(r.context.get("backwards", False) == (way == "backward_layer") for r in seen)
        for r in seen:
            place = 3 - r.context["position"] if way == "backward_layer" else r.context["position"]
            assert torch.equal(r.data, out[:, place, part])


def test_a_forget_bias_is_what_the_forget_gates_start_from_and_nothing_else_changes():
    torch.manual_seed(7)
    plain = Stack("lstm", [INPUTS, WIDTH, WIDTH])
    torch.manual_seed(7)
    stack = Stack("lstm", [INPUTS, WIDTH, WIDTH])
    set_forget_bias(stack, 1.0)
    forget = slice(WIDTH, 2 * WIDTH)
    for layer, before in zip(stack.layer_list(), plain.layer_list(), strict=True):
        biases = layer.rnn.bias_ih_l0 + layer.rnn.bias_hh_l0
        assert torch.equal(biases[forget], torch.ones(WIDTH))
        for name, p in layer.rnn.named_parameters():
            unchanged = torch.ones(4 * WIDTH, dtype=torch.bool)
            unchanged[forget] = "weight" in name
            assert torch.equal(p[unchanged], before.rnn.get_parameter(name)[unchanged])
            assert p.requires_grad


def test_unrolling_an_empty_sequence_is_an_error():
    with pytest.raises(ValueError, match="at least one position"):
        unrolled(lambda x, s: (x, s), Padded(torch.zeros(1, 0, 2), torch.tensor([0])), torch.zeros(1, 2))
