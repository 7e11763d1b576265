"""Prints tokens a second of our decoding beside Hugging Face's MarianMTModel.generate with the same weights.

python benchmarks/decoding.py                                        random weights that end at different lengths
python benchmarks/decoding.py --run RUN --input FILE                 a trained run, real sentences (one a line)
python benchmarks/decoding.py --agree 1000                           also count how many outputs are the same

One thread, float32, both in turn within every round; a ratio is the median over the rounds, with its spread. Logits
are compared first: the run stops if they differ by more than 1e-4. Wants a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import MarianMTModel

from marian import to_marian
from regard.decode import Beam, banned, power, score, search
from regard.models.base import EncoderDecoder
from regard.models.transformer import TransformerConfig
from regard.nn.inference import prepare
from regard.sequence import EOS, PAD, SOS, Tokens
from regard.spaces import Words
from regard.trace import record

SIZES = {
    "small": (TransformerConfig(layers=3, width=256, inner=1024, heads=4), 8_000),
    "base": (TransformerConfig(), 32_000),
}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
ALPHA = 1.0


@dataclass(frozen=True)
class Case:
    """A model in both forms, and what it reads."""

    name: str
    ours: EncoderDecoder
    theirs: MarianMTModel
    sources: list[list[int]]


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    for case in cases(args):
        print(f"{case.name}: logits differ by at most {difference(case):.1e}")
        for batch in args.batch:
            for width in args.beam:
                compare(case, batch, width, args)
                if args.agree:
                    agree(case, batch, width, args.agree)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--run", type=Path, help="a trained run instead of random weights")
    parser.add_argument("--input", type=Path, help="sentences for --run, one a line")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--beam", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=32, help="sentences a round")
    parser.add_argument("--agree", type=int, default=0, help="compare the outputs of this many sentences")
    parser.add_argument("--clock", default="wall", choices=list(CLOCKS))
    return parser.parse_args()


def cases(args: argparse.Namespace) -> list[Case]:
    if args.run is None:
        return [random_case(size) for size in args.size]
    from regard.run import Model

    run = Model.load(args.run)
    lines = args.input.read_text(encoding="utf-8").splitlines()
    sources = [[*ids, EOS] for ids in run.vocabularies.source.encode_batch(lines) if ids]
    return [Case(args.run.name, prepare(run.module), to_marian(run.module, run.recipe.model), sources)]


def random_case(size: str) -> Case:
    """Random weights, with <EOS> made likely enough that sentences end, early and late."""
    config, vocabulary = SIZES[size]
    torch.manual_seed(0)
    model = config.build(Words(vocabulary), Words(vocabulary)).eval()
    with torch.no_grad():
        for layer in (*model.encoder.layers, *model.decoder.layers):
            for linear in (layer.attention.qkv, layer.ffn.rise, *([layer.cross.kv] if hasattr(layer, "cross") else [])):
                linear.weight.mul_(2.0)  # decided attention: else every sentence is the same
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(5, 25, (1000,), generator=generator).tolist()
    sources = [torch.randint(4, vocabulary, (n,), generator=generator).tolist() for n in lengths]
    end_at(model, sources[:32], wanted=18.0)
    return Case(f"{size}, random weights", prepare(model), to_marian(model, config), sources)


@torch.no_grad()
def end_at(model: EncoderDecoder, sources: list[list[int]], wanted: float) -> None:
    """Give <EOS> an embedding that rises with the place, so far that greedy outputs have about the wanted length.

    Random weights know no end, but their features know the place; which of them tell it is a least-squares fit.
    """
    prompt, limits = Tokens.full(torch.full((len(sources), 1), SOS)), torch.full((len(sources),), 60)
    with record(model) as trace:
        search(model, Tokens.of(sources), prompt, Beam(1, rules=(banned(EOS),)), limits)
    steps = [r.data[:, -1] for r in trace.find("decoder.features")]
    features_ND = torch.cat(steps)
    places_N = torch.cat([torch.full((len(step),), t / len(steps)) for t, step in enumerate(steps)])
    gram_DD = features_ND.mT @ features_ND + len(features_ND) * torch.eye(features_ND.shape[1]) / 10
    towards, low, high = torch.linalg.solve(gram_DD, features_ND.mT @ places_N), 0.0, 1000.0
    for _ in range(14):
        middle = (low + high) / 2
        model.decoder.embed.weight.data[EOS] = middle * towards
        middle_length = statistics.median(len(ids) for ids in ours(model, sources, 1))
        low, high = (middle, high) if middle_length > wanted else (low, middle)


def longest(sources: list[list[int]]) -> int:
    return max(map(len, sources)) + 50


def ours(model: EncoderDecoder, sources: list[list[int]], width: int) -> list[tuple[int, ...]]:
    prompt = Tokens.full(torch.full((len(sources), 1), SOS))
    limits = torch.full((len(sources),), longest(sources))
    return [found[0].tokens for found in search(model, Tokens.of(sources), prompt, Beam(width, power(ALPHA)), limits)]


def theirs(model: MarianMTModel, sources: list[list[int]], width: int) -> list[tuple[int, ...]]:
    source = Tokens.of(sources)
    settings = {"num_beams": width, "do_sample": False, "max_new_tokens": longest(sources)}
    if width > 1:
        settings |= {"length_penalty": ALPHA, "early_stopping": True}
    out = model.generate(input_ids=source.data, attention_mask=source.mask.long(), **settings)
    return [until_end(row) for row in out[:, 1:].tolist()]


def until_end(ids: list[int]) -> tuple[int, ...]:
    return tuple(ids[: ids.index(EOS) + 1] if EOS in ids else [i for i in ids if i != PAD])


@torch.no_grad()
def difference(case: Case) -> float:
    source = Tokens.of(case.sources[:4])
    said = torch.tensor([[SOS, 5, 6, 7, 8, 9]]).expand(4, -1)
    mine = case.ours.readout(case.ours(source, Tokens.full(said)))
    other = case.theirs(
        input_ids=source.data, attention_mask=source.mask.long(), decoder_input_ids=said, use_cache=False
    ).logits
    apart = float((mine - other).abs().max())
    if apart > 1e-4:
        raise SystemExit(f"{case.name}: the logits differ by {apart:.1e}; the models are not the same")
    return apart


def compare(case: Case, batch: int, width: int, args: argparse.Namespace) -> None:
    clock, speeds = CLOCKS[args.clock], {"ours": [], "theirs": []}
    runs: dict[str, Callable] = {
        "ours": lambda part: ours(case.ours, part, width),
        "theirs": lambda part: theirs(case.theirs, part, width),
    }
    sources = case.sources[: max(batch, args.sentences)]
    parts = [sources[i : i + batch] for i in range(0, len(sources), batch)]
    for run in runs.values():
        run(parts[0])  # warm
    for _ in range(args.rounds):
        for name, run in runs.items():
            began = clock()
            said = [ids for part in parts for ids in run(part)]
            speeds[name].append(sum(map(len, said)) / (clock() - began))
    ratios = [a / b for a, b in zip(speeds["ours"], speeds["theirs"], strict=True)]
    print(
        f"{case.name}, batch {batch:>2}, beam {width}: {statistics.median(speeds['ours']):7.0f} tokens/s, Hugging Face "
        f"{statistics.median(speeds['theirs']):7.0f}, ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}), {statistics.mean(map(len, said)):.0f} tokens a sentence",
        flush=True,
    )


def agree(case: Case, batch: int, width: int, count: int) -> None:
    """Counts equal outputs; of the others the gap between the values of both, by one scorer."""
    sources, same, gaps = case.sources[:count], 0, []
    for i in range(0, len(sources), batch):
        part = sources[i : i + batch]
        for source, mine, other in zip(
            part, ours(case.ours, part, width), theirs(case.theirs, part, width), strict=True
        ):
            same += mine == other
            if mine != other:
                gaps.append(value(case, source, mine) - value(case, source, other))
    told = "".join(f" {gap:+.1e}" for gap in gaps)
    print(
        f"  same output for {same} of {len(sources)} sentences; value gaps of the others:{told or ' none'}", flush=True
    )


def value(case: Case, source: list[int], said: tuple[int, ...]) -> float:
    total = float(score(case.ours, Tokens.of([source]), Tokens.of([[SOS, *said]])).totals)
    return total / len(said) ** ALPHA


if __name__ == "__main__":
    main()
