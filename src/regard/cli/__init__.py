"""The command line: results on stdout, everything else on stderr, documented exit codes.

Torch is imported only when a verb runs, so that --help is fast.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click
from click.shell_completion import shell_complete

import regard
from regard.cli.average import average
from regard.cli.backtranslate import backtranslate
from regard.cli.caption import caption
from regard.cli.classify import classify
from regard.cli.compare import compare
from regard.cli.completion import completion
from regard.cli.cost import cost
from regard.cli.data import data
from regard.cli.demo import demo
from regard.cli.doctor import doctor
from regard.cli.eval import evaluate
from regard.cli.exchange import export_model, import_model, pack, unpack
from regard.cli.exit_codes import run_command
from regard.cli.fill import fill
from regard.cli.forecast import forecast
from regard.cli.generate import generate
from regard.cli.label import label
from regard.cli.lesson import lesson
from regard.cli.line import line
from regard.cli.look import look
from regard.cli.options import GlobalOptions, global_flags
from regard.cli.plugins import ExtensibleGroup, show_warning
from regard.cli.recipes import config, new
from regard.cli.regress import regress
from regard.cli.runs import runs
from regard.cli.streams import flush_stdout, open_standard_streams
from regard.cli.studio import studio
from regard.cli.train import train
from regard.cli.translate import translate
from regard.cli.vectors import vectors
from regard.errors import Terminated


@click.group(cls=ExtensibleGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(regard.__version__, message="regard %(version)s")
@global_flags(visible=True)
def cli() -> None:
    """Sequence models, from the RNN to the Transformer: train them, use them, look inside.

    \b
    Start with either of:
      regard demo                               train a small translation model and look inside
      regard new mine --task translate          a commented recipe for your own data

    \b
    Then:
      regard train mine.toml train.steps=2000   override settings of the recipe as key=value
      echo "je suis étudiant" | regard translate runs/mine

    \b
    Exit codes:
      0  ok                 5  diverged                  71  a training process was lost
      1  bug                6  a threshold was missed    74  cannot write
      2  usage or recipe   66  cannot open input         75  another process writes the run
      3  model unusable    69  network or package       130  interrupted
      4  data unusable         index unreachable        143  terminated
    """


VERBS = (
    demo, new, data, train, evaluate, translate, backtranslate, generate, classify, label, forecast, caption, regress,
    vectors, fill, look, studio, compare, cost, lesson, line, average, import_model, export_model, pack, unpack, runs,
    config, doctor, completion,
)  # fmt: skip
for verb in VERBS:
    cli.add_command(verb)


def invoke(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    >>> invoke(["--version"])
    regard 0.1.0
    0
    """
    if "_REGARD_COMPLETE" in os.environ:
        return shell_complete(cli, {}, "regard", "_REGARD_COMPLETE", os.environ["_REGARD_COMPLETE"])
    options = GlobalOptions()

    def command() -> object:
        # not cli.main: it has exit codes of its own for Ctrl-C and for a closed pipe
        with cli.make_context("regard", list(arguments), obj=options) as context:
            return cli.invoke(context)

    return run_command(command, options)


def main() -> NoReturn:
    """The program `regard`."""
    open_standard_streams()
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # ignored under nohup
        signal.signal(signal.SIGHUP, _terminate)
    warnings.showwarning = show_warning
    sys.exit(flush_stdout(invoke(sys.argv[1:])))


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated("terminated")
