"""Screenshots of studio.md, of three small models that are trained on the built-in phrases.

python docs/screenshots.py        # two minutes; needs Chromium and Playwright (the test extra)
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import Page, sync_playwright

from regard.cli import invoke
from regard.studio.app import build
from regard.studio.example import TEXT
from regard.studio.server import bind_socket
from regard.studio.service import Studio, TraceRequest

HERE = Path(__file__).parent
RECIPE = HERE.parent / "src/regard/studio/example.toml"
WIDE = 1280
CROSS = "decoder.layers.1.cross.weights"
MODELS = {
    "transformer": ["train.validate_every=25", "task.bleu_sentences=100", f"train.probe={TEXT}"],
    "rnnsearch": ['model={kind = "rnnsearch", embedding = 64, width = 64, alignment = 64, maxout = 64}'],
    "lstm": ['model={kind = "seq2seq", layers = 1, width = 96}'],
}


def train_models(folder: Path) -> Path:
    """Train all models; returns the folder of runs."""
    for name, settings in MODELS.items():
        command = ["train", str(RECIPE), "--out", str(folder / "runs" / name), "--quiet", *settings]
        if invoke(command):
            sys.exit(f"the {name} could not be trained")
    return folder / "runs"


def take_screenshot(page: Page, name: str, height: int) -> None:
    """Save the upper part of the page next to this file."""
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(500)
    clip: Any = {"x": 0, "y": 0, "width": WIDE, "height": height}
    page.screenshot(path=str(HERE / f"studio-{name}.png"), full_page=True, clip=clip)


def go(page: Page, address: str) -> None:
    """Open an address and wait until it is drawn."""
    page.goto(address)
    page.wait_for_selector(f"html[data-ready^='#{address.split('#')[1].split('?')[0]}']", state="attached")


def take_views(page: Page, base: str, trace: str) -> None:
    """Take the screenshots of one trace: scene, tour, attention, an explained number, and a what-if."""
    one_head = f"{base}#/t/{trace}?tab=attention&tensor={CROSS}&head=1"
    go(page, f"{base}#/t/{trace}?tab=scene")
    take_screenshot(page, "scene", 1540)
    go(page, f"{base}#/t/{trace}?tour=cross-attention")
    page.wait_for_selector(".tour[data-stop='cross-attention']")
    take_screenshot(page, "tour", 1000)
    go(page, one_head)
    take_screenshot(page, "attention", 960)
    go(page, f"{one_head}&query=1&key=0")
    page.locator(".matrix").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".drawer math")
    take_screenshot(page, "explain", 900)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit this row").click()
    page.get_by_role("button", name="Only ").click()
    page.get_by_role("button", name="Run with this row").click()
    page.locator(".fork summary").click()
    page.get_by_role("button", name="difference").click()
    take_screenshot(page, "whatif", 900)


def take_all(page: Page, base: str, studio: Studio) -> None:
    """Take all screenshots."""
    models = {entry.name: entry.id for entry in studio.model_store.entries()}
    traces = {name: studio.trace(TraceRequest(models[name], TEXT)).header["id"] for name in MODELS}
    take_views(page, base, traces["transformer"])
    go(page, f"{base}#/compare?t={','.join(traces.values())}")
    page.locator(".comparison .matrix").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    take_screenshot(page, "compare", 900)
    go(page, f"{base}#/runs/{models['transformer']}")
    page.get_by_label("Training step").fill("6")
    take_screenshot(page, "training", 1100)


def main() -> None:
    """Train the models, serve them, and take the screenshots."""
    browser = os.environ.get("REGARD_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, bind_socket(0) as listening, sync_playwright() as playwright:
        runs = Path(sys.argv[1]) if len(sys.argv) > 1 else train_models(Path(folder))
        studio = Studio(runs, Path(folder) / "cache")
        server = uvicorn.Server(uvicorn.Config(build(studio), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDE, "height": 900})
        take_all(page, f"http://127.0.0.1:{listening.getsockname()[1]}/", studio)
        chromium.close()
        server.should_exit = True
        thread.join(10)


if __name__ == "__main__":
    main()
