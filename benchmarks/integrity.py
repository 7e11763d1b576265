"""A run is whole or refused: bit flips, corruptions and hostile folders, for every task.

    python benchmarks/integrity.py [--flips 500] [--corruptions 300] [--tasks translate numbers ...]

A flip is unnoticed if a model answers differently, or fails, without a refusal. A corruption or a hostile folder fails
if a verb ends in a traceback or "this is a bug", or takes longer than five seconds. Everything runs in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import torch

import regard
from regard import manifest
from regard.cli import invoke
from regard.errors import RegardError
from regard.files import digest_bytes, write_bytes_atomically
from regard.train.events import MetricsFile

TINY = ("train.steps=4", "train.save_every=2", "train.validate_every=4", "train.schedule.warmup=2")
TRANSFORMER = (
    "model.kind=transformer", "model.layers=1", "model.width=16", "model.heads=2", "model.ffn_width=32",
)  # fmt: skip
PHRASES = (
    "data.kind=phrases", "data.count=300", "text.vocab_size=200", "train.batch_tokens=512", "task.bleu_sentences=0",
    "train.best_metric=loss", "decode.min_length=4", "decode.max_extra_tokens=6", *TRANSFORMER,
)  # fmt: skip
TASKS: dict[str, tuple[tuple[str, ...], str]] = {
    "translate": ((*PHRASES,), "je suis étudiant"),
    "translate-two": ((*PHRASES, "task.share_vocab=false", "model.tie=target"), "je suis étudiant"),
    "generate": (
        ("task.kind=generate", "data.kind=text", "data.train={}/book.txt", "model.kind=rnnlm", "model.width=16",
         "model.layers=1", "task.window=16", "train.batch_tokens=64", "decode.sample=false", "task.length=20"),
        "the cat",
    ),
    "numbers": (
        ("task.kind=generate", "data.kind=numbers", "data.train={}/wave.txt", "data.valid={}/wave.txt",
         "model.kind=rnnlm", "model.width=16", "model.layers=1", "task.window=16", "train.batch_tokens=64",
         "decode.sample=false", "task.length=4", "train.best_metric=loss"),
        "0.5\n0.7\n0.9",
    ),
    "classify": (
        ("task.kind=classify", "data.kind=tsv", "data.train={}/reviews.tsv", "data.valid={}/reviews.tsv",
         "model.kind=recurrent", "model.width=16", "train.batch_tokens=256"),
        "it is great",
    ),
    "table": (
        ("task.kind=classify", "data.kind=table", "data.train={}/table.csv", "data.label=kind", "model.kind=mlp",
         "model.width=8", "train.batch_tokens=64"),
        "5.1,3.5,1.4",
    ),
    "images": (
        ("task.kind=classify", "data={{kind = 'digits', count = 120}}", "model={{kind = 'cnn', channels = [4, 8]}}",
         "train.batch_tokens=16"),
        "digits#test/7",
    ),
    "label": (
        ("task.kind=label", "task.scheme=bio", "data.kind=conll", "data.train={}/names.conll", "data.valid_share=0.15",
         "train.batch_tokens=256", *TRANSFORMER),
        "Ada lives in Rome .",
    ),
    "forecast": (
        ("task.kind=forecast", "task.horizon=4", "task.window=12", "data.kind=csv", "data.train={}/load.csv",
         "model.kind=recurrent", "model.width=8", "train.batch_tokens=96"),
        "",
    ),
    "fill": (
        ("task.kind=fill", "task.length=20", "data={{kind = 'text', train = '{}/book.txt', unit = 'line'}}",
         "text={{kind = 'wordpiece', vocab_size = 80}}", "train.batch_tokens=256",
         "model={{kind = 'bert', layers = 1, width = 16, ffn_width = 32, heads = 2, max_positions = 32}}"),
        "the cat [MASK] and the [MASK] too",
    ),
    "caption": (
        ("task.kind=caption", "data={{kind = 'shapes', count = 100}}", "train.batch_tokens=16",
         "model={{kind = 'encoder-decoder', encoder = {{kind = 'cnn', channels = [4, 8]}}, decoder = {{kind = 'luong', "
         "layers = 1, width = 16}}}}"),
        "shapes#test/3",
    ),
    "regress": (
        ("task.kind=regress", "task.pool=last", "data={{kind = 'moving-shapes', count = 80}}", "train.batch_tokens=8",
         "model={{kind = 'cnn-lstm', channels = [4, 8], width = 8}}"),
        "clips#test/7",
    ),
    "vectors": (
        ("task.kind=vectors", "data.kind=text", "data.unit=line", "data.train={}/book.txt", "model.width=8",
         "train.batch_tokens=1024", "task.subsample=0"),
        "cat",
    ),
}  # fmt: skip
"""settings and an input of each task; {} is the folder of the data"""
SECONDS = 5.0
"""longest time that a verb may take on a damaged or hostile run"""


def write_data(folder: Path) -> None:
    """Small files for every task."""
    draw = random.Random(1)
    nouns, verbs = ("cat", "dog", "horse", "cow"), ("eats", "sleeps", "runs", "drinks")
    lines = [f"the {draw.choice(nouns)} {draw.choice(verbs)} and the {draw.choice(nouns)} too" for _ in range(400)]
    files = {
        "book.txt": "\n".join(lines) + "\n",
        "wave.txt": "".join(f"{draw.gauss(0, 1):.3f}\n" for _ in range(400)),
        "reviews.tsv": "text\tlabel\n"
        + "".join(
            f"{start} {word}\t{label}\n"
            for start in ("it is", "so", "very", "a film ,")
            for label, words in (("yes", ("great", "fine")), ("no", ("bad", "dull")))
            for word in words
            for _ in range(9)
        ),
        "table.csv": "a,b,c,kind\n"
        + "".join(f"{4 + i % 7},{2 + i % 3},{i % 5},{'rose' if i % 7 > 3 else 'lily'}\n" for i in range(120)),
        "names.conll": "".join(
            f"{name} B-PER\nlives O\nin O\n{town} B-LOC\n. O\n\n"
            for name in ("Ada", "Alan", "Emmy")
            for town in ("Rome", "Oslo", "Lima")
            for _ in range(6)
        ),
        "load.csv": "date,load\n"
        + "".join(f"2024-{m:02}-{d:02},{20 + (m * 31 + d) % 7 + d / 10}\n" for m in (1, 3) for d in range(1, 32))
        .replace("2024-03", "2024-02")
        .split("2024-02-30")[0],
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def train_run(task: str, data: Path, out: Path, changed: Sequence[str] = ()) -> Path:
    """A tiny run of a task, with two checkpoints; `changed` are further settings."""
    settings, _ = TASKS[task]
    recipe = regard.Recipe.read(None, [setting.format(data) for setting in (*settings, *TINY, *changed)])
    regard.Run(out).train(recipe, listeners=[MetricsFile(out, every=1)])
    return out


def question(task: str, data: Path) -> str:
    """An input for a task: a text, or for a forecast the series."""
    return TASKS[task][1] or (data / "load.csv").read_text(encoding="utf-8")


def needed_files(run: Path) -> list[Path]:
    """Every file that is needed to answer: those of the manifests, and the manifests."""
    listed = manifest.require_manifest(run)
    checkpoint = run / (run / "best").readlink()
    kept = [run / name for name in (manifest.NAME, *listed.files)]
    return [*kept, *(checkpoint / name for name in ("manifest.json", "state.json", "model.safetensors"))]


def flip(file: Path, draw: random.Random) -> None:
    """Change one bit of a file, in place of the old one (hard links are not changed)."""
    data = bytearray(file.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    file.unlink()
    file.write_bytes(data)


@dataclass
class FlipCounts:
    """What became of the flips."""

    refused: int = 0
    reported: int = 0
    """an older checkpoint answered, with a warning"""
    harmless: int = 0
    """not noticed, and the answer is the same"""
    unnoticed: list[str] = field(default_factory=list)


def flip_bits(run: Path, text: str, count: int, seed: int = 0) -> FlipCounts:
    """Flip bits of the files that a run needs, one at a time, and let it answer."""
    draw, found, expected = random.Random(seed), FlipCounts(), regard.load(run).predict_text(text)
    files = needed_files(run)
    for number in range(count):
        file = files[number % len(files)]
        before = file.read_bytes()
        flip(file, draw)
        try:
            model = regard.load(run)
            answer = model.predict_text(text)
            if model.refused:
                found.reported += 1
            elif answer == expected:
                found.harmless += 1
            else:
                found.unnoticed.append(f"{file.name}: another answer")
        except RegardError:
            found.refused += 1
        except Exception as error:
            found.unnoticed.append(f"{file.name}: {type(error).__name__}: {error}")
        finally:
            file.write_bytes(before)
    return found


class Hang(BaseException):
    """A verb took too long."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise Hang in the block after a while."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang

    old = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@dataclass(frozen=True)
