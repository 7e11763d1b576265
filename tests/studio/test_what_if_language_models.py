"""What-if changes of language models and of BERT: each equals a pass that is computed here in plain torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import regard
from language_runs import PROMPT
from regard.errors import ConfigError
from regard.sequence import Tokens
from regard.studio.interventions import parse_intervention
from regard.studio.service import TraceRequest

REVIEW = "this movie is great"


@pytest.fixture(scope="module")
def studio(language_server):
    return language_server.studio


def run_trace(studio, name, text=PROMPT, beam=None):
    number = next(entry.id for entry in studio.model_store.entries() if entry.name == name)
    return studio.trace(TraceRequest(number, text, beam))


def fork(studio, trace, **change):
    return studio.fork(trace.header["id"], parse_intervention(change))


def values(trace, name):
    return trace.recording.find(name)[0].data[0].numpy()


def tokens_read(trace, tokenizer):
    """Ids that the decoder read: prompt and answer without its last token."""
    steps = [step["chosen"]["id"] for step in trace.header["steps"]]
    return [*tokenizer.encode(PROMPT).ids, *steps[:-1]]


def attention(x_TD, part, heads, causal, changes):
    """Multi-head attention of one text; `changes` sets rows of weights, or a whole head to 0."""
    q, k, v = (
        t.unflatten(1, (heads, -1)).transpose(0, 1) for t in F.linear(x_TD, part.qkv.weight, part.qkv.bias).chunk(3, -1)
    )
    scores_HTT = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        scores_HTT = scores_HTT + torch.full(scores_HTT.shape[1:], -torch.inf).triu(1)
    weights_HTT = scores_HTT.softmax(-1)
    for (head, query), row in changes.items():
        if query is None:
            weights_HTT[head] = 0
        else:
            weights_HTT[head, query] = torch.tensor(row)[: weights_HTT.shape[2]]
    return F.linear((weights_HTT @ v).transpose(0, 1).flatten(1), part.out.weight, part.out.bias)


def plain_gpt(module, ids, heads, changes=None):
    """Logits (T, V) of a GPT-2 by its equations; `changes`: layer -> {(head, query): row of weights}."""
    decoder = module.decoder
    norm = lambda x, part: F.layer_norm(x, x.shape[-1:], part.weight, part.bias, part.eps)  # noqa: E731
    x_TD = decoder.embed.weight[ids] + decoder.positions.table.weight[: len(ids)]
    for number, layer in enumerate(decoder.layers):
        x_TD = x_TD + attention(norm(x_TD, layer.norm1), layer.attention, heads, True, (changes or {}).get(number, {}))
        up = F.gelu(F.linear(norm(x_TD, layer.norm2), layer.ffn.up.weight, layer.ffn.up.bias), approximate="tanh")
        x_TD = x_TD + F.linear(up, layer.ffn.down.weight, layer.ffn.down.bias)
    return norm(x_TD, decoder.norm) @ decoder.embed.weight.T


def plain_bert(module, ids, heads, changes=None, segments=0):
    """States (T, D) of a BERT's last layer by its equations."""
    encoder = module.encoder
    norm = lambda x, part: F.layer_norm(x, x.shape[-1:], part.weight, part.bias, part.eps)  # noqa: E731
    x_TD = encoder.embed.weight[ids] + encoder.positions.table.weight[: len(ids)] + encoder.segments.weight[segments]
    x_TD = norm(x_TD, encoder.norm)
    for number, layer in enumerate(encoder.layers):
        added = attention(x_TD, layer.attention, heads, False, (changes or {}).get(number, {}))
        x_TD = norm(x_TD + added, layer.attention_norm)
        up = F.gelu(F.linear(x_TD, layer.ffn.up.weight, layer.ffn.up.bias))
        x_TD = norm(x_TD + F.linear(up, layer.ffn.down.weight, layer.ffn.down.bias), layer.ffn_norm)
    return x_TD


