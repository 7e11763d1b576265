"""Translations of one run by regard, transformers and CTranslate2, and what the engine adds to CTranslate2's own time.

python benchmarks/engines.py marian                logits of imported Marian folders with random weights, of many shapes
python benchmarks/engines.py same RUN FILE         the same beam and length penalty in all three, float32
python benchmarks/engines.py speed RUN FILE        --engine ctranslate2 beside ctranslate2.Translator, and regard's own
python benchmarks/engines.py int8 RUN FILE REFERENCE   BLEU of float32 and int8

RUN is a post-norm Transformer whose decode.length_penalty is "power"; FILE has one sentence per line.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import regard
from regard.exchange.export import export_ctranslate2, export_run
from regard.exchange.huggingface import import_folder
from regard.metrics import bleu
from regard.sequence import Tokens

sys.path.append(str(Path(__file__).parents[1] / "tests"))
ROWS = 40
"""sentences of a batch of transformers"""
SHAPES: list[dict[str, Any]] = [
    {},
    {"activation_function": "relu", "scale_embedding": False},
    {"activation_function": "gelu", "encoder_layers": 1, "decoder_layers": 3},
    {"activation_function": "gelu_new", "share_encoder_decoder_embeddings": False},
    {"scale": 0.03, "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 2048,
     "decoder_ffn_dim": 2048, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
     "max_position_embeddings": 512},
]  # fmt: skip
"""changes of a small Marian; the last has the shape of the OPUS-MT models, and smaller weights as it is wider"""


@torch.no_grad()
def compare_logits(home: Path) -> None:
    """Largest difference of the logits to those of transformers on the same folder, up to the last position."""
    from foreign_models import marian

    for number, shape in enumerate(SHAPES):
        theirs, folder = marian(home / f"saved{number}", **shape)
        import_folder(folder, home / f"run{number}")
        model: Any = regard.load(home / f"run{number}", "cpu")
        size, length = theirs.config.vocab_size, theirs.config.max_position_embeddings
        source, target = torch.randint(size, (2, length)), torch.randint(size, (2, length))
        found = model.module.readout(model.module(Tokens.full(source), Tokens.full(target)))
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
        worst, spread = float((found - expected).abs().max()), float(expected.std())
        print(f"{shape or 'as it is'}: {length} positions, within {worst:.2e} (deviation of the logits {spread:.2f})")


def by_length(model: Any, lines: list[str]) -> Iterator[tuple[int, list[int], list[list[int]]]]:
    """Lines of equal length in tokens: the most tokens of their outputs, their numbers, and their ids with <EOS>."""
    source = model.vocabularies.source
    ids = [[*row, source.eos] for row in source.encode_batch([line.strip() for line in lines])]
    for length in sorted({len(row) for row in ids}):
        rows = [number for number, row in enumerate(ids) if len(row) == length]
        for start in range(0, len(rows), ROWS):
            part = rows[start : start + ROWS]
            yield length + model.recipe.decode.max_extra_tokens, part, [ids[number] for number in part]


@torch.no_grad()
def by_transformers(folder: Path, model: Any, lines: list[str]) -> list[tuple[str, ...]]:
    """Tokens of the translations by transformers, with beam and penalty of its generation_config.json."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    theirs, words = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    theirs.generation_config.forced_eos_token_id = theirs.generation_config.max_length = None
    target, found = model.vocabularies.target, {}
    for limit, rows, ids in by_length(model, lines):
        assert words([lines[row].strip() for row in rows])["input_ids"] == ids
        source = torch.tensor(ids)
        out = theirs.generate(source, attention_mask=torch.ones_like(source), max_new_tokens=limit)
        for row, output in zip(rows, out.tolist(), strict=True):
            kept = [id for id in output if id not in (target.sos, target.eos, target.pad)]
            found[row] = tuple(target.tokens(kept))
    return [found[row] for row in range(len(lines))]


def by_ctranslate2(translator: Any, model: Any, lines: list[str]) -> list[tuple[str, ...]]:
    """Tokens of the translations by CTranslate2 itself."""
    target, found = model.vocabularies.target, {}
    for limit, rows, ids in by_length(model, lines):
        results = translate_batch(translator, model, ids, limit)
        for row, one in zip(rows, results, strict=True):
            found[row] = tuple(token for token in one.hypotheses[0] if token != target.vocabulary[target.eos])
    return [found[row] for row in range(len(lines))]


