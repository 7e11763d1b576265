"""Training of image classifiers against a bare PyTorch loop, and the reader of images against a plain Pillow loop.

ResNet-18 on 32 x 32 images: the same batches go through regard's trainer and through a loop that is written out below
with torch.nn alone, once with channels last (as regard lays images out) and once in torch's default layout. All run in
one process and in turns, so that other work slows them alike. Printed are seconds per step and the ratio of speeds
(above 1: regard is faster), median and range over rounds.

    python benchmarks/vision.py [--rounds 7] [--rows 64] [--images 2000]

Limit: 0.95 x the faster of the two loops. The reader is timed on JPEG files of 500 x 375 pixels made for it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import Tensor, nn

from regard.data.images import ImageShape, LoadedImage, load_image
from regard.distributed import ProcessGroup
from regard.models.base import Classifier, parameters
from regard.models.pooling import make_pooling
from regard.models.resnet import ResNetConfig
from regard.objective import Batch, Objective, PerSequence
from regard.sequence import Images
from regard.spaces import Classes, Pixels
from regard.tasks.classify.images import read_images
from regard.tasks.copying import CopyTask
from regard.train.config import TrainConfig
from regard.train.optim import AdamW
from regard.train.parallel import tune_malloc
from regard.train.schedule import Constant
from regard.train.trainer import Trainer

LIMIT, CLASSES, RATE, CLIP = 0.95, 10, 1e-3, 1.0


class BareBlock(nn.Module):
    """A basic block, written out."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.shortcut = shortcut if channels != out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        branch = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(branch + self.shortcut(x))


class BareResNet(nn.Module):
    """ResNet-18 for small images, written out."""

    def __init__(self) -> None:
        super().__init__()
        pairs = ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
        shapes = [shape for first in pairs for shape in (first, (first[1], first[1], 1))]
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        self.blocks, self.head = nn.Sequential(*(BareBlock(*shape) for shape in shapes)), nn.Linear(512, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def bare_step(batches: list[tuple[Tensor, Tensor]]) -> tuple[int, Callable[[int], object]]:
    """The number of parameters, and one step of a loop without regard."""
    torch.manual_seed(1)
    model = BareResNet().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)

    def step(number: int) -> None:
        x, y = batches[number % len(batches)]
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()

    return parameters(model), step


def regard_step(batches: list[tuple[Tensor, Tensor]], run: Path) -> tuple[int, Callable[[int], object]]:
    """The number of parameters, and one step of regard's trainer."""
    torch.manual_seed(1)
    encoder = ResNetConfig(stem="small").build_encoder(Pixels(3, 32, 32))
    space = Classes(CLASSES)
    model = Classifier(encoder, make_pooling("mean", encoder), space, encoder.width)
    config = TrainConfig(steps=10**6, clip_norm=CLIP, optimizer=AdamW(), schedule=Constant(lr=RATE), threads=1)
    trainer = Trainer(
        Objective(model, PerSequence(space)), CopyTask(), config, run, ProcessGroup(), [], lambda: ({}, ()), 1
    )
    wrapped = [(Batch(Images(x), y), {"batch": i}) for i, (x, y) in enumerate(batches)]
    return parameters(model), lambda number: trainer.step([wrapped[number % len(wrapped)]])


def measure_training(rounds: int, rows: int) -> float:
    """Print seconds per step in turns; the median ratio of speeds to the faster loop."""
    draw = torch.Generator().manual_seed(1)
    batches = [
        (torch.randn(rows, 3, 32, 32, generator=draw), torch.randint(0, CLASSES, (rows,), generator=draw))
        for _ in range(4)
    ]
    last = [(x.to(memory_format=torch.channels_last), y) for x, y in batches]
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "regard": regard_step(last, Path(folder)),
            "bare loop, channels last": bare_step(last),
            "bare loop": bare_step(batches),
        }
        assert len({count for count, _ in ways.values()}) == 1, "the models differ"
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            for name, (_, step) in ways.items():
                started = time.process_time()
                step(number)
                if number:  # the first round warms up
                    seconds[name].append(time.process_time() - started)
    for name, found in seconds.items():
        print(f"{name:26} {statistics.median(found):.3f} s of CPU time per step of {rows} images ({spread(found)})")
    ratios = {
        name: [theirs / ours for theirs, ours in zip(found, seconds["regard"], strict=True)]
        for name, found in seconds.items()
        if name != "regard"
    }
    for name, found in ratios.items():
        print(f"regard against {name}: {statistics.median(found):.2f} x ({spread(found)})")
    return min(map(statistics.median, ratios.values()))


def spread(values: list[float]) -> str:
    """Smallest and largest."""
    return f"{min(values):.3f} to {max(values):.3f}"


def write_photos(folder: Path, count: int) -> list[str]:
    """JPEG files of smooth random pictures."""
    draw, paths = np.random.default_rng(1), []
    for i in range(min(count, 64)):
        small = Image.fromarray(draw.integers(0, 255, (12, 16, 3), dtype=np.uint8))
        small.resize((500, 375), Image.Resampling.BICUBIC).save(folder / f"{i}.jpg", quality=90)
        paths.append(str(folder / f"{i}.jpg"))
    return [paths[i % len(paths)] for i in range(count)]


def plain_loop(paths: list[str], size: int) -> Iterator[np.ndarray]:
    """What a short script does: open, convert, crop the middle and resize."""
    for path in paths:
        with Image.open(path) as image:
            yield np.asarray(ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BILINEAR))


def measure_reader(rounds: int, count: int, size: int = 64) -> None:
    """Print images per second of wall time: a plain loop, our reader in this process, our reader with its workers."""
    shape = ImageShape(size, size, 3)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_photos(Path(folder), count)
        ways: dict[str, Callable[[], int]] = {
            "plain Pillow loop": lambda: sum(1 for _ in plain_loop(paths, size)),
            "regard, one process": lambda: sum(1 for path in paths if load_image(path, shape)),
            "regard, worker processes": lambda: sum(isinstance(i, LoadedImage) for i in read_images(paths, shape)),
        }
        speeds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, read in ways.items():
                started = time.perf_counter()
                assert read() == count
                speeds[name].append(count / (time.perf_counter() - started))
    for name, found in speeds.items():
        print(f"{name:26} {statistics.median(found):.0f} images/s ({min(found):.0f} to {max(found):.0f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--images", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tune_malloc()
    print(f"load {os.getloadavg()[0]:.1f}")
    ratio = measure_training(options.rounds, options.rows)
    measure_reader(max(2, options.rounds // 2), options.images)
    if ratio < LIMIT:
        sys.exit(f"training is slower than {LIMIT} x the bare loop: {ratio:.2f}")


if __name__ == "__main__":
    main()