@pytest.fixture(scope="module")
def gpt(language_runs):
    return regard.load(language_runs / "gpt")


def generated_logits(model, trace, changes=None):
    """Logits of the steps of a trace, recomputed over the tokens that were read."""
    ids = tokens_read(trace, model.modality.tokenizer)
    with torch.no_grad():
        return plain_gpt(model.module, ids, 2, changes)[-len(trace.header["steps"]) :].numpy()


def test_the_plain_pass_equals_the_recorded_one(studio, gpt):
    trace = run_trace(studio, "gpt")
    np.testing.assert_allclose(values(trace, "logits"), generated_logits(gpt, trace), atol=1e-4)


@pytest.mark.parametrize(("layer", "head"), [(0, 1), (1, 0)])
def test_an_ablated_head_of_a_gpt_adds_nothing(studio, gpt, layer, head):
    before = run_trace(studio, "gpt")
    after = fork(studio, before, kind="head", tensor=f"decoder.layers.{layer}.attention.weights", head=head)
    expected = generated_logits(gpt, after, {layer: {(head, None): 0}})
    np.testing.assert_allclose(values(after, "logits"), expected, atol=1e-4)
    assert np.abs(values(after, "logits")[0] - values(before, "logits")[0]).max() > 1e-3


@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_an_ablated_head_equals_zeros_before_the_output_projection(studio, language_runs, name):
    layer, head, model = 1, 1, regard.load(language_runs / name)
    after = fork(
        studio, run_trace(studio, name), kind="head", tensor=f"decoder.layers.{layer}.attention.weights", head=head
    )
    part = model.module.decoder.layers[layer].attention.out
    width = part.in_features // values(after, f"decoder.layers.{layer}.attention.weights").shape[0]

    def zero(module, inputs):
        changed = inputs[0].clone()
        changed[..., head * width : (head + 1) * width] = 0
        return (changed,)

    hook = part.register_forward_pre_hook(zero)
    try:
        ids = tokens_read(after, model.modality.tokenizer)
        with torch.no_grad():
            features = model.module(Tokens.pad([[]]), Tokens.pad([ids]))
            expected = model.module.readout(features)[0, -len(after.header["steps"]) :].numpy()
    finally:
        hook.remove()
    np.testing.assert_allclose(values(after, "logits"), expected, atol=1e-4)


@pytest.mark.parametrize("query", [2, 15])
def test_a_gpt_continues_with_an_edited_attention_row(studio, gpt, query):
    """A row of the prompt, which is read at once, and one of a generated token."""
    before, tensor = run_trace(studio, "gpt"), "decoder.layers.0.attention.weights"
    row = [0.0] * values(before, tensor).shape[-1]
    row[0], row[2] = 0.25, 0.75
    after = fork(studio, before, kind="row", tensor=tensor, head=1, query=query, weights=row)
    expected = generated_logits(gpt, after, {0: {(1, query): row}})
    np.testing.assert_allclose(values(after, "logits"), expected, atol=1e-4)


def test_a_gpt_continues_from_a_forced_token(studio, gpt):
    before = run_trace(studio, "gpt")
    other = before.header["steps"][3]["best"][-1]
    after = fork(studio, before, kind="token", step=3, id=other["id"])
    ids = [[step["chosen"]["id"] for step in one.header["steps"]] for one in (before, after)]
    assert ids[1][:4] == [*ids[0][:3], other["id"]]
    np.testing.assert_allclose(values(after, "logits"), generated_logits(gpt, after), atol=1e-4)


@pytest.fixture(scope="module")
def bert(language_runs):
    return regard.load(language_runs / "bert")


def bert_logits(model, changes=None):
    with torch.no_grad():
        row = model.input_encoder.encode([REVIEW])[0].row
        ids = model.input_encoder.collate([row]).data[0].tolist()
        states_TD = plain_bert(model.module, ids, 2, changes)
        return F.linear(states_TD.mean(0), model.module.readout.weight, model.module.readout.bias).numpy()


