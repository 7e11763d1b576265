"""The model contract, tested on every model of the zoo."""

from dataclasses import replace

import pytest
import torch

from regard.loss import chunked_loss
from regard.models.rnnsearch import GatedUnit
from regard.nn.bridge import CopyState, LinearBridge
from regard.nn.norm import LayerNorm, RMSNorm
from regard.nn.recurrent import Recurrent
from regard.objective import Batch, NextToken, Objective
from regard.sequence import Tokens
from regard.trace import record
from zoo import RAGGED, TARGET, ZOO, D, V, build, empty_source, single_row, words

close = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(params=ZOO)
def animal(request):
    return build(request.param), ZOO[request.param].source()


def forward_parameters(model):
    """All parameters but those of ELMo's backward language model, which reads another batch (tests/models)."""
    return {n: p for n, p in model.named_parameters() if not n.startswith("backward_decoder.")}


@torch.no_grad()
def test_one_step_at_a_time_equals_all_at_once_with_and_without_a_cache(animal):
    model, source = animal
    state, steps = model.start(source, max_tokens=5), []
    for ids in TARGET.data.split(1, dim=1):
        features, state = model.decoder(Tokens.full(ids), state)
        steps.append(features)
    torch.testing.assert_close(torch.cat(steps, 1), model(source, TARGET), **close)
    torch.testing.assert_close(
        model.decoder(TARGET, model.start(source, max_tokens=9))[0], model(source, TARGET), **close
    )


@torch.no_grad()
def test_prompts_of_different_length_continue_as_if_read_alone(animal):
    model, source = animal
    prompt = Tokens.pad([[2, 4, 5], [2], [2, 7]])
    _, state = model.decoder(prompt, model.start(source, max_tokens=5))
    ahead, _ = model.decoder(Tokens.full(torch.tensor([[6], [6], [6]])), state)
    for i in range(3):
        whole = torch.cat([single_row(prompt, i).data, torch.tensor([[6]])], 1)
        torch.testing.assert_close(ahead[i, 0], model(single_row(source, i), Tokens.full(whole))[0, -1], **close)


@torch.no_grad()
def test_no_position_sees_the_future(animal):
    model, source = animal
    changed = Tokens.full(torch.cat([TARGET.data[:, :3], torch.full((3, 2), 3)], 1))
    torch.testing.assert_close(model(source, TARGET)[:, :3], model(source, changed)[:, :3])
    assert not torch.allclose(model(source, TARGET)[:, 3:], model(source, changed)[:, 3:])


@torch.no_grad()
def test_padding_and_other_rows_change_nothing(animal):
    model, source = animal
    batched = model(source, RAGGED)
    for i in range(3):
        one = model(single_row(source, i), single_row(RAGGED, i))[0]
        torch.testing.assert_close(one, batched[i, : len(one)], **close)


@torch.no_grad()
def test_padding_is_never_seen(animal):
    model, source = animal
    if not source.data.shape[1]:
        source = replace(source, data=source.data.new_zeros(3, 2))  # nothing, padded
    noisy = replace(source, data=torch.where(source.mask, source.data, 5))
    loud = replace(RAGGED, data=torch.where(RAGGED.mask, RAGGED.data, 6))
    torch.testing.assert_close(model(noisy, loud)[RAGGED.mask], model(source, RAGGED)[RAGGED.mask], rtol=0, atol=0)


@torch.no_grad()
def test_an_empty_source_gives_finite_numbers(animal):
    model, _ = animal
    source = Tokens.pad([[4, 5], [], [6]])
    assert model(source, TARGET).isfinite().all()
    assert model(Tokens.pad([[], [], []]), TARGET).isfinite().all()


@torch.no_grad()
def test_recording_changes_nothing_and_weights_sum_to_one(animal):
    model, source = animal
    plain = model(source, RAGGED)
    with record(model, replace={"*": lambda t: t.clone()}) as trace:
        watched = model(source, RAGGED)
    torch.testing.assert_close(plain[RAGGED.mask], watched[RAGGED.mask], **close)
    assert trace.records
    for r in trace.find("*.weights"):
        torch.testing.assert_close(r.data.sum(-1), torch.ones(r.data.shape[:-1]))


@torch.no_grad()
def test_a_replaced_value_takes_effect(animal):
    model, source = animal
    with record(model, replace={"decoder.features": torch.zeros_like}) as trace:
        assert model(source, TARGET).abs().max() == 0
    assert trace.find("decoder.features")[0].data.abs().max() == 0