def translate_batch(translator: Any, model: Any, ids: list[list[int]], limit: int) -> Any:
    """CTranslate2's own call, with beam and penalty of the run."""
    names, search = model.vocabularies.source.vocabulary, model.recipe.decode
    return translator.translate_batch(
        [[names[id] for id in row] for row in ids], beam_size=search.beam, length_penalty=search.alpha,
        return_end_token=True, min_decoding_length=0, max_batch_size=2048, batch_type="tokens",
        max_decoding_length=limit,
    )  # fmt: skip


def texts_by_ctranslate2(translator: Any, model: Any, lines: list[str]) -> list[str]:
    """Texts by one call of CTranslate2 with the run's tokenizer before and after it, as its users write it."""
    source, target = model.vocabularies.source, model.vocabularies.target
    ids = [[*row, source.eos] for row in source.encode_batch([line.strip() for line in lines])]
    limit = max(map(len, ids)) + model.recipe.decode.max_extra_tokens
    numbers = {token: id for id, token in enumerate(target.vocabulary)}
    results = translate_batch(translator, model, ids, limit)
    return [target.decode([numbers[token] for token in one.hypotheses[0]]) for one in results]


def compare_translations(run: Path, lines: list[str], home: Path) -> None:
    """How many translations are the same in all of them."""
    import ctranslate2

    model: Any = regard.load(run, "cpu")
    engine: Any = regard.load(run, "cpu", engine="ctranslate2")
    for note in export_run(run, home / "huggingface"):
        print(note)
    export_ctranslate2(run, home / "ctranslate2", "float32")
    direct = ctranslate2.Translator(str(home / "ctranslate2"), intra_threads=torch.get_num_threads())
    own = [one[0].tokens for one in model.translate(lines, n_best=1)]
    others = {
        "transformers": by_transformers(home / "huggingface", model, lines),
        "ctranslate2": by_ctranslate2(direct, model, lines),
        "--engine ctranslate2": [one[0].tokens for one in engine.translate(lines, n_best=1)],
    }
    for name, found in others.items():
        print(f"{name}: {sum(map(tuple.__eq__, own, found)):,} of {len(lines):,} translations are those of regard")


def compare_speed(run: Path, lines: list[str], home: Path, repeats: int) -> None:
    """Seconds of the engine over those of CTranslate2 itself, in turn: median and range."""
    import ctranslate2

    model: Any = regard.load(run, "cpu", engine="ctranslate2")
    own: Any = regard.load(run, "cpu")
    export_ctranslate2(run, home / "ctranslate2", "float32")
    direct = ctranslate2.Translator(str(home / "ctranslate2"), intra_threads=torch.get_num_threads())
    ways = {
        "engine": lambda: model.translate(lines),
        "direct": lambda: texts_by_ctranslate2(direct, model, lines),
        "regard": lambda: own.translate(lines),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for number in range(repeats):  # in turn, and in both orders: other programs slow down all of them
        for name in list(ways) if number % 2 else reversed(list(ways)):
            start = time.process_time()
            ways[name]()
            seconds[name].append(time.process_time() - start)
    for name in ("engine", "regard"):
        ratios = sorted(a / b for a, b in zip(seconds[name], seconds["direct"], strict=True))
        middle, least, most = statistics.median(ratios), ratios[0], ratios[-1]
        print(f"{name} / direct: {middle:.3f} (median of {repeats}, {least:.3f} to {most:.3f}), processor time")
    print(
        ", ".join(f"{name} {len(lines) / statistics.median(found):.0f} sentences/s" for name, found in seconds.items())
    )


def compare_precision(run: Path, lines: list[str], references: list[str]) -> None:
    """BLEU in float32 and in int8."""
    for precision in ("float32", "int8"):
        model: Any = regard.load(run, "cpu", engine="ctranslate2", precision=precision)
        start = time.process_time()
        found = model.translate(lines)
        spent = time.process_time() - start
        print(f"{precision}: BLEU {bleu(found, references).value:.2f}, {len(lines) / spent:.0f} sentences/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["marian", "same", "speed", "int8"])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--count", type=int, default=1000, help="sentences")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
    texts = [file.read_text(encoding="utf-8").splitlines()[: options.count] for file in options.files]
    with tempfile.TemporaryDirectory() as home:
        if options.what == "marian":
            compare_logits(Path(home))
        elif options.what == "same":
            compare_translations(options.run, texts[0], Path(home))
        elif options.what == "speed":
            compare_speed(options.run, texts[0], Path(home), options.repeats)
        else:
            compare_precision(options.run, *texts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