def test_an_ablated_head_of_bert_adds_nothing(studio, bert):
    before = run_trace(studio, "bert", REVIEW)
    np.testing.assert_allclose(values(before, "logits"), bert_logits(bert), atol=1e-4)
    after = fork(studio, before, kind="head", tensor="encoder.layers.0.attention.weights", head=1)
    np.testing.assert_allclose(values(after, "logits"), bert_logits(bert, {0: {(1, None): 0}}), atol=1e-4)
    assert np.abs(values(after, "logits") - values(before, "logits")).max() > 1e-4


def test_bert_continues_with_an_edited_attention_row(studio, bert):
    before, tensor = run_trace(studio, "bert", REVIEW), "encoder.layers.1.attention.weights"
    row = [0.0, 0.0, 0.5, 0.5]
    after = fork(studio, before, kind="row", tensor=tensor, head=0, query=1, weights=row)
    np.testing.assert_allclose(values(after, "logits"), bert_logits(bert, {1: {(0, 1): row}}), atol=1e-4)
    assert after.header["fork"]["differences"]


MASKED = "the cat eats [MASK] today . [SEP] the [MASK] eats hay ."


def masked_logits(model, trace, changes=None):
    """Logits at the masks of a BERT with its masked-LM head, by their equations."""
    tokens = [token["token"] for token in trace.header["sequences"]["source"]]
    ids = [model.tokenizer.vocabulary.index(token) for token in tokens]
    end = ids.index(model.tokenizer.eos)
    segments = [int(i > end) for i in range(len(ids))]
    assert "".join(tokens).count("[MASK]") == 2 and sum(segments) > 4
    head = model.module.readout
    with torch.no_grad():
        states_TD = plain_bert(model.module, ids, 2, changes, segments)
        masks = [i for i, id in enumerate(ids) if id == model.tokenizer.mask]
        x_MD = F.gelu(F.linear(states_TD[masks], head.dense.weight, head.dense.bias))
        x_MD = F.layer_norm(x_MD, x_MD.shape[-1:], head.norm.weight, head.norm.bias, head.norm.eps)
        return F.linear(x_MD, head.decoder.weight, head.decoder.bias).numpy()


def test_mask_predictions_follow_a_changed_pass_of_bert(studio, language_runs):
    model = regard.load(language_runs / "fill")
    before = run_trace(studio, "fill", MASKED)
    np.testing.assert_allclose(values(before, "logits"), masked_logits(model, before), atol=1e-4)
    after = fork(studio, before, kind="head", tensor="encoder.layers.0.attention.weights", head=0)
    np.testing.assert_allclose(values(after, "logits"), masked_logits(model, before, {0: {(0, None): 0}}), atol=1e-4)
    assert np.abs(values(after, "logits") - values(before, "logits")).max() > 1e-4
    tensor = "encoder.layers.1.attention.weights"
    row = [0.0] * values(before, tensor).shape[-1]
    row[2] = 1.0
    edited = fork(studio, before, kind="row", tensor=tensor, head=1, query=4, weights=row)
    np.testing.assert_allclose(values(edited, "logits"), masked_logits(model, before, {1: {(1, 4): row}}), atol=1e-4)
    assert [one["read"]["label"] for one in edited.header["predictions"]["positions"]] == ["[MASK] 1", "[MASK] 2"]


# texts that are longer than the context


def window_traces(studio, trace):
    return [studio.trace_store.get(number) for number in trace.header["windows"]]


