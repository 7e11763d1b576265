"""Laws of views: they hold for every model of the zoo, whatever its family."""

import numpy as np
import pytest
import torch

import zoo
from regard.decode.beam import Beam, power_penalty
from regard.decode.hypothesis import collect
from regard.decode.loop import decode
from regard.look import Recording
from regard.look.decoding_path import axis_tokens, input_side
from regard.look.states import choose_state, gate_names, is_state
from regard.sequence import Tokens
from regard.trace import record, tap, trace_context

SOURCES = [list("abcde"), list("fgh"), ["i"]]
READ = [["<SOS>", "u", "v", "w", "x"]] * 3
SPELL = {"target": lambda i: f"t{i}"}


def facts(name):
    empty = not zoo.ZOO[name].source().data.shape[1]
    return {"source": [[], [], []] if empty else SOURCES, "target": READ}


@pytest.fixture(params=zoo.ZOO)
def seen(request):
    """A forward over the whole target, recorded."""
    model = zoo.build(request.param)
    with record(model) as trace, trace_context(**facts(request.param)), torch.no_grad():
        model(zoo.ZOO[request.param].source(), zoo.TARGET)
    return request.param, Recording(trace)


def test_states_are_shown_with_their_tokens(seen):
    name, recording = seen
    for row in range(3):
        view = recording.states(row=row)
        assert view.tokens == (facts(name)["source"][row] if view.side == "source" else READ[row])
        assert view.values.shape == (len(view.tokens), len(view.units)) and np.isfinite(view.values).all()
        assert view.svg() and view.text(80, "none") and view.highlight().svg()
    assert recording.states("decoder.*").tokens == READ[0]


def test_attention_is_shown_with_its_tokens_where_there_is_any(seen):
    name, recording = seen
    if not zoo.ZOO[name].attends:
        assert not recording.find("*.cross.weights")
        return
    for row in range(3):
        view = recording.attention(row=row)
        assert view.columns == SOURCES[row] and view.rows == READ[row] and view.sides == ("target", "source")
        np.testing.assert_allclose(view.weights.sum(1), 1, atol=1e-5)


def test_every_state_gate_and_context_has_axes_and_tokens(seen):
    _, recording = seen
    kinds = ("hidden", "cell", "gates", "weights", "products", "scores", "context", "residual", "features")
    found = [r for r in recording.records if r.name.rpartition(".")[2] in kinds]
    assert found
    for r in found:
        assert len(r.axes) == r.data.ndim and r.axes[0] == "batch", r.name
        kind = r.name.rpartition(".")[2]
        if kind in ("hidden", "cell", "gates", "residual", "features"):
            assert is_state(r) and input_side(r) in ("source", "target"), r.name
            assert r.name.startswith("encoder") == (input_side(r) == "source"), r.name
        if kind == "gates":
            assert all(not gate.isdigit() for gate in gate_names(r)), r.name
        for axis in ("query", "key"):
            if axis in r.axes:
                assert axis_tokens(r, axis, 0, {}) is not None, (r.name, axis)
        if kind in ("weights", "products", "scores"):
            assert "key" in r.axes and ("query" in r.axes or "position" in r.context), r.name


def test_every_gate_of_a_recording_can_be_shown(seen):
    _, recording = seen
    for r in {r.name: r for r in recording.find("*gates")}.values():
        for gate in gate_names(r):
            view = recording.states(f"{r.name}.{gate}")
            assert view.name == r.name and view.gate == gate
            low, high = view.scale.limits
            assert low <= view.values.min() and view.values.max() <= high


def test_an_initial_decoder_state_is_shown_as_one_state_before_any_token(seen):
    _, recording = seen
    for r in [r for r in recording.records if r.context.get("begins")]:
        view = recording.states(r.name, row=1)
        assert view.tokens == ["(start)"] and view.side == "target"
        np.testing.assert_array_equal(view.values[0], r.data[1, view.units].numpy())
        assert view.svg() and view.text(80, "none") and view.highlight().svg()


def test_a_context_vector_of_one_head_is_a_state_of_its_query(seen):
    _, recording = seen
    joined = [r for r in recording.find("decoder.cross.context") if r.data.shape[1] == 1]
    if joined:
        view = recording.states("context", units=[0, 3], row=2)
        assert view.name == "decoder.cross.context" and view.tokens == READ[2]
        np.testing.assert_array_equal(view.values, torch.cat([r.data[2, 0] for r in joined])[:, [0, 3]].numpy())


def test_a_recording_is_the_same_after_save_and_load(seen, tmp_path):
    name, recording = seen
    recording.save(tmp_path / "a.safetensors")
    kept = Recording.load(tmp_path / "a.safetensors")
    assert kept.states(row=1).to_dict() == recording.states(row=1).to_dict()
    if zoo.ZOO[name].attends:
        assert kept.attention(row=1).to_dict() == recording.attention(row=1).to_dict()


@pytest.mark.parametrize("name", zoo.ZOO)
def test_views_of_a_beam_search_follow_its_answer(name):
    model = zoo.build(name)
    zoo.sharpen(model)
    source = zoo.ZOO[name].source()
    with record(model) as trace, trace_context(source=facts(name)["source"]):
        prompt, limits = Tokens.pad([[2, 4], [2], [2, 5]]), torch.tensor([5, 4, 6])
        found = [best[0] for best in collect(decode(model, source, prompt, Beam(2, power_penalty(1.0)), limits))]
        words = [[SPELL["target"](i) for i in h.tokens] for h in found]
        with trace_context(sources=torch.arange(3), target=words):
            tap(model, "answer", Tokens.pad([h.tokens for h in found]).data, "batch position:target")
    recording = Recording(trace, SPELL)
    for row, (best, begun) in enumerate(zip(found, ([2, 4], [2], [2, 5]), strict=True)):
        read = [f"t{i}" for i in (*begun, *best.tokens)]
        view = recording.states("decoder.*", row=row)
        assert view.tokens == read[:-1]
        if zoo.ZOO[name].attends:
            attention = recording.attention(row=row)
            assert attention.rows == read[1:] and attention.columns == SOURCES[row]
            assert attention.weights.shape == (len(read) - 1, len(SOURCES[row]))


def test_choose_state_gives_the_lowest_and_the_highest_state(seen):
    _, recording = seen
    lowest, _ = choose_state(recording.records, None, None, "target", 0)
    highest, _ = choose_state(recording.records, None, None, "target")
    names = [s.name for s in recording.contents()]
    assert names.index(lowest) <= names.index(highest)