class Verdict:
    """What a command did."""

    code: int | None
    """None: it did not end in time"""
    out: str
    err: str
    seconds: float

    @property
    def fault(self) -> str:
        """What is wrong about it, or nothing."""
        if self.code is None:
            return f"no end after {self.seconds:.1f} s"
        text = self.out + self.err
        return text[-300:] if "this is a bug" in text or "Traceback" in text else ""


def run_verb(arguments: list[str], limit: float = SECONDS) -> Verdict:
    """Run a command line in this process, with its output captured and a time limit."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    began, code, stdin = time.perf_counter(), None, sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8")
    try:
        streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with streams[0], streams[1], contextlib.suppress(Hang), time_limit(limit):
            code = invoke(arguments)
    finally:
        sys.stdin = stdin
    texts = [stream.buffer.getvalue().decode(errors="replace") for stream in (out, err)]  # type: ignore[attr-defined]
    return Verdict(code, *texts, time.perf_counter() - began)


def verbs(task: str, run: Path, data: Path, train: bool = True) -> list[list[str]]:
    """The commands that are tried on a damaged run."""
    same_verb = {"translate-two": "translate", "numbers": "generate", "table": "classify", "images": "classify"}
    kind = same_verb.get(task, task)
    use = [kind, str(run), TASKS[task][1]]
    if kind == "vectors":
        use = ["vectors", "neighbors", str(run), "cat"]
    elif kind == "forecast":
        use = ["forecast", str(run), str(data / "load.csv")]
    listing = [["runs", "ls", str(run.parent)], ["runs", "ls", str(run.parent), "--json"]]
    shown = [["runs", "show", str(run)], ["runs", "show", str(run), "--json"], ["runs", "diff", str(run), str(run)]]
    found = [use, *listing, *shown, ["eval", str(run), "--split", "valid", "--json"]]
    average = ["average", str(run), "--out", str(run) + "-average"]
    return [*found, average, ["train", str(run), "train.steps=6", "-q"]] if train else found


def corrupt(run: Path, draw: random.Random) -> str:
    """Damage one file of a run; says what was done."""
    files = [file for file in sorted(run.rglob("*")) if file.is_file() and not file.is_symlink()]
    file = draw.choice(files)
    data = file.read_bytes()
    others = [
        b"[]",
        b"{}",
        b"null",
        b"NaN",
        b'{"a": 1}',
        b'{"state": {"step": 1e999}}',
        b'"text"',
        b"[[1]]",
        b"\xff\xfe",
    ]
    name, act = draw.choice(
        [
            ("truncated", lambda: data[: draw.randrange(len(data) + 1)]),
            ("emptied", lambda: b""),
            ("replaced by other JSON", lambda: draw.choice(others)),
            ("replaced by another file", lambda: draw.choice(files).read_bytes()),
            ("deleted", lambda: None),
        ]
    )
    new = act()
    file.unlink()
    if new is not None:
        file.write_bytes(new)
    return f"{file.relative_to(run)} {name}"


def restamp(run: Path) -> None:
    """Write manifests that agree with the files as they are: what the author of a hostile run would do."""
    files = [run / name for name in manifest.read_run_manifest(run).artifacts]  # type: ignore[union-attr]
    manifest.list_files(run, [file for file in files if file.is_file()])
    for folder in (run / "checkpoints").iterdir():
        content = json.loads((folder / "manifest.json").read_bytes())
        content.pop("digest")
        for name in content["files"]:
            found = digest_bytes((folder / name).read_bytes())
            content["files"][name] = {"sha256": found.sha256, "size": found.size}
        write_bytes_atomically(folder / "manifest.json", manifest.render_manifest(content))


def replace_file(file: Path, data: bytes) -> None:
    """Put other bytes in place of a file, without changing hard links."""
    file.unlink(missing_ok=True)
    file.write_bytes(data)


def fifo(file: Path) -> None:
    """Put a FIFO in place of a file."""
    file.unlink(missing_ok=True)
    os.mkfifo(file)


def link(file: Path, target: str) -> None:
    """Put a symbolic link in place of a file."""
    file.unlink(missing_ok=True)
    file.symlink_to(target)


def edit_recipe(run: Path, old: str, new: str) -> None:
    """Change the recipe of a run, and its manifest."""
    text = (run / "recipe.toml").read_text(encoding="utf-8")
    assert old in text, (old, text)
    replace_file(run / "recipe.toml", text.replace(old, new).encode())
    restamp(run)


def edit_state(run: Path, state: bytes) -> None:
    """Replace the training state of all checkpoints, and their manifests."""
    for folder in (run / "checkpoints").iterdir():
        replace_file(folder / "state.json", b'{"regard": "0", "state": ' + state + b"}")
    restamp(run)


DEEP = b"[" * 100_000


def big_json() -> bytes:
    """100 MB of JSON on one line."""
    return b"[" + b"0," * (BIG // 2) + b"0]\n"


BIG = 100 << 20
JSON_NAMES = ("manifest.json", "recipe.toml", "tokenizer.json", "environment.json", "metrics.jsonl", "samples.jsonl")
HOSTILE: dict[str, Callable[[Path], object]] = {
    **{f"{name} is a FIFO": lambda run, name=name: fifo(run / name) for name in (*JSON_NAMES, "control", "last")},
    "state.json is a FIFO": lambda run: fifo(run / "last" / "state.json"),
    "checkpoint manifest is a FIFO": lambda run: fifo(run / "last" / "manifest.json"),
    "weights are a FIFO": lambda run: fifo(run / "last" / "model.safetensors"),
    "identity.json is a FIFO": lambda run: fifo(run / "data" / "identity.json"),
    "counts.json is a FIFO": lambda run: fifo(run / "data" / "counts.json"),
    "shards are a FIFO": lambda run: fifo(run / "data" / "train" / "manifest.json"),
    **{f"{name} has 100,000 brackets": lambda run, name=name: replace_file(run / name, DEEP) for name in JSON_NAMES},
    "the recipe has 100,000 brackets": lambda run: replace_file(run / "recipe.toml", b"x = " + DEEP),
    "the recipe has 100,000 inline tables": lambda run: replace_file(run / "recipe.toml", b"x = " + b"{a=" * 100_000),
    "a key has 100,000 parts": lambda run: replace_file(run / "recipe.toml", b"a" + b".a" * 100_000 + b" = 1\n"),
    "a header has 100,000 parts": lambda run: replace_file(run / "recipe.toml", b"[a" + b".a" * 100_000 + b"]\n"),
    "the recipe is 100 MB": lambda run: replace_file(run / "recipe.toml", b"#" * BIG),
    "the manifest is 100 MB of JSON": lambda run: replace_file(run / "manifest.json", big_json()),
    "the state is 100 MB of JSON": lambda run: replace_file(run / "last" / "state.json", big_json()),
    "metrics are a line of 100 MB": lambda run: replace_file(run / "metrics.jsonl", big_json()),
    "samples are a line of 100 MB": lambda run: replace_file(run / "samples.jsonl", big_json()),
    "the tokenizer is 100 MB, listed": lambda run: (
        replace_file(run / "tokenizer.json", big_json()),
        write_bytes_atomically(run / "manifest.json", manifest.RunManifest(
            {name: digest_bytes((run / name).read_bytes()) for name in ("recipe.toml", "tokenizer.json")}).render()),
    ),
    "layers = 2,000,000": lambda run: edit_recipe(run, "layers = 1", "layers = 2000000"),
    "width = 2,000,000": lambda run: edit_recipe(run, "width = 16\n", "width = 2000000\n"),
    "width = 10 ** 12": lambda run: edit_recipe(run, "width = 16\n", f"width = {10**12}\n"),
    "ffn_width = 10 ** 30": lambda run: edit_recipe(run, "ffn_width = 32", f"ffn_width = {10**30}"),
    "a number of 100,000 digits": lambda run: edit_recipe(run, "ffn_width = 32", f"ffn_width = {'9' * 100_000}"),
    "width = inf": lambda run: edit_recipe(run, "dropout = ", "dropout = inf #"),
    "kind is a list": lambda run: edit_recipe(run, 'kind = "transformer"', 'kind = ["transformer"]'),
    "kind is a table": lambda run: edit_recipe(run, 'kind = "transformer"', 'kind = {a = 1}'),
    "the state has NaN": lambda run: edit_state(run, b'{"step": NaN, "best": {"loss": NaN}}'),
    "the state has 1e999": lambda run: edit_state(run, b'{"step": 1e999, "best": {"a": 1e999}}'),
    "the state is a list": lambda run: edit_state(run, b'[]'),
    "the state has texts": lambda run: edit_state(run, b'{"step": "x", "best": {"loss": "y"}}'),
    "the state has half a character": lambda run: edit_state(run, b'{"best": {"\\ud800": 1}}'),
    "metrics have NaN and 1e999": lambda run: replace_file(
        run / "metrics.jsonl",
        b'{"event": "validated", "step": 1e999, "loss": NaN}\n{"event": "validated", "step": 1, "loss": NaN}\n',
    ),
    "metrics are of other types": lambda run: replace_file(
        run / "metrics.jsonl", b'[]\n{"event": "validated"}\n{"event": []}\n{"event": "stepped", "seconds": "x"}\n'
    ),
    "the recipe links to itself": lambda run: link(run / "recipe.toml", "recipe.toml"),
    "the recipe links to a device": lambda run: link(run / "recipe.toml", "/dev/zero"),
    "the tokenizer links to a device": lambda run: link(run / "tokenizer.json", "/dev/zero"),
    "the tokenizer links to nothing": lambda run: link(run / "tokenizer.json", "nowhere"),
    "last links out of the run": lambda run: link(run / "last", "/usr"),
    "last links to the run": lambda run: link(run / "last", "."),
    "best links to itself": lambda run: link(run / "best", "best"),
    "the weights link to a device": lambda run: link(run / "last" / "model.safetensors", "/dev/zero"),
    "recipe.toml is a folder": lambda run: ((run / "recipe.toml").unlink(), (run / "recipe.toml").mkdir()),
    "state.json is a folder": lambda run: ((run / "last/state.json").unlink(), (run / "last/state.json").mkdir()),
    "the manifest lists a path": lambda run: write_bytes_atomically(
        run / "manifest.json", manifest.RunManifest({"../../etc/passwd": digest_bytes(b"")}).render()
    ),
    "the manifest is of a later version": lambda run: replace_file(
        run / "manifest.json", manifest.render_manifest({"format": 99, "files": {}})
    ),
    "a header of weights of 2 ** 60 bytes": lambda run: (
        replace_file(run / "last" / "model.safetensors", (1 << 60).to_bytes(8, "little") + b"{}"), restamp(run)
    ),
    "weights that are not safetensors": lambda run: (
        replace_file(run / "last" / "model.safetensors", b"\x02" + bytes(7) + b"{}x"), restamp(run)
    ),
}  # fmt: skip
"""name -> what is done to a copy of a whole run of translation"""


def copy_run(run: Path, folder: Path) -> Path:
    """A copy of a run in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Path(shutil.copytree(run, folder / run.name, symlinks=True))


