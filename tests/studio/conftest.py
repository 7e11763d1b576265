"""Tiny models of three families, a studio that shows them on loopback, and a browser that looks at it."""

import http.client
import json
import os
import random
import shutil
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browsing import faultless
from readers import LOAD, NAMES, READERS, REVIEWS

BASE = (
    "data.kind=phrases", "data.count=300", "text.size=200", "train.steps=30", "train.every=30", "train.tokens=512",
    "train.schedule.lr=0.01", "train.schedule.warmup=10", "task.scored=0", "train.select=loss", "decode.minimum=4",
    "decode.extra=6",
)  # fmt: skip
FAMILIES = {
    "transformer": ("model.kind=transformer", "model.layers=2", "model.width=16", "model.heads=4", "model.inner=32"),
    "seq2seq": ("model.kind=seq2seq", "model.layers=2", "model.width=16"),
    "rnnsearch": (
        "model.kind=rnnsearch",
        "model.embedding=12",
        "model.width=16",
        "model.alignment=8",
        "model.maxout=8",
    ),
}
VECTORS = (
    "task.kind=vectors", "data.kind=text", "data.unit=line", "model.width=8", "train.steps=20", "train.tokens=1024",
    "train.schedule.warmup=5", "task.common=0",
)  # fmt: skip
COMPANY = (
    (("cat", "dog", "horse", "cow"), ("eats", "sleeps", "runs", "drinks")),
    (("hammer", "saw", "drill", "file"), ("cuts", "breaks", "rusts", "drops")),
)
"""Nouns with the verbs that stand beside them."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXAMPLE = """
[data]
kind = "phrases"
count = 300
[text]
size = 200
[model]
kind = "transformer"
layers = 1
width = 16
heads = 2
inner = 32
[task]
scored = 0
[train]
steps = 10
every = 10
tokens = 512
select = "loss"
"""


def found_browser():
    return os.environ.get("REGARD_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


def found_axe():
    """Where `make axe` puts it, unless REGARD_AXE names another."""
    usual = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    path = Path(os.environ.get("REGARD_AXE") or usual)
    return path if path.is_file() else None


def pytest_collection_modifyitems(config, items):
    """Without a browser there is nothing to drive, without a font nothing to draw, without axe nothing to judge with;
    where everything must be tested, that is a failure."""
    from regard.look.png import has_fonts

    if os.environ.get("CI"):
        return
    there = {"browser": found_browser() is not None, "fonts": has_fonts(), "axe": found_axe() is not None}
    needing = [i for i in items if any(name in getattr(i, "fixturenames", ()) for name in there if not there[name])]
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A folder with one trained run of each family."""
    import regard
    from regard.train.events import MetricsFile

    root = tmp_path_factory.mktemp("studio") / "runs"
    for name, settings in FAMILIES.items():
        told = [MetricsFile(root / name)]
        regard.Run(root / name).train(regard.Recipe.read(None, [*BASE, *settings]), listeners=told)
    return root


@pytest.fixture(scope="session")
def readers(tmp_path_factory) -> Path:
    """A folder with a classifier, a tagger and a forecast: they say their answer at once."""
    import regard

    root = tmp_path_factory.mktemp("readers")
    (root / "reviews.tsv").write_text(REVIEWS, encoding="utf-8")
    (root / "names.conll").write_text(NAMES, encoding="utf-8")
    (root / "load.csv").write_text(LOAD, encoding="utf-8")
    for name, settings in READERS.items():
        told = [setting.format(root.as_posix()) for setting in settings]
        regard.Run(root / "runs" / name).train(regard.Recipe.read(None, told))
    return root / "runs"


@pytest.fixture(scope="session")
def wordy(folder, tmp_path_factory) -> Path:
    """A folder with word vectors beside a translator."""
    import regard
    from regard.train.events import MetricsFile

    root, draw = tmp_path_factory.mktemp("wordy"), random.Random(1)
    lines = []
    for nouns, verbs in draw.choices(COMPANY, k=400):
        lines.append(f"the {draw.choice(nouns)} {draw.choice(verbs)} and the {draw.choice(nouns)} too")
    (root / "book.txt").write_text("\n".join(lines), encoding="utf-8")
    recipe = regard.Recipe.read(None, [*VECTORS, f"data.train={root.as_posix()}/book.txt"])
    regard.Run(root / "runs" / "words").train(recipe, listeners=[MetricsFile(root / "runs" / "words")])
    shutil.copytree(folder / "transformer", root / "runs" / "transformer", symlinks=True)
    return root / "runs"


@dataclass(frozen=True)
class Said:
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def table(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.table["error"]


@dataclass(frozen=True)
class Server:
    port: int
    studio: Any
    running: Any
    """uvicorn's own server: its connections, and the way to end it"""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Said:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return Said(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Said:
        return self.ask("GET", path)

    def post(self, path: str, table: object) -> Said:
        return self.ask("POST", path, json.dumps(table).encode(), content_type="application/json")

    def models(self) -> dict[str, str]:
        return {model["name"]: model["id"] for model in self.get("/api/v1/models").table["models"]}

    def trace(self, name: str, text: str, beam: int | None = None) -> Any:
        decode = {} if beam is None else {"beam": beam}
        said = self.post("/api/v1/traces", {"model": self.models()[name], "text": text, "decode": decode})
        assert said.status == 201, said.body
        return said.table


@contextmanager
def serving(root: Path, cache: Path):
    """A studio on a free port, in a thread of this process."""
    import uvicorn

    from regard.studio.app import build
    from regard.studio.server import Server as Running
    from regard.studio.server import bound
    from regard.studio.service import Studio

    studio = Studio(root, cache, EXAMPLE)
    with bound(0) as listening:
        config = uvicorn.Config(build(studio), log_level="warning", ws="none", http="h11", loop="asyncio")
        server = Running(studio, config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield Server(listening.getsockname()[1], studio, server)
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def server(folder, tmp_path_factory):
    with serving(folder, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def answering(readers, tmp_path_factory):
    """A studio that shows those who answer at once."""
    with serving(readers, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def worded(wordy, tmp_path_factory):
    """A studio that shows words as points."""
    with serving(wordy, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture
def empty(tmp_path):
    """A studio with no model."""
    with serving(tmp_path / "runs", tmp_path / "cache") as found:
        yield found


@pytest.fixture(scope="session")
def fonts():
    from regard.look.png import has_fonts

    assert has_fonts(), "no usual font was found: install Noto Sans (Debian: fonts-noto-core)"


@pytest.fixture(scope="session")
def axe() -> str:
    """The script that judges a page."""
    path = found_axe()
    if path is None:
        pytest.fail("axe-core was not found: `make axe` fetches it (npm), or name its axe.min.js in REGARD_AXE")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = found_browser()
    if path is None:
        pytest.fail(f"no browser was found: install Chromium ({', '.join(BROWSERS)}), or name it in REGARD_BROWSER")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()


@pytest.fixture
def page(browser, server):
    with faultless(browser, server.address) as page:
        yield page
