"""Two small translators that a lesson looks into: trained at its first use, on the built-in phrases, and kept."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from hashlib import blake2b
from pathlib import Path

from regard.data.catalogue import cache_folder
from regard.errors import OutputError
from regard.jobs import Recipe
from regard.run import Run
from regard.tasks.base import Tell, silent
from regard.train.events import Event, Listener, Stepped

COMMON = (
    *("data.kind=phrases", "data.count=4000", "text.kind=word", "text.size=2000", "task.scored=0", "decode.beam=1"),
    *("train.tokens=512", "train.smoothing=0.0", "train.schedule.kind=cosine", "train.schedule.warmup=50"),
    "train.every=100000",
)
SETTINGS = {
    "rnnsearch": (
        *("model.embedding=64", "model.width=64", "model.alignment=64", "model.maxout=64"),
        *("train.steps=600", "train.schedule.lr=1e-2"),
    ),
    "transformer": (
        *("model.layers=1", "model.width=64", "model.inner=128", "model.heads=1", "model.dropout=0.0"),
        *("model.norm=pre", "train.steps=700", "train.schedule.lr=5e-3"),
    ),
}


def recipe(kind: str, *more: str) -> Recipe:
    """The recipe of one of the two, with settings on top.

    >>> recipe("transformer", "model.heads=4").model.heads
    4
    """
    return Recipe.read(None, [*COMMON, f"model.kind={kind}", *SETTINGS[kind], *more])


def places() -> dict[str, Path]:
    """Where the two are kept; other settings, another place.

    >>> sorted(places())
    ['rnnsearch', 'transformer']
    """
    mark = blake2b(repr((COMMON, SETTINGS)).encode(), digest_size=4).hexdigest()
    return {kind: cache_folder() / "lessons" / f"{kind}-{mark}" for kind in SETTINGS}


def missing() -> list[str]:
    """Which of the two are still to be trained.

    >>> set(missing()) <= {"rnnsearch", "transformer"}
    True
    """
    return [kind for kind, path in places().items() if not (path / "best").exists()]


def trained(tell: Tell = silent) -> list[Path]:
    """The runs of the two; what is missing is trained first, beside its place, and moved there whole.

    >>> [path.name.split("-")[0] for path in (places().values() if missing() else trained())]
    ['rnnsearch', 'transformer']
    """
    for kind in missing():
        path = places()[kind]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=path.parent))
        except OSError as error:
            told = f"{path.parent}: cannot be written ({error.strerror}); set REGARD_CACHE to a folder of your own"
            raise OutputError(told) from None
        try:
            settings = recipe(kind)
            Run(beside).train(settings, listeners=[_counter(f"training {kind}", settings.train.steps or 0, tell)])
            with contextlib.suppress(OSError):  # somebody else was faster, with the same model
                beside.rename(path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return list(places().values())


def _counter(what: str, steps: int, tell: Tell) -> Listener:
    def heard(event: Event) -> None:
        if isinstance(event, Stepped):
            tell(what, event.step, steps)

    return heard
