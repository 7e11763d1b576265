"""Tokens per second of single-stream generation beside transformers' generate, with the same weights.

    python benchmarks/generation.py [--layers 12 --width 768 ...] [--rounds 5] [--tokens 64] [--clock cpu]

The shape is GPT-2's smallest (12 layers, width 768, 12 heads, 50,257 tokens), weights are random, float32, one thread.
Both continue the same prompt of 16 tokens, greedily and by sampling at temperature 1, in turn within every round; a
ratio is the median over the rounds, with its spread. Logits are compared first, and greedy tokens must be the
same. `--clock cpu` counts the CPU time of the process, for a machine that does other work.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

from regard.decode import DecodeConfig, ban, decode
from regard.decode.int8_search import FeaturesOnly, int8_strategy
from regard.models.gpt import GPTConfig
from regard.nn.inference import optimize_for_inference
from regard.sequence import EOS, Tokens
from regard.spaces import Words
from regard.tasks.generate.loader import empty_source

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from language_models import to_transformers

GOAL = 1.3
PROMPT = list(range(100, 116))
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPTConfig(layers=args.layers, width=args.width, heads=args.heads, dropout=0.0)
    model = config.build(Words(args.vocabulary), Words(args.vocabulary)).eval()
    theirs, ours = to_transformers(model, config), optimize_for_inference(model)
    compare(model, ours, theirs)
    low = []
    for sample in (False, True):
        ours_of(ours, sample, 4), theirs_of(theirs, sample, 4)  # warmup
        rounds = [measure(ours, theirs, sample, args) for _ in range(args.rounds)]
        ratios = [a / b for a, b in rounds]
        speeds = [statistics.median(column) for column in zip(*rounds, strict=True)]
        name, ratio = "sampling" if sample else "greedy", statistics.median(ratios)
        spread = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds"
        print(
            f"{name:<9} {speeds[0]:6.1f} tokens/s, transformers {speeds[1]:6.1f}: {ratio:.2f} x ({spread})", flush=True
        )
        low += [name] if ratio < GOAL else []
    if low:
        sys.exit(f"below {GOAL} x: {', '.join(low)}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"layers": 12, "width": 768, "heads": 12, "vocabulary": 50_257}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64, help="generated in each round, by each")
    parser.add_argument("--clock", default="wall", choices=list(CLOCKS))
    return parser.parse_args()


@torch.inference_mode()
def compare(model: Any, ours: Any, theirs: Any) -> None:
    """Stop if logits or greedy tokens differ."""
    read = Tokens.pad([PROMPT])
    logits = ours.readout(ours(empty_source(1), read))
    gap = float((logits - theirs(read.data).logits).abs().max())
    same = ours_of(ours, False, 24) == theirs_of(theirs, False, 24)
    print(f"logits differ by at most {gap:.1e}; greedy tokens are {'the same' if same else 'NOT the same'}", flush=True)
    if gap > 1e-4 or not same:
        sys.exit("the models are not the same")


def measure(ours: Any, theirs: Any, sample: bool, args: argparse.Namespace) -> tuple[float, float]:
    """Tokens per second of ours and of theirs."""
    clock, speeds = CLOCKS[args.clock], []
    for generate, model in ((ours_of, ours), (theirs_of, theirs)):
        began = clock()
        generate(model, sample, args.tokens)
        speeds.append(args.tokens / (clock() - began))
    return speeds[0], speeds[1]


def ours_of(model: Any, sample: bool, tokens: int) -> list[int]:
    """As `regard generate` decodes: the int8 argmax where it applies."""
    strategy = DecodeConfig(sample=sample, beam=1).strategy(EOS, processors=(ban(EOS),))
    fast = int8_strategy(model, 1, strategy)
    steps = decode(
        model if fast is None else FeaturesOnly(model), empty_source(1), Tokens.pad([PROMPT]), fast or strategy,
        torch.tensor([tokens]),
    )  # fmt: skip
    return [int(choice.tokens[0]) for choice in steps]


@torch.inference_mode()
def theirs_of(model: Any, sample: bool, tokens: int) -> list[int]:
    """transformers' generate, which never ends before `tokens`."""
    found = model.generate(
        torch.tensor([PROMPT]), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=sample, top_k=0
    )
    return found[0, len(PROMPT) :].tolist()


if __name__ == "__main__":
    main()
