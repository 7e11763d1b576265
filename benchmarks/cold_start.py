"""CPU seconds of a command from its start to its end, compared with those of `import torch`.

python benchmarks/cold_start.py                  trains a small translator first, on generated phrases
python benchmarks/cold_start.py --run runs/demo  a run of your own

The median of some rounds; all commands in turn within each, each in a process of its own, in CPU seconds of user and
system (getrusage), so that other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 1.3
"""allowed ratio of translating one text to importing torch"""
SETTINGS = ['data={kind = "phrases", count = 500}', "train.steps=20", "text.vocab_size=400"]


def cpu_seconds(command: list[str]) -> float:
    """CPU seconds of a command, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(run: Path) -> dict[str, list[str]]:
    """What is measured, by name."""
    regard = [sys.executable, "-m", "regard"]
    recipe = str(run / "recipe.toml")
    return {
        "import torch": [sys.executable, "-c", "import torch"],
        "regard translate RUN TEXT": [*regard, "translate", str(run), "je suis étudiant"],
        "regard train RECIPE train.step=3": [*regard, "train", recipe, "train.step=3"],
        "regard translate NOWHERE TEXT": [*regard, "translate", str(run / "nowhere"), "x"],
        "regard --help": [*regard, "--help"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a translator; trained here by default")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or Path(folder) / "run"
        if options.run is None:
            recipe = Path(__file__).parents[1] / "src" / "regard" / "demo.toml"
            train = [sys.executable, "-m", "regard", "train", str(recipe), *SETTINGS, "--out", str(run), "--quiet"]
            subprocess.run(train, check=True, capture_output=True)
        measured = commands(run)
        for command in measured.values():  # files are read once before
            cpu_seconds(command)
        rounds = [{name: cpu_seconds(command) for name, command in measured.items()} for _ in range(options.rounds)]
    medians = {name: statistics.median(row[name] for row in rounds) for name in measured}
    for name, seconds in medians.items():
        print(f"{name:34} {seconds:6.3f} s   {seconds / medians['import torch']:5.2f} x")
    return int(medians["regard translate RUN TEXT"] > MOST * medians["import torch"])


if __name__ == "__main__":
    sys.exit(main())