def try_corruptions(task: str, run: Path, data: Path, count: int, folder: Path) -> Counter[str]:
    """Corrupt copies of a run, and try every verb on each."""
    draw, found = random.Random(count), Counter[str]()
    for _ in range(count):
        copy = copy_run(run, folder)
        what = corrupt(copy, draw)
        for verb in verbs(task, copy, data):
            verdict = run_verb(verb)
            found["verbs"] += 1
            if verdict.fault:
                found["faults"] += 1
                print(f"  {task}: {what}: {' '.join(verb[:2])}: {verdict.fault}", flush=True)
    return found


def try_hostile(run: Path, data: Path, folder: Path) -> Counter[str]:
    """Make copies of a run hostile, and try every verb on each."""
    found, slowest = Counter[str](), 0.0
    for what, act in HOSTILE.items():
        copy = copy_run(run, folder)
        act(copy)
        for verb in verbs("translate", copy, data):
            verdict = run_verb(verb)
            found["verbs"], slowest = found["verbs"] + 1, max(slowest, verdict.seconds)
            if verdict.fault:
                found["faults"] += 1
                print(f"  {what}: {' '.join(verb[:2])}: {verdict.fault}", flush=True)
    print(f"slowest verb on a hostile folder: {slowest:.2f} s")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--corruptions", type=int, default=300)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="regard-integrity-") as name:
        home = Path(name)
        write_data(home)
        runs = {task: train_run(task, home, home / "whole" / task) for task in options.tasks}
        bad = 0
        for task, run in runs.items():
            found = flip_bits(run, question(task, home), options.flips)
            bad += len(found.unnoticed)
            counts = f"{found.refused} refused, {found.reported} passed over with a warning, {found.harmless} harmless"
            print(f"{task}: {options.flips} flips of {len(needed_files(run))} files: {counts}, "
                  f"{len(found.unnoticed)} unnoticed {found.unnoticed[:3] or ''}", flush=True)  # fmt: skip
        total = Counter[str]()
        for task, run in runs.items():
            total += try_corruptions(task, run, home, -(-options.corruptions // len(runs)), home / "copy")
        print(f"{options.corruptions} corruptions: {total['verbs']} verbs, {total['faults']} faults")
        if "translate" in runs:
            total = try_hostile(runs["translate"], home, home / "copy")
            print(f"{len(HOSTILE)} hostile folders: {total['verbs']} verbs, {total['faults']} faults")
    sys.exit(bool(bad or total["faults"]))


if __name__ == "__main__":
    main()
