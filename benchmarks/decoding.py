"""Tokens per second of our decoding beside Hugging Face's MarianMTModel.generate with the same weights.

python benchmarks/decoding.py                                        random weights that end at different lengths
python benchmarks/decoding.py --run small base --input test.en       trained runs, real sentences (one a line)
python benchmarks/decoding.py --agree 1000 --rounds 0                only the number of equal outputs

One thread, float32, both in turn within every round; a ratio is the median over the rounds, with its spread. Logits
are compared first: the run stops if they differ by more than 1e-4. Needs an idle machine. `--keep FILE` appends every
round to a file and continues from there, so that a measurement can be spread over several sessions. A run must have
Marian's architecture: model.norm = "post", positions = "sinusoidal", tie = "all".
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch

from agreement import Case, ours, report_agreement, theirs
from regard.decode import Beam, ban, search
from regard.models.base import EncoderDecoder
from regard.models.transformer import TransformerConfig
from regard.nn.inference import optimize_for_inference
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words
from regard.trace import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from marian import to_marian

SIZES = {
    "small": (TransformerConfig(layers=3, width=256, ffn_width=1024, heads=4), 8_000),
    "base": (TransformerConfig(), 32_000),
}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    measurements = Measurements(args.keep)
    for case in cases(args):
        print(f"{case.name}: logits differ by at most {logit_difference(case):.1e}", flush=True)
        for batch, width in product(args.batch, args.beam):
            setting = {"case": case.name, "batch": batch, "beam": width}
            setting |= {"sentences": args.sentences, "clock": args.clock}
            parts = make_batches(case.sources, batch, args.sentences)
            missing = range(len(measurements.of(setting)), args.rounds)
            for decode, model in ((ours, case.ours), (theirs, case.theirs)) if missing else ():
                decode(model, parts[0], width)  # warmup
            for _ in missing:
                measurements.add(setting, measure_round(case, parts, width, CLOCKS[args.clock]))
            if args.rounds:
                print(format_result(setting, measurements.of(setting)), flush=True)
            if args.agree:
                report_agreement(case, batch, width, args.agree, lambda line: print(line, flush=True))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", default=list(SIZES), choices=list(SIZES), help="of random weights")
    parser.add_argument("--run", nargs="+", type=Path, help="trained runs instead of random weights")
    parser.add_argument("--input", nargs="+", type=Path, help="sentences, one per line: a file per run, or for all")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--beam", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=32, help="sentences per round")
    parser.add_argument("--agree", type=int, default=0, help="compare the outputs of this many sentences")
    parser.add_argument("--clock", default="wall", choices=list(CLOCKS))
    parser.add_argument("--keep", type=Path, help="append measurements to this file, and continue from its content")
    args = parser.parse_args()
    if args.run and len(args.input or ()) not in (1, len(args.run)):
        parser.error(f"--input: expected one file, or one for each of the {len(args.run)} runs")
    return args


def cases(args: argparse.Namespace) -> Iterator[Case]:
    if not args.run:
        yield from (random_case(size) for size in args.size)
        return
    inputs = args.input * len(args.run) if len(args.input) == 1 else args.input
    yield from (trained_case(run, file) for run, file in zip(args.run, inputs, strict=True))


def trained_case(run: Path, file: Path) -> Case:
    """The best checkpoint of a run, and real sentences."""
    import regard

    model = regard.load(run)
    lines = file.read_text(encoding="utf-8").splitlines()
    sources = [[*ids, EOS] for ids in model.vocabularies.source.encode_batch(lines) if ids]
    name = f"{run.name} ({model.recipe.model.summary}, {model.vocabularies.target.size:,} words, step {model.step:,})"
    return Case(name, model.module, model.inference_module, to_marian(model.module, model.recipe.model), sources)


def random_case(size: str) -> Case:
    """Random weights, with <EOS> likely enough that sentences end at different lengths."""
    config, vocabulary = SIZES[size]
    torch.manual_seed(0)
    model = config.build(Words(vocabulary), Words(vocabulary)).eval()
    sharpen_attention(model, 2.0)
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(5, 25, (1000,), generator=generator).tolist()
    sources = [torch.randint(4, vocabulary, (n,), generator=generator).tolist() for n in lengths]
    set_end_probability(model, sources[:32], length=18.0)
    return Case(f"{size}, random weights", model, optimize_for_inference(model), to_marian(model, config), sources)


@torch.no_grad()
def sharpen_attention(model: EncoderDecoder, factor: float) -> None:
    """Make attention sharper: otherwise random weights give the same output for every sentence."""
    for layer in (*model.encoder.layers, *model.decoder.layers):
        for linear in (layer.attention.qkv, layer.ffn.up, *([layer.cross.kv] if hasattr(layer, "cross") else [])):
            linear.weight.mul_(factor)


@torch.no_grad()
def set_end_probability(model: EncoderDecoder, sources: list[list[int]], length: float) -> None:
    """Set the embedding of <EOS> so that its logit grows with the position and greedy outputs have about this length.

    The direction is a least-squares fit of the position from the features.
    """
    prompt, limits = Tokens.full(torch.full((len(sources), 1), SOS)), torch.full((len(sources),), 60)
    with record(model) as trace:
        search(model, Tokens.pad(sources), prompt, Beam(1, processors=(ban(EOS),)), limits)
    steps = [r.data[:, -1] for r in trace.find("decoder.features")]
    features_ND = torch.cat(steps)
    places_N = torch.cat([torch.full((len(step),), t / len(steps)) for t, step in enumerate(steps)])
    gram_DD = features_ND.mT @ features_ND + len(features_ND) * torch.eye(features_ND.shape[1]) / 10
    direction, low, high = torch.linalg.solve(gram_DD, features_ND.mT @ places_N), 0.0, 1000.0
    for _ in range(14):
        middle = (low + high) / 2
        model.decoder.embed.weight.data[EOS] = middle * direction
        middle_length = statistics.median(len(ids) for ids in ours(model, sources, 1))
        low, high = (middle, high) if middle_length > length else (low, middle)


@torch.no_grad()
def logit_difference(case: Case) -> float:
    source = Tokens.pad(case.sources[:4])
    outputs = torch.tensor([[SOS, 5, 6, 7, 8, 9]]).expand(len(source), -1)
    mine = case.ours.readout(case.ours(source, Tokens.full(outputs)))
    other = case.theirs(
        input_ids=source.data, attention_mask=source.mask.long(), decoder_input_ids=outputs, use_cache=False
    ).logits
    largest = float((mine - other).abs().max())
    if largest > 1e-4:
        raise SystemExit(f"{case.name}: the logits differ by {largest:.1e}; the models are not the same")
    return largest


def make_batches(sources: list[list[int]], batch: int, count: int) -> list[list[list[int]]]:
    """Batches of `count` sentences, or one batch if it is larger, spread over the file."""
    count = max(batch, count)
    sample = sources[:: max(1, len(sources) // count)][:count]
    return [sample[i : i + batch] for i in range(0, len(sample), batch)]


def measure_round(case: Case, parts: list[list[list[int]]], width: int, clock: Callable[[], float]) -> dict[str, Any]:
    """One round: tokens per second of both, and the lengths of outputs."""
    found: dict[str, Any] = {}
    for name, decode, model in (("ours", ours, case.ours), ("theirs", theirs, case.theirs)):
        started = clock()
        outputs = [ids for part in parts for ids in decode(model, part, width)]
        found[name] = sum(map(len, outputs)) / (clock() - started)
        found["lengths"] = [min(map(len, outputs)), statistics.mean(map(len, outputs)), max(map(len, outputs))]
    return found


def format_result(setting: dict[str, Any], rounds: list[dict[str, Any]]) -> str:
    mine, other = ([float(found[who]) for found in rounds] for who in ("ours", "theirs"))
    ratios = [a / b for a, b in zip(mine, other, strict=True)]
    least, mean, most = rounds[-1]["lengths"]
    return (
        f"{setting['case']}, batch {setting['batch']:>2}, beam {setting['beam']}: {statistics.median(mine):7.0f} "
        f"tokens/s, Hugging Face {statistics.median(other):7.0f}, ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}, {len(rounds)} rounds), {least} to {most} tokens per sentence, "
        f"mean {mean:.0f}"
    )


class Measurements:
    """Rounds measured so far, one JSON line each, in a file or in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.lines = path, list[dict[str, Any]]()
        if path is not None and path.exists():
            self.lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def of(self, setting: dict[str, Any]) -> list[dict[str, Any]]:
        return [line for line in self.lines if setting.items() <= line.items()]

    def add(self, setting: dict[str, Any], found: dict[str, Any]) -> None:
        self.lines.append({**setting, **found})
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.lines[-1]) + "\n")


if __name__ == "__main__":
    main()
