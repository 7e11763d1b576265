"""Behavior of two revisions, compared to the bit on this machine: checkpoints, outputs, lessons, API answers, resuming.

    python benchmarks/behavior.py --base e077c64 --keep /tmp/behavior-base
    python benchmarks/behavior.py --only translate

The same jobs run in both trees, each with its own code on PYTHONPATH and one thread. What is compared has no names in
it: tensors by shape, type and digest, JSON by its values, lessons by their numbers. Jobs are written with the names of
the base revision; behavior_names.toml says what they are called today. Only commands and the studio's HTTP API are
used, so modules, classes and functions may move freely. Bits differ between processors: no digest is ever committed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import pkgutil
import platform
import queue
import random
import re
import runpy
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RENAMED = tomllib.loads(Path(__file__).with_name("behavior_names.toml").read_text(encoding="utf-8"))
RENAMED_SETTINGS, RENAMED_VALUES = (
    {f"{section}.{name}": new for section, names in RENAMED[part].items() for name, new in names.items()}
    for part in ("settings", "values")
)
FORMAT = 1
"""Raise it when results change their meaning: kept results of another format are not used."""
TIMES = {"seconds", "made", "changed", "created", "modified", "elapsed", "duration", "time_seconds"}
"""Keys of JSON answers that differ from run to run."""
COUNTED = ("data.source", "data.target", "data.word", "data.tag")
"""Numbers of columns: from 0 on in the base revision, from 1 on where the schema's defaults say so."""
COMMAND_SECONDS = 400

# Jobs: task, settings, and the commands that use the run. Values without quotes are strings; "~" is a space.

TRAIN = "train.steps=12 train.every=6 train.tokens=256 train.schedule.lr=0.01 train.schedule.warmup=4"
PHRASES = "data.kind=phrases data.count=300 text.size=200 task.scored=3"
FILES = 'data.kind=files data.train=["a.fr","a.en"] task.held_out=0.1 task.scored=3'
COLUMNS = "data.kind=tsv data.train=pairs.tsv data.source=1 data.target=2 task.held_out=0.1 task.scored=2"
SMALL = "model.layers=1 model.width=16 model.heads=2 model.inner=32"
BOOK = "data.kind=text data.train=book.txt"
REVIEWS = "data.kind=tsv data.train=reviews.tsv task.held_out=0.2"
NAMES = "data.kind=conll data.train=names.conll data.word=0 data.tag=2"
LOAD = "data.kind=csv data.train=load.csv task.horizon=4 task.window=12 train.tokens=96"

