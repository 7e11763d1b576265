"""Clips: reading animations and folders of frames, moving shapes, the CNN + LSTM, and clips that cannot work."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.data.clips import load_clip
from regard.data.images import ImageShape
from regard.data.moving_shapes import DIRECTIONS, FRAMES, SIZE, make_clip
from regard.errors import ConfigError, DataError, InputError, LineError
from regard.models.cnn_lstm import CNNLSTMConfig
from regard.run import Recipe, Run
from regard.sequence import Clips
from regard.spaces import Pixels
from regard.tasks.base import EvalRequest
from regard.tasks.classify.clip_sources import ClipFolder, MovingShapes, read_clip_folder

SHAPE = ImageShape(SIZE, SIZE, frames=FRAMES)
TINY = [
    "task={kind='classify',pool='last',dropout=0.0}", "model={kind='cnn-lstm',channels=[4,6],width=8}",
    "data={kind='moving-shapes',count=80}", "train.batch_tokens=16", "train.steps=3",
]  # fmt: skip


def no_progress(*_, **__):
    pass


def save_animation(path, frames, **options):
    images = [Image.fromarray(frame) for frame in frames]
    images[0].save(path, save_all=True, append_images=images[1:], duration=100, **options)
    return path


def save_frames(folder, frames):
    folder.mkdir(parents=True)
    for i, frame in enumerate(frames):
        Image.fromarray(frame).save(folder / f"{i:03}.png")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips") / "run"
    Run(folder).train(Recipe.read(None, TINY))
    return regard.load(folder)


def test_a_shape_moves_by_its_speed_and_stays_in_the_picture_until_the_next_frame():
    for i in range(400):
        clip = make_clip(i, "train")
        places = np.array([clip.position(t) for t in range(FRAMES + 1)])
        assert places.min() >= clip.radius - 1e-9
        assert places.max() <= SIZE - clip.radius + 1e-9
        steps = np.diff(places, axis=0)
        assert np.allclose(steps, clip.speed * np.array(DIRECTIONS[clip.direction]))
        assert clip.next_position == tuple(places[-1])


def test_directions_take_turns_and_splits_share_no_clip():
    assert [make_clip(i, "test").direction for i in range(8)] == list(DIRECTIONS)
    drawn = {make_clip(i, split).render().tobytes() for split in ("train", "valid", "test") for i in range(20)}
    assert len(drawn) == 60


def test_one_frame_does_not_show_the_direction():
    """The middle of a shape in the third frame is about equally far from the borders, whatever the direction."""
    middles = {name: [] for name in DIRECTIONS}
    for i in range(4000):
        clip = make_clip(i, "train")
        middles[clip.direction].append(clip.position(3))
    means = np.array([np.mean(found, 0) for found in middles.values()])
    assert np.abs(means - SIZE / 2).max() < 0.6


@pytest.mark.parametrize("ending", ["png", "webp"])
def test_an_animation_and_a_folder_of_frames_are_the_clip_that_was_saved(ending, tmp_path):
    frames = make_clip(3, "test").render()
    rendered = load_clip("clips#test/3", SHAPE).pixels
    assert rendered.shape == (FRAMES, 3, SIZE, SIZE)
    options = {"lossless": True} if ending == "webp" else {}
    animation = save_animation(tmp_path / f"été.{ending}", frames, **options)
    assert np.array_equal(load_clip(str(animation), SHAPE).pixels, rendered)
    assert np.array_equal(load_clip(str(save_frames(tmp_path / "frames", frames)), SHAPE).pixels, rendered)


def test_a_gif_is_read_up_to_its_palette(tmp_path):
    frames = make_clip(3, "test").render()
    animation = save_animation(tmp_path / "moving.gif", frames)
    found = load_clip(str(animation), SHAPE).pixels.astype(int)
    assert np.abs(found - load_clip("clips#test/3", SHAPE).pixels).mean() < 8


def test_longer_and_shorter_clips_are_resampled_evenly(tmp_path):
    frames = [np.full((8, 8, 3), 10 * i, np.uint8) for i in range(11)]
    shape = ImageShape(8, 8, 1, frames=6)
    found = load_clip(str(save_frames(tmp_path / "long", frames)), shape).pixels[:, 0, 0, 0]
    assert found.tolist() == [0, 20, 40, 60, 80, 100]
    found = load_clip(str(save_frames(tmp_path / "short", frames[:2])), shape).pixels[:, 0, 0, 0]
    assert found.tolist() == [0, 0, 0, 10, 10, 10]


def test_the_encoder_reads_frames_in_order_and_other_clips_change_nothing():
    torch.manual_seed(0)
    encoder = CNNLSTMConfig(channels=(4, 6), width=8).build_encoder(Pixels(3, 9, 7)).eval()
    clips = Clips(torch.randn(3, 5, 3, 9, 7))
    with torch.no_grad():
        memory = encoder(clips)
        assert memory.states.data.shape == (3, 5, 8)
        torch.testing.assert_close(memory.final[-1][0], memory.states.data[:, -1])
        alone = encoder(clips.select(torch.tensor([1])))
        torch.testing.assert_close(alone.states.data[0], memory.states.data[1], atol=1e-5, rtol=1e-5)
        changed = Clips(torch.cat([clips.pixels[:, :3], clips.pixels[:, 3:].flip(1)], 1))
        torch.testing.assert_close(encoder(changed).states.data[:, :3], memory.states.data[:, :3])
        assert not torch.allclose(encoder(changed).states.data[:, -1], memory.states.data[:, -1])


def test_clips_are_classified_in_order_and_scored(model, tmp_path):
    frames = make_clip(3, "test").render()
    files = [str(save_animation(tmp_path / "moving.png", frames)), "", "clips#test/3"]
    found = model.classify(files, top=8)
    assert found[1] == []
    assert found[0] == found[2]
    assert {one.label for one in found[0]} == set(DIRECTIONS)
    evaluated = model.evaluate(EvalRequest(split="test"), no_progress)
    assert evaluated.unit == "clips"
    assert evaluated.scores[0].n == 20


def test_the_states_of_the_recurrent_layer_are_labeled_by_frames(model):
    with model.record() as trace:
        model.predict_text("clips#test/3")
    assert trace.states().to_dict()["tokens"] == [f"frame {i + 1}" for i in range(FRAMES)]
    assert trace.maps().svg()
    view = model.saliency("clips#test/3")
    assert view.scores.shape == (1, FRAMES, 3, SIZE, SIZE) and np.abs(view.scores).max() > 0


def test_a_folder_of_clips_of_your_own_is_trained_and_scored(tmp_path):
    for i in range(8):
        clip = make_clip(i if i % 2 else i + 2, "train")
        name = "a" if i % 2 else "b"
        if i < 4:
            save_frames(tmp_path / "clips" / name / f"clip{i}", clip.render())
        else:
            save_animation(tmp_path / "clips" / name / f"clip{i}.webp", clip.render(), lossless=True)
    folder = tmp_path / "clips"
    assert [example.label for example in read_clip_folder(folder)] == ["a"] * 4 + ["b"] * 4
    data = f"data={{kind='clips',train='{folder}',valid='{folder}',size=12,frames=4}}"
    Run(tmp_path / "run").train(Recipe.read(None, [*TINY, data]))
    model = regard.load(tmp_path / "run")
    assert model.evaluate(EvalRequest(files=[folder]), no_progress).scores[0].n == 8


def test_a_small_model_learns_which_way_a_shape_moves(tmp_path):
    given = [*TINY, "data={kind='moving-shapes',count=400}", "train.steps=120", "train.batch_tokens=32"]
    given += ["model={kind='cnn-lstm',channels=[8,16],width=32}", "train.schedule={kind='constant',lr=0.005}"]
    Run(tmp_path / "run").train(Recipe.read(None, given))
    found = regard.load(tmp_path / "run").evaluate(EvalRequest(split="test"), no_progress)
    assert found.scores[0].value > 50  # chance: 12.5


def test_clips_that_cannot_be_read(model, tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "still.png")
    (tmp_path / "text.gif").write_text("only a text")
    (tmp_path / "empty").mkdir()
    animation = save_animation(tmp_path / "whole.gif", make_clip(1, "test").render())
    for name, message in (
        ("still.png", "still.png: 1 frame; a clip needs at least two"),
        ("text.gif", "text.gif: this is no image; expected an animated GIF"),
        ("empty", "empty: 0 frames; a clip needs at least two"),
        ("nowhere.gif", "nowhere.gif: there is no such clip"),
    ):
        with pytest.raises((DataError, InputError)) as error:
            load_clip(str(tmp_path / name), SHAPE)
        assert message in str(error.value)
        with pytest.raises(LineError) as failed:
            model.classify(["clips#test/1", str(tmp_path / name)])
        assert failed.value.line == 2
    for length in (60, 700, 900, 2000, len(animation.read_bytes()) - 50):
        (tmp_path / "half.gif").write_bytes(animation.read_bytes()[:length])
        with pytest.raises(DataError, match=r"half\.gif"):
            load_clip(str(tmp_path / "half.gif"), SHAPE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["model={kind='cnn'}"], 'model.kind = "cnn" does not read clips; use cnn-lstm'),
        (
            ["data={kind='digits'}"],
            'model.kind = "cnn-lstm" does not read single images; use cnn, alexnet, resnet, vit',
        ),
        (["task.augment.shift=2"], "task.augment varies single images, and these are clips"),
        (["data.frames=1"], "frames = 1 must be at least 2"),
        (["data.count=10"], "count = 10 must be at least 80"),
        (["model.layers=0"], "layers = 0 and width = 8 must be at least 1"),
        (["model.channels=[]"], "must name at least one filter"),
    ],
)
def test_recipes_that_cannot_work_are_refused_before_any_work(given, message):
    with pytest.raises(ConfigError) as error:
        Recipe.read(None, [*TINY, *given])
    assert message in str(error.value)


def test_folders_without_clips_are_named(tmp_path):
    with pytest.raises(InputError, match="there is no such folder"):
        ClipFolder(train=str(tmp_path / "nowhere")).examples("train")
    with pytest.raises(DataError, match="there is no sub-folder in it"):
        ClipFolder(train=str(tmp_path)).examples("train")
    (tmp_path / "a").mkdir()
    with pytest.raises(DataError, match="there is no clip in this class"):
        ClipFolder(train=str(tmp_path)).examples("train")
    with pytest.raises(ConfigError, match='there is no split "dev"'):
        MovingShapes().examples("dev")
