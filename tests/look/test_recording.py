"""Recording: views show the numbers that the model used, joined over decoding steps, also after save and load."""

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
from regard.errors import ConfigError, ModelError
from regard.look import Recording
from regard.sequence import SOS, Tokens
from regard.trace import Record, Trace, record, tap, trace_context

SPELLING = {"target": lambda i: ["<PAD>", "<UNK>", "<SOS>", "<EOS>", " i", " am", " a", " student"][i]}
SOURCES = [[" je", " suis", " un", " étudiant", " ."], [" من", " یک", " دانشجو"], [" 学"]]
READ = [["<SOS>", " i", " am", " a", " student"]] * 3


def forced(name="transformer"):
    """One forward over the whole target."""
    model = zoo.build(name)
    words = SOURCES if name != "gpt" else [[], [], []]
    with record(model) as trace, trace_context(source=words, target=READ), torch.no_grad():
        model(zoo.ZOO[name].source(), zoo.TARGET)
    return Recording(trace)


def searched(width, name="transformer", answer=True, numbers=None, prompt=((SOS,),) * 3):
    """A beam search over three sources, and its answers."""
    model = zoo.build(name)
    zoo.sharpen(model)
    numbers = torch.arange(3) if numbers is None else numbers
    words = SOURCES if name != "gpt" else [[], [], []]
    with record(model) as trace, trace_context(source=words):
        choices = decode(
            model,
            zoo.ZOO[name].source(),
            Tokens.pad(prompt),
            Beam(width, power_penalty(1.0)),
            torch.tensor([9, 6, 12]),
            numbers,
        )
        found = [best[0] for best in collect(choices)]
        if answer:
            ids = Tokens.pad([h.tokens for h in found])
            with trace_context(target=[[SPELLING["target"](i) for i in h.tokens] for h in found], sources=numbers):
                tap(model, "answer", ids.data, "batch position:target")
    return model, Recording(trace, SPELLING), found


def test_the_last_cross_attention_is_the_default():
    recording = forced()
    view = recording.attention()
    (seen,) = recording.find("decoder.layers.1.cross.weights")
    assert view.name == seen.name and (view.layer, view.heads, view.head) == (1, 4, None)
    np.testing.assert_array_equal(view.weights, seen.data[0].numpy().mean(0, dtype=np.float64))
    assert view.rows == READ[0] and view.columns == SOURCES[0]
    assert view.sides == ("target", "source")
    np.testing.assert_allclose(view.weights.sum(1), 1, atol=1e-6)


def test_one_head_has_the_recorded_weights_to_the_bit():
    recording = forced()
    for head in range(4):
        view = recording.attention(layer=0, head=head)
        expected = recording.find("decoder.layers.0.cross.weights")[0].data[0, head].numpy()
        assert view.weights.dtype == np.float32 and view.weights.tobytes() == expected.tobytes()


def test_padding_is_not_drawn():
    view = forced().attention(row=1)
    assert view.columns == SOURCES[1] and view.weights.shape == (5, 3)
    np.testing.assert_allclose(view.weights.sum(1), 1, atol=1e-6)


def test_self_attention_is_found_by_name_and_labeled_with_its_tokens():
    recording = forced()
    view = recording.attention("encoder.*", layer=0)
    assert view.name == "encoder.layers.0.attention.weights" and view.sides == ("source", "source")
    assert view.rows == view.columns == SOURCES[0]
    assert recording.attention("decoder.layers.0.attention").sides == ("target", "target")


def test_a_model_without_a_source_shows_its_last_self_attention():
    view = forced("gpt").attention()
    assert view.name == "decoder.layers.1.attention.weights" and view.rows == view.columns == READ[0]
    assert not np.triu(view.weights, 1).any()


def test_every_head_of_a_layer_is_in_the_grid():
    grid = forced().heads(layer=0)
    assert [view.head for view in grid.views] == [0, 1, 2, 3] and {view.layer for view in grid.views} == {0}
    assert ElementTree.fromstring(grid.svg()).tag.endswith("svg")


