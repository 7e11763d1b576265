"""How long a reader waits: python benchmarks/studio.py

A Transformer of 6 layers and 8 heads, its weights as they were drawn, says 60 words about 60 and 200 about 200. It is
told what recording costs beside a plain pass, how long the attention is in coming after a click (the server's answer
and all that is drawn, in Chromium), and what pointing at a cell takes. Of a made trace of 512 tokens it is told for how
long the page does not answer while a tab is drawn. First of all it is told how long the page is in coming up, with an
empty cache. Promises: a second, 3 times, 500 ms, a frame of 16 ms, half a second.
"""

import os
import shutil
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import torch
import uvicorn
from playwright.sync_api import sync_playwright

import regard
from regard.look import Recording
from regard.studio.app import build
from regard.studio.server import Server, bound
from regard.studio.service import Studio, Wish
from regard.trace import Record, Trace

WORDS = ["le", "chat", "noir", "mange", "une", "pomme", "rouge", "et", "je", "suis", "étudiant"]
SETTINGS = [
    "data.kind=phrases", "data.count=400", "text.kind=word", "text.size=2000", "model.kind=transformer",
    "model.layers=6", "model.heads=8", "model.width=256", "model.inner=512", "train.steps=1", "train.every=1",
    "train.tokens=256", "train.select=loss", "task.scored=0", "decode.minimum={}", "decode.extra=1", "decode.beam=1",
]  # fmt: skip
DRAWN = """async (hash) => {
    delete document.documentElement.dataset.ready;
    const began = performance.now();
    location.hash = hash;
    while (!document.documentElement.dataset.ready) await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return performance.now() - began;
}"""
HOVER = """async () => {
    const stage = document.querySelector(".matrix");
    const box = stage.getBoundingClientRect();
    const times = [];
    for (let i = 0; i < 120; i++) {
        const [x, y] = [60 + ((i * 7) % (box.width - 80)), 60 + ((i * 5) % (box.height - 80))];
        const began = performance.now();
        stage.dispatchEvent(new MouseEvent("mousemove", { clientX: box.left + x, clientY: box.top + y }));
        times.push(performance.now() - began);
        await new Promise(requestAnimationFrame);
    }
    return times.sort((a, b) => a - b)[113];
}"""

WATCH = """() => {
    window.tasks = [0];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration)))
        .observe({ type: "longtask" });
}"""
TABS = ("story", "attention", "states", "numbers")


def best(act, times=5):
    """The shortest of some times, in seconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return min(taken)


def recorded(model, text):
    with model.record():
        model.answer(text)


def large(tokens=512, layers=6, heads=8, width=64):
    """What a Transformer would record of so many words about so many, drawn at random."""
    words = [[f" w{i}" for i in range(tokens)]]
    scene = {"source": words, "target": words, "read": words, "condensed": True}
    labels, axes = {"query": words, "key": words}, ("batch", "head", "query", "key")
    records = []
    for layer in range(layers):
        for part in (f"encoder.layers.{layer}.attention", f"decoder.layers.{layer}.cross"):
            weights = (3 * torch.randn(1, heads, tokens, tokens)).softmax(-1)
            records.append(Record(f"{part}.weights", axes, weights, labels, scene))
        vectors, name = torch.randn(1, tokens, width), f"decoder.layers.{layer}.residual"
        records.append(Record(name, ("batch", "position", "width"), vectors, {"position": words}, scene))
    return Recording(Trace(records=records))


def silences(page, studio):
    """Of each tab of a large trace, the milliseconds of the longest task: so long nothing answers."""
    recording = large()
    told = {"model": {"id": "", "name": "made"}, "text": "made", "answer": "made", "fork": None}
    number = studio.shelf.put(recording, told | recording.header(recording)).header["id"]
    page.evaluate(WATCH)
    for tab in TABS:
        page.evaluate(DRAWN, f"#/compare?{tab}")
        page.evaluate("window.tasks = [0]")
        page.evaluate(DRAWN, f"#/t/{number}?tab={tab}")
        page.wait_for_timeout(5000)  # all heads are drawn one after the other
        yield tab, max(page.evaluate("window.tasks"))


def looked(page, studio, places):
    """Milliseconds until the attention is drawn, the best of five, and of pointing at a cell, the 95th of 100."""
    for many in places:
        entry = next(entry for entry in studio.library.entries() if entry.name == str(many))
        number = studio.trace(Wish(entry.id, " ".join((WORDS * 20)[:many]))).header["id"]
        drawn = []
        for turn in range(5):
            page.evaluate(DRAWN, f"#/compare?{many}{turn}")
            drawn.append(page.evaluate(DRAWN, f"#/t/{number}?tab=attention&turn={turn}"))
        yield many, min(drawn), page.evaluate(HOVER)


def came_up(browser, address):
    """Milliseconds from going to the page until it can be used, five times; nothing was kept before."""
    for _ in range(5):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        yield page.evaluate("performance.now()")
        context.close()


@contextmanager
def opened(folder):
    """A studio and a page that looks at it."""
    studio = Studio(folder / "runs", folder / "cache")
    browser = os.environ.get("REGARD_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with bound(0) as listening, sync_playwright() as playwright:
        server = Server(studio, uvicorn.Config(build(studio), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        came = sorted(came_up(chromium, address))
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.wait_for_selector("html[data-ready]", state="attached")
        yield page, studio, came
        chromium.close()
        server.should_exit = True
        thread.join(10)


def main() -> None:
    places, kept = (60, 200), True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for many in places:
            settings = [setting.format(many) for setting in SETTINGS]
            regard.Run(folder / "runs" / str(many)).train(regard.Recipe.read(None, settings))
        model, text = regard.load(folder / "runs" / "60"), " ".join((WORDS * 20)[:60])
        plain, seen = best(lambda: model.answer(text)), best(lambda: recorded(model, text))
        kept = seen <= 3 * plain
        print(f"recording 60 words about 60: {seen:.2f} s, a plain pass {plain:.2f} s: {seen / plain:.1f} times")
        with opened(folder) as (page, studio, came):
            kept = kept and came[2] <= 1000
            print(f"the page can be used after {came[2]:.0f} ms ({came[0]:.0f} to {came[-1]:.0f})")
            for many, drawn, hover in looked(page, studio, places):
                kept = kept and (many > 60 or drawn <= 500) and hover <= 16
                print(f"{many} words about {many}: drawn {drawn:.0f} ms after the click, pointing {hover:.1f} ms")
            for tab, silence in silences(page, studio):
                kept = kept and silence <= 500
                print(f"{tab} of 512 tokens, 6 layers, 8 heads: the longest task takes {silence:.0f} ms")
    sys.exit(0 if kept else "a promise was not kept")


if __name__ == "__main__":
    main()
