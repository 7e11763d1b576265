import pytest

from regard.lessons import teach
from regard.lessons.trained import SETTINGS, recipe
from regard.run import Run

TRAINED = "evolution-of-attention"


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Two models that were hardly trained: enough to be looked into."""
    found = []
    for kind in SETTINGS:
        path = tmp_path_factory.mktemp("lessons") / kind
        Run(path).train(recipe(kind, "data.count=200", "text.size=200", "train.steps=2", "train.schedule.warmup=1"))
        found.append(str(path))
    return found


@pytest.fixture(scope="session")
def taught(request):
    """A lesson, worked out once for each set of changes."""
    kept = {}

    def lesson(name, **changes):
        if name == TRAINED:
            changes = {"models": request.getfixturevalue("runs")} | changes
        key = name, repr(sorted(changes.items()))
        if key not in kept:
            kept[key] = teach(name, changes)
        return kept[key]

    return lesson
