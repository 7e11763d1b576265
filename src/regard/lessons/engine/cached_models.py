"""Small translators that lessons look into: trained at their first use, on sentences made by rule, and kept."""

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
from regard.objective import Tell, silent
from regard.run import Run
from regard.tasks import Recipe
from regard.train.events import Event, Listener, Stepped

COMMON = (
    *("text.kind=word", "text.size=2000", "task.scored=0", "decode.beam=1"),
    *("train.tokens=512", "train.smoothing=0.0", "train.schedule.kind=cosine", "train.schedule.warmup=50"),
    "train.every=100000",
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
        *("model.layers=1", "model.width=64", "model.inner=128", "model.heads=1", "model.dropout=0.0"),
        *("model.norm=pre", "train.steps=700", "train.schedule.lr=5e-3"),
    ),
    "pronoun": (
        *("data.kind=tsv", "model.kind=transformer", "model.layers=2", "model.width=64", "model.inner=128"),
        *("model.heads=4", "model.dropout=0.0", "model.norm=pre", "train.steps=600", "train.schedule.lr=3e-3"),
    ),
}


def recipe(kind: str, *more: str) -> Recipe:
    """The recipe of one of them, with settings on top.

    >>> recipe("transformer", "model.heads=4").model.heads
    4
    """
    return Recipe.read(None, [*COMMON, *SETTINGS[kind], *more])


def places() -> dict[str, Path]:
    """Where each is kept; other settings, another place.

    >>> sorted(places())
    ['pronoun', 'rnnsearch', 'transformer']
    """
    marks = {kind: blake2b(repr((COMMON, settings)).encode(), digest_size=4) for kind, settings in SETTINGS.items()}
    return {kind: cache_folder() / "lessons" / f"{kind}-{mark.hexdigest()}" for kind, mark in marks.items()}


def missing(kinds: Sequence[str]) -> list[str]:
    """Which of some are still to be trained.

    >>> set(missing(["rnnsearch", "transformer"])) <= {"rnnsearch", "transformer"}
    True
    """
    return [kind for kind in kinds if not (places()[kind] / "best").exists()]


def trained(kinds: Sequence[str], tell: Tell = silent) -> list[Path]:
    """The runs of some; what is missing is trained first, beside its place, and moved there whole.

    >>> trained([])
    []
    """
    for kind in missing(kinds):
        path = places()[kind]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=path.parent))
        except OSError as error:
            told = f"{path.parent}: cannot be written ({error.strerror}); set REGARD_CACHE to a folder of your own"
            raise OutputError(told) from None
        try:
            settings = recipe(kind, *corpus(kind, beside))
            counter = _counter(f"training {kind}", settings.train.steps or 0, tell)
            Run(beside / "run").train(settings, listeners=[counter])
            with contextlib.suppress(OSError):  # somebody else was faster, with the same model
                (beside / "run").rename(path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return [places()[kind] for kind in kinds]


def corpus(kind: str, folder: Path) -> tuple[str, ...]:
    """The settings that name what is learnt from; sentences that are not built in are written into a folder.

    >>> corpus("transformer", Path("nowhere"))
    ()
    """
    if kind != "pronoun":
        return ()
    files = {"train": False, "valid": True}
    for split, held_out in files.items():
        pairs = [f"{one.english}\t{one.french}\n" for one in sentences() if one.held_out == held_out]
        (folder / f"{split}.tsv").write_text("".join(pairs), encoding="utf-8")
    return tuple(f"data.{split}={folder / f'{split}.tsv'}" for split in files)


def _counter(what: str, steps: int, tell: Tell) -> Listener:
    def heard(event: Event) -> None:
        if isinstance(event, Stepped):
            tell(what, event.step, steps)

    return heard
