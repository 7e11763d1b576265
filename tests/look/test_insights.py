"""Insight tools: every number equals one that is computed in another way, on tiny models of all families."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

import zoo
from helpers import refusal
from regard.errors import ConfigError, ModelError
from regard.look import Recording
from regard.look.head_importance import ablate, head_importance_steps
from regard.look.head_roles import HeadRolesView, head_roles
from regard.look.input_attribution import input_attribution_steps
from regard.look.insights import run_tool
from regard.look.logit_attribution import logit_attribution
from regard.look.patching import patching_steps
from regard.look.replay import Output, Replay
from regard.progress import no_progress
from regard.sequence import Tokens
from regard.trace import Record, record, trace_context

READ = (2, 4, 6, 5)
CHOSEN = (4, 6, 5, 3)


def make_replay(name, module=None):
    """The first source of the zoo, with a fixed answer."""
    model = zoo.build(name) if module is None else module
    if module is None:
        zoo.sharpen(model)
    source = zoo.single_row(zoo.ZOO[name].source(), 0)
    outputs = tuple(Output(i, f"t{i}", f"t{j}") for i, j in zip(CHOSEN, READ, strict=True))
    tokens = {"target": [f"t{i}" for i in READ], "source": [f"s{i}" for i in range(source.data.shape[1])]}
    return Replay(model, source, READ, tuple(range(4)), outputs, tokens)


def plain_logits(replay):
    """Logits of the plain pass, in float64."""
    model = copy.deepcopy(replay.module).double()
    with torch.no_grad():
        return model.readout(model(replay.source, Tokens.full(torch.tensor([READ]))))[0].numpy()


def make_reader(name):
    """A classifier or a tagger of the zoo on its first text."""
    model, source = zoo.reader(name), zoo.single_row(zoo.text(), 0)
    zoo.sharpen(model)
    count = 5 if name.endswith((" each", " vectors")) else 1
    outputs = tuple(Output(i % zoo.C, f"label {i % zoo.C}", f"s{i}") for i in range(count))
    return Replay(model, source, None, tuple(range(count)), outputs, {"source": [f"s{i}" for i in range(5)]})


@pytest.mark.parametrize("name", zoo.ZOO)
def test_the_parts_of_a_logit_sum_to_it(name):
    replay = make_replay(name)
    expected = plain_logits(replay)
    for at in (0, 3):
        view = logit_attribution(replay, at)
        assert sum(part.value for part in view.parts) == pytest.approx(expected[at, CHOSEN[at]], abs=1e-4)
        assert view.logit == pytest.approx(expected[at, CHOSEN[at]], abs=1e-4)
        assert "rest" not in {part.kind for part in view.parts} and len(view.labels) == len(set(view.labels))


SUMMED = ("transformer mean", "transformer each", "bert first", "bert each", "gru-deep last", "lstm max", "mlp mean")


@pytest.mark.parametrize("name", SUMMED)
def test_the_parts_of_a_labels_logit_sum_to_it(name):
    replay = make_reader(name)
    view, at = logit_attribution(replay, len(replay.outputs) - 1), len(replay.outputs) - 1
    with torch.no_grad():
        out = copy.deepcopy(replay.module).double()
        logits = out.readout(out(replay.source))
    expected = float(logits.reshape(-1, zoo.C)[at, replay.outputs[at].id])
    assert sum(part.value for part in view.parts) == pytest.approx(expected, abs=1e-4)
    assert "rest" not in {part.kind for part in view.parts}


def normalize(x, norm, parts):
    """A layer norm of `x` on each of its parts, at the deviation of `x`: (norm of x, parts, bias)."""
    scale = np.sqrt(x.var(-1, keepdims=True) + norm.eps)
    weight, bias = (p.detach().double().numpy() for p in (norm.weight, norm.bias))
    parts = {name: (part - part.mean(-1, keepdims=True)) / scale * weight for name, part in parts.items()}
    return (x - x.mean(-1, keepdims=True)) / scale * weight + bias, parts, bias


def add_attention(parts, recorded, module, name, label):
    """What each head adds to the residual stream, and the bias."""
    context, out = recorded[f"{name}.context"], module.out
    heads, width = context.shape[0], context.shape[2]
    for h in range(heads):
        weight = out.weight.detach().double().numpy()[:, h * width : (h + 1) * width]
        parts[f"{label} head {h}"] = context[h] @ weight.T
    parts["biases"] = parts.get("biases", 0) + out.bias.detach().double().numpy()


@pytest.mark.parametrize("name", ["gpt", "transformer"])
def test_each_part_is_its_vector_through_the_norms_and_the_projection(name):
    """Computed again in NumPy from the recorded values: before each sublayer (gpt) and after it (transformer)."""
    replay, at = make_replay(name), 2
    trace, _ = replay.record()
    recorded = {r.name: r.data[0].double().numpy() for r in trace.records if r.name.startswith("decoder")}
    decoder = replay.module.decoder
    position = next(value for key, value in recorded.items() if key.endswith("position"))
    parts = {"embedding": recorded["decoder.residual"] - position, "position": position}
    for i, layer in enumerate(decoder.layers):
        base = f"decoder.layers.{i}"
        add_attention(parts, recorded, layer.attention, f"{base}.attention", f"layer {i}, self-attention")
        if name == "transformer":
            x, parts, bias = normalize(
                recorded[f"{base}.attention_norm.residual_sum"], layer.attention_norm.norm, parts
            )
            parts["biases"] = parts["biases"] + bias
            add_attention(parts, recorded, layer.cross, f"{base}.cross", f"layer {i}, cross-attention")
            x, parts, bias = normalize(recorded[f"{base}.cross_norm.residual_sum"], layer.cross_norm.norm, parts)
            parts["biases"] = parts["biases"] + bias
        parts[f"layer {i}, feed-forward"] = recorded[f"{base}.ffn.output"]
        if name == "transformer":
            x, parts, bias = normalize(recorded[f"{base}.ffn_norm.residual_sum"], layer.ffn_norm.norm, parts)
            parts["biases"] = parts["biases"] + bias
    if name == "gpt":
        x, parts, bias = normalize(recorded["decoder.layers.1.residual"], decoder.norm, parts)
        parts["biases"] = parts["biases"] + bias
    row = decoder.readout.weight.detach().double().numpy()[CHOSEN[at]]
    expected = {label: float(np.broadcast_to(part, x.shape)[at] @ row) for label, part in parts.items()}
    view = logit_attribution(replay, at)
    assert dict(zip(view.labels, view.values, strict=True)) == pytest.approx(expected, abs=1e-4)
    assert len(view.parts) == (2 + 2 * 5 + 1 if name == "gpt" else 2 + 2 * 9 + 1)


@pytest.mark.parametrize("name", ["gpt", "transformer", "llama-grouped", "luong"])
def test_a_heads_importance_is_the_change_by_a_model_without_its_output(name):
    """The same by weights: the columns of the output projection that read a head are set to 0."""
    replay = make_replay(name)
    *steps, view = head_importance_steps(replay, at=1)
    count = len(view.heads)
    assert steps == [(i, count) for i in range(1, count + 1)]
    before = torch.tensor(plain_logits(replay)).log_softmax(-1).numpy()
    for row, head in enumerate(view.heads):
        changed = copy.deepcopy(replay.module)
        module = changed.get_submodule(head.name.removesuffix(".weights"))
        if name == "luong":
            changed.decoder.context_projection.weight.data.zero_()
        else:
            width = module.out.weight.shape[1] // head.heads
            module.out.weight.data[:, head.head * width : (head.head + 1) * width] = 0
        after = torch.tensor(plain_logits(make_replay(name, changed))).log_softmax(-1).numpy()
        np.testing.assert_allclose(view.changes[row], [(after - before)[t, i] for t, i in enumerate(CHOSEN)], atol=1e-5)
    np.testing.assert_allclose(view.values, view.changes[:, 1])
    biggest = view.labels[int(np.abs(view.values).argmax())]
    assert view.text(100).splitlines()[1].startswith(biggest)
    assert f">{biggest}<" in view.svg() and view.to_dict()["at"] == 1


def test_roles_are_means_over_the_queries_that_they_apply_to():
    """Computed again with loops, for a causal head over a text that repeats itself."""
    tokens, size = list("abcabd"), 6
    weights = torch.rand(1, 2, size, size, generator=torch.Generator().manual_seed(1)).tril()
    weights[0, 1] = torch.eye(size).roll(-1, 0).T  # each query on the token before it; the first sees the last
    weights[0, 1, 0] = torch.eye(size)[0]
    weights /= weights.sum(-1, keepdim=True)
    read = [tokens]
    record = Record("a.weights", ("batch", "head", "query", "key"), weights, {"query": read, "key": read}, {})
    first, second = head_roles([record])
    w = weights[0, 0].tolist()
    pairs = {i: [j for j in range(i) if tokens[j] == tokens[i]] for i in range(size)}
    repeated = [i for i in range(size) if pairs[i]]
    expected = {
        "previous token": sum(w[i][i - 1] for i in range(1, size)) / 5,
        "current token": sum(w[i][i] for i in range(size)) / 6,
        "next token": 0.0,
        "first token": sum(w[i][0] for i in range(1, size)) / 5,
        "duplicate token": sum(sum(w[i][j] for j in pairs[i]) for i in repeated) / len(repeated),
        "induction": sum(sum(w[i][j + 1] for j in pairs[i]) for i in repeated) / len(repeated),
    }
    assert first.statistics == pytest.approx(expected, abs=1e-6)
    assert (second.role, second.statistics["previous token"]) == ("previous token", 1.0)
    cross = Record("cross.weights", record.axes, torch.eye(5)[None, None], {"query": read, "key": [list("vwxyz")]}, {})
    (aligned,) = head_roles([cross])
    assert aligned.role == "diagonal alignment" and aligned.statistics["diagonal alignment"] == pytest.approx(1)
    view = HeadRolesView([first, second, aligned])
    assert view.text().splitlines()[2].endswith("previous token") and "induction" in view.svg()


@pytest.mark.parametrize("name", ["gpt", "transformer"])
def test_integrated_gradients_are_the_mean_gradient_on_the_line_from_zero(name):
    """Computed again in float64 by a plain sum of 200 points, with embeddings that are given instead of ids."""
    replay, at = make_replay(name), 2
    *_, view = input_attribution_steps(replay, at)
    model = copy.deepcopy(replay.module).double()
    sides = [model.decoder.embed] if name == "gpt" else [model.encoder.embed, model.decoder.embed]
    sums, ends = [0, 0], {}
    for share in [*((np.arange(200) + 0.5) / 200).tolist(), 0.0, 1.0]:
        leaves = []

        def scale(part, inputs, out, share=share, leaves=leaves):
            leaves.append((out.detach() * share).requires_grad_())
            return leaves[-1]

        hooks = [side.register_forward_hook(scale) for side in sides]
        logits = model.readout(model(replay.source, Tokens.full(torch.tensor([READ]))))
        score = logits[0].log_softmax(-1)[at, CHOSEN[at]]
        grads = torch.autograd.grad(score, leaves)
        for hook in hooks:
            hook.remove()
        if share in (0.0, 1.0):
            ends[share] = float(score.detach())
            last = [(g * leaf)[0].sum(-1).detach() for g, leaf in zip(grads, leaves, strict=True)]
            whole = [leaf.detach() for leaf in leaves]
        else:
            sums = [total + grad / 200 for total, grad in zip(sums, grads, strict=False)]
    integrated = torch.cat([(mean * x)[0].sum(-1) for mean, x in zip(sums, whole, strict=False)]).numpy()
    np.testing.assert_allclose(view.gradient, torch.cat(last).numpy(), atol=1e-4)
    np.testing.assert_allclose(view.integrated, integrated, atol=2e-2)
    assert (view.score, view.baseline) == pytest.approx((ends[1.0], ends[0.0]), abs=1e-4)
    assert (
        view.error == pytest.approx(view.integrated.sum() - ends[1.0] + ends[0.0], abs=1e-4) and abs(view.error) < 0.05
    )
    assert "completeness error" in view.text(width=100, color="none")


@pytest.mark.parametrize("name", ["gpt", "transformer", "luong-unfed"])
def test_a_patched_position_has_the_value_of_the_other_text(name):
    """The same by a pass of one row whose tap is replaced at one position; the last layer's own is the other text's."""
    replay, at = make_replay(name), 3
    source = replay.source if name == "gpt" else Tokens.pad([[4, 7, 6, 7, 5]])
    read = (2, 4, 7, 5) if name == "gpt" else READ
    other = Replay(replay.module, source, read, replay.positions, replay.outputs, {}, 1)
    *_, view = patching_steps(replay, other, at)
    with torch.no_grad():
        plain = [one.log_probs()[0, at].item() for one in (replay, other)]
    assert (view.log_prob, view.other_log_prob) == pytest.approx(plain, abs=1e-6)
    side = view.grids[0]
    if name == "luong-unfed":
        assert side.layers == ["layer 0", "layer 1"] and np.abs(side.changes).max() > 1e-4
        return
    stack = "decoder" if name == "gpt" else "encoder"
    value = other.record()[0].find(f"{stack}.layers.0.residual")[0].data

    def patch_position(x):
        x = x.clone()
        x[:, 2] = value[:, 2]
        return x

    expected = replay.log_probs({f"{stack}.layers.0.residual": patch_position})[0, at].item() - plain[0]
    assert side.changes[side.layers.index("layer 0"), 2] == pytest.approx(expected, abs=1e-6)
    if name == "gpt":  # all of the output is computed from the last layer at its own position
        assert side.changes[-1, at] == pytest.approx(plain[1] - plain[0], abs=1e-5)
        np.testing.assert_allclose(side.changes[-1, :at], 0, atol=1e-7)
    shorter = Replay(replay.module, Tokens.pad([[4, 7]]), READ[:3], (0,), replay.outputs, {}, 1)
    message = refusal(ConfigError, lambda: list(patching_steps(replay, shorter, 0)))
    assert message.startswith("patching needs two texts with the same number of tokens; this one has")


def test_rollout_of_a_text_is_the_product_of_the_layers():
    replay = make_replay("transformer")
    trace, _ = replay.record()
    view = Recording(trace).text_rollout()
    product = np.eye(5)
    for i in range(2):
        mean = trace.find(f"encoder.layers.{i}.attention.weights")[0].data[0].double().mean(0).numpy()
        product = (mean + np.eye(5)) / 2 @ product
    np.testing.assert_allclose(view.rollout, product, atol=1e-6)
    assert (view.stack, view.layer) == ("encoder", 1)
    assert Recording(trace).text_rollout(0, "decoder").rollout.shape == (4, 4)
    message = refusal(ConfigError, lambda: Recording(trace).text_rollout(name="pixels"))
    assert message == "name: the stacks with self-attention are encoder, decoder, got 'pixels'"


@pytest.mark.parametrize("name", ["transformer", "gpt", "llama-grouped", "both-transformer"])
def test_a_condensed_recording_has_the_rollout_of_each_stack(name):
    replay = make_replay(name)
    recording = Recording(replay.record()[0])
    found = {r.name: r.data[0] for r in recording.condense().records if r.name.endswith("rollout")}
    assert list(found) == {"transformer": ["encoder.rollout", "decoder.rollout"]}.get(name, ["decoder.rollout"])
    for full_name, rollout in found.items():
        view = recording.text_rollout(name=full_name.partition(".")[0])
        np.testing.assert_allclose(rollout, view.rollout, atol=1e-7)
        np.testing.assert_allclose(rollout.sum(-1), 1, atol=1e-6)


def test_the_rollout_of_a_text_in_a_batch_is_without_the_padding_after_it():
    """The first of two texts, which is shorter than the other."""
    alone = make_replay("transformer")
    ids = alone.source.data[0].tolist()
    words = [[f"s{i}" for i in range(length)] for length in (len(ids), len(ids) + 2)]
    with record(alone.module) as trace, trace_context(source=words), torch.no_grad():
        alone.module.encoder(Tokens.pad([ids, [*ids, 4, 5]]))
    view = Recording(trace).text_rollout()
    np.testing.assert_allclose(view.rollout, Recording(alone.record()[0]).text_rollout().rollout, atol=1e-6)
    assert len(view.tokens) == len(ids)


@pytest.mark.parametrize("tool", ["attribution", "importance", "integrated"])
def test_a_changed_pass_is_explained_with_its_changes(tool):
    """A head without weights, as a change and as a model whose output projection does not read it."""
    replay, name = make_replay("transformer"), "decoder.layers.1.cross"
    changed = dataclasses.replace(replay, changes=lambda: {f"{name}.weights": ablate(2)})
    weights = copy.deepcopy(replay.module)
    weights.get_submodule(name).out.weight.data[:, 8:12] = 0
    same = run_tool(tool, make_replay("transformer", weights), 1, no_progress)
    found = run_tool(tool, changed, 1, no_progress)
    if tool == "attribution":
        zero = next(i for i, label in enumerate(same.labels) if "layer 0" in label)
        assert found.logit == pytest.approx(same.logit, abs=1e-5) and found.labels[zero] == same.labels[zero]
        assert found.logit != pytest.approx(logit_attribution(replay, 1).logit, abs=1e-3)
    elif tool == "importance":
        np.testing.assert_allclose(found.log_probs, same.log_probs, atol=1e-5)
        np.testing.assert_allclose(found.changes, same.changes, atol=1e-5)
    else:
        np.testing.assert_allclose(found.integrated, same.integrated, atol=1e-4)
        assert found.score == pytest.approx(same.score, abs=1e-5)


def test_tools_refuse_what_they_cannot_explain():
    replay = make_replay("seq2seq")
    message = refusal(ModelError, lambda: run_tool("importance", replay, 0, no_progress))
    assert message == "head importance needs attention heads, and this model has none; use --view saliency"
    message = refusal(ConfigError, lambda: run_tool("attribution", replay, 9, no_progress))
    assert message == "output: expected 0 to 3 (0 t4, 1 t6, 2 t5, 3 t3), got 9"
