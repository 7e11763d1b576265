"""A tiny captioning model and two tiny models of clips, for tests that need trained runs."""

from __future__ import annotations

from pathlib import Path

from regard.run import Recipe, Run

CAPTION = [
    "task={kind='caption',bleu_images=2}", "data={kind='shapes',count=60}", "train.batch_tokens=16", "train.steps=2",
    "model.encoder={kind='cnn',channels=[4,6],convolutions=1}", "decode.max_extra_tokens=6",
    "model.decoder={kind='rnnsearch',embedding=6,width=8,alignment=6,maxout=6}",
]  # fmt: skip
CLIPS = [
    "task={kind='classify',pool='last'}", "data={kind='moving-shapes',count=80}", "train.steps=2",
    "model={kind='cnn-lstm',channels=[4,6],width=8}", "train.batch_tokens=16",
]  # fmt: skip
POSITION = ["task={kind='regress'}", *CLIPS[1:]]


def train_caption_models(folder: Path) -> None:
    """Train all of them for two steps."""
    for name, settings in (("caption", CAPTION), ("clips", CLIPS), ("position", POSITION)):
        Run(folder / name).train(Recipe.read(None, settings))
