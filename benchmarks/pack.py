"""Seconds to pack a model of 10 million parameters, to open the pack, and to load the model from it.

python benchmarks/pack.py             three rounds, the fastest of each
python benchmarks/pack.py --width 768 another size

The aim of packing is 5 s, of opening (checked byte by byte, until the recipe can be read) 1 s. The model is built with
initial weights and saved as a checkpoint; the size is all that matters here.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import regard
from regard.distributed import ProcessGroup
from regard.exchange.pack import pack_run
from regard.models.base import parameters
from regard.packs import pack_folder
from regard.tasks import Recipe
from regard.train import checkpoint
from regard.train.weights import weights

SETTINGS = ["data.kind=phrases", "data.count=2000", "text.vocab_size=2000", "model.kind=transformer", "model.heads=4"]
PACK, OPEN = 5.0, 1.0
"""most seconds"""


def write_run(folder: Path, width: int) -> int:
    """A run with initial weights; returns the number of parameters."""
    recipe = Recipe.read(None, [*SETTINGS, f"model.width={width}", f"model.ffn_width={4 * width}", "model.layers=3"])
    run = regard.Run(folder)
    with run.lock_new():
        run.begin(recipe)
        run.prepare(recipe)
    objective, _, _ = recipe.training_parts(folder, ProcessGroup())
    checkpoint.save(folder, 1, {"model": weights(objective.model)}, {"step": 1, "steps": 1}, best=True)
    return parameters(objective.model)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=336)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[float]] = {"pack": [], "open": [], "load": []}
    with tempfile.TemporaryDirectory() as home:
        count = write_run(Path(home) / "run", options.width)
        for number in range(options.rounds):
            file = Path(home) / f"{number}.regard"
            times = [time.perf_counter()]
            pack_run(Path(home) / "run", file)
            times.append(time.perf_counter())
            pack_folder(file)
            times.append(time.perf_counter())
            regard.load(file, "cpu")
            times.append(time.perf_counter())
            for name, start, end in zip(found, times, times[1:], strict=False):
                found[name].append(end - start)
        size = file.stat().st_size
    fastest = {name: min(seconds) for name, seconds in found.items()}
    print(f"{count:,} parameters, {size:,} bytes: " + ", ".join(f"{name} {s:.2f} s" for name, s in fastest.items()))
    return int(fastest["pack"] > PACK or fastest["open"] > OPEN)


if __name__ == "__main__":
    raise SystemExit(main())