SETTINGS = {
    "translate transformer": f"{PHRASES} model.kind=transformer {SMALL} train.ema=0.9 train.accumulate=2 "
    "train.select=bleu train.smoothing=0.2 train.clip=0.5 train.save=3 train.keep=3 decode.alpha=1.0 text.dropout=0.1",
    "translate transformer-pre": f"{FILES} model.kind=transformer {SMALL} model.norm=pre model.positions=learned "
    "model.longest=99 filter.tokens=98 model.tie=none task.joint=false text.kind=word text.normal=none text.longest=20 "
    "train.optimizer.kind=adamw train.schedule.kind=cosine",
    "translate transformer-target": f"{COLUMNS} model.kind=transformer {SMALL} model.tie=target task.joint=false "
    'text.kind=unigram text.size=90 filter.ratio=9.0 task.tried=["le~chat~dort"] train.schedule.kind=linear',
    "translate seq2seq": f"{PHRASES} model.kind=seq2seq model.layers=2 model.width=16 train.optimizer.kind=sgd",
    "translate seq2seq-gru": f"{FILES} model.kind=seq2seq model.cell=gru model.context=every model.bidirectional=true "
    "model.layers=2 model.width=16 text.kind=char model.dropout=0.1",
    "translate seq2seq-tanh": f"{COLUMNS} model.kind=seq2seq model.cell=tanh model.layers=1 model.width=16 "
    "text.kind=char",
    "translate rnnsearch": f"{PHRASES} model.kind=rnnsearch model.embedding=12 model.width=16 model.alignment=8 "
    "model.maxout=8 model.dropout=0.1 decode.coverage=0.2",
    "translate luong": f"{PHRASES} model.kind=luong model.layers=2 model.width=16",
    "translate luong-concat": f"{FILES} model.kind=luong model.layers=1 model.width=16 model.score=concat "
    "model.feeding=none model.reverse=false text.kind=byte-bpe text.size=300",
    "translate gnmt": f"{PHRASES} model.kind=gnmt model.layers=3 model.width=16",
    "translate mixed-convolution": f"{PHRASES} model.kind=mixed model.encoder.kind=convolution model.encoder.layers=2 "
    "model.encoder.width=12 model.decoder.kind=luong model.decoder.layers=1 model.decoder.width=16",
    "translate mixed-transformer": f"{FILES} model.kind=mixed model.encoder.kind=transformer model.encoder.layers=1 "
    "model.encoder.width=16 model.encoder.inner=24 model.encoder.heads=2 model.decoder.kind=rnnsearch text.kind=word "
    "model.decoder.embedding=12 model.decoder.width=10 model.decoder.alignment=9 model.decoder.maxout=8",
    "translate mixed-recurrent": f"{FILES} model.kind=mixed model.encoder.kind=recurrent model.encoder.width=12 "
    "model.decoder.kind=transformer model.decoder.layers=1 model.decoder.width=16 model.decoder.inner=24 "
    "model.decoder.heads=2 model.decoder.tie=target text.kind=word",
    "translate sampling": f"{PHRASES} model.kind=transformer {SMALL} decode.sample=true decode.seed=5 decode.beam=1 "
    "decode.temperature=1.3 decode.top_k=20 decode.top_p=0.9",
    "translate penalties": f"{PHRASES} model.kind=luong model.layers=1 model.width=16 decode.minimum=4 decode.extra=6 "
    "decode.repetition=1.2 decode.no_repeat=2 decode.penalty=power decode.n_best=2",
    "generate gpt": f"{BOOK} data.held_out=0.2 task.window=16 model.kind=gpt model.layers=1 model.width=16 "
    "model.heads=2 model.longest=16 train.smoothing=0.1",
    "generate rnnlm-lines": f"{BOOK} data.unit=line task.window=16 task.prompt=the model.kind=rnnlm model.layers=2 "
    "model.width=16 train.optimizer.kind=adamw",
    "generate rnnlm-bpe": f"{BOOK} task.window=16 text.kind=byte-bpe text.size=300 model.kind=rnnlm model.cell=gru "
    "model.layers=1 model.width=16 model.tie=true train.ema=0.9",
    "generate numbers": 'data.kind=numbers data.train=load.csv data.columns=["load","price"] task.window=8 '
    "task.length=5 model.kind=rnnlm model.cell=gru model.layers=1 model.width=8 model.dropout=0.0 train.tokens=64",
    "classify recurrent": f"{REVIEWS} model.kind=recurrent model.width=16 task.unknown=0.2 task.weights.kind=balanced",
    "classify recurrent-gru": f"{REVIEWS} model.kind=recurrent model.cell=gru model.layers=2 model.width=8 "
    "task.pool=last task.tokens=6 task.keep=end vectors.path=vectors.txt text.kind=word",
    "classify convolution": f"{REVIEWS} model.kind=convolution model.layers=2 model.width=8 task.pool=max "
    "train.select=accuracy",
    "classify transformer": f"{REVIEWS} model.kind=transformer {SMALL} task.pool=first text.kind=bpe text.size=99",
    "classify mlp": f"{REVIEWS} model.kind=mlp model.layers=2 model.width=16 train.schedule.kind=plateau",
    "classify table": "data.kind=table data.train=table.csv model.kind=mlp model.layers=2 model.width=8",
    "label plain": f"{NAMES} data.held_out=0.15 data.tested=0.2 model.kind=recurrent model.cell=gru model.width=16",
    "label crf-convolution": f"{NAMES} task.scheme=bio task.crf=linear task.letters.kind=convolution "
    "task.letters.width=8 task.least=2 task.lowercase=true model.kind=recurrent model.width=16 train.select=f1",
    "label crf-lstm": f"{NAMES} task.scheme=bioes task.crf=linear task.letters.kind=lstm task.letters.width=8 "
    "task.longest=4 model.kind=convolution model.layers=1 model.width=16",
    "label transformer": f"{NAMES} task.letters.kind=lstm task.letters.width=8 model.kind=transformer {SMALL}",
    "label numbers": "data.kind=conll data.train=heights.conll data.answer=numbers model.kind=recurrent model.width=8",
    "label angles": "data.kind=chains data.count=80 data.longest=12 model.kind=recurrent model.width=8 "
    "train.select=mae",
    "label restore": "data.kind=restore data.train=book.txt data.held_out=0.1 model.kind=recurrent model.width=16",
    "forecast mlp": f"{LOAD} model.kind=mlp model.width=8 train.select=mase train.schedule.lr=0.001",
    "forecast tanh": f"{LOAD} model.kind=recurrent model.cell=tanh model.width=8 model.bidirectional=false "
    "task.head=point task.around=mean task.line=none",
    "forecast lstm": f"{LOAD} model.kind=recurrent model.width=8 task.head=laplace task.columns=apart task.line=each",
    "forecast gru": f"{LOAD} model.kind=recurrent model.cell=gru model.width=8 task.patch=4 task.pool=mean "
    'data.columns=["load"] data.known=["holiday"] data.calendar=["weekday"] task.unit=window',
    "forecast convolution": f"{LOAD} model.kind=convolution model.width=8 model.layers=1 data.train=gaps.csv "
    "data.gaps=carry",
    "forecast transformer": f"{LOAD} model.kind=transformer {SMALL} task.season=7",
    "forecast table": f"{LOAD} task.horizon=1 task.window=0 task.around=nothing model.kind=mlp model.width=8 "
    'data.columns=["load"] data.known=["holiday","price"]',
    "vectors skipgram": f'{BOOK} data.unit=line model.width=8 task.common=0 task.tried=["cat"]',
    "vectors cbow": f"{BOOK} data.unit=line model.width=8 task.method=cbow task.common=0.01 task.shared=16 "
    "task.window=3",
}
TEXTS = "le chat dort\nje suis étudiant\n\nnous mangeons une pomme rouge .\n"
USES: dict[str, dict[str, str]] = {
    "translate": {
        "greedy": "translate RUN --beam 1", "beam": "translate RUN --beam 3 --nbest 2 --json",
        "scores": "translate RUN --scores", "eval": "eval RUN --split valid --json",
        "trace": "look RUN le~chat~dort -o trace.safetensors",
    },
    "generate": {
        "greedy": "generate RUN the~c --length 12 --temperature 0",
        "sampling": "generate RUN the --seed 3 -n 2 --length 15 --temperature 0.8 --top-k 9 --top-p 0.9 --json",
        "eval": "eval RUN --split valid --json", "trace": "look RUN the~cat -o trace.safetensors --view states",
    },
    "classify": {
        "text": "classify RUN", "top": "classify RUN --top 2 --json", "eval": "eval RUN --split valid --json",
        "saliency": "look RUN so~great --view saliency --json",
    },
    "label": {
        "text": "label RUN", "json": "label RUN --json", "eval": "eval RUN --split valid --json",
        "trace": "look RUN Ada~lives~here -o trace.safetensors --view states",
    },
    "forecast": {
        "csv": "forecast RUN", "json": "forecast RUN --horizon 4 --level 0.9 --json",
        "eval": "eval RUN --split valid --json",
    },
    "vectors": {
        "neighbors": "vectors neighbours RUN cat saw -n 5 --json",
        "analogy": "vectors analogy RUN cat~-~dog~+~saw --json",
        "map": "vectors map RUN cat dog saw --json", "eval": "eval RUN --json",
    },
}  # fmt: skip
MORE_USES: dict[str, dict[str, str]] = {
    "translate transformer": {
        "constraints": "translate RUN --prefix the --must cat --beam 4 --nbest 2 --json",
        "average": "average RUN --last 2 --out averaged",
        "attention": "look RUN le~chat~dort --layer 0 --head 1 --json",
    },
    "translate luong": {"gradients": "look RUN le~chat --view gradients --json"},
    "generate numbers": {
        "greedy": "generate RUN 20.5,3 --temperature 0", "sampling": "generate RUN 20.5,3 --seed 3 -n 2 --json",
        "trace": "",
    },
    "generate gpt": {"trace": "look RUN the~cat -o trace.safetensors"},
    "classify table": {"saliency": "look RUN 0.5,0.25 --view saliency --json"},
    "forecast gru": {"csv": "forecast RUN future.csv", "json": "forecast RUN future.csv --level 0.9 --json"},
    "forecast table": {"csv": "forecast RUN future.csv --horizon 1", "json": "forecast RUN future.csv --json"},
    "label plain": {"test": "eval RUN --json", "conll": "label RUN --conll"},
    "label crf-convolution": {"saliency": "look RUN Ada~lives --view saliency --json"},
    "vectors cbow": {"write": "vectors write RUN -o words.txt"},
}  # fmt: skip
LESSONS = (
    "embedding padding rnn bptt gradients lstm gru bidirectional seq2seq bahdanau luong "
    "attention eight-heads kinds-of-attention positions training label-smoothing noam"
)
TRAINED_LESSONS = ("evolution-of-attention transformer beam-search", "it")
"""Lessons that train small models, which takes about half a minute each; those of one line share them."""
RESUMED = ("translate transformer", "generate rnnlm-lines", "label crf-lstm", "forecast mlp", "vectors skipgram")
SHOWN = ("translate transformer", "translate rnnsearch", "classify recurrent")

