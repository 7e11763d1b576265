import pytest

from regard.lessons import teach
from regard.lessons.catalogue import CONTENTS
from regard.lessons.engine.cached_models import SETTINGS, corpus, recipe
from regard.run import Run

HARDLY = {
    "rnnsearch": ("data.count=200", "text.size=200"),
    "transformer": ("data.count=200", "text.size=200"),
    "pronoun": (),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Models that were hardly trained: enough to be looked into."""
    found = {}
    for kind in SETTINGS:
        folder = tmp_path_factory.mktemp("lessons")
        settings = (*HARDLY[kind], *corpus(kind, folder), "train.steps=2", "train.schedule.warmup=1")
        Run(folder / kind).train(recipe(kind, *settings))
        found[kind] = str(folder / kind)
    return found


@pytest.fixture(scope="session")
def taught(request):
    """A lesson, worked out once for each set of changes."""
    kept = {}

    def lesson(name, **changes):
        needs = CONTENTS[name].needs if name in CONTENTS else ()
        if needs:
            paths = [request.getfixturevalue("runs")[kind] for kind in needs]
            changes = ({"models": paths} if len(paths) > 1 else {"model": paths[0]}) | changes
        key = name, repr(sorted(changes.items()))
        if key not in kept:
            kept[key] = teach(name, changes)
        return kept[key]

    return lesson
