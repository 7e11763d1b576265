"""Small translation models for lessons: trained at first use on generated sentences, and cached."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from regard.data.download.datasets import cache_folder
from regard.errors import OutputError
from regard.lessons.pronouns import sentences
from regard.progress import Progress, no_progress
from regard.run import Run
from regard.tasks import Recipe
from regard.train.events import Event, Listener, Stepped

COMMON = (
    *("text.kind=word", "text.vocab_size=2000", "task.bleu_sentences=0", "decode.beam=1"),
    *("train.batch_tokens=512", "train.label_smoothing=0.0", "train.schedule.kind=cosine", "train.schedule.warmup=50"),
    "train.validate_every=100000",
)
PHRASES = ("data.kind=phrases", "data.count=4000")
SETTINGS = {
    "rnnsearch": (
        *(*PHRASES, "model.kind=rnnsearch"),
        *("model.embedding=64", "model.width=64", "model.alignment=64", "model.maxout=64"),
        *("train.steps=600", "train.schedule.lr=1e-2"),
    ),
    "transformer": (
        *(*PHRASES, "model.kind=transformer"),
        *("model.layers=1", "model.width=64", "model.ffn_width=128", "model.heads=1", "model.dropout=0.0"),
        *("model.norm=pre", "train.steps=700", "train.schedule.lr=5e-3"),
    ),
    "pronoun": (
        *("data.kind=tsv", "model.kind=transformer", "model.layers=2", "model.width=64", "model.ffn_width=128"),
        *("model.heads=4", "model.dropout=0.0", "model.norm=pre", "train.steps=600", "train.schedule.lr=3e-3"),
    ),
}


def model_recipe(kind: str, *more: str) -> Recipe:
    """Recipe of a lesson model, with additional settings; on the CPU, where its numbers are reproducible."""
    return Recipe.read(None, [*COMMON, *SETTINGS[kind], "train.device=cpu", *more])


def cache_paths() -> dict[str, Path]:
    """Cached run of each model; the folder's name holds a digest of the settings."""
    digests = {kind: blake2b(repr((COMMON, settings)).encode(), digest_size=4) for kind, settings in SETTINGS.items()}
    return {kind: cache_folder() / "lessons" / f"{kind}-{digest.hexdigest()}" for kind, digest in digests.items()}


def missing_models(kinds: Sequence[str]) -> list[str]:
    """Models that are not in the cache yet."""
    return [kind for kind in kinds if not (cache_paths()[kind] / "best").exists()]


def train_missing(kinds: Sequence[str], progress: Progress = no_progress) -> list[Path]:
    """Cached runs of some models; missing ones are trained in a temporary folder and renamed into the cache."""
    for kind in missing_models(kinds):
        path = cache_paths()[kind]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=path.parent))
        except OSError as error:
            message = f"{path.parent}: cannot be written ({error.strerror}); set REGARD_CACHE to a folder of your own"
            raise OutputError(message) from None
        try:
            recipe = model_recipe(kind, *write_corpus(kind, folder))
            counter = _counter(f"training {kind}", recipe.train.steps or 0, progress)
            Run(folder / "run").train(recipe, listeners=[counter])
            with contextlib.suppress(OSError):  # another process cached the same model first
                (folder / "run").rename(path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return [cache_paths()[kind] for kind in kinds]


def write_corpus(kind: str, folder: Path) -> tuple[str, ...]:
    """Write the training data that is not built in to a folder, and give the settings that name it."""
    if kind != "pronoun":
        return ()
    files = {"train": False, "valid": True}
    for split, held_out in files.items():
        pairs = [f"{one.english}\t{one.french}\n" for one in sentences() if one.held_out == held_out]
        (folder / f"{split}.tsv").write_text("".join(pairs), encoding="utf-8")
    return tuple(f"data.{split}={folder / f'{split}.tsv'}" for split in files)


def _counter(what: str, steps: int, progress: Progress) -> Listener:
    def report(event: Event) -> None:
        if isinstance(event, Stepped):
            progress(what, event.step, steps)

    return report
