import os
import sys
from pathlib import Path

# before torch starts: tests are small, and two workers share the cores
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# as in an activated environment: messages call the program by its name
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

import pytest
import torch

torch.set_num_threads(1)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests for two workers: each starts with one half, and steals from the end of the other's.

    Slow tests come first, so that both end at the same time; the studio's, which share servers and a browser, stay with
    one worker.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    folder = Path(__file__).parent / "studio"
    groups: dict[str, list[pytest.Item]] = {"studio": [], "slow": [], "fast": []}
    for item in items:
        name = "studio" if folder in item.path.parents else "slow" if item.get_closest_marker("slow") else "fast"
        groups[name].append(item)
    cut = max(0, len(items) // 2 - len(groups["slow"]))
    items[:] = [*groups["slow"], *groups["fast"][:cut], *groups["studio"], *groups["fast"][cut:]]
