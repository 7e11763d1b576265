"""The probe: what is kept at a validation is what the model of that step did, and no weight learns otherwise for it."""

import numpy as np
import pytest

import regard
from regard.cli import invoke
from regard.train import checkpoint
from regard.train.events import Began
from regard.train.probe import KEPT, Probe, chosen, crowded, sentence, steps

TEXT = "je suis étudiant"
RECIPE = """
[data]
kind = "phrases"
count = 300
[text]
size = 200
[model]
{model}
[task]
scored = 0
[train]
steps = 8
every = 2
keep = 9
tokens = 512
select = "loss"
[decode]
minimum = 3
extra = 4
"""
MODELS = {
    "transformer": 'kind = "transformer"\nlayers = 1\nwidth = 16\nheads = 2\ninner = 32',
    "seq2seq": 'kind = "seq2seq"\nlayers = 1\nwidth = 16',
}


def trained(folder, name, *settings):
    recipe = folder / f"{name}.toml"
    recipe.write_text(RECIPE.format(model=MODELS[name]), encoding="utf-8")
    run = folder / "-".join([name, *(s.replace("=", "-").replace(" ", "") for s in settings)])
    return run, invoke(["train", str(recipe), "--out", str(run), "--quiet", *settings])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("probed")


@pytest.fixture(scope="module")
def probed(folder):
    run, code = trained(folder, "transformer", f"train.probe={TEXT}")
    assert code == 0
    return run


def test_each_validation_keeps_the_attention_that_its_checkpoint_gives(probed):
    assert (steps(probed), sentence(probed)) == ([2, 4, 6, 8], TEXT)
    for step in (2, 8):
        kept = regard.Recording.load(probed / "probe" / f"{step:08}.safetensors")
        model = regard.load(probed / "checkpoints" / f"{step:08}")
        with model.record() as recording:
            model.answer(TEXT)
        names = [seen.name for seen in recording.names() if seen.name.endswith("weights")]
        assert [record.name for record in kept.records] == names and len(names) == 3
        for name in names:
            for head in range(2):
                before, after = recording.attention(name, head=head), kept.attention(name, head=head)
                np.testing.assert_array_equal(after.weights, before.weights)
                assert after.columns == before.columns


def test_a_probe_changes_no_bit_of_what_is_learnt(probed, folder):
    plain, code = trained(folder, "transformer")
    found = [checkpoint.newest(run).checkpoint for run in (plain, probed)]
    assert code == 0 and found[0].digest == found[1].digest and not (plain / "probe").exists()


def test_a_model_without_attention_keeps_its_hidden_states(folder):
    run, code = trained(folder, "seq2seq", f"train.probe={TEXT}")
    assert code == 0
    kept = regard.Recording.load(run / "probe" / "00000008.safetensors")
    assert {record.name.rpartition(".")[2] for record in kept.records} == {"hidden"}
    assert len(kept.states("encoder.*").tokens) == kept.records[0].data.shape[1]


def test_a_run_that_goes_on_drops_what_it_sees_again_and_what_was_another_sentence(probed, tmp_path):
    for step in steps(probed):
        (tmp_path / "probe").mkdir(exist_ok=True)
        (tmp_path / "probe" / f"{step:08}.safetensors").write_bytes(b"")
    (tmp_path / "probe" / "sentence.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    Probe(tmp_path, TEXT, pytest.fail)(Began(4, 8, 9))
    assert steps(tmp_path) == [2, 4]
    Probe(tmp_path, "il mange", pytest.fail)(Began(4, 8, 9))
    assert (steps(tmp_path), sentence(tmp_path)) == ([], "il mange")


def test_a_sentence_that_the_model_cannot_read_is_told_once_and_training_ends_well(folder, capsys):
    (folder / "book.txt").write_text("the sea said nothing. " * 80, encoding="utf-8")
    (folder / "writer.toml").write_text(
        f'[task]\nkind = "generate"\nwindow = 16\nsamples = 0\n[data]\nkind = "text"\ntrain = "{folder}/book.txt"\n'
        '[model]\nkind = "rnnlm"\nlayers = 1\nwidth = 16\n[train]\nsteps = 4\nevery = 2\ntokens = 64\n',
        encoding="utf-8",
    )
    assert invoke(["train", str(folder / "writer.toml"), "--out", str(folder / "writer"), "train.probe=été"]) == 0
    told = capsys.readouterr().err
    assert told.count("warning  train.probe cannot be looked into") == 1
    assert "what this model has never read" in (folder / "writer" / "log.txt").read_text(encoding="utf-8")


def test_the_files_are_bounded_and_spread_over_the_training():
    left = list(range(1000))
    for gone in crowded(left):
        left.remove(gone)
    gaps = np.diff(left)
    assert len(left) == KEPT and left[0] == 0 and left[-1] == 999 and gaps.max() <= 4 * gaps.min()


def test_of_a_large_model_the_last_layers_are_kept(monkeypatch, probed):
    records = regard.Recording.load(probed / "probe" / "00000008.safetensors").records
    monkeypatch.setattr("regard.train.probe.ROOM", records[-1].data.numel())
    assert [record.name for record in chosen(records)] == [records[-1].name]


@pytest.mark.parametrize("text", [" ", "a" * 201])
def test_a_probe_that_is_no_sentence_is_refused_before_training(folder, capsys, text):
    run, code = trained(folder, "transformer", f"train.probe='{text}'")
    assert code == 2 and not run.exists()
    assert "probe: expected a sentence of 1 to 200 characters, got" in capsys.readouterr().err