UNITS = [*(f"lesson {names}" for names in TRAINED_LESSONS), "studio", *(f"resume {name}" for name in RESUMED)]
UNITS += [*SETTINGS, *(f"lesson {name}" for name in LESSONS.split())]
Values = dict[str, list[str]]
"""What a unit found: a list of values per comparison."""


# Data that the jobs read


def write_data(folder: Path) -> None:
    draw = random.Random(14)
    nouns, verbs = ("cat", "dog", "horse", "saw", "drill"), ("eats", "sleeps", "cuts", "breaks", "runs")
    french = ("chat", "chien", "cheval", "scie", "foret"), ("mange", "dort", "coupe", "casse", "court")
    lines, pairs, tagged = [], [], []
    for i in range(160):
        a, b, c = (draw.randrange(5) for _ in range(3))
        lines.append(f"the {nouns[a]} {verbs[b]} and the {nouns[c]} too, {draw.choice(('Ada', 'Alan', 'Emmy'))} said.")
        pairs.append((f"le {french[0][a]} {french[1][b]} {i % 7}", f"the {nouns[a]} {verbs[b]} {i % 7}"))
        name, town = draw.choice(("Ada", "Alan", "Emmy")), draw.choice(("Rome", "New York", "Oslo")).split()
        rows = [(name, "N", "B-PER"), ("lives", "V", "O"), ("in", "P", "O")]
        rows += [(word, "N", "I-LOC" if j else "B-LOC") for j, word in enumerate(town)]
        tagged.append("".join(f"{' '.join(row)}\n" for row in rows))
    heights = ["".join(f"{word} {len(word) + i % 3}.5\n" for word in line.split()) for i, line in enumerate(lines)]
    reviews = [(f"{draw.choice(('this', 'the film'))} was so {word}", str(word in ("great", "fine")).lower())
               for word in draw.choices(("great", "fine", "bad", "awful"), k=160)]  # fmt: skip
    table = [(round(draw.gauss(i % 2, 1), 3), round(draw.random(), 3), "ab"[i % 2]) for i in range(120)]
    days = [date(2024, 1, 1) + timedelta(i) for i in range(200)]
    load = [f"{day},{20 + i % 7 + draw.random():.3f},{i % 5}.25,{int(i % 9 == 4)}" for i, day in enumerate(days)]
    future = [re.sub(r",[\d.]+", ",", row, count=1) for row in load[-8:]]
    texts = {
        "book.txt": lines, "a.fr": [f for f, _ in pairs], "a.en": [e for _, e in pairs],
        "pairs.tsv": [f"{i}\t{f}\t{e}" for i, (f, e) in enumerate(pairs)],
        "names.conll": tagged, "heights.conll": heights,
        "reviews.tsv": ["text\tlabel", *map("\t".join, reviews)],
        "table.csv": ["x,y,label", *(",".join(map(str, row)) for row in table)],
        "load.csv": ["date,load,price,holiday", *load],
        "gaps.csv": ["date,load,price,holiday", *(row for i, row in enumerate(load) if i % 28 != 27)],
        "future.csv": ["date,load,price,holiday", *load[:-8], *future],
        "vectors.txt": [f"{word} {draw.random():.4f} {draw.random():.4f} 0.5" for word in ("great", "film", "so")],
    }  # fmt: skip
    for file, content in texts.items():
        (folder / file).write_text("\n".join(content) + "\n", encoding="utf-8")


