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
validate_every = 20
batch_tokens = 256
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


def test_a_language_model_reads_the_text_as_it_is(writer, run_cli):
    result = run_cli("look", writer, "The sea", "--view", "states", "--json")
    assert (result.code, result.err) == (0, "")
    data = json.loads(result.out)
    assert data["tokens"] == list("The sea") and data["name"] == "decoder.stack.layers.0.hidden"
    assert np.shape(data["values"]) == (7, 12) and data["width"] == 24


def test_a_gate_a_range_of_units_and_one_unit_can_be_chosen(writer, run_cli):
    gate = run_cli("look", writer, "The sea", "--view", "states", "--name", "forget", "--unit", "0-3")
    assert gate.out.splitlines()[0] == "decoder.stack.layers.0.gates, forget gate, 4 of 24 units"
    one = run_cli("look", writer, "The sea", "--view", "states", "--unit", "7")
    assert one.out.splitlines()[0] == "decoder.stack.layers.0.hidden, unit 7 of 24"
    assert one.out.splitlines()[3].startswith("T ")


def test_a_translators_states_are_those_over_the_text_it_was_given(trained, run_cli):
    result = run_cli("look", trained, "je suis", "--view", "states", "--json")
    data = json.loads(result.out)
    assert data["name"] == "encoder.layers.0.residual" and data["side"] == "source" and data["tokens"][-1] == "<EOS>"
    assert result.err.startswith("je suis -> ")
    answer = json.loads(run_cli("look", trained, "je suis", "--view", "states", "--name", "decoder.*", "--json").out)
    assert answer["side"] == "target" and answer["tokens"][0] == "<SOS>"


def test_lens_and_candidates_agree_on_the_prediction(writer, run_cli):
    lens, found = (
        json.loads(run_cli("look", writer, "The sea", "--view", view, "--json").out) for view in ("lens", "candidates")
    )
    assert lens["layers"][-1] == "layer 0" and lens["tokens"] == found["contexts"]
    assert [line[:10] for line in lens["candidates"][-1]] == found["candidates"]
    assert np.allclose([line[:10] for line in lens["probabilities"][-1]], found["probabilities"], atol=1e-6)
    assert found["actual"] == [*found["contexts"][1:], ""] and found["ranks"][-1] == 0


def test_a_generation_is_recorded_token_by_token(writer, trained, run_cli):
    found = json.loads(run_cli("look", writer, "The sea", "--view", "candidates", "--generate", "6", "--json").out)
    assert found["kind"] == "step" and len(found["contexts"]) == len(found["actual"]) == 6
    assert found["contexts"][1:] == found["actual"][:-1]  # each token is read before the next one is predicted
    refused = run_cli("look", trained, "je suis", "--generate", "6")
    assert refused.code == 2 and "--generate is for language models, and this model was trained to" in refused.err


def test_gradients_are_a_matrix_over_the_words(writer, run_cli):
    data = json.loads(run_cli("look", writer, "The sea", "--view", "gradients", "--json").out)
    assert data["rows"] == list("he sea") and data["columns"] == list("The se")
    assert np.shape(data["norms"]) == (6, 6) and data["decay"]["rate"] > 0
    text = run_cli("look", writer, "The sea", "--view", "gradients").out
    assert "each step further back multiplies the gradient by" in text.splitlines()[-1]


def test_gradients_of_a_translation_model_are_those_of_its_own_translation(trained, run_cli):
    data = json.loads(run_cli("look", trained, "je suis", "--view", "gradients", "--json").out)
    assert data["name"] == "decoder.residual" and data["columns"][0] == "<SOS>" and data["rows"][-1] == "<EOS>"
    source = json.loads(run_cli("look", trained, "je suis", "--view", "gradients", "--name", "encoder.*", "--json").out)
    assert source["side"] == "source" and source["columns"][-1] == "<EOS>"


def test_several_models_trained_and_not_are_one_picture(writer, other, run_cli, tmp_path):
    arguments = ("look", writer, "The wind", "--view", "gradients", "--against", other, "--against", "initial")
    data = json.loads(run_cli(*arguments, "--json").out)
    labels = [curve["label"] for curve in data["curves"]]
    assert labels == [str(writer), f"{writer}, initial", str(other), f"{other}, initial"]
    assert len({tuple(curve["norms"]) for curve in data["curves"]}) == 4
    path = tmp_path / "decay.svg"
    assert run_cli(*arguments, "-o", path).out == f"{path}\n"
    assert ElementTree.fromstring(path.read_text(encoding="utf-8")).tag.endswith("svg")
    assert run_cli(*arguments).out.count("each step further back") == 4


def test_all_models_get_the_same_target_and_the_view_names_it(trained, run_cli, tmp_path, monkeypatch):
    monkeypatch.setattr(TranslationModel, "predict_text", lambda model, text: "I am")  # of itself it says nothing yet
    earlier = min((trained / "checkpoints").iterdir())
    arguments = ("look", trained, "je suis", "--view", "gradients", "--against", earlier)
    data = json.loads(run_cli(*arguments, "--json").out)
    model, other = regard.load(trained), regard.load(earlier)
    assert model.step != other.step and data["target"] == "I am"
    for curve, one in zip(data["curves"], (model, other), strict=True):
        reading = one.teacher_forced("je suis", "I am")
        assert "".join(reading.tokens["target"][0]) == "<SOS> I am<EOS>"
        assert curve == reading.gradients(one.module).decay(curve["label"]).to_dict()
    assert "common target: I am" in run_cli(*arguments).out.splitlines()
    run_cli(*arguments, "-o", tmp_path / "a.svg")
    assert "; common target: I am<" in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_models_of_different_tasks_cannot_share_a_view(trained, writer, run_cli):
    result = run_cli("look", trained, "je suis", "--view", "gradients", "--against", writer)
    assert (result.code, result.out) == (3, "")
    assert result.err.endswith(
        f"error: {trained} was trained to translate and {writer} to generate; only models of one task can be compared\n"
    )


