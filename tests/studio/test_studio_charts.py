"""Charts of the page: the histogram of a tensor, and the losses of several runs on one chart, smoothed."""

import json
import re

import numpy as np

from browsing import TEXT, go, shows, until


def test_the_histogram_counts_every_number_of_a_tensor(page, server):
    trace, name = server.trace("transformer", TEXT), "encoder.layers.1.ffn.activations"
    sent = server.get(f"/api/v1/traces/{trace['id']}/tensors/{name}").body
    numbers = np.frombuffer(sent, "<f4").astype(float)
    go(page, server, f"#/t/{trace['id']}?tab=numbers&tensor={name}")
    page.get_by_text("Histogram of the whole tensor").click()
    page.locator(".histogram summary").click()
    rows = page.locator(".histogram table tbody tr")
    rows.last.wait_for()
    counts = [int(text) for text in rows.locator("td").all_inner_texts()]
    expected, _ = np.histogram(numbers, bins=40)
    assert sum(counts) == len(numbers) and counts == expected.tolist()
    caption = page.locator(".histogram figcaption").inner_text()
    assert caption.startswith(f"{len(numbers):,} numbers, mean ")
    shown = re.findall(r"(?:mean|deviation|smallest|largest) (\S+?)(?:,|$)", caption)
    statistics = (numbers.mean(), numbers.std(), numbers.min(), numbers.max())
    assert all(shows(text, value) for text, value in zip(shown, statistics, strict=True)), caption
    bars = page.locator(".histogram rect.bin")
    heights = [float(bars.nth(i).get_attribute("height")) for i in range(40)]
    np.testing.assert_allclose(heights, np.array(counts) / max(counts) * max(heights), atol=1e-6)


def test_losses_of_several_runs_are_smoothed_on_one_chart(page, server, folder):
    """The last smoothed loss of each run is the corrected moving average of the losses in its file."""
    names, losses = ("transformer", "seq2seq"), {}
    for name in names:
        lines = (folder / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        losses[name] = [row["loss"] for row in map(json.loads, lines) if row["event"] == "stepped"]
    assert min(map(len, losses.values())) > 1
    go(page, server, f"#/runs/{server.models()['transformer']}")
    page.get_by_text("Loss of several runs").click()
    page.get_by_role("checkbox", name="seq2seq").check()
    until(page, "document.querySelectorAll('.loss-comparison .run-legend li').length === 2")
    chart = page.locator(".loss-comparison .chart-card")
    assert chart.locator(".curve").count() == 2
    for share in (0.9, 0.6, 0.0):
        page.get_by_label("Smoothing").select_option("none" if share == 0 else str(share))
        for name in names:
            weights = share ** np.arange(len(losses[name]))[::-1]
            smooth = float(np.average(losses[name], weights=weights))
            shown = re.search(rf"{name} (\S+?)(?:,|$)", chart.locator("output").inner_text())[1]
            assert shows(shown, smooth), (name, share)
    page.get_by_label("Loss", exact=True).select_option("validation")
    assert page.get_by_label("Smoothing").count() == 0
