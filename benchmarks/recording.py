"""Recorded and plain passes of every model of the tests: how far their outputs are apart.

python benchmarks/recording.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import zoo
from regard.decode.beam import Beam
from regard.decode.hypothesis import Hypothesis, collect
from regard.decode.loop import decode
from regard.models.base import EncoderDecoder
from regard.sequence import SOS, Rows, Tokens
from regard.trace import record


def greedy(model: EncoderDecoder, source: Rows) -> list[Hypothesis]:
    """The greedy output of each source."""
    prompt, limits = Tokens.pad([[SOS]] * 3), torch.tensor([9, 6, 12])
    return [best[0] for best in collect(decode(model, source, prompt, Beam(1), limits, torch.arange(3)))]


@torch.no_grad()
def main() -> None:
    """One line per model: teacher forcing, and greedy search step by step."""
    torch.set_num_threads(1)
    print(f"{'model':24}  logits not equal  farthest apart  scores of greedy search apart  tokens")
    for name, entry in zoo.ZOO.items():
        model = zoo.build(name)
        zoo.sharpen(model)
        source, real = entry.source(), zoo.TARGET.mask
        plain, found = model.readout(model(source, zoo.TARGET))[real], greedy(model, source)
        with record(model):
            recorded, again = model.readout(model(source, zoo.TARGET))[real], greedy(model, source)
        unequal, farthest = int((plain != recorded).sum()), float((plain - recorded).abs().max())
        apart = max(abs(a.score - b.score) for a, b in zip(found, again, strict=True))
        same = all(a.tokens == b.tokens for a, b in zip(found, again, strict=True))
        count = f"{unequal} of {plain.numel()}"
        print(f"{name:24}  {count:>16}  {farthest:14.1e}  {apart:29.1e}  {'equal' if same else 'DIFFER'}")


if __name__ == "__main__":
    main()