def test_the_initial_state_of_the_decoder_can_be_shown(writer, run_cli):
    data = json.loads(run_cli("look", writer, "The sea", "--view", "states", "--name", "start", "--json").out)
    assert data["name"] == "decoder.stack.layers.0.start" and data["tokens"] == ["(start)"]
    assert data["values"] == [[0.0] * 12]


def test_looking_changes_no_weight(writer, run_cli):
    before = {n: w.clone() for n, w in regard.load(writer).module.state_dict().items()}
    run_cli("look", writer, "The sea", "--view", "gradients", "--against", "initial")
    after = regard.load(writer).module.state_dict()
    assert all(bool((after[name] == weight).all()) for name, weight in before.items())


@pytest.mark.parametrize("view", ["states", "gradients"])
@pytest.mark.parametrize("suffix", ["svg", "json"])
def test_pictures_and_data_are_written(writer, run_cli, tmp_path, view, suffix):
    path = tmp_path / f"a.{suffix}"
    assert run_cli("look", writer, "The sea", "--view", view, "-o", path).out == f"{path}\n"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<svg") if suffix == "svg" else json.loads(text)["name"]


@pytest.mark.parametrize("view", ["states", "gradients"])
def test_a_view_is_written_as_pixels(writer, run_cli, tmp_path, monkeypatch, view):
    monkeypatch.setattr("regard.look.png.has_fonts", lambda: True)  # without fonts the cells are drawn alone
    path = tmp_path / "a.png"
    assert run_cli("look", writer, "The sea", "--view", view, "-o", path).out == f"{path}\n"
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG") and data.endswith(b"IEND\xaeB`\x82")


def test_all_of_a_pass_is_written_as_one_page(writer, trained, run_cli, tmp_path):
    path = tmp_path / "a.html"
    result = run_cli("look", trained, "je suis", "-o", path)
    assert (result.code, result.out) == (0, f"{path}\n")
    header = json.loads(path.read_text(encoding="utf-8").split('id="trace-header">')[1].split("</script>")[0])
    assert header["text"] == "je suis" and result.err == f"je suis -> {header['answer']}\n"
    assert header["model"]["name"] == str(trained) and header["omitted"] == []
    assert "".join(word["token"] for word in header["sequences"]["source"]).endswith("<EOS>")
    assert run_cli("look", writer, "The sea", "-o", path).code == 0  # no attention to look at, and still a page
    header = json.loads(path.read_text(encoding="utf-8").split('id="trace-header">')[1].split("</script>")[0])
    assert [word["token"] for word in header["sequences"]["read"]] == list("The sea")
    placed = [tensor for tensor in header["tensors"] if tensor["axes"] != ["width"]]
    assert all("read" in tensor["sides"].values() for tensor in placed)
    begun = [tensor["name"] for tensor in header["tensors"] if tensor not in placed]
    assert begun == [f"decoder.stack.layers.0.{name}" for name in ("start", "start_cell")]


def test_a_page_has_the_gradients_that_it_cannot_ask_for(writer, run_cli, tmp_path):
    path = tmp_path / "a.html"
    expected = json.loads(run_cli("look", writer, "The sea", "--view", "gradients", "--json").out)
    for view in ("gradients", "states"):
        assert run_cli("look", writer, "The sea", "--view", view, "-o", path).out == f"{path}\n"
        header = json.loads(path.read_text(encoding="utf-8").split('id="trace-header">')[1].split("</script>")[0])
        assert header["gradients"] == [expected] and "saliency" not in header
    refused = run_cli("look", writer, "The sea", "--view", "saliency", "-o", tmp_path / "b.html")
    assert refused.code != 0 and not (tmp_path / "b.html").exists()


def test_a_whole_trace_can_be_saved(writer, run_cli, tmp_path):
    path = tmp_path / "a.safetensors"
    run_cli("look", writer, "The sea", "--view", "states", "-o", path)
    assert regard.Recording.load(path).states().tokens == list("The sea")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--unit", "3"],
            2,
            "--unit belongs to --view states, maps, batchnorm, attribution, importance, integrated or patch, "
            "and the view is attention",
        ),
        (["--view", "states", "--head", "1"], 2, "--head belongs to --view attention, and the view is states"),
        (["--against", "runs/a"], 2, "--against belongs to --view gradients or patch, and the view is attention"),
        (["--view", "candidates", "--layer", "0"], 2, "--layer does not apply to --view candidates; leave it out"),
        (["--view", "lens", "--name", "cell"], 2, "--name does not apply to --view lens; leave it out"),
        (["--view", "states", "--unit", "x"], 2, "--unit x: expected a number such as 17, or a range such as 0-15"),
        (["--view", "states", "--unit", "9-3"], 2, "--unit 9-3: the range ends before it starts; try 3-9"),
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
            "no attention was recorded, only 9 other names; a model without attention, such as a recurrent one, "
            "has states: states(), or --view states",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(writer, run_cli, arguments, code, message):
    result = run_cli("look", writer, "The sea", *arguments)
    assert (result.code, result.err.splitlines()[-1]) == (code, f"error: {message}")


def test_a_text_too_short_for_gradients_is_refused(writer, run_cli):
    result = run_cli("look", writer, "T", "--view", "gradients")
    expected = "error: the target has 1 tokens; gradients through time need two: one input, one target\n"
    assert (result.code, result.err) == (4, expected)
