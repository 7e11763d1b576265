"""regard look: states and gradients, of a translator and of a language model."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import regard
from regard.cli import invoke
from regard.tasks.translate.recipe import TranslationModel

BOOK = "".join(f"The wind blew {word}, and the sea said nothing.\n" for word in ("north", "south", "east", "west") * 40)
WRITER = """
[task]
kind = "generate"
window = 16
[data]
kind = "text"
train = "{folder}/book.txt"
[model]
kind = "rnnlm"
cell = "{cell}"
layers = 1
width = 24
dropout = 0.0
[train]
steps = 20
every = 20
tokens = 256
"""


def trained_writer(folder: Path, cell: str) -> Path:
    (folder / "book.txt").write_text(BOOK, encoding="utf-8")
    recipe = folder / f"{cell}.toml"
    recipe.write_text(WRITER.format(folder=folder, cell=cell), encoding="utf-8")
    assert invoke(["train", str(recipe), "--out", str(folder / cell), "--quiet"]) == 0
    return folder / cell


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return trained_writer(tmp_path_factory.mktemp("writer"), "lstm")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return trained_writer(tmp_path_factory.mktemp("other"), "tanh")


def test_a_language_model_reads_the_text_as_it_is(writer, say):
    told = say("look", writer, "The sea", "--view", "states", "--json")
    assert (told.code, told.err) == (0, "")
    data = json.loads(told.out)
    assert data["tokens"] == list("The sea") and data["name"] == "decoder.stack.layers.0.hidden"
    assert np.shape(data["values"]) == (7, 12) and data["width"] == 24


def test_a_gate_a_range_of_units_and_one_unit_can_be_chosen(writer, say):
    gate = say("look", writer, "The sea", "--view", "states", "--name", "forget", "--unit", "0-3")
    assert gate.out.splitlines()[0] == "decoder.stack.layers.0.gates, forget gate, 4 of 24 units"
    one = say("look", writer, "The sea", "--view", "states", "--unit", "7")
    assert one.out.splitlines()[0] == "decoder.stack.layers.0.hidden, unit 7 of 24"
    assert one.out.splitlines()[3].startswith("T ")


def test_a_translators_states_are_those_over_the_text_it_was_given(trained, say):
    told = say("look", trained, "je suis", "--view", "states", "--json")
    data = json.loads(told.out)
    assert data["name"] == "encoder.layers.0.residual" and data["side"] == "source" and data["tokens"][-1] == "<EOS>"
    assert told.err.startswith("je suis -> ")
    said = json.loads(say("look", trained, "je suis", "--view", "states", "--name", "decoder.*", "--json").out)
    assert said["side"] == "target" and said["tokens"][0] == "<SOS>"


def test_gradients_are_a_matrix_over_the_words(writer, say):
    data = json.loads(say("look", writer, "The sea", "--view", "gradients", "--json").out)
    assert data["rows"] == list("he sea") and data["columns"] == list("The se")
    assert np.shape(data["norms"]) == (6, 6) and data["decay"]["rate"] > 0
    text = say("look", writer, "The sea", "--view", "gradients").out
    assert "each step further back multiplies the gradient by" in text.splitlines()[-1]


def test_gradients_of_a_translator_are_those_of_what_it_said(trained, say):
    data = json.loads(say("look", trained, "je suis", "--view", "gradients", "--json").out)
    assert data["name"] == "decoder.residual" and data["columns"][0] == "<SOS>" and data["rows"][-1] == "<EOS>"
    source = json.loads(say("look", trained, "je suis", "--view", "gradients", "--name", "encoder.*", "--json").out)
    assert source["side"] == "source" and source["columns"][-1] == "<EOS>"


def test_several_models_trained_and_not_are_one_picture(writer, other, say, tmp_path):
    arguments = ("look", writer, "The wind", "--view", "gradients", "--against", other, "--against", "initial")
    data = json.loads(say(*arguments, "--json").out)
    labels = [curve["label"] for curve in data["curves"]]
    assert labels == [str(writer), f"{writer}, initial", str(other), f"{other}, initial"]
    assert len({tuple(curve["norms"]) for curve in data["curves"]}) == 4
    path = tmp_path / "decay.svg"
    assert say(*arguments, "-o", path).out == f"{path}\n"
    assert ElementTree.fromstring(path.read_text(encoding="utf-8")).tag.endswith("svg")
    assert say(*arguments).out.count("each step further back") == 4


def test_models_are_asked_for_the_same_words_and_the_picture_says_which(trained, say, tmp_path, monkeypatch):
    monkeypatch.setattr(TranslationModel, "answer", lambda model, text: "I am")  # of itself it says nothing yet
    earlier = min((trained / "checkpoints").iterdir())
    arguments = ("look", trained, "je suis", "--view", "gradients", "--against", earlier)
    data = json.loads(say(*arguments, "--json").out)
    model, other = regard.load(trained), regard.load(earlier)
    assert model.step != other.step and data["wanted"] == "I am"
    for curve, one in zip(data["curves"], (model, other), strict=True):
        reading = one.reading("je suis", "I am")
        assert "".join(reading.words["target"][0]) == "<SOS> I am<EOS>"
        assert curve == reading.gradients(one.module).decay(curve["label"]).to_dict()
    assert "wanted of all: I am" in say(*arguments).out.splitlines()
    say(*arguments, "-o", tmp_path / "a.svg")
    assert "; wanted of all: I am<" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_models_that_cannot_be_compared_are_not_one_picture(trained, writer, say):
    told = say("look", trained, "je suis", "--view", "gradients", "--against", writer)
    assert (told.code, told.out) == (3, "")
    assert told.err.endswith(
        f"error: {trained} was trained to translate and {writer} to generate; only models of one task can be compared\n"
    )


def test_what_the_decoder_begins_from_is_a_state(writer, say):
    data = json.loads(say("look", writer, "The sea", "--view", "states", "--name", "start", "--json").out)
    assert data["name"] == "decoder.stack.layers.0.start" and data["tokens"] == ["(start)"]
    assert data["values"] == [[0.0] * 12]


def test_looking_changes_no_weight(writer, say):
    before = {n: w.clone() for n, w in regard.load(writer).module.state_dict().items()}
    say("look", writer, "The sea", "--view", "gradients", "--against", "initial")
    after = regard.load(writer).module.state_dict()
    assert all(bool((after[name] == weight).all()) for name, weight in before.items())


@pytest.mark.parametrize("view", ["states", "gradients"])
@pytest.mark.parametrize("suffix", ["svg", "json"])
def test_pictures_and_data_are_written(writer, say, tmp_path, view, suffix):
    path = tmp_path / f"a.{suffix}"
    assert say("look", writer, "The sea", "--view", view, "-o", path).out == f"{path}\n"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<svg") if suffix == "svg" else json.loads(text)["name"]


@pytest.mark.parametrize("view", ["states", "gradients"])
def test_a_view_is_written_as_pixels(writer, say, tmp_path, monkeypatch, view):
    monkeypatch.setattr("regard.look.png.has_fonts", lambda: True)  # without fonts the cells are drawn alone
    path = tmp_path / "a.png"
    assert say("look", writer, "The sea", "--view", view, "-o", path).out == f"{path}\n"
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG") and data.endswith(b"IEND\xaeB`\x82")


def test_all_of_a_pass_is_written_as_one_page(writer, trained, say, tmp_path):
    path = tmp_path / "a.html"
    told = say("look", trained, "je suis", "-o", path)
    assert (told.code, told.out) == (0, f"{path}\n")
    header = json.loads(path.read_text(encoding="utf-8").split('id="trace-header">')[1].split("</script>")[0])
    assert header["text"] == "je suis" and told.err == f"je suis -> {header['answer']}\n"
    assert header["model"]["name"] == str(trained) and header["left"] == []
    assert "".join(word["token"] for word in header["sequences"]["source"]).endswith("<EOS>")
    assert say("look", writer, "The sea", "-o", path).code == 0  # no attention to look at, and still a page
    header = json.loads(path.read_text(encoding="utf-8").split('id="trace-header">')[1].split("</script>")[0])
    assert [word["token"] for word in header["sequences"]["read"]] == list("The sea")
    placed = [tensor for tensor in header["tensors"] if tensor["axes"] != ["width"]]
    assert all("read" in tensor["sides"].values() for tensor in placed)
    begun = [tensor["name"] for tensor in header["tensors"] if tensor not in placed]
    assert begun == [f"decoder.stack.layers.0.{name}" for name in ("start", "start_cell")]


def test_a_page_has_the_gradients_that_it_cannot_ask_for(writer, say, tmp_path):
    path = tmp_path / "a.html"
    wanted = json.loads(say("look", writer, "The sea", "--view", "gradients", "--json").out)
    for view in ("gradients", "states"):
        assert say("look", writer, "The sea", "--view", view, "-o", path).out == f"{path}\n"
        header = json.loads(path.read_text(encoding="utf-8").split('id="trace-header">')[1].split("</script>")[0])
        assert header["gradients"] == [wanted] and "saliency" not in header
    refused = say("look", writer, "The sea", "--view", "saliency", "-o", tmp_path / "b.html")
    assert refused.code != 0 and not (tmp_path / "b.html").exists()


def test_everything_that_was_seen_can_be_kept(writer, say, tmp_path):
    path = tmp_path / "a.safetensors"
    say("look", writer, "The sea", "--view", "states", "-o", path)
    assert regard.Recording.load(path).states().tokens == list("The sea")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--unit", "3"], 2, "--unit belongs to --view states, and the view is attention"),
        (["--view", "states", "--head", "1"], 2, "--head belongs to --view attention, and the view is states"),
        (["--against", "runs/a"], 2, "--against belongs to --view gradients, and the view is attention"),
        (["--view", "states", "--unit", "x"], 2, "--unit x: expected a number such as 17, or a range such as 0-15"),
        (["--view", "states", "--unit", "9-3"], 2, "--unit 9-3: the range ends before it begins; try 3-9"),
        (["--view", "states", "--unit", "24"], 2, "unit: decoder.stack.layers.0.hidden has the units 0 to 23, got 24"),
        (
            ["--view", "gradients", "-o", "a.safetensors"],
            2,
            "-o a.safetensors: expected a name that ends in .svg, .png, .json, .html",
        ),
        (
            ["--view", "gradients", "--against", "initial", "-o", "a.html"],
            2,
            "-o a.html: expected a name that ends in .svg, .png, .json",
        ),
        (
            ["--view", "gradients", "--against", "runs/none"],
            3,
            "runs/none is not a run: there is no such directory",
        ),
        (
            [],
            3,
            "no attention was recorded, only 6 other names; a model that has none, such as one of recurrent layers, "
            "shows its states: states(), or --view states",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(writer, say, arguments, code, message):
    told = say("look", writer, "The sea", *arguments)
    assert (told.code, told.err.splitlines()[-1]) == (code, f"error: {message}")


def test_a_text_too_short_for_gradients_is_refused(writer, say):
    told = say("look", writer, "T", "--view", "gradients")
    expected = "error: the target has 1 tokens; gradients through time need two: one to read, one to want\n"
    assert (told.code, told.err) == (4, expected)