@pytest.mark.parametrize("name", [name for name in ZOO if name.startswith(("transformer", "gpt", "llama"))])
@torch.no_grad()
def test_a_transformer_records_embeddings_positions_norms_feed_forward_layers_and_residual_sums(name):
    model, source = build(name), ZOO[name].source()
    with record(model) as trace:
        model(source, TARGET)
    names = [r.name for r in trace.records]
    sides = [side for side in ("encoder", "decoder") if f"{side}.layers.0.ffn.output" in names]
    assert sides
    for side in sides:
        own = [n for n in names if n.startswith(f"{side}.")]
        for part in ("embedding", "norm", "ffn.activations", "ffn.output", "residual"):
            assert any(part in n for n in own), (side, part)
        norms = [n for n, part in model.named_modules() if n.startswith(side) and isinstance(part, LayerNorm | RMSNorm)]
        assert norms and {f"{n}.normalized" for n in norms} == {n for n in own if n.endswith(".normalized")}
    assert any(n.endswith(".position") for n in names)
    for r in trace.records:
        assert len(r.data) == 3, r.name


@pytest.mark.parametrize("name", ["gpt", "gpt-post", "transformer"])
@torch.no_grad()
def test_recorded_parts_add_up_to_the_recorded_residual_stream(name):
    model, source = build(name), ZOO[name].source()
    with record(model) as trace:
        model(source, TARGET)
    values = {r.name: r.data for r in trace.records}
    stem, layer = (
        ("decoder.", "decoder.layers.0.")
        if name != "transformer"
        else ("encoder.input_embedding.", "encoder.layers.0.")
    )
    scale = 1 if name != "transformer" else D**0.5
    entered = values[f"{stem}embedding"] * scale + values[f"{stem}position"]
    torch.testing.assert_close(entered, values[f"{layer.partition('.')[0]}.residual"], **close)
    if name == "gpt":
        torch.testing.assert_close(
            values[f"{layer}residual"], values[f"{layer}attention_residual"] + values[f"{layer}ffn.output"]
        )
    elif name == "gpt-post":
        added = values[f"{layer}norm1.normalized"] + values[f"{layer}ffn.output"]
        torch.testing.assert_close(values[f"{layer}ffn_residual"], added)
        torch.testing.assert_close(values[f"{layer}residual"], values[f"{layer}norm2.normalized"])
    else:
        added = values[f"{layer}attention_norm.norm.normalized"] + values[f"{layer}ffn.output"]
        torch.testing.assert_close(values[f"{layer}ffn_norm.residual_sum"], added)
        torch.testing.assert_close(values[f"{layer}residual"], values[f"{layer}ffn_norm.norm.normalized"])


@torch.no_grad()
def test_initial_states_of_a_recurrent_decoder_are_tapped_and_replaceable(animal):
    model, source = animal
    with record(model) as trace:
        plain = model(source, TARGET)
    layers = [name for name, part in model.named_modules() if isinstance(part, Recurrent | GatedUnit)]
    begun = {r.name: r for r in trace.records if r.context.get("begins")}
    assert {f"{name}.start" for name in layers if name.startswith("decoder")} == {
        name for name in begun if name.endswith(".start")
    }
    for name, initial in begun.items():
        assert initial.axes == ("batch", "width") and len(initial.data) == 3
        with record(model, replace={name: lambda t: t + 1}):
            assert not torch.allclose(model(source, TARGET)[:, 0], plain[:, 0]), name


@torch.no_grad()
def test_a_recurrent_decoder_taps_its_source_as_one_vector(animal):
    model, source = animal
    with record(model) as trace:
        model(source, TARGET)
    names = [r.name for r in trace.records if r.context.get("begins") and r.name.endswith("context")]
    bridged = isinstance(getattr(model.decoder, "bridge", None), LinearBridge | CopyState)
    assert ("decoder.bridge.context" in names) == bridged
    assert ("decoder.context" in names) == bool(getattr(model.decoder, "every", False))


@pytest.mark.parametrize("name", ["luong", "luong-dot", "convolution-luong"])
@torch.no_grad()
def test_a_replaced_attentional_vector_is_fed_to_the_next_step(name):
    model, source, calls = build(name), ZOO[name].source(), []

    def first(attended):
        calls.append(attended)
        return attended + 1 if len(calls) == 1 else attended

    plain = model(source, TARGET)
    with record(model, replace={"decoder.attended": first}):
        other = model(source, TARGET)
    assert len(calls) == 5
    torch.testing.assert_close(other[:, 0], plain[:, 0] + 1, **close)
    assert not torch.allclose(other[:, 1], plain[:, 1])


@torch.no_grad()
def test_an_encoder_declares_the_widths_of_its_states_and_final_states(animal):
    model, source = animal
    memory = model.encoder(source)
    assert model.encoder.width == memory.states.data.shape[2] * (memory.states.data.shape[1] > 0)
    assert model.encoder.final == tuple(tuple(part.shape[1] for part in layer) for layer in memory.final)


def test_every_parameter_learns(animal):
    model, source = animal
    read, targets, real = RAGGED.shift()
    chunked_loss(model.readout, words.loss, model.train()(source, read)[real], targets[real]).backward()
    dead = [n for n, p in forward_parameters(model).items() if p.grad is None or p.grad.abs().max() == 0]
    assert dead == []


