"""A recording: what is drawn is what the model used, joined over the steps of decoding, kept in a file."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import zoo
from regard.decode.beam import Beam, power
from regard.decode.hypothesis import collect
from regard.decode.loop import decode
from regard.errors import ConfigError, ModelError
from regard.look import Recording
from regard.sequence import SOS, Tokens
from regard.trace import Record, Trace, record, scene, tap

SPELLING = {"target": lambda i: ["<PAD>", "<UNK>", "<SOS>", "<EOS>", " i", " am", " a", " student"][i]}
SOURCES = [[" je", " suis", " un", " étudiant", " ."], [" من", " یک", " دانشجو"], [" 学"]]
READ = [["<SOS>", " i", " am", " a", " student"]] * 3


def forced(name="transformer"):
    """One forward over the whole target."""
    model = zoo.build(name)
    words = SOURCES if name != "gpt" else [[], [], []]
    with record(model) as trace, scene(source=words, target=READ), torch.no_grad():
        model(zoo.ZOO[name].source(), zoo.TARGET)
    return Recording(trace)


def searched(width, name="transformer", answer=True, numbers=None, prompt=((SOS,),) * 3):
    """A beam search over three sources, and what it found."""
    model = zoo.build(name)
    zoo.sharpen(model)
    numbers = torch.arange(3) if numbers is None else numbers
    words = SOURCES if name != "gpt" else [[], [], []]
    with record(model) as trace, scene(source=words):
        choices = decode(
            model, zoo.ZOO[name].source(), Tokens.of(prompt), Beam(width, power(1.0)), torch.tensor([9, 6, 12]), numbers
        )
        found = [best[0] for best in collect(choices)]
        if answer:
            ids = Tokens.of([h.tokens for h in found])
            with scene(target=[[SPELLING["target"](i) for i in h.tokens] for h in found], sources=numbers):
                tap(model, "answer", ids.data, "batch position:target")
    return model, Recording(trace, SPELLING), found


def test_the_last_cross_attention_is_shown_unless_told():
    recording = forced()
    view = recording.attention()
    (seen,) = recording.find("decoder.layers.1.cross.weights")
    assert view.name == seen.name and (view.layer, view.heads, view.head) == (1, 4, None)
    np.testing.assert_array_equal(view.weights, seen.data[0].numpy().mean(0, dtype=np.float64))
    assert view.rows == READ[0] and view.columns == SOURCES[0]
    assert view.sides == ("target", "source")
    np.testing.assert_allclose(view.weights.sum(1), 1, atol=1e-6)


def test_one_head_is_shown_to_the_bit():
    recording = forced()
    for head in range(4):
        view = recording.attention(layer=0, head=head)
        expected = recording.find("decoder.layers.0.cross.weights")[0].data[0, head].numpy()
        assert view.weights.dtype == np.float32 and view.weights.tobytes() == expected.tobytes()


def test_padding_is_not_drawn():
    view = forced().attention(row=1)
    assert view.columns == SOURCES[1] and view.weights.shape == (5, 3)
    np.testing.assert_allclose(view.weights.sum(1), 1, atol=1e-6)


def test_self_attention_is_found_by_name_and_wears_its_own_words():
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


def test_the_cells_of_the_picture_are_the_recorded_weights():
    recording = forced()
    weights = recording.find("decoder.layers.1.cross.weights")[0].data[0].numpy().mean(0, dtype=np.float64)
    told = re.findall(r": (\d\.\d{4})</title>", recording.attention().svg())
    assert told == [f"{w:.4f}" for w in weights.flatten()]


def test_without_words_places_are_numbered():
    model = zoo.build("transformer")
    with record(model) as trace, torch.no_grad():
        model(zoo.text(), zoo.TARGET)
    view = Recording(trace).attention()
    assert view.rows == view.columns == ["1", "2", "3", "4", "5"] and view.name.endswith("1.cross.weights")


@pytest.mark.parametrize("width", [1, 3, 5])
@pytest.mark.parametrize("name", ["transformer", "transformer-pre", "lstm-transformer"])
def test_the_steps_of_the_winner_are_joined(name, width):
    model, recording, found = searched(width, name)
    for row, best in enumerate(found):
        view = recording.attention(row=row)
        assert view.rows == [SPELLING["target"](i) for i in best.tokens] and view.columns == SOURCES[row]
        with record(model) as again, torch.no_grad():
            model(zoo.alone(zoo.text(), row), Tokens.of([[SOS, *best.tokens[:-1]]]))
        expected = again.find(view.name)[0].data[0].mean(0)
        np.testing.assert_allclose(view.weights, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("width", [1, 3])
def test_each_joined_row_is_a_row_that_decoding_used_to_the_bit(width):
    _, recording, found = searched(width)
    view = recording.attention(row=0, head=2)
    seen = recording.find(view.name)
    for step, row in enumerate(view.weights):
        used = {r[2, -1, :5].numpy().tobytes() for r in seen[step].data}
        assert np.ascontiguousarray(row).tobytes() in used
    assert len(view.weights) == len(found[0].tokens)


def test_the_winner_changes_its_place_in_the_beam():
    """Else the tests above could not tell a joined path from one slot."""
    _, recording, found = searched(5, "transformer-pre")
    slots = set()
    for r in recording.find("decoder.layers.0.cross.weights")[1:]:
        step = r.scene["step"]
        for source, best in enumerate(found):
            rows = [i for i, s in enumerate(r.scene["sources"].tolist()) if s == source]
            said = [r.scene["target"][i].tolist() for i in rows]
            slots |= {said.index(list(best.tokens[:step]))} if step < len(best.tokens) else set()
    assert len(slots) > 1


def test_self_attention_of_a_decoding_is_joined_into_a_triangle():
    model, recording, found = searched(3, "gpt", prompt=((SOS, 4, 5),) * 3)
    view = recording.attention()
    read = [SOS, 4, 5, *found[0].tokens[:-1]]
    assert view.rows == view.columns == [SPELLING["target"](i) for i in read]
    with record(model) as again, torch.no_grad():
        model(zoo.nothing(1), Tokens.of([read]))
    np.testing.assert_allclose(view.weights, again.find(view.name)[0].data[0].mean(0).numpy(), atol=1e-6)


def test_the_encoder_of_a_decoding_wears_the_words_of_the_source():
    _, recording, _ = searched(3)
    assert recording.attention("encoder.*", row=1).rows == SOURCES[1]


def test_sources_go_by_their_numbers():
    _, plain, _ = searched(3)
    _, numbered, _ = searched(3, numbers=torch.tensor([17, 4, 9]))
    for row, place in enumerate((1, 2, 0)):
        one, other = numbered.attention(row=row), plain.attention(row=place)
        assert one.columns == other.columns and one.rows == other.rows
        np.testing.assert_array_equal(one.weights, other.weights)


def test_without_an_answer_greedy_search_is_followed_to_its_end():
    _, recording, found = searched(1, answer=False)
    _, told, _ = searched(1)
    for row in range(3):
        view = recording.attention(row=row)
        assert view.rows[:-1] == [SPELLING["target"](i) for i in found[row].tokens[:-1]] and view.rows[-1] == "…"
        np.testing.assert_array_equal(view.weights, told.attention(row=row).weights)


def test_an_output_can_be_named_by_its_ids():
    _, recording, found = searched(3, answer=False)
    _, told, _ = searched(3)
    view = recording.attention(row=2, said=found[2].tokens)
    np.testing.assert_array_equal(view.weights, told.attention(row=2).weights)
    assert view.rows == told.attention(row=2).rows


def test_sentences_are_counted_through_all_passes_of_a_block():
    model = zoo.build("transformer")
    with record(model) as trace, torch.no_grad():
        for i in range(3):
            with scene(source=[SOURCES[i]], target=[READ[i]]):
                model(zoo.alone(zoo.text(), i), zoo.TARGET.select(torch.tensor([i])))
    assert [Recording(trace).attention(row=i).columns for i in range(3)] == SOURCES


def test_attention_that_is_recorded_place_by_place_is_joined():
    layer = nn.Identity()
    with record(nn.ModuleDict({"decoder": nn.ModuleDict({"cross": layer})})) as trace, scene(source=SOURCES[:1]):
        for t in range(3):
            with scene(position=t):
                tap(layer, "weights", torch.full((1, 5), t / 10), "batch key:source")
    view = Recording(trace).attention()
    np.testing.assert_allclose(view.weights, np.array([[0.0] * 5, [0.1] * 5, [0.2] * 5]), atol=1e-7)
    assert view.columns == SOURCES[0] and view.heads == 1


def test_weights_past_the_last_word_are_never_hidden():
    words = [["a"]]
    seen = Record(
        "cross.weights", ("batch", "query", "key"), torch.tensor([[[0.5, 0.5]]]), {"key": words}, {"source": words}
    )
    assert Recording(Trace(records=[seen])).attention().columns == ["a", "2"]


def test_the_table_of_contents_counts_steps():
    _, recording, found = searched(1)
    table = {seen.name: seen for seen in recording.names()}
    steps = len(recording.find("decoder.layers.1.cross.weights"))
    assert table["decoder.layers.1.cross.weights"].times == steps == max(len(h.tokens) for h in found)
    assert table["encoder.layers.0.attention.queries"].axes == ("batch", "head", "query", "width")
    assert repr(recording) == f"Recording({len(recording.records)} records, {len(table)} names)"


def test_a_notebook_sees_the_picture_and_the_names():
    recording = forced()
    shown = recording._repr_html_()
    assert recording.attention().svg() in shown and "<td>decoder.layers.1.cross.weights</td>" in shown
    assert recording.attention()._repr_html_() == recording.attention().svg()
    assert ElementTree.fromstring(shown).tag == "div"


def test_a_notebook_runs_nothing_that_a_recording_holds():
    evil = "<script>alert(1)</script>"
    seen = Record(f"{evil}.weights", ("batch", "query", "key"), torch.ones(1, 1, 1), {"key": [[evil]]}, {})
    other = Record(evil, (evil,), torch.ones(1), {}, {})
    shown = Recording(Trace(records=[seen, other]))._repr_html_()
    assert "<script" not in shown and shown.count("&lt;script&gt;") >= 4


def test_a_notebook_sees_the_states_of_what_has_no_attention():
    recording = forced("seq2seq")
    shown = recording._repr_html_()
    assert recording.states().svg() in shown and "<td>decoder.features</td>" in shown
    assert ElementTree.fromstring(shown).tag == "div"


def test_a_recording_without_a_picture_still_shows_its_names():
    shown = Recording(Trace(records=[Record("logits", ("batch",), torch.ones(1), {}, {})]))._repr_html_()
    assert "<svg" not in shown and "<td>logits</td>" in shown


def refused(kind, message, call):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_what_cannot_be_shown_is_said_to_be_missing():
    r = forced()
    name = "decoder.layers.1.cross.weights"
    refused(ConfigError, f"head: {name} has the heads 0 to 3, got 4", lambda: r.attention(head=4))
    refused(ConfigError, "layer: the layers of that attention are 0, 1, got 2", lambda: r.attention(layer=2))
    refused(ConfigError, "row: 3 sentences were recorded, 0 to 2, got 3", lambda: r.attention(row=3))
    refused(
        ConfigError,
        "name: no attention is called 'nowhere'; there are encoder.layers.0.attention.weights, "
        "encoder.layers.1.attention.weights, decoder.layers.0.attention.weights, decoder.layers.0.cross.weights, "
        "decoder.layers.1.attention.weights, decoder.layers.1.cross.weights",
        lambda: r.attention("nowhere"),
    )
    refused(
        ModelError,
        "nothing was recorded; did the model read something inside the block?",
        lambda: Recording(Trace()).attention(),
    )


def test_words_that_are_not_of_this_pass_are_refused():
    def seen(words):
        axes = ("batch", "query", "key")
        return Recording(Trace(records=[Record("w.weights", axes, torch.ones(2, 1, 2), {"key": words}, {})]))

    refused(
        ModelError,
        "w.weights: 3 words for 2 places; were the words of this pass given?",
        lambda: seen([["a", "b", "c"]] * 2).attention(),
    )
    refused(
        ModelError,
        "w.weights: row 1 of the axis 'key' has no words; 1 rows have some",
        lambda: seen([["a", "b"]]).attention(row=1),
    )


def test_an_output_that_was_never_said_is_refused():
    _, recording, _ = searched(1)
    refused(
        ModelError,
        "decoder.layers.1.cross.weights: no hypothesis of step 1 had said the beginning of the answer for source 0; "
        "was the answer decoded in another pass?",
        lambda: recording.attention(said=[0, 0, 0]),
    )


def test_hypotheses_that_nobody_can_tell_apart_are_refused():
    records = [
        Record("cross.weights", ("batch", "query", "key"), torch.ones(n, 1, 1), {}, {"step": t, "sources": [0] * n})
        for t, n in enumerate((1, 2))
    ]
    answer = Record("answer", ("batch", "position"), torch.tensor([[5, 3]]), {}, {})
    refused(
        ModelError,
        "cross.weights: step 1 has 2 hypotheses of source 0, and its scene has no target that says which led to the "
        "answer",
        lambda: Recording(Trace(records=[*records, answer])).attention(),
    )