# Commands of one tree


class FailedCommand(Exception):
    pass


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def fork_command(arguments: Sequence[str], folder: Path, typed: str = "") -> int:
    """Start a command in a fork, which has imported everything already; its output goes to out.txt and err.txt."""
    (folder / "typed.txt").write_text(typed, encoding="utf-8")
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 1
    try:
        os.chdir(folder)
        for number, (file, mode) in enumerate((("typed.txt", os.O_RDONLY), ("out.txt", OPENED), ("err.txt", OPENED))):
            os.dup2(os.open(file, mode, 0o644), number)
        sys.stdin, sys.stdout, sys.stderr = (open(i, "w" if i else "r", encoding="utf-8") for i in range(3))  # noqa: SIM115, PTH123
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        signal.alarm(COMMAND_SECONDS)
        os.environ["REGARD_CACHE"] = str(folder / "cache")
        sys.argv = ["regard", *arguments]
        runpy.run_module("regard", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:  # the worker must not go on twice
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


OPENED = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def finish(pid: int, folder: Path) -> Outcome:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Outcome(
        code, *((folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out.txt", "err.txt"))
    )


def run(arguments: Sequence[str], folder: Path, typed: str = "") -> str:
    found = finish(fork_command(arguments, folder, typed), folder)
    if found.code:
        raise FailedCommand(f"regard {' '.join(arguments)} ended with {found.code}: {found.err.strip()[-600:]}")
    return found.out


@dataclass
class Names:
    """What this tree calls things."""

    folder: Path
    schemas: dict[str, Any] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)

    def recipe(self, name: str) -> str:
        """The settings of a job as TOML."""
        task = name.split()[0]
        if task not in self.schemas:
            self.schemas[task] = json.loads(run(["config", "schema", "--task", task], self.folder))
        table: dict[str, Any] = {}
        for setting in f"task.kind={task} {TRAIN} {SETTINGS[name]}".split():
            put(table, *setting.replace("~", " ").split("=", 1))
        moved: dict[str, Any] = {}
        named = rename(table, self.schemas[task], "", moved)
        for path, value in moved.items():
            put(named, path, value)
        return "".join(f"{path} = {json.dumps(value)}\n" for path, value in leaves(named))

    def command(self, words: Sequence[str]) -> list[str]:
        """A command with the verbs and the options that this tree has."""
        verb = words[0]
        if verb not in self.helps:
            self.helps[verb] = run([verb, "--help"], self.folder)
        if verb == "vectors":
            known = re.findall(r"^  (\w+) ", self.helps[verb].partition("Commands:")[2], re.M)
            both = [" ".join(words[:2]), *RENAMED["commands"].get(" ".join(words[:2]), [])]
            words = [verb, next(name.split()[1] for name in both if name.split()[1] in known), *words[2:]]
        return [self.option(word, self.helps[verb]) for word in words]

    def option(self, word: str, text: str) -> str:
        fitting = [name for name in [word, *RENAMED["commands"].get(word, [])] if re.search(rf"{name}\b", text)]
        return fitting[0] if word.startswith("--") and fitting else word


def put(table: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        table = table.setdefault(name, {})
    if isinstance(value, str):
        with contextlib.suppress(tomllib.TOMLDecodeError):  # a string without quotes
            value = tomllib.loads(f"value = {value}")["value"]
    table[last] = value


def leaves(table: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield above + name, value


def rename(table: dict[str, Any], node: dict[str, Any], section: str, moved: dict[str, Any]) -> dict[str, Any]:
    """A table of settings under the names that a JSON Schema knows; what another section has now goes to `moved`."""
    options = [option["properties"] for option in node.get("anyOf", [node]) if "properties" in option]
    if "kind" in table:
        kinds = {table["kind"], *RENAMED_VALUES.get(f"{section}.kind", {}).get(table["kind"], [])}
        options = [option for option in options if kinds & set(option.get("kind", {}).get("enum", kinds))]
    known = {name: entry for option in options for name, entry in option.items()}
    counted = [
        known[key.split(".")[1]] for key in COUNTED if key.startswith(f"{section}.") and key.split(".")[1] in known
    ]
    from_zero = any(entry.get("default") == 0 for entry in counted)
    found: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{section}.{key}"
        candidates = [key, *RENAMED_SETTINGS.get(path, [])]
        name = next((candidate for candidate in candidates if candidate in known or "." in candidate), None)
        if name is None:
            raise FailedCommand(f"{path}: not in this tree's schema; add its new name to behavior_names.toml")
        if "." in name:
            moved[name] = value
        elif isinstance(value, dict):
            found[name] = rename(value, known[name], section or key, moved)
        elif path in COUNTED and isinstance(value, int):
            found[name] = value if from_zero else str(value + 1) if known[name].get("type") == "string" else value + 1
        else:
            choices, others = known[name].get("enum", [value]), RENAMED_VALUES.get(path, {}).get(str(value), [])
            found[name] = next((choice for choice in [value, *others] if choice in choices), value)
    return found


# What is compared


class Number(str):
    """A number as JSON writes it."""


def read_json(text: str) -> list[Any]:
    """All JSON documents of a text; numbers as they are written, so that nothing is rounded."""
    decoder = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)
    found, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        document, at = decoder.raw_decode(text, at)
        found.append(document)
    return found


def values(document: Any, strings: bool = True) -> Iterator[str]:
    """The values of JSON in their order, without keys and times."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key not in TIMES:
                yield from values(value, strings)
    elif isinstance(document, list):
        for value in document:
            yield from values(value, strings)
    elif isinstance(document, Number) or (strings and document is not None):
        yield str(document)


def tensors(path: Path) -> list[str]:
    """Shape, type and digest of each tensor of a safetensors file, without its name."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    found = []
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            digest = hashlib.sha256(content[8 + size + first : 8 + size + last]).hexdigest()[:24]
            found.append(f"{entry['dtype']}{entry['shape']} {digest}")
    return sorted(found)


def checkpoints(run_folder: Path) -> list[Path]:
    """The folders with weights, the oldest first; links such as best are left out."""
    files = [path for path in run_folder.rglob("*.safetensors") if path.resolve() == path.absolute()]
    return sorted({path.parent for path in files})


def weights(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("*.safetensors") for line in tensors(file))


def numbers_of(text: str) -> list[str]:
    return re.findall(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text)


# Units


def train(name: str, folder: Path, names: Names, run_name: str = "run", *more: str) -> list[str]:
    """The command that trains a job's run; its recipe and its data are written."""
    (folder / "recipe.toml").write_text(names.recipe(name), encoding="utf-8")
    if not (folder / "book.txt").exists():
        write_data(folder)
    return ["train", "recipe.toml", "--out", run_name, "--quiet", *more]


def run_job(name: str, folder: Path, names: Names) -> Values:
    run(train(name, folder, names), folder)
    found: Values = {"checkpoints": [line for path in checkpoints(folder / "run") for line in weights(path)]}
    state = [
        value for path in (folder / "run").rglob("state.json") for value in values(read_json(path.read_text()), False)
    ]
    found["training state"] = sorted(state)
    samples = folder / "run" / "samples.jsonl"
    if samples.exists():
        documents = read_json(samples.read_text(encoding="utf-8"))
        found["samples"] = list(values([{k: v for k, v in one.items() if k != "event"} for one in documents]))
    for use, line in (USES[name.split()[0]] | MORE_USES.get(name, {})).items():
        if line:
            words = [word.replace("~", " ").replace("RUN", "run") for word in line.split()]
            found[use] = attempt(partial(use_run, words, folder, names))
    return found


def attempt(act: Callable[[], list[str]]) -> list[str]:
    try:
        return act()
    except FailedCommand as error:
        return [f"FAILED {error}"]


def use_run(words: list[str], folder: Path, names: Names) -> list[str]:
    typed = {"classify": "so great\nthis film was bad\n", "label": "Ada lives in New York\n\nwe saw nobody .\n"}
    typed["translate"] = TEXTS
    if "--conll" in words:
        typed["label"] = "Ada N\nlives V\n\nAlan N\n"
    if words[0] == "classify" and (folder / "recipe.toml").read_text().count("table.csv"):
        typed["classify"] = "0.5,0.25\n1.5,0.125\n"
    out = run(names.command(words), folder, typed.get(words[0], ""))
    if words[0] == "average":
        return [line for path in checkpoints(folder / "averaged") for line in weights(path)]
    if "-o" in words:
        file = folder / words[words.index("-o") + 1]
        return tensors(file) if file.suffix == ".safetensors" else file.read_text(encoding="utf-8").splitlines()
    if "--json" in words:
        return list(values(read_json(out), strings=words[0] not in ("eval", "look")))
    return out.splitlines()


def run_lessons(lessons: str, folder: Path, names: Names) -> Values:
    found = {}
    for name in lessons.split():
        called = RENAMED["lessons"].get(name, name)
        documents = read_json(run(["lesson", called, "--json"], folder))
        found[f"{name} numbers"] = list(values(documents, strings=False))
        found[f"{name} numbers of the text"] = numbers_of(run(["lesson", called], folder))
    return found


def run_resume(name: str, folder: Path, names: Names) -> Values:
    """A run that is interrupted after its first checkpoint and goes on, beside one that is not."""
    command = train(name, folder, names)
    recipe = folder / "recipe.toml"
    text = re.sub(r"^(train\.steps = ).*", r"\g<1>80", recipe.read_text(), flags=re.M)
    recipe.write_text(re.sub(r"^(train\.(every|validate_every) = ).*", r"\g<1>20", text, flags=re.M))
    run(command, folder)
    stopped = [word if word != "run" else "stopped" for word in command]
    pid = fork_command(stopped, folder)
    for _ in range(10_000):
        if checkpoints(folder / "stopped"):
            break
        time.sleep(0.005)
    os.kill(pid, signal.SIGINT)
    code = finish(pid, folder).code
    if code != 130:
        return {"resumed": [f"FAILED not interrupted: it ended with {code}"]}
    at = checkpoints(folder / "stopped")[-1].name
    run(stopped, folder)
    whole, resumed = (weights(checkpoints(folder / one)[-1]) for one in ("run", "stopped"))
    return {"resumed": ["same tensors"] if whole == resumed else [f"FAILED other tensors after resuming at {at}"]}


@dataclass(frozen=True)
class Client:
    """The studio's HTTP API. Keys are those of the base revision, or what behavior_names.toml says."""

    address: str

    def ask(self, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        try:
            request = urllib.request.Request(self.address + path, data, {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise FailedCommand(f"{path} {body}: {error.code} {error.read()[:300]!r}") from None

    def post(self, path: str, body: Any) -> Any:
        try:
            return read_json(self.ask(path, body).decode())[0]
        except FailedCommand:
            if (other := reword(body)) == body:
                raise
            return read_json(self.ask(path, other).decode())[0]

    def numbers(self, header: Any) -> list[str]:
        return list(values(header, strings=False))

    def tensors(self, header: Any) -> list[str]:
        """All tensors of a trace, downloaded."""
        found = []
        for entry in get(header, "tensors"):
            content = self.ask(f"/api/v1/traces/{get(header, 'id')}/tensors/{get(entry, 'name')}")
            found.append(f"{'x'.join(get(entry, 'shape'))} {hashlib.sha256(content).hexdigest()[:24]}")
        return sorted(found)


def get(table: Any, key: str) -> Any:
    return table[next(name for name in [key, *RENAMED["studio"].get(key, [])] if name in table)]


def reword(body: Any) -> Any:
    if isinstance(body, dict):
        return {RENAMED["studio"].get(key, [key])[0]: reword(value) for key, value in body.items()}
    return RENAMED["studio"].get(body, [body])[0] if isinstance(body, str) else body


def run_studio(name: str, folder: Path, names: Names) -> Values:
    for name in SHOWN:
        run(train(name, folder, names, f"runs/{name.replace(' ', '-')}"), folder)
    pid = fork_command(["studio", "runs", "--port", "0", "--no-browser"], folder)
    try:
        for _ in range(2_000):
            said = (folder / "out.txt", folder / "err.txt")
            if found := re.search(r"http://[\d.]+:\d+", "".join(file.read_text() for file in said if file.exists())):
                break
            time.sleep(0.02)
        else:
            raise FailedCommand("the studio did not start")
        return ask_studio(Client(found[0]))
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def ask_studio(client: Client) -> Values:
    models = {
        get(one, "name"): get(one, "id") for one in get(read_json(client.ask("/api/v1/models").decode())[0], "models")
    }
    found: Values = {}
    for name, number in sorted(models.items()):
        text = "this film was so great" if name.startswith("classify") else "le chat dort"
        request = {"model": number, "text": text} | ({} if name.startswith("classify") else {"decode": {"beam": 2}})
        header = client.post("/api/v1/traces", request)
        found[f"{name} header"] = client.numbers(header)
        found[f"{name} tensors"] = client.tensors(header)
        for change in changes_of(header, name):
            at = f"/api/v1/traces/{get(header, 'id')}/fork"
            try:
                fork_summary = client.post(at, {"change": change})
            except FailedCommand as error:
                found[f"{name} what-if {change['kind']}"] = [f"FAILED {error}"]
                continue
            found[f"{name} what-if {change['kind']}"] = [*client.numbers(fork_summary), *client.tensors(fork_summary)]
        view = "saliency" if name.startswith("classify") else "gradients"
        answer = attempt(lambda: [client.ask(f"/api/v1/traces/{get(header, 'id')}/{view}").decode()])  # noqa: B023
        failed = answer[0].startswith("FAILED")
        found[f"{name} {view}"] = answer if failed else client.numbers(read_json(answer[0]))
    return found


def changes_of(header: Any, name: str) -> Iterator[dict[str, Any]]:
    """What-ifs that a model can answer: another word, a head switched off, no positions, no mask."""
    if name.startswith("classify"):
        return
    step = get(header, "steps")[0]
    chosen = get(get(step, "chosen"), "id")
    yield {
        "kind": "token",
        "step": 0,
        "id": int(next(get(w, "id") for w in get(step, "best") if get(w, "id") != chosen)),
    }
    if "transformer" not in name:
        return
    heads = [one for one in get(header, "tensors") if len(one["shape"]) == 3 and get(one, "axes")[0] == "head"
             and float(one["min"]) >= 0 and float(one["max"]) <= 1]  # fmt: skip
    yield {"kind": "head", "tensor": get(heads[-1], "name"), "head": 1}
    yield {"kind": "positions"}
    yield {"kind": "mask"}


def run_unit(unit: str, folder: Path, names: Names) -> Values:
    kind, _, name = unit.partition(" ")
    special = {"lesson": run_lessons, "resume": run_resume, "studio": run_studio}
    try:
        return special[kind](name, folder, names) if kind in special else run_job(unit, folder, names)
    except FailedCommand as error:
        return {"commands": [f"FAILED {error}"]}
    except Exception as error:  # an answer of another form than expected is a difference, not the end of the comparison
        return {"commands": [f"FAILED {type(error).__name__}: {error}"]}


def work(tree: Path) -> None:
    """Answer units, one per line of stdin, with JSON; this process has the code of one tree."""
    import sacrebleu  # noqa: F401
    import torch
    import torch._dynamo  # what is slow to import is imported before the forks

    import regard

    assert Path(regard.__file__).is_relative_to(tree / "src"), f"{regard.__file__} is not in {tree}"
    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(regard.__path__, "regard."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(Exception):  # a fault in it shows where a command needs it
                importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as home:
        names = Names(Path(home))
        for unit in map(str.strip, sys.stdin):
            folder = Path(tempfile.mkdtemp(dir=home)).resolve()
            found = run_unit(unit, folder, names)
            print(json.dumps(found), flush=True)
            shutil.rmtree(folder, ignore_errors=True)


# Both trees


def fingerprint(unit: str) -> str:
    """What a kept result hangs on, but for the revision."""
    import importlib.metadata

    task = unit.removeprefix("resume ").split()[0]
    settings = [
        SETTINGS.get(name) for name in (unit, unit.removeprefix("resume "), *(SHOWN if unit == "studio" else ()))
    ]
    cpu = Path("/proc/cpuinfo")
    model = re.search(r"model name.*", cpu.read_text())[0] if cpu.exists() else platform.processor()  # type: ignore[index]
    versions = [importlib.metadata.version(name) for name in ("torch", "numpy", "tokenizers")]
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        data = [file.read_text(encoding="utf-8") for file in sorted(Path(folder).iterdir())]
    parts = [FORMAT, TRAIN, settings, USES.get(task), MORE_USES.get(unit), TEXTS, model, versions, sys.version, data]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


@dataclass
class Tree:
    """A checkout, its worker processes, and the results that are kept of it."""

    path: Path
    kept: Path | None = None
    workers: dict[int, subprocess.Popen[str]] = field(default_factory=dict)

    def results(self, unit: str) -> Values:
        file = self.kept and self.kept / f"{unit.replace(' ', '-')[:60]}-{fingerprint(unit)}.json"
        if file and file.exists():
            return json.loads(file.read_text(encoding="utf-8"))
        worker = self.workers.get(threading.get_ident()) or self._start()
        assert worker.stdin and worker.stdout
        worker.stdin.write(unit + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.path} ended")
        if file and "FAILED" not in line:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(line, encoding="utf-8")
        return json.loads(line)

    def _start(self) -> subprocess.Popen[str]:
        more = {"PYTHONPATH": str(self.path / "src"), "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        more |= {"COLUMNS": "100", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, __file__, "--worker", str(self.path)]
        worker = subprocess.Popen(
            command, env=os.environ | more, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self.workers[threading.get_ident()] = worker
        return worker

    def close(self) -> None:
        for worker in self.workers.values():
            if worker.stdin:
                worker.stdin.close()
            worker.wait()


def difference(base: list[str], new: list[str], ordered: bool) -> str:
    """Nothing if two lists are the same; else what differs."""
    for side, found in (("base", base), ("new", new)):
        if found and found[0].startswith("FAILED"):
            return f"{side}: {found[0]}"
    if base == new or (not ordered and sorted(base) == sorted(new)):
        return ""
    other = [(a, b) for a, b in zip(base, new) if a != b]
    first = f"; first: {other[0][0][:90]} -> {other[0][1][:90]}" if other else ""
    return f"{len(base)} -> {len(new)} values, {len(other)} differ{first}"


def compare(unit: str, base: Values, new: Values) -> tuple[list[str], int]:
    """A line per comparison, and how many differ."""
    lines, differing = [], 0
    for side, found in (("base", base), ("new", new)):
        if stop := found.get("commands") or found.get("worker"):  # nothing else can be compared
            return [f"DIFFERS  {unit}: {side}: {stop[0]}"], 1
    for name in dict.fromkeys([*base, *new]):
        title = f"{unit}: {name}"
        if name in base and name in new:
            ordered = not unit.startswith(("lesson", "studio"))
            what = difference(base[name], new[name], ordered)
        else:
            what = f"only in {'base' if name in base else 'new'}: {(base | new)[name][:1]}"
        if what and (why := RENAMED["accepted"].get(title)):
            lines.append(f"accepted {title} ({why}): {what}")
            continue
        differing += bool(what)
        lines.append(f"DIFFERS  {title}: {what}" if what else f"same     {title} ({len(base[name])} values)")
    return lines, differing


def compare_trees(base: Tree, new: Tree, units: list[str], workers: int) -> int:
    """Compare all units; how many comparisons differ."""
    start, lock, found = time.monotonic(), threading.Lock(), dict[str, dict[str, Values]]()
    tasks: queue.Queue[tuple[str, Tree]] = queue.Queue()
    totals = [0, 0]
    for unit in units:
        tasks.put((unit, base))
        tasks.put((unit, new))

    def go_on() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                unit, tree = tasks.get_nowait()
                try:
                    values_found = tree.results(unit)
                except Exception as error:
                    values_found = {"worker": [f"FAILED {error}"]}
                with lock:
                    both = found.setdefault(unit, {})
                    both["base" if tree is base else "new"] = values_found
                    if len(both) == 2:
                        lines, differing = compare(unit, both["base"], both["new"])
                        totals[0] += len(lines)
                        totals[1] += differing
                        print("\n".join(f"[{time.monotonic() - start:4.0f} s] {line}" for line in lines), flush=True)

    threads = [threading.Thread(target=go_on) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{totals[0]} comparisons of {len(units)} units, {totals[1]} differ ({time.monotonic() - start:.0f} s)")
    return totals[1]


def git(*arguments: str, at: Path = ROOT) -> str:
    return subprocess.run(["git", "-C", str(at), *arguments], check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def checkout(revision: str, given: Path | None) -> Iterator[Path]:
    """A worktree of a revision, removed in the end, or one that is there."""
    if given:
        yield given.resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder).resolve() / "base"
        git("worktree", "add", "--detach", str(path), revision)
        try:
            yield path
        finally:
            git("worktree", "remove", "--force", str(path))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", default="e077c64", metavar="REV", help="the revision to compare with")
    options.add_argument("--base-tree", type=Path, metavar="FOLDER", help="a worktree of it, instead of a new one")
    options.add_argument("--new-tree", type=Path, default=ROOT, metavar="FOLDER", help="default: this working tree")
    options.add_argument("--only", default="", metavar="SUBSTRING", help="only units with this in their name")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the results of the base revision here")
    options.add_argument("--workers", type=int, default=2, help="processes at a time")
    options.add_argument("--list", action="store_true", help="only list the units")
    options.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.worker:
        return work(given.worker)
    units = [unit for unit in UNITS if given.only in unit]
    if given.list:
        return print("\n".join(units))
    with checkout(given.base, given.base_tree) as path:
        clean = not git("status", "--porcelain", "--", "src", at=path)
        kept = given.keep.resolve() / git("rev-parse", "--short=12", "HEAD", at=path) if given.keep and clean else None
        trees = Tree(path, kept), Tree(given.new_tree.resolve())
        print(f"base {trees[0].path}, new {trees[1].path}, {len(units)} units", flush=True)
        try:
            differing = compare_trees(*trees, units, given.workers)
        finally:
            for tree in trees:
                tree.close()
    sys.exit(1 if differing or not units else 0)


if __name__ == "__main__":
    main()
