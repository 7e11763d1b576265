"""A trace of 512 tokens: the page answers while it is drawn, and every cell can still be reached and heard."""

import pytest
import torch

from browsing import go, until
from regard.look import Recording
from regard.trace import Record, Trace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
TOKENS, LAYERS, HEADS, WIDTH = 512, 2, 4, 64
FROZEN = 500
"""milliseconds in which a page that does not answer seems to have stopped"""
WATCH = """() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration)))
        .observe({ type: "longtask" });
}"""
CROSS = "decoder.layers.1.cross.weights"


def made():
    """What a Transformer of two layers and four heads would record of 512 words about 512."""
    draw = torch.Generator().manual_seed(1)
    words = [[f" w{i}" for i in range(TOKENS)]]
    scene = {"source": words, "target": words, "read": words, "condensed": True}
    labels, axes = {"query": words, "key": words}, ("batch", "head", "query", "key")
    records = []
    for layer in range(LAYERS):
        for part in (f"encoder.layers.{layer}.attention", f"decoder.layers.{layer}.cross"):
            scores = 3 * torch.randn(1, HEADS, TOKENS, TOKENS, generator=draw)
            records.append(Record(f"{part}.scores", axes, scores, labels, scene))
            records.append(Record(f"{part}.weights", axes, scores.softmax(-1), labels, scene))
        vectors = torch.randn(1, TOKENS, WIDTH, generator=draw)
        name = f"decoder.layers.{layer}.residual"
        records.append(Record(name, ("batch", "position", "width"), vectors, {"position": words}, scene))
    return Recording(Trace(records=records))


@pytest.fixture
def large(empty, browser):
    """The page at its start, and the number of the trace."""
    recording, text = made(), " ".join(f"w{i}" for i in range(TOKENS))
    told = {"model": {"id": "made", "name": "made", "step": 1}, "text": text, "answer": text, "seconds": 1.0,
            "made": "2026-11-16T00:00:00+00:00", "decode": {"beam": None}, "can": [], "fork": None}  # fmt: skip
    number = empty.studio.shelf.put(recording, told | recording.header(recording)).header["id"]
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(30_000)
    go(page, empty, "#/")
    page.evaluate(WATCH)
    yield page, number, recording
    page.close()


def drawn(page, server, address):
    """Milliseconds of the longest task until a tab stands; its numbers may still be coming in."""
    page.evaluate("window.tasks = []")
    go(page, server, address)
    until(page, "!document.body.textContent.includes('All heads…')")
    page.wait_for_timeout(300)
    return max(page.evaluate("window.tasks"), default=0)


@pytest.mark.parametrize("tab", ["story", "attention", "states", "numbers"])
def test_no_tab_keeps_the_page_from_answering(large, empty, tab):
    """A task that is too long is so each time; one that another process has held up is not."""
    page, number, _ = large
    tries = []
    while len(tries) < 3 and min(tries, default=FROZEN) >= FROZEN:
        go(page, empty, f"#/compare?try={len(tries)}")
        tries.append(drawn(page, empty, f"#/t/{number}?tab={tab}"))
    assert min(tries) < FROZEN, tries


def test_every_head_is_shown_and_a_cell_far_away_is_told_by_keys(large, empty):
    page, number, recording = large
    go(page, empty, f"#/t/{number}?tab=attention&tensor={CROSS}&head=3&query=510&key=510")
    page.locator(".matrix").first.focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    value = recording.find(CROSS)[0].data[0, 3, 511, 511].item()
    assert page.locator(".matrix + .readout").first.inner_text() == f"w511 → w511: {told(value)}"
    assert "512 x 512 numbers" in page.locator(".matrix canvas").first.get_attribute("aria-label")
    until(page, "document.querySelector('.heads canvas') !== null")
    assert page.locator(".heads canvas").get_attribute("aria-label") == f"{HEADS * 2 * LAYERS} heads of 4 attentions"
    page.get_by_label("Threshold in per cent").fill("0")
    assert page.locator(".arcs-panel [aria-live]").inner_text() == "showing 1000 of 262144, the strongest"
    weakest = recording.find(CROSS)[0].data[0, 3].flatten().topk(1000).values[-1].item()
    least = page.locator(".arcs title").last.text_content().rpartition(": ")[2]
    assert least == told(weakest)


def told(value):
    """As the page writes a number."""
    return f"{value:.4f}" if value >= 0.0005 else f"{value:.3e}".replace("e-0", "e−").replace("e-", "e−")
