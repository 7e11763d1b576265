"""Milliseconds per sentence against its length, encoding and decoding separately: recurrent models and a Transformer.

python benchmarks/lengths.py                                    random weights, about as many parameters each
python benchmarks/lengths.py --out lengths.svg --json a.json    the picture and the numbers

One sentence at a time, greedy, outputs as long as inputs; one thread, float32; the median of some rounds, all models in
turn within each. Reading is the encoder and the decoder's projections of its states; writing is all decoding steps.
Needs an idle machine; `--clock cpu` measures CPU time and tolerates other work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from regard.look.chart import Curve, LineChart, LogAxis
from regard.models.base import EncoderDecoder, parameters
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.nn.inference import optimize_for_inference
from regard.sequence import SOS, Tokens
from regard.spaces import Words

VOCABULARY = 8_000
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
MODELS: dict[str, Any] = {
    "lstm": Seq2SeqConfig(layers=2, width=240),
    "rnnsearch": RNNsearchConfig(embedding=192, width=320, alignment=320, maxout=192),
    "transformer": TransformerConfig(layers=3, width=256, ffn_width=1024, heads=4),
}


def main() -> None:
    args = arguments()
    torch.set_num_threads(1)
    fresh = {name: build(config) for name, config in MODELS.items()}
    for name, model in fresh.items():
        print(f"{name}: {parameters(model):,} parameters", flush=True)
    models = {name: optimize_for_inference(model) for name, model in fresh.items()}
    found: dict[str, list[tuple[int, float, float]]] = {name: [] for name in models}
    print("length  " + "  ".join(f"{name:>24}" for name in models) + "   (read, write; ms)", flush=True)
    for length in args.length:
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
        for round_ in range(args.rounds + 1):
            for name, model in models.items():
                seconds = measure(model, length, CLOCKS[args.clock])
                if round_:  # the first is warmup
                    times[name].append(seconds)
        for name, rows in times.items():
            read, write = (statistics.median(row[i] for row in rows) for i in (0, 1))
            found[name].append((length, read, write))
        cells = (f"{found[name][-1][1]:11.2f} {found[name][-1][2]:12.2f}" for name in models)
        print(f"{length:>6}  " + "  ".join(cells), flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if args.out:
        args.out.write_text(curves(found).svg(), encoding="utf-8")
        print(f"-> {args.out}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", nargs="+", type=int, default=[5, 10, 20, 40, 80, 160], help="tokens of a sentence")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clock", default="wall", choices=list(CLOCKS))
    parser.add_argument("--out", type=Path, help="an SVG")
    parser.add_argument("--json", type=Path, help="the numbers")
    return parser.parse_args()


def build(config: Any) -> EncoderDecoder:
    torch.manual_seed(0)
    model: EncoderDecoder = config.build(Words(VOCABULARY), Words(VOCABULARY)).eval()
    return model


@torch.inference_mode()
def measure(model: EncoderDecoder, length: int, clock: Callable[[], float]) -> tuple[float, float]:
    """Milliseconds to encode a sentence, and to decode one of the same length."""
    generator = torch.Generator().manual_seed(length)
    source = Tokens.full(torch.randint(4, VOCABULARY, (1, length), generator=generator))
    started = clock()
    state = model.start(source, max_tokens=length + 1)
    encoded = clock()
    word = torch.full((1, 1), SOS)
    for _ in range(length):
        features, state = model.decoder(Tokens.full(word), state)
        word = model.readout(features[:, -1]).argmax(-1, keepdim=True)
    return 1000 * (encoded - started), 1000 * (clock() - encoded)


def curves(found: dict[str, list[tuple[int, float, float]]]) -> LineChart:
    """Two curves per model."""
    lines = [
        Curve(f"{name}, {part}", [row[0] for row in rows], [row[i] for row in rows])
        for name, rows in found.items()
        for i, part in ((1, "reading"), (2, "writing"))
    ]
    axes = LogAxis("tokens of a sentence"), LogAxis("milliseconds")
    return LineChart("Time of a sentence against its length, one thread", *axes, tuple(lines))


if __name__ == "__main__":
    main()