def test_all_tokens_of_a_long_text_are_in_one_of_its_windows(studio, language_runs):
    trace = run_trace(studio, "long")
    parts = window_traces(studio, trace)
    assert len(parts) > 2 and parts[0].header["id"] == trace.header["id"]
    text = "".join(token["token"] for part in parts for token in part.header["sequences"]["target"])
    assert text == trace.header["answer"] and len(text) == 60
    model = regard.load(language_runs / "long")
    for number, part in enumerate(parts):
        window, steps = part.header["window"], part.header["steps"]
        assert (window["number"], window["count"], window["total"]) == (number, len(parts), 60)
        assert window["tokens"] == len(steps) == len(part.header["sequences"]["target"])
        read = part.header["sequences"]["read"]
        whole = f"{PROMPT}{text}"[: len(PROMPT) + len(window["before"]) + len(steps) - 1]
        assert whole.endswith("".join(token["token"] for token in read))  # its positions are counted from 0
        ids = model.modality.tokenizer.encode("".join(token["token"] for token in read)).ids
        with torch.no_grad():
            expected = plain_gpt(model.module, ids, 2)[-len(steps) :].numpy()
        np.testing.assert_allclose(values(part, "logits"), expected, atol=1e-4)
    assert len([one for one in studio.trace_store.recent() if one["id"].startswith(trace.header["id"])]) == 1


def test_a_beam_search_over_several_windows_can_be_inspected(studio):
    trace = run_trace(studio, "long", beam=3)
    parts = window_traces(studio, trace)
    assert (
        "".join(token["token"] for part in parts for token in part.header["sequences"]["target"])
        == trace.header["answer"]
    )
    for part in parts:
        chosen = [node["label"] for node in part.header["beam"] if node["chosen"]]
        assert chosen == [step["chosen"]["label"] for step in part.header["steps"]]


def test_changes_apply_in_the_window_in_which_they_are_made(studio):
    trace = run_trace(studio, "long")
    parts = window_traces(studio, trace)
    other = parts[1].header["steps"][2]["best"][-1]
    after = fork(studio, parts[1], kind="token", step=2, id=other["id"])
    assert after.header["window"]["number"] == 1 and after.header["fork"]["base"] == parts[1].header["id"]
    at = len(parts[1].header["window"]["before"]) + 2
    assert after.header["answer"][:at] == trace.header["answer"][:at]
    assert after.header["answer"][at] == other["token"] and len(after.header["answer"]) == 60
    tensor, query = "decoder.layers.0.attention.weights", 14
    row = [0.0] * values(parts[2], tensor).shape[-1]
    row[1] = 1.0
    edited = fork(studio, parts[2], kind="row", tensor=tensor, head=0, query=query, weights=row)
    assert edited.header["window"]["number"] == 2
    assert values(edited, tensor)[0, query].tolist() == pytest.approx(row)
    first = studio.trace_store.get(edited.header["windows"][0])
    np.testing.assert_array_equal(values(first, tensor), values(parts[0], tensor))  # another window, left as it was
    assert first.header["fork"]["differences"] == []


def test_a_long_text_without_the_causal_mask_shows_its_first_window(studio):
    trace = run_trace(studio, "long")
    later = window_traces(studio, trace)[1]
    assert "mask" in trace.header["supported_changes"] and "mask" not in later.header["supported_changes"]
    after = fork(studio, trace, kind="mask")
    assert after.header["window"] == trace.header["window"] and after.header["windows"] == []


def test_a_recording_of_a_long_text_says_which_part_its_page_shows(language_runs):
    model = regard.load(language_runs / "long")
    with model.record() as recording:
        text = model.generate(PROMPT)
    windows = recording.windows()
    assert sum(len(window.ids) for window in windows) == len(text) == 60
    assert f'"window": {{"number": 0, "count": {len(windows)}' in recording.html()
    with pytest.raises(ConfigError, match=f"window: the answer has the windows 0 to {len(windows) - 1}, got 99"):
        recording.condense(99)
    with model.record() as short:
        model.generate(PROMPT, 5)
    assert short.windows() == [] and short.condense().header(short)["window"] is None
    with pytest.raises(ConfigError, match="window: the answer has one window, 0, got 1"):
        short.condense(1)