def test_a_key_bias_has_no_gradient():
    """A constant added to all of a query's scores does not change their softmax."""
    model, source = build("transformer"), ZOO["transformer"].source()
    read, targets, real = RAGGED.shift()
    chunked_loss(model.readout, words.loss, model(source, read)[real], targets[real]).backward()
    for name, p in model.named_parameters():
        parts = {"attention.qkv.bias": 3, "cross.kv.bias": 2}
        for ending, count in parts.items():
            if name.endswith(ending):
                chunks = p.grad.chunk(count)
                key = chunks[1] if count == 3 else chunks[0]
                assert key.abs().max() < 1e-6 < chunks[-1].abs().max()


def test_the_loss_in_chunks_equals_the_naive_one_with_its_gradients(animal):
    model, source = animal
    model.double()
    read, targets, real = RAGGED.shift()
    naive = torch.nn.functional.cross_entropy(model.readout(model(source, read))[real], targets[real], reduction="sum")
    chunked = chunked_loss(model.readout, words.loss, model(source, read)[real], targets[real], chunk=3)
    torch.testing.assert_close(chunked, naive, atol=1e-12, rtol=1e-12)
    ps = list(forward_parameters(model).values())
    for a, b in zip(*(torch.autograd.grad(loss * 0.7, ps) for loss in (chunked, naive)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-12)


@torch.no_grad()
def test_the_source_is_neither_copied_for_beams_nor_projected_twice(animal):
    model, source = animal
    state = model.decoder(Tokens.full(torch.full((3, 1), 2)), model.start(source, max_tokens=9))[1]
    forked = state.fork(4).reorder(torch.tensor([1, 0, 2, 3, 5, 4, 6, 7, 9, 8, 10, 11]))
    after = model.decoder(Tokens.full(torch.full((12, 1), 4)), forked)[1]
    leaves = torch.utils._pytree.tree_leaves
    assert all(a is b for a, b in zip(leaves(state.source), leaves(after.source), strict=True))
    assert len(after.hypothesis) == 12 and len(after.source) == 3
    assert len(after.keep(torch.tensor([2])).hypothesis) == 4


@pytest.mark.parametrize("name", ZOO)
def test_every_model_runs_on_the_meta_device(name):
    with torch.device("meta"):
        model = build(name)
    full = Tokens.full(torch.zeros(3, 5, dtype=torch.long, device="meta"))  # what else is made must name its device
    source = full if ZOO[name].source().data.shape[1] else empty_source().to("meta")
    state = model.decoder(full, model.start(source, max_tokens=8))[1].fork(2)
    step = Tokens.full(full.data[:, :1].repeat_interleave(2, 0))
    features, _ = model.decoder(step, state.reorder(torch.arange(6, device="meta")))
    loss = Objective(model, NextToken(words))(Batch(source, full))[0].totals["next"]
    assert loss.is_meta
    assert model.readout(features).is_meta and features.shape == (6, 1, D)


@pytest.mark.parametrize("name", ["gpt", "gpt-post", "llama", "llama-grouped"])
def test_packed_documents_equal_separate_rows_and_a_recurrent_model_refuses_them(name):
    documents = [[2, 4, 5, 6], [2, 7], [2, 5, 5]]
    packed, model = Tokens.pack(documents), build(name)
    separate = torch.cat([model(Tokens.pad([[]]), Tokens.pad([d]))[0] for d in documents])
    torch.testing.assert_close(model(Tokens.pad([[]]), packed)[0], separate, **close)
    with pytest.raises(ValueError, match=r"packing .* needs attention"):
        build("seq2seq")(Tokens.pad([[4]]), packed)


def test_without_cache_capacity_a_state_cannot_be_continued():
    model = build("gpt")
    state = model.decoder(TARGET, model.start(ZOO["gpt"].source()))[1]
    with pytest.raises((ValueError, IndexError)):
        model.decoder(TARGET, state)


@torch.no_grad()
def test_without_positions_attention_does_not_see_order():
    model = build("transformer")
    ids, order = torch.tensor([[4, 5, 6, 7]]), torch.tensor([2, 0, 3, 1])
    constant = torch.zeros(1, 4, dtype=torch.long)
    straight = model.encoder(replace(Tokens.full(ids), positions=constant)).states.data
    permuted = model.encoder(replace(Tokens.full(ids[:, order]), positions=constant)).states.data
    torch.testing.assert_close(straight[:, order], permuted, **close)


def test_label_smoothing_gives_no_share_to_padding_and_equals_the_definition():
    logits, targets = torch.randn(5, V, dtype=torch.double, requires_grad=True), torch.tensor([3, 4, 5, 3, 7])
    share = torch.full((5, V), 0.1 / (V - 1), dtype=torch.double)
    share[:, 0] = 0
    share[torch.arange(5), targets] += 0.9
    wanted_loss = -(share * logits.log_softmax(-1)).sum()
    loss = type(words)(V, 0.1).loss(logits, targets)
    torch.testing.assert_close(loss.double(), wanted_loss, atol=1e-5, rtol=1e-6)
    a, b = (torch.autograd.grad(x.double(), logits)[0] for x in (loss, wanted_loss))
    torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)
    assert torch.equal(words.nll(logits, targets), words.loss(logits, targets))
