import pytest
from filelock import FileLock  # a dependency of torch

from regard.lessons import LESSONS, teach
from regard.lessons.engine.cached_models import (
    SETTINGS,
    cache_paths,
    missing_models,
    model_recipe,
    train_missing,
    write_corpus,
)
from regard.run import Run

TINY = {
    "rnnsearch": ("data.count=200", "text.vocab_size=200"),
    "transformer": ("data.count=200", "text.vocab_size=200"),
    "pronoun": (),
}


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, worker_id):
    """A folder of this test session, the same for all xdist workers."""
    folder = tmp_path_factory.getbasetemp()
    shared = (folder if worker_id == "master" else folder.parent) / "lesson-models"
    shared.mkdir(exist_ok=True)
    return shared


@pytest.fixture(scope="session")
def runs(shared_folder):
    """Runs of two training steps, trained once per test session: enough to be inspected."""
    with FileLock(shared_folder / "tiny.lock"):
        for kind in SETTINGS:
            folder = shared_folder / f"tiny-{kind}"
            if not (folder / "run" / "best").exists():
                folder.mkdir(exist_ok=True)
                settings = (*TINY[kind], *write_corpus(kind, folder), "train.steps=2", "train.schedule.warmup=1")
                Run(folder / "run").train(model_recipe(kind, *settings))
    return {kind: str(shared_folder / f"tiny-{kind}" / "run") for kind in SETTINGS}


@pytest.fixture
def train_cached(shared_folder, monkeypatch):
    """Trains cached models with their own settings, each once per test session; lessons then use them."""
    monkeypatch.setenv("REGARD_CACHE", str(shared_folder / "cache"))

    def train(*kinds):
        for kind in kinds:
            with FileLock(shared_folder / f"{kind}.lock"):
                train_missing([kind])
        assert missing_models(kinds) == []
        return cache_paths()

    return train


@pytest.fixture(scope="session")
def compute_lesson(request):
    """Computes a lesson, once per set of changes."""
    cache = {}

    def lesson(name, **changes):
        needs = LESSONS[name].needs if name in LESSONS else ()
        if needs:
            paths = [request.getfixturevalue("runs")[kind] for kind in needs]
            changes = ({"models": paths} if len(paths) > 1 else {"model": paths[0]}) | changes
        key = name, repr(sorted(changes.items()))
        if key not in cache:
            cache[key] = teach(name, changes)
        return cache[key]

    return lesson
