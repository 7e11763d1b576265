"""The probe stores what the checkpoint of each validation computes, and does not change the training."""

import numpy as np
import pytest

import regard
from regard.cli import invoke
from regard.train import checkpoint
from regard.train.events import Began
from regard.train.probe import MAX_FILES, Probe, probe_steps, probe_text, select_records, steps_to_drop

TEXT = "je suis étudiant"
RECIPE = """
[data]
kind = "phrases"
count = 300
[text]
vocab_size = 200
[model]
{model}
[task]
bleu_sentences = 0
[train]
steps = 8
validate_every = 2
keep_checkpoints = 9
batch_tokens = 512
best_metric = "loss"
[decode]
min_length = 3
max_extra_tokens = 4
"""
MODELS = {
    "transformer": 'kind = "transformer"\nlayers = 1\nwidth = 16\nheads = 2\nffn_width = 32',
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


def test_each_validation_stores_the_attention_of_its_checkpoint(probed):
    assert (probe_steps(probed), probe_text(probed)) == ([2, 4, 6, 8], TEXT)
    for step in (2, 8):
        stored = regard.Recording.load(probed / "probe" / f"{step:08}.safetensors")
        model = regard.load(probed / "checkpoints" / f"{step:08}")
        with model.record() as recording:
            model.predict_text(TEXT)
        names = [entry.name for entry in recording.contents() if entry.name.endswith("weights")]
        assert [record.name for record in stored.records] == names and len(names) == 3
        for name in names:
            for head in range(2):
                before, after = recording.attention(name, head=head), stored.attention(name, head=head)
                np.testing.assert_array_equal(after.weights, before.weights)
                assert after.columns == before.columns


def test_a_probe_does_not_change_the_trained_weights(probed, folder):
    plain, code = trained(folder, "transformer")
    found = [checkpoint.newest(run).checkpoint for run in (plain, probed)]
    assert code == 0 and found[0].digest == found[1].digest and not (plain / "probe").exists()


def test_of_a_model_without_attention_hidden_states_are_stored(folder):
    run, code = trained(folder, "seq2seq", f"train.probe={TEXT}")
    assert code == 0
    stored = regard.Recording.load(run / "probe" / "00000008.safetensors")
    assert {record.name.rpartition(".")[2] for record in stored.records} == {"hidden"}
    assert len(stored.states("encoder.*").tokens) == stored.records[0].data.shape[1]


def test_a_resumed_run_drops_steps_that_it_repeats_and_recordings_of_another_text(probed, tmp_path):
    for step in probe_steps(probed):
        (tmp_path / "probe").mkdir(exist_ok=True)
        (tmp_path / "probe" / f"{step:08}.safetensors").write_bytes(b"")
    (tmp_path / "probe" / "sentence.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    Probe(tmp_path, TEXT, pytest.fail)(Began(4, 8, 9))
    assert probe_steps(tmp_path) == [2, 4]
    Probe(tmp_path, "il mange", pytest.fail)(Began(4, 8, 9))
    assert (probe_steps(tmp_path), probe_text(tmp_path)) == ([], "il mange")


def test_a_text_that_the_model_cannot_read_gives_one_warning_and_training_finishes(folder, capsys):
    (folder / "book.txt").write_text("the sea said nothing. " * 80, encoding="utf-8")
    (folder / "writer.toml").write_text(
        f'[task]\nkind = "generate"\nwindow = 16\nsamples = 0\n[data]\nkind = "text"\ntrain = "{folder}/book.txt"\n'
        '[model]\nkind = "rnnlm"\nlayers = 1\nwidth = 16\n[train]\nsteps = 4\nvalidate_every = 2\nbatch_tokens = 64\n',
        encoding="utf-8",
    )
    assert invoke(["train", str(folder / "writer.toml"), "--out", str(folder / "writer"), "train.probe=été"]) == 0
    err = capsys.readouterr().err
    assert err.count("warning  train.probe failed and is disabled from here on") == 1
    assert "tokens that this model does not know" in (folder / "writer" / "log.txt").read_text(encoding="utf-8")


def test_the_files_are_bounded_and_spread_over_the_training():
    remaining = list(range(1000))
    for step in steps_to_drop(remaining):
        remaining.remove(step)
    gaps = np.diff(remaining)
    assert len(remaining) == MAX_FILES and remaining[0] == 0 and remaining[-1] == 999 and gaps.max() <= 4 * gaps.min()


def test_of_a_large_model_only_the_last_layers_are_stored(monkeypatch, probed):
    records = regard.Recording.load(probed / "probe" / "00000008.safetensors").records
    monkeypatch.setattr("regard.train.probe.MAX_NUMBERS", records[-1].data.numel())
    assert [record.name for record in select_records(records)] == [records[-1].name]


@pytest.mark.parametrize("text", [" ", "a" * 201])
def test_an_empty_or_long_probe_is_refused_before_training(folder, capsys, text):
    run, code = trained(folder, "transformer", f"train.probe='{text}'")
    assert code == 2 and not run.exists()
    assert "probe: expected a sentence of 1 to 200 characters, got" in capsys.readouterr().err
