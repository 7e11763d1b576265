"""regard pack, unpack, import and export: a model as one file, and models of and for other libraries."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.console import Console, StageProgress
from regard.cli.loading import import_torch, open_run
from regard.cli.options import PATH
from regard.errors import ConfigError
from regard.packs import SUFFIX
from regard.program import runnable


@click.command(short_help="Write a model as one file.")
@click.argument("run", type=PATH)
@click.option("-o", "--out", type=PATH, help="The file to write.  [default: NAME-OF-RUN.regard]")
def pack(run: Path, out: Path | None) -> None:
    """Write the model of a run as one file, for another machine or another person.

    RUN is a run directory, whose best checkpoint is packed, or one of its checkpoints. The file is a zip archive of the
    weights (safetensors), the tokenizer, the recipe and the model card, with size and SHA-256 of each; training data
    and the state of the optimizer are not in it. Every command that takes a run takes this file too, and so does
    regard.load in Python. It is checked as a whole before it is used, and never changed.

    \b
    Examples:
      regard pack runs/demo -o demo.regard
      regard pack runs/demo/checkpoints/00000800 -o early.regard
    """
    open_run(run)
    from regard.exchange.pack import pack_run
    from regard.run import Run
    from regard.train.checkpoint_store import run_folder

    home = run_folder(run)
    out = out or Path(home.resolve().name + SUFFIX)
    with StageProgress(Console.of_verb()) as stages:
        pack_run(run, out, stages)
    Console.of_verb().print(f"{out.stat().st_size:,} bytes; use it: {runnable(Run(home).recipe().usage(out))}")
    click.echo(str(out))


@click.command(short_help="Turn such a file into a run directory.")
@click.argument("file", type=PATH)
@click.option("-o", "--out", type=PATH, help="The run directory.  [default: runs/NAME-OF-FILE]")
def unpack(file: Path, out: Path | None) -> None:
    """Turn a file that `regard pack` wrote into a run directory.

    The run can be used, fine-tuned (model.init) and packed again. It cannot be resumed: a pack has no training state.

    \b
    Examples:
      regard unpack demo.regard
      regard unpack demo.regard -o runs/copy
    """
    import_torch()
    from regard.exchange.pack import unpack_run

    out = out or Path("runs") / file.stem
    with StageProgress(Console.of_verb()) as stages:
        unpack_run(file, out, stages)
    click.echo(str(out))


@click.command("import", short_help="Turn a model of another library into a run.")
@click.argument("source")
@click.option("-o", "--out", type=PATH, help="The run directory.  [default: runs/NAME-OF-SOURCE]")
def import_model(source: str, out: Path | None) -> None:
    """Turn a model that was trained elsewhere into a run, which is used, evaluated, looked into and fine-tuned as any.

    SOURCE is a folder as transformers saves it, with config.json, the weights as safetensors and the tokenizer: GPT-2,
    OpenAI GPT, Llama and its kin (Mistral, Qwen2, SmolLM2, TinyLlama), BERT and its kin (MiniLM, DistilBERT), Marian's
    translation models (OPUS-MT; source.spm, target.spm and vocab.json are read too), ResNet and ViT as classifiers of
    images. Or a GGUF file of a Llama model, which needs the package gguf. Or the name of a model that is downloaded:
    minilm (a BERT encoder of sentences, 84 MB), smollm2 (a chat model of 135 million parameters, 93 MB). Weight files
    that may run code when they are read (.bin, .pt) are refused.

    \b
    Examples:
      regard import models/gpt2 -o runs/gpt2
      regard import models/opus-mt-fr-en -o runs/opus
      regard import smollm2
    """
    import_torch()
    from regard.exchange.catalogue import import_any
    from regard.run import Run

    out = out or Path("runs") / Path(source).resolve().stem
    console = Console.of_verb()
    with StageProgress(console) as stages:
        notes = import_any(source, out, stages)
    for note in notes:
        console.warn(note)
    recipe = Run(out).recipe()
    console.print(f"{recipe.model.summary}; use it: {runnable(recipe.usage(out))}")
    click.echo(str(out))


@click.command("export", short_help="Write a model for another library.")
@click.argument("run", type=PATH)
@click.option(
    "--to",
    type=click.Choice(["huggingface", "ctranslate2", "onnx", "torch"]),
    required=True,
    help="The library.",
)
@click.option("-o", "--out", type=PATH, required=True, help="The folder to write.")
@click.option("--precision", type=click.Choice(["float32", "int8"]), help="Of --to ctranslate2.  [default: float32]")
def export_model(run: Path, to: str, out: Path, precision: str | None) -> None:
    """Write the model of a run as a folder for another library.

    huggingface: transformers loads it with AutoModel and AutoTokenizer: config.json, the weights as safetensors, the
    tokenizer and the model card. There are gpt and llama of the task generate, bert of the tasks fill, classify and
    label, resnet and vit of the task classify, and a post-norm transformer of the task translate (MarianMTModel).
    `regard import` reads the folder again, to the bit.

    ctranslate2: ctranslate2.Translator loads a transformer of the task translate, pre-norm or post-norm;
    ctranslate2.Generator loads gpt and llama of the task generate. Tokenizer and model card lie beside it. It needs the
    package ctranslate2.

    onnx, torch: graphs that run without regard, as ONNX files (needs `pip install "regard[onnx]"`) or as programs of
    torch.export (.pt2): an encoder and a decoding step for translate and caption, a step for generate, inputs to logits
    for classify, label and fill. graphs.json lists their inputs and outputs. They are compared with the model before
    the folder appears. What a library cannot hold is refused by name.

    \b
    Examples:
      regard export runs/mine --to huggingface -o models/mine
      regard export model.regard --to onnx -o models/mine-onnx
      regard export runs/demo --to ctranslate2 --precision int8 -o models/demo-int8
    """
    if precision is not None and to != "ctranslate2":
        raise ConfigError(f"--precision is of --to ctranslate2; leave it out with --to {to}")
    open_run(run)
    if to in ("onnx", "torch"):
        export_as_graphs(run, to, out)
    else:
        from regard.exchange.export import export_ctranslate2, export_run

        console = Console.of_verb()
        with StageProgress(console) as stages:
            notes = export_run(run, out) if to == "huggingface" else (
                export_ctranslate2(run, out, precision or "float32", stages)
            )  # fmt: skip
        for note in notes:
            console.warn(note)
    click.echo(str(out))


def export_as_graphs(run: Path, to: str, out: Path) -> None:
    """Write the graphs of a model, with progress and the result of their check."""
    from regard.exchange.graph_export import export_graphs
    from regard.exchange.onnx import OnnxFormat
    from regard.exchange.torch_program import TorchFormat

    console = Console.of_verb()
    form = OnnxFormat() if to == "onnx" else TorchFormat()
    with StageProgress(console) as stages:
        worst = export_graphs(run, out, form, stages)
    console.print(f"checked on random inputs: its outputs differ from those of regard by at most {worst:.1e}")