def test_the_cells_of_the_drawing_are_the_recorded_weights():
    recording = forced()
    weights = recording.find("decoder.layers.1.cross.weights")[0].data[0].numpy().mean(0, dtype=np.float64)
    full = re.findall(r": (\d\.\d{4})</title>", recording.attention().svg())
    assert full == [f"{w:.4f}" for w in weights.flatten()]


def test_without_tokens_positions_are_numbered():
    model = zoo.build("transformer")
    with record(model) as trace, torch.no_grad():
        model(zoo.text(), zoo.TARGET)
    view = Recording(trace).attention()
    assert view.rows == view.columns == ["1", "2", "3", "4", "5"] and view.name.endswith("1.cross.weights")


@pytest.mark.parametrize("width", [1, 3, 5])
@pytest.mark.parametrize("name", ["transformer", "transformer-pre", "lstm-transformer"])
def test_the_steps_of_the_best_hypothesis_are_joined(name, width):
    model, recording, found = searched(width, name)
    for row, best in enumerate(found):
        view = recording.attention(row=row)
        assert view.rows == [SPELLING["target"](i) for i in best.tokens] and view.columns == SOURCES[row]
        with record(model) as again, torch.no_grad():
            model(zoo.single_row(zoo.text(), row), Tokens.pad([[SOS, *best.tokens[:-1]]]))
        expected = again.find(view.name)[0].data[0].mean(0)
        np.testing.assert_allclose(view.weights, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("width", [1, 3])
def test_each_joined_row_equals_a_row_of_decoding_to_the_bit(width):
    _, recording, found = searched(width)
    view = recording.attention(row=0, head=2)
    seen = recording.find(view.name)
    for step, row in enumerate(view.weights):
        used = {r[2, -1, :5].numpy().tobytes() for r in seen[step].data}
        assert np.ascontiguousarray(row).tobytes() in used
    assert len(view.weights) == len(found[0].tokens)


def test_the_best_hypothesis_is_followed_across_beam_positions():
    """Otherwise the tests above could not distinguish a joined path from one beam position."""
    _, recording, found = searched(5, "transformer-pre")
    slots = set()
    for r in recording.find("decoder.layers.0.cross.weights")[1:]:
        step = r.context["step"]
        for source, best in enumerate(found):
            rows = [i for i, s in enumerate(r.context["sources"].tolist()) if s == source]
            prefixes = [r.context["target"][i].tolist() for i in rows]
            slots |= {prefixes.index(list(best.tokens[:step]))} if step < len(best.tokens) else set()
    assert len(slots) > 1


def test_self_attention_of_a_decoding_is_joined_into_a_triangle():
    model, recording, found = searched(3, "gpt", prompt=((SOS, 4, 5),) * 3)
    view = recording.attention()
    read = [SOS, 4, 5, *found[0].tokens[:-1]]
    assert view.rows == view.columns == [SPELLING["target"](i) for i in read]
    with record(model) as again, torch.no_grad():
        model(zoo.empty_source(1), Tokens.pad([read]))
    np.testing.assert_allclose(view.weights, again.find(view.name)[0].data[0].mean(0).numpy(), atol=1e-6)


def test_encoder_attention_of_a_decoding_is_labeled_with_source_tokens():
    _, recording, _ = searched(3)
    assert recording.attention("encoder.*", row=1).rows == SOURCES[1]


def test_sources_are_ordered_by_number():
    _, plain, _ = searched(3)
    _, numbered, _ = searched(3, numbers=torch.tensor([17, 4, 9]))
    for row, place in enumerate((1, 2, 0)):
        one, other = numbered.attention(row=row), plain.attention(row=place)
        assert one.columns == other.columns and one.rows == other.rows
        np.testing.assert_array_equal(one.weights, other.weights)


def test_without_an_answer_the_path_is_that_of_greedy_search():
    _, recording, found = searched(1, answer=False)
    _, full, _ = searched(1)
    for row in range(3):
        view = recording.attention(row=row)
        assert view.rows[:-1] == [SPELLING["target"](i) for i in found[row].tokens[:-1]] and view.rows[-1] == "…"
        np.testing.assert_array_equal(view.weights, full.attention(row=row).weights)


def test_a_hypothesis_can_be_selected_by_its_ids():
    _, recording, found = searched(3, answer=False)
    _, full, _ = searched(3)
    view = recording.attention(row=2, hypothesis=found[2].tokens)
    np.testing.assert_array_equal(view.weights, full.attention(row=2).weights)
    assert view.rows == full.attention(row=2).rows


def test_sentences_are_counted_through_all_passes_of_a_block():
    model = zoo.build("transformer")
    with record(model) as trace, torch.no_grad():
        for i in range(3):
            with trace_context(source=[SOURCES[i]], target=[READ[i]]):
                model(zoo.single_row(zoo.text(), i), zoo.TARGET.select(torch.tensor([i])))
    assert [Recording(trace).attention(row=i).columns for i in range(3)] == SOURCES


def test_attention_recorded_per_position_is_joined():
    layer = nn.Identity()
    with (
        record(nn.ModuleDict({"decoder": nn.ModuleDict({"cross": layer})})) as trace,
        trace_context(source=SOURCES[:1]),
    ):
        for t in range(3):
            with trace_context(position=t):
                tap(layer, "weights", torch.full((1, 5), t / 10), "batch key:source")
    view = Recording(trace).attention()
    np.testing.assert_allclose(view.weights, np.array([[0.0] * 5, [0.1] * 5, [0.2] * 5]), atol=1e-7)
    assert view.columns == SOURCES[0] and view.heads == 1


def test_weights_after_the_last_token_are_not_hidden():
    words = [["a"]]
    seen = Record(
        "cross.weights", ("batch", "query", "key"), torch.tensor([[[0.5, 0.5]]]), {"key": words}, {"source": words}
    )
    assert Recording(Trace(records=[seen])).attention().columns == ["a", "2"]


def test_the_table_of_contents_counts_steps():
    _, recording, found = searched(1)
    table = {seen.name: seen for seen in recording.contents()}
    steps = len(recording.find("decoder.layers.1.cross.weights"))
    assert table["decoder.layers.1.cross.weights"].count == steps == max(len(h.tokens) for h in found)
    assert table["encoder.layers.0.attention.queries"].axes == ("batch", "head", "query", "width")
    assert repr(recording) == f"Recording({len(recording.records)} records, {len(table)} names)"


def test_a_notebook_displays_the_drawing_and_the_names():
    recording = forced()
    shown = recording._repr_html_()
    assert recording.attention().svg() in shown and "<td>decoder.layers.1.cross.weights</td>" in shown
    assert recording.attention()._repr_html_() == recording.attention().svg()
    assert ElementTree.fromstring(shown).tag == "div"


def test_a_notebook_runs_no_markup_of_a_recording():
    evil = "<script>alert(1)</script>"
    seen = Record(f"{evil}.weights", ("batch", "query", "key"), torch.ones(1, 1, 1), {"key": [[evil]]}, {})
    other = Record(evil, (evil,), torch.ones(1), {}, {})
    shown = Recording(Trace(records=[seen, other]))._repr_html_()
    assert "<script" not in shown and shown.count("&lt;script&gt;") >= 4


def test_a_notebook_displays_the_states_of_a_model_without_attention():
    recording = forced("seq2seq")
    shown = recording._repr_html_()
    assert recording.states().svg() in shown and "<td>decoder.features</td>" in shown
    assert ElementTree.fromstring(shown).tag == "div"


def test_a_recording_without_a_drawing_still_lists_its_names():
    shown = Recording(Trace(records=[Record("logits", ("batch",), torch.ones(1), {}, {})]))._repr_html_()
    assert "<svg" not in shown and "<td>logits</td>" in shown


def test_invalid_view_arguments_are_refused():
    r = forced()
    name = "decoder.layers.1.cross.weights"
    check_refused(ConfigError, f"head: {name} has the heads 0 to 3, got 4", lambda: r.attention(head=4))
    check_refused(ConfigError, "layer: the layers of that attention are 0, 1, got 2", lambda: r.attention(layer=2))
    check_refused(ConfigError, "row: 3 sentences were recorded, 0 to 2, got 3", lambda: r.attention(row=3))
    check_refused(
        ConfigError,
        "name: no attention is called 'nowhere'; there are encoder.layers.0.attention.weights, "
        "encoder.layers.1.attention.weights, decoder.layers.0.attention.weights, decoder.layers.0.cross.weights, "
        "decoder.layers.1.attention.weights, decoder.layers.1.cross.weights",
        lambda: r.attention("nowhere"),
    )
    check_refused(
        ModelError,
        "nothing was recorded; did the model run inside the block?",
        lambda: Recording(Trace()).attention(),
    )


def test_labels_of_another_pass_are_refused():
    def seen(words):
        axes = ("batch", "query", "key")
        return Recording(Trace(records=[Record("w.weights", axes, torch.ones(2, 1, 2), {"key": words}, {})]))

    check_refused(
        ModelError,
        "w.weights: 3 tokens for 2 positions; are they the tokens of this pass?",
        lambda: seen([["a", "b", "c"]] * 2).attention(),
    )
    check_refused(
        ModelError,
        "w.weights: row 1 of the axis 'key' has no tokens; 1 rows have some",
        lambda: seen([["a", "b"]]).attention(row=1),
    )


def test_a_hypothesis_that_was_not_generated_is_refused():
    _, recording, _ = searched(1)
    check_refused(
        ModelError,
        "decoder.layers.1.cross.weights: no hypothesis of step 1 is a prefix of the answer for source 0; was the "
        "answer decoded in another pass?",
        lambda: recording.attention(hypothesis=[0, 0, 0]),
    )


def test_hypotheses_without_targets_in_their_context_are_refused():
    records = [
        Record("cross.weights", ("batch", "query", "key"), torch.ones(n, 1, 1), {}, {"step": t, "sources": [0] * n})
        for t, n in enumerate((1, 2))
    ]
    answer = Record("answer", ("batch", "position"), torch.tensor([[5, 3]]), {}, {})
    check_refused(
        ModelError,
        "cross.weights: step 1 has 2 hypotheses of source 0, and its context has no target to tell which led to the "
        "answer",
        lambda: Recording(Trace(records=[*records, answer])).attention(),
    )


def stages(name):
    """Per recorded scores of the first sentence, read at once: (scaled, masked)."""
    tensors = forced(name).condense().header()["tensors"]
    return {t["name"]: (t["scaled"], t["masked"]) for t in tensors if t["name"].endswith("scores")}


def test_a_header_says_which_stages_the_scores_of_a_model_have():
    found = stages("transformer")
    assert found["encoder.layers.0.attention.scores"] == found["decoder.layers.0.cross.scores"] == (True, False)
    assert found["decoder.layers.0.attention.scores"] == (True, True)  # the causal mask
    assert set(stages("rnnsearch").values()) == set(stages("luong-dot").values()) == {(False, False)}


def test_products_are_recorded_before_they_are_scaled():
    recording = forced()
    for scores in recording.find("*.scores"):
        (products,) = recording.find(scores.name.replace("scores", "products"))
        queries, keys = (recording.find(scores.name.replace("scores", n))[0].data for n in ("queries", "keys"))
        torch.testing.assert_close(products.data, queries @ keys.mT)
        torch.testing.assert_close(scores.data, products.data / queries.shape[-1] ** 0.5, rtol=0, atol=0)
