"""Whole models on the page: size, gradient decay, and the next words that states predict."""

import math

import pytest
import torch

import regard
from browsing import TEXT, go, shows

pytestmark = pytest.mark.slow
NAMES = ("transformer", "seq2seq", "rnnsearch")


def display_brief(value):
    """Four significant digits, as displayed on the page."""
    if math.isnan(value):
        return "–"
    return f"{value:.1e}".replace("e-0", "e−").replace("e-", "e−") if value < 0.001 else f"{float(f'{value:.4g}'):g}"


def test_a_comparison_shows_gradient_decay_and_size_of_each_model(page, server, folder):
    traces = [server.trace(name, TEXT)["id"] for name in NAMES]
    models = {name: regard.load(folder / name) for name in NAMES}
    decays = {name: model.teacher_forced(TEXT).gradients(model.module).decay() for name, model in models.items()}
    go(page, server, f"#/compare?t={','.join(traces)}")
    sizes = [sum(weight.numel() for weight in model.module.parameters()) for model in models.values()]
    displayed = page.locator(".comparison .size").all_inner_texts()
    assert displayed == [f"{size:,} parameters, {display_brief(4 * size / 1e6)} MB" for size in sizes]
    page.locator(".gradient-decay").scroll_into_view_if_needed()
    page.wait_for_selector(".gradient-decay .curves")
    assert page.locator(".gradient-decay .curves polyline").count() == len(NAMES)
    cells = page.locator(".gradient-decay table tbody td").all_inner_texts()
    assert all(shows(text, decay.rate) for text, decay in zip(cells, decays.values(), strict=True))
    distances = sorted({distance for decay in decays.values() for distance in decay.distances})
    page.locator(".gradient-decay .curves").focus()
    for distance in reversed(distances):
        norms = [dict(zip(decay.distances, decay.norms)).get(distance, math.nan) for decay in decays.values()]
        values = ", ".join(f"{name} {display_brief(norm)}" for name, norm in zip(NAMES, norms))
        assert page.locator(".gradient-decay .readout").inner_text() == f"distance {distance}: {values}"
        page.keyboard.press("ArrowLeft")


@pytest.mark.parametrize("name", NAMES)
def test_states_show_the_most_likely_next_words(page, server, name):
    trace = server.trace(name, TEXT)
    states = [t["name"] for t in trace["tensors"] if "read" in t["sides"].values() and "width" in t["axes"]]
    source = [t["name"] for t in trace["tensors"] if set(t["sides"].values()) == {"source"} and "width" in t["axes"]]
    go(page, server, f"#/t/{trace['id']}?tab=states&tensor={states[-1]}")
    response = server.get(f"/api/v1/traces/{trace['id']}/tensors/logits").body
    logits = torch.frombuffer(bytearray(response), dtype=torch.float32).view(len(trace["steps"]), -1).double()
    best = logits.softmax(-1).topk(3)
    rows = page.locator(".next-words tbody tr").all()
    assert len(rows) == len(trace["steps"])
    for row, step, values in zip(rows, trace["steps"], best.values.tolist(), strict=True):
        cells = row.locator("td").all_inner_texts()
        assert cells[::2] == [word["label"] for word in step["best"][:3]]
        assert all(shows(text, value) for text, value in zip(cells[1::2], values, strict=True))
    assert [row.locator("th").inner_text() for row in rows] == [w["label"] for w in trace["sequences"]["read"]]
    rows[1].get_by_role("button").click()
    page.wait_for_selector(f".transport .muted:text-is('step 2 of {len(rows)}')")
    go(page, server, f"#/t/{trace['id']}?tab=states&tensor={source[0]}")
    assert page.locator(".next-words").count() == 0
