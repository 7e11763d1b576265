"""Captions: sources, preparation, training, resuming, use, where words looked, and files that cannot work."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import regard
from helpers import check_refused
from regard.data import Shards
from regard.data.shapes import make_scene
from regard.errors import ConfigError, DataError, InputError, LineError
from regard.look import Recording
from regard.metrics.captions import caption_bleu, exact_match
from regard.objective import Batch
from regard.run import Recipe, Run
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.base import EvalRequest
from regard.tasks.caption.sources import CaptionJsonl, CaptionTsv, RenderedShapes
from regard.tasks.caption.word_dropout import HiddenWords

CNN = "{kind='cnn',channels=[4,6],convolutions=1,dropout=0.0}"
VIT = "{kind='vit',layers=1,width=8,heads=2,patch=8}"
DECODERS = {
    "lstm": (CNN, "{kind='seq2seq',layers=1,width=8}"),
    "attention": (CNN, "{kind='rnnsearch',embedding=6,width=8,alignment=6,maxout=6}"),
    "vit": (VIT, "{kind='transformer',layers=1,width=8,heads=2,ffn_width=16,tie='target'}"),
}
TINY = [
    "task={kind='caption',bleu_images=5}", "data={kind='shapes',count=60}", "train.batch_tokens=16", "train.steps=3",
]  # fmt: skip


def settings(name):
    encoder, decoder = DECODERS[name]
    return [*TINY, f"model.encoder={encoder}", f"model.decoder={decoder}", "decode.max_extra_tokens=8"]


def train(folder, given):
    Run(folder).train(Recipe.read(None, given))
    return regard.load(folder)


@pytest.fixture(scope="module", params=DECODERS)
def model(request, tmp_path_factory):
    return train(tmp_path_factory.mktemp(request.param) / "run", settings(request.param))


@pytest.fixture(scope="module")
def attentive(tmp_path_factory):
    return train(tmp_path_factory.mktemp("attentive") / "run", settings("attention"))


@pytest.fixture
def photos(tmp_path):
    """Six pictures with two captions each, as TSV and as JSON Lines."""
    rows = []
    for i in range(6):
        scene = make_scene(i, "train")
        Image.fromarray(scene.render()).save(tmp_path / f"été {i}.png")
        rows += [(f"été {i}.png", caption) for caption in scene.captions]
    (tmp_path / "captions.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    lines = [{"image": f"été {i}.png", "captions": list(make_scene(i, "train").captions)} for i in range(6)]
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return tmp_path


def no_progress(*_, **__):
    pass


def test_every_model_captions_images_in_order_and_is_scored(model, tmp_path):
    Image.fromarray(make_scene(7, "test").render()).save(tmp_path / "photo.png")
    same = [str(tmp_path / "photo.png"), "shapes#test/7"]
    one, other = model.caption(same, beam=2)
    assert one == other == model.caption(tmp_path / "photo.png", beam=2)
    message = "image 2: expected the path of a file, got 3 (int)"
    check_refused(DataError, message, lambda: model.caption(["shapes#test/1", 3]))
    several = model.caption(["shapes#test/1", "", "shapes#test/2"], beam=3, n_best=2)
    assert [len(found) for found in several] == [2, 1, 2]
    assert several[1][0].text == ""
    assert several[0][0].value >= several[0][1].value
    found = model.evaluate(EvalRequest(split="unseen"), no_progress)
    assert [score.name for score in found.scores] == ["exact", "bleu"]
    assert found.unit == "images"
    assert len(found.examples) == len(found.per_unit) == 10


def test_each_word_has_a_map_of_weights_over_the_image(model):
    with model.record() as trace:
        answer = model.predict_text("shapes#test/3")
    assert isinstance(answer, str)
    if not trace.find("decoder*cross.weights"):
        assert model.recipe.model.decoder.kind == "seq2seq"
        return
    view = trace.caption_attention()
    is_vit = model.recipe.model.encoder.kind == "vit"
    assert view.maps.shape[1:] == ((4, 4) if is_vit else (16, 16))
    assert np.array_equal(view.pixels, make_scene(3, "test").render())
    matrix = trace.attention()
    before = 1 if is_vit else 0
    assert np.array_equal(view.maps.reshape(len(view.maps), -1), matrix.weights[:, before:])
    assert matrix.columns[before] == "1,1"
    assert matrix.columns[-1] == ("4,4" if is_vit else "16,16")
    assert list(view.labels) == matrix.rows
    total = view.maps.sum((1, 2)) + matrix.weights[:, :before].sum(1)
    assert total == pytest.approx(np.ones(len(total)), abs=1e-5)
    assert view.svg().count("<image ") == len(view.labels)


def test_a_saved_trace_draws_the_same_without_the_model(attentive, tmp_path):
    with attentive.record() as trace:
        attentive.predict_text("shapes#test/3")
    trace.save(tmp_path / "trace.safetensors")
    loaded = Recording.load(tmp_path / "trace.safetensors")
    assert loaded.caption_attention().svg() == trace.caption_attention().svg()
    condensed = {record.name: record for record in trace.condense().records}
    assert condensed["encoder.image"].axes == ("batch", "channel", "row", "column")
    assert "<html" in trace.html()


def test_a_batch_of_images_is_recorded_with_the_image_of_each(attentive):
    with attentive.record() as trace:
        attentive.caption(["shapes#test/3", "shapes#test/4"])
    for row, number in enumerate((3, 4)):
        assert np.array_equal(trace.caption_attention(row=row).pixels, make_scene(number, "test").render())


def test_gradients_through_time_and_states_are_shown(attentive):
    forced = attentive.teacher_forced("shapes#test/3")
    assert forced.gradients(attentive.module).norms.shape[0] >= 1
    with attentive.record() as trace:
        attentive.predict_text("shapes#test/3")
    assert trace.states().name.startswith("decoder")
    assert trace.candidates().to_dict()


def test_a_captioner_learns_colors(tmp_path):
    given = [
        *settings("attention"),
        "train.steps=60",
        "train.schedule={kind='constant',lr=0.02}",
        "train.batch_tokens=32",
    ]
    model = train(tmp_path / "run", given)
    found = model.evaluate(EvalRequest(split="valid"), no_progress)
    assert found.scores[1].value > 20  # BLEU: it knows the form of captions
    assert model.caption("shapes#valid/0").startswith("a ")


def test_training_resumes_bit_for_bit(tmp_path):
    given = [*settings("attention"), "train.steps=6", "train.validate_every=3"]
    whole = train(tmp_path / "whole", given)
    train(tmp_path / "halved", [*given, "train.steps=3"])
    resumed = train(tmp_path / "halved", given)
    for (name, one), other in zip(whole.module.state_dict().items(), resumed.module.state_dict().values(), strict=True):
        assert one.equal(other), name


def test_each_epoch_shows_one_of_the_captions_of_an_image(tmp_path):
    recipe = Recipe.read(None, settings("attention"))
    Run(tmp_path).train(recipe)
    loader = recipe.loader(tmp_path)
    rows = np.arange(40)
    chosen = [tuple(map(tuple, loader.batch(loader.train, rows, epoch).target.data.tolist())) for epoch in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]
    texts = [loader.tokenizer.decode(ids[1:]) for ids in chosen[0]]
    for i, text in enumerate(texts):
        assert text.split("<")[0].strip() in make_scene(i, "train").captions
    assert {text.split("<")[0].strip() == make_scene(i, "train").captions[0] for i, text in enumerate(texts)} == {
        True,
        False,
    }


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
def test_files_of_your_own_group_the_captions_of_an_image(photos, ending, monkeypatch):
    kind = {"tsv": CaptionTsv, "jsonl": CaptionJsonl}[ending]
    found = kind(train=str(photos / f"captions.{ending}")).examples("train")
    assert [one.captions for one in found] == [make_scene(i, "train").captions for i in range(6)]
    assert found[0].image == str(photos / "été 0.png")
    monkeypatch.chdir(photos.parent)
    assert kind(train=str(photos / f"captions.{ending}"), images=photos.name).examples("train")[5].captions


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
def test_a_model_is_trained_and_scored_on_files_of_your_own(photos, ending, tmp_path):
    file = photos / f"captions.{ending}"
    data = f"data={{kind='{ending}',train='{file}',valid='{file}',size=16}}"
    model = train(tmp_path / "run", [*settings("attention"), data])
    assert len(Shards.open(tmp_path / "run" / "data" / "train")) == 6
    found = model.evaluate(EvalRequest(files=[file]), no_progress)
    assert found.scores[0].n == 6


def test_without_a_valid_file_a_share_of_the_images_is_held_out(photos):
    recipe = Recipe.read(
        None, [*settings("attention"), f"data={{kind='tsv',train='{photos}/captions.tsv',valid_share=0.4}}"]
    )
    parts = [{one.image for one in recipe.preparation().examples(split)} for split in ("train", "valid")]
    assert not parts[0] & parts[1]
    assert len(parts[0] | parts[1]) == 6
    assert all(parts)


def spoiled(photos, content, ending="tsv"):
    path = photos / f"bad.{ending}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "ending", "message"),
    [
        ("", "tsv", "bad.tsv is empty; expected an image and its caption on each line"),
        ("\n\n", "tsv", "bad.tsv is empty"),
        ("été 0.png\ta ring\nmissing.png\ta dog\n", "tsv", "bad.tsv, line 2: there is no image"),
        ("été 0.png a ring\n", "tsv", "bad.tsv, line 1: expected an image, a tab and a caption, found no tab"),
        ("été 0.png\t  \n", "tsv", "bad.tsv, line 1: the caption is empty"),
        ("\ta ring\n", "tsv", "bad.tsv, line 1: the name of the image is empty"),
        ("", "jsonl", "bad.jsonl is empty"),
        ('{"image": "missing.png", "caption": "a"}\n', "jsonl", "bad.jsonl, line 1: there is no image"),
        ('{"image": "été 0.png"}\n', "jsonl", 'bad.jsonl, line 1: there is no key "caption"'),
        ('{"image": "été 0.png", "captions": []}\n', "jsonl", 'line 1: expected a list of texts under "captions"'),
        ('{"image": "été 0.png", "captions": [3]}\n', "jsonl", 'line 1: expected a text under "captions"'),
        ("[]\n", "jsonl", "bad.jsonl, line 1: expected a JSON object"),
    ],
)
def test_a_captions_file_that_cannot_work_is_named_with_its_line(photos, content, ending, message):
    kind = {"tsv": CaptionTsv, "jsonl": CaptionJsonl}[ending]
    with pytest.raises(DataError, match="bad") as error:
        kind(train=str(spoiled(photos, content, ending))).examples("train")
    assert message in str(error.value)


def test_a_captions_file_that_is_not_there(photos):
    with pytest.raises(InputError, match=r"nowhere\.tsv"):
        CaptionTsv(train=str(photos / "nowhere.tsv")).examples("train")


@pytest.mark.parametrize("damage", ["text", "truncated"])
def test_a_damaged_image_is_named_with_the_line_of_its_caption(photos, damage, tmp_path):
    file = photos / "été 2.png"
    file.write_bytes(b"only a text" if damage == "text" else file.read_bytes()[:300])
    data = f"data={{kind='tsv',train='{photos}/captions.tsv',valid='{photos}/captions.tsv'}}"
    with pytest.raises(DataError, match=r"captions.tsv, line 5: .*été 2.png: (this is no image|the image cannot be)"):
        Run(tmp_path / "run").train(Recipe.read(None, [*settings("attention"), data]))
    assert not (tmp_path / "run" / "data" / "train").exists()


def test_an_image_that_cannot_be_captioned_is_an_error_with_its_line(attentive, tmp_path):
    (tmp_path / "text.png").write_text("only a text")
    with pytest.raises(LineError, match=r"text.png: this is no image") as error:
        attentive.caption(["shapes#test/1", str(tmp_path / "text.png")])
    assert error.value.line == 2
    with pytest.raises(LineError, match="there is no such image"):
        attentive.caption(tmp_path / "nowhere.png")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["model.encoder={kind='recurrent'}"], 'model.encoder.kind = "recurrent" does not read images; use cnn'),
        (["data.size=12"], "patch = 8 does not divide images of 12 x 12 pixels"),
        (["data.size=4"], "patch = 8 does not divide images of 4 x 4 pixels"),
        (["data.size=0"], "size = 0 must be at least 1"),
        (["data.size=5000"], "size = 5000 must be at most 1024 pixels"),
        (["task.max_tokens=0"], "max_tokens = 0 must be at least 1"),
        (["task.bleu_images=0", "train.best_metric=bleu"], 'train.best_metric = "bleu" needs images'),
        (["text.kind=bpe", "text.dropout=0.1"], "captions are tokenized once, in preparation; set it to 0"),
        (["model.decoder.positions=learned", "model.decoder.max_positions=10"], "takes 41 positions, <EOS> included"),
    ],
)
def test_recipes_that_cannot_work_are_refused_before_any_work(given, message):
    with pytest.raises(ConfigError) as error:
        Recipe.read(None, [*settings("vit"), *given])
    assert message in str(error.value)


@pytest.mark.parametrize("task", ["translate", "generate"])
def test_other_tasks_refuse_an_encoder_of_images(task):
    data = {"translate": "phrases", "generate": "shakespeare"}[task]
    model = f"model={{kind='encoder-decoder',encoder={CNN},decoder={{kind='seq2seq',layers=1,width=8}}}}"
    with pytest.raises(ConfigError, match="reads images"):
        Recipe.read(None, [f"task.kind={task}", f"data.kind={data}", model])


def test_captions_that_are_all_too_long(tmp_path):
    with pytest.raises(DataError, match=r"every caption of train has more than task.max_tokens = 3 tokens; raise it"):
        Run(tmp_path / "run").train(Recipe.read(None, [*settings("attention"), "task.max_tokens=3"]))


def test_the_unseen_split_is_one_of_the_splits_and_others_are_refused():
    assert RenderedShapes().splits() == ("train", "valid", "test", "unseen", "unseen-pairs")
    with pytest.raises(ConfigError, match='there is no split "dev"'):
        RenderedShapes().examples("dev")


def test_scores_count_any_reference_and_differ_in_their_number():
    references = [["a ring", "one ring"], ["a dog"]]
    assert exact_match(["one ring", "a cat"], references).value == 50
    assert caption_bleu(["a ring", "a dog"], [["a ring"], ["a dog"]]).signature.startswith("nrefs:1")
    with pytest.raises(DataError, match="nothing to score"):
        exact_match([], [])


def test_words_are_hidden_from_the_decoder_in_training_only():
    class Reader(nn.Module):
        def forward(self, source, read):
            self.read = read.data
            return read.data[..., None].float()

    batch, model = Batch(None, Tokens.pad([[2, *range(10, 60), 3]])), Reader()
    task = HiddenWords(Words(80), share=0.5, unk=1)
    torch.manual_seed(1)
    task.features(model.train(), batch, None)
    hidden = model.read == 1
    assert 10 < int(hidden.sum()) < 40
    assert not hidden[0, 0]
    assert model.read[~hidden].equal(batch.target.data[:, :-1][~hidden])
    assert task.targets(batch)["next"][1].equal(batch.target.data[:, 1:])  # what is predicted stays
    task.features(model.eval(), batch, None)
    assert model.read.equal(batch.target.data[:, :-1])
