"""Fixtures: tiny trained models, studios that serve them on the loopback interface, and a browser."""

import http.client
import json
import os
import random
import shutil
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browsing import PAGE_PATIENCE, open_page
from caption_models import train_caption_models
from helpers import PATIENCE, join_all, wait_until
from image_models import train_image_model
from language_runs import train_runs
from readers import LOAD, NAMES, READERS, REVIEWS

BASE = (
    "data.kind=phrases", "data.count=300", "text.vocab_size=200", "train.steps=30",
    "train.validate_every=30", "train.batch_tokens=512", "train.schedule.lr=0.01", "train.schedule.warmup=10",
    "task.bleu_sentences=0", "train.best_metric=loss", "decode.min_length=4", "decode.max_extra_tokens=6",
)  # fmt: skip
FAMILIES = {
    "transformer": (
        "model.kind=transformer",
        "model.layers=2",
        "model.width=16",
        "model.heads=4",
        "model.ffn_width=32",
    ),
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
    "task.kind=vectors", "data.kind=text", "data.unit=line", "model.width=8", "train.steps=20",
    "train.batch_tokens=1024", "train.schedule.warmup=5", "task.subsample=0",
)  # fmt: skip
SENTENCES = (
    (("cat", "dog", "horse", "cow"), ("eats", "sleeps", "runs", "drinks")),
    (("hammer", "saw", "drill", "file"), ("cuts", "breaks", "rusts", "drops")),
)
"""Nouns with the verbs that occur with them."""
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The headless shell first: it opens a page with a third of the CPU time."""


def find_browser():
    return os.environ.get("REGARD_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)


def find_axe():
    """Path of axe-core: REGARD_AXE, or where `make axe` installs it."""
    default = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    path = Path(os.environ.get("REGARD_AXE") or default)
    return path if path.is_file() else None


def pytest_collection_modifyitems(config, items):
    """Deselect tests that need a browser, fonts or axe-core if that is missing; in CI they fail instead."""
    from regard.look.png import has_fonts

    if os.environ.get("CI"):
        return
    available = {"browser": find_browser() is not None, "fonts": has_fonts(), "axe": find_axe() is not None}
    missing = {name for name, is_available in available.items() if not is_available}
    deselected = [item for item in items if missing & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """A folder with one trained run of each family."""
    import regard
    from regard.train.events import MetricsFile

    root = tmp_path_factory.mktemp("studio") / "runs"
    for name, settings in FAMILIES.items():
        recipe = regard.Recipe.read(None, [*BASE, *settings])
        regard.Run(root / name).train(recipe, listeners=[MetricsFile(root / name)])
    return root


@pytest.fixture(scope="session")
def readers(tmp_path_factory) -> Path:
    """A folder with a classifier, a tagger and a forecaster, which answer in a single pass."""
    import regard

    root = tmp_path_factory.mktemp("readers")
    (root / "reviews.tsv").write_text(REVIEWS, encoding="utf-8")
    (root / "names.conll").write_text(NAMES, encoding="utf-8")
    (root / "load.csv").write_text(LOAD, encoding="utf-8")
    for name, settings in READERS.items():
        recipe = regard.Recipe.read(None, [setting.format(root.as_posix()) for setting in settings])
        regard.Run(root / "runs" / name).train(recipe)
    return root / "runs"


@pytest.fixture(scope="session")
def words_folder(folder, tmp_path_factory) -> Path:
    """A folder with a word vector model and a translator."""
    import regard
    from regard.train.events import MetricsFile

    root, draw = tmp_path_factory.mktemp("wordy"), random.Random(1)
    lines = []
    for nouns, verbs in draw.choices(SENTENCES, k=400):
        lines.append(f"the {draw.choice(nouns)} {draw.choice(verbs)} and the {draw.choice(nouns)} too")
    (root / "book.txt").write_text("\n".join(lines), encoding="utf-8")
    recipe = regard.Recipe.read(None, [*VECTORS, f"data.train={root.as_posix()}/book.txt"])
    regard.Run(root / "runs" / "words").train(recipe, listeners=[MetricsFile(root / "runs" / "words")])
    shutil.copytree(folder / "transformer", root / "runs" / "transformer", symlinks=True)
    return root / "runs"


@dataclass(frozen=True)
class ApiResponse:
    """A response of the server."""

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
    """the uvicorn server"""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> ApiResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return ApiResponse(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> ApiResponse:
        return self.request("GET", path)

    def post(self, path: str, table: object) -> ApiResponse:
        return self.request("POST", path, json.dumps(table).encode(), content_type="application/json")

    def models(self) -> dict[str, str]:
        return {model["name"]: model["id"] for model in self.get("/api/v1/models").table["models"]}

    def trace(self, name: str, text: str, beam: int | None = None) -> Any:
        decode = {} if beam is None else {"beam": beam}
        response = self.post("/api/v1/traces", {"model": self.models()[name], "text": text, "decode": decode})
        assert response.status == 201, response.body
        return response.table


@contextmanager
def run_server(root: Path, cache: Path):
    """A studio on a free port, in a thread of this process."""
    from regard.studio.server import StudioServer, bind_socket, server_config
    from regard.studio.service import Studio

    studio = Studio(root, cache)
    with bind_socket(0) as listening:
        server = StudioServer(studio, server_config(studio))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        wait_until(lambda: server.started or not thread.is_alive(), "the studio starts")
        assert server.started, "the studio ended when it was started"
        try:
            yield Server(listening.getsockname()[1], studio, server)
        finally:
            server.should_exit = True
            join_all(thread)


@pytest.fixture(scope="session")
def server(folder, tmp_path_factory):
    with run_server(folder, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def single_pass_server(readers, tmp_path_factory):
    """A studio with the single-pass models."""
    with run_server(readers, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def language_runs(tmp_path_factory) -> Path:
    """A folder with language models and a BERT that classifies."""
    return train_runs(tmp_path_factory.mktemp("language"))


@pytest.fixture(scope="session")
def language_server(language_runs, tmp_path_factory):
    """A studio with language models."""
    with run_server(language_runs, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def image_runs(tmp_path_factory) -> Path:
    """A folder with runs of image classifiers, and photos of the one that reads color."""
    root = tmp_path_factory.mktemp("image-studio")
    for name in ("cnn", "vit", "resnet"):
        train_image_model(name, root)
    return root


@pytest.fixture(scope="session")
def image_server(image_runs, tmp_path_factory):
    """A studio with image classifiers."""
    with run_server(image_runs / "runs", tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def caption_runs(tmp_path_factory) -> Path:
    """A folder with a captioning run, a classifier of clips, and a model of their next positions."""
    root = tmp_path_factory.mktemp("captions")
    train_caption_models(root / "runs")
    return root


@pytest.fixture(scope="session")
def caption_server(caption_runs):
    """A studio with a captioning model and models of clips."""
    with run_server(caption_runs / "runs", caption_runs / "cache") as found:
        yield found


@pytest.fixture(scope="session")
def words_server(words_folder, tmp_path_factory):
    """A studio with word vectors."""
    with run_server(words_folder, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def bare_server(tmp_path_factory):
    """A studio without models that tests do not change."""
    root = tmp_path_factory.mktemp("bare")
    with run_server(root / "runs", root / "cache") as found:
        yield found


@pytest.fixture(scope="session")
def strange(folder, tmp_path_factory):
    """A studio with a good run, damaged and hostile ones, and one whose name is not UTF-8."""
    root = tmp_path_factory.mktemp("strange")
    names = ("good", "fifo", "nested", "metrics", "infinite", os.fsdecode(b"bad\xff"))
    runs = {name: root / "runs" / name for name in names}
    for path in runs.values():
        shutil.copytree(folder / "transformer", path, symlinks=True)
    (runs["fifo"] / "recipe.toml").unlink()
    os.mkfifo(runs["fifo"] / "recipe.toml")
    (runs["nested"] / "recipe.toml").write_bytes(b"x = " + b"[" * 100_000)
    (runs["metrics"] / "metrics.jsonl").write_bytes(b'{"step": 1, "loss": NaN}\n{"step": 1e999, "loss": 1e999}\n')
    (runs["infinite"] / "last" / "state.json").write_bytes(b'{"regard": "0", "state": {"step": 1e999}}')
    with run_server(root / "runs", tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture(scope="session")
def read_only(folder, tmp_path_factory):
    """A studio of runs that cannot be written, and the files of its folder."""
    root = tmp_path_factory.mktemp("read-only")
    shutil.copytree(folder, root / "runs", symlinks=True)
    paths = sorted((root / "runs").rglob("*"))
    for path in [*paths, root / "runs"]:
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    with run_server(root / "runs", root / "cache") as found:
        yield found, paths
    for path in [root / "runs", *paths]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


@pytest.fixture
def empty(tmp_path):
    """A studio without models."""
    with run_server(tmp_path / "runs", tmp_path / "cache") as found:
        yield found


@pytest.fixture(scope="session")
def fonts():
    from regard.look.png import has_fonts

    assert has_fonts(), "none of the usual fonts was found: install Noto Sans (Debian: fonts-noto-core)"


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core."""
    path = find_axe()
    if path is None:
        pytest.fail("axe-core was not found: `make axe` installs it (npm), or name its axe.min.js in REGARD_AXE")
    return path.read_text(encoding="utf-8")


def with_patience(make):
    """Make a page or a context that waits longer than Playwright does: cores may be busy with other tests."""

    def make_patient(**options):
        made = make(**options)
        made.set_default_timeout(1000 * PAGE_PATIENCE)
        return made

    return make_patient


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = find_browser()
    if path is None:
        pytest.fail(f"no browser was found: install Chromium ({', '.join(BROWSERS)}), or name it in REGARD_BROWSER")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=options)
        chromium.new_page, chromium.new_context = map(with_patience, (chromium.new_page, chromium.new_context))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, server):
    with open_page(browser, server.address) as page:
        yield page
